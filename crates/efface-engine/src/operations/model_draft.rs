//! A file that is being made: its rows, and the name that it has until it is complete.

use std::ops::Range;
use std::path::Path;

use efface::{RowStore, Rows};

use super::ingest::RowNames;
use crate::error::{Error, Result};
use crate::file::outputs::{self, LockedName, ReplacedFile};
use crate::file::{
    self, FileFault, FileSalt, OutgoingRow, Record, RecordSorter, RowEntry, RowNonce, RowShape,
    TableLoad,
};
use crate::ledger::row_leaf;
use crate::ordered_work;
use crate::progress::Progress;
use crate::randomness::fill_random;

/// Rows of a new file.
pub(super) struct NewRows {
    pub(super) rows: Rows,
    pub(super) words: Vec<Vec<u32>>,
    pub(super) names: RowNames,
    /// The lines that they come from; empty where ids were compared with each other before.
    pub(super) lines: Vec<u64>,
}

/// What is known of the rows of a new file while they are written, in no order: it is put in order
/// when all of them are there.
pub(super) struct RowLoad {
    /// The commitments to the rows.
    pub(super) leaves: RecordSorter,
    /// Their names, for the index.
    pub(super) names: RecordSorter,
}

impl RowLoad {
    pub(super) fn beside(path: &Path) -> Self {
        Self {
            leaves: RecordSorter::new(path),
            names: RecordSorter::new(path),
        }
    }
}

/// Rows that are encoded and hashed by one thread at a time.
const PIECE: usize = 4096;

impl NewRows {
    /// Writes all rows and the list of them. They are encoded and hashed by several threads.
    pub(super) fn write(
        &self,
        tables: &mut TableLoad<'_>,
        shape: RowShape,
        salt: FileSalt,
        load: &mut RowLoad,
        progress: &dyn Progress,
    ) -> std::result::Result<(), FileFault> {
        let count = self.rows.len();
        let mut written = 0;
        let mut pieces = (0..count)
            .step_by(PIECE)
            .map(|start| start..count.min(start + PIECE));
        let threads = ordered_work::usual_threads().min(count / PIECE + 1);
        ordered_work::in_order(
            threads,
            || pieces.next(),
            |slots| self.encode(slots, shape, salt, 0),
            |encoded| {
                let encoded = encoded?;
                encoded.write(tables, load)?;
                written += encoded.entries.len() as u64;
                progress.at(written);
                Ok::<(), FileFault>(())
            },
        )
    }

    /// The bytes of some of the rows, and all that is hashed of them.
    pub(super) fn encode(
        &self,
        slots: Range<usize>,
        shape: RowShape,
        salt: FileSalt,
        first: u64,
    ) -> std::result::Result<EncodedRows, FileFault> {
        let mut encoded = EncodedRows::new(slots.len());
        let mut nonces = vec![0; slots.len() * size_of::<RowNonce>()];
        fill_random(&mut nonces).map_err(|error| FileFault::Damaged(error.to_string()))?;
        let (nonces, _) = nonces.as_chunks::<{ size_of::<RowNonce>() }>();
        for ((slot, row), nonce) in slots.clone().zip(self.rows.window(slots)).zip(nonces) {
            let id = self.names.ids[slot].as_str();
            let subject = self.names.subject(slot);
            let row = OutgoingRow {
                id,
                subject,
                weight: row.weight,
                targets: row.targets,
                words: self.words.get(slot).map_or(&[][..], Vec::as_slice),
                features: row.features,
            };
            let number = first + slot as u64;
            let written = file::rows::encode(number, shape, nonce, &row, &mut encoded.payloads);
            encoded.ends.push(encoded.payloads.len());
            encoded.leaves.push(row_leaf(nonce, id, &written.content).0);
            let entry = salt.entry(id, subject, &written.digest);
            let line = self.lines.get(slot).copied().unwrap_or_default();
            encoded
                .names
                .extend(file::index_records(number, &entry, line));
            encoded.entries.push(entry);
        }
        Ok(encoded)
    }
}

/// Rows as they are stored, and what is kept of them beside.
pub(super) struct EncodedRows {
    payloads: Vec<u8>,
    /// Where each row ends among them.
    ends: Vec<usize>,
    /// The entries in the list of rows.
    entries: Vec<RowEntry>,
    /// The commitments to the rows.
    leaves: Vec<Record>,
    /// What the index holds of them.
    names: Vec<Record>,
}

impl EncodedRows {
    fn new(rows: usize) -> Self {
        Self {
            payloads: Vec::new(),
            ends: Vec::with_capacity(rows),
            entries: Vec::with_capacity(rows),
            leaves: Vec::with_capacity(rows),
            names: Vec::with_capacity(rows),
        }
    }

    pub(super) fn write(
        &self,
        tables: &mut TableLoad<'_>,
        load: &mut RowLoad,
    ) -> std::result::Result<(), FileFault> {
        load.leaves.extend(&self.leaves)?;
        load.names.extend(&self.names)?;
        tables.append(&self.payloads, &self.ends, &self.entries)
    }
}

/// A model under a temporary name, removed unless it is published. SQLite needs a name; the lock on
/// it tells others that its process is alive.
pub(super) struct ModelDraft {
    name: LockedName,
    published: bool,
}

impl ModelDraft {
    pub(super) fn beside(path: &Path) -> Result<Self> {
        let name = LockedName::beside(path).map_err(|cause| Error::io(path, cause))?;
        Ok(Self {
            name,
            published: false,
        })
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
        // SQLite was told not to wait for the disk; from here on the file has to last.
        self.name.file.sync_all().map_err(io)?;
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
