//! Tables under a root that is signed with every change: the training set, the list of what must
//! not come back, and the answers to named requests. Each is a set of entries in the tree of
//! [`training_set`], of which only the top is stored.
//!
//! Whoever can write to the file can change a table, but not the root. So nothing is believed
//! before the bucket that it lies in, with the hashes beside the way up, leads to the root: this
//! shows that an entry is there, and that one is not. It reads a few dozen entries and one cell for
//! every doubling of the table.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::Peekable;
use std::path::Path;

use efface_receipt::training_set::{
    self, SetCells, SetFold, SetNode, bits_for, bucket, bucket_range,
};
use efface_receipt::{Hash, ReceiptFault, SetState};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::file::{FileFault, KeyLoad, damaged};
use crate::ordered_work;

/// The root over a table, and how many bits number the buckets of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeHead {
    pub(crate) set: SetState,
    pub(crate) bits: u32,
}

impl TreeHead {
    /// That of a table without entries.
    pub(crate) fn empty() -> Self {
        Self {
            set: SetNode::EMPTY.state(),
            bits: 0,
        }
    }
}

/// The tables that are kept this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealedTable {
    /// The commitments of the rows. They have no value beside them, and receipts name the root over
    /// them.
    Members,
    /// What must not come back.
    Forgotten,
    /// The answers to named requests.
    Requests,
}

impl SealedTable {
    fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Forgotten => "forgotten",
            Self::Requests => "requests",
        }
    }

    fn has_values(self) -> bool {
        self != Self::Members
    }

    /// The number of the tree's topmost cell, less one: all trees share a table of cells, and no
    /// tree has so many.
    fn first_cell(self) -> u64 {
        (self as u64) << 40
    }
}

/// One entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedEntry {
    pub(crate) commitment: Hash,
    pub(crate) value: Vec<u8>,
}

impl SealedEntry {
    pub(crate) fn new(commitment: Hash, value: Vec<u8>) -> Self {
        Self { commitment, value }
    }
}

/// Buckets whose keys are kept between a question and a change, at most: a few megabytes.
const MOST_KEPT: usize = 4096;

/// Cells of a new table that are in memory at most: a few megabytes.
const MOST_CELLS: usize = 1 << 16;

/// Buckets of a new table that one thread hashes at a time.
const BUCKETS_AT_ONCE: usize = 1 << 7;

/// The keys of some buckets of a new table.
struct KeyRun {
    first: u64,
    keys: Vec<Hash>,
}

impl KeyRun {
    /// Takes the keys of the buckets from `first` on.
    fn take(
        entries: &mut Peekable<impl Iterator<Item = Result<Hash, FileFault>>>,
        first: u64,
        bits: u32,
    ) -> Result<Self, FileFault> {
        let end = first + BUCKETS_AT_ONCE as u64;
        let belongs = |entry: &Result<Hash, FileFault>| {
            entry.as_ref().map_or(true, |key| bucket(key, bits) < end)
        };
        let mut keys = Vec::new();
        while let Some(key) = entries.next_if(belongs) {
            keys.push(key?);
        }
        Ok(Self { first, keys })
    }

    /// The nodes over the buckets.
    fn hashed(self, bits: u32) -> Result<(Self, Vec<SetNode>), ReceiptFault> {
        let last = (self.first + BUCKETS_AT_ONCE as u64).min(1 << bits);
        let mut rest = self.keys.as_slice();
        let nodes = (self.first..last).map(|number| {
            let (keys, later) =
                rest.split_at(rest.partition_point(|key| bucket(key, bits) <= number));
            rest = later;
            training_set::subtree(keys, bits)
        });
        let nodes = nodes.collect::<Result<_, _>>()?;
        Ok((self, nodes))
    }
}

/// What has led to the root, for the time of a transaction in which nobody else changes the table.
#[derive(Debug, Default)]
pub(crate) struct TrustedTree {
    /// Cells.
    nodes: HashMap<u64, SetNode>,
    /// The keys of whole buckets, in order.
    buckets: HashMap<u64, Vec<Hash>>,
}

