//! One row as bytes: a checksum, a nonce, then id, subject, weight, targets and features, all
//! little-endian. Whatever the bytes are, reading them gives a row that makes sense or a fault.
//!
//! The nonce is 32 random bytes. The row's leaf in the training set is made with it, so that
//! whoever does not have it can test no guess of the row: it is overwritten with the row.

use efface::RowRef;
use efface_receipt::Hash;
use sha2::{Digest, Sha256};

use super::layout::{RowLayout, RowShape};
use super::{FileFault, damaged};

/// Bytes of the checksum in front.
const CHECK: usize = 8;

/// Random bytes of one row.
pub(crate) type RowNonce = [u8; 32];

/// Words of a row are padded to a multiple of so many, and never to more than a row can have. Rows
/// of a network that reads at most so many words all have one length.
const WORD_BLOCK: usize = 1024;

/// Bytes in front of what a row holds.
const FRONT: usize = CHECK + size_of::<RowNonce>();

/// More of the hash that the checksum is the beginning of. The list of rows keeps it, under its
/// root.
pub(crate) type RowDigest = [u8; 16];

/// A row read back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredRow {
    pub(crate) nonce: RowNonce,
    pub(crate) id: String,
    pub(crate) subject: Option<String>,
    pub(crate) weight: f64,
    pub(crate) targets: Vec<f64>,
    /// The words that the features were made from, where they are kept.
    pub(crate) words: Vec<u32>,
    pub(crate) features: StoredFeatures,
}

impl StoredRow {
    /// Returns the ids of the row's words; none where the file keeps features alone.
    pub(crate) fn word_ids(&self) -> &[u32] {
        match &self.features {
            StoredFeatures::WordIds(ids) => ids,
            _ => &self.words,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredFeatures {
    Dense64(Vec<f64>),
    Dense32(Vec<f32>),
    Sparse64(Vec<u32>, Vec<f64>),
    Sparse32(Vec<u32>, Vec<f32>),
    WordIds(Vec<u32>),
}

impl StoredFeatures {
    pub(crate) fn as_ref(&self) -> RowRef<'_> {
        match self {
            Self::Dense64(values) => RowRef::Dense64(values),
            Self::Dense32(values) => RowRef::Dense32(values),
            Self::Sparse64(columns, values) => RowRef::Sparse64(columns, values),
            Self::Sparse32(columns, values) => RowRef::Sparse32(columns, values),
            Self::WordIds(ids) => RowRef::WordIds(ids),
        }
    }
}

/// A row to be written.
pub(crate) struct OutgoingRow<'a> {
    pub(crate) id: &'a str,
    pub(crate) subject: Option<&'a str>,
    pub(crate) weight: f64,
    pub(crate) targets: &'a [f64],
    /// The words that the features were made from; none unless the layout keeps them.
    pub(crate) words: &'a [u32],
    pub(crate) features: RowRef<'a>,
}

/// Replaces `out` by the bytes of a row; gives their digest.
pub(crate) fn encode(
    number: u64,
    shape: RowShape,
    nonce: &RowNonce,
    row: &OutgoingRow<'_>,
    out: &mut Vec<u8>,
) -> RowDigest {
    out.clear();
    append(number, shape, nonce, row, out)
}

/// Appends the ids of a row's words, padded with zeros: the length of a row that is overwritten
/// stays in the file, and must not tell how long its text was. No word has the id 0.
fn append_words(words: &[u32], shape: RowShape, out: &mut Vec<u8>) {
    let padded = words.len().next_multiple_of(WORD_BLOCK).min(shape.words);
    let padding = padded.saturating_sub(words.len());
    let ids = words.iter().copied().chain(std::iter::repeat_n(0, padding));
    ids.for_each(|id| out.extend(id.to_le_bytes()));
}

/// Appends the bytes of a row to others; gives their digest.
pub(crate) fn append(
    number: u64,
    shape: RowShape,
    nonce: &RowNonce,
    row: &OutgoingRow<'_>,
    out: &mut Vec<u8>,
) -> RowDigest {
    let layout = shape.layout;
    let start = out.len();
    out.extend([0; CHECK]);
    out.extend(nonce);
    for text in [Some(row.id), row.subject] {
        // Lengths are kept one higher, so that an absent text differs from an empty one.
        out.extend(text.map_or(0, |text| text.len() as u64 + 1).to_le_bytes());
        out.extend(text.unwrap_or_default().as_bytes());
    }
    out.extend(row.weight.to_le_bytes());
    row.targets
        .iter()
        .for_each(|target| out.extend(target.to_le_bytes()));
    if layout == RowLayout::Encoded {
        out.extend((row.words.len() as u32).to_le_bytes());
        append_words(row.words, shape, out);
    }
    match layout {
        RowLayout::Dense64 => match row.features {
            RowRef::Dense64(values) => values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes())),
            features => features.each(|_, value| out.extend(value.to_le_bytes())),
        },
        RowLayout::Dense32 | RowLayout::Encoded => row
            .features
            .each(|_, value| out.extend((value as f32).to_le_bytes())),
        RowLayout::Sparse64 | RowLayout::Sparse32 => {
            row.features
                .each(|column, _| out.extend((column as u32).to_le_bytes()));
            row.features.each(|_, value| match layout {
                RowLayout::Sparse32 => out.extend((value as f32).to_le_bytes()),
                _ => out.extend(value.to_le_bytes()),
            });
        }
        RowLayout::WordIds => {
            append_words(row.features.word_ids().unwrap_or_default(), shape, out);
        }
    }
    let (check, digest) = checksum(number, &out[start + CHECK..]);
    out[start..start + CHECK].copy_from_slice(&check);
    digest
}

