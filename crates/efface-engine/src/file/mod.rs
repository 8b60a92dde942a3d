//! The model file: one SQLite database. This layer knows bytes, tables and transactions, and
//! nothing of mathematics or of the log.

mod cipher;
mod hash_tree;
mod header;
mod journal;
mod keys;
mod layout;
pub(crate) mod meta;
pub mod outputs;
mod page_writer;
pub(crate) mod parts;
pub(crate) mod paths;
mod payload;
mod places;
pub(crate) mod rows;
pub(crate) mod schema;
mod secret_sum;
mod shrink;
mod sorter;
mod table_load;
mod tree_load;

pub(crate) use cipher::{DataKey, KeyCheck, ModelConnection};
pub(crate) use header::is_model;
#[cfg(test)]
pub(crate) use journal::journal_path;
pub(crate) use journal::remove_journal;
pub(crate) use keys::{
    DirectoryHead, FileSalt, FoundRows, ListRoots, RowDirectory, RowEntry, build_index,
    index_records,
};
pub(crate) use layout::{RowLayout, RowShape};
pub(crate) use parts::{ArrayHead, StoredArray};
pub(crate) use payload::{OutgoingRow, RowDigest, RowNonce, StoredRow, substance_of};
pub(crate) use places::RepeatedName;
pub(crate) use rows::{RowOutline, StoreRows};
pub(crate) use schema::compact;
pub(crate) use secret_sum::SecretSum;
pub(crate) use shrink::give_back;
pub(crate) use sorter::{Record, RecordSorter};
pub(crate) use table_load::TableLoad;
pub(crate) use tree_load::KeyLoad;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, ffi};

use cipher::FileCipher;
use outputs::ReplacedFile;

use crate::error::{Error, Result};

/// The name under which an encrypted file says which key it is sealed with.
const ENCRYPTION: &str = "encryption";

/// Bytes of rows that may be in memory at once, unless the caller says otherwise; less where this
/// process may not take four times as many.
const MEMORY: u64 = 4 << 30;

/// How long to wait for another process that holds the file, unless the caller says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What went wrong, before it is known in which file.
#[derive(Debug)]
pub(crate) enum FileFault {
    Damaged(String),
    Sql(rusqlite::Error),
    /// What holds the signing key did not sign.
    Signing(String),
    /// The file is encrypted, and its key is not at hand.
    Sealed,
    /// A file beside the model could not be written or read.
    Beside(std::io::Error),
}

impl From<std::io::Error> for FileFault {
    fn from(cause: std::io::Error) -> Self {
        Self::Beside(cause)
    }
}

impl From<rusqlite::Error> for FileFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<efface_receipt::ReceiptFault> for FileFault {
    fn from(fault: efface_receipt::ReceiptFault) -> Self {
        match fault {
            efface_receipt::ReceiptFault::Signing(problem) => Self::Signing(problem),
            fault => Self::Damaged(format!("its log: {fault}")),
        }
    }
}

pub(crate) fn damaged<T>(what: impl Into<String>) -> std::result::Result<T, FileFault> {
    Err(FileFault::Damaged(what.into()))
}

impl FileFault {
    pub(crate) fn at(self, path: &Path) -> Error {
        let path = path.to_owned();
        let error = match self {
            Self::Damaged(what) => return Error::Damaged { path, what },
            Self::Signing(problem) => return Error::Signing { problem },
            Self::Beside(cause) => return Error::Io { path, cause },
            Self::Sealed => {
                let problem = "the model is encrypted, and its key is not there".into();
                return Error::Key {
                    path: paths::key_path(&path),
                    problem,
                };
            }
            Self::Sql(error) => error,
        };
        let code = error.sqlite_error().map(|failure| failure.extended_code);
        // The low byte of an extended code is the error's family.
        match code.map(|code| (code & 0xff, code)) {
            Some((ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED, _)) => Error::Locked { path },
            Some((ffi::SQLITE_NOTADB, _)) => Error::NotOurs { path },
            Some((ffi::SQLITE_IOERR, code)) if code != ffi::SQLITE_IOERR_SHORT_READ => {
                system(path, error)
            }
            Some((
                ffi::SQLITE_FULL | ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY | ffi::SQLITE_PERM,
                _,
            )) => system(path, error),
            // Every statement of the engine is right for a file that is whole, so that any other
            // refusal of SQLite is a fault of the file.
            _ => Error::Damaged {
                path,
                what: error.to_string(),
            },
        }
    }
}

