//! A receipt with everything that is needed to check it: what `efface verify` reads.
//!
//! The file is the signed receipt itself, a COSE_Sign1, whose unprotected header holds the rest:
//! the COSE receipt of its place in the log (label 394, which tools for SCITT read), a time stamp
//! where there is one, the checkpoint, the COSE receipt of consistency with the head that the
//! receipt was written on, and the hand-overs of keys. It is read as it was written, to the byte.

use coset::{HeaderBuilder, Label, cbor::Value};

use crate::{
    cose::{self, ReadMessage, TreeProof},
    fault::ReceiptFault,
    head::SignedHead,
    keyring::KeyRing,
    limits::{MAX_BUNDLE_BYTES, MAX_ROTATIONS},
    log::{ConsistencyProof, InclusionProof},
    note::LogCheckpoint,
    receipt::Receipt,
    signature::PublicKey,
    stamp::TimeStamp,
    statement::SignedReceipt,
};

/// Labels of the unprotected header that are efface's own.
const KEYS: &str = "keys";
const CHECKPOINT: &str = "checkpoint";
const CONSISTENCY: &str = "consistency";

/// A signed receipt, proof that it is in the log, and the signed head of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptBundle {
    /// The receipt.
    pub signed: SignedReceipt,
    /// Where it stands in the log.
    pub inclusion: InclusionProof,
    /// The signed head of the log.
    pub head: SignedHead,
    /// Proof that the log continues the head that the receipt names as `previous`; None for the
    /// first receipt alone.
    pub consistency: Option<ConsistencyProof>,
    /// The receipts that name the keys of the log, oldest first: its first receipt and every
    /// hand-over. Empty for a log whose first key still signs.
    pub keys: Vec<KeyLink>,
    /// An RFC 3161 time stamp token over the receipt's signature, in DER, where one was attached.
    pub stamp: Option<Vec<u8>>,
}

/// A receipt that names keys, and its place in the same log.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLink {
    /// The receipt.
    pub signed: SignedReceipt,
    /// Where it stands in the log.
    pub inclusion: InclusionProof,
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
    /// The time stamp over its signature. Whether the authority really made it is not checked here.
    pub stamp: Option<TimeStamp>,
}

