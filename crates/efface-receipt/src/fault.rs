//! Every way in which a receipt, a proof or a checkpoint can fail to hold. Messages name the check
//! and the place, never what a document contains beyond sizes, hashes and key ids.

use crate::{hash::Hash, signature::KeyId};

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptFault {
    /// More bytes, entries or levels than are read.
    #[error(
        "{what} has {size}, more than the {limit} that are read; this is not something efface wrote"
    )]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Not JSON in canonical form.
    #[error(
        "not canonical JSON (RFC 8785) at byte {at}: {problem}; use the file as it was written, not reformatted"
    )]
    NotCanonical {
        /// The byte where it shows.
        at: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// A value that canonical JSON cannot hold.
    #[error("cannot be written as canonical JSON: {0}")]
    Unwritable(&'static str),
    /// Canonical JSON, but not of the published schema.
    #[error("does not follow the schema: {0}")]
    Schema(String),
    /// A field that contradicts itself or another.
    #[error("the receipt contradicts itself: {field}: {problem}")]
    Contradiction {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Text that is no key.
    #[error("not a key: {0}")]
    Key(&'static str),
    /// A signature by a key that the verifier was not given.
    #[error(
        "signed with key {id} of {name:?}, which is not among the trusted keys; is this the right public key?"
    )]
    UnknownKey {
        /// The key's name.
        name: String,
        /// The key's id.
        id: KeyId,
    },
    /// A signature by a key after it handed over to another.
    #[error(
        "signed with key {id}, which handed over at receipt {retired}; this is receipt or size {stated}"
    )]
    RetiredKey {
        /// The key's id.
        id: KeyId,
        /// The receipt that handed over.
        retired: u64,
        /// The receipt, or the size of the log, that it signed.
        stated: u64,
    },
    /// A signature by a key before the hand-over to it.
    #[error(
        "signed with key {id}, which took over for receipt {first}; this is receipt or size {stated}"
    )]
    EarlyKey {
        /// The key's id.
        id: KeyId,
        /// The first receipt that it may sign.
        first: u64,
        /// The receipt, or the size of the log, that it signed.
        stated: u64,
    },
    /// What holds the key did not sign.
    #[error("nothing could be signed: {0}")]
    Signing(String),
    /// Bytes that are no signed receipt, or another way of writing one.
    #[error("not a signed receipt in COSE: {0}; use the file as it was written")]
    Encoding(&'static str),
    /// A receipt's signature does not hold.
    #[error(
        "the signature of the receipt is wrong: it was changed after signing, or signed by someone else"
    )]
    ReceiptSignature,
    /// Text that is no checkpoint.
    #[error("not a checkpoint: {0}")]
    Note(&'static str),
    /// No trusted key signed the checkpoint.
    #[error("no trusted key has signed the checkpoint; is this the right public key?")]
    CheckpointUnsigned,
    /// A checkpoint's signature does not hold.
    #[error(
        "the signature of the checkpoint is wrong: it was changed after signing, or signed by someone else"
    )]
    CheckpointSignature,
    /// A cosignature of a known witness does not hold.
    #[error(
        "the cosignature of a witness is wrong: the checkpoint was changed after it, or somebody else made it"
    )]
    Cosignature,
    /// Too few witnesses signed the checkpoint.
    #[error("{found} of the named witnesses signed the checkpoint, and {needed} are needed")]
    Quorum {
        /// Those that signed.
        found: usize,
        /// Those that are needed.
        needed: usize,
    },
    /// A time stamp that is none, or of something else.
    #[error("not a time stamp of this receipt: {0}")]
    Stamp(&'static str),
    /// An evidence pack whose files are not those that were signed.
    #[error("the pack is not as it was signed: {0}")]
    Pack(String),
    /// Receipt and checkpoint name different logs.
    #[error("the receipt belongs to log {receipt:?}, the checkpoint to {checkpoint:?}")]
    Origin {
        /// The receipt's log.
        receipt: String,
        /// The checkpoint's log.
        checkpoint: String,
    },
    /// A receipt that is not where it says it is.
    #[error("the receipt says it is number {stated} of the log, the proof says {proven}")]
    Sequence {
        /// What the receipt says.
        stated: u64,
        /// Where it stands.
        proven: u64,
    },
    /// The proof and the checkpoint speak of different trees.
    #[error("the proof is for a log of {proof} receipts, the checkpoint for one of {checkpoint}")]
    ProofSize {
        /// The proof's size.
        proof: u64,
        /// The checkpoint's size.
        checkpoint: u64,
    },
    /// The receipt is not in the log.
    #[error("the inclusion proof fails: the receipt is not in the log that the checkpoint signs")]
    Inclusion,
    /// The older log is not a prefix of the newer one.
    #[error(
        "the consistency proof fails: the log of {new} receipts does not continue the log of {old}"
    )]
    Consistency {
        /// Receipts of the older log.
        old: u64,
        /// Receipts of the newer log.
        new: u64,
    },
    /// Two signed logs of one size and different content.
    #[error(
        "the log was forked: two checkpoints of size {size} have roots {first} and {second}; keep both, they are proof"
    )]
    Fork {
        /// Their size.
        size: u64,
        /// One root.
        first: Hash,
        /// The other.
        second: Hash,
    },
    /// The newer checkpoint is smaller.
    #[error("the log shrank from {old} to {new} receipts")]
    Shrunk {
        /// The size that was known.
        old: u64,
        /// The size now.
        new: u64,
    },
    /// The head that a receipt builds on is not a prefix of the log.
    #[error("receipt {sequence} was written on top of a log that this log does not contain")]
    Previous {
        /// The receipt's number.
        sequence: u64,
    },
    /// Two receipts that follow each other disagree about the state between them.
    #[error("receipt {sequence} does not start where the one before it ended: {what}")]
    Chain {
        /// The receipt's number.
        sequence: u64,
        /// What differs.
        what: &'static str,
    },
    /// Something asked of a log that it does not have.
    #[error("asked for receipt or size {asked} of a log of {size}")]
    OutOfRange {
        /// What was asked for.
        asked: u64,
        /// The size of the log.
        size: u64,
    },
    /// The commitments of a training set are not in order, repeat, or lie outside their bucket.
    #[error("row commitments must be sorted, unique and of one bucket")]
    SetOrder,
    /// A proof about a training set does not lead to its root.
    #[error("the proof does not lead to the root of the training set")]
    Membership,
}

