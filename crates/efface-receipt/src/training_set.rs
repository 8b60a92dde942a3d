//! A commitment to the training set: which rows a model was made from, without saying anything
//! about them.
//!
//! The leaves are salted row commitments, 32 bytes each, unique and evenly spread. They are the
//! keys of a compact sparse Merkle tree: a subtree is split by the next bit of the key, most
//! significant first;
//!
//! - no key: 32 zero bytes;
//! - one key: SHA-256(0x00 ‖ key), at whatever depth;
//! - more: SHA-256(0x01 ‖ left ‖ right);
//! - the root: SHA-256(0x02 ‖ number of keys in 8 bytes ‖ topmost hash).
//!
//! It depends on the set alone, not on the order in which rows came and went, so a second verifier
//! recomputes it from a sorted list in a few lines. A row can be proven present before and absent
//! after, which a plain list of hashes or a multiset hash cannot do in little space. Collision
//! resistance is that of SHA-256: the three prefixes keep the cases apart, and a key's bits fix its
//! place.
//!
//! Storing every node would triple what a row costs. Instead the rows' commitments are kept in
//! order, as a database index does anyway, and only the top of the tree is cached down to buckets
//! of a few dozen rows ([`SetCells`]). A change reads one bucket and rewrites one path: O(log n)
//! hashes, memory independent of n.

use std::collections::{BTreeMap, btree_map::Entry};

use serde::{Deserialize, Serialize};

use crate::{
    fault::ReceiptFault,
    hash::{Hash, hash_parts, node_hash},
};

/// The root and size of a training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetState {
    /// The root.
    pub root: Hash,
    /// How many rows.
    pub count: u64,
}

/// A node of the tree: the hash over some keys, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetNode {
    /// The hash.
    pub hash: Hash,
    /// How many keys lie below.
    pub count: u64,
}

impl SetNode {
    /// No key.
    pub const EMPTY: SetNode = SetNode {
        hash: Hash([0; 32]),
        count: 0,
    };

    /// One key.
    pub fn leaf(key: &Hash) -> SetNode {
        SetNode {
            hash: hash_parts(&[&[0], key.as_bytes()]),
            count: 1,
        }
    }

    /// The node above two others.
    pub fn join(left: &SetNode, right: &SetNode) -> SetNode {
        match (left.count, right.count) {
            (0, 0) => SetNode::EMPTY,
            (1, 0) => *left,
            (0, 1) => *right,
            _ => SetNode {
                hash: node_hash(&left.hash, &right.hash),
                count: left.count.saturating_add(right.count),
            },
        }
    }

    /// What a receipt says of a set whose topmost node this is.
    pub fn state(&self) -> SetState {
        SetState {
            root: seal(&self.hash, self.count),
            count: self.count,
        }
    }

    /// 40 bytes, for a store: the count in 8 bytes, then the hash.
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let (count, hash) = bytes.split_at_mut(8);
        count.copy_from_slice(&self.count.to_be_bytes());
        hash.copy_from_slice(self.hash.as_bytes());
        bytes
    }

    /// Reads what [`SetNode::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8; 40]) -> SetNode {
        let mut count = [0; 8];
        let mut hash = [0; 32];
        count.copy_from_slice(&bytes[..8]);
        hash.copy_from_slice(&bytes[8..]);
        SetNode {
            hash: Hash(hash),
            count: u64::from_be_bytes(count),
        }
    }
}

fn seal(top: &Hash, count: u64) -> Hash {
    hash_parts(&[&[2], &count.to_be_bytes(), top.as_bytes()])
}

fn bit(key: &Hash, depth: u32) -> bool {
    key.0
        .get((depth / 8) as usize)
        .is_some_and(|byte| byte >> (7 - depth % 8) & 1 == 1)
}

/// The node over sorted keys that share their first `depth` bits.
pub fn subtree(keys: &[Hash], depth: u32) -> Result<SetNode, ReceiptFault> {
    if !keys.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return Err(ReceiptFault::SetOrder);
    }
    if let (Some(first), Some(last)) = (keys.first(), keys.last())
        && (0..depth.min(256)).any(|d| bit(first, d) != bit(last, d))
    {
        return Err(ReceiptFault::SetOrder);
    }
    Ok(over(keys, depth))
}

fn over(keys: &[Hash], depth: u32) -> SetNode {
    match keys {
        [] => SetNode::EMPTY,
        [key] => SetNode::leaf(key),
        _ => {
            let (left, right) = keys.split_at(keys.partition_point(|key| !bit(key, depth)));
            SetNode::join(&over(left, depth + 1), &over(right, depth + 1))
        }
    }
}

/// The state of a set, from all its sorted keys.
pub fn state_of(keys: &[Hash]) -> Result<SetState, ReceiptFault> {
    Ok(subtree(keys, 0)?.state())
}

