//! The rows of a new file and the list of them, on their way into it: both tables grow side by
//! side, page by page, and the list is hashed as it grows.

use std::path::Path;

use efface_receipt::Hash;
use sha2::{Digest, Sha256};

use super::FileFault;
use super::cipher::ModelConnection;
use super::hash_tree::{HashTree, HashedTable, TreeTop};
use super::keys::{CHUNK, DirectoryHead, ListRoots, RowEntry};
use super::page_writer::PageWriter;
use super::rows::place;
use super::tree_load::BlobLoad;

/// Hashes of chunks that are in memory at most: half a mebibyte.
const MOST_HASHES: usize = 1 << 14;

/// Fills the empty tables of a file. SQLite must not be in a transaction, and begin none before the
/// end.
pub(crate) struct TableLoad<'a> {
    connection: &'a ModelConnection,
    pages: PageWriter,
    rows: BlobLoad,
    list: BlobLoad,
    count: u64,
    /// The chunk of the list that is not full yet.
    open: Sha256,
    /// The hashes of the chunks that are full and not in the tree yet.
    hashes: Vec<Hash>,
    tree: HashTree,
    /// Chunks in the tree.
    chunks: u64,
}

impl<'a> TableLoad<'a> {
    /// For the file at this path.
    pub(crate) fn begin(connection: &'a ModelConnection, path: &Path) -> Result<Self, FileFault> {
        let pages = PageWriter::open(path)?;
        let rows = BlobLoad::new(connection, &pages, "rows")?;
        let list = BlobLoad::new(connection, &pages, "keys")?;
        let tree = HashTree::new(HashedTable::Keys, TreeTop::empty());
        let open = Sha256::new();
        Ok(Self {
            connection,
            pages,
            rows,
            list,
            count: 0,
            open,
            hashes: Vec::new(),
            tree,
            chunks: 0,
        })
    }

    /// Appends rows whose bytes end where `ends` says, and their entries in the list.
    pub(crate) fn append(
        &mut self,
        payloads: &[u8],
        ends: &[usize],
        entries: &[RowEntry],
    ) -> Result<(), FileFault> {
        let mut start = 0;
        for (row, &end) in (self.count..).zip(ends) {
            let sealed = self.connection.seal(place(row), &payloads[start..end])?;
            self.rows.push(&mut self.pages, row, &sealed)?;
            start = end;
        }
        for entry in entries {
            self.list.push(&mut self.pages, self.count, entry)?;
            self.open.update(self.count.to_be_bytes());
            self.open.update(entry);
            self.count += 1;
            if self.count.is_multiple_of(CHUNK) {
                self.close_chunk();
            }
        }
        if self.hashes.len() >= MOST_HASHES {
            self.enter_hashes()?;
            self.pages.resume()?;
        }
        Ok(())
    }

    fn close_chunk(&mut self) {
        self.hashes.push(Hash(self.open.finalize_reset().into()));
    }

    /// Writes the hashes into their branches by way of SQLite, which has to see the pages before.
    fn enter_hashes(&mut self) -> Result<TreeTop, FileFault> {
        self.pages.finish()?;
        let transaction = self.connection.unchecked_transaction()?;
        for hash in self.hashes.drain(..) {
            self.tree.set(&transaction, self.chunks, hash)?;
            self.chunks += 1;
        }
        let top = self.tree.finish(&transaction)?;
        transaction.commit()?;
        Ok(top)
    }

    /// Completes the tables; gives the rows that are there and the root over their list.
    pub(crate) fn finish(mut self) -> Result<DirectoryHead, FileFault> {
        if !self.count.is_multiple_of(CHUNK) {
            self.close_chunk();
        }
        self.rows.finish(&mut self.pages)?;
        self.list.finish(&mut self.pages)?;
        let keys = self.enter_hashes()?;
        Ok(DirectoryHead {
            rows: self.count,
            roots: ListRoots::without_index(keys),
        })
    }
}
