//! Who is who: rows are found by salted hashes of their id and their subject. Beside these lies a hash of the row's bytes, so
//! that a row is the one that was entered.
//!
//! The list is under a root that is signed with every change. Looking for names reads all of it in any case, because what is
//! not on the list has to be known as well, and hashes it on the way: the entries of 256 row numbers are a chunk, and the root
//! is the hash over the hashes of all chunks. Those are kept, so that a change hashes the chunks that it touches and no other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use efface_receipt::Hash;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use super::payload::RowDigest;
use super::{FileFault, damaged};
use crate::randomness::random_bytes;

/// The salted hash of an id.
pub(crate) type IdCommitment = [u8; 32];

/// As much of a hash as finds a row.
pub(crate) type ShortHash = [u8; 16];

/// The three parts of a row's entry: its id, its subject (zeros for none), and its bytes.
const ENTRY: usize = 48;

/// What the list of rows holds of a row.
pub(crate) type RowEntry = [u8; ENTRY];

/// Row numbers of one chunk.
const CHUNK: u64 = 256;

/// Random bytes of one model, so that equal ids in two files do not look alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FileSalt([u8; 32]);

impl FileSalt {
    /// A salt for a new file.
    pub(crate) fn draw() -> crate::error::Result<Self> {
        Ok(Self(*random_bytes::<32>()?))
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0
    }

    pub(crate) fn id(&self, id: &str) -> IdCommitment {
        Sha256::new().chain_update(self.0).chain_update(id).finalize().into()
    }

    /// As much of the hash of an id as finds a row.
    pub(crate) fn short_id(&self, id: &str) -> ShortHash {
        short(&self.id(id))
    }

    fn subject(&self, subject: &str) -> IdCommitment {
        Sha256::new().chain_update(self.0).chain_update(b"subject\0").chain_update(subject).finalize().into()
    }

    /// The entry of a row.
    pub(crate) fn entry(&self, id: &str, subject: Option<&str>, digest: &RowDigest) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        entry[..16].copy_from_slice(&self.short_id(id));
        if let Some(subject) = subject {
            entry[16..32].copy_from_slice(&short(&self.subject(subject)));
        }
        entry[32..].copy_from_slice(digest);
        entry
    }
}

fn short(commitment: &IdCommitment) -> ShortHash {
    let mut short = [0; 16];
    short.copy_from_slice(&commitment[..16]);
    short
}

/// Rows by the names that were looked for.
#[derive(Default)]
pub(crate) struct FoundRows {
    pub(crate) ids: HashMap<String, u64>,
    pub(crate) subjects: HashMap<String, Vec<u64>>,
}

/// What the manifest knows of the list of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DirectoryHead {
    /// Rows that must be there.
    pub(crate) rows: u64,
    pub(crate) root: Hash,
}

/// The root over a list without rows.
pub(crate) fn empty_root() -> Hash {
    root_of(&BTreeMap::new())
}

/// A view on `keys` and `chunks`.
pub(crate) struct RowDirectory<'a> {
    connection: &'a Connection,
    salt: FileSalt,
    head: DirectoryHead,
    /// Chunks whose entries changed since the root was made.
    touched: BTreeSet<u64>,
}

impl<'a> RowDirectory<'a> {
    pub(crate) fn new(connection: &'a Connection, salt: FileSalt, head: DirectoryHead) -> Self {
        Self { connection, salt, head, touched: BTreeSet::new() }
    }

    /// The numbers of these rows; None for one that is not here.
    pub(crate) fn find(&self, ids: &[String]) -> Result<Vec<Option<u64>>, FileFault> {
        let wanted: Vec<ShortHash> = ids.iter().map(|id| short(&self.salt.id(id))).collect();
        let mut found: HashMap<ShortHash, Option<u64>> = wanted.iter().map(|key| (*key, None)).collect();
        self.scan(|row, entry| {
            if let Some(slot) = found.get_mut(&entry[..16]) {
                *slot = Some(row);
            }
        })?;
        Ok(wanted.iter().map(|key| found.get(key).copied().flatten()).collect())
    }

