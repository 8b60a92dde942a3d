//! The list of what must not come back. An entry is a hash of an id and the time at which its row was forgotten.

use efface_receipt::Hash;
use rusqlite::Connection;

use super::LedgerHead;
use super::tree::{SealedEntry, SealedTable, SealedTree};
use crate::file::{FileFault, damaged};

/// When the row was forgotten, if it was.
pub(crate) fn since(
    connection: &Connection,
    ledger: &LedgerHead,
    commitment: &Hash,
) -> Result<Option<String>, FileFault> {
    let tree = SealedTree::new(connection, SealedTable::Forgotten);
    tree.find(&ledger.forgotten, commitment)?.map(text).transpose()
}

/// Remembers that rows were forgotten, and nothing else of them.
pub(crate) fn remember(
    connection: &Connection,
    ledger: &mut LedgerHead,
    commitments: Vec<Hash>,
    at: &str,
) -> Result<(), FileFault> {
    let entry = |commitment| SealedEntry::new(commitment, at.as_bytes().to_vec());
    let entries: Vec<SealedEntry> = commitments.into_iter().map(entry).collect();
    SealedTree::new(connection, SealedTable::Forgotten).change(&mut ledger.forgotten, &[], &entries)
}

/// One thing that must not come back.
pub(crate) struct SuppressedRow {
    pub(crate) commitment: Hash,
    pub(crate) since: String,
}

/// The whole list, after all of it was compared with its root.
pub(crate) fn checked_list(
    connection: &Connection,
    ledger: &LedgerHead,
) -> Result<Vec<SuppressedRow>, FileFault> {
    let entries = SealedTree::new(connection, SealedTable::Forgotten).check(&ledger.forgotten)?;
    let row =
        |entry: SealedEntry| Ok(SuppressedRow { commitment: entry.commitment, since: text(entry.value)? });
    entries.into_iter().map(row).collect()
}

fn text(bytes: Vec<u8>) -> Result<String, FileFault> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => damaged("a time on its list of what must not come back is no text"),
    }
}
