//! Who is who: rows are found by salted hashes of their id and their subject. Beside these lies a
//! hash of the row's bytes, so that a row is the one that was entered.
//!
//! The list is under a root that is signed with every change: the entries of 64 row numbers are a
//! chunk, and the hashes of chunks are the pieces of a tree (`hash_tree.rs`). Which chunks to look
//! at for a name says an index beside it (`places.rs`). So looking for names, and a change, read
//! the chunks of the rows that they are about and no others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use efface_receipt::Hash;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hash_tree::{HashTree, HashedTable, NOTHING, TreeTop};
use super::payload::RowDigest;
use super::places::{self, Place, PlaceIndex, PlacesHead, RepeatedName, ShortHash};
use super::secret_sum::SecretSum;
use super::sorter::{Record, RecordSorter};
use super::{FileFault, damaged};
use crate::randomness::random_bytes;

/// The salted hash of an id.
pub(crate) type IdCommitment = [u8; 32];

/// The three parts of a row's entry: its id, its subject (zeros for none), and its bytes.
const ENTRY: usize = 48;

/// What the list of rows holds of a row.
pub(crate) type RowEntry = [u8; ENTRY];

/// Row numbers of one chunk.
pub(super) const CHUNK: u64 = 64;

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
        Sha256::new()
            .chain_update(self.0)
            .chain_update(id)
            .finalize()
            .into()
    }

    /// As much of the hash of an id as finds a row.
    pub(crate) fn short_id(&self, id: &str) -> ShortHash {
        short(&self.id(id))
    }

    fn subject(&self, subject: &str) -> IdCommitment {
        Sha256::new()
            .chain_update(self.0)
            .chain_update(b"subject\0")
            .chain_update(subject)
            .finalize()
            .into()
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
    short_of(commitment)
}

/// The first 16 bytes.
fn short_of(bytes: &[u8]) -> ShortHash {
    let mut short = [0; 16];
    short.copy_from_slice(&bytes[..16]);
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
    pub(crate) roots: ListRoots,
}

/// The roots over the list of rows and over the index of their names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListRoots {
    keys: TreeTop,
    places: PlacesHead,
}

impl ListRoots {
    /// Those of a list without rows.
    pub(crate) fn empty() -> Self {
        Self::without_index(TreeTop::empty())
    }

    /// Those of a list whose index is still to be built.
    pub(super) fn without_index(keys: TreeTop) -> Self {
        Self {
            keys,
            places: PlacesHead::empty(),
        }
    }
}

/// Chunks of the list that were compared with the root. The caller holds a transaction, in which
/// they stay what they are.
pub(crate) struct TrustedChunks {
    tree: HashTree,
    checked: HashSet<u64>,
}

impl TrustedChunks {
    pub(crate) fn new(roots: &ListRoots) -> Self {
        Self {
            tree: HashTree::new(HashedTable::Keys, roots.keys),
            checked: HashSet::new(),
        }
    }

    /// Compares the chunk of a row with the root, once.
    pub(crate) fn check(&mut self, connection: &Connection, row: u64) -> Result<(), FileFault> {
        let chunk = row / CHUNK;
        if !self.checked.contains(&chunk) {
            self.tree
                .check(connection, chunk, &hash_of(connection, chunk)?)?;
            self.checked.insert(chunk);
        }
        Ok(())
    }
}

/// A view on `keys` and its index.
pub(crate) struct RowDirectory<'a> {
    connection: &'a Connection,
    salt: FileSalt,
    head: DirectoryHead,
    chunks: TrustedChunks,
    /// Chunks whose entries changed since the root was made.
    touched: BTreeSet<u64>,
    /// What leaves the index, and what enters it.
    gone: Vec<Place>,
    come: Vec<Place>,
}

/// Names that are looked for, by what their entries begin with.
#[derive(Default)]
struct WantedNames<'n> {
    ids: HashMap<ShortHash, &'n str>,
    subjects: HashMap<ShortHash, &'n str>,
}

impl<'a> RowDirectory<'a> {
    pub(crate) fn new(connection: &'a Connection, salt: FileSalt, head: DirectoryHead) -> Self {
        let chunks = TrustedChunks::new(&head.roots);
        Self {
            connection,
            salt,
            head,
            chunks,
            touched: BTreeSet::new(),
            gone: Vec::new(),
            come: Vec::new(),
        }
    }

    /// The numbers of these rows; None for one that is not here.
    pub(crate) fn find(&self, ids: &[String]) -> Result<Vec<Option<u64>>, FileFault> {
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let found = self.look_up(&names, &[])?;
        Ok(ids.iter().map(|id| found.ids.get(id).copied()).collect())
    }