    /// The rows of many requests in one pass: for each id its number, for each subject all of its rows.
    pub(crate) fn look_up(&self, ids: &[&str], subjects: &[&str]) -> Result<FoundRows, FileFault> {
        let mut found = FoundRows::default();
        let ids: HashMap<ShortHash, &str> = ids.iter().map(|id| (short(&self.salt.id(id)), *id)).collect();
        let subjects: HashMap<ShortHash, &str> =
            subjects.iter().map(|subject| (short(&self.salt.subject(subject)), *subject)).collect();
        self.scan(|row, entry| {
            if let Some(id) = ids.get(&entry[..16]) {
                found.ids.insert((*id).to_owned(), row);
            }
            if let Some(subject) = subjects.get(&entry[16..32]) {
                found.subjects.entry((*subject).to_owned()).or_default().push(row);
            }
        })?;
        Ok(found)
    }

    /// How many subjects have rows.
    pub(crate) fn subjects(&self) -> Result<usize, FileFault> {
        let mut seen = std::collections::HashSet::new();
        self.scan(|_, entry| {
            let mut subject = [0; 16];
            subject.copy_from_slice(&entry[16..32]);
            if subject != [0; 16] {
                seen.insert(subject);
            }
        })?;
        Ok(seen.len())
    }

    /// Shows the number and the entry of every row that is here. The list must be the one under the root.
    pub(crate) fn scan(&self, mut see: impl FnMut(u64, &[u8; ENTRY])) -> Result<(), FileFault> {
        let mut hashes = BTreeMap::new();
        let mut current = None;
        let mut digest = Sha256::new();
        let mut alive = 0;
        each_entry(self.connection, 0, i64::MAX as u64, |row, entry| {
            alive += 1;
            let chunk = row / CHUNK;
            if let Some(before) = current.replace(chunk)
                && before != chunk
            {
                hashes.insert(before, Hash(digest.finalize_reset().into()));
            }
            hash_entry(&mut digest, row, entry);
            see(row, entry);
        })?;
        if let Some(last) = current {
            hashes.insert(last, Hash(digest.finalize().into()));
        }
        if alive != self.head.rows {
            return damaged(format!("it lists {alive} rows where {} belong", self.head.rows));
        }
        if root_of(&hashes) == self.head.root { Ok(()) } else { altered() }
    }

