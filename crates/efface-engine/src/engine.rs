//! An open model file.

use std::path::Path;
use std::time::Duration;

use efface::Options;
use efface::features::Encoder;
use efface_io::Source;

use crate::change;
use crate::error::Result;
use crate::look;
use crate::model;
use crate::report::{Parameters, Prediction, Report, Summary};
use crate::request::{Progress, Who};
use crate::store::{Manifest, Store};

/// A model file, open. Several engines may have the same file open; changes wait for each other, five seconds at most.
pub struct Engine {
    pub(crate) store: Store,
}

/// A model as it is inside one transaction.
pub(crate) struct Snapshot {
    pub(crate) manifest: Manifest,
    pub(crate) encoder: Option<Encoder>,
}

impl Engine {
    /// Opens a model in order to change it.
    pub fn open(path: &Path) -> Result<Self> {
        Self::with(path, true)
    }

    /// Opens a model in order to look at it; the file needs no write permission.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::with(path, false)
    }

    fn with(path: &Path, write: bool) -> Result<Self> {
        let engine = Self { store: Store::open(path, write)? };
        // A file that cannot be read is better found out now than in the middle of a change.
        engine.store.with(Manifest::load)?;
        Ok(engine)
    }

    /// How long to wait for another process; for tests.
    #[doc(hidden)]
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        self.store.patience(patience)
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.store.with(|connection| {
            let manifest = Manifest::load(connection)?;
            Ok(Snapshot { encoder: model::encoder(connection, &manifest)?, manifest })
        })
    }

    /// What the file holds.
    pub fn summary(&self) -> Result<Summary> {
        look::summary(self)
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> Result<Parameters> {
        look::parameters(self)
    }

    /// Calls `see` with the scores of every row of the file, in order; returns how many rows there were.
    pub fn predict(&self, source: &Source, see: &mut dyn FnMut(Prediction) -> Result<()>) -> Result<u64> {
        look::predict(self, source, see)
    }

    /// Takes rows out of the model and out of the file. With `dry_run` everything is computed and nothing is written.
    /// A method that makes no sense for the model is refused; [`efface::methods::table`] lists what goes together.
    pub fn forget(&mut self, who: &Who, method: &str, options: &Options, dry_run: bool) -> Result<Report> {
        change::forget(self, who, method, options, dry_run)
    }

    /// Adds the rows of a file.
    pub fn learn(&mut self, source: &Source, progress: &dyn Progress) -> Result<Report> {
        change::learn(self, source, progress)
    }

    /// Replaces rows of the model by the rows of the same id in a file.
    pub fn amend(&mut self, source: &Source, progress: &dyn Progress) -> Result<Report> {
        change::amend(self, source, progress)
    }
}