impl ReceiptBundle {
    /// Puts a bundle together. It is not verified here.
    pub fn new(
        signed: SignedReceipt,
        inclusion: InclusionProof,
        head: SignedHead,
    ) -> ReceiptBundle {
        ReceiptBundle {
            signed,
            inclusion,
            head,
            consistency: None,
            keys: Vec::new(),
            stamp: None,
        }
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReceiptFault> {
        let origin = &self.signed.receipt.origin;
        let mut builder = self.with_receipt(origin, &self.inclusion)?;
        if let Some(stamp) = &self.stamp {
            builder = builder.value(cose::STAMP, Value::from(stamp.as_slice()));
        }
        if !self.keys.is_empty() {
            let mut links = Vec::with_capacity(self.keys.len());
            for link in &self.keys {
                let header = self.with_receipt(origin, &link.inclusion)?.build();
                links.push(Value::from(link.signed.to_bytes_with(header)?));
            }
            builder = builder.text_value(KEYS.to_owned(), Value::Array(links));
        }
        builder = builder.text_value(
            CHECKPOINT.to_owned(),
            Value::from(self.head.checkpoint.as_str()),
        );
        if let Some(proof) = &self.consistency {
            let receipt = self.head.receipt(origin, &TreeProof::Consistency(proof))?;
            builder = builder.text_value(CONSISTENCY.to_owned(), Value::from(receipt));
        }
        let bytes = self.signed.to_bytes_with(builder.build())?;
        check_size(bytes.len())?;
        Ok(bytes)
    }

    /// A header with the COSE receipt of a place in the log.
    fn with_receipt(
        &self,
        origin: &str,
        proof: &InclusionProof,
    ) -> Result<HeaderBuilder, ReceiptFault> {
        let receipt = self.head.receipt(origin, &TreeProof::Inclusion(proof))?;
        Ok(HeaderBuilder::new().value(cose::RECEIPTS, Value::Array(vec![Value::from(receipt)])))
    }

    /// Reads the bytes of a file; nothing is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<ReceiptBundle, ReceiptFault> {
        check_size(bytes.len())?;
        let message = ReadMessage::parse(bytes)?;
        let signed = SignedReceipt::from_message(&message)?;
        let receipt = attached_receipt(&message)?;
        let text = |label: &str| message.unprotected(&Label::Text(label.to_owned()));
        let Some(checkpoint) = text(CHECKPOINT).and_then(Value::as_text) else {
            return Err(ReceiptFault::Encoding("it holds no checkpoint"));
        };
        let head = SignedHead {
            checkpoint: checkpoint.to_owned(),
            key_id: receipt.key_id()?,
            signature: receipt.signature()?,
        };
        let mut bundle = ReceiptBundle::new(signed, receipt.inclusion()?, head);
        bundle.stamp = message
            .unprotected(&Label::Int(cose::STAMP))
            .and_then(Value::as_bytes)
            .cloned();
        if let Some(bytes) = text(CONSISTENCY).and_then(Value::as_bytes) {
            bundle.consistency = Some(ReadMessage::parse(bytes)?.consistency()?);
        }
        for link in text(KEYS)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
        {
            let bytes = link
                .as_bytes()
                .ok_or(ReceiptFault::Encoding("its list of keys holds no bytes"))?;
            let message = ReadMessage::parse(bytes)?;
            let inclusion = attached_receipt(&message)?.inclusion()?;
            bundle.keys.push(KeyLink {
                signed: SignedReceipt::from_message(&message)?,
                inclusion,
            });
        }
        // There is one way to write it: headers that nobody asked for, or another order, are found
        // here.
        if bundle.to_bytes()? != bytes {
            return Err(ReceiptFault::Encoding(
                "it is not written in the one way of a receipt with its proofs",
            ));
        }
        Ok(bundle)
    }
}

fn check_size(size: usize) -> Result<(), ReceiptFault> {
    if size > MAX_BUNDLE_BYTES {
        return Err(ReceiptFault::TooLarge {
            what: "the receipt's file",
            size,
            limit: MAX_BUNDLE_BYTES,
        });
    }
    Ok(())
}

/// The one COSE receipt that is attached to a statement.
fn attached_receipt(message: &ReadMessage) -> Result<ReadMessage, ReceiptFault> {
    const BAD: ReceiptFault =
        ReceiptFault::Encoding("it does not hold one COSE receipt (RFC 9942)");
    let list = message
        .unprotected(&Label::Int(cose::RECEIPTS))
        .and_then(Value::as_array)
        .ok_or(BAD)?;
    let [receipt] = list.as_slice() else {
        return Err(BAD);
    };
    ReadMessage::parse(receipt.as_bytes().ok_or(BAD)?)
}

/// Reads and verifies a bundle.
pub fn verify_bytes(bytes: &[u8], keys: &KeyRing) -> Result<VerifiedReceipt, ReceiptFault> {
    verify(&ReceiptBundle::parse(bytes)?, keys)
}