    /// Enters a row; numbers must ascend.
    pub(crate) fn insert(
        &mut self,
        row: u64,
        id: &str,
        subject: Option<&str>,
        digest: &RowDigest,
    ) -> Result<(), FileFault> {
        self.touch(row)?;
        let entry = self.salt.entry(id, subject, digest);
        let mut statement = self.connection.prepare_cached(r#"INSERT INTO "keys" VALUES (?1, ?2)"#)?;
        statement.execute(params![row, entry])?;
        self.head.rows += 1;
        Ok(())
    }

    /// What hashes the names on this list.
    pub(crate) fn salt(&self) -> FileSalt {
        self.salt
    }

    /// Enters rows, numbered on from `first`; numbers must ascend.
    pub(crate) fn append(&mut self, first: u64, entries: &[RowEntry]) -> Result<(), FileFault> {
        let connection = self.connection;
        let mut statement = connection.prepare_cached(r#"INSERT INTO "keys" VALUES (?1, ?2)"#)?;
        for (row, entry) in (first..).zip(entries) {
            if row == first || row.is_multiple_of(CHUNK) {
                self.touch(row)?;
            }
            statement.execute(params![row, entry])?;
        }
        self.head.rows += entries.len() as u64;
        Ok(())
    }

    /// Overwrites an entry in place.
    pub(crate) fn erase(&mut self, row: u64) -> Result<(), FileFault> {
        self.touch(row)?;
        self.replace(row, &[0; ENTRY])?;
        self.head.rows -= 1;
        Ok(())
    }

    /// Enters that a row has other bytes.
    pub(crate) fn renew(
        &mut self,
        row: u64,
        id: &str,
        subject: Option<&str>,
        digest: &RowDigest,
    ) -> Result<(), FileFault> {
        self.touch(row)?;
        self.replace(row, &self.salt.entry(id, subject, digest))
    }

    fn replace(&self, row: u64, entry: &[u8; ENTRY]) -> Result<(), FileFault> {
        let sql = r#"UPDATE "keys" SET key = ?2 WHERE row = ?1 AND key <> zeroblob(48)"#;
        let mut statement = self.connection.prepare_cached(sql)?;
        if statement.execute(params![row, entry])? == 1 {
            Ok(())
        } else {
            damaged(format!("row number {row} is not on its list"))
        }
    }

    /// Before the first entry of a chunk changes, the chunk must be the one under the root.
    fn touch(&mut self, row: u64) -> Result<(), FileFault> {
        let chunk = row / CHUNK;
        if self.touched.is_empty() && root_of(&stored_hashes(self.connection)?) != self.head.root {
            return altered();
        }
        if self.touched.insert(chunk) && self.hash_of(chunk)? != self.stored_hash(chunk)? {
            return altered();
        }
        Ok(())
    }

    /// Hashes what changed; gives the rows that are here and the new root.
    pub(crate) fn finish(mut self) -> Result<DirectoryHead, FileFault> {
        for chunk in std::mem::take(&mut self.touched) {
            match self.hash_of(chunk)? {
                Some(hash) => {
                    let sql = r#"INSERT INTO "chunks" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET digest = excluded.digest"#;
                    self.connection.prepare_cached(sql)?.execute(params![chunk, hash.as_bytes()])?;
                }
                None => {
                    let sql = r#"DELETE FROM "chunks" WHERE chunk = ?1"#;
                    self.connection.prepare_cached(sql)?.execute([chunk])?;
                }
            }
        }
        self.head.root = root_of(&stored_hashes(self.connection)?);
        Ok(self.head)
    }

    /// Compares the hashes of the chunks with the root.
    pub(crate) fn check_chunks(&self) -> Result<(), FileFault> {
        if root_of(&stored_hashes(self.connection)?) == self.head.root { Ok(()) } else { altered() }
    }

    /// The hash over the rows of a chunk; None where none of them is here.
    fn hash_of(&self, chunk: u64) -> Result<Option<Hash>, FileFault> {
        let mut digest = Sha256::new();
        let mut alive = 0;
        each_entry(self.connection, chunk * CHUNK, (chunk + 1) * CHUNK - 1, |row, entry| {
            alive += 1;
            hash_entry(&mut digest, row, entry);
        })?;
        Ok((alive > 0).then(|| Hash(digest.finalize().into())))
    }

    fn stored_hash(&self, chunk: u64) -> Result<Option<Hash>, FileFault> {
        use rusqlite::OptionalExtension;
        let mut statement =
            self.connection.prepare_cached(r#"SELECT digest FROM "chunks" WHERE chunk = ?1"#)?;
        Ok(statement.query_row([chunk], |row| Ok(Hash(row.get(0)?))).optional()?)
    }
}

fn altered<T>() -> Result<T, FileFault> {
    damaged("its list of rows is not the one that was signed")
}

fn hash_entry(digest: &mut Sha256, row: u64, entry: &[u8; ENTRY]) {
    digest.update(row.to_be_bytes());
    digest.update(entry);
}

fn root_of(hashes: &BTreeMap<u64, Hash>) -> Hash {
    let mut digest = Sha256::new().chain_update(b"efface row list v1\0");
    for (chunk, hash) in hashes {
        digest.update(chunk.to_be_bytes());
        digest.update(hash.as_bytes());
    }
    Hash(digest.finalize().into())
}

fn stored_hashes(connection: &Connection) -> Result<BTreeMap<u64, Hash>, FileFault> {
    let mut statement = connection.prepare_cached(r#"SELECT chunk, digest FROM "chunks""#)?;
    let all = statement.query_map([], |row| Ok((row.get(0)?, Hash(row.get(1)?))))?;
    Ok(all.collect::<Result<_, _>>()?)
}

/// The entries of the rows that are here, from one number to another, in order. An entry of zeros is that of a row which left.
fn each_entry(
    connection: &Connection,
    first: u64,
    last: u64,
    mut see: impl FnMut(u64, &[u8; ENTRY]),
) -> Result<(), FileFault> {
    let sql = r#"SELECT row, key FROM "keys" WHERE row BETWEEN ?1 AND ?2 ORDER BY row"#;
    let mut statement = connection.prepare_cached(sql)?;
    let mut entries = statement.query([first, last])?;
    while let Some(found) = entries.next()? {
        let row: u64 = found.get(0)?;
        let Ok(entry) = <&[u8; ENTRY]>::try_from(found.get_ref(1)?.as_blob().unwrap_or_default()) else {
            return damaged(format!("the entry of row number {row} has the wrong size"));
        };
        if *entry != [0; ENTRY] {
            see(row, entry);
        }
    }
    Ok(())
}
