//! Keys and signatures.
//!
//! A key has a name, which is the origin of the log it signs, and an id: the first four bytes of
//! SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key), as in C2SP signed-note. Public keys are written
//! `name+id+base64`, secret ones `PRIVATE+KEY+name+id+base64`, which tools of that ecosystem read.
//!
//! Whatever signs implements [`ReceiptSigner`]: a key in memory, or something that holds a key and
//! does not show it.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use zeroize::Zeroizing;

use crate::{
    fault::ReceiptFault,
    hash::{Hash, hash_parts},
    limits::MAX_NAME_BYTES,
    text::{base64, from_base64, from_hex, hex},
};

/// The byte by which signed-note tells Ed25519 from other signatures.
const ED25519: u8 = 1;
const SECRET_PREFIX: &str = "PRIVATE+KEY+";
/// What stands before the 32 bytes of a key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_ED25519: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The short name of a key. It tells keys apart; it does not stand for one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    fn of(name: &str, key: &VerifyingKey) -> KeyId {
        let Hash(hash) = hash_parts(&[name.as_bytes(), b"\n", &[ED25519], key.as_bytes()]);
        KeyId([hash[0], hash[1], hash[2], hash[3]])
    }

    /// Reads eight lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<KeyId> {
        from_hex(text).map(KeyId)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyId, D::Error> {
        let text = String::deserialize(deserializer)?;
        KeyId::parse(&text)
            .ok_or_else(|| D::Error::custom("a key id is 8 lower-case hexadecimal digits"))
    }
}

/// Whether a name can stand in a note: not empty, not long, no spaces, no plus, no control
/// characters.
pub(crate) fn check_name(name: &str) -> Result<(), ReceiptFault> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(bad) {
        return Err(ReceiptFault::Key(
            "a name has 1 to 255 bytes, no space, no plus and no control character",
        ));
    }
    Ok(())
}

/// Splits `name+id+base64(0x01 ‖ 32 bytes)`. The middle is compared by the caller, who knows the
/// public key.
fn split_key(text: &str) -> Result<(&str, KeyId, Zeroizing<[u8; 32]>), ReceiptFault> {
    if text.len() > MAX_NAME_BYTES + 64 {
        return Err(ReceiptFault::Key("too long"));
    }
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ReceiptFault::Key("expected name+id+base64"));
    };
    check_name(name)?;
    let id = KeyId::parse(id).ok_or(ReceiptFault::Key(
        "the id is not 8 lower-case hexadecimal digits",
    ))?;
    let bytes = Zeroizing::new(from_base64(code).ok_or(ReceiptFault::Key("bad base64"))?);
    match bytes.split_first() {
        Some((&ED25519, rest)) => {
            let mut key = Zeroizing::new([0; 32]);
            if rest.len() != 32 {
                return Err(ReceiptFault::Key("an Ed25519 key has 32 bytes"));
            }
            key.copy_from_slice(rest);
            Ok((name, id, key))
        }
        _ => Err(ReceiptFault::Key("not an Ed25519 key")),
    }
}

/// A public key and its name.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    id: KeyId,
    key: VerifyingKey,
}

impl PublicKey {
    /// From the 32 bytes of an Ed25519 key.
    pub fn from_bytes(name: &str, bytes: &[u8; 32]) -> Result<PublicKey, ReceiptFault> {
        check_name(name)?;
        let key = VerifyingKey::from_bytes(bytes)
            .map_err(|_| ReceiptFault::Key("not a point of the curve"))?;
        if key.is_weak() {
            return Err(ReceiptFault::Key("a weak point: anyone could sign for it"));
        }
        Ok(PublicKey {
            name: name.to_owned(),
            id: KeyId::of(name, &key),
            key,
        })
    }

    /// Reads `name+id+base64`.
    pub fn parse(text: &str) -> Result<PublicKey, ReceiptFault> {
        let (name, id, bytes) = split_key(text)?;
        let key = PublicKey::from_bytes(name, &bytes)?;
        if key.id != id {
            return Err(ReceiptFault::Key(
                "the id does not belong to this name and key",
            ));
        }
        Ok(key)
    }

    /// The 32 bytes of the key.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// The key in the form that other tools read: a SubjectPublicKeyInfo (RFC 8410) in PEM. The
    /// name is not in it.
    pub fn to_pem(&self) -> String {
        let mut der = SPKI_ED25519.to_vec();
        der.extend_from_slice(self.key.as_bytes());
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            base64(&der)
        )
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Whether this key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.key.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![ED25519];
        bytes.extend_from_slice(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, self.id, base64(&bytes))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A signing key. Its bytes are overwritten when it is dropped, and it is never printed.
pub struct SecretKey {
    key: SigningKey,
    public: PublicKey,
}

impl SecretKey {
    /// From 32 random bytes. The caller draws them from the system's generator and overwrites them
    /// afterwards.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<SecretKey, ReceiptFault> {
        check_name(name)?;
        let key = SigningKey::from_bytes(seed);
        let verifying = key.verifying_key();
        let public = PublicKey {
            name: name.to_owned(),
            id: KeyId::of(name, &verifying),
            key: verifying,
        };
        Ok(SecretKey { key, public })
    }

    /// Reads what [`SecretKey::to_text`] wrote.
    pub fn parse(text: &str) -> Result<SecretKey, ReceiptFault> {
        let rest = text
            .strip_prefix(SECRET_PREFIX)
            .ok_or(ReceiptFault::Key("a secret key starts with PRIVATE+KEY+"))?;
        let (name, id, seed) = split_key(rest)?;
        let secret = SecretKey::from_seed(name, &seed)?;
        if secret.id() != id {
            return Err(ReceiptFault::Key(
                "the id does not belong to this name and key",
            ));
        }
        Ok(secret)
    }

    /// The key as text, for a file that only its owner can read.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0u8; 33]);
        bytes[0] = ED25519;
        bytes[1..].copy_from_slice(self.key.as_bytes());
        // Room for all of it: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(
            SECRET_PREFIX.len() + self.name().len() + 64,
        ));
        text.push_str(SECRET_PREFIX);
        text.push_str(self.name());
        text.push('+');
        text.push_str(&self.id().to_string());
        text.push('+');
        text.push_str(&Zeroizing::new(base64(bytes.as_slice())));
        text
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public.clone()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.public.name
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.public.id
    }
}

/// Something that signs for a public key: a [`SecretKey`], or a program, device or agent that keeps
/// the key to itself.
pub trait ReceiptSigner: Sync {
    /// Whether it may sign several messages at a time. A program or a device of the user is asked
    /// for one after another.
    fn signs_side_by_side(&self) -> bool {
        false
    }

    /// The key that the signatures are checked with.
    fn public_key(&self) -> &PublicKey;

    /// The Ed25519 signature of a message.
    fn sign(&self, message: &[u8]) -> Result<Signature, ReceiptFault>;
}

impl ReceiptSigner for SecretKey {
    fn signs_side_by_side(&self) -> bool {
        true
    }

    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, ReceiptFault> {
        Ok(Signature(self.key.sign(message).to_bytes()))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}+{}, hidden)", self.name(), self.id())
    }
}

/// An Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64(&self.0))
    }
}