fn system(path: PathBuf, error: rusqlite::Error) -> Error {
    Error::Io {
        path,
        cause: std::io::Error::other(error.to_string()),
    }
}

/// An open model file. SQLite connections cannot be shared between threads, so there is a lock
/// around it.
pub(crate) struct ModelStore {
    path: PathBuf,
    connection: Mutex<ModelConnection>,
    /// Bytes of rows that may be in memory at once.
    memory: AtomicU64,
}

impl ModelStore {
    /// Opens a model file that is there.
    pub(crate) fn open(path: &Path, write: bool, patience: Duration) -> Result<Self> {
        header::check_kind(path)?;
        journal::check_beside(path)?;
        let store = match Self::look(path, write, patience) {
            // A change was cut short, and a reader cannot roll it back: let a writer do it.
            Err(Error::Io { .. }) if !write && journal::holds_bytes(path) => {
                Self::look(path, true, patience)?.clear_leftover(patience)?;
                Self::look(path, false, patience)?
            }
            store => store?,
        };
        if write && journal::holds_bytes(path) {
            store.clear_leftover(patience)?;
        }
        Ok(store)
    }

    /// Overwrites what a process that died left in the journal, unless somebody changes the file
    /// just now.
    fn clear_leftover(&self, patience: Duration) -> Result<()> {
        self.patience(Duration::ZERO)?;
        // What cannot be overwritten now is left to the next change.
        if let Ok(_held) = self.begin(true) {
            let _ = journal::clear(&self.path);
        }
        self.patience(patience)
    }

    /// Connects and reads for the first time, which rolls back what a crash left behind.
    fn look(path: &Path, write: bool, patience: Duration) -> Result<Self> {
        let access = if write {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        // SQLite deletes a journal that it rolls back, before it can be told not to.
        let journal =
            journal::is_unfinished(path).then(|| ReplacedFile::keep(&journal::journal_path(path)));
        let store = Self::connect(path, access, patience)?;
        store.with(|connection| {
            Ok(
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
                    row.get::<_, i64>(0)
                })?,
            )
        })?;
        store.read_cipher()?;
        if let Some(journal) = journal.flatten() {
            journal.discard();
        }
        // From here on a journal keeps its name until it is overwritten.
        store.with(|connection| Ok(connection.execute_batch("PRAGMA journal_mode = PERSIST")?))?;
        Ok(store)
    }

    /// Refuses a file that is not ours, and finds out whether it is encrypted.
    fn read_cipher(&self) -> Result<()> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        header::check(&self.path, &connection)?;
        let check = key_check(&connection).map_err(|fault| fault.at(&self.path))?;
        connection.cipher = check.map_or(FileCipher::Plain, FileCipher::Locked);
        Ok(())
    }

    /// What tells the key of an encrypted file; None where it is not encrypted.
    pub(crate) fn key_check(&self) -> Result<Option<KeyCheck>> {
        self.with(|connection| key_check(connection))
    }

    /// Forgets the key of an encrypted file.
    pub(crate) fn lock(&self) {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Ok(Some(check)) = key_check(&connection) {
            connection.cipher = FileCipher::Locked(check);
        }
    }

    /// Makes the key of an encrypted file known, if `find` finds the one that it was sealed with.
    pub(crate) fn unlock(&self, find: impl FnOnce(&KeyCheck) -> Option<DataKey>) {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let FileCipher::Locked(check) = &connection.cipher
            && let Some(key) = find(check)
        {
            connection.cipher = (&key).into();
        }
    }

    /// Makes an empty file for a model whose arrays have so many bytes, encrypted where there is a
    /// key. It is a draft, thrown away whole if something fails and synced when it is published:
    /// nothing in it needs a journal, or has to be on disk before that.
    pub(crate) fn create(path: &Path, arrays: usize, key: Option<&DataKey>) -> Result<Self> {
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let store = Self::connect(path, access, PATIENCE)?;
        store.with(|connection| {
            connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
            connection.execute_batch(&schema::stamp(arrays))?;
            key.map_or(Ok(()), |key| {
                meta::write(connection, ENCRYPTION, &key.check())
            })
        })?;
        if let Some(key) = key {
            store
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .cipher = key.into();
        }
        Ok(store)
    }

    fn connect(path: &Path, access: OpenFlags, patience: Duration) -> Result<Self> {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(paths::for_sqlite(path), flags)
            .map_err(|error| FileFault::from(error).at(path))?;
        let connection = ModelConnection {
            sqlite: connection,
            cipher: FileCipher::Plain,
        };
        let store = Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            memory: MEMORY.min(efface_io::machine_memory() / 4).into(),
        };
        store.with(|connection| {
            connection.busy_timeout(patience)?;
            Ok(connection.execute_batch(schema::PRAGMAS)?)
        })?;
        Ok(store)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of rows that may be in memory at once.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    pub(crate) fn set_memory(&self, bytes: u64) {
        self.memory.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of a block of rows, of which there are three in a pass over all rows: one being read,
    /// one on its way, one at work.
    pub(crate) fn block_bytes(&self) -> u64 {
        (self.memory() / 16).clamp(1 << 12, 1 << 23)
    }

    /// The size of the file; 0 where the system does not tell.
    pub(crate) fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |about| about.len())
    }

    pub(crate) fn patience(&self, patience: Duration) -> Result<()> {
        self.with(|connection| Ok(connection.busy_timeout(patience)?))
    }

    /// Runs `work` on the connection. `work` must not come back here.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&ModelConnection) -> std::result::Result<T, FileFault>,
    ) -> Result<T> {
        self.raw(work).map_err(|fault| fault.at(&self.path))
    }

    /// Runs `work` in a transaction of its own that reads: all that it sees is of one moment.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&ModelConnection) -> std::result::Result<T, FileFault>,
    ) -> Result<T> {
        let _transaction = self.begin(false)?;
        self.with(work)
    }

    pub(crate) fn raw<T>(
        &self,
        work: impl FnOnce(&ModelConnection) -> std::result::Result<T, FileFault>,
    ) -> std::result::Result<T, FileFault> {
        work(
            &self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Begins a transaction; one that writes holds the file from here on.
    pub(crate) fn begin(&self, write: bool) -> Result<StoreTransaction<'_>> {
        let start = if write { "BEGIN IMMEDIATE" } else { "BEGIN" };
        self.with(|connection| Ok(connection.execute_batch(start)?))?;
        Ok(StoreTransaction {
            store: self,
            over: false,
        })
    }
}

