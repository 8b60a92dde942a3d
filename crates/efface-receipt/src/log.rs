//! The Merkle tree over receipts, RFC 6962 §2.1: appending, proving, verifying.
//!
//! Only complete subtrees are stored; they never change. A node is named by its level (0 for
//! leaves) and its index at that level. Which nodes a proof needs, and whether a proof holds, is
//! left to `ct-merkle`; what it panics on is checked before it is asked.

use ct_merkle::{
    RootHash, digest::Output, indices_for_consistency_proof, indices_for_inclusion_proof,
};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::{
    fault::ReceiptFault,
    hash::{Hash, node_hash, sha256},
    limits::MAX_INTEGER,
    receipt::LogHead,
};

/// Where the nodes of complete subtrees are kept.
pub trait LogNodes {
    /// What can go wrong while reading.
    type Error: From<ReceiptFault>;

    /// The hash over the leaves `index << level .. (index + 1) << level`, all of which have been
    /// appended.
    fn node(&self, level: u32, index: u64) -> Result<Hash, Self::Error>;
}

/// A node that an append completed, and that a store has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompleteNodes {
    /// 0 for a leaf.
    pub level: u32,
    /// Its index at that level.
    pub index: u64,
    /// Its hash.
    pub hash: Hash,
}

/// The right edge of a log: the roots of its complete subtrees, largest first. Enough to append and
/// to know the root, in memory that grows with the logarithm of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// Reads the edge of a log of `size` leaves from its stored nodes.
    pub fn load<N: LogNodes>(nodes: &N, size: u64) -> Result<Frontier, N::Error> {
        check_size(size)?;
        let peaks = peaks(0, size)
            .into_iter()
            .map(|(level, index)| nodes.node(level, index))
            .collect::<Result<_, _>>()?;
        Ok(Frontier { size, peaks })
    }

    /// Appends the hash of a leaf; gives the nodes to store, the leaf first.
    pub fn append(&mut self, leaf: &Hash) -> Vec<CompleteNodes> {
        let mut hash = *leaf;
        let mut complete = vec![CompleteNodes {
            level: 0,
            index: self.size,
            hash,
        }];
        for level in 1..=self.size.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            hash = node_hash(&left, &hash);
            complete.push(CompleteNodes {
                level,
                index: self.size >> level,
                hash,
            });
        }
        self.peaks.push(hash);
        self.size += 1;
        complete
    }

    /// How many leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root over them; of no leaves, SHA-256 of nothing.
    pub fn root(&self) -> Hash {
        fold(&self.peaks)
    }

    /// Size and root.
    pub fn head(&self) -> LogHead {
        LogHead {
            size: self.size,
            root: self.root(),
        }
    }
}

fn fold(peaks: &[Hash]) -> Hash {
    let joined = peaks
        .iter()
        .rev()
        .copied()
        .reduce(|right, left| node_hash(&left, &right));
    joined.unwrap_or_else(|| sha256(b""))
}

/// The complete subtrees over the leaves `start .. start + count`, largest first. `start` is a
/// multiple of a power of two that is not below `count`.
fn peaks(start: u64, count: u64) -> Vec<(u32, u64)> {
    let mut at = start;
    let mut found = Vec::new();
    for level in (0..u64::BITS).rev() {
        if count >> level & 1 == 1 {
            found.push((level, at >> level));
            at += 1 << level;
        }
    }
    found
}

/// The hash of a node in the array numbering of `ct-merkle`, in a log of `size` leaves. At the
/// right edge such a node can be cut short, and is then put together from complete ones.
fn numbered<N: LogNodes>(nodes: &N, number: u64, size: u64) -> Result<Hash, N::Error> {
    let level = number.trailing_ones();
    let index = number >> (level + 1);
    let start = index << level;
    let count = size.saturating_sub(start).min(1 << level);
    let found: Result<Vec<Hash>, N::Error> = peaks(start, count)
        .into_iter()
        .map(|(level, index)| nodes.node(level, index))
        .collect();
    Ok(fold(&found?))
}

fn check_size(size: u64) -> Result<(), ReceiptFault> {
    if size > MAX_INTEGER {
        Err(ReceiptFault::OutOfRange {
            asked: size,
            size: MAX_INTEGER,
        })
    } else {
        Ok(())
    }
}

