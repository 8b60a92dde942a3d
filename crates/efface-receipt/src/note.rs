//! Checkpoints: the signed head of a log, in the text form of C2SP tlog-checkpoint and signed-note.
//!
//! ```text
//! example.com/model-1
//! 3
//! qcD0Oo0+aM0ZSgKfVDUpBGZpk2QJSTcBBcS3hXnKCss=
//!
//! — example.com/model-1 9KW6Lm…
//! ```
//!
//! The signature covers the text up to the blank line. Other signatures, of witnesses or of keys
//! that are not known here, are passed over, as the format asks.

use crate::{
    fault::ReceiptFault,
    hash::{Hash, sha256},
    keyring::KeyRing,
    limits::{MAX_INTEGER, MAX_NOTE_BYTES, MAX_NOTE_SIGNATURES},
    receipt::LogHead,
    signature::{KeyId, ReceiptSigner, Signature, check_name},
    text::{base64, count, from_base64},
};

/// The head of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCheckpoint {
    /// The log's name, which is the name of its key.
    pub origin: String,
    /// How many receipts.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
    /// Further lines that were signed along. The engine writes one, with the hash of the state of
    /// its file.
    pub extensions: Vec<String>,
}

/// One signature line.
pub(crate) struct NoteLine {
    pub(crate) name: String,
    pub(crate) id: KeyId,
    pub(crate) signature: Vec<u8>,
}

impl LogCheckpoint {
    /// The head of a log of this name.
    pub fn new(origin: &str, size: u64, root: Hash) -> Result<LogCheckpoint, ReceiptFault> {
        check_name(origin)?;
        if size > MAX_INTEGER {
            return Err(ReceiptFault::OutOfRange {
                asked: size,
                size: MAX_INTEGER,
            });
        }
        if size == 0 && root != sha256(b"") {
            return Err(ReceiptFault::Note(
                "the root of an empty log is the hash of nothing",
            ));
        }
        Ok(LogCheckpoint {
            origin: origin.to_owned(),
            size,
            root,
            extensions: Vec::new(),
        })
    }

    /// Size and root.
    pub fn head(&self) -> LogHead {
        LogHead {
            size: self.size,
            root: self.root,
        }
    }