/// The row in these bytes, and their digest.
pub(crate) fn decode(
    number: u64,
    shape: RowShape,
    bytes: &[u8],
) -> Result<(StoredRow, RowDigest), FileFault> {
    let Some((stored, body)) = bytes.split_first_chunk::<CHECK>() else {
        return damaged(format!("row number {number} is cut short"));
    };
    let (check, digest) = checksum(number, body);
    if *stored != check {
        return damaged(format!("row number {number} does not match its checksum"));
    }
    match read(shape, body) {
        Some(row) => Ok((row, digest)),
        None => damaged(format!("row number {number} makes no sense")),
    }
}

/// The hash of what a row holds, wherever it lies: checksum and nonce in front are left out. So are
/// features beside the words they were made from: a retrained encoder makes others of the same row.
pub(crate) fn content(shape: RowShape, bytes: &[u8]) -> Hash {
    let end = bytes.len().saturating_sub(shape.derived_bytes());
    efface_receipt::sha256(bytes.get(FRONT..end).unwrap_or_default())
}

/// Like [`content`], without id and subject: the same for a row that comes under another name.
pub(crate) fn substance_of(shape: RowShape, row: &OutgoingRow<'_>) -> Hash {
    let mut bytes = Vec::new();
    encode(
        0,
        shape,
        &[0; 32],
        &OutgoingRow {
            id: "",
            subject: None,
            ..*row
        },
        &mut bytes,
    );
    content(shape, &bytes)
}

fn checksum(number: u64, body: &[u8]) -> ([u8; CHECK], RowDigest) {
    let hash = Sha256::new()
        .chain_update(number.to_le_bytes())
        .chain_update(body)
        .finalize();
    let mut check = [0; CHECK];
    let mut digest = [0; 16];
    check.copy_from_slice(&hash[..CHECK]);
    digest.copy_from_slice(&hash[CHECK..][..16]);
    (check, digest)
}

fn read(shape: RowShape, mut bytes: &[u8]) -> Option<StoredRow> {
    let nonce = *take(&mut bytes, size_of::<RowNonce>())?.first_chunk()?;
    let id = text(&mut bytes)??;
    let subject = text(&mut bytes)?;
    let weight = *doubles(&mut bytes, 1)?.first()?;
    let targets = doubles(&mut bytes, shape.outputs)?;
    let sparse = |bytes: &mut &[u8], size: usize| {
        let count = bytes.len() / (4 + size);
        let columns = integers(bytes, count)?;
        let fine = columns.is_sorted_by(|a, b| a < b)
            && columns
                .last()
                .is_none_or(|last| (*last as usize) < shape.width);
        fine.then_some((columns, count))
    };
    let mut words = Vec::new();
    if shape.layout == RowLayout::Encoded {
        let count = u32::from_le_bytes(*take(&mut bytes, 4)?.first_chunk()?) as usize;
        words = integers(&mut bytes, count)?;
        let padding = bytes.len().checked_sub(shape.derived_bytes())?;
        let is_padding = take(&mut bytes, padding)?.iter().all(|byte| *byte == 0);
        (is_padding && (1..=shape.words).contains(&count)).then_some(())?;
    }
    let features = match shape.layout {
        RowLayout::Dense32 | RowLayout::Encoded => {
            StoredFeatures::Dense32(singles(&mut bytes, shape.width)?)
        }
        RowLayout::Dense64 => StoredFeatures::Dense64(doubles(&mut bytes, shape.width)?),
        RowLayout::Sparse64 => {
            let (columns, count) = sparse(&mut bytes, 8)?;
            StoredFeatures::Sparse64(columns, doubles(&mut bytes, count)?)
        }
        RowLayout::Sparse32 => {
            let (columns, count) = sparse(&mut bytes, 4)?;
            StoredFeatures::Sparse32(columns, singles(&mut bytes, count)?)
        }
        RowLayout::WordIds => {
            let count = bytes.len() / 4;
            (count <= shape.words).then_some(())?;
            StoredFeatures::WordIds(unpadded(integers(&mut bytes, count)?))
        }
    };
    (bytes.is_empty() && weight >= 0.0).then_some(StoredRow {
        nonce,
        id,
        subject,
        weight,
        targets,
        words,
        features,
    })
}