/// Verifies a bundle: the keys, the head of the log, the receipt and its signature, its place in
/// the log, and that the log continues the one that the receipt was written on.
///
/// Any key of the log from the receipt's own time on will do. A hand-over that a known key signed
/// leads on to later keys; one that the signed log contains leads back to earlier ones.
pub fn verify(bundle: &ReceiptBundle, keys: &KeyRing) -> Result<VerifiedReceipt, ReceiptFault> {
    if bundle.keys.len() > MAX_ROTATIONS {
        let size = bundle.keys.len();
        return Err(ReceiptFault::TooLarge {
            what: "the list of keys",
            size,
            limit: MAX_ROTATIONS,
        });
    }
    let places = || bundle.keys.iter().map(|link| link.signed.receipt.sequence);
    if places()
        .zip(places().skip(1))
        .any(|(first, second)| first >= second)
    {
        return Err(ReceiptFault::Schema(
            "hand-overs are listed oldest first, each once".to_owned(),
        ));
    }
    let mut keys = keys.clone();
    let mut earlier = Vec::new();
    for link in &bundle.keys {
        if keys.knows_signer(&link.signed) {
            keys.follow(&link.signed)?;
        } else {
            earlier.push(link);
        }
    }
    let checkpoint = bundle.head.verify(&keys)?;
    for link in &bundle.keys {
        check_place(&link.signed, &link.inclusion, &checkpoint)?;
    }
    for link in earlier.into_iter().rev() {
        keys.recall(&link.signed)?;
    }
    let receipt = &bundle.signed.receipt;
    let key = bundle.signed.verify(&keys)?;
    check_place(&bundle.signed, &bundle.inclusion, &checkpoint)?;
    match (&receipt.previous, &bundle.consistency) {
        // The first receipt was written on no head, so that there is nothing to continue.
        (None, None) => {}
        (Some(head), Some(proof)) if proof.old == head.size && proof.new == checkpoint.size => {
            proof.verify(&head.root, &checkpoint.root)?;
        }
        _ => {
            return Err(ReceiptFault::Previous {
                sequence: receipt.sequence,
            });
        }
    }
    let stamp = bundle
        .stamp
        .as_deref()
        .map(|token| read_stamp(token, &bundle.signed))
        .transpose()?;
    Ok(VerifiedReceipt {
        receipt: receipt.clone(),
        key: key.clone(),
        checkpoint,
        stamp,
    })
}

/// A token that is attached must be of this receipt, and be a token and nothing more.
fn read_stamp(token: &[u8], signed: &SignedReceipt) -> Result<TimeStamp, ReceiptFault> {
    let stamp = TimeStamp::parse(token)?;
    stamp.check(&signed.signature)?;
    if stamp.token == token {
        Ok(stamp)
    } else {
        Err(ReceiptFault::Stamp("it is an answer, and no token alone"))
    }
}

/// A receipt is in the log that a checkpoint signs, at the place that it states.
fn check_place(
    signed: &SignedReceipt,
    proof: &InclusionProof,
    checkpoint: &LogCheckpoint,
) -> Result<(), ReceiptFault> {
    let receipt = &signed.receipt;
    if receipt.origin != checkpoint.origin {
        let receipt = receipt.origin.clone();
        return Err(ReceiptFault::Origin {
            receipt,
            checkpoint: checkpoint.origin.clone(),
        });
    }
    if receipt.sequence != proof.index {
        return Err(ReceiptFault::Sequence {
            stated: receipt.sequence,
            proven: proof.index,
        });
    }
    if proof.size != checkpoint.size {
        return Err(ReceiptFault::ProofSize {
            proof: proof.size,
            checkpoint: checkpoint.size,
        });
    }
    proof.verify(&signed.to_bytes()?, &checkpoint.root)
}

/// Checks that the log of a newer checkpoint continues the log of an older one. Both are verified
/// first.
///
/// Two checkpoints of one size and different roots are a fork: the log told two stories, and both
/// signatures prove it.
pub fn verify_succession(
    old: &str,
    new: &str,
    proof: &ConsistencyProof,
    keys: &KeyRing,
) -> Result<(LogCheckpoint, LogCheckpoint), ReceiptFault> {
    let old = LogCheckpoint::verify(old, keys)?;
    let new = LogCheckpoint::verify(new, keys)?;
    if old.origin != new.origin {
        return Err(ReceiptFault::Origin {
            receipt: old.origin,
            checkpoint: new.origin,
        });
    }
    if new.size < old.size {
        return Err(ReceiptFault::Shrunk {
            old: old.size,
            new: new.size,
        });
    }
    if new.size == old.size && new.root != old.root {
        return Err(ReceiptFault::Fork {
            size: old.size,
            first: old.root,
            second: new.root,
        });
    }
    if (proof.old, proof.new) != (old.size, new.size) {
        return Err(ReceiptFault::Consistency {
            old: old.size,
            new: new.size,
        });
    }
    proof.verify(&old.root, &new.root)?;
    Ok((old, new))
}