/// Where the top of the tree is cached. Cells are numbered as in a heap: 1 is the topmost, the
/// cells below `i` are `2i` and `2i + 1`, and bucket `b` is cell `2^bits + b`.
pub trait SetCells {
    /// What can go wrong while reading or writing.
    type Error: From<ReceiptFault>;

    /// Reads a cell that was written before, or [`SetNode::EMPTY`].
    fn get(&self, cell: u64) -> Result<SetNode, Self::Error>;

    /// Writes a cell.
    fn set(&mut self, cell: u64, node: SetNode) -> Result<(), Self::Error>;
}

impl SetCells for BTreeMap<u64, SetNode> {
    type Error = ReceiptFault;

    fn get(&self, cell: u64) -> Result<SetNode, ReceiptFault> {
        Ok(BTreeMap::get(self, &cell)
            .copied()
            .unwrap_or(SetNode::EMPTY))
    }

    fn set(&mut self, cell: u64, node: SetNode) -> Result<(), ReceiptFault> {
        self.insert(cell, node);
        Ok(())
    }
}

/// How many bits number the buckets of a set of this size: 16 to 32 rows a bucket, at most 2²⁴
/// buckets. The root does not depend on it; rebuild the cache when the set has grown or shrunk
/// several times over.
pub fn bits_for(count: u64) -> u32 {
    (count / 16).checked_ilog2().unwrap_or(0).min(24)
}

/// The bucket of a key.
pub fn bucket(key: &Hash, bits: u32) -> u64 {
    let first = key
        .0
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes));
    first.checked_shr(64 - bits.min(64)).unwrap_or(0)
}

/// The first and the last key that could share the first `depth` bits of this one.
pub fn range(key: &Hash, depth: u32) -> (Hash, Hash) {
    let mut low = *key;
    let mut high = *key;
    for (i, (l, h)) in low.0.iter_mut().zip(high.0.iter_mut()).enumerate() {
        let kept = depth.saturating_sub(8 * i as u32).min(8);
        let mask = 0xffu8.checked_shr(kept).unwrap_or(0);
        *l &= !mask;
        *h |= mask;
    }
    (low, high)
}

/// The first and the last key of a bucket.
pub fn bucket_range(bucket: u64, bits: u32) -> (Hash, Hash) {
    let mut key = Hash([0; 32]);
    let first = bucket.checked_shl(64 - bits.min(64)).unwrap_or(0);
    key.0[..8].copy_from_slice(&first.to_be_bytes());
    range(&key, bits)
}

/// Writes new bucket nodes and the paths above them; gives the state of the whole set.
pub fn update<C: SetCells>(
    cells: &mut C,
    bits: u32,
    buckets: &[(u64, SetNode)],
) -> Result<SetState, C::Error> {
    if bits > 32 || buckets.iter().any(|(bucket, _)| bucket >> bits != 0) {
        return Err(ReceiptFault::SetOrder.into());
    }
    let mut changed: BTreeMap<u64, SetNode> = buckets
        .iter()
        .map(|(bucket, node)| ((1u64 << bits) + bucket, *node))
        .collect();
    for _ in 0..bits {
        let mut above = BTreeMap::new();
        for (&cell, &node) in &changed {
            cells.set(cell, node)?;
        }
        for &cell in changed.keys() {
            let parent = cell / 2;
            if let Entry::Vacant(entry) = above.entry(parent) {
                entry.insert(SetNode::join(
                    &cells.get(parent * 2)?,
                    &cells.get(parent * 2 + 1)?,
                ));
            }
        }
        changed = above;
    }
    for (cell, node) in changed {
        cells.set(cell, node)?;
    }
    Ok(cells.get(1)?.state())
}

/// Fills empty cells from all keys in order. The keys of one bucket are in memory at a time.
pub fn build<C: SetCells>(
    cells: &mut C,
    bits: u32,
    keys: impl IntoIterator<Item = Result<Hash, C::Error>>,
) -> Result<SetState, C::Error> {
    fold(bits, keys, |cell, node| {
        if node == SetNode::EMPTY {
            Ok(())
        } else {
            cells.set(cell, node)
        }
    })
}

/// Shows every cell over all keys in order, each after those below it. The keys of one bucket and a
/// node for each level are in memory at a time.
pub fn fold<E: From<ReceiptFault>>(
    bits: u32,
    keys: impl IntoIterator<Item = Result<Hash, E>>,
    mut see: impl FnMut(u64, SetNode) -> Result<(), E>,
) -> Result<SetState, E> {
    let mut cells = SetFold::new(bits)?;
    let mut keys = keys.into_iter();
    let mut next = keys.next().transpose()?;
    for number in 0..1_u64 << bits {
        let mut pending: Vec<Hash> = Vec::new();
        while let Some(key) = next.filter(|key| bucket(key, bits) == number) {
            pending.push(key);
            next = keys.next().transpose()?;
        }
        cells.push(subtree(&pending, bits)?, &mut see)?;
    }
    if next.is_some() {
        return Err(ReceiptFault::SetOrder.into());
    }
    Ok(cells.finish()?)
}

