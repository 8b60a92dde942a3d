//! A copy of a model file while others may use it. No forget reaches a copy: what is forgotten
//! after it was made is in it.

use std::path::Path;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::file::ModelConnection;
use serde::Serialize;

use super::model_draft::ModelDraft;
use super::open_model::OpenModel;
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::file::outputs::{self, PlannedOutput};
use crate::file::{FileFault, ModelStore, PATIENCE, paths};
use crate::ledger::newest;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupContent {
    /// The whole model.
    Model,
    /// The log and the lists that it signs, without a row and without a parameter: what
    /// [`restore`](crate::restore) needs to bring an older copy up to date.
    Log,
}

/// Copies what the log consists of into a file with the same tables.
fn copy_log(from: &ModelConnection, to: &ModelConnection) -> std::result::Result<(), FileFault> {
    const TABLES: [&str; 8] = [
        "cells",
        "copies",
        "forgotten",
        "members",
        "meta",
        "nodes",
        "receipts",
        "requests",
    ];
    for table in TABLES {
        let mut read = from.prepare(&format!(r#"SELECT * FROM "{table}""#))?;
        let columns = read.column_count();
        let places = vec!["?"; columns].join(", ");
        let mut write = to.prepare(&format!(r#"INSERT INTO "{table}" VALUES ({places})"#))?;
        let mut rows = read.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<Value> = (0..columns)
                .map(|at| row.get(at))
                .collect::<rusqlite::Result<_>>()?;
            write.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}

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
pub(crate) fn backup(
    model: &OpenModel,
    content: BackupContent,
    path: &Path,
    mode: u32,
) -> Result<BackupReport> {
    outputs::check_outputs(&[PlannedOutput::file(path)], &[model.store.path()], false)?;
    let path = &paths::resolve(path).map_err(|cause| Error::io(path, cause))?;
    let draft = ModelDraft::beside(path)?;
    copy(model, content, &draft)?;
    let copied = ModelStore::open(draft.path(), false, PATIENCE)?.read(Manifest::load)?;
    draft.publish(path, mode)?;
    let file_bytes = std::fs::metadata(path)
        .map_err(|cause| Error::io(path, cause))?
        .len();
    Ok(BackupReport {
        rows: copied.rows,
        receipts: copied.ledger.size,
        file_bytes,
    })
}

/// Fills a draft with a copy of one moment.
pub(super) fn copy(model: &OpenModel, content: BackupContent, draft: &ModelDraft) -> Result<()> {
    match content {
        BackupContent::Model => {
            let target = paths::for_sqlite(draft.path());
            let target = target.to_string_lossy().into_owned();
            // One statement reads all of it.
            model
                .store
                .with(|connection| Ok(connection.execute("VACUUM INTO ?1", [target]).map(drop)?))
        }
        BackupContent::Log => {
            let target = ModelStore::create(draft.path(), 0, None)?;
            let transaction = target.begin(true)?;
            model
                .store
                .read(|from| target.raw(|to| copy_log(from, to)))?;
            transaction.commit().map(drop)
        }
    }
}

/// What is wrong with a file that is older than its log was when it was last changed here; None
/// where nothing is.
pub(crate) fn rollback(model: &OpenModel) -> Result<Option<String>> {
    model.store.read(|connection| {
        let ledger = Manifest::load(connection)?.ledger;
        newest::rollback(connection, &ledger, model.store.path())
    })
}
