//! Statistics as bytes, to be sent between workers and kept: a mark, a header of lengths, names,
//! numbers; all little-endian. Reading checks every length before it makes room. A checksum is for
//! whoever stores or sends them.

use faer::Mat;

use super::exact::ExactSums;
use super::rounded::{RoundedShare, RoundedSums};
use super::{ColumnGrid, LinearStatistics, StatisticsSpec, SumsBody};
use crate::error::{Error, Result};

const MARK: &[u8; 8] = b"efface-s";
const VERSION: u32 = 2;
const MOST_NAME: usize = 4096;

/// More rows than were ever summed; counts of two such statistics still add up.
const MOST_ROWS: u64 = 1 << 53;

impl LinearStatistics {
    /// All of it as bytes. Exact sums of the same rows give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MARK.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((self.spec.features.len() as u32).to_le_bytes());
        out.extend((self.spec.targets.len() as u32).to_le_bytes());
        out.push(u8::from(self.spec.is_exact()));
        for name in self.spec.features.iter().chain(&self.spec.targets) {
            out.extend((name.len() as u32).to_le_bytes());
            out.extend(name.as_bytes());
        }
        out.extend(self.rows.to_le_bytes());
        self.support
            .iter()
            .for_each(|count| out.extend(count.to_le_bytes()));
        let mut numbers = |values: &[f64]| {
            values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes()))
        };
        match &self.body {
            SumsBody::Rounded(sums) => {
                // Without rows there is no origin yet, and any number may stand for it.
                let nowhere = vec![0.0; self.spec.width()];
                numbers(if sums.origin.is_empty() {
                    &nowhere
                } else {
                    &sums.origin
                });
                for share in [&sums.fresh, &sums.settled] {
                    numbers(&[share.charge]);
                    numbers(&share.size);
                }
                for matrix in [&sums.high, &sums.low] {
                    (0..matrix.ncols()).for_each(|j| numbers(&matrix.col_as_slice(j)[j..]));
                }
            }
            SumsBody::Exact(sums) => {
                for grid in self.spec.grids.as_deref().unwrap_or_default() {
                    numbers(&[grid.origin, grid.largest]);
                }
                sums.sums
                    .iter()
                    .chain(&sums.products)
                    .for_each(|sum| out.extend(sum.to_le_bytes()));
            }
        }
        out
    }

    /// The inverse of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// The bytes are not of this version, not whole, or were changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let fault = || {
            Error::Damaged(
                "these bytes are no statistics of this version, or not all of them".into(),
            )
        };
        bytes
            .strip_prefix(MARK)
            .and_then(Self::parse)
            .ok_or_else(fault)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut left = ByteReader(bytes);
        if left.u32()? != VERSION {
            return None;
        }
        let features = left.u32()? as usize;
        let targets = left.u32()? as usize;
        let is_exact = match left.take(1)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let mut names = |count: usize| -> Option<Vec<String>> {
            // Every name takes four bytes at least: a count beyond that is no count.
            if count > left.0.len() / 4 {
                return None;
            }
            (0..count)
                .map(|_| {
                    let length = left.u32()? as usize;
                    if length > MOST_NAME {
                        return None;
                    }
                    Some(str::from_utf8(left.take(length)?).ok()?.to_owned())
                })
                .collect()
        };
        let features = names(features)?;
        let targets = names(targets)?;
        let mut spec = StatisticsSpec::new(features, targets).ok()?;
        let width = spec.width();
        let triangle = |width: usize| width * (width + 1) / 2;
        let numbers = if is_exact {
            2 * width + 2 * (width + triangle(width))
        } else {
            width + 2 * (width + 2) + 2 * triangle(width + 1)
        };
        if left.0.len() != 8 * (1 + spec.features.len() + numbers) {
            return None;
        }
        let rows = left.u64()?;
        let support: Vec<u64> = (0..spec.features.len())
            .map(|_| left.u64())
            .collect::<Option<_>>()?;
        if rows > MOST_ROWS || support.iter().any(|count| *count > rows) {
            return None;
        }
        let body = if is_exact {
            let numbers = left.doubles(2 * width)?;
            let grids = numbers.chunks_exact(2).map(|pair| ColumnGrid {
                origin: pair[0],
                largest: pair[1],
            });
            spec = spec.exact(grids.collect()).ok()?;
            let mut sums = ExactSums::new(spec.grids.as_deref().unwrap_or_default());
            for sum in sums.sums.iter_mut().chain(&mut sums.products) {
                *sum = i128::from_le_bytes(*left.take(16)?.first_chunk()?);
            }
            SumsBody::Exact(sums)
        } else {
            let mut origin = left.doubles(width)?;
            let mut share = || {
                let charge = *left.doubles(1)?.first()?;
                Some(RoundedShare {
                    charge,
                    size: left.doubles(width + 1)?,
                })
                .filter(RoundedShare::is_sound)
            };
            let (fresh, settled) = (share()?, share()?);
            if fresh.size[0] + settled.size[0] == 0.0 {
                origin.clear();
            }
            let mut matrix = || -> Option<Mat<f64>> {
                let mut matrix = Mat::zeros(width + 1, width + 1);
                for j in 0..=width {
                    let column = left.doubles(width + 1 - j)?;
                    matrix.col_as_slice_mut(j)[j..].copy_from_slice(&column);
                }
                Some(matrix)
            };
            let high = matrix()?;
            let low = matrix()?;
            SumsBody::Rounded(RoundedSums {
                origin,
                high,
                low,
                fresh,
                settled,
            })
        };
        left.0.is_empty().then_some(Self {
            spec,
            rows,
            support,
            body,
            threads: 1,
        })
    }
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    /// Finite numbers.
    fn doubles(&mut self, count: usize) -> Option<Vec<f64>> {
        let bytes = self.take(count.checked_mul(8)?)?;
        let (chunks, _) = bytes.as_chunks::<8>();
        let values: Vec<f64> = chunks
            .iter()
            .map(|chunk| f64::from_le_bytes(*chunk))
            .collect();
        values
            .iter()
            .all(|value| value.is_finite())
            .then_some(values)
    }
}
