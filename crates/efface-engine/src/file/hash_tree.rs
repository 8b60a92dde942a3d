//! A tree of hashes over numbered pieces of a table, on disk. What a change reads of the table is
//! compared with the root in the signed manifest on the way through a few branches, and what it
//! writes changes these and no others: both take a number of steps that grows with the logarithm of
//! the table.
//!
//! A branch holds the hashes of 32 pieces, or of 32 branches of the level below; zeros stand for
//! what is not there. A branch is written in place. The hash of a branch is that of its bytes, and
//! zeros for zeros; the root is that of the height and the top.

use std::collections::{BTreeMap, HashSet};

use efface_receipt::Hash;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FileFault, damaged};

/// Hashes in a branch.
const FAN_OUT: u64 = 32;

/// Bytes of a branch.
const BRANCH: usize = FAN_OUT as usize * 32;

/// Branches that are changed in memory at most, before they are written.
const PENDING: usize = 1 << 14;

/// What is not there.
pub(super) const NOTHING: Hash = Hash([0; 32]);

/// The trees of a file. They share a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashedTable {
    /// The list of rows.
    Keys,
    /// Where the rows of a name are.
    Places,
}

impl HashedTable {
    /// The numbers that its branches may have.
    pub(super) fn first_branch(self) -> u64 {
        (self as u64) << 56
    }

    pub(super) fn last_branch(self) -> u64 {
        self.first_branch() + (1 << 56) - 1
    }

    fn described(self) -> &'static str {
        match self {
            Self::Keys => "its list of rows is not the one that was signed",
            Self::Places => "its index of names is not the one that was signed",
        }
    }
}

/// What the manifest knows of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeTop {
    /// Levels of branches.
    height: u32,
    root: Hash,
}

impl TreeTop {
    /// A tree over nothing.
    pub(crate) fn empty() -> Self {
        Self::new(0, &NOTHING)
    }

    fn new(height: u32, top: &Hash) -> Self {
        let digest = Sha256::new()
            .chain_update(b"efface hash tree v1\0")
            .chain_update(height.to_be_bytes());
        Self {
            height,
            root: Hash(digest.chain_update(top.as_bytes()).finalize().into()),
        }
    }

    /// Pieces that a tree of this height can hold; None where it is higher than any tree.
    fn room(self) -> Option<u64> {
        FAN_OUT.checked_pow(self.height)
    }
}

/// A tree that is read, and perhaps changed. The caller holds a transaction.
#[derive(Debug)]
pub(crate) struct HashTree {
    table: HashedTable,
    top: TreeTop,
    /// Branches that lead to the root.
    trusted: HashSet<u64>,
    /// New hashes of pieces, which are not in their branches yet.
    pending: BTreeMap<u64, Hash>,
}

