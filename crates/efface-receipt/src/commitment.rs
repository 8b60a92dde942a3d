//! Salted commitments: how a receipt names a person or a row without naming them.
//!
//! An identifier is easily guessed, so its plain hash hides nothing. Here every value gets a nonce
//! of its own, nonce = HMAC-SHA256(salt, label ‖ 0x00 ‖ value), and the commitment is
//! SHA-256("efface commitment v1" ‖ 0x00 ‖ label ‖ 0x00 ‖ nonce ‖ value).
//!
//! - Without the salt, a commitment says nothing, not even whether a guess is right.
//! - The same value gives the same commitment under one salt, so a list of forgotten rows can be
//!   searched.
//! - Showing one [`CommitmentOpening`] to an auditor proves what one commitment stands for and
//!   gives away no other.
//! - Destroying the salt makes all commitments of a model meaningless for good.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::hash::{Hash, hash_parts, hmac};

/// What a commitment stands for. The same text under two labels gives unrelated commitments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitmentLabel {
    /// A caller's request id.
    Request,
    /// The identity whose rows go.
    Subject,
    /// A row's id alone; for the list of what must not come back.
    RowId,
    /// A row's id with the hash of its content; the leaves of the training set.
    Row,
}

impl CommitmentLabel {
    /// The label as it is hashed.
    pub fn name(self) -> &'static str {
        match self {
            CommitmentLabel::Request => "request",
            CommitmentLabel::Subject => "subject",
            CommitmentLabel::RowId => "row_id",
            CommitmentLabel::Row => "row",
        }
    }
}

/// The secret of a model's commitments. It is overwritten when dropped and is never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct CommitmentSalt([u8; 32]);

impl CommitmentSalt {
    /// From 32 random bytes, which the caller draws and keeps.
    pub fn new(bytes: &[u8; 32]) -> CommitmentSalt {
        CommitmentSalt(*bytes)
    }

    /// The commitment to a value.
    pub fn commit(&self, label: CommitmentLabel, value: &[u8]) -> Hash {
        self.open(label, value).commitment(label, value)
    }

    /// What a person needs, beside the value, to check the commitment to it.
    pub fn open(&self, label: CommitmentLabel, value: &[u8]) -> CommitmentOpening {
        CommitmentOpening(hmac(&self.0, &[label.name().as_bytes(), &[0], value]))
    }

    /// The commitment to a row: its id and the hash of its content, so that an amended row is
    /// another leaf.
    pub fn row(&self, id: &[u8], content: &Hash) -> Hash {
        self.commit(CommitmentLabel::Row, &row_value(id, content))
    }
}

impl fmt::Debug for CommitmentSalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(hidden)")
    }
}

/// The value behind a row's commitment: the length of its id in 8 bytes, the id, the hash of its
/// content.
pub fn row_value(id: &[u8], content: &Hash) -> Vec<u8> {
    let mut value = Vec::with_capacity(id.len() + 40);
    value.extend_from_slice(&(id.len() as u64).to_be_bytes());
    value.extend_from_slice(id);
    value.extend_from_slice(content.as_bytes());
    value
}

/// The nonce of one commitment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitmentOpening(pub Hash);

impl CommitmentOpening {
    /// The commitment that this opening and a value lead to; compare it with the one in the
    /// receipt.
    pub fn commitment(&self, label: CommitmentLabel, value: &[u8]) -> Hash {
        let domain = b"efface commitment v1\0";
        hash_parts(&[
            domain,
            label.name().as_bytes(),
            &[0],
            self.0.as_bytes(),
            value,
        ])
    }
}

/// One commitment to all rows of a request: SHA-256("efface rows v1" ‖ 0x00 ‖ count ‖ sorted
/// commitments), the count in 8 bytes; None for no rows.
pub fn rows_commitment(rows: &[Hash]) -> Option<Hash> {
    let mut sorted: Vec<&Hash> = rows.iter().collect();
    sorted.sort();
    let mut commitment = RowsCommitment::new(rows.len() as u64);
    sorted.into_iter().for_each(|hash| commitment.push(hash));
    commitment.finish()
}

/// Like [`rows_commitment`], for rows that are too many to be held: so many of them, given in
/// order.
pub struct RowsCommitment {
    digest: Sha256,
    rows: u64,
}

impl RowsCommitment {
    /// Begins with how many rows there are.
    pub fn new(rows: u64) -> Self {
        let digest = Sha256::new()
            .chain_update(b"efface rows v1\0")
            .chain_update(rows.to_be_bytes());
        Self { digest, rows }
    }

    /// The next row, in the order of their bytes.
    pub fn push(&mut self, row: &Hash) {
        self.digest.update(row.as_bytes());
    }

    /// The commitment; None for none.
    pub fn finish(self) -> Option<Hash> {
        (self.rows > 0).then(|| Hash(self.digest.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_proves_one_value_under_one_label() {
        let salt = CommitmentSalt::new(&[3; 32]);
        let commitment = salt.commit(CommitmentLabel::Subject, b"alice");
        let opening = salt.open(CommitmentLabel::Subject, b"alice");
        assert_eq!(
            opening.commitment(CommitmentLabel::Subject, b"alice"),
            commitment
        );
        assert_ne!(
            opening.commitment(CommitmentLabel::Subject, b"bob"),
            commitment
        );
        assert_ne!(
            opening.commitment(CommitmentLabel::RowId, b"alice"),
            commitment
        );
        assert_ne!(salt.commit(CommitmentLabel::RowId, b"alice"), commitment);
        assert_ne!(
            CommitmentSalt::new(&[4; 32]).commit(CommitmentLabel::Subject, b"alice"),
            commitment
        );
        assert_eq!(format!("{salt:?}"), "Salt(hidden)");
    }

    #[test]
    fn rows_are_a_set_with_a_count() {
        let a = Hash([1; 32]);
        let b = Hash([2; 32]);
        assert_eq!(rows_commitment(&[a, b]), rows_commitment(&[b, a]));
        assert_ne!(rows_commitment(&[a]), rows_commitment(&[a, a]));
        assert_eq!(rows_commitment(&[]), None);
    }
}
