//! SHA-256 values, written as 64 lower-case hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::text::{from_hex, hex};

/// A SHA-256 value.
#[derive(Clone, Copy, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hexadecimal digits; None for anything else.
    pub fn from_hex(text: &str) -> Option<Hash> {
        from_hex(text).map(Hash)
    }
}

/// Compared in constant time: commitments are checked against guesses.
impl PartialEq for Hash {
    fn eq(&self, other: &Hash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Hash {}

impl std::hash::Hash for Hash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        Hash::from_hex(&text)
            .ok_or_else(|| D::Error::custom("a hash is 64 lower-case hexadecimal digits"))
    }
}

/// SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> Hash {
    hash_parts(&[bytes])
}

/// The hash of a log's leaf, RFC 6962 §2.1: SHA-256(0x00 ‖ leaf).
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    hash_parts(&[&[0], leaf])
}

/// The hash of an inner node, RFC 6962 §2.1: SHA-256(0x01 ‖ left ‖ right).
pub(crate) fn node_hash(left: &Hash, right: &Hash) -> Hash {
    hash_parts(&[&[1], &left.0, &right.0])
}

/// SHA-256 of parts written one after the other. The caller sees to it that the parts cannot be cut
/// differently.
pub(crate) fn hash_parts(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    Hash(hasher.finalize().into())
}

/// HMAC-SHA256 (RFC 2104) for keys of 32 bytes, the only length used here.
pub(crate) fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> Hash {
    use zeroize::Zeroizing;
    let mut inner_pad = Zeroizing::new([0x36u8; 64]);
    let mut outer_pad = Zeroizing::new([0x5cu8; 64]);
    for (i, byte) in key.iter().enumerate() {
        inner_pad[i] ^= byte;
        outer_pad[i] ^= byte;
    }
    let mut inner = Sha256::new();
    inner.update(inner_pad.as_slice());
    for part in parts {
        inner.update(part);
    }
    hash_parts(&[outer_pad.as_slice(), &inner.finalize()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python 3.11.7: hmac.new(bytes([0x0b] * 32), b"Hi There", "sha256").hexdigest()
    #[test]
    fn hmac_agrees_with_the_python_standard_library() {
        let expected = "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7";
        assert_eq!(hmac(&[0x0b; 32], &[b"Hi ", b"There"]).to_string(), expected);
    }

    #[test]
    fn only_lower_case_digits_are_a_hash() {
        let text = sha256(b"").to_string();
        assert_eq!(
            text,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(Hash::from_hex(&text), Some(sha256(b"")));
        assert_eq!(Hash::from_hex(&text.to_uppercase()), None);
        assert_eq!(Hash::from_hex(&text[1..]), None);
        assert_eq!(Hash::from_hex("é"), None);
    }
}