impl HashTree {
    pub(crate) fn new(table: HashedTable, top: TreeTop) -> Self {
        Self {
            table,
            top,
            trusted: HashSet::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Refuses a piece that is not the one under the root; its hash is that of zeros where there
    /// must be none.
    pub(crate) fn check(
        &mut self,
        connection: &Connection,
        piece: u64,
        hash: &Hash,
    ) -> Result<(), FileFault> {
        if self.stored(connection, piece)? == *hash {
            Ok(())
        } else {
            self.altered()
        }
    }

    /// The hash of a piece, which leads to the root.
    fn stored(&mut self, connection: &Connection, piece: u64) -> Result<Hash, FileFault> {
        if let Some(hash) = self.pending.get(&piece) {
            return Ok(*hash);
        }
        let Some(room) = self.top.room() else {
            return self.altered();
        };
        if piece >= room {
            return Ok(NOTHING);
        }
        if self.top.height == 0 {
            // Nothing, or a tree whose root says otherwise.
            return if self.top == TreeTop::empty() {
                Ok(NOTHING)
            } else {
                self.altered()
            };
        }
        let branch = self.trusted_branch(connection, 0, piece / FAN_OUT)?;
        Ok(child(&branch, piece % FAN_OUT))
    }

    /// A branch, after it was followed up to the root or to one that was.
    fn trusted_branch(
        &mut self,
        connection: &Connection,
        level: u32,
        index: u64,
    ) -> Result<[u8; BRANCH], FileFault> {
        let wanted = self.read(connection, level, index)?;
        let mut hash = hash_of(&wanted);
        let (mut level, mut index) = (level, index);
        let mut passed = Vec::new();
        while !self.trusted.contains(&self.key(level, index)) {
            passed.push(self.key(level, index));
            if level + 1 == self.top.height {
                if TreeTop::new(self.top.height, &hash) != self.top {
                    return self.altered();
                }
                break;
            }
            let above = self.read(connection, level + 1, index / FAN_OUT)?;
            if child(&above, index % FAN_OUT) != hash {
                return self.altered();
            }
            hash = hash_of(&above);
            level += 1;
            index /= FAN_OUT;
        }
        self.trusted.extend(passed);
        Ok(wanted)
    }

    /// Gives a piece another hash. It must have been checked before.
    pub(crate) fn set(
        &mut self,
        connection: &Connection,
        piece: u64,
        hash: Hash,
    ) -> Result<(), FileFault> {
        self.pending.insert(piece, hash);
        if self.pending.len() >= PENDING {
            self.write(connection)
        } else {
            Ok(())
        }
    }

    /// Writes what changed; gives the tree as it is then.
    pub(crate) fn finish(&mut self, connection: &Connection) -> Result<TreeTop, FileFault> {
        self.write(connection)?;
        Ok(self.top)
    }

    fn write(&mut self, connection: &Connection) -> Result<(), FileFault> {
        let Some((&last, _)) = self.pending.last_key_value() else {
            return Ok(());
        };
        self.grow(connection, last)?;
        let mut changed = std::mem::take(&mut self.pending);
        for level in 0..self.top.height {
            let mut above: BTreeMap<u64, Hash> = BTreeMap::new();
            let mut changes = changed.into_iter().peekable();
            while let Some(&(first, _)) = changes.peek() {
                let index = first / FAN_OUT;
                let mut branch = self.trusted_branch(connection, level, index)?;
                while let Some((at, hash)) = changes.next_if(|(at, _)| at / FAN_OUT == index) {
                    let start = (at % FAN_OUT) as usize * 32;
                    branch[start..start + 32].copy_from_slice(hash.as_bytes());
                }
                self.save(connection, level, index, &branch)?;
                above.insert(index, hash_of(&branch));
            }
            changed = above;
        }
        let top = changed.get(&0).copied().unwrap_or(NOTHING);
        self.top = TreeTop::new(self.top.height, &top);
        Ok(())
    }

    /// Puts branches on top until there is room for a piece.
    fn grow(&mut self, connection: &Connection, piece: u64) -> Result<(), FileFault> {
        while self.top.room().is_some_and(|room| room <= piece) || self.top.height == 0 {
            let mut top = NOTHING;
            if let Some(below) = self.top.height.checked_sub(1) {
                top = hash_of(&self.trusted_branch(connection, below, 0)?);
            } else if self.top != TreeTop::empty() {
                return self.altered();
            }
            let mut branch = [0; BRANCH];
            branch[..32].copy_from_slice(top.as_bytes());
            self.save(connection, self.top.height, 0, &branch)?;
            self.trusted.insert(self.key(self.top.height, 0));
            self.top = TreeTop::new(self.top.height + 1, &hash_of(&branch));
        }
        Ok(())
    }

    /// Compares all of the tree with all hashes that are not those of nothing, and sees that it
    /// holds no other. What is in memory is the number of every branch.
    pub(crate) fn check_all(
        &mut self,
        connection: &Connection,
        mut pieces: impl FnMut() -> Result<Option<(u64, Hash)>, FileFault>,
    ) -> Result<(), FileFault> {
        let mut given = 0_u64;
        while let Some((piece, hash)) = pieces()? {
            self.check(connection, piece, &hash)?;
            given += 1;
        }
        if given == 0 && self.top != TreeTop::empty() && self.top.height > 0 {
            self.trusted_branch(connection, self.top.height - 1, 0)?;
        }
        let sql = r#"SELECT branch, hashes FROM "branches" WHERE branch BETWEEN ?1 AND ?2"#;
        let mut statement = connection.prepare_cached(sql)?;
        let mut stored = statement.query([self.table.first_branch(), self.table.last_branch()])?;
        while let Some(row) = stored.next()? {
            let branch: u64 = row.get(0)?;
            let hashes = row.get_ref(1)?.as_blob().unwrap_or_default();
            let children = hashes.chunks(32).filter(|hash| **hash != NOTHING.0).count() as u64;
            // Branches that lost their last piece keep a place with zeros.
            if children > 0 && !self.trusted.contains(&branch) {
                return self.altered();
            }
            if branch < self.key(1, 0) {
                let Some(rest) = given.checked_sub(children) else {
                    return self.altered();
                };
                given = rest;
            }
        }
        if given == 0 { Ok(()) } else { self.altered() }
    }

    fn altered<T>(&self) -> Result<T, FileFault> {
        damaged(self.table.described())
    }

    /// The number of a branch in the table that all trees share.
    fn key(&self, level: u32, index: u64) -> u64 {
        self.table.first_branch() | u64::from(level) << 48 | index
    }

    fn read(
        &self,
        connection: &Connection,
        level: u32,
        index: u64,
    ) -> Result<[u8; BRANCH], FileFault> {
        let sql = r#"SELECT hashes FROM "branches" WHERE branch = ?1"#;
        let mut statement = connection.prepare_cached(sql)?;
        let found: Option<Vec<u8>> = statement
            .query_row([self.key(level, index)], |row| row.get(0))
            .optional()?;
        match found.map(|bytes| bytes.try_into()) {
            None => Ok([0; BRANCH]),
            Some(Ok(branch)) => Ok(branch),
            Some(Err(_)) => self.altered(),
        }
    }

    fn save(
        &self,
        connection: &Connection,
        level: u32,
        index: u64,
        branch: &[u8; BRANCH],
    ) -> Result<(), FileFault> {
        let sql = r#"INSERT INTO "branches" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET hashes = excluded.hashes"#;
        connection
            .prepare_cached(sql)?
            .execute(params![self.key(level, index), branch])?;
        Ok(())
    }
}

fn child(branch: &[u8; BRANCH], at: u64) -> Hash {
    let mut hash = NOTHING;
    hash.0.copy_from_slice(&branch[at as usize * 32..][..32]);
    hash
}

fn hash_of(branch: &[u8; BRANCH]) -> Hash {
    if *branch == [0; BRANCH] {
        NOTHING
    } else {
        Hash(Sha256::digest(branch).into())
    }
}
