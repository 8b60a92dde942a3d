//! Encryption at rest. The rows and the arrays of an encrypted file are sealed one by one with
//! XChaCha20-Poly1305, under a key that lies beside the file and never in it. Whoever destroys the
//! key destroys every copy of them at once: in backups, in journals, in blocks that a disk has set
//! aside. What is not sealed: the manifest (names of columns and classes, settings, counts), the
//! list of rows, which holds hashes, and the log.

use std::borrow::Cow;
use std::ops::Deref;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{FileFault, damaged};
use crate::randomness::random_bytes;

/// Bytes of the nonce before every sealed value. So many can be drawn at random without two ever
/// being the same.
const NONCE: usize = 24;

/// What tells whether a key is the one that a file was sealed with, and nothing else of it.
pub(crate) type KeyCheck = [u8; 16];

/// The key of one file.
pub(crate) struct DataKey(Zeroizing<[u8; 32]>);

impl DataKey {
    pub(crate) fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn check(&self) -> KeyCheck {
        let mut hasher = Sha256::new();
        hasher.update(b"efface data key check v1\0");
        hasher.update(*self.0);
        let mut check = KeyCheck::default();
        check.copy_from_slice(&hasher.finalize()[..16]);
        check
    }
}

/// How the values of a file are sealed.
pub(crate) enum FileCipher {
    /// Not at all.
    Plain,
    /// With a key that is not at hand.
    Locked(KeyCheck),
    /// With this key.
    Sealed(Box<XChaCha20Poly1305>),
}

impl From<&DataKey> for FileCipher {
    fn from(key: &DataKey) -> Self {
        Self::Sealed(Box::new(XChaCha20Poly1305::new(&(*key.0).into())))
    }
}

/// Where a value lies. It is part of what is authenticated: a value that was moved does not open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedPlace<'a> {
    pub(crate) table: &'a str,
    pub(crate) number: u64,
}

impl SealedPlace<'_> {
    fn name(&self) -> Vec<u8> {
        format!("{} {}", self.table, self.number).into_bytes()
    }
}

/// The connection to a model file, and what its values are sealed with.
pub(crate) struct ModelConnection {
    pub(super) sqlite: Connection,
    pub(super) cipher: FileCipher,
}

impl Deref for ModelConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.sqlite
    }
}

impl ModelConnection {
    pub(crate) fn is_encrypted(&self) -> bool {
        !matches!(self.cipher, FileCipher::Plain)
    }

    /// The bytes as they are stored.
    pub(super) fn seal<'a>(
        &self,
        place: SealedPlace<'_>,
        bytes: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, FileFault> {
        let cipher = match &self.cipher {
            FileCipher::Plain => return Ok(Cow::Borrowed(bytes)),
            FileCipher::Locked(_) => return Err(FileFault::Sealed),
            FileCipher::Sealed(cipher) => cipher,
        };
        let nonce =
            *random_bytes::<NONCE>().map_err(|error| FileFault::Damaged(error.to_string()))?;
        let mut sealed = bytes.to_vec();
        if cipher
            .encrypt_in_place(&XNonce::from(nonce), &place.name(), &mut sealed)
            .is_err()
        {
            return damaged(format!(
                "number {} of `{}` cannot be sealed",
                place.number, place.table
            ));
        }
        sealed.extend(nonce);
        Ok(Cow::Owned(sealed))
    }

    /// The bytes that were sealed.
    pub(super) fn unseal<'a>(
        &self,
        place: SealedPlace<'_>,
        bytes: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, FileFault> {
        let cipher = match &self.cipher {
            FileCipher::Plain => return Ok(Cow::Borrowed(bytes)),
            FileCipher::Locked(_) => return Err(FileFault::Sealed),
            FileCipher::Sealed(cipher) => cipher,
        };
        let opened = bytes
            .split_last_chunk::<NONCE>()
            .and_then(|(sealed, nonce)| {
                let mut opened = sealed.to_vec();
                cipher
                    .decrypt_in_place(&XNonce::from(*nonce), &place.name(), &mut opened)
                    .ok()?;
                Some(Cow::Owned(opened))
            });
        match opened {
            Some(opened) => Ok(opened),
            None => damaged(format!(
                "number {} of `{}` does not open with the key of the file",
                place.number, place.table
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(cipher: FileCipher) -> ModelConnection {
        ModelConnection {
            sqlite: Connection::open_in_memory().unwrap(),
            cipher,
        }
    }

    #[test]
    fn a_sealed_value_opens_in_its_place_alone() {
        let key = DataKey::new(random_bytes::<32>().unwrap());
        let sealed = connection((&key).into());
        let place = SealedPlace {
            table: "rows",
            number: 7,
        };
        let bytes = sealed.seal(place, b"four and twenty").unwrap().into_owned();
        assert!(!bytes.windows(4).any(|part| part == b"four"));
        assert_ne!(
            bytes,
            sealed.seal(place, b"four and twenty").unwrap().into_owned()
        );
        assert_eq!(&*sealed.unseal(place, &bytes).unwrap(), b"four and twenty");
        for other in [
            SealedPlace {
                table: "rows",
                number: 8,
            },
            SealedPlace {
                table: "parts",
                number: 7,
            },
        ] {
            assert!(sealed.unseal(other, &bytes).is_err());
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(sealed.unseal(place, &flipped).is_err(), "byte {at}");
            assert!(sealed.unseal(place, &bytes[..at]).is_err(), "cut at {at}");
        }
        let other = connection((&DataKey::new(random_bytes::<32>().unwrap())).into());
        assert!(other.unseal(place, &bytes).is_err());
        let locked = connection(FileCipher::Locked(key.check()));
        assert!(matches!(
            locked.unseal(place, &bytes),
            Err(FileFault::Sealed)
        ));
        assert!(matches!(
            locked.seal(place, b"four"),
            Err(FileFault::Sealed)
        ));
    }
}
