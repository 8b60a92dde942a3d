//! Receipts of forgetting, and how an outsider checks them.
//!
//! A receipt says what a request did to a model. It is written as canonical JSON, signed with ed25519, and becomes a
//! leaf of an RFC 6962 Merkle log whose head is a signed checkpoint. A [`Bundle`] carries a receipt with all that is
//! needed to check it against a public key.
//!
//! Nothing here needs a model, a database, a file, a clock or a source of randomness: the caller brings times, seeds
//! and stored nodes. That is what lets a verifier be small.
//!
//! ```
//! use efface_receipt::{Checkpoint, Frontier, KeyRing, SecretKey, leaf_hash};
//!
//! let secret = SecretKey::from_seed("example.com/model-1", &[7; 32])?;
//! let mut log = Frontier::default();
//! log.append(&leaf_hash(b"the bytes of a signed receipt"));
//! let text = Checkpoint::new(secret.name(), log.size(), log.root())?.sign(&secret)?;
//!
//! let keys = KeyRing::from(secret.public());
//! assert_eq!(Checkpoint::verify(&text, &keys)?.size, 1);
//! # Ok::<(), efface_receipt::Fault>(())
//! ```

pub mod bundle;
pub mod canonical;
mod claim;
mod commitment;
mod fault;
mod hash;
mod limits;
pub mod log;
mod note;
mod receipt;
mod replay;
mod signature;
mod time;
pub mod training_set;

pub use bundle::{Bundle, Verified, verify, verify_bytes, verify_succession};
pub use claim::{
    Audit, Bound, BoundSource, Calibration, Claim, CopyKind, CopyState, KnownCopy, PrivacySpent,
    PrivacyTotal, Release, SensitivitySource,
};
pub use commitment::{Label, Opening, Salt, row_value, rows_commitment};
pub use fault::Fault;
pub use hash::{Hash, leaf_hash, sha256};
pub use limits::*;
pub use log::{ConsistencyProof, Frontier, InclusionProof, MemoryLog, Nodes};
pub use note::Checkpoint;
pub use receipt::{
    Change, Head, Kind, Outcome, Receipt, RequestId, RowsTouched, SCHEMA, Settled, Times, UncoveredPart,
};
pub use replay::LogReplay;
pub use signature::{KeyId, KeyRing, PublicKey, SecretKey, Signature, Signed};
pub use time::Time;
pub use training_set::SetState;
