//! A receipt with its signature: a COSE_Sign1 (RFC 9052) whose payload is the receipt's canonical JSON. Its bytes are the
//! leaf of the log.

use crate::{
    canonical,
    cose::{ReadMessage, SignedPart},
    fault::ReceiptFault,
    hash::{Hash, leaf_hash},
    keyring::KeyRing,
    limits::MAX_RECEIPT_BYTES,
    receipt::Receipt,
    signature::{PublicKey, ReceiptSigner, Signature},
};

/// A receipt with its signature.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// Over the Sig_structure of its COSE form.
    pub signature: Signature,
}

impl SignedReceipt {
    /// Signs a receipt that names this key as its origin and key id.
    pub fn sign(receipt: Receipt, signer: &dyn ReceiptSigner) -> Result<SignedReceipt, ReceiptFault> {
        receipt.check()?;
        let key = signer.public_key();
        if receipt.origin != key.name() || receipt.key_id != key.id() {
            return Err(ReceiptFault::UnknownKey { name: receipt.origin, id: receipt.key_id });
        }
        let signature = signer.sign(&message(&receipt)?)?;
        // What is given back is what a reader will see: a receipt that no verifier reads must not enter the log.
        SignedReceipt::parse(&SignedReceipt { receipt, signature }.to_bytes()?)
    }

    /// The bytes of the COSE_Sign1, which are the leaf of the log.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReceiptFault> {
        self.to_bytes_with(coset::Header::default())
    }

    /// The same, with an unprotected header: what belongs to a receipt and is not part of the leaf.
    pub(crate) fn to_bytes_with(&self, unprotected: coset::Header) -> Result<Vec<u8>, ReceiptFault> {
        let payload = canonical::to_bytes(&self.receipt)?;
        if payload.len() > MAX_RECEIPT_BYTES {
            let size = payload.len();
            return Err(ReceiptFault::TooLarge { what: "the receipt", size, limit: MAX_RECEIPT_BYTES });
        }
        part(&self.receipt, &payload).write(self.receipt.key_id, &self.signature, unprotected)
    }

    /// Reads the bytes of a leaf; nothing is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<SignedReceipt, ReceiptFault> {
        // The COSE form adds two headers and a signature to the JSON.
        let limit = MAX_RECEIPT_BYTES + 1024;
        if bytes.len() > limit {
            return Err(ReceiptFault::TooLarge { what: "the signed receipt", size: bytes.len(), limit });
        }
        let signed = SignedReceipt::from_message(&ReadMessage::parse(bytes)?)?;
        // There is one way to write it: what reads the same and is written otherwise was not written by a signer.
        if signed.to_bytes()? != bytes {
            return Err(ReceiptFault::Encoding("it is not written in the one way of a signed receipt"));
        }
        Ok(signed)
    }

    /// The receipt in a message. The caller compares the bytes with those that would be written.
    pub(crate) fn from_message(message: &ReadMessage) -> Result<SignedReceipt, ReceiptFault> {
        let payload = message.payload().ok_or(ReceiptFault::Encoding("it has no payload"))?;
        let receipt: Receipt = canonical::from_bytes(payload, "the receipt", MAX_RECEIPT_BYTES)?;
        // A null that was left out reads the same but is not the one form that gets signed.
        if canonical::to_bytes(&receipt)? != payload {
            return Err(ReceiptFault::Schema("a field is missing".to_owned()));
        }
        Ok(SignedReceipt { receipt, signature: message.signature()? })
    }

    /// The hash of this receipt as a leaf of the log.
    pub fn leaf(&self) -> Result<Hash, ReceiptFault> {
        Ok(leaf_hash(&self.to_bytes()?))
    }

    /// Checks the receipt itself and its signature; gives the key that signed.
    pub fn verify<'k>(&self, keys: &'k KeyRing) -> Result<&'k PublicKey, ReceiptFault> {
        self.receipt.check()?;
        let key = keys.active(&self.receipt.origin, self.receipt.key_id, self.receipt.sequence)?;
        self.verify_by(key)?;
        Ok(key)
    }

    /// Checks the signature with one key, whether trusted or not.
    pub(crate) fn verify_by(&self, key: &PublicKey) -> Result<(), ReceiptFault> {
        if key.verifies(&message(&self.receipt)?, &self.signature) {
            Ok(())
        } else {
            Err(ReceiptFault::ReceiptSignature)
        }
    }
}

fn part<'a>(receipt: &'a Receipt, payload: &'a [u8]) -> SignedPart<'a> {
    SignedPart::Statement { payload, origin: &receipt.origin, id: &receipt.id }
}

fn message(receipt: &Receipt) -> Result<Vec<u8>, ReceiptFault> {
    Ok(part(receipt, &canonical::to_bytes(receipt)?).message(receipt.key_id))
}