fn root_of(root: &Hash, size: u64) -> RootHash<Sha256> {
    RootHash::new(Output::<Sha256>::from(root.0), size)
}

fn concatenated(path: &[Hash]) -> Vec<u8> {
    path.iter().flat_map(|hash| hash.0).collect()
}

/// Proof that a receipt is in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// The receipt's place, from 0.
    pub index: u64,
    /// The size of the log.
    pub size: u64,
    /// The audit path of RFC 6962 §2.1.1, from the leaf up.
    pub path: Vec<Hash>,
}

impl InclusionProof {
    /// Proves that leaf `index` is in the log of the first `size` leaves.
    pub fn new<N: LogNodes>(nodes: &N, index: u64, size: u64) -> Result<InclusionProof, N::Error> {
        check_size(size)?;
        if index >= size {
            return Err(ReceiptFault::OutOfRange { asked: index, size }.into());
        }
        let numbers = indices_for_inclusion_proof(size, index);
        let path = numbers
            .into_iter()
            .map(|number| numbered(nodes, number, size))
            .collect::<Result<_, _>>()?;
        Ok(InclusionProof { index, size, path })
    }

    /// Checks the proof for the bytes of a leaf against the root of the log.
    pub fn verify(&self, leaf: &[u8], root: &Hash) -> Result<(), ReceiptFault> {
        check_size(self.size)?;
        let proof = ct_merkle::InclusionProof::try_from_bytes(concatenated(&self.path))
            .map_err(|_| ReceiptFault::Inclusion)?;
        root_of(root, self.size)
            .verify_inclusion(&leaf, self.index, &proof)
            .map_err(|_| ReceiptFault::Inclusion)
    }
}

/// Proof that a log continues an older one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// The size of the older log.
    pub old: u64,
    /// The size of the newer log.
    pub new: u64,
    /// The proof of RFC 6962 §2.1.2; empty when the older log is empty or of the same size.
    pub path: Vec<Hash>,
}

impl ConsistencyProof {
    /// Proves that the first `old` leaves are the start of the first `new`.
    pub fn new<N: LogNodes>(nodes: &N, old: u64, new: u64) -> Result<ConsistencyProof, N::Error> {
        check_size(new)?;
        if old > new {
            return Err(ReceiptFault::OutOfRange {
                asked: old,
                size: new,
            }
            .into());
        }
        let numbers = if old == 0 {
            Vec::new()
        } else {
            indices_for_consistency_proof(old, new - old)
        };
        let path = numbers
            .into_iter()
            .map(|number| numbered(nodes, number, new))
            .collect::<Result<_, _>>()?;
        Ok(ConsistencyProof { old, new, path })
    }

    /// Checks the proof against both roots.
    pub fn verify(&self, old_root: &Hash, new_root: &Hash) -> Result<(), ReceiptFault> {
        check_size(self.new)?;
        let fault = ReceiptFault::Consistency {
            old: self.old,
            new: self.new,
        };
        if self.old == 0 {
            // Every log continues the empty one.
            return if self.path.is_empty() && *old_root == sha256(b"") {
                Ok(())
            } else {
                Err(fault)
            };
        }
        let Ok(proof) = ct_merkle::ConsistencyProof::try_from_bytes(concatenated(&self.path))
        else {
            return Err(fault);
        };
        let old = root_of(old_root, self.old);
        root_of(new_root, self.new)
            .verify_consistency(&old, &proof)
            .map_err(|_| fault)
    }
}

/// All nodes of a log in memory, for tests and for logs that are small.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    frontier: Frontier,
    levels: Vec<Vec<Hash>>,
}

impl MemoryLog {
    /// Appends the hash of a leaf.
    pub fn append(&mut self, leaf: &Hash) {
        for node in self.frontier.append(leaf) {
            let level = node.level as usize;
            if self.levels.len() <= level {
                self.levels.push(Vec::new());
            }
            if let Some(nodes) = self.levels.get_mut(level) {
                nodes.push(node.hash);
            }
        }
    }

    /// Its edge.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Its size and root.
    pub fn head(&self) -> LogHead {
        self.frontier.head()
    }