    /// The rows of many requests: for each id its number, for each subject all of its rows.
    pub(crate) fn look_up(&self, ids: &[&str], subjects: &[&str]) -> Result<FoundRows, FileFault> {
        let wanted = WantedNames {
            ids: ids.iter().map(|id| (self.salt.short_id(id), *id)).collect(),
            subjects: subjects
                .iter()
                .map(|name| (short(&self.salt.subject(name)), *name))
                .collect(),
        };
        let tags = wanted
            .ids
            .keys()
            .chain(wanted.subjects.keys())
            .map(places::tag_of)
            .collect();
        let mut index = PlaceIndex::new(self.head.roots.places);
        let mut rows: Vec<u64> = index
            .find(self.connection, &tags)?
            .into_iter()
            .map(|place| place.row)
            .collect();
        rows.sort_unstable();
        rows.dedup();
        let mut found = FoundRows::default();
        let mut chunks = TrustedChunks::new(&self.head.roots);
        for row in rows {
            chunks.check(self.connection, row)?;
            let Some(entry) = entry_of(self.connection, row)? else {
                return altered();
            };
            if let Some(id) = wanted.ids.get(&entry[..16]) {
                found.ids.insert((*id).to_owned(), row);
            }
            if let Some(subject) = wanted.subjects.get(&entry[16..32]) {
                found
                    .subjects
                    .entry((*subject).to_owned())
                    .or_default()
                    .push(row);
            }
        }
        Ok(found)
    }

    /// How many subjects have rows.
    pub(crate) fn subjects(&self) -> Result<usize, FileFault> {
        let mut sorter = places::sorter(self.connection);
        self.scan(|_, entry| {
            let mut subject = [0; 32];
            subject[..16].copy_from_slice(&entry[16..32]);
            if subject == [0; 32] {
                Ok(())
            } else {
                Ok(sorter.push(subject)?)
            }
        })?;
        let mut count = 0;
        let mut last = None;
        for subject in sorter.sorted()? {
            let subject = subject?;
            count += usize::from(last.replace(subject) != Some(subject));
        }
        Ok(count)
    }

    /// Shows the number and the entry of every row that is here. The list must be the one under the
    /// root.
    pub(crate) fn scan(
        &self,
        see: impl FnMut(u64, &[u8; ENTRY]) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        scan(self.connection, &self.head, see)
    }