    /// The text that is signed.
    pub fn body(&self) -> String {
        let mut text = format!(
            "{}\n{}\n{}\n",
            self.origin,
            self.size,
            base64(self.root.as_bytes())
        );
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The signed note. The key must bear the name of the log.
    pub fn sign(&self, signer: &dyn ReceiptSigner) -> Result<String, ReceiptFault> {
        let note = sign_text(&self.body(), &self.origin, signer)?;
        // What could not be read back must not be signed.
        read(&note)?;
        Ok(note)
    }

    /// Reads a note and checks its signatures. At least one trusted key that bears the log's name
    /// must have signed, and no signature by a trusted key may fail.
    pub fn verify(note: &str, keys: &KeyRing) -> Result<LogCheckpoint, ReceiptFault> {
        let (checkpoint, body, lines) = read(note)?;
        check_signatures(body, &lines, keys, &checkpoint.origin, checkpoint.size)?;
        Ok(checkpoint)
    }

    /// Reads a note without checking any signature, for display.
    pub fn parse_unverified(note: &str) -> Result<LogCheckpoint, ReceiptFault> {
        Ok(read(note)?.0)
    }
}

/// Signs a text about a log of this name, whose name the key must bear.
pub(crate) fn sign_text(
    body: &str,
    origin: &str,
    signer: &dyn ReceiptSigner,
) -> Result<String, ReceiptFault> {
    let key = signer.public_key();
    if key.name() != origin {
        return Err(ReceiptFault::Note(
            "the key does not bear the name of the log",
        ));
    }
    let mut bytes = key.id().0.to_vec();
    bytes.extend_from_slice(&signer.sign(body.as_bytes())?.0);
    Ok(format!("{body}\n— {origin} {}\n", base64(&bytes)))
}

/// Returns an error unless a trusted key that bears the name of the log has signed a text about its
/// first `size` receipts, and every signature by a trusted key holds.
pub(crate) fn check_signatures(
    body: &str,
    lines: &[NoteLine],
    keys: &KeyRing,
    origin: &str,
    size: u64,
) -> Result<(), ReceiptFault> {
    let mut signed = false;
    for line in lines {
        if !keys
            .keys()
            .any(|known| known.key.name() == line.name && known.key.id() == line.id)
        {
            continue;
        }
        // A head is signed by the key that would sign the next receipt: after a hand-over, the new
        // one.
        let key = keys.active(&line.name, line.id, size)?;
        let signature = <[u8; 64]>::try_from(line.signature.as_slice())
            .map_err(|_| ReceiptFault::CheckpointSignature)?;
        if !key.verifies(body.as_bytes(), &Signature(signature)) {
            return Err(ReceiptFault::CheckpointSignature);
        }
        signed |= key.name() == origin;
    }
    if signed {
        Ok(())
    } else {
        Err(ReceiptFault::CheckpointUnsigned)
    }
}

/// The head, the text that is signed, and the signature lines.
pub(crate) fn read(note: &str) -> Result<(LogCheckpoint, &str, Vec<NoteLine>), ReceiptFault> {
    let (body, lines) = split(note, MAX_NOTE_BYTES)?;
    Ok((head(body)?, body, lines))
}

/// The text that is signed, and the signature lines, of a signed note of at most `limit` bytes.
pub(crate) fn split(note: &str, limit: usize) -> Result<(&str, Vec<NoteLine>), ReceiptFault> {
    if note.len() > limit {
        return Err(ReceiptFault::TooLarge {
            what: "the signed note",
            size: note.len(),
            limit,
        });
    }
    if note.chars().any(|c| c.is_control() && c != '\n') {
        return Err(ReceiptFault::Note("control characters"));
    }
    let Some(cut) = note.rfind("\n\n") else {
        return Err(ReceiptFault::Note("no blank line before the signatures"));
    };
    let (body, rest) = note.split_at(cut + 1);
    let Some(rest) = rest.get(1..).and_then(|rest| rest.strip_suffix('\n')) else {
        return Err(ReceiptFault::Note("no newline at the end"));
    };
    let mut lines = Vec::new();
    for line in rest.split('\n') {
        lines.push(signature_line(line)?);
        if lines.len() > MAX_NOTE_SIGNATURES {
            let size = lines.len();
            let limit = MAX_NOTE_SIGNATURES;
            return Err(ReceiptFault::TooLarge {
                what: "the list of signatures",
                size,
                limit,
            });
        }
    }
    Ok((body, lines))
}

fn signature_line(line: &str) -> Result<NoteLine, ReceiptFault> {
    const BAD: ReceiptFault =
        ReceiptFault::Note("a signature line is a dash, a key name and base64");
    let (name, code) = line
        .strip_prefix("— ")
        .and_then(|rest| rest.split_once(' '))
        .ok_or(BAD)?;
    check_name(name)?;
    let bytes = from_base64(code).ok_or(BAD)?;
    let (id, signature) = bytes.split_first_chunk::<4>().ok_or(BAD)?;
    if signature.is_empty() {
        return Err(BAD);
    }
    Ok(NoteLine {
        name: name.to_owned(),
        id: KeyId(*id),
        signature: signature.to_vec(),
    })
}

fn head(body: &str) -> Result<LogCheckpoint, ReceiptFault> {
    let mut lines = body.strip_suffix('\n').unwrap_or(body).split('\n');
    let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
        return Err(ReceiptFault::Note("fewer than three lines"));
    };
    let number = count(size).ok_or(ReceiptFault::Note(
        "the size is not a number without sign and leading zeros below 2⁵³",
    ))?;
    let bytes = from_base64(root).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let root = Hash(bytes.ok_or(ReceiptFault::Note("the root is not 32 bytes in base64"))?);
    let mut checkpoint = LogCheckpoint::new(origin, number, root)?;
    checkpoint.extensions = lines.map(str::to_owned).collect();
    if checkpoint.extensions.iter().any(String::is_empty) {
        return Err(ReceiptFault::Note("an empty line in the text"));
    }
    Ok(checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SecretKey;

    fn secret() -> SecretKey {
        SecretKey::from_seed("example.com/log", &[5; 32]).unwrap()
    }

    #[test]
    fn other_signatures_are_passed_over_but_own_ones_must_hold() {
        let key = secret();
        let witness = SecretKey::from_seed("witness.example", &[6; 32]).unwrap();
        let note = LogCheckpoint::new("example.com/log", 3, Hash([1; 32]))
            .unwrap()
            .sign(&key)
            .unwrap();
        let line = note.lines().last().unwrap().to_owned();
        let other = line.replace("example.com/log", "witness.example");
        let keys = KeyRing::from(key.public());
        let both = format!("{note}{other}\n");
        assert_eq!(LogCheckpoint::verify(&both, &keys).unwrap().size, 3);
        // A witness alone does not speak for the log.
        assert_eq!(
            LogCheckpoint::verify(&both, &KeyRing::from(witness.public())),
            Err(ReceiptFault::CheckpointUnsigned)
        );
        // A wrong signature of a known key spoils the note.
        let wrong = note.replace("\n3\n", "\n4\n");
        assert_eq!(
            LogCheckpoint::verify(&wrong, &keys),
            Err(ReceiptFault::CheckpointSignature)
        );
    }

    #[test]
    fn malformed_notes_are_refused() {
        let note = LogCheckpoint::new("example.com/log", 3, Hash([1; 32]))
            .unwrap()
            .sign(&secret())
            .unwrap();
        LogCheckpoint::parse_unverified(&note).unwrap();
        for (from, to) in [
            ("\n3\n", "\n03\n"),
            ("\n3\n", "\n+3\n"),
            ("\n3\n", "\n-3\n"),
            ("\n3\n", "\n\n"),
            ("\n3\n", "\n9007199254740993\n"),
            ("\n3\n", "\n3\r\n"),
            ("\n3\n", "\n0\n"),
            ("— ", "- "),
            ("— ", ""),
            ("\n\n", "\n"),
            ("example.com/log", "a b"),
            ("example.com/log", ""),
            ("=\n", "\n"),
        ] {
            assert!(
                LogCheckpoint::parse_unverified(&note.replace(from, to)).is_err(),
                "{from:?} → {to:?}"
            );
        }
        let line = format!("{}\n", note.lines().last().unwrap());
        LogCheckpoint::parse_unverified(&(note.clone() + &line.repeat(31))).unwrap();
        assert!(LogCheckpoint::parse_unverified(&(note.clone() + &line.repeat(32))).is_err());
        assert!(LogCheckpoint::parse_unverified(&"\n".repeat(1 << 20)).is_err());
        assert!(LogCheckpoint::parse_unverified("").is_err());
    }
}
