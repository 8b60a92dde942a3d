//! A receipt with its signature: a COSE_Sign1 (RFC 9052) whose payload is the receipt's canonical
//! JSON. Its bytes are the leaf of the log.

use crate::{
    canonical,
    cose::{ReadMessage, SignedPart},
    fault::ReceiptFault,
    hash::{Hash, leaf_hash},
    json_form::JsonForm,
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
    pub fn sign(
        receipt: Receipt,
        signer: &dyn ReceiptSigner,
    ) -> Result<SignedReceipt, ReceiptFault> {
        Ok(Self::sign_leaf(receipt, signer)?.0)
    }

    /// Signs a receipt, and gives the bytes of the leaf too.
    pub fn sign_leaf(
        receipt: Receipt,
        signer: &dyn ReceiptSigner,
    ) -> Result<(SignedReceipt, Vec<u8>), ReceiptFault> {
        receipt.check()?;
        let key = signer.public_key();
        if receipt.origin != key.name() || receipt.key_id != key.id() {
            return Err(ReceiptFault::UnknownKey {
                name: receipt.origin,
                id: receipt.key_id,
            });
        }
        let payload = payload(&receipt)?;
        let part = part(&receipt, &payload);
        let signature = signer.sign(&part.message(receipt.key_id))?;
        let bytes = part.write(receipt.key_id, &signature, coset::Header::default())?;
        // What is given back is what a reader will see: a receipt that no verifier reads must not
        // enter the log.
        Ok((SignedReceipt::parse(&bytes)?, bytes))
    }

    /// The bytes of the COSE_Sign1, which are the leaf of the log.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReceiptFault> {
        self.to_bytes_with(coset::Header::default())
    }

    /// The same, with an unprotected header: what belongs to a receipt and is not part of the leaf.
    pub(crate) fn to_bytes_with(
        &self,
        unprotected: coset::Header,
    ) -> Result<Vec<u8>, ReceiptFault> {
        let payload = payload(&self.receipt)?;
        part(&self.receipt, &payload).write(self.receipt.key_id, &self.signature, unprotected)
    }

    /// Reads the bytes of a leaf; nothing is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<SignedReceipt, ReceiptFault> {
        // The COSE form adds two headers and a signature to the JSON.
        let limit = MAX_RECEIPT_BYTES + 1024;
        if bytes.len() > limit {
            return Err(ReceiptFault::TooLarge {
                what: "the signed receipt",
                size: bytes.len(),
                limit,
            });
        }
        let message = ReadMessage::parse(bytes)?;
        let signed = SignedReceipt::from_message(&message)?;
        // The payload was compared with the one form of this receipt.
        let part = part(&signed.receipt, message.payload().unwrap_or_default());
        // There is one way to write it: what reads the same and is written otherwise was not
        // written by a signer.
        if part.write(
            signed.receipt.key_id,
            &signed.signature,
            coset::Header::default(),
        )? != bytes
        {
            return Err(ReceiptFault::Encoding(
                "it is not written in the one way of a signed receipt",
            ));
        }
        Ok(signed)
    }

    /// The receipt in a message. The caller compares the bytes with those that would be written.
    pub(crate) fn from_message(message: &ReadMessage) -> Result<SignedReceipt, ReceiptFault> {
        let payload = message
            .payload()
            .ok_or(ReceiptFault::Encoding("it has no payload"))?;
        let receipt: Receipt = canonical::from_bytes(payload, "the receipt", MAX_RECEIPT_BYTES)?;
        // A null that was left out reads the same but is not the one form that gets signed.
        if canonical::write(&receipt.to_json())? != payload {
            return Err(ReceiptFault::Schema("a field is missing".to_owned()));
        }
        Ok(SignedReceipt {
            receipt,
            signature: message.signature()?,
        })
    }

    /// The hash of this receipt as a leaf of the log.
    pub fn leaf(&self) -> Result<Hash, ReceiptFault> {
        Ok(leaf_hash(&self.to_bytes()?))
    }

    /// Checks the receipt itself and its signature; gives the key that signed.
    pub fn verify<'k>(&self, keys: &'k KeyRing) -> Result<&'k PublicKey, ReceiptFault> {
        self.receipt.check()?;
        let key = keys.active(
            &self.receipt.origin,
            self.receipt.key_id,
            self.receipt.sequence,
        )?;
        self.verify_by(key)?;
        Ok(key)
    }

    /// Checks the signature with one key, whether trusted or not.
    pub(crate) fn verify_by(&self, key: &PublicKey) -> Result<(), ReceiptFault> {
        let message = part(&self.receipt, &payload(&self.receipt)?).message(self.receipt.key_id);
        if key.verifies(&message, &self.signature) {
            Ok(())
        } else {
            Err(ReceiptFault::ReceiptSignature)
        }
    }
}

fn part<'a>(receipt: &'a Receipt, payload: &'a [u8]) -> SignedPart<'a> {
    SignedPart::Statement {
        payload,
        origin: &receipt.origin,
        id: &receipt.id,
    }
}

/// The canonical JSON of a receipt.
fn payload(receipt: &Receipt) -> Result<Vec<u8>, ReceiptFault> {
    let payload = canonical::write(&receipt.to_json())?;
    if payload.len() > MAX_RECEIPT_BYTES {
        let size = payload.len();
        return Err(ReceiptFault::TooLarge {
            what: "the receipt",
            size,
            limit: MAX_RECEIPT_BYTES,
        });
    }
    Ok(payload)
}
