//! Keys and signatures.
//!
//! A key has a name, which is the origin of the log it signs, and an id: the first four bytes of
//! SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key), as in C2SP signed-note. Public keys are written `name+id+base64`, secret
//! ones `PRIVATE+KEY+name+id+base64`, which tools of that ecosystem read.
//!
//! A receipt is signed as `efface receipt v1` ‖ 0x00 ‖ canonical bytes. The zero byte keeps receipts and checkpoints
//! apart: a note must not contain one, so no message is both.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use zeroize::Zeroizing;

use crate::{
    canonical,
    fault::ReceiptFault,
    hash::{Hash, hash_parts, leaf_hash},
    limits::{MAX_NAME_BYTES, MAX_RECEIPT_BYTES, MAX_ROTATIONS},
    receipt::{Receipt, RequestKind, RequestOutcome},
};

const RECEIPT_DOMAIN: &[u8] = b"efface receipt v1\0";
/// The byte by which signed-note tells Ed25519 from other signatures.
const ED25519: u8 = 1;
const SECRET_PREFIX: &str = "PRIVATE+KEY+";

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
        let mut bytes = [0; 4];
        if text.len() != 8 {
            return None;
        }
        HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
        Some(KeyId(bytes))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
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
        KeyId::parse(&text).ok_or_else(|| D::Error::custom("a key id is 8 lower-case hexadecimal digits"))
    }
}

/// Whether a name can stand in a note: not empty, not long, no spaces, no plus, no control characters.
pub(crate) fn check_name(name: &str) -> Result<(), ReceiptFault> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(bad) {
        return Err(ReceiptFault::Key(
            "a name has 1 to 255 bytes, no space, no plus and no control character",
        ));
    }
    Ok(())
}

/// Splits `name+id+base64(0x01 ‖ 32 bytes)`. The middle is compared by the caller, who knows the public key.
fn split_key(text: &str) -> Result<(&str, KeyId, Zeroizing<[u8; 32]>), ReceiptFault> {
    if text.len() > MAX_NAME_BYTES + 64 {
        return Err(ReceiptFault::Key("too long"));
    }
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ReceiptFault::Key("expected name+id+base64"));
    };
    check_name(name)?;
    let id = KeyId::parse(id).ok_or(ReceiptFault::Key("the id is not 8 lower-case hexadecimal digits"))?;
    let bytes = Zeroizing::new(BASE64.decode(code.as_bytes()).map_err(|_| ReceiptFault::Key("bad base64"))?);
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
    /// Reads `name+id+base64`.
    pub fn parse(text: &str) -> Result<PublicKey, ReceiptFault> {
        let (name, id, bytes) = split_key(text)?;
        let key =
            VerifyingKey::from_bytes(&bytes).map_err(|_| ReceiptFault::Key("not a point of the curve"))?;
        if key.is_weak() {
            return Err(ReceiptFault::Key("a weak point: anyone could sign for it"));
        }
        if KeyId::of(name, &key) != id {
            return Err(ReceiptFault::Key("the id does not belong to this name and key"));
        }
        Ok(PublicKey { name: name.to_owned(), id, key })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.key.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![ED25519];
        bytes.extend_from_slice(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, self.id, BASE64.encode(&bytes))
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
    /// From 32 random bytes. The caller draws them from the system's generator and overwrites them afterwards.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<SecretKey, ReceiptFault> {
        check_name(name)?;
        let key = SigningKey::from_bytes(seed);
        let verifying = key.verifying_key();
        let public = PublicKey { name: name.to_owned(), id: KeyId::of(name, &verifying), key: verifying };
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
            return Err(ReceiptFault::Key("the id does not belong to this name and key"));
        }
        Ok(secret)
    }

    /// The key as text, for a file that only its owner can read.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0u8; 33]);
        bytes[0] = ED25519;
        bytes[1..].copy_from_slice(self.key.as_bytes());
        // Room for all of it: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(SECRET_PREFIX.len() + self.name().len() + 64));
        text.push_str(SECRET_PREFIX);
        text.push_str(self.name());
        text.push('+');
        text.push_str(&self.id().to_string());
        text.push('+');
        BASE64.encode_append(bytes.as_slice(), &mut text);
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

    pub(crate) fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.key.sign(message).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}+{}, hidden)", self.name(), self.id())
    }
}

/// An Ed25519 signature, in base64 in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Signature, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64.decode(text.as_bytes()).ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        bytes.map(Signature).ok_or_else(|| D::Error::custom("a signature is 64 bytes in base64"))
    }
}

/// A receipt with its signature: the leaf of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// Over the receipt's canonical bytes.
    pub signature: Signature,
}

impl SignedReceipt {
    /// Signs a receipt that names this key as its origin and key id.
    pub fn sign(receipt: Receipt, key: &SecretKey) -> Result<SignedReceipt, ReceiptFault> {
        receipt.check()?;
        if receipt.origin != key.name() || receipt.key_id != key.id() {
            return Err(ReceiptFault::UnknownKey { name: receipt.origin, id: receipt.key_id });
        }
        let message = message(&receipt)?;
        let signature = BASE64.encode(&key.sign(&message).0);
        // The canonical form of the whole, put together from the parts; parsing it checks that.
        let body = message.get(RECEIPT_DOMAIN.len()..).unwrap_or_default();
        let bytes = [b"{\"receipt\":", body, b",\"signature\":\"", signature.as_bytes(), b"\"}"].concat();
        // What is given back is what a reader will see: a receipt that no verifier reads must not enter the log.
        SignedReceipt::parse(&bytes)
    }