/// The cells of a tree whose content is known in part: what is known is not read again.
struct KnownCells<'a> {
    tree: SealedTree<'a>,
    known: &'a mut HashMap<u64, SetNode>,
}

impl SetCells for KnownCells<'_> {
    type Error = FileFault;

    fn get(&self, cell: u64) -> Result<SetNode, FileFault> {
        match self.known.get(&cell) {
            Some(node) => Ok(*node),
            None => self.tree.get(cell),
        }
    }

    fn set(&mut self, cell: u64, node: SetNode) -> Result<(), FileFault> {
        self.known.insert(cell, node);
        self.tree.set(cell, node)
    }
}

fn entry_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<SealedEntry> {
    Ok(SealedEntry {
        commitment: Hash(row.get(0)?),
        value: row.get(1)?,
    })
}

/// A table and its tree.
#[derive(Clone, Copy)]
pub(crate) struct SealedTree<'a> {
    connection: &'a Connection,
    table: SealedTable,
}

impl SetCells for SealedTree<'_> {
    type Error = FileFault;

    fn get(&self, cell: u64) -> Result<SetNode, FileFault> {
        let mut statement = self
            .connection
            .prepare_cached(r#"SELECT node FROM "cells" WHERE cell = ?1"#)?;
        let cell = self.table.first_cell() + cell;
        let found: Option<[u8; 40]> = statement.query_row([cell], |row| row.get(0)).optional()?;
        Ok(found.map_or(SetNode::EMPTY, |bytes| SetNode::from_bytes(&bytes)))
    }

    fn set(&mut self, cell: u64, node: SetNode) -> Result<(), FileFault> {
        let sql =
            r#"INSERT INTO "cells" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET node = excluded.node"#;
        let cell = self.table.first_cell() + cell;
        self.connection
            .prepare_cached(sql)?
            .execute(params![cell, node.to_bytes()])?;
        Ok(())
    }
}

impl<'a> SealedTree<'a> {
    pub(crate) fn new(connection: &'a Connection, table: SealedTable) -> Self {
        Self { connection, table }
    }