fn key_check(connection: &Connection) -> std::result::Result<Option<KeyCheck>, FileFault> {
    match meta::read(connection, ENCRYPTION)?.map(KeyCheck::try_from) {
        None => Ok(None),
        Some(Ok(check)) => Ok(Some(check)),
        Some(Err(_)) => damaged("what it says of its encryption is of another length"),
    }
}

/// A transaction that is rolled back unless it is committed.
pub(crate) struct StoreTransaction<'a> {
    store: &'a ModelStore,
    over: bool,
}

impl<'a> StoreTransaction<'a> {
    /// Makes all that was written in the transaction last. Nobody else can change the file until
    /// what is given is dropped.
    pub(crate) fn commit(mut self) -> Result<HeldFile<'a>> {
        self.store.with(|connection| {
            Ok(connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; COMMIT")?)
        })?;
        self.over = true;
        Ok(HeldFile { store: self.store })
    }
}

impl Drop for StoreTransaction<'_> {
    fn drop(&mut self) {
        if !self.over {
            // SQLite may have rolled back by itself already; then there is nothing left to do.
            let _ = self.store.with(|connection| {
                Ok(connection.execute_batch("PRAGMA locking_mode = NORMAL; ROLLBACK")?)
            });
        }
    }
}

/// A file whose change is committed and which nobody else can change yet.
pub(crate) struct HeldFile<'a> {
    store: &'a ModelStore,
}

impl HeldFile<'_> {
    /// Overwrites the pages of before the change that lie in the journal.
    pub(crate) fn clear_journal(&self) -> Result<()> {
        journal::clear(&self.store.path)
            .map_err(|cause| Error::io(journal::journal_path(&self.store.path), cause))
    }
}

impl Drop for HeldFile<'_> {
    fn drop(&mut self) {
        // SQLite lets go of the file at the end of the first statement after the mode is set.
        let release = "PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema";
        let _ = self
            .store
            .with(|connection| Ok(connection.execute_batch(release)?));
    }
}
