//! One model: a thread that changes it, a reader for questions, and the scorer that predictions
//! share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use efface_engine::{Engine, KeyAccess, ModelSummary, Scorer};
use efface_evidence::latest_audit;
use efface_receipt::Receipt;

use super::queue::ChangeQueue;
use super::worker::{ChangeOrder, ChangeWorker};
use crate::metrics::ServiceMetrics;
use crate::problem::Problem;
use crate::work::WorkPlace;

/// A model that is served.
pub(crate) struct ServedModel {
    name: String,
    path: PathBuf,
    current: Arc<CurrentModel>,
    reader: Mutex<Engine>,
    audit: Mutex<SeenAudits>,
    changes: ChangeQueue,
}

/// How far the log was searched for audits, and the newest one there.
#[derive(Debug, Default)]
struct SeenAudits {
    size: u64,
    newest: Option<Receipt>,
}

/// What predictions use, replaced in one step after every change: nobody who predicts waits for a
/// forget.
pub(crate) struct CurrentModel {
    scorer: RwLock<Scorer>,
    summary: RwLock<Arc<ModelSummary>>,
    stamp: Mutex<FileStamp>,
}

/// What tells that a file has changed, or is another file under the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    length: u64,
    identity: Option<(u64, u64)>,
}

impl FileStamp {
    fn of(path: &Path) -> Self {
        let facts = std::fs::metadata(path).ok();
        Self {
            modified: facts.as_ref().and_then(|facts| facts.modified().ok()),
            length: facts.as_ref().map_or(0, std::fs::Metadata::len),
            identity: facts.as_ref().and_then(identity),
        }
    }
}

#[cfg(unix)]
fn identity(facts: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((facts.dev(), facts.ino()))
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

impl CurrentModel {
    fn load(engine: &Engine, path: &Path) -> Result<Self, efface_engine::Error> {
        let stamp = FileStamp::of(path);
        Ok(Self {
            scorer: RwLock::new(engine.scorer()?),
            summary: RwLock::new(Arc::new(engine.summary()?)),
            stamp: Mutex::new(stamp),
        })
    }

    /// Takes over the model as the file has it now, unless a newer one is here already: another
    /// thread may have loaded it in the meantime.
    pub(crate) fn replace(&self, engine: &Engine, path: &Path) -> Result<(), efface_engine::Error> {
        let stamp = FileStamp::of(path);
        let loaded = engine.scorer()?;
        let summary = Arc::new(engine.summary()?);
        let mut scorer = self.scorer.write().unwrap_or_else(PoisonError::into_inner);
        if loaded.generation() < scorer.generation() {
            return Ok(());
        }
        let before = std::mem::replace(&mut *scorer, loaded);
        *self.summary.write().unwrap_or_else(PoisonError::into_inner) = summary;
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
        // Taking the old one apart takes a while, for which no prediction should wait.
        drop(scorer);
        drop(before);
        Ok(())
    }
}

impl ServedModel {
    pub(crate) fn open(
        name: &str,
        path: &Path,
        access: &KeyAccess,
        metrics: &Arc<ServiceMetrics>,
        work: WorkPlace,
    ) -> Result<Self, efface_engine::Error> {
        let mut engine = Engine::open(path)?;
        engine.set_key_access(access.clone());
        let mut reader = Engine::open_read_only(path)?;
        // Requests are found by a commitment to their names, whose key lies with the signing key.
        reader.set_key_access(access.clone());
        let current = Arc::new(CurrentModel::load(&engine, path)?);
        let worker = ChangeWorker {
            name: name.to_owned(),
            path: path.to_owned(),
            engine,
            current: current.clone(),
            metrics: metrics.clone(),
        };
        let changes = ChangeQueue::start(worker, work);
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            current,
            reader: Mutex::new(reader),
            audit: Mutex::default(),
            changes: changes.map_err(|cause| efface_engine::Error::io(path, cause))?,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The model that predictions use now.
    pub(crate) fn scorer(&self) -> Scorer {
        self.current
            .scorer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What the file held after the last change.
    pub(crate) fn summary(&self) -> Arc<ModelSummary> {
        self.current
            .summary
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asks the file something; blocks, and is to be called where that does no harm.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&Engine) -> T) -> T {
        question(&self.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest audit on record. Blocks; receipts that were seen before are not read again.
    pub(crate) fn newest_audit(&self) -> Result<Option<Receipt>, efface_engine::Error> {
        let mut seen = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, size) = self.ask(|engine| latest_audit(engine, seen.size))?;
        // A log that is shorter than before was put back from a copy, and is searched from its
        // beginning.
        if size < seen.size {
            *seen = SeenAudits::default();
            let (newest, size) = self.ask(|engine| latest_audit(engine, 0))?;
            *seen = SeenAudits { size, newest };
        } else {
            seen.size = size;
            seen.newest = newer.or_else(|| seen.newest.take());
        }
        Ok(seen.newest.clone())
    }

    /// Hands a change to whoever makes them.
    pub(crate) fn order(&self, order: ChangeOrder) -> Result<(), Problem> {
        self.changes.order(order)
    }

    /// Whether the thread that changes the model still runs, and the file of its name is the one
    /// that is open. A new fit puts another file in its place.
    pub(crate) fn is_working(&self) -> bool {
        let known = self
            .current
            .stamp
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .identity;
        self.changes.is_working() && FileStamp::of(&self.path).identity == known
    }

    /// Reads the model again if another process has changed the file.
    pub(crate) fn follow_file(&self) -> Result<(), efface_engine::Error> {
        let known = *self
            .current
            .stamp
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if FileStamp::of(&self.path) == known {
            return Ok(());
        }
        self.ask(|engine| self.current.replace(engine, &self.path))
    }

    /// Waits until all changes that were handed over are done.
    pub(crate) fn close(&self) {
        if !self.changes.close() {
            tracing::error!(model = self.name, "the thread of the model panicked");
        }
    }
}