    /// The values under commitments, for each of them; None where the root says that there is no
    /// entry. Buckets and the way up are read once, and what they were found to be is put down in
    /// `trusted`.
    pub(crate) fn find(
        &self,
        head: &TreeHead,
        commitments: &[Hash],
        trusted: &mut TrustedTree,
    ) -> Result<Vec<Option<Vec<u8>>>, FileFault> {
        let mut by_bucket: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, commitment) in commitments.iter().enumerate() {
            by_bucket
                .entry(bucket(commitment, head.bits))
                .or_default()
                .push(at);
        }
        let mut values: Vec<Option<Vec<u8>>> = commitments.iter().map(|_| None).collect();
        for (bucket, asked) in by_bucket {
            let entries = self.checked_bucket(head, bucket, trusted)?;
            for at in asked {
                let found =
                    entries.binary_search_by_key(&commitments[at], |entry| entry.commitment);
                values[at] = found.ok().map(|found| entries[found].value.clone());
            }
        }
        Ok(values)
    }

    /// Takes entries out and puts entries in. What is read for that must lead to the root as it
    /// was.
    pub(crate) fn change(
        &self,
        head: &mut TreeHead,
        gone: &[Hash],
        come: &[SealedEntry],
    ) -> Result<(), FileFault> {
        self.change_known(head, gone, come, TrustedTree::default())
    }

    /// The same with what is known of the table from questions in this transaction.
    pub(crate) fn change_known(
        &self,
        head: &mut TreeHead,
        gone: &[Hash],
        come: &[SealedEntry],
        mut trusted: TrustedTree,
    ) -> Result<(), FileFault> {
        let count = (head.set.count + come.len() as u64).saturating_sub(gone.len() as u64);
        // Four times too many or too few entries a bucket: number the buckets anew.
        if bits_for(count).abs_diff(head.bits) > 1 {
            self.check_entries(head, |_| Ok(()))?;
            self.write(gone, come)?;
            self.build(head, count)?;
        } else {
            let buckets = self.changed_buckets(head, gone, come, &mut trusted)?;
            self.write(gone, come)?;
            if !buckets.is_empty() {
                let mut cells = KnownCells {
                    tree: *self,
                    known: &mut trusted.nodes,
                };
                head.set = training_set::update(&mut cells, head.bits, &buckets)?;
            }
        }
        if head.set.count == count {
            Ok(())
        } else {
            self.other_size()
        }
    }

    /// Puts all entries of a table of the new file at this path in, so many that come in order.
    /// There must be no transaction.
    pub(crate) fn load(
        &self,
        path: &Path,
        head: &mut TreeHead,
        count: u64,
        entries: impl Iterator<Item = Result<Hash, FileFault>> + Send,
    ) -> Result<(), FileFault> {
        head.bits = bits_for(count);
        let bits = head.bits;
        let mut keys = KeyLoad::begin(self.connection, path, self.table.name())?;
        let mut fold = SetFold::new(bits)?;
        let mut cells: Vec<(u64, SetNode)> = Vec::new();
        let mut entries = entries.peekable();
        let mut firsts = (0..1_u64 << bits).step_by(BUCKETS_AT_ONCE);
        // One thread reads, some hash, and this one writes.
        ordered_work::in_order(
            ordered_work::usual_threads(),
            || {
                firsts
                    .next()
                    .map(|first| KeyRun::take(&mut entries, first, bits))
            },
            |run| run.map(|run| run.hashed(bits)),
            |hashed| {
                let (run, nodes) = hashed??;
                run.keys.iter().try_for_each(|key| keys.push(&key.0))?;
                for node in nodes {
                    fold.push(node, |cell, node| {
                        cells.extend((node != SetNode::EMPTY).then_some((cell, node)));
                        Ok::<(), FileFault>(())
                    })?;
                }
                if cells.len() < MOST_CELLS {
                    Ok(())
                } else {
                    keys.aside(|| self.set_cells(&mut cells))
                }
            },
        )?;
        keys.finish()?;
        self.set_cells(&mut cells)?;
        head.set = fold.finish()?;
        if head.set.count == count {
            Ok(())
        } else {
            self.other_size()
        }
    }

    /// Writes cells in a transaction of its own.
    fn set_cells(mut self, cells: &mut Vec<(u64, SetNode)>) -> Result<(), FileFault> {
        let transaction = self.connection.unchecked_transaction()?;
        cells
            .drain(..)
            .try_for_each(|(cell, node)| self.set(cell, node))?;
        Ok(transaction.commit()?)
    }

    /// Makes all cells anew for so many entries.
    fn build(&self, head: &mut TreeHead, count: u64) -> Result<(), FileFault> {
        self.remove_cells()?;
        head.bits = bits_for(count);
        let mut statement = self.connection.prepare(&self.select())?;
        let all = params![Hash([0; 32]).as_bytes(), Hash([0xff; 32]).as_bytes()];
        let entries = statement.query_map(all, entry_of)?;
        let mut tree = *self;
        head.set = training_set::build(
            &mut tree,
            head.bits,
            entries.map(|entry| Ok(self.leaf(&entry?))),
        )?;
        Ok(())
    }

    /// The buckets that a change touches as they are after it. They must lead to the root as they
    /// are before.
    fn changed_buckets(
        &self,
        head: &TreeHead,
        gone: &[Hash],
        come: &[SealedEntry],
        trusted: &mut TrustedTree,
    ) -> Result<Vec<(u64, SetNode)>, FileFault> {
        let mut touched: BTreeMap<u64, (HashSet<&Hash>, Vec<&SealedEntry>)> = BTreeMap::new();
        for key in gone {
            touched
                .entry(bucket(key, head.bits))
                .or_default()
                .0
                .insert(key);
        }
        for entry in come {
            touched
                .entry(bucket(&entry.commitment, head.bits))
                .or_default()
                .1
                .push(entry);
        }
        let mut buckets = Vec::with_capacity(touched.len());
        for (bucket, (gone, come)) in touched {
            // Keys begin like the commitments that they are of, and only tables whose keys are
            // commitments lose entries here.
            let known = trusted
                .buckets
                .get(&bucket)
                .filter(|_| gone.is_empty())
                .cloned();
            let mut keys = match known {
                Some(keys) => keys,
                None => {
                    let mut entries = self.checked_bucket(head, bucket, trusted)?;
                    entries.retain(|entry| !gone.contains(&entry.commitment));
                    entries.iter().map(|entry| self.leaf(entry)).collect()
                }
            };
            keys.extend(come.into_iter().map(|entry| self.leaf(entry)));
            keys.sort_unstable();
            buckets.push((bucket, training_set::subtree(&keys, head.bits)?));
        }
        Ok(buckets)
    }

    /// Compares the whole table with its root, and shows every entry on the way: what is made of
    /// them is to be believed when this has ended well. The entries of one bucket are in memory at
    /// a time.
    fn check_entries(
        &self,
        head: &TreeHead,
        see: impl FnMut(SealedEntry) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        self.fold(head, see, |_, _| Ok(()))
    }

    fn fold(
        &self,
        head: &TreeHead,
        mut see: impl FnMut(SealedEntry) -> Result<(), FileFault>,
        see_cell: impl FnMut(u64, SetNode) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        // Every change leaves it so. More buckets than entries would take long to go through.
        if bits_for(head.set.count).abs_diff(head.bits) > 1 {
            return self.altered();
        }
        let mut statement = self.connection.prepare(&self.select())?;
        let all = params![Hash([0; 32]).as_bytes(), Hash([0xff; 32]).as_bytes()];
        let entries = statement.query_map(all, entry_of)?;
        let leaves = entries.map(|entry| {
            let entry = entry?;
            let leaf = self.leaf(&entry);
            see(entry)?;
            Ok(leaf)
        });
        let found = training_set::fold(head.bits, leaves, see_cell)?;
        if found == head.set {
            Ok(())
        } else {
            self.altered()
        }
    }

    /// Compares every cell with the entries below it, and shows the entries.
    pub(crate) fn check(
        &self,
        head: &TreeHead,
        see: impl FnMut(SealedEntry) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        self.fold(head, see, |cell, node| {
            if self.get(cell)? == node {
                Ok(())
            } else {
                self.altered()
            }
        })?;
        // Below the buckets there are no cells.
        let first = self.table.first_cell();
        let sql = r#"SELECT count(*) FROM "cells" WHERE cell BETWEEN ?1 AND ?2"#;
        let range = [first + (2 << head.bits.min(32)), first + (1 << 40) - 1];
        let others: u64 = self.connection.query_row(sql, range, |row| row.get(0))?;
        let zeroth: u64 = self
            .connection
            .query_row(sql, [first, first], |row| row.get(0))?;
        if others + zeroth == 0 {
            Ok(())
        } else {
            self.altered()
        }
    }

    /// The entries of a bucket, which must lead to the root, or to a node that does.
    fn checked_bucket(
        &self,
        head: &TreeHead,
        bucket: u64,
        trusted: &mut TrustedTree,
    ) -> Result<Vec<SealedEntry>, FileFault> {
        let (low, high) = bucket_range(bucket, head.bits);
        let entries = self.read(&low, &high)?;
        let keys: Vec<Hash> = entries.iter().map(|entry| self.leaf(entry)).collect();
        let mut node = training_set::subtree(&keys, head.bits)?;
        let mut cell = (1_u64 << head.bits.min(32)) + bucket;
        let mut passed = Vec::new();
        loop {
            match trusted.nodes.get(&cell) {
                Some(known) if *known == node => break,
                Some(_) => return self.altered(),
                None => {}
            }
            passed.push((cell, node));
            if cell == 1 {
                if node.state() != head.set {
                    return self.altered();
                }
                break;
            }
            let beside = self.get(cell ^ 1)?;
            passed.push((cell ^ 1, beside));
            node = if cell.is_multiple_of(2) {
                SetNode::join(&node, &beside)
            } else {
                SetNode::join(&beside, &node)
            };
            cell /= 2;
        }
        trusted.nodes.extend(passed);
        if trusted.buckets.len() < MOST_KEPT {
            trusted.buckets.insert(bucket, keys);
        }
        Ok(entries)
    }

    fn altered<T>(&self) -> Result<T, FileFault> {
        damaged(format!(
            "its table `{}` is not the one that was signed",
            self.table.name()
        ))
    }

    fn other_size<T>(&self) -> Result<T, FileFault> {
        damaged(format!(
            "its table `{}` has another size",
            self.table.name()
        ))
    }

    /// The statement that reads entries from one commitment to another, in order.
    fn select(&self) -> String {
        let table = self.table.name();
        let value = if self.table.has_values() {
            "value"
        } else {
            "x''"
        };
        format!(
            r#"SELECT commitment, {value} FROM "{table}" WHERE commitment BETWEEN ?1 AND ?2 ORDER BY commitment"#
        )
    }

    fn read(&self, low: &Hash, high: &Hash) -> Result<Vec<SealedEntry>, FileFault> {
        let mut statement = self.connection.prepare_cached(&self.select())?;
        let found = statement.query_map(params![low.as_bytes(), high.as_bytes()], entry_of)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Whether an entry is there, in a table that was compared with its root before.
    pub(crate) fn holds(&self, commitment: &Hash) -> Result<bool, FileFault> {
        let table = self.table.name();
        let sql = format!(r#"SELECT EXISTS (SELECT 1 FROM "{table}" WHERE commitment = ?1)"#);
        Ok(self
            .connection
            .prepare_cached(&sql)?
            .query_row([commitment.as_bytes()], |row| row.get(0))?)
    }

    fn write(&self, gone: &[Hash], come: &[SealedEntry]) -> Result<(), FileFault> {
        let table = self.table.name();
        let sql = format!(r#"DELETE FROM "{table}" WHERE commitment = ?1"#);
        let mut remove = self.connection.prepare_cached(&sql)?;
        for commitment in gone {
            if remove.execute([commitment.as_bytes()])? != 1 {
                return damaged(format!("its table `{table}` lacks an entry"));
            }
        }
        // In order, so that a table filled at once is filled at its end.
        let mut come: Vec<&SealedEntry> = come.iter().collect();
        come.sort_by_key(|entry| entry.commitment);
        if self.table.has_values() {
            let sql = format!(r#"INSERT INTO "{table}" VALUES (?1, ?2)"#);
            let mut insert = self.connection.prepare_cached(&sql)?;
            for entry in come {
                insert.execute(params![entry.commitment.as_bytes(), entry.value])?;
            }
        } else {
            let sql = format!(r#"INSERT INTO "{table}" VALUES (?1)"#);
            let mut insert = self.connection.prepare_cached(&sql)?;
            for entry in come {
                insert.execute([entry.commitment.as_bytes()])?;
            }
        }
        Ok(())
    }

    fn remove_cells(&self) -> Result<(), FileFault> {
        let first = self.table.first_cell();
        let sql = r#"DELETE FROM "cells" WHERE cell BETWEEN ?1 AND ?2"#;
        self.connection
            .execute(sql, [first, first + (1 << 40) - 1])?;
        Ok(())
    }

    /// The key of an entry in the tree. With a value it is half the commitment, which fixes the
    /// place, and half a hash over both: another value under the same commitment is another key.
    fn leaf(&self, entry: &SealedEntry) -> Hash {
        if !self.table.has_values() {
            return entry.commitment;
        }
        let mut key = entry.commitment;
        let digest = Sha256::new()
            .chain_update(entry.commitment.as_bytes())
            .chain_update(&entry.value)
            .finalize();
        key.0[16..].copy_from_slice(&digest[..16]);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> SealedEntry {
        let commitment = efface_receipt::sha256(&number.to_be_bytes());
        SealedEntry::new(commitment, number.to_le_bytes().to_vec())
    }

    fn find(
        tree: &SealedTree<'_>,
        head: &TreeHead,
        wanted: &Hash,
    ) -> Result<Option<Vec<u8>>, FileFault> {
        Ok(tree
            .find(head, &[*wanted], &mut TrustedTree::default())?
            .pop()
            .flatten())
    }

    /// A table of so many entries, of which every third left again.
    fn filled(connection: &Connection, table: SealedTable, count: u32) -> TreeHead {
        let tree = SealedTree::new(connection, table);
        let mut head = TreeHead::empty();
        for first in (0..count).step_by(7) {
            let come: Vec<SealedEntry> = (first..count.min(first + 7)).map(entry).collect();
            tree.change(&mut head, &[], &come).unwrap();
        }
        for number in (0..count).step_by(3) {
            tree.change(&mut head, &[entry(number).commitment], &[])
                .unwrap();
        }
        head
    }

    fn tables() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let sql = r#"CREATE TABLE "cells"(cell INTEGER PRIMARY KEY, node BLOB NOT NULL);
            CREATE TABLE "forgotten"(commitment BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE "requests"(commitment BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"#;
        connection.execute_batch(sql).unwrap();
        connection
    }

    #[test]
    fn what_is_there_and_what_is_not_leads_to_the_root() {
        let connection = tables();
        let other = filled(&connection, SealedTable::Requests, 40);
        let head = filled(&connection, SealedTable::Forgotten, 400);
        assert!(head.bits > 1, "{head:?}");
        let tree = SealedTree::new(&connection, SealedTable::Forgotten);
        for number in 0..420 {
            let stays = number < 400 && number % 3 != 0;
            let found = find(&tree, &head, &entry(number).commitment).unwrap();
            assert_eq!(found, stays.then(|| entry(number).value), "{number}");
        }
        let mut seen = 0;
        let count = |_| {
            seen += 1;
            Ok(())
        };
        tree.check(&head, count).unwrap();
        assert_eq!(seen, head.set.count);
        SealedTree::new(&connection, SealedTable::Requests)
            .check(&other, |_| Ok(()))
            .unwrap();
    }

    #[test]
    fn an_altered_table_is_neither_read_nor_changed() {
        for alter in [
            "DELETE FROM forgotten WHERE commitment = ?1",
            "UPDATE forgotten SET value = x'00' WHERE commitment = ?1",
            "UPDATE forgotten SET commitment = zeroblob(32) WHERE commitment = ?1",
            "UPDATE cells SET node = zeroblob(40) WHERE cell > 1 << 40 AND ?1 IS NOT NULL",
        ] {
            let connection = tables();
            let head = filled(&connection, SealedTable::Forgotten, 400);
            let tree = SealedTree::new(&connection, SealedTable::Forgotten);
            let wanted = entry(100).commitment;
            connection.execute(alter, [wanted.as_bytes()]).unwrap();
            assert!(find(&tree, &head, &wanted).is_err(), "{alter}");
            assert!(tree.check(&head, |_| Ok(())).is_err(), "{alter}");
            let mut after = head;
            assert!(
                tree.change(&mut after, &[], &[SealedEntry::new(wanted, Vec::new())])
                    .is_err()
            );
        }
        // A bit of one cell, on the way of some entries and not of others.
        let connection = tables();
        let head = filled(&connection, SealedTable::Forgotten, 400);
        let tree = SealedTree::new(&connection, SealedTable::Forgotten);
        let cell = (1_u64 << 40) + (1 << head.bits);
        let sql = "UPDATE cells SET node = zeroblob(40) WHERE cell = ?1";
        assert_eq!(connection.execute(sql, [cell]).unwrap(), 1);
        assert!(tree.check(&head, |_| Ok(())).is_err());
        let wrong = (0..400)
            .filter(|at| find(&tree, &head, &entry(*at).commitment).is_err())
            .count();
        assert!((1..400).contains(&wrong), "{wrong}");
    }
}
