//! Columns of a batch, as they lie in memory: one after the other, or one number in every row of a
//! table.

use crate::error::{Error, Result};
use crate::linalg::widest;
use crate::rows::RowId;

/// One column of a batch, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ColumnView<'a> {
    values: &'a [f64],
    /// From one number to the next.
    stride: usize,
}

impl<'a> ColumnView<'a> {
    /// A column whose numbers follow each other.
    pub fn dense(values: &'a [f64]) -> Self {
        Self { values, stride: 1 }
    }

    /// Column `column` of a table of `width` columns that lies in memory row after row.
    ///
    /// # Errors
    /// The table has no such column, or is not a whole number of rows.
    pub fn of_table(table: &'a [f64], width: usize, column: usize) -> Result<Self> {
        if width == 0 || column >= width || !table.len().is_multiple_of(width) {
            return Err(Error::Shape {
                what: "numbers of a table",
                found: table.len(),
                expected: width,
            });
        }
        Ok(Self {
            values: table.get(column..).unwrap_or_default(),
            stride: width,
        })
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.values.len().div_ceil(self.stride)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The numbers.
    pub fn iter(&self) -> impl Iterator<Item = f64> + 'a {
        self.values.iter().step_by(self.stride).copied()
    }

    /// The numbers of some rows.
    pub(super) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let start = (rows.start * self.stride).min(self.values.len());
        let end = (rows.end * self.stride).min(self.values.len());
        Self {
            values: &self.values[start..end],
            stride: self.stride,
        }
    }

    /// The first number that lies farther from `origin`, or is none, with its row.
    pub(super) fn beyond(&self, origin: f64, most: f64) -> Option<(usize, f64)> {
        let is_fine = |x: f64| (x - origin).abs() <= most;
        if self.stride == 1 {
            let fine = widest(
                #[inline(always)]
                || {
                    let count: usize = self
                        .values
                        .iter()
                        .map(|x| ((x - origin).abs() <= most) as usize)
                        .sum();
                    count == self.values.len()
                },
            );
            if fine {
                return None;
            }
        }
        self.iter().enumerate().find(|(_, x)| !is_fine(*x))
    }

    pub(super) fn non_zeros(&self) -> u64 {
        if self.stride != 1 {
            return self.iter().filter(|x| *x != 0.0).count() as u64;
        }
        widest(
            #[inline(always)]
            || self.values.iter().map(|x| (*x != 0.0) as u64).sum(),
        )
    }
}

/// Where the numbers of a column lie: within `largest` of `origin`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnGrid {
    /// The point that numbers are measured from.
    pub origin: f64,
    /// The most that one lies away from it.
    pub largest: f64,
}

impl ColumnGrid {
    /// The grid of numbers about zero.
    pub fn within(largest: f64) -> Self {
        Self {
            origin: 0.0,
            largest,
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        (1e-200..=1e200).contains(&self.largest) && self.origin.abs() <= 1e200
    }
}

/// The least and the greatest number of every column: what exact sums must know beforehand. It
/// merges like the sums do.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReach {
    least: Vec<f64>,
    greatest: Vec<f64>,
}

impl ColumnReach {
    /// Of no rows.
    pub fn new(columns: usize) -> Self {
        Self {
            least: vec![f64::INFINITY; columns],
            greatest: vec![f64::NEG_INFINITY; columns],
        }
    }

    /// Takes note of rows.
    ///
    /// # Errors
    /// There are more or fewer columns, or a number is not finite.
    pub fn update(&mut self, columns: &[ColumnView<'_>]) -> Result<()> {
        if columns.len() != self.least.len() {
            return Err(Error::Shape {
                what: "columns",
                found: columns.len(),
                expected: self.least.len(),
            });
        }
        let mut next = self.clone();
        for (at, column) in columns.iter().enumerate() {
            if let Some((row, value)) = column.beyond(0.0, f64::MAX) {
                return Err(Error::NotFinite {
                    row: RowId(row as u64),
                    place: format!("column {at}"),
                    value,
                });
            }
            next.least[at] = column.iter().fold(next.least[at], f64::min);
            next.greatest[at] = column.iter().fold(next.greatest[at], f64::max);
        }
        *self = next;
        Ok(())
    }

    /// Adds what another worker has seen.
    ///
    /// # Errors
    /// There are more or fewer columns.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.least.len() != self.least.len() {
            let expected = self.least.len();
            return Err(Error::Shape {
                what: "columns",
                found: other.least.len(),
                expected,
            });
        }
        self.least
            .iter_mut()
            .zip(&other.least)
            .for_each(|(mine, theirs)| *mine = mine.min(*theirs));
        self.greatest
            .iter_mut()
            .zip(&other.greatest)
            .for_each(|(mine, theirs)| *mine = mine.max(*theirs));
        Ok(())
    }

    /// The least and the greatest number of every column, as they are sent between workers.
    pub fn bounds(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.least
            .iter()
            .copied()
            .zip(self.greatest.iter().copied())
    }

    /// Grids for [`StatisticsSpec::exact`](super::StatisticsSpec::exact). They are powers of two
    /// and multiples of such, so that they say little of any row.
    pub fn grids(&self) -> Vec<ColumnGrid> {
        self.bounds()
            .map(|(least, greatest)| grid(least, greatest))
            .collect()
    }
}

/// A grid that numbers from `least` to `greatest` lie in. Zero is its origin unless they all lie
/// far from it.
fn grid(least: f64, greatest: f64) -> ColumnGrid {
    let size = least.abs().max(greatest.abs());
    if !size.is_finite() || size == 0.0 {
        return ColumnGrid::within(1.0);
    }
    let round_up = |size: f64| size.clamp(1e-190, 1e190).log2().ceil().exp2();
    let half = round_up((greatest - least).max(size * 1e-12) / 2.0);
    if 4.0 * half >= size {
        return ColumnGrid::within(round_up(size));
    }
    // From the nearest multiple of `half` to the middle, no number lies 3/2 of it away.
    ColumnGrid {
        origin: ((least / 2.0 + greatest / 2.0) / half).round() * half,
        largest: 2.0 * half,
    }
}
