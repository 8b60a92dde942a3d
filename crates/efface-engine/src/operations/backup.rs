//! A copy of a model file while others may use it. No forget reaches a copy: what is forgotten after it was made is in it.

use std::path::Path;

use serde::Serialize;

use super::fit::ModelDraft;
use super::open_model::OpenModel;
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::file::outputs::{self, PlannedOutput};
use crate::file::{ModelStore, PATIENCE, paths};
use crate::ledger::newest;

/// What a copy holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackupReport {
    /// Rows.
    pub rows: u64,
    /// Receipts of the log.
    pub receipts: u64,
    /// Bytes.
    pub file_bytes: u64,
}

/// Writes a copy to a path where nothing is yet, in the mode that is asked for.
pub(crate) fn backup(model: &OpenModel, path: &Path, mode: u32) -> Result<BackupReport> {
    outputs::check_outputs(&[PlannedOutput::file(path)], &[model.store.path()], false)?;
    let path = &paths::resolve(path).map_err(|cause| Error::io(path, cause))?;
    let draft = ModelDraft::beside(path)?;
    let target = draft.path().to_string_lossy().into_owned();
    // One statement reads all of it: the copy is of one moment.
    model.store.with(|connection| {
        connection.execute("VACUUM INTO ?1", [target])?;
        Ok(())
    })?;
    let copied = ModelStore::open(draft.path(), false, PATIENCE)?.read(Manifest::load)?;
    draft.publish(path, mode)?;
    let file_bytes = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?.len();
    Ok(BackupReport { rows: copied.rows, receipts: copied.ledger.size, file_bytes })
}

/// What is wrong with a file that is older than its log was when it was last changed here; None where nothing is.
pub(crate) fn rollback(model: &OpenModel) -> Result<Option<String>> {
    model.store.read(|connection| {
        let ledger = Manifest::load(connection)?.ledger;
        newest::rollback(connection, &ledger, model.store.path())
    })
}
