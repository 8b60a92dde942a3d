//! Where the rows of a name are: an index over the salted hashes of ids and subjects, in buckets by
//! the first bits of a hash.
//!
//! An index of SQLite moves its entries when pages split, and leaves copies behind that nothing
//! overwrites. Here a bucket is a page of 61 slots that stays where it is, and more pages at the
//! end of the table where it overflows: an entry is written into a free slot and overwritten in
//! place. A page holds random bytes, which are drawn anew when it changes: no hash of before tells
//! whether a guess of what was erased is right.
//!
//! A bucket is believed after its hash has led to the root (`hash_tree.rs`): that shows where a
//! name is, and that it is not there.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use efface_receipt::Hash;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hash_tree::{HashTree, HashedTable, NOTHING, TreeTop};
use super::sorter::{Record, RecordSorter};
use super::{FileFault, damaged, schema};
use crate::randomness::random_bytes;

/// As much of a hash as finds a row.
pub(crate) type ShortHash = [u8; 16];

/// Slots of a page.
const SLOTS: u64 = 61;

/// Bytes of a slot: as much of a hash as finds its bucket, and the row's number plus one.
const SLOT: usize = 16;

/// Bytes in front of the slots: the random ones, and the number of the page that goes on.
const FRONT: usize = 24;

/// Bytes of a page. Four of them fill one of SQLite's.
const PAGE: usize = FRONT + SLOTS as usize * SLOT;

/// Entries of a bucket when buckets are made, at most: six in a thousand then have a second page.
const USUAL: u64 = 44;

/// Bits of the number of a bucket at most: more rows than there are disks for.
const MOST_BITS: u32 = 40;

/// The beginning of a hash, which says where it lies.
pub(super) type PlaceTag = u64;

/// A row under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) tag: PlaceTag,
    pub(super) row: u64,
}

impl Place {
    pub(super) fn new(name: &ShortHash, row: u64) -> Self {
        Self {
            tag: tag_of(name),
            row,
        }
    }

    pub(super) fn to_slot(self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        slot[..8].copy_from_slice(&self.tag.to_be_bytes());
        slot[8..].copy_from_slice(&(self.row + 1).to_be_bytes());
        slot
    }

    fn of_slot(slot: &[u8]) -> Option<Self> {
        let (tag, row) = slot.split_first_chunk()?;
        let row = u64::from_be_bytes(*row.first_chunk()?).checked_sub(1)?;
        Some(Self {
            tag: u64::from_be_bytes(*tag),
            row,
        })
    }
}

pub(super) fn tag_of(name: &ShortHash) -> PlaceTag {
    name.first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// What the manifest knows of the index.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlacesHead {
    /// How many bits number the buckets.
    bits: u32,
    /// Pages, those that go on from others included.
    pages: u64,
    /// Entries.
    entries: u64,
    tree: TreeTop,
}

impl PlacesHead {
    /// An index that is still to be built.
    pub(crate) fn empty() -> Self {
        Self {
            bits: 0,
            pages: 0,
            entries: 0,
            tree: TreeTop::empty(),
        }
    }
}

/// Bits for so many entries.
fn bits_for(entries: u64) -> u32 {
    entries
        .div_ceil(USUAL)
        .clamp(1, 1 << MOST_BITS)
        .next_power_of_two()
        .ilog2()
}

/// Two rows of a new file that have one id, with the lines that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RepeatedName {
    pub(crate) first: u64,
    pub(crate) second: u64,
    /// The number of the second row.
    pub(crate) row: u64,
}

/// A name of a new row for the sorter. `line` is None for a subject, which many rows may have.
pub(super) fn record(name: &ShortHash, row: u64, line: Option<u64>) -> Record {
    let mut record = [0; 32];
    record[..16].copy_from_slice(&Place::new(name, row).to_slot());
    record[16..24].copy_from_slice(&name[8..]);
    record[24..].copy_from_slice(&line.map_or(0, |line| line.saturating_add(1)).to_be_bytes());
    record
}

/// The index, inside a transaction that the caller holds.
pub(super) struct PlaceIndex {
    head: PlacesHead,
    tree: HashTree,
}

impl PlaceIndex {
    pub(super) fn new(head: PlacesHead) -> Self {
        Self {
            head,
            tree: HashTree::new(HashedTable::Places, head.tree),
        }
    }

