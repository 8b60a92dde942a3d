//! A file that is being made: its rows, and the name that it has until it is complete.

use std::path::Path;

use efface::{RowStore, Rows};

use super::ingest::RowNames;
use crate::error::{Error, Result};
use crate::file::outputs::{self, LockedName, ReplacedFile};
use crate::file::{self, FileFault, ModelConnection, OutgoingRow, RecordSorter, RowDirectory, RowShape};
use crate::ledger::row_leaf;
use crate::progress::Progress;

/// Rows of a new file.
pub(super) struct NewRows {
    pub(super) rows: Rows,
    pub(super) words: Vec<Vec<u32>>,
    pub(super) names: RowNames,
    /// The lines that they come from; empty where ids were compared with each other before.
    pub(super) lines: Vec<u64>,
}

/// What is known of the rows of a new file while they are written, in no order: it is put in order when all of them are there.
pub(super) struct RowLoad {
    /// The commitments to the rows.
    pub(super) leaves: RecordSorter,
    /// Their names, for the index.
    pub(super) names: RecordSorter,
}

impl RowLoad {
    pub(super) fn beside(path: &Path) -> Self {
        Self { leaves: RecordSorter::new(path), names: RecordSorter::new(path) }
    }
}

impl NewRows {
    /// Writes all rows, numbered on from `first`, and enters them into the list.
    pub(super) fn write(
        &self,
        connection: &ModelConnection,
        shape: RowShape,
        directory: &mut RowDirectory<'_>,
        load: &mut RowLoad,
        first: u64,
        progress: &dyn Progress,
    ) -> std::result::Result<(), FileFault> {
        let mut digests = Vec::with_capacity(self.rows.len());
        let mut buffer = Vec::new();
        for (slot, row) in self.rows.iter().enumerate() {
            let id = self.names.ids[slot].as_str();
            let row = OutgoingRow {
                id,
                subject: self.names.subject(slot),
                weight: row.weight,
                targets: row.targets,
                words: self.words.get(slot).map_or(&[][..], Vec::as_slice),
                features: row.features,
            };
            let written = file::rows::insert(connection, first + slot as u64, shape, &row, &mut buffer)?;
            load.leaves.push(row_leaf(&written.nonce, id, &written.content).0)?;
            digests.push(written.digest);
            progress.at(slot as u64);
        }
        // All entries of one table after all of the other: each table lies in large pieces.
        for (slot, id) in self.names.ids.iter().enumerate() {
            let line = self.lines.get(slot).copied().unwrap_or_default();
            let row = first + slot as u64;
            directory.load(&mut load.names, row, id, self.names.subject(slot), &digests[slot], line)?;
        }
        Ok(())
    }
}

/// A model under a temporary name, removed unless it is published. SQLite needs a name; the lock on it tells others that
/// its process is alive.
pub(super) struct ModelDraft {
    name: LockedName,
    published: bool,
}

impl ModelDraft {
    pub(super) fn beside(path: &Path) -> Result<Self> {
        let name = LockedName::beside(path).map_err(|cause| Error::io(path, cause))?;
        Ok(Self { name, published: false })
    }

    /// Where it lies until it is published.
    pub(super) fn path(&self) -> &Path {
        &self.name.path
    }

    pub(super) fn publish(mut self, path: &Path, mode: u32) -> Result<()> {
        let io = |cause| Error::io(path, cause);
        // The journal of an interrupted change to an older model would be played into the new one.
        file::remove_journal(path).map_err(io)?;
        // A draft that was changed has one of its own.
        file::remove_journal(&self.name.path).map_err(io)?;
        outputs::set_mode(&self.name.file, mode).map_err(io)?;
        let replaced = ReplacedFile::keep(path);
        std::fs::rename(&self.name.path, path).map_err(io)?;
        if let Some(replaced) = replaced {
            replaced.discard();
        }
        self.published = true;
        outputs::sync_folder(path);
        Ok(())
    }
}

impl Drop for ModelDraft {
    fn drop(&mut self) {
        if !self.published {
            // The rows of a fit that failed.
            self.name.discard();
            let _ = file::remove_journal(&self.name.path);
        }
    }
}