/// The cells over buckets whose nodes come in order, such as from several threads.
#[derive(Debug)]
pub struct SetFold {
    bits: u32,
    /// The bucket that comes next.
    number: u64,
    /// The node that waits for the one beside it, on each level from the buckets up.
    waiting: Vec<SetNode>,
}

impl SetFold {
    /// For so many buckets as have numbers of `bits` bits.
    pub fn new(bits: u32) -> Result<Self, ReceiptFault> {
        if bits > 32 {
            return Err(ReceiptFault::SetOrder);
        }
        Ok(Self {
            bits,
            number: 0,
            waiting: vec![SetNode::EMPTY; bits as usize + 1],
        })
    }

    /// Takes the node of the next bucket; shows its cell and those above that it completes.
    pub fn push<E>(
        &mut self,
        bucket: SetNode,
        mut see: impl FnMut(u64, SetNode) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut node = bucket;
        let mut cell = (1 << self.bits) + self.number;
        self.number += 1;
        see(cell, node)?;
        let mut level = 0;
        while cell > 1 && cell % 2 == 1 {
            node = SetNode::join(&self.waiting[level], &node);
            cell /= 2;
            level += 1;
            see(cell, node)?;
        }
        self.waiting[level] = node;
        Ok(())
    }

    /// The state of the set, once all buckets were taken.
    pub fn finish(self) -> Result<SetState, ReceiptFault> {
        if self.number == 1 << self.bits {
            Ok(self.waiting[self.bits as usize].state())
        } else {
            Err(ReceiptFault::SetOrder)
        }
    }
}

/// Proof that a row is, or is not, in a training set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MembershipProof {
    /// The hashes beside the way down, topmost first.
    pub path: Vec<Hash>,
    /// The key at the end of the way; null when there is none.
    pub end: Option<Hash>,
}

impl MembershipProof {
    /// Follows a key down the tree. `keys_between` reads the stored keys from the first to the last
    /// given, in order.
    pub fn new<C: SetCells>(
        cells: &C,
        bits: u32,
        key: &Hash,
        mut keys_between: impl FnMut(&Hash, &Hash) -> Result<Vec<Hash>, C::Error>,
    ) -> Result<MembershipProof, C::Error> {
        let mut path = Vec::new();
        let mut cell = 1u64;
        for depth in 0..bits {
            if cells.get(cell)?.count < 2 {
                let (low, high) = range(key, depth);
                return Ok(MembershipProof {
                    path,
                    end: keys_between(&low, &high)?.first().copied(),
                });
            }
            let side = u64::from(bit(key, depth));
            path.push(cells.get(cell * 2 + (1 - side))?.hash);
            cell = cell * 2 + side;
        }
        let (low, high) = range(key, bits);
        let found = keys_between(&low, &high)?;
        let mut keys = found.as_slice();
        let mut depth = bits;
        while keys.len() > 1 {
            let (left, right) = keys.split_at(keys.partition_point(|k| !bit(k, depth)));
            let (near, far) = if bit(key, depth) {
                (right, left)
            } else {
                (left, right)
            };
            path.push(over(far, depth + 1).hash);
            keys = near;
            depth += 1;
        }
        Ok(MembershipProof {
            path,
            end: keys.first().copied(),
        })
    }

    /// Whether the key is in the set; an error when the proof does not lead to the set's root.
    pub fn verify(&self, state: &SetState, key: &Hash) -> Result<bool, ReceiptFault> {
        let depth = u32::try_from(self.path.len()).map_err(|_| ReceiptFault::Membership)?;
        if depth > 256 {
            return Err(ReceiptFault::Membership);
        }
        // What stands at the end must belong on the way that was taken.
        if let Some(end) = &self.end
            && (0..depth).any(|d| bit(end, d) != bit(key, d))
        {
            return Err(ReceiptFault::Membership);
        }
        let mut hash = self
            .end
            .as_ref()
            .map_or(SetNode::EMPTY.hash, |end| SetNode::leaf(end).hash);
        for (d, beside) in self.path.iter().enumerate().rev() {
            hash = if bit(key, d as u32) {
                node_hash(beside, &hash)
            } else {
                node_hash(&hash, beside)
            };
        }
        if seal(&hash, state.count) != state.root {
            return Err(ReceiptFault::Membership);
        }
        Ok(self.end.as_ref() == Some(key))
    }
}
