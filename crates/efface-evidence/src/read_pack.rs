//! Reading and verifying an evidence pack that somebody sent.

use std::io::Read;

use efface_receipt::{
    KeyRing, LogCheckpoint, MAX_NOTE_BYTES, MAX_PACK_BYTES, PackDigests, VerifiedReceipt,
    verify_bytes,
};

use crate::archive;
use crate::pack::{CHECKPOINT, EvidenceError};

/// The files of a pack, by their names. Nothing of them is verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFiles {
    /// The names and contents, in the order of the names, the list of digests last.
    pub files: Vec<(String, Vec<u8>)>,
}

/// What a verified pack shows.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedPack {
    /// The head of the log when the pack was made.
    pub head: LogCheckpoint,
    /// The signed head, on which witnesses may have signed too.
    pub checkpoint: String,
    /// The receipts.
    pub receipts: Vec<VerifiedReceipt>,
    /// What verifying the pack left open.
    pub not_checked: Vec<&'static str>,
}

impl PackFiles {
    /// Reads the files of a pack. Nothing is written anywhere.
    ///
    /// # Errors
    /// The file is no pack, or larger than one that is read.
    pub fn read(file: impl Read) -> Result<Self, EvidenceError> {
        let mut bytes = Vec::new();
        let read = file.take(MAX_PACK_BYTES as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|cause| EvidenceError::Zip(cause.to_string()))?;
        if bytes.len() > MAX_PACK_BYTES {
            let problem = format!("it has more than {MAX_PACK_BYTES} bytes");
            return Err(EvidenceError::Zip(problem));
        }
        let files = archive::read(&bytes)?;
        Ok(Self { files })
    }

    /// The bytes of the ZIP file.
    ///
    /// # Errors
    /// The files are too large for one.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EvidenceError> {
        archive::write(&self.files)
    }

    /// Verifies that the key of the log signed every file of the pack, and that its receipts hold
    /// and stand in the log whose head it has. The keys in the pack are not believed.
    ///
    /// # Errors
    /// A check fails; the error names the file.
    pub fn verify(&self, keys: &KeyRing) -> Result<VerifiedPack, EvidenceError> {
        let Some(((last, list), files)) = self.files.split_last() else {
            return Err(EvidenceError::Zip("it is empty".into()));
        };
        let in_order = files
            .windows(2)
            .all(|pair| matches!(pair, [(first, _), (second, _)] if first < second));
        if last != PackDigests::FILE || !in_order {
            let problem = format!(
                "its files are not in order, or it has no {}: an older version may have made it",
                PackDigests::FILE
            );
            return Err(EvidenceError::Zip(problem));
        }
        let of_file = |name: &str| {
            let name = name.to_owned();
            move |fault| EvidenceError::File { name, fault }
        };
        let digests =
            PackDigests::verify(text(PackDigests::FILE, list)?, keys).map_err(of_file(last))?;
        let contents = || {
            files
                .iter()
                .map(|(name, bytes)| (name.as_str(), &bytes[..]))
        };
        digests.check(contents()).map_err(of_file(last))?;
        let checkpoint = contents()
            .find(|(name, bytes)| *name == CHECKPOINT && bytes.len() <= MAX_NOTE_BYTES)
            .ok_or_else(|| EvidenceError::Zip(format!("it holds no {CHECKPOINT}")))?;
        let checkpoint = text(CHECKPOINT, checkpoint.1)?;
        let head = LogCheckpoint::verify(checkpoint, keys).map_err(of_file(CHECKPOINT))?;
        let is_of_head = |head: &LogCheckpoint| {
            (head.origin.as_str(), head.size) == (digests.origin.as_str(), digests.size)
        };
        if !is_of_head(&head) {
            return Err(EvidenceError::OtherHead {
                name: PackDigests::FILE.into(),
            });
        }
        let mut receipts = Vec::new();
        for (name, bytes) in contents() {
            if !name.starts_with("receipts/") || !name.ends_with(".cose") {
                continue;
            }
            let verified = verify_bytes(bytes, keys).map_err(of_file(name))?;
            if verified.checkpoint != head {
                return Err(EvidenceError::OtherHead { name: name.into() });
            }
            receipts.push(verified);
        }
        if receipts.is_empty() {
            return Err(EvidenceError::Zip("it holds no receipts/*.cose".into()));
        }
        let mut not_checked = vec![
            "that the page, the tables, the exports and receipts/*.json say what receipts/*.cose say",
            "the keys in keys.txt: those that were given are trusted",
            "the model: whether it is in the state that the receipts name",
        ];
        if receipts.iter().any(|receipt| receipt.stamp.is_some()) {
            not_checked
                .push("the signatures of authorities under time stamps (`openssl ts -verify`)");
        }
        Ok(VerifiedPack {
            head,
            checkpoint: checkpoint.to_owned(),
            receipts,
            not_checked,
        })
    }
}

fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, EvidenceError> {
    std::str::from_utf8(bytes).map_err(|_| EvidenceError::Zip(format!("{name} is no text")))
}
