//! Who is who: rows are found by salted hashes of their id and their subject, and what was forgotten is remembered by
//! such a hash alone.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FileFault, damaged};
use crate::randomness::random_bytes;

/// The salted hash of an id.
pub(crate) type IdCommitment = [u8; 32];

/// As much of a hash as finds a row.
type ShortHash = [u8; 16];

/// The two halves of a row's entry: its id, and its subject (zeros for none).
const KEY: usize = 32;

/// A checksum over all entries that one more or one fewer changes in no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryTally([u64; KEY / 8]);

impl EntryTally {
    fn add(&mut self, row: u64, key: &[u8; KEY], sign: u64) {
        // An odd factor keeps every bit of the entry, and ties it to its row.
        let factor = row.wrapping_mul(2).wrapping_add(1).wrapping_mul(sign);
        for (sum, word) in self.0.iter_mut().zip(key.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(factor));
        }
    }
}

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

    fn subject(&self, subject: &str) -> IdCommitment {
        Sha256::new().chain_update(self.0).chain_update(b"subject\0").chain_update(subject).finalize().into()
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

/// A view on `keys` and `forgotten`.
pub(crate) struct RowDirectory<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) salt: FileSalt,
    /// Rows that must be there, and their checksum.
    pub(crate) rows: u64,
    pub(crate) tally: EntryTally,
    /// The checksum over the list of what must not come back.
    pub(crate) seal: EntryTally,
}

impl RowDirectory<'_> {
    /// The numbers of these rows; None for one that is not here.
    pub(crate) fn find(&self, ids: &[String]) -> Result<Vec<Option<u64>>, FileFault> {
        let wanted: Vec<ShortHash> = ids.iter().map(|id| short(&self.salt.id(id))).collect();
        let mut found: HashMap<ShortHash, Option<u64>> = wanted.iter().map(|key| (*key, None)).collect();
        self.scan(|row, id, _| {
            if let Some(slot) = found.get_mut(id) {
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
        self.scan(|row, id, subject| {
            if let Some(id) = ids.get(id) {
                found.ids.insert((*id).to_owned(), row);
            }
            if let Some(subject) = subjects.get(subject) {
                found.subjects.entry((*subject).to_owned()).or_default().push(row);
            }
        })?;
        Ok(found)
    }

    /// How many subjects have rows.
    pub(crate) fn subjects(&self) -> Result<usize, FileFault> {
        let mut seen = std::collections::HashSet::new();
        self.scan(|_, _, subject| {
            if *subject != [0; 16] {
                seen.insert(*subject);
            }
        })?;
        Ok(seen.len())
    }

    /// When the row was forgotten, if it was.
    pub(crate) fn forgotten(&self, id: &str) -> Result<Option<String>, FileFault> {
        let mut statement =
            self.connection.prepare_cached(r#"SELECT at FROM "forgotten" WHERE commitment = ?1"#)?;
        Ok(statement.query_row([self.salt.id(id)], |row| row.get(0)).optional()?)
    }

    fn scan(&self, mut see: impl FnMut(u64, &ShortHash, &ShortHash)) -> Result<(), FileFault> {
        let mut statement = self.connection.prepare_cached(r#"SELECT row, key FROM "keys""#)?;
        let mut entries = statement.query([])?;
        let mut alive = 0;
        let mut tally = EntryTally::default();
        while let Some(entry) = entries.next()? {
            let row: u64 = entry.get(0)?;
            let Ok(key) = <&[u8; KEY]>::try_from(entry.get_ref(1)?.as_blob().unwrap_or_default()) else {
                return damaged(format!("the entry of row number {row} has the wrong size"));
            };
            // An entry of zeros is that of a row which left.
            if *key != [0; KEY]
                && let [id, subject] = key.as_chunks().0
            {
                alive += 1;
                tally.add(row, key, 1);
                see(row, id, subject);
            }
        }
        if alive != self.rows {
            return damaged(format!("it lists {alive} rows where {} belong", self.rows));
        }
        if tally == self.tally { Ok(()) } else { damaged("its list of rows does not match its checksum") }
    }

    fn key(&self, id: &str, subject: Option<&str>) -> [u8; KEY] {
        let mut key = [0; KEY];
        key[..16].copy_from_slice(&short(&self.salt.id(id)));
        if let Some(subject) = subject {
            key[16..].copy_from_slice(&short(&self.salt.subject(subject)));
        }
        key
    }

    /// Enters a row; numbers must ascend.
    pub(crate) fn insert(&mut self, row: u64, id: &str, subject: Option<&str>) -> Result<(), FileFault> {
        let key = self.key(id, subject);
        let mut statement = self.connection.prepare_cached(r#"INSERT INTO "keys" VALUES (?1, ?2)"#)?;
        statement.execute(params![row, key])?;
        self.rows += 1;
        self.tally.add(row, &key, 1);
        Ok(())
    }

    /// Overwrites an entry in place.
    pub(crate) fn erase(&mut self, row: u64, id: &str, subject: Option<&str>) -> Result<(), FileFault> {
        let mut statement =
            self.connection.prepare_cached(r#"UPDATE "keys" SET key = zeroblob(32) WHERE row = ?1"#)?;
        if statement.execute([row])? != 1 {
            return damaged(format!("row number {row} is not on its list"));
        }
        self.rows -= 1;
        self.tally.add(row, &self.key(id, subject), u64::MAX);
        Ok(())
    }

    /// Remembers that a row was forgotten, and nothing else of it.
    pub(crate) fn remember(&mut self, id: &str, at: &str) -> Result<(), FileFault> {
        let commitment = self.salt.id(id);
        let mut statement = self.connection.prepare_cached(r#"INSERT INTO "forgotten" VALUES (?1, ?2)"#)?;
        statement.execute(params![commitment, at])?;
        self.seal.add(0, &commitment, 1);
        Ok(())
    }

    /// All that must not come back, and since when.
    pub(crate) fn suppressed(&self) -> Result<Vec<(IdCommitment, String)>, FileFault> {
        let mut statement = self.connection.prepare_cached(r#"SELECT commitment, at FROM "forgotten""#)?;
        let entries = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(entries.collect::<Result<_, _>>()?)
    }

    /// Whether a row that was forgotten is here.
    pub(crate) fn any_present(&self, entries: &[(IdCommitment, String)]) -> Result<bool, FileFault> {
        let gone: HashSet<ShortHash> = entries.iter().map(|(commitment, _)| short(commitment)).collect();
        let mut found = false;
        self.scan(|_, id, _| found |= gone.contains(id))?;
        Ok(found)
    }

    /// Whether the entries are those that were made.
    pub(crate) fn is_sealed(&self, entries: &[(IdCommitment, String)]) -> bool {
        let mut found = EntryTally::default();
        entries.iter().for_each(|(commitment, _)| found.add(0, commitment, 1));
        self.seal == found
    }

    /// How many rows were ever forgotten.
    pub(crate) fn ever_forgotten(&self) -> Result<usize, FileFault> {
        Ok(self.connection.query_row(r#"SELECT count(*) FROM "forgotten""#, [], |row| row.get(0))?)
    }
}