    /// The rows under these names. Another name may begin like one of them, so that a row is to be
    /// looked at.
    pub(super) fn find(
        &mut self,
        connection: &Connection,
        tags: &BTreeSet<PlaceTag>,
    ) -> Result<Vec<Place>, FileFault> {
        let mut found = Vec::new();
        let mut tags = tags.iter().copied().peekable();
        while let Some(&first) = tags.peek() {
            let number = self.bucket_of(first);
            let bucket = self.checked(connection, number)?;
            let mut wanted = BTreeSet::new();
            while let Some(tag) = tags.next_if(|tag| self.bucket_of(*tag) == number) {
                wanted.insert(tag);
            }
            found.extend(bucket.places().filter(|place| wanted.contains(&place.tag)));
        }
        Ok(found)
    }

    /// Takes entries out and puts entries in.
    pub(super) fn change(
        &mut self,
        connection: &Connection,
        mut gone: Vec<Place>,
        mut come: Vec<Place>,
    ) -> Result<(), FileFault> {
        if self.head.pages == 0 && !come.is_empty() {
            self.append(connection, &[0; PAGE])?;
            self.tree.set(
                connection,
                0,
                hash_pages(std::iter::once([0; PAGE].as_slice())),
            )?;
        }
        gone.sort_unstable();
        come.sort_unstable();
        let mut gone = gone.into_iter().peekable();
        let mut come = come.into_iter().peekable();
        while let Some(first) = [gone.peek(), come.peek()].into_iter().flatten().min() {
            let number = self.bucket_of(first.tag);
            let mut bucket = self.checked(connection, number)?;
            let mut leaving = HashSet::new();
            while let Some(place) = gone.next_if(|place| self.bucket_of(place.tag) == number) {
                leaving.insert(place.to_slot());
            }
            self.head.entries = self.head.entries.saturating_sub(leaving.len() as u64);
            if !bucket.remove(leaving) {
                return damaged("its index of names lacks a row");
            }
            while let Some(place) = come.next_if(|place| self.bucket_of(place.tag) == number) {
                if !bucket.insert(place) {
                    let page = self.append(connection, &[0; PAGE])?;
                    bucket.extend(page);
                    bucket.insert(place);
                }
                self.head.entries = self.head.entries.saturating_add(1);
            }
            let hash = bucket.save(connection)?;
            self.tree.set(connection, number, hash)?;
        }
        Ok(())
    }

    /// Whether buckets have grown so full that the index is to be built anew.
    pub(super) fn is_crowded(&self) -> bool {
        bits_for(self.head.entries) > self.head.bits.saturating_add(1)
    }

    /// Makes the index of all names in order; tells of an id that two rows have.
    pub(super) fn build(
        connection: &Connection,
        names: RecordSorter,
    ) -> Result<(Self, Option<RepeatedName>), FileFault> {
        schema::empty_places(connection)?;
        let entries = names.len() as u64;
        let mut index = Self::new(PlacesHead {
            bits: bits_for(entries),
            entries,
            ..PlacesHead::empty()
        });
        let buckets = index.buckets();
        let mut repeated = RepeatedIds::default();
        let mut overflow = Vec::new();
        let mut names = names.sorted()?.peekable();
        for number in 0..buckets {
            let mut page = [0; PAGE];
            let mut used = 0;
            while let Some(record) = names.next_if(|record| {
                record.as_ref().map_or(true, |record| {
                    index.bucket_of(place_of(record).tag) == number
                })
            }) {
                let record = record?;
                repeated.see(&record);
                if used == SLOTS as usize {
                    overflow.push(place_of(&record));
                    continue;
                }
                page[FRONT + used * SLOT..][..SLOT].copy_from_slice(&record[..SLOT]);
                used += 1;
            }
            refresh(&mut page)?;
            index.append(connection, &page)?;
            index.tree.set(
                connection,
                number,
                hash_pages(std::iter::once(page.as_slice())),
            )?;
        }
        drop(names);
        // Pages that go on lie behind all others.
        index.head.entries -= overflow.len() as u64;
        index.change(connection, Vec::new(), overflow)?;
        Ok((index, repeated.found))
    }

    pub(super) fn finish(mut self, connection: &Connection) -> Result<PlacesHead, FileFault> {
        self.head.tree = self.tree.finish(connection)?;
        Ok(self.head)
    }

