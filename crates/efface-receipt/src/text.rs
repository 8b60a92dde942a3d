//! Bytes as text: hexadecimal digits and base64, each with one spelling only. Small, because
//! browsers load the verifier.

use base64ct::{Base64, Encoding};

use crate::{
    fault::ReceiptFault,
    limits::{MAX_INTEGER, MAX_KEY_LIST_BYTES},
};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two lower-case digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Reads lower-case digits; None for anything else, and for another length.
pub(crate) fn from_hex<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != LENGTH || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; LENGTH];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Base64 with padding (RFC 4648 §4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Reads base64; None for missing padding, bits after the end, and all that is not of the alphabet.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).ok()
}

/// Reads a count: decimal digits without a sign or leading zeros, at most 2⁵³ − 1.
pub(crate) fn count(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number <= MAX_INTEGER && number.to_string() == text).then_some(number)
}

/// The text of a list of keys.
pub(crate) fn list_text(bytes: &[u8]) -> Result<&str, ReceiptFault> {
    std::str::from_utf8(bytes).map_err(|_| ReceiptFault::Key("a list of keys is UTF-8 text"))
}

/// The lines of a list of keys that are not empty. Only a newline ends a line.
pub(crate) fn list_lines(text: &str) -> Result<impl Iterator<Item = &str>, ReceiptFault> {
    if text.len() > MAX_KEY_LIST_BYTES {
        return Err(ReceiptFault::TooLarge {
            what: "the list of keys",
            size: text.len(),
            limit: MAX_KEY_LIST_BYTES,
        });
    }
    Ok(text.split('\n').filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_spelling_of_bytes() {
        for length in 0..40_u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(97)).collect();
            assert_eq!(from_base64(&base64(&bytes)), Some(bytes.clone()));
            // An independent implementation writes the same.
            assert_eq!(base64(&bytes), data_encoding::BASE64.encode(&bytes));
            assert_eq!(hex(&bytes), data_encoding::HEXLOWER.encode(&bytes));
        }
        for (text, number) in [("0", 0), ("99", 99), ("9007199254740991", MAX_INTEGER)] {
            assert_eq!(count(text), Some(number));
        }
        for bad in [
            "",
            "+9",
            "-0",
            "09",
            "9 ",
            "9007199254740992",
            "99999999999999999999",
            "٩",
        ] {
            assert_eq!(count(bad), None, "{bad}");
        }
        assert_eq!(from_hex("00ff10"), Some([0, 255, 16]));
        for bad in [
            "00FF10", "00ff1", "00ff1g", "00ff1000", "00ff1é", "", " 0ff10",
        ] {
            assert_eq!(from_hex::<3>(bad), None, "{bad}");
        }
        for bad in [
            "AA", "AA=", "AB==", "AAB=", "A===", "AAAA=", "AA==AA==", "AA-_", "AAA A", "AAAA\n",
            "=", "AA=A",
        ] {
            assert_eq!(from_base64(bad), None, "{bad}");
        }
    }
}
