//! The signed head of a log, in both of its forms: a C2SP checkpoint, which people keep and
//! witnesses sign, and a COSE signature over the root, which makes proofs into COSE receipts (RFC
//! 9942).

use crate::{
    cose::{SignedPart, TreeProof},
    fault::ReceiptFault,
    keyring::KeyRing,
    note::LogCheckpoint,
    signature::{KeyId, ReceiptSigner, Signature},
};

/// The head of a log, signed twice by one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHead {
    /// The checkpoint, a signed note. Witnesses may have added signatures of theirs.
    pub checkpoint: String,
    /// The key of the COSE signature.
    pub key_id: KeyId,
    /// The COSE signature over the root.
    pub signature: Signature,
}

impl SignedHead {
    /// Signs a head in both forms.
    pub fn sign(
        head: &LogCheckpoint,
        signer: &dyn ReceiptSigner,
    ) -> Result<SignedHead, ReceiptFault> {
        let checkpoint = head.sign(signer)?;
        let key_id = signer.public_key().id();
        let part = SignedPart::Head {
            root: &head.root,
            origin: &head.origin,
        };
        Ok(SignedHead {
            checkpoint,
            key_id,
            signature: signer.sign(&part.message(key_id))?,
        })
    }

    /// Checks both signatures; gives the head.
    pub fn verify(&self, keys: &KeyRing) -> Result<LogCheckpoint, ReceiptFault> {
        let head = LogCheckpoint::verify(&self.checkpoint, keys)?;
        let key = keys.active(&head.origin, self.key_id, head.size)?;
        let part = SignedPart::Head {
            root: &head.root,
            origin: &head.origin,
        };
        if key.verifies(&part.message(self.key_id), &self.signature) {
            Ok(head)
        } else {
            Err(ReceiptFault::CheckpointSignature)
        }
    }

    /// The COSE receipt that holds a proof under this head.
    pub(crate) fn receipt(
        &self,
        origin: &str,
        proof: &TreeProof<'_>,
    ) -> Result<Vec<u8>, ReceiptFault> {
        // The payload is left out of a receipt, so that the root does not matter for what is
        // written.
        let part = SignedPart::Head {
            root: &crate::hash::sha256(b""),
            origin,
        };
        part.write(self.key_id, &self.signature, proof.header()?)
    }
}