    /// Shows every entry, after all pages were compared with the root.
    pub(super) fn check_all(
        &mut self,
        connection: &Connection,
        mut see: impl FnMut(Place),
    ) -> Result<(), FileFault> {
        let buckets = if self.head.pages == 0 {
            0
        } else {
            self.buckets()
        };
        let (bits, mut pages, mut entries, mut number) = (self.head.bits, 0, 0, 0);
        let mut strays = false;
        self.tree.check_all(connection, || {
            if number == buckets {
                return Ok(None);
            }
            let bucket = Bucket::read(connection, number, buckets)?;
            pages += bucket.pages.len() as u64;
            for place in bucket.places() {
                strays |= bucket_of(place.tag, bits) != number;
                entries += 1;
                see(place);
            }
            number += 1;
            Ok(Some((number - 1, bucket.hash())))
        })?;
        let stored: u64 =
            connection.query_row(r#"SELECT count(*) FROM "places""#, [], |row| row.get(0))?;
        if strays || entries != self.head.entries || pages != self.head.pages || stored != pages {
            return damaged("its index of names does not hold what was signed");
        }
        Ok(())
    }

    fn buckets(&self) -> u64 {
        1 << self.head.bits.min(MOST_BITS)
    }

    fn bucket_of(&self, tag: PlaceTag) -> u64 {
        bucket_of(tag, self.head.bits)
    }

    /// A bucket, which leads to the root.
    fn checked(&mut self, connection: &Connection, number: u64) -> Result<Bucket, FileFault> {
        if self.head.pages == 0 {
            self.tree.check(connection, number, &NOTHING)?;
            return Ok(Bucket {
                pages: Vec::new(),
                full: 0,
            });
        }
        let bucket = Bucket::read(connection, number, self.buckets())?;
        self.tree.check(connection, number, &bucket.hash())?;
        Ok(bucket)
    }

    /// Adds a page at the end of the table, where nothing is moved by it; gives its number.
    fn append(&mut self, connection: &Connection, page: &[u8; PAGE]) -> Result<u64, FileFault> {
        let number = self.head.pages;
        let sql = r#"INSERT INTO "places" VALUES (?1, ?2)"#;
        connection
            .prepare_cached(sql)?
            .execute(params![number, page])?;
        self.head.pages = self.head.pages.saturating_add(1);
        Ok(number)
    }
}

fn bucket_of(tag: PlaceTag, bits: u32) -> u64 {
    tag.checked_shr(64 - bits.min(MOST_BITS)).unwrap_or(0)
}

fn place_of(record: &Record) -> Place {
    Place::of_slot(&record[..SLOT]).unwrap_or(Place { tag: 0, row: 0 })
}

/// Draws the random bytes of a page.
fn refresh(page: &mut [u8]) -> Result<(), FileFault> {
    let drawn = random_bytes::<16>().map_err(|error| FileFault::Damaged(error.to_string()))?;
    page[..16].copy_from_slice(drawn.as_slice());
    Ok(())
}

fn hash_pages<'a>(pages: impl Iterator<Item = &'a [u8]>) -> Hash {
    let mut digest = Sha256::new();
    pages.for_each(|page| digest.update(page));
    Hash(digest.finalize().into())
}

/// A bucket in memory: its pages with their numbers.
struct Bucket {
    pages: Vec<BucketPage>,
    /// Pages at the beginning that have no free slot.
    full: usize,
}

struct BucketPage {
    number: u64,
    bytes: Vec<u8>,
    changed: bool,
}

impl BucketPage {
    fn next(&self) -> Option<u64> {
        let next = self.bytes.get(16..FRONT)?.first_chunk()?;
        Some(u64::from_be_bytes(*next)).filter(|next| *next != 0)
    }
}

