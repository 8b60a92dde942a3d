//! The models of a folder: found, opened, kept up to date.

mod queue;
mod served_model;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use efface_engine::KeyAccess;

pub(crate) use served_model::ServedModel;
pub(crate) use worker::{ChangeOrder, OrderAnswer};

use crate::metrics::ServiceMetrics;
use crate::problem::{Problem, ProblemCode};
use crate::work::WorkPlace;

/// How the files of models end.
const EXTENSION: &str = "efface";

/// The models of a folder, by the names of their files. A name is looked up in this list and never
/// becomes a path.
pub(crate) struct ModelRegistry {
    folder: PathBuf,
    access: KeyAccess,
    metrics: Arc<ServiceMetrics>,
    work: WorkPlace,
    models: RwLock<BTreeMap<String, Arc<ServedModel>>>,
    /// Models of the folder that could not be opened when it was last looked at.
    unopened: RwLock<Vec<String>>,
}

impl ModelRegistry {
    pub(crate) fn new(
        folder: &Path,
        access: KeyAccess,
        metrics: Arc<ServiceMetrics>,
        work: WorkPlace,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            access,
            metrics,
            work,
            models: RwLock::default(),
            unopened: RwLock::default(),
        }
    }

    /// Brings the list up to date with the folder: new files are opened, files that are gone are
    /// let go, files that another process changed are read again. Returns what could not be opened,
    /// by name.
    pub(crate) fn refresh(&self) -> std::io::Result<Vec<(String, efface_engine::Error)>> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .map(str::to_owned);
            let is_model = path
                .extension()
                .is_some_and(|extension| extension == EXTENSION)
                && path.is_file();
            if let (true, Some(name)) = (is_model, name) {
                found.insert(name, path);
            }
        }
        let mut faults = Vec::new();
        let mut unopened = Vec::new();
        let mut kept = self.all_by_name();
        kept.retain(|name, model| found.contains_key(name) && model.is_working());
        for (name, path) in found {
            match kept.get(&name) {
                Some(model) => {
                    if let Err(error) = model.follow_file() {
                        faults.push((name, error));
                    }
                }
                None => {
                    match ServedModel::open(&name, &path, &self.access, &self.metrics, self.work) {
                        Ok(model) => {
                            tracing::info!(model = name, "serving");
                            kept.insert(name, Arc::new(model));
                        }
                        Err(error) => {
                            // A file that is no model has no rows.
                            if !matches!(error, efface_engine::Error::NotOurs { .. }) {
                                unopened.push(name.clone());
                            }
                            faults.push((name, error));
                        }
                    }
                }
            }
        }
        *self
            .unopened
            .write()
            .unwrap_or_else(PoisonError::into_inner) = unopened;
        *self.models.write().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(faults)
    }

    /// The model of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<ServedModel>, Problem> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models
            .get(name)
            .cloned()
            .ok_or_else(|| Problem::new(ProblemCode::NotFound, "there is no model of that name"))
    }

    /// All models, by name.
    pub(crate) fn all(&self) -> Vec<Arc<ServedModel>> {
        self.all_by_name().into_values().collect()
    }

    /// The names of the models that are in the folder and cannot be used now.
    pub(crate) fn unopened(&self) -> Vec<String> {
        let unopened = self.unopened.read().unwrap_or_else(PoisonError::into_inner);
        unopened.clone()
    }

    /// Lets all models go; their last changes are finished.
    pub(crate) fn close(&self) {
        let models =
            std::mem::take(&mut *self.models.write().unwrap_or_else(PoisonError::into_inner));
        for model in models.into_values() {
            model.close();
        }
    }

    fn all_by_name(&self) -> BTreeMap<String, Arc<ServedModel>> {
        self.models
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
