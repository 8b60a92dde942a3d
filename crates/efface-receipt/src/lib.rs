//! Receipts of forgetting, and how an outsider checks them.
//!
//! A receipt says what a request did to a model. It is written as canonical JSON, signed as a
//! COSE_Sign1 with ed25519, and becomes a leaf of an RFC 9162 Merkle log whose head is signed
//! twice: as a COSE receipt (RFC 9942) and as a C2SP checkpoint. A [`ReceiptBundle`] carries a
//! receipt with all that is needed to check it against a public key.
//!
//! Nothing here needs a model, a database, a file, a clock or a source of randomness: the caller
//! brings times, seeds and stored nodes. That is what lets a verifier be small.
//!
//! ```
//! use efface_receipt::{LogCheckpoint, Frontier, KeyRing, SecretKey, leaf_hash};
//!
//! let secret = SecretKey::from_seed("example.com/model-1", &[7; 32])?;
//! let mut log = Frontier::default();
//! log.append(&leaf_hash(b"the bytes of a signed receipt"));
//! let text = LogCheckpoint::new(secret.name(), log.size(), log.root())?.sign(&secret)?;
//!
//! let keys = KeyRing::from(secret.public());
//! assert_eq!(LogCheckpoint::verify(&text, &keys)?.size, 1);
//! # Ok::<(), efface_receipt::ReceiptFault>(())
//! ```

pub mod bundle;
pub mod canonical;
mod claim;
mod commitment;
mod cose;
mod fault;
mod hash;
mod head;
mod json_form;
mod keyring;
mod limits;
pub mod log;
mod note;
mod pack;
mod receipt;
mod replay;
mod rules;
mod signature;
mod stamp;
mod statement;
mod text;
mod time;
pub mod training_set;
mod witness;

pub use bundle::{
    KeyLink, ReceiptBundle, VerifiedReceipt, verify, verify_bytes, verify_succession,
};
pub use claim::{
    AuditEntry, BoundOrigin, Calibration, CopyKind, CopyState, DistanceBound, KnownCopy,
    PrivacySpent, PrivacyTotal, ReceiptClaim, ReleaseTerms, SensitivitySource,
};
pub use commitment::{
    CommitmentLabel, CommitmentOpening, CommitmentSalt, RowsCommitment, row_value, rows_commitment,
};
pub use cose::CONTENT_TYPE;
pub use fault::ReceiptFault;
pub use hash::{Hash, leaf_hash, sha256};
pub use head::SignedHead;
pub use keyring::{KeyRing, TrustedKey};
pub use limits::*;
pub use log::{ConsistencyProof, Frontier, InclusionProof, LogNodes, MemoryLog};
pub use note::LogCheckpoint;
pub use pack::PackDigests;
pub use receipt::{
    KeyChange, LogHead, Receipt, RequestId, RequestKind, RequestOutcome, RequestTimes, RowsTouched,
    SCHEMA, SettledRun, StateChange, UncoveredPart,
};
pub use replay::LogReplay;
pub use rules::{ConsistencyRule, RULES};
pub use signature::{KeyId, PublicKey, ReceiptSigner, SecretKey, Signature};
pub use stamp::{TimeStamp, stamp_imprint, stamp_request};
pub use statement::SignedReceipt;
pub use time::Time;
pub use training_set::SetState;
pub use witness::{
    CheckpointRequest, WitnessKey, WitnessQuorum, WitnessRefusal, WitnessState, WitnessedHead,
    cosign,
};