impl Bucket {
    fn read(connection: &Connection, number: u64, buckets: u64) -> Result<Self, FileFault> {
        let mut statement =
            connection.prepare_cached(r#"SELECT slots FROM "places" WHERE page = ?1"#)?;
        let mut pages: Vec<BucketPage> = Vec::new();
        let mut next = Some(number);
        while let Some(number) = next {
            let bytes: Option<Vec<u8>> =
                statement.query_row([number], |row| row.get(0)).optional()?;
            let Some(bytes) = bytes.filter(|bytes| bytes.len() == PAGE) else {
                return damaged("a page of its index of names is missing");
            };
            let page = BucketPage {
                number,
                bytes,
                changed: false,
            };
            next = page.next();
            // Pages that go on were added one after the other: there is no circle.
            if next.is_some_and(|next| next < buckets || next <= number) {
                return damaged("its index of names makes no sense");
            }
            pages.push(page);
        }
        Ok(Self { pages, full: 0 })
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.pages
            .iter()
            .flat_map(|page| page.bytes[FRONT..].chunks_exact(SLOT))
            .filter_map(Place::of_slot)
    }

    fn hash(&self) -> Hash {
        hash_pages(self.pages.iter().map(|page| page.bytes.as_slice()))
    }

    /// Overwrites entries; false where one of them is not there.
    fn remove(&mut self, mut leaving: HashSet<[u8; SLOT]>) -> bool {
        for page in &mut self.pages {
            for slot in page.bytes[FRONT..].as_chunks_mut::<SLOT>().0 {
                if leaving.remove(slot) {
                    *slot = [0; SLOT];
                    page.changed = true;
                }
            }
        }
        self.full = 0;
        leaving.is_empty()
    }

    /// Writes an entry into a free slot; false where there is none.
    fn insert(&mut self, place: Place) -> bool {
        while let Some(page) = self.pages.get_mut(self.full) {
            let mut slots = page.bytes[FRONT..].as_chunks_mut::<SLOT>().0.iter_mut();
            if let Some(free) = slots.find(|slot| **slot == [0; SLOT]) {
                *free = place.to_slot();
                page.changed = true;
                return true;
            }
            self.full += 1;
        }
        false
    }

    /// Goes on with an empty page that was added to the table.
    fn extend(&mut self, number: u64) {
        if let Some(last) = self.pages.last_mut() {
            last.bytes[16..FRONT].copy_from_slice(&number.to_be_bytes());
            last.changed = true;
        }
        self.pages.push(BucketPage {
            number,
            bytes: vec![0; PAGE],
            changed: true,
        });
    }

    /// Writes what changed, in place, under new random bytes; gives the hash.
    fn save(&mut self, connection: &Connection) -> Result<Hash, FileFault> {
        let mut statement =
            connection.prepare_cached(r#"UPDATE "places" SET slots = ?2 WHERE page = ?1"#)?;
        for page in self.pages.iter_mut().filter(|page| page.changed) {
            refresh(&mut page.bytes)?;
            statement.execute(params![page.number, page.bytes])?;
            page.changed = false;
        }
        Ok(self.hash())
    }
}

/// Looks for ids that occur twice among names in order.
#[derive(Default)]
struct RepeatedIds {
    /// The ids that begin like the last one.
    alike: Vec<Record>,
    found: Option<RepeatedName>,
}

impl RepeatedIds {
    fn see(&mut self, record: &Record) {
        let line = |record: &Record| {
            record[24..]
                .first_chunk()
                .map_or(0, |line| u64::from_be_bytes(*line))
        };
        if self
            .alike
            .first()
            .is_some_and(|first| first[..8] != record[..8])
        {
            self.alike.clear();
        }
        if line(record) == 0 {
            return;
        }
        // Names with one hash stand in the order of their rows.
        if let Some(first) = self
            .alike
            .iter()
            .find(|other| other[16..24] == record[16..24])
        {
            let row = place_of(record).row;
            let twice = RepeatedName {
                first: line(first) - 1,
                second: line(record) - 1,
                row,
            };
            if self.found.is_none_or(|found| row < found.row) {
                self.found = Some(twice);
            }
        }
        self.alike.push(*record);
    }
}

/// A sorter for the names of a file.
pub(super) fn sorter(connection: &Connection) -> RecordSorter {
    RecordSorter::new(Path::new(connection.path().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tables() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&schema::stamp(0)).unwrap();
        connection
    }

    fn name(number: u64) -> ShortHash {
        let mut name = [0; 16];
        name.copy_from_slice(&efface_receipt::sha256(&number.to_be_bytes()).0[..16]);
        name
    }

    /// Numbers that look random and are the same every time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    /// Every name of the model is found with exactly its rows, and names that are not there are not
    /// found.
    fn agree(
        connection: &Connection,
        head: PlacesHead,
        model: &BTreeMap<u64, BTreeSet<u64>>,
        names: u64,
    ) {
        let mut index = PlaceIndex::new(head);
        let tags = (0..names).map(|number| tag_of(&name(number))).collect();
        let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for place in index.find(connection, &tags).unwrap() {
            let number = (0..names)
                .find(|number| tag_of(&name(*number)) == place.tag)
                .unwrap();
            assert!(found.entry(number).or_default().insert(place.row));
        }
        let wanted: BTreeMap<u64, BTreeSet<u64>> = model
            .iter()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(n, rows)| (*n, rows.clone()))
            .collect();
        assert_eq!(found, wanted);
        let mut seen = 0;
        index.check_all(connection, |_| seen += 1).unwrap();
        assert_eq!(seen, model.values().map(BTreeSet::len).sum::<usize>());
    }

    #[test]
    fn an_index_that_changes_holds_what_a_plain_map_holds() {
        let connection = tables();
        let mut dice = Dice(5);
        let mut model: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let mut head = PlacesHead::empty();
        let mut next = 0;
        for step in 0..60 {
            let mut come = Vec::new();
            // Few names with many rows, and many with one.
            for _ in 0..dice.below(40) {
                let number = if dice.below(4) == 0 {
                    dice.below(3)
                } else {
                    3 + dice.below(297)
                };
                model.entry(number).or_default().insert(next);
                come.push(Place::new(&name(number), next));
                next += 1;
            }
            let mut gone = Vec::new();
            for (number, rows) in &mut model {
                let leaving: Vec<u64> = rows
                    .iter()
                    .copied()
                    .filter(|_| dice.below(9) == 0)
                    .collect();
                for row in leaving {
                    let place = Place::new(&name(*number), row);
                    if !come.contains(&place) {
                        rows.remove(&row);
                        gone.push(place);
                    }
                }
            }
            let mut index = PlaceIndex::new(head);
            index.change(&connection, gone, come).unwrap();
            if index.is_crowded() || step == 30 {
                let mut names = RecordSorter::new(Path::new(""));
                for (number, rows) in &model {
                    rows.iter()
                        .for_each(|row| names.push(record(&name(*number), *row, None)).unwrap());
                }
                (index, _) = PlaceIndex::build(&connection, names).unwrap();
            }
            head = index.finish(&connection).unwrap();
            agree(&connection, head, &model, 310);
        }
        assert!(head.bits > 1 && head.pages > 1 << head.bits, "{head:?}");
    }

    #[test]
    fn an_id_that_occurs_twice_is_told_with_its_lines() {
        let connection = tables();
        let mut names = RecordSorter::new(Path::new(""));
        for row in 0..500 {
            names
                .push(record(&name(row % 497), row, Some(row + 2)))
                .unwrap();
            names
                .push(record(&name(1000 + row % 5), row, None))
                .unwrap();
        }
        let (_, repeated) = PlaceIndex::build(&connection, names).unwrap();
        assert_eq!(
            repeated,
            Some(RepeatedName {
                first: 2,
                second: 499,
                row: 497
            })
        );
    }

    #[test]
    fn no_byte_of_it_can_be_altered() {
        let connection = tables();
        let mut names = RecordSorter::new(Path::new(""));
        (0..300).for_each(|row| names.push(record(&name(row), row, Some(row))).unwrap());
        let (index, _) = PlaceIndex::build(&connection, names).unwrap();
        let head = index.finish(&connection).unwrap();
        let tags: BTreeSet<PlaceTag> = (0..300).map(|number| tag_of(&name(number))).collect();
        for (table, column) in [("places", "slots"), ("branches", "hashes")] {
            for at in (1..1000).step_by(37) {
                connection.execute_batch("SAVEPOINT whole").unwrap();
                let sql = format!(
                    "UPDATE {table} SET {column} = CAST(substr({column}, 1, {at} - 1) || \
                     CASE WHEN substr({column}, {at}, 1) = x'07' THEN x'08' ELSE x'07' END || \
                     substr({column}, {at} + 1) AS BLOB)"
                );
                connection.execute(&sql, []).unwrap();
                assert!(
                    PlaceIndex::new(head).find(&connection, &tags).is_err(),
                    "{table} {at}"
                );
                assert!(
                    PlaceIndex::new(head)
                        .check_all(&connection, |_| ())
                        .is_err(),
                    "{table} {at}"
                );
                connection
                    .execute_batch("ROLLBACK TO whole; RELEASE whole")
                    .unwrap();
            }
        }
        PlaceIndex::new(head).find(&connection, &tags).unwrap();
    }
}
