//! RFC 3161 time stamps: what an authority is asked, and what its token says. The token lies in the
//! unprotected header of the signed receipt under `3161-ctt` (RFC 9921): it is over the receipt's
//! signature, and shows that the receipt was signed before that time.
//!
//! The authority's own signature, and whether it is one to trust, is not checked here: `openssl ts
//! -verify` does (docs/receipt.md).

use crate::{
    fault::ReceiptFault,
    hash::{Hash, hash_parts},
    limits::MAX_STAMP_BYTES,
    signature::Signature,
};

/// The tags of DER values that a time stamp is made of.
mod tag {
    pub(super) const BOOLEAN: u8 = 0x01;
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const OCTETS: u8 = 0x04;
    pub(super) const NULL: u8 = 0x05;
    pub(super) const OID: u8 = 0x06;
    pub(super) const TIME: u8 = 0x18;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const SET: u8 = 0x31;
    /// The context-specific tags 0 and 1, around other values.
    pub(super) const FIRST: u8 = 0xa0;
    pub(super) const SECOND: u8 = 0xa1;
}

/// Object identifiers as DER writes them: 2.16.840.1.101.3.4.2.1, 1.2.840.113549.1.7.2 and
/// 1.2.840.113549.1.9.16.1.4.
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const TST_INFO: &[u8] = &[
    0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04,
];

const BAD: ReceiptFault = ReceiptFault::Stamp("it is no RFC 3161 time stamp in DER");

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

/// The request for a time stamp of a signed receipt (RFC 3161 TimeStampReq), in DER, which asks for
/// the authority's certificate too. The nonce is drawn by the caller.
pub fn stamp_request(signature: &Signature, nonce: &[u8; 8]) -> Vec<u8> {
    let Hash(imprint) = stamp_imprint(signature);
    let algorithm = short(
        tag::SEQUENCE,
        &[&short(tag::OID, &[SHA256]), &[tag::NULL, 0]],
    );
    let imprint = short(
        tag::SEQUENCE,
        &[&algorithm, &short(tag::OCTETS, &[&imprint])],
    );
    // A zero byte in front keeps the number positive.
    let nonce = unsigned(nonce);
    let sign: &[u8] = match nonce.first() {
        Some(0..=127) => &[],
        _ => &[0],
    };
    let nonce = short(tag::INTEGER, &[sign, nonce]);
    let version = [tag::INTEGER, 1, 1];
    let certificates = [tag::BOOLEAN, 1, 0xff];
    short(tag::SEQUENCE, &[&version, &imprint, &nonce, &certificates])
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
        let [whole] = fields(bytes, [tag::SEQUENCE], &[])?.0;
        let parts = items(whole.content)?;
        let mut token = whole;
        if let [status, ..] = parts[..]
            && status.tag == tag::SEQUENCE
        {
            // An answer: its status, and the token where it was granted.
            let status = items(status.content)?;
            if !status
                .first()
                .is_some_and(|code| code.tag == tag::INTEGER && matches!(code.content, [0 | 1]))
            {
                return Err(ReceiptFault::Stamp("the authority did not grant it"));
            }
            token = *parts.get(1).ok_or(BAD)?;
            if token.tag != tag::SEQUENCE {
                return Err(BAD);
            }
        }
        let [kind, content] = fields(token.content, [tag::OID, tag::FIRST], &[])?.0;
        let [signed] = fields(content.content, [tag::SEQUENCE], &[])?.0;
        let signed_fields = [tag::INTEGER, tag::SET, tag::SEQUENCE];
        let further = [tag::FIRST, tag::SECOND, tag::SET];
        let [_version, _digests, wrapped] = fields(signed.content, signed_fields, &further)?.0;
        let [wrapped_kind, wrapped] = fields(wrapped.content, [tag::OID, tag::FIRST], &[])?.0;
        if kind.content != SIGNED_DATA || wrapped_kind.content != TST_INFO {
            return Err(BAD);
        }
        let [text] = fields(wrapped.content, [tag::OCTETS], &[])?.0;
        let [info] = fields(text.content, [tag::SEQUENCE], &[])?.0;
        let info_fields = [
            tag::INTEGER,
            tag::OID,
            tag::SEQUENCE,
            tag::INTEGER,
            tag::TIME,
        ];
        // Accuracy, ordering, nonce, the authority's name and extensions.
        let further = [
            tag::SEQUENCE,
            tag::BOOLEAN,
            tag::INTEGER,
            tag::FIRST,
            tag::SECOND,
        ];
        let ([_version, _policy, imprint, _serial, time], rest) =
            fields(info.content, info_fields, &further)?;
        let nonce = rest.iter().find(|part| part.tag == tag::INTEGER);
        let named = rest.iter().find(|part| part.tag == tag::FIRST);
        Ok(TimeStamp {
            token: token.whole.to_vec(),
            time: readable_time(time.content).ok_or(BAD)?,
            authority: named.and_then(|name| authority(*name)),
            imprint: hashed(imprint)?,
            nonce: nonce.map(|nonce| unsigned(nonce.content).to_vec()),
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
        let read = || {
            let [request] = fields(request, [tag::SEQUENCE], &[])?.0;
            let further = [tag::OID, tag::INTEGER, tag::BOOLEAN, tag::FIRST];
            let ([_version, imprint], rest) =
                fields(request.content, [tag::INTEGER, tag::SEQUENCE], &further)?;
            let nonce = rest.into_iter().find(|part| part.tag == tag::INTEGER);
            Ok((hashed(imprint)?, nonce.ok_or(BAD)?))
        };
        let (imprint, nonce) =
            read().map_err(|_: ReceiptFault| ReceiptFault::Stamp("it is no request in DER"))?;
        if self.nonce.as_deref() == Some(unsigned(nonce.content)) && imprint == self.imprint {
            Ok(())
        } else {
            Err(ReceiptFault::Stamp(
                "it answers another request: hash or nonce differ",
            ))
        }
    }
}

/// A value in DER.
#[derive(Clone, Copy)]
struct DerValue<'a> {
    tag: u8,
    content: &'a [u8],
    /// The tag, the length and the content.
    whole: &'a [u8],
}