    /// Proof that leaf `index` is in it.
    pub fn inclusion(&self, index: u64) -> Result<InclusionProof, ReceiptFault> {
        InclusionProof::new(self, index, self.frontier.size)
    }

    /// Proof that it continues the log of its first `old` leaves.
    pub fn consistency(&self, old: u64) -> Result<ConsistencyProof, ReceiptFault> {
        ConsistencyProof::new(self, old, self.frontier.size)
    }
}

impl LogNodes for MemoryLog {
    type Error = ReceiptFault;

    fn node(&self, level: u32, index: u64) -> Result<Hash, ReceiptFault> {
        let found = self
            .levels
            .get(level as usize)
            .and_then(|nodes| nodes.get(usize::try_from(index).ok()?));
        found.copied().ok_or(ReceiptFault::OutOfRange {
            asked: index,
            size: self.frontier.size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::leaf_hash;

    /// The definitions of RFC 6962 §2.1, written as they stand there.
    fn mth(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => sha256(b""),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len()));
                node_hash(&mth(left), &mth(right))
            }
        }
    }

    fn split(n: usize) -> usize {
        n.next_power_of_two() / 2
    }

    fn path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
        if leaves.len() < 2 {
            return Vec::new();
        }
        let (left, right) = leaves.split_at(split(leaves.len()));
        let (mut proof, last) = if m < left.len() {
            (path(m, left), mth(right))
        } else {
            (path(m - left.len(), right), mth(left))
        };
        proof.push(last);
        proof
    }

    fn subproof(m: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
        if m == leaves.len() {
            return if whole { Vec::new() } else { vec![mth(leaves)] };
        }
        let (left, right) = leaves.split_at(split(leaves.len()));
        let (mut proof, last) = if m <= left.len() {
            (subproof(m, left, whole), mth(right))
        } else {
            (subproof(m - left.len(), right, false), mth(left))
        };
        proof.push(last);
        proof
    }

    #[test]
    fn proofs_are_those_of_the_definitions() {
        let leaves: Vec<Vec<u8>> = (0..40u8).map(|i| vec![i]).collect();
        let hashes: Vec<Hash> = leaves.iter().map(|leaf| leaf_hash(leaf)).collect();
        let mut log = MemoryLog::default();
        let mut roots = vec![sha256(b"")];
        for (i, hash) in hashes.iter().enumerate() {
            log.append(hash);
            let size = i + 1;
            let head = log.head();
            assert_eq!(head.root, mth(&hashes[..size]));
            assert_eq!(Frontier::load(&log, head.size).unwrap(), *log.frontier());
            roots.push(head.root);
            for (index, leaf) in leaves[..size].iter().enumerate() {
                let proof = log.inclusion(index as u64).unwrap();
                assert_eq!(proof.path, path(index, &hashes[..size]));
                proof.verify(leaf, &head.root).unwrap();
                assert!(proof.verify(b"other", &head.root).is_err());
            }
            for (old, old_root) in roots.iter().enumerate() {
                let proof = log.consistency(old as u64).unwrap();
                let expected = if old == 0 {
                    Vec::new()
                } else {
                    subproof(old, &hashes[..size], true)
                };
                assert_eq!(proof.path, expected);
                proof.verify(old_root, &head.root).unwrap();
                assert!(proof.verify(&Hash([9; 32]), &head.root).is_err());
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused_without_a_panic() {
        let log = MemoryLog::default();
        assert!(InclusionProof::new(&log, 0, 0).is_err());
        assert!(InclusionProof::new(&log, u64::MAX - 1, u64::MAX).is_err());
        assert!(ConsistencyProof::new(&log, 5, 4).is_err());
        for size in [0, 1, MAX_INTEGER, MAX_INTEGER + 1, u64::MAX] {
            for index in [0, 1, u64::MAX / 2, u64::MAX] {
                let root = Hash([0; 32]);
                assert!(
                    InclusionProof {
                        index,
                        size,
                        path: vec![root; 3]
                    }
                    .verify(b"", &root)
                    .is_err()
                );
                assert!(
                    ConsistencyProof {
                        old: index,
                        new: size,
                        path: vec![root; 3]
                    }
                    .verify(&root, &root)
                    .is_err()
                );
            }
        }
    }
}
