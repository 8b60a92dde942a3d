//! The sums of a class as they are written down: the columns whose sum is not 0, and of each the
//! two words of its sum, as plain bytes. Hashed words have a million columns, of which a class
//! knows a few thousand; and a list of numbers in CBOR takes as long to read as a thousand times as
//! many bytes.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::models::long_sum::LongSum;
use crate::state::plain_bytes;

/// As many sums as this are made room for on the word of a file alone; more only where the file has
/// a share of them.
const TRUSTED: usize = 1 << 26;

/// Where more sums are asked for, one in so many must be in the file.
const SHARE: usize = 64;

#[derive(Serialize, Deserialize)]
struct StoredSums {
    width: usize,
    /// Ascending columns, four bytes each, the least first; empty where every column has a sum.
    #[serde(with = "plain_bytes")]
    columns: Vec<u8>,
    /// The sums rounded to a number, eight bytes each.
    #[serde(with = "plain_bytes")]
    high: Vec<u8>,
    /// What rounding left, likewise; empty where it left nothing.
    #[serde(with = "plain_bytes")]
    low: Vec<u8>,
}

pub(super) fn serialize<S: Serializer>(sums: &[LongSum], to: S) -> Result<S::Ok, S::Error> {
    let width = u32::try_from(sums.len()).map_err(|_| S::Error::custom("too many columns"))?;
    let known: Vec<u32> = (0..width)
        .filter(|j| sums[*j as usize] != LongSum::default())
        .collect();
    let is_whole = 2 * known.len() > sums.len();
    let listed: Vec<u32> = if is_whole {
        (0..width).collect()
    } else {
        known
    };
    let words = listed.iter().map(|j| sums[*j as usize].words());
    let exact = words.clone().all(|[_, low]| low == 0.0);
    StoredSums {
        width: sums.len(),
        columns: if is_whole {
            Vec::new()
        } else {
            listed.iter().flat_map(|j| j.to_le_bytes()).collect()
        },
        high: words
            .clone()
            .flat_map(|[high, _]| high.to_le_bytes())
            .collect(),
        low: if exact {
            Vec::new()
        } else {
            words.flat_map(|[_, low]| low.to_le_bytes()).collect()
        },
    }
    .serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<LongSum>, D::Error> {
    let StoredSums {
        width,
        columns,
        high,
        low,
    } = StoredSums::deserialize(from)?;
    let unfit = || D::Error::custom("the sums of a class do not fit together");
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        let (whole, _) = bytes.as_chunks::<8>();
        whole
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect()
    };
    let stored = high.len() / 8;
    let high = numbers(&high);
    let low = if low.is_empty() {
        vec![0.0; stored]
    } else {
        numbers(&low)
    };
    let (columns, _) = columns.as_chunks::<4>();
    let columns: Vec<u32> = columns
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let is_whole = columns.is_empty() && stored == width;
    let ascends =
        columns.is_sorted_by(|a, b| a < b) && columns.last().is_none_or(|j| (*j as usize) < width);
    if low.len() != stored || !is_whole && columns.len() != stored || !ascends {
        return Err(unfit());
    }
    if width > TRUSTED && width / SHARE > stored {
        return Err(unfit());
    }
    let mut sums = vec![LongSum::default(); width];
    for (at, (high, low)) in high.into_iter().zip(low).enumerate() {
        let column = if is_whole { at } else { columns[at] as usize };
        sums[column] = LongSum::of_words([high, low]);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct SumsInFile {
        #[serde(with = "super")]
        sums: Vec<LongSum>,
    }

    fn written(sums: &[LongSum]) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(
            &SumsInFile {
                sums: sums.to_vec(),
            },
            &mut bytes,
        )
        .unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Vec<LongSum>> {
        ciborium::from_reader::<SumsInFile, _>(bytes)
            .ok()
            .map(|file| file.sums)
    }

    #[test]
    fn sums_come_back_to_the_last_bit_and_zeros_take_no_room() {
        let mut sparse = vec![LongSum::default(); 1 << 20];
        sparse[7].add(3.0);
        sparse[(1 << 20) - 1].add(0.1);
        sparse[(1 << 20) - 1].add(1e-20);
        let bytes = written(&sparse);
        assert!(bytes.len() < 200, "{} bytes", bytes.len());
        assert_eq!(read(&bytes), Some(sparse));
        let dense: Vec<LongSum> = (0..9).map(|j| LongSum::of_words([j as f64, 0.0])).collect();
        assert_eq!(read(&written(&dense)), Some(dense));
        assert_eq!(read(&written(&[])), Some(Vec::new()));
    }

    #[test]
    fn sums_that_do_not_fit_are_refused() {
        let plain = |width: usize, columns: &[u32], high: usize, low: usize| {
            let stored = StoredSums {
                width,
                columns: columns.iter().flat_map(|j| j.to_le_bytes()).collect(),
                high: vec![0; 8 * high],
                low: vec![0; 8 * low],
            };
            let mut bytes = Vec::new();
            ciborium::into_writer(
                &std::collections::BTreeMap::from([("sums", stored)]),
                &mut bytes,
            )
            .unwrap();
            read(&bytes)
        };
        assert!(plain(9, &[2, 5], 2, 2).is_some());
        assert!(plain(9, &[5, 2], 2, 2).is_none(), "columns fall");
        assert!(
            plain(9, &[2, 9], 2, 2).is_none(),
            "a column beyond the last"
        );
        assert!(plain(9, &[2, 5], 3, 3).is_none(), "a sum without a column");
        assert!(plain(9, &[2, 5], 2, 1).is_none(), "half a sum");
        assert!(
            plain(usize::MAX / 4, &[2, 5], 2, 2).is_none(),
            "more room than memory has"
        );
    }
}
