//! The list of digests of an evidence pack: the hash of every file in it, signed by the key of the
//! log, in the text form of C2SP signed-note.
//!
//! ```text
//! efface pack v1
//! efface/0011223344556677
//! 3
//! 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 checkpoint.txt
//! …
//!
//! — efface/0011223344556677 9KW6Lm…
//! ```
//!
//! The first line holds spaces, which no origin of a checkpoint does: neither text can be taken for
//! the other.

use std::collections::BTreeMap;

use crate::{
    fault::ReceiptFault,
    hash::{Hash, sha256},
    keyring::KeyRing,
    limits::{MAX_NAME_BYTES, MAX_PACK_LIST_BYTES},
    note,
    signature::{ReceiptSigner, check_name},
    text::count,
};

/// The first line of a list.
const TITLE: &str = "efface pack v1";

/// The files of an evidence pack, as they were signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackDigests {
    /// The log's name, which is the name of its key.
    pub origin: String,
    /// The receipts of the log when the pack was made. The key that would sign the next one signs
    /// the list.
    pub size: u64,
    /// The SHA-256 of every file but the list itself, by name.
    pub files: BTreeMap<String, Hash>,
}

impl PackDigests {
    /// The name of the list in a pack.
    pub const FILE: &str = "digests.txt";

    /// The list of these files of a pack about the first `size` receipts of a log.
    pub fn new<'a>(
        origin: &str,
        size: u64,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> PackDigests {
        let digest = |(name, bytes): (&str, &[u8])| (name.to_owned(), sha256(bytes));
        PackDigests {
            origin: origin.to_owned(),
            size,
            files: files.into_iter().map(digest).collect(),
        }
    }

    /// The signed list. The key must bear the name of the log.
    pub fn sign(&self, signer: &dyn ReceiptSigner) -> Result<String, ReceiptFault> {
        let mut body = format!("{TITLE}\n{}\n{}\n", self.origin, self.size);
        for (name, digest) in &self.files {
            body.push_str(&format!("{digest} {name}\n"));
        }
        let signed = note::sign_text(&body, &self.origin, signer)?;
        // What could not be read back must not be signed.
        if PackDigests::parse(&signed)?.0 == *self {
            Ok(signed)
        } else {
            Err(BAD)
        }
    }

    /// Reads a list and checks its signatures, as those of a checkpoint are.
    pub fn verify(text: &str, keys: &KeyRing) -> Result<PackDigests, ReceiptFault> {
        let (digests, body, lines) = PackDigests::parse(text)?;
        let checked = note::check_signatures(body, &lines, keys, &digests.origin, digests.size);
        checked.map_err(|fault| match fault {
            ReceiptFault::CheckpointUnsigned => ReceiptFault::Pack(
                "no trusted key has signed its list of digests; is this the right public key?"
                    .to_owned(),
            ),
            ReceiptFault::CheckpointSignature => ReceiptFault::Pack(
                "the signature of its list of digests is wrong: it was changed after signing"
                    .to_owned(),
            ),
            fault => fault,
        })?;
        Ok(digests)
    }

    /// Returns an error unless these are the files of the list, all of them and no others.
    pub fn check<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), ReceiptFault> {
        let found = PackDigests::new(&self.origin, self.size, files);
        let names = self.files.keys().chain(found.files.keys());
        for name in names {
            let problem = match (self.files.get(name), found.files.get(name)) {
                (Some(signed), Some(found)) if signed == found => continue,
                (Some(_), Some(_)) => "was changed after the pack was signed",
                (Some(_), None) => "is missing",
                (None, _) => "was added after the pack was signed",
            };
            return Err(ReceiptFault::Pack(format!("{name:?} {problem}")));
        }
        Ok(())
    }

    fn parse(text: &str) -> Result<(PackDigests, &str, Vec<note::NoteLine>), ReceiptFault> {
        let (body, signatures) = note::split(text, MAX_PACK_LIST_BYTES)?;
        let mut lines = body.strip_suffix('\n').unwrap_or(body).split('\n');
        let (Some(TITLE), Some(origin), Some(size)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(BAD);
        };
        check_name(origin)?;
        let mut digests = PackDigests {
            origin: origin.to_owned(),
            size: count(size).ok_or(BAD)?,
            files: BTreeMap::new(),
        };
        for line in lines {
            let (digest, name) = line.split_once(' ').ok_or(BAD)?;
            let digest = Hash::from_hex(digest).ok_or(BAD)?;
            let in_order = digests
                .files
                .last_key_value()
                .is_none_or(|(last, _)| last.as_str() < name);
            if !in_order || !is_file_name(name) {
                return Err(BAD);
            }
            digests.files.insert(name.to_owned(), digest);
        }
        Ok((digests, body, signatures))
    }
}

const BAD: ReceiptFault = ReceiptFault::Note(
    "a list of digests is `efface pack v1`, the log, its size, and a hash and a name for each file in order",
);

/// Returns true for a relative path of letters, digits, `.`, `_` and `-`, whose parts are separated
/// by `/` and are none of `.` and `..`.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= MAX_NAME_BYTES
        && name
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SecretKey;

    #[test]
    fn a_list_covers_its_files_and_nothing_else() {
        let secret = SecretKey::from_seed("efface/a", &[7; 32]).unwrap();
        let keys = KeyRing::from(secret.public());
        let files = [("a.txt", &b"one"[..]), ("receipts/1.cose", b"two")];
        let digests = PackDigests::new("efface/a", 3, files);
        let list = digests.sign(&secret).unwrap();
        let read = PackDigests::verify(&list, &keys).unwrap();
        assert_eq!(read, digests);
        read.check(files).unwrap();
        for (changed, says) in [
            (
                vec![("a.txt", &b"one"[..])],
                "\"receipts/1.cose\" is missing",
            ),
            (
                vec![files[0], files[1], ("b.txt", b"")],
                "\"b.txt\" was added",
            ),
            (vec![("a.txt", b"0ne"), files[1]], "\"a.txt\" was changed"),
        ] {
            let fault = read.check(changed).unwrap_err();
            assert_eq!(fault.check(), "pack");
            assert!(fault.to_string().contains(says), "{fault}");
        }
        for at in 0..list.len() {
            let mut bytes = list.clone().into_bytes();
            bytes[at] ^= 1;
            let is_refused = String::from_utf8(bytes)
                .map_or(true, |text| PackDigests::verify(&text, &keys).is_err());
            assert!(is_refused, "byte {at}");
        }
        let other = SecretKey::from_seed("efface/a", &[8; 32]).unwrap();
        let fault = PackDigests::verify(&list, &KeyRing::from(other.public())).unwrap_err();
        assert_eq!(fault.check(), "pack");
        for name in ["", "/a", "a/", "../a", "a//b", "a b", "é", "a\\b", "."] {
            let wrong = PackDigests::new("efface/a", 3, [(name, &b""[..])]);
            assert!(wrong.sign(&secret).is_err(), "{name}");
        }
    }

    #[test]
    fn a_list_is_no_checkpoint_and_a_checkpoint_no_list() {
        let secret = SecretKey::from_seed("efface/a", &[7; 32]).unwrap();
        let keys = KeyRing::from(secret.public());
        let list = PackDigests::new("efface/a", 0, []).sign(&secret).unwrap();
        assert!(crate::LogCheckpoint::verify(&list, &keys).is_err());
        let head = crate::LogCheckpoint::new("efface/a", 0, sha256(b"")).unwrap();
        assert!(PackDigests::verify(&head.sign(&secret).unwrap(), &keys).is_err());
    }
}