    /// The canonical bytes, which are the leaf of the log.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ReceiptFault> {
        let bytes = canonical::to_bytes(self)?;
        if bytes.len() > MAX_RECEIPT_BYTES {
            return Err(ReceiptFault::TooLarge {
                what: "the receipt",
                size: bytes.len(),
                limit: MAX_RECEIPT_BYTES,
            });
        }
        Ok(bytes)
    }

    /// Reads canonical bytes; nothing is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<SignedReceipt, ReceiptFault> {
        let signed: SignedReceipt = canonical::from_bytes(bytes, "the receipt", MAX_RECEIPT_BYTES)?;
        // A null that was left out reads the same but is not the one form that gets signed.
        if canonical::to_bytes(&signed)? != bytes {
            return Err(ReceiptFault::Schema("a field is missing".to_owned()));
        }
        Ok(signed)
    }

    /// The hash of this receipt as a leaf of the log.
    pub fn leaf(&self) -> Result<Hash, ReceiptFault> {
        Ok(leaf_hash(&self.to_bytes()?))
    }

    /// Checks the receipt itself and its signature; gives the key that signed.
    pub fn verify<'k>(&self, keys: &'k KeyRing) -> Result<&'k PublicKey, ReceiptFault> {
        self.receipt.check()?;
        let name = &self.receipt.origin;
        let id = self.receipt.key_id;
        let key = keys.active(name, id, self.receipt.sequence)?;
        if key.verifies(&message(&self.receipt)?, &self.signature) {
            Ok(key)
        } else {
            Err(ReceiptFault::ReceiptSignature)
        }
    }
}

fn message(receipt: &Receipt) -> Result<Vec<u8>, ReceiptFault> {
    let mut message = RECEIPT_DOMAIN.to_vec();
    message.extend_from_slice(&canonical::to_bytes(receipt)?);
    Ok(message)
}

/// The keys that a verifier trusts: those that it was given, and those that they handed over to.
///
/// A key that handed over may be in the wrong hands by now. What it signed up to then stays good; nothing later does.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    keys: Vec<TrustedKey>,
}

#[derive(Debug, Clone)]
struct TrustedKey {
    key: PublicKey,
    /// The receipt by which it handed over.
    retired: Option<u64>,
}

impl KeyRing {
    /// The key of a name and id.
    pub fn get(&self, name: &str, id: KeyId) -> Option<&PublicKey> {
        self.find(name, id).map(|trusted| &trusted.key)
    }

    fn find(&self, name: &str, id: KeyId) -> Option<&TrustedKey> {
        self.keys.iter().find(|trusted| trusted.key.id == id && trusted.key.name == name)
    }

    /// The key of a name and id, if it could still sign receipt `sequence`.
    pub(crate) fn active(&self, name: &str, id: KeyId, sequence: u64) -> Result<&PublicKey, ReceiptFault> {
        match self.find(name, id) {
            None => Err(ReceiptFault::UnknownKey { name: name.to_owned(), id }),
            Some(TrustedKey { retired: Some(retired), .. }) if sequence > *retired => {
                Err(ReceiptFault::RetiredKey { id, retired: *retired, stated: sequence })
            }
            Some(trusted) => Ok(&trusted.key),
        }
    }

    /// Trusts one more key.
    pub fn add(&mut self, key: PublicKey) {
        if self.get(&key.name, key.id).is_none() {
            self.keys.push(TrustedKey { key, retired: None });
        }
    }

    /// Trusts the key that a rotation names, if a trusted key signed the rotation, and retires the one that signed.
    pub fn follow(&mut self, rotation: &SignedReceipt) -> Result<(), ReceiptFault> {
        rotation.verify(self)?;
        let receipt = &rotation.receipt;
        let next = match (&receipt.next_key, receipt.kind, receipt.outcome) {
            (Some(text), RequestKind::KeyRotation, RequestOutcome::Done) => PublicKey::parse(text)?,
            _ => {
                return Err(ReceiptFault::Contradiction {
                    field: "kind",
                    problem: "not a key rotation that was done",
                });
            }
        };
        if self.keys.len() > MAX_ROTATIONS {
            return Err(ReceiptFault::TooLarge {
                what: "the key ring",
                size: self.keys.len(),
                limit: MAX_ROTATIONS,
            });
        }
        let known = self.get(&next.name, next.id).is_some();
        let id = receipt.key_id;
        let sequence = receipt.sequence;
        for trusted in &mut self.keys {
            if trusted.key.id == id && trusted.key.name == receipt.origin {
                match trusted.retired {
                    // A key hands over once. To whom else would be for a thief to say.
                    Some(retired) if !known || retired != sequence => {
                        return Err(ReceiptFault::RetiredKey { id, retired, stated: sequence });
                    }
                    _ => trusted.retired = Some(sequence),
                }
            }
        }
        self.add(next);
        Ok(())
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().map(|trusted| &trusted.key)
    }
}

impl From<PublicKey> for KeyRing {
    fn from(key: PublicKey) -> KeyRing {
        KeyRing { keys: vec![TrustedKey { key, retired: None }] }
    }
}