/// Splits the first value off. Its tag has one byte, and its length is written in the shortest form
/// in at most three.
fn first_value(bytes: &[u8]) -> Option<(DerValue<'_>, &[u8])> {
    let (&[tag, length], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=127 => (usize::from(length), rest),
        0x81 => {
            let (&[length], rest) = rest.split_first_chunk::<1>()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (digits, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*digits)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = &bytes[..bytes.len() - rest.len()];
    let header = whole.len() - content.len();
    let shortest = match length {
        0..128 => 2,
        128..256 => 3,
        _ => 4,
    };
    // The five low bits of a tag of several bytes are ones.
    (header == shortest && tag & 0x1f != 0x1f).then_some((
        DerValue {
            tag,
            content,
            whole,
        },
        rest,
    ))
}

/// The values that follow each other.
fn items(mut bytes: &[u8]) -> Result<Vec<DerValue<'_>>, ReceiptFault> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = first_value(bytes).ok_or(BAD)?;
        found.push(value);
        bytes = rest;
    }
    Ok(found)
}

/// The values that follow each other: one for each of the `required` tags, and then some of the
/// `optional` ones, in their order, each at most once.
fn fields<'a, const N: usize>(
    bytes: &'a [u8],
    required: [u8; N],
    optional: &[u8],
) -> Result<([DerValue<'a>; N], Vec<DerValue<'a>>), ReceiptFault> {
    let found = items(bytes)?;
    let (first, rest) = found.split_first_chunk::<N>().ok_or(BAD)?;
    let mut allowed = optional.iter();
    let fits = first.map(|value| value.tag) == required
        && rest
            .iter()
            .all(|value| allowed.any(|tag| *tag == value.tag));
    if fits {
        Ok((*first, rest.to_vec()))
    } else {
        Err(BAD)
    }
}

/// The hash of a MessageImprint, which must be by SHA-256.
fn hashed(imprint: DerValue<'_>) -> Result<Hash, ReceiptFault> {
    let [algorithm, hashed] = fields(imprint.content, [tag::SEQUENCE, tag::OCTETS], &[])?.0;
    let ([algorithm], parameters) = fields(algorithm.content, [tag::OID], &[tag::NULL])?;
    if parameters.iter().any(|null| !null.content.is_empty()) {
        return Err(BAD);
    }
    if algorithm.content != SHA256 {
        return Err(ReceiptFault::Stamp("its hash is not SHA-256"));
    }
    Ok(Hash(<[u8; 32]>::try_from(hashed.content).map_err(|_| BAD)?))
}

/// A value of at most 127 bytes in DER.
fn short(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    [&[tag, content.len() as u8], &content[..]].concat()
}

/// A positive integer without the zero byte that keeps it positive.
fn unsigned(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// `20260302091500.25Z` as `2026-03-02T09:15:00.25Z`.
fn readable_time(written: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(written).ok()?;
    let (digits, fraction) = text.strip_suffix('Z')?.split_at_checked(14)?;
    let fraction_is_plain = fraction.is_empty()
        || fraction
            .strip_prefix('.')
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()));
    let plain = digits.bytes().all(|c| c.is_ascii_digit()) && fraction_is_plain;
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
fn authority(named: DerValue<'_>) -> Option<String> {
    let general = *items(named.content).ok()?.first()?;
    let name = *items(general.content).ok()?.first()?;
    let mut texts = Vec::new();
    for set in items(name.content).ok()? {
        for attribute in items(set.content).ok()? {
            let parts = items(attribute.content).ok()?;
            let text = std::str::from_utf8(parts.get(1)?.content).ok()?;
            texts.push(text.chars().filter(|c| !c.is_control()).collect::<String>());
        }
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}