impl ReceiptFault {
    /// The check that failed, as one word. The Python verifier uses the same words.
    pub fn check(&self) -> &'static str {
        match self {
            ReceiptFault::TooLarge { .. } => "limits",
            ReceiptFault::NotCanonical { .. } | ReceiptFault::Unwritable(_) => "canonical",
            ReceiptFault::Encoding(_) => "encoding",
            ReceiptFault::Schema(_) | ReceiptFault::Contradiction { .. } => "schema",
            ReceiptFault::Key(_)
            | ReceiptFault::UnknownKey { .. }
            | ReceiptFault::RetiredKey { .. }
            | ReceiptFault::EarlyKey { .. } => "key",
            ReceiptFault::ReceiptSignature | ReceiptFault::Signing(_) => "signature",
            ReceiptFault::Note(_)
            | ReceiptFault::CheckpointUnsigned
            | ReceiptFault::CheckpointSignature => "checkpoint",
            ReceiptFault::Cosignature | ReceiptFault::Quorum { .. } => "witness",
            ReceiptFault::Stamp(_) => "stamp",
            ReceiptFault::Pack(_) => "pack",
            ReceiptFault::Origin { .. } => "origin",
            ReceiptFault::Sequence { .. }
            | ReceiptFault::ProofSize { .. }
            | ReceiptFault::Inclusion
            | ReceiptFault::OutOfRange { .. } => "inclusion",
            ReceiptFault::Consistency { .. }
            | ReceiptFault::Shrunk { .. }
            | ReceiptFault::Previous { .. } => "consistency",
            ReceiptFault::Fork { .. } => "fork",
            ReceiptFault::Chain { .. } => "chain",
            ReceiptFault::SetOrder | ReceiptFault::Membership => "training_set",
        }
    }
}
