//! Reading an evidence pack that somebody sent: as little as verifying needs, within bounds.

use std::io::{Read, Seek};

use efface_receipt::{MAX_BUNDLE_BYTES, MAX_NOTE_BYTES};

use crate::pack::EvidenceError;

/// The most files of a pack that is read.
const MOST_FILES: usize = 100_000;

/// The most bytes of receipts that are kept in memory.
const MOST_BYTES: usize = 256 << 20;

/// Whether these are the first bytes of a ZIP file.
#[must_use]
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// What of a pack can be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFiles {
    /// The receipts with their proofs, by the names of their files.
    pub receipts: Vec<(String, Vec<u8>)>,
    /// The head of the log.
    pub checkpoint: String,
}

impl PackFiles {
    /// Reads the receipts and the checkpoint of a pack. Nothing is verified, and nothing is written
    /// anywhere.
    ///
    /// # Errors
    /// The file is no pack, or larger than one that is read.
    pub fn read(file: impl Read + Seek) -> Result<Self, EvidenceError> {
        let mut archive = zip::ZipArchive::new(file)?;
        if archive.len() > MOST_FILES {
            let found = archive.len();
            return Err(EvidenceError::Zip(format!(
                "it holds {found} files, more than {MOST_FILES}"
            )));
        }
        let mut receipts = Vec::new();
        let mut checkpoint = None;
        let mut total = 0;
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at)?;
            let name = entry.name()?.into_owned();
            let is_receipt = name.starts_with("receipts/") && name.ends_with(".cose");
            if is_receipt {
                let bytes = read_bounded(&mut entry, MAX_BUNDLE_BYTES, &name)?;
                total += bytes.len();
                if total > MOST_BYTES {
                    return Err(EvidenceError::Zip(format!(
                        "its receipts have more than {MOST_BYTES} bytes"
                    )));
                }
                receipts.push((name, bytes));
            } else if name == "checkpoint.txt" {
                let bytes = read_bounded(&mut entry, MAX_NOTE_BYTES, &name)?;
                checkpoint = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        let checkpoint =
            checkpoint.ok_or_else(|| EvidenceError::Zip("it holds no checkpoint.txt".into()))?;
        if receipts.is_empty() {
            return Err(EvidenceError::Zip("it holds no receipts/*.cose".into()));
        }
        Ok(Self {
            receipts,
            checkpoint,
        })
    }
}

/// The bytes of a file in the pack. What its head says of its length is not believed.
fn read_bounded(entry: &mut impl Read, most: usize, name: &str) -> Result<Vec<u8>, EvidenceError> {
    let mut bytes = Vec::new();
    let read = entry.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|cause| EvidenceError::Zip(format!("{name:?}: {cause}")))?;
    if bytes.len() > most {
        return Err(EvidenceError::Zip(format!(
            "{name:?} has more than {most} bytes"
        )));
    }
    Ok(bytes)
}
