//! The COSE side of receipts (RFC 9052): what is signed, and how it is written.
//!
//! A receipt is signed as a COSE_Sign1 whose payload is its canonical JSON. The head of the log is
//! signed as a COSE receipt (RFC 9942): a COSE_Sign1 over the root of the tree, whose unprotected
//! header holds the proof. Both are written in one way only, so that reading compares with what
//! would be written and nothing can hide in another encoding.

use coset::{
    CborSerializable, CoseSign1, CoseSign1Builder, Header, HeaderBuilder, Label, ProtectedHeader,
    SignatureContext, TaggedCborSerializable, cbor::Value, iana, sig_structure_data,
};

use crate::{
    fault::ReceiptFault,
    hash::Hash,
    log::{ConsistencyProof, InclusionProof},
    signature::{KeyId, Signature},
};

/// The media type of the payload.
pub const CONTENT_TYPE: &str = "application/vnd.efface.receipt+json";

/// CWT claims in a header (RFC 9597), and the two claims of ours: issuer and subject (RFC 8392).
const CWT_CLAIMS: i64 = 15;
const ISSUER: i64 = 1;
const SUBJECT: i64 = 2;
/// Receipts attached to a statement, the kind of tree, and the proofs of a receipt (RFC 9942).
pub(crate) const RECEIPTS: i64 = 394;
const TREE: i64 = 395;
/// An RFC 3161 time stamp of the signature, `3161-ctt` (RFC 9921).
pub(crate) const STAMP: i64 = 270;
const PROOFS: i64 = 396;
/// The tree of RFC 9162 with SHA-256, which hashes as RFC 6962.
const RFC9162_SHA256: i64 = 1;
const INCLUSION: i64 = -1;
const CONSISTENCY: i64 = -2;

/// What a signature is over, and who is named beside it.
pub(crate) enum SignedPart<'a> {
    /// A receipt: the canonical JSON, the log, and the receipt's id.
    Statement {
        payload: &'a [u8],
        origin: &'a str,
        id: &'a str,
    },
    /// The head of a log: its root and its name.
    Head { root: &'a Hash, origin: &'a str },
}

impl SignedPart<'_> {
    fn protected(&self, key: KeyId) -> ProtectedHeader {
        let builder = HeaderBuilder::new()
            .algorithm(iana::Algorithm::EdDSA)
            .key_id(key.0.to_vec());
        let header = match self {
            Self::Statement { origin, id, .. } => builder
                .content_type(CONTENT_TYPE.to_owned())
                .value(CWT_CLAIMS, claims(origin, id))
                .build(),
            Self::Head { origin, .. } => builder
                .value(CWT_CLAIMS, claims(origin, origin))
                .value(TREE, Value::from(RFC9162_SHA256))
                .build(),
        };
        ProtectedHeader {
            original_data: None,
            header,
        }
    }

    /// The bytes that are signed: the Sig_structure of RFC 9052, section 4.4.
    pub(crate) fn message(&self, key: KeyId) -> Vec<u8> {
        let payload = match self {
            Self::Statement { payload, .. } => payload,
            Self::Head { root, .. } => root.as_bytes().as_slice(),
        };
        sig_structure_data(
            SignatureContext::CoseSign1,
            self.protected(key),
            None,
            &[],
            payload,
        )
    }

    /// The whole COSE_Sign1. A head is written without its payload: the reader computes the root
    /// from the proof.
    pub(crate) fn write(
        &self,
        key: KeyId,
        signature: &Signature,
        unprotected: Header,
    ) -> Result<Vec<u8>, ReceiptFault> {
        let mut builder = CoseSign1Builder::new()
            .protected(self.protected(key).header)
            .unprotected(unprotected)
            .signature(signature.0.to_vec());
        if let Self::Statement { payload, .. } = self {
            builder = builder.payload(payload.to_vec());
        }
        builder
            .build()
            .to_tagged_vec()
            .map_err(|_| ReceiptFault::Unwritable("it cannot be written as COSE"))
    }
}

fn claims(issuer: &str, subject: &str) -> Value {
    Value::Map(vec![
        (Value::from(ISSUER), Value::from(issuer)),
        (Value::from(SUBJECT), Value::from(subject)),
    ])
}