    /// Enters a row; numbers must ascend.
    pub(crate) fn insert(
        &mut self,
        row: u64,
        id: &str,
        subject: Option<&str>,
        digest: &RowDigest,
    ) -> Result<(), FileFault> {
        let entry = self.salt.entry(id, subject, digest);
        self.touch(row)?;
        let mut statement = self
            .connection
            .prepare_cached(r#"INSERT INTO "keys" VALUES (?1, ?2)"#)?;
        statement.execute(params![row, entry])?;
        self.head.rows = self.head.rows.saturating_add(1);
        self.come.extend(places_of(row, &entry));
        Ok(())
    }

    /// Overwrites an entry in place.
    pub(crate) fn erase(&mut self, row: u64) -> Result<(), FileFault> {
        self.touch(row)?;
        if let Some(entry) = entry_of(self.connection, row)? {
            self.gone.extend(places_of(row, &entry));
        }
        self.replace(row, &[0; ENTRY])?;
        self.head.rows = self.head.rows.saturating_sub(1);
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
        if !self.touched.contains(&chunk) {
            self.chunks.check(self.connection, row)?;
            self.touched.insert(chunk);
        }
        Ok(())
    }

    /// Hashes what changed; gives the rows that are here and the new roots.
    pub(crate) fn finish(mut self) -> Result<DirectoryHead, FileFault> {
        for chunk in std::mem::take(&mut self.touched) {
            let hash = hash_of(self.connection, chunk)?;
            self.chunks.tree.set(self.connection, chunk, hash)?;
        }
        self.head.roots.keys = self.chunks.tree.finish(self.connection)?;
        let mut index = PlaceIndex::new(self.head.roots.places);
        index.change(self.connection, self.gone, self.come)?;
        if index.is_crowded() {
            let mut names = places::sorter(self.connection);
            each_entry(self.connection, 0, i64::MAX as u64, |row, entry| {
                for name in names_of(entry) {
                    names.push(places::record(&name, row, None))?;
                }
                Ok(())
            })?;
            (index, _) = PlaceIndex::build(self.connection, names)?;
        }
        self.head.roots.places = index.finish(self.connection)?;
        Ok(self.head)
    }

    /// Compares the branches over the list and the whole index with their roots, and the index with
    /// the list: both must hold the same names of the same rows. What is compared are sums of keyed
    /// hashes under a key that is drawn here, so that nobody could prepare for it and memory does
    /// not grow with the list.
    pub(crate) fn check_index(&self) -> Result<(), FileFault> {
        let mut listed = SecretSum::draw()?;
        let mut indexed = listed.again();
        self.scan(|row, entry| {
            places_of(row, entry).for_each(|place| listed.add(&place.to_slot()));
            Ok(())
        })?;
        PlaceIndex::new(self.head.roots.places)
            .check_all(self.connection, |place| indexed.add(&place.to_slot()))?;
        if listed != indexed {
            return damaged("its index of names is not that of its rows");
        }
        let mut after = 0;
        HashTree::new(HashedTable::Keys, self.head.roots.keys).check_all(self.connection, || {
            let sql =
                r#"SELECT row FROM "keys" WHERE row >= ?1 AND key <> zeroblob(48) ORDER BY row LIMIT 1"#;
            let mut statement = self.connection.prepare_cached(sql)?;
            let next: Option<u64> = statement.query_row([after], |row| row.get(0)).optional()?;
            let Some(chunk) = next.map(|row| row / CHUNK) else { return Ok(None) };
            after = (chunk + 1) * CHUNK;
            Ok(Some((chunk, hash_of(self.connection, chunk)?)))
        })
    }
}

/// What the index of a new file holds of a row; `line` says where it comes from.
pub(crate) fn index_records(row: u64, entry: &RowEntry, line: u64) -> impl Iterator<Item = Record> {
    // Many rows may have one subject, which is nothing to be told.
    let lines = [Some(line), None];
    names_of(entry)
        .zip(lines)
        .map(move |(name, line)| places::record(&name, row, line))
}

/// Builds the index of a new file; tells of an id that two rows have.
pub(crate) fn build_index(
    connection: &Connection,
    head: &mut DirectoryHead,
    names: RecordSorter,
) -> Result<Option<RepeatedName>, FileFault> {
    let (index, repeated) = PlaceIndex::build(connection, names)?;
    head.roots.places = index.finish(connection)?;
    Ok(repeated)
}

/// Shows every entry of the list, which must be the one under the root. The entries of a chunk are
/// in memory at a time.
pub(crate) fn scan(
    connection: &Connection,
    head: &DirectoryHead,
    mut see: impl FnMut(u64, &[u8; ENTRY]) -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    let mut tree = HashTree::new(HashedTable::Keys, head.roots.keys);
    let mut open: BTreeMap<u64, [u8; ENTRY]> = BTreeMap::new();
    let mut current = 0;
    let mut alive = 0;
    let mut close = |open: &mut BTreeMap<u64, [u8; ENTRY]>, chunk: u64| {
        tree.check(connection, chunk, &hash_entries(open))?;
        std::mem::take(open)
            .iter()
            .try_for_each(|(row, entry)| see(*row, entry))
    };
    each_entry(connection, 0, i64::MAX as u64, |row, entry| {
        alive += 1;
        if row / CHUNK != current {
            close(&mut open, current)?;
            current = row / CHUNK;
        }
        open.insert(row, *entry);
        Ok(())
    })?;
    close(&mut open, current)?;
    if alive == head.rows {
        Ok(())
    } else {
        damaged(format!("it lists {alive} rows where {} belong", head.rows))
    }
}

fn altered<T>() -> Result<T, FileFault> {
    damaged("its list of rows is not the one that was signed")
}

/// The names in an entry: that of the row, and that of its subject where it has one.
fn names_of(entry: &[u8; ENTRY]) -> impl Iterator<Item = ShortHash> {
    let part = |at: usize| {
        let mut name = [0; 16];
        name.copy_from_slice(&entry[at..at + 16]);
        name
    };
    [part(0), part(16)]
        .into_iter()
        .enumerate()
        .filter(|(at, name)| *at == 0 || *name != [0; 16])
        .map(|(_, name)| name)
}

fn places_of(row: u64, entry: &[u8; ENTRY]) -> impl Iterator<Item = Place> {
    names_of(entry).map(move |name| Place::new(&name, row))
}

/// The hash over the rows of a chunk; that of nothing where none of them is here.
fn hash_of(connection: &Connection, chunk: u64) -> Result<Hash, FileFault> {
    let mut entries = BTreeMap::new();
    each_entry(
        connection,
        chunk * CHUNK,
        (chunk + 1) * CHUNK - 1,
        |row, entry| {
            entries.insert(row, *entry);
            Ok(())
        },
    )?;
    Ok(hash_entries(&entries))
}

fn hash_entries(entries: &BTreeMap<u64, [u8; ENTRY]>) -> Hash {
    if entries.is_empty() {
        return NOTHING;
    }
    let mut digest = Sha256::new();
    for (row, entry) in entries {
        digest.update(row.to_be_bytes());
        digest.update(entry);
    }
    Hash(digest.finalize().into())
}

/// The entry of a row; None where it is not here.
fn entry_of(connection: &Connection, row: u64) -> Result<Option<[u8; ENTRY]>, FileFault> {
    let mut found = None;
    each_entry(connection, row, row, |_, entry| {
        found = Some(*entry);
        Ok(())
    })?;
    Ok(found)
}

/// The entries of the rows that are here, from one number to another, in order. An entry of zeros
/// is that of a row which left.
fn each_entry(
    connection: &Connection,
    first: u64,
    last: u64,
    mut see: impl FnMut(u64, &[u8; ENTRY]) -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    let sql = r#"SELECT row, key FROM "keys" WHERE row BETWEEN ?1 AND ?2 ORDER BY row"#;
    let mut statement = connection.prepare_cached(sql)?;
    let mut entries = statement.query([first, last])?;
    while let Some(found) = entries.next()? {
        let row: u64 = found.get(0)?;
        let Ok(entry) = <&[u8; ENTRY]>::try_from(found.get_ref(1)?.as_blob().unwrap_or_default())
        else {
            return damaged(format!("the entry of row number {row} has the wrong size"));
        };
        if *entry != [0; ENTRY] {
            see(row, entry)?;
        }
    }
    Ok(())
}
