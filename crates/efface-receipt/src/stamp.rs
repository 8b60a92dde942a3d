//! RFC 3161 time stamps: what an authority is asked, and what its token says. The token lies in the
//! unprotected header of the signed receipt under `3161-ctt` (RFC 9921): it is over the receipt's
//! signature, and shows that the receipt was signed before that time.
//!
//! The authority's own signature, and whether it is one to trust, is not checked here: `openssl ts
//! -verify` does (docs/receipt.md).

use der::asn1::{AnyRef, ObjectIdentifier, OctetStringRef, UintRef};
use der::{Decode, Encode, Reader, Sequence, SliceReader, Tag, TagNumber, Tagged};

use crate::{
    fault::ReceiptFault,
    hash::{Hash, hash_parts},
    limits::MAX_STAMP_BYTES,
    signature::Signature,
};

const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");

/// The tag around what a token holds.
const OUTER: Tag = Tag::ContextSpecific {
    constructed: true,
    number: TagNumber(0),
};

const BAD: ReceiptFault = ReceiptFault::Stamp("it is no RFC 3161 time stamp in DER");

/// The name of an algorithm (RFC 5280).
#[derive(Sequence)]
struct AlgorithmName<'a> {
    algorithm: ObjectIdentifier,
    #[asn1(optional = "true")]
    parameters: Option<AnyRef<'a>>,
}

/// A hash, and by which algorithm.
#[derive(Sequence)]
struct MessageImprint<'a> {
    algorithm: AlgorithmName<'a>,
    hashed: &'a OctetStringRef,
}

/// What an authority is asked.
#[derive(Sequence)]
struct StampRequest<'a> {
    version: u8,
    imprint: MessageImprint<'a>,
    nonce: UintRef<'a>,
    /// Whether the token is to hold the authority's certificate.
    certificates: bool,
}

/// What a time stamp says. Nothing of it is checked but its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeStamp {
    /// The token (RFC 3161 TimeStampToken) in DER.
    pub token: Vec<u8>,
    /// When, as the authority wrote it: `2026-03-02T09:15:00Z`, perhaps with a fraction of the
    /// second.
    pub time: String,
    /// The authority's name for itself; None where the token has none.
    pub authority: Option<String>,
    imprint: Hash,
    nonce: Option<Vec<u8>>,
}

/// The hash that a time stamp of a signed receipt is over: of the signature as COSE writes it, a
/// byte string of 64 bytes.
pub fn stamp_imprint(signature: &Signature) -> Hash {
    hash_parts(&[&[0x58, 0x40], &signature.0])
}

/// The request for a time stamp of a signed receipt (RFC 3161 TimeStampReq), in DER. The nonce is
/// drawn by the caller.
pub fn stamp_request(signature: &Signature, nonce: &[u8; 8]) -> Result<Vec<u8>, ReceiptFault> {
    let Hash(imprint) = stamp_imprint(signature);
    let unwritable = |_| ReceiptFault::Stamp("the request cannot be written");
    let null = AnyRef::new(Tag::Null, &[]).map_err(unwritable)?;
    let imprint = MessageImprint {
        algorithm: AlgorithmName {
            algorithm: SHA256,
            parameters: Some(null),
        },
        hashed: OctetStringRef::new(&imprint).map_err(unwritable)?,
    };
    let nonce = UintRef::new(nonce).map_err(unwritable)?;
    StampRequest {
        version: 1,
        imprint,
        nonce,
        certificates: true,
    }
    .to_der()
    .map_err(unwritable)
}