/// The proof in a COSE receipt.
pub(crate) enum TreeProof<'a> {
    Inclusion(&'a InclusionProof),
    Consistency(&'a ConsistencyProof),
}

impl TreeProof<'_> {
    /// The unprotected header of the receipt that holds this proof.
    pub(crate) fn header(&self) -> Result<Header, ReceiptFault> {
        let (kind, numbers, path) = match self {
            Self::Inclusion(proof) => (INCLUSION, [proof.size, proof.index], &proof.path),
            Self::Consistency(proof) => (CONSISTENCY, [proof.old, proof.new], &proof.path),
        };
        let mut parts: Vec<Value> = numbers.into_iter().map(Value::from).collect();
        parts.push(Value::Array(
            path.iter()
                .map(|hash| Value::from(hash.as_bytes().as_slice()))
                .collect(),
        ));
        let bytes = Value::Array(parts)
            .to_vec()
            .map_err(|_| ReceiptFault::Unwritable("the proof cannot be written as CBOR"))?;
        let proofs = Value::Map(vec![(
            Value::from(kind),
            Value::Array(vec![Value::from(bytes)]),
        )]);
        Ok(HeaderBuilder::new().value(PROOFS, proofs).build())
    }
}

/// A COSE_Sign1 that was read and not checked.
pub(crate) struct ReadMessage(CoseSign1);

impl ReadMessage {
    pub(crate) fn parse(bytes: &[u8]) -> Result<ReadMessage, ReceiptFault> {
        let problem = "it is no COSE_Sign1 (RFC 9052)";
        CoseSign1::from_tagged_slice(bytes)
            .map(ReadMessage)
            .map_err(|_| ReceiptFault::Encoding(problem))
    }

    pub(crate) fn payload(&self) -> Option<&[u8]> {
        self.0.payload.as_deref()
    }

    pub(crate) fn signature(&self) -> Result<Signature, ReceiptFault> {
        let bytes = <[u8; 64]>::try_from(self.0.signature.as_slice());
        bytes
            .map(Signature)
            .map_err(|_| ReceiptFault::Encoding("an Ed25519 signature has 64 bytes"))
    }

    /// The key that the header names.
    pub(crate) fn key_id(&self) -> Result<KeyId, ReceiptFault> {
        let bytes = <[u8; 4]>::try_from(self.0.protected.header.key_id.as_slice());
        bytes
            .map(KeyId)
            .map_err(|_| ReceiptFault::Encoding("a key id has 4 bytes"))
    }

    /// A value of the unprotected header.
    pub(crate) fn unprotected(&self, label: &Label) -> Option<&Value> {
        self.0
            .unprotected
            .rest
            .iter()
            .find(|(found, _)| found == label)
            .map(|(_, value)| value)
    }

    /// The inclusion proof of a COSE receipt.
    pub(crate) fn inclusion(&self) -> Result<InclusionProof, ReceiptFault> {
        let ([size, index], path) = self.proof(INCLUSION)?;
        Ok(InclusionProof { index, size, path })
    }

    /// The consistency proof of a COSE receipt.
    pub(crate) fn consistency(&self) -> Result<ConsistencyProof, ReceiptFault> {
        let ([old, new], path) = self.proof(CONSISTENCY)?;
        Ok(ConsistencyProof { old, new, path })
    }

    fn proof(&self, kind: i64) -> Result<([u64; 2], Vec<Hash>), ReceiptFault> {
        const BAD: ReceiptFault =
            ReceiptFault::Encoding("it holds no proof of the form of RFC 9942");
        let proofs = self
            .unprotected(&Label::Int(PROOFS))
            .and_then(Value::as_map)
            .ok_or(BAD)?;
        let [(label, list)] = proofs.as_slice() else {
            return Err(BAD);
        };
        let [proof] = list.as_array().map(Vec::as_slice).ok_or(BAD)? else {
            return Err(BAD);
        };
        if *label != Value::from(kind) {
            return Err(BAD);
        }
        let parts = Value::from_slice(proof.as_bytes().ok_or(BAD)?).map_err(|_| BAD)?;
        let [first, second, path] = parts.as_array().map(Vec::as_slice).ok_or(BAD)? else {
            return Err(BAD);
        };
        let number = |value: &Value| {
            value
                .as_integer()
                .and_then(|number| u64::try_from(number).ok())
        };
        let numbers = [number(first).ok_or(BAD)?, number(second).ok_or(BAD)?];
        let hash = |value: &Value| {
            value
                .as_bytes()
                .and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok())
        };
        let path: Option<Vec<Hash>> = path
            .as_array()
            .ok_or(BAD)?
            .iter()
            .map(|value| hash(value).map(Hash))
            .collect();
        Ok((numbers, path.ok_or(BAD)?))
    }
}
