//! A receipt with everything that is needed to check it: what `efface verify receipt.json` reads.
//!
//! The file is one canonical JSON document. It is read as it was written, to the byte: a verifier that accepts
//! spaces where none belong would also accept what somebody hid in them.

use serde::{Deserialize, Serialize};

use crate::{
    canonical,
    fault::ReceiptFault,
    limits::{MAX_BUNDLE_BYTES, MAX_ROTATIONS},
    log::{ConsistencyProof, InclusionProof},
    note::LogCheckpoint,
    receipt::Receipt,
    signature::{KeyRing, PublicKey, SignedReceipt},
};

/// The version of the bundle's form.
pub const BUNDLE_SCHEMA: &str = "efface.bundle/1";

/// A signed receipt, proof that it is in the log, and the signed head of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptBundle {
    /// [`BUNDLE_SCHEMA`].
    pub schema: String,
    /// The receipt.
    pub signed: SignedReceipt,
    /// Where it stands in the log.
    pub inclusion: InclusionProof,
    /// The signed head of the log, a C2SP checkpoint.
    pub checkpoint: String,
    /// Proof that the log continues the head that the receipt names as `previous`; null for the first receipt alone.
    pub consistency: Option<ConsistencyProof>,
    /// Key rotations that lead from the key that the verifier knows to those that signed, oldest first.
    pub rotations: Vec<SignedReceipt>,
}

/// What a verified bundle shows.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedReceipt {
    /// The receipt, as signed.
    pub receipt: Receipt,
    /// The head of the log that contains it.
    pub checkpoint: LogCheckpoint,
    /// The key that signed the receipt.
    pub key: PublicKey,
}

impl ReceiptBundle {
    /// Puts a bundle together. It is not verified here.
    pub fn new(signed: SignedReceipt, inclusion: InclusionProof, checkpoint: String) -> ReceiptBundle {
        let schema = BUNDLE_SCHEMA.to_owned();
        ReceiptBundle { schema, signed, inclusion, checkpoint, consistency: None, rotations: Vec::new() }
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReceiptFault> {
        let bytes = canonical::to_bytes(self)?;
        if bytes.len() > MAX_BUNDLE_BYTES {
            return Err(ReceiptFault::TooLarge {
                what: "the bundle",
                size: bytes.len(),
                limit: MAX_BUNDLE_BYTES,
            });
        }
        Ok(bytes)
    }

    /// Reads the bytes of a file; nothing is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<ReceiptBundle, ReceiptFault> {
        let bundle: ReceiptBundle = canonical::from_bytes(bytes, "the bundle", MAX_BUNDLE_BYTES)?;
        if canonical::to_bytes(&bundle)? != bytes {
            return Err(ReceiptFault::Schema("a field is missing".to_owned()));
        }
        Ok(bundle)
    }
}

/// Reads and verifies a bundle.
pub fn verify_bytes(bytes: &[u8], keys: &KeyRing) -> Result<VerifiedReceipt, ReceiptFault> {
    verify(&ReceiptBundle::parse(bytes)?, keys)
}

/// Verifies a bundle: the rotations, the receipt and its signature, the checkpoint, the place in the log, and that the
/// log continues the one that the receipt was written on.
pub fn verify(bundle: &ReceiptBundle, keys: &KeyRing) -> Result<VerifiedReceipt, ReceiptFault> {
    if bundle.schema != BUNDLE_SCHEMA {
        return Err(ReceiptFault::Schema("this verifier reads efface.bundle/1 only".to_owned()));
    }
    if bundle.rotations.len() > MAX_ROTATIONS {
        let size = bundle.rotations.len();
        return Err(ReceiptFault::TooLarge { what: "the list of rotations", size, limit: MAX_ROTATIONS });
    }
    let places = || bundle.rotations.iter().map(|rotation| rotation.receipt.sequence);
    if places().zip(places().skip(1)).any(|(first, second)| first >= second) {
        return Err(ReceiptFault::Schema("rotations are listed oldest first, each once".to_owned()));
    }
    let mut keys = keys.clone();
    for rotation in &bundle.rotations {
        keys.follow(rotation)?;
    }
    let key = bundle.signed.verify(&keys)?;
    let receipt = &bundle.signed.receipt;
    let checkpoint = LogCheckpoint::verify(&bundle.checkpoint, &keys)?;
    if receipt.origin != checkpoint.origin {
        let receipt = receipt.origin.clone();
        let checkpoint = checkpoint.origin;
        return Err(ReceiptFault::Origin { receipt, checkpoint });
    }
    let proof = &bundle.inclusion;
    if receipt.sequence != proof.index {
        return Err(ReceiptFault::Sequence { stated: receipt.sequence, proven: proof.index });
    }
    if proof.size != checkpoint.size {
        return Err(ReceiptFault::ProofSize { proof: proof.size, checkpoint: checkpoint.size });
    }
    proof.verify(&bundle.signed.to_bytes()?, &checkpoint.root)?;
    match (&receipt.previous, &bundle.consistency) {
        // The first receipt was written on no head, so that there is nothing to continue.
        (None, None) => {}
        (Some(head), Some(proof)) if proof.old == head.size && proof.new == checkpoint.size => {
            proof.verify(&head.root, &checkpoint.root)?;
        }
        _ => return Err(ReceiptFault::Previous { sequence: receipt.sequence }),
    }
    Ok(VerifiedReceipt { receipt: receipt.clone(), key: key.clone(), checkpoint })
}

/// Checks that the log of a newer checkpoint continues the log of an older one. Both are verified first.
///
/// Two checkpoints of one size and different roots are a fork: the log told two stories, and both signatures prove it.
pub fn verify_succession(
    old: &str,
    new: &str,
    proof: &ConsistencyProof,
    keys: &KeyRing,
) -> Result<(LogCheckpoint, LogCheckpoint), ReceiptFault> {
    let old = LogCheckpoint::verify(old, keys)?;
    let new = LogCheckpoint::verify(new, keys)?;
    if old.origin != new.origin {
        return Err(ReceiptFault::Origin { receipt: old.origin, checkpoint: new.origin });
    }
    if new.size < old.size {
        return Err(ReceiptFault::Shrunk { old: old.size, new: new.size });
    }
    if new.size == old.size && new.root != old.root {
        return Err(ReceiptFault::Fork { size: old.size, first: old.root, second: new.root });
    }
    if (proof.old, proof.new) != (old.size, new.size) {
        return Err(ReceiptFault::Consistency { old: old.size, new: new.size });
    }
    proof.verify(&old.root, &new.root)?;
    Ok((old, new))
}