impl TimeStamp {
    /// Reads an authority's answer (TimeStampResp), or the token alone.
    pub fn parse(bytes: &[u8]) -> Result<TimeStamp, ReceiptFault> {
        if bytes.len() > MAX_STAMP_BYTES {
            let size = bytes.len();
            return Err(ReceiptFault::TooLarge {
                what: "the time stamp",
                size,
                limit: MAX_STAMP_BYTES,
            });
        }
        let whole = AnyRef::from_der(bytes).map_err(|_| BAD)?;
        let parts = inside(&[whole], 0, Tag::Sequence)?;
        let mut token = whole;
        if parts
            .first()
            .is_some_and(|first| first.tag() == Tag::Sequence)
        {
            // An answer: its status, and the token where it was granted.
            let status = items(parts[0])?
                .first()
                .and_then(|status| status.decode_as::<u8>().ok());
            if !matches!(status, Some(0 | 1)) {
                return Err(ReceiptFault::Stamp("the authority did not grant it"));
            }
            token = *parts.get(1).ok_or(BAD)?;
        }
        let content = inside(&[token], 0, Tag::Sequence)?;
        let signed = inside(&inside(&content, 1, OUTER)?, 0, Tag::Sequence)?;
        let wrapped = inside(&signed, 2, Tag::Sequence)?;
        let text = inside(&inside(&wrapped, 1, OUTER)?, 0, Tag::OctetString)?;
        let info = inside(&text, 0, Tag::Sequence)?;
        let kinds_fit = oid(content[0]) == Some(SIGNED_DATA) && oid(wrapped[0]) == Some(TST_INFO);
        if !kinds_fit || content.len() != 2 || wrapped.len() != 2 || text.len() != 1 {
            return Err(BAD);
        }
        let [_version, _policy, imprint, _serial, time, rest @ ..] = info.as_slice() else {
            return Err(BAD);
        };
        let imprint = imprint.decode_as::<MessageImprint<'_>>().map_err(|_| BAD)?;
        if imprint.algorithm.algorithm != SHA256 {
            return Err(ReceiptFault::Stamp("its hash is not SHA-256"));
        }
        let imprint = <[u8; 32]>::try_from(imprint.hashed.as_bytes()).map_err(|_| BAD)?;
        let nonce = rest.iter().find(|part| part.tag() == Tag::Integer);
        let named = rest.iter().find(|part| part.tag() == OUTER);
        Ok(TimeStamp {
            token: token.to_der().map_err(|_| BAD)?,
            time: readable_time(*time).ok_or(BAD)?,
            authority: named.and_then(|name| authority(*name)),
            imprint: Hash(imprint),
            nonce: nonce.map(|nonce| unsigned(nonce.value()).to_vec()),
        })
    }

    /// Whether the stamp is over the signature of this receipt.
    pub fn check(&self, signature: &Signature) -> Result<(), ReceiptFault> {
        if self.imprint == stamp_imprint(signature) {
            Ok(())
        } else {
            Err(ReceiptFault::Stamp(
                "it is of something else than this receipt",
            ))
        }
    }

    /// Whether the stamp answers this request and no other.
    pub fn answers(&self, request: &[u8]) -> Result<(), ReceiptFault> {
        let request = StampRequest::from_der(request)
            .map_err(|_| ReceiptFault::Stamp("it is no request in DER"))?;
        let asked = unsigned(request.nonce.as_bytes());
        if self.nonce.as_deref() == Some(asked)
            && request.imprint.hashed.as_bytes() == self.imprint.as_bytes()
        {
            Ok(())
        } else {
            Err(ReceiptFault::Stamp(
                "it answers another request: hash or nonce differ",
            ))
        }
    }
}

/// What is in the value at a place, which must have this tag.
fn inside<'a>(parts: &[AnyRef<'a>], at: usize, tag: Tag) -> Result<Vec<AnyRef<'a>>, ReceiptFault> {
    match parts.get(at) {
        Some(part) if part.tag() == tag => items(*part),
        _ => Err(BAD),
    }
}

/// What a value is made of.
fn items<'a>(value: AnyRef<'a>) -> Result<Vec<AnyRef<'a>>, ReceiptFault> {
    let mut reader = SliceReader::new(value.value()).map_err(|_| BAD)?;
    let mut found = Vec::new();
    while !reader.is_finished() {
        found.push(AnyRef::decode(&mut reader).map_err(|_| BAD)?);
    }
    Ok(found)
}

fn oid(value: AnyRef<'_>) -> Option<ObjectIdentifier> {
    value.decode_as::<ObjectIdentifier>().ok()
}

/// A positive integer without the zero byte that keeps it positive.
fn unsigned(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// `20260302091500.25Z` as `2026-03-02T09:15:00.25Z`.
fn readable_time(value: AnyRef<'_>) -> Option<String> {
    let text = std::str::from_utf8(value.value()).ok()?;
    let (digits, fraction) = text.strip_suffix('Z')?.split_at_checked(14)?;
    let fraction_is_plain = fraction.is_empty()
        || fraction
            .strip_prefix('.')
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()));
    let plain = value.tag() == Tag::GeneralizedTime
        && digits.bytes().all(|c| c.is_ascii_digit())
        && fraction_is_plain;
    let at = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    plain.then(|| {
        format!(
            "{}-{}-{}T{}:{}:{}{fraction}Z",
            at(0, 4),
            at(4, 6),
            at(6, 8),
            at(8, 10),
            at(10, 12),
            at(12, 14)
        )
    })
}

/// The texts of a directory name, in its order, joined by commas. Control characters are left out:
/// people read it.
fn authority(named: AnyRef<'_>) -> Option<String> {
    let general = *items(named).ok()?.first()?;
    let name = *items(general).ok()?.first()?;
    let mut texts = Vec::new();
    for set in items(name).ok()? {
        for attribute in items(set).ok()? {
            let parts = items(attribute).ok()?;
            let text = std::str::from_utf8(parts.get(1)?.value()).ok()?;
            texts.push(text.chars().filter(|c| !c.is_control()).collect::<String>());
        }
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}