/// Removes the padding behind word ids.
fn unpadded(mut ids: Vec<u32>) -> Vec<u32> {
    let length = ids
        .iter()
        .rposition(|id| *id != 0)
        .map_or(0, |last| last + 1);
    ids.truncate(length);
    ids
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

/// A text that may be absent.
fn text(bytes: &mut &[u8]) -> Option<Option<String>> {
    let length = u64::from_le_bytes(*take(bytes, 8)?.first_chunk()?);
    let Some(length) = length.checked_sub(1) else {
        return Some(None);
    };
    let text = take(bytes, usize::try_from(length).ok()?)?;
    Some(Some(str::from_utf8(text).ok()?.to_owned()))
}

/// Finite numbers.
fn doubles(bytes: &mut &[u8], count: usize) -> Option<Vec<f64>> {
    let values: Vec<f64> = take(bytes, count.checked_mul(8)?)?
        .as_chunks()
        .0
        .iter()
        .map(|b| f64::from_le_bytes(*b))
        .collect();
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some(values)
}

fn integers(bytes: &mut &[u8], count: usize) -> Option<Vec<u32>> {
    let taken = take(bytes, count.checked_mul(4)?)?;
    Some(
        taken
            .as_chunks()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b))
            .collect(),
    )
}

/// Finite numbers in single precision.
fn singles(bytes: &mut &[u8], count: usize) -> Option<Vec<f32>> {
    let values: Vec<f32> = take(bytes, count.checked_mul(4)?)?
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect();
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An overwritten row keeps its length.
    #[test]
    fn the_length_of_a_row_does_not_tell_how_long_its_text_was() {
        for layout in [RowLayout::Encoded, RowLayout::WordIds] {
            let shape = RowShape {
                layout,
                width: 2,
                outputs: 1,
                words: 250,
            };
            let length = |words: usize| {
                let ids = vec![3; words];
                let row = OutgoingRow {
                    id: "r1",
                    subject: None,
                    weight: 1.0,
                    targets: &[1.0],
                    words: if layout == RowLayout::Encoded {
                        &ids
                    } else {
                        &[]
                    },
                    features: match layout {
                        RowLayout::Encoded => RowRef::Dense32(&[1.0, 2.0]),
                        _ => RowRef::WordIds(&ids),
                    },
                };
                let mut bytes = Vec::new();
                encode(7, shape, &[9; 32], &row, &mut bytes);
                let (stored, _) = decode(7, shape, &bytes).unwrap();
                assert_eq!(stored.word_ids(), ids);
                bytes.len()
            };
            assert_eq!((length(1), length(99)), (length(250), length(250)));
        }
    }

    #[test]
    fn rows_come_back_and_nothing_else_does() {
        let shapes = [
            (RowLayout::Dense64, RowRef::Dense64(&[1.5, 0.0, -2.0])),
            (RowLayout::Sparse64, RowRef::Sparse64(&[0, 2], &[0.1, -2.0])),
            (RowLayout::Sparse32, RowRef::Sparse32(&[1], &[3.0])),
            (RowLayout::Dense32, RowRef::Dense32(&[1.5, 0.0, -2.0])),
            (RowLayout::Encoded, RowRef::Dense32(&[1.5, 0.0, -2.0])),
            (RowLayout::WordIds, RowRef::WordIds(&[0, u32::MAX, 0, 1])),
            (RowLayout::WordIds, RowRef::WordIds(&[])),
        ];
        for (layout, features) in shapes {
            let shape = RowShape {
                layout,
                width: 3,
                outputs: 2,
                words: 4,
            };
            let words: &[u32] = if layout == RowLayout::Encoded {
                &[7, 0, u32::MAX]
            } else {
                &[]
            };
            let targets = &[1.0, -1.0];
            let row = OutgoingRow {
                id: "r1",
                subject: Some(""),
                weight: 2.0,
                targets,
                words,
                features,
            };
            let mut bytes = Vec::new();
            let written = encode(7, shape, &[9; 32], &row, &mut bytes);
            let (stored, digest) = decode(7, shape, &bytes).unwrap();
            assert_eq!(digest, written);
            assert_eq!(
                (stored.id.as_str(), stored.subject.as_deref(), stored.weight),
                ("r1", Some(""), 2.0)
            );
            assert_eq!(stored.features.as_ref().entries(), features.entries());
            assert_eq!(stored.features.as_ref().word_ids(), features.word_ids());
            assert_eq!((stored.nonce, stored.words.as_slice()), ([9; 32], words));
            let other = OutgoingRow {
                id: "r2",
                subject: None,
                features: stored.features.as_ref(),
                ..row
            };
            assert_eq!(substance_of(shape, &other), substance_of(shape, &row));
            assert!(
                decode(8, shape, &bytes).is_err(),
                "a row under another number"
            );
            for at in 0..bytes.len() {
                assert!(decode(7, shape, &bytes[..at]).is_err());
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                assert!(decode(7, shape, &flipped).is_err());
                // The checksum is no secret: a body that lies with the right one must not be
                // believed either.
                let body = flipped[CHECK..].to_vec();
                flipped[..CHECK].copy_from_slice(&checksum(7, &body).0);
                let _ = decode(7, shape, &flipped);
            }
        }
    }
}
