//! Sums in integers. Every number is a multiple of its column's unit, a power of two that is fixed
//! beforehand, so that a product of two numbers is a whole number of units and a sum of them is
//! exact, whatever the order.
//!
//! What is summed are the numbers as the grid holds them, as a table of single precision holds
//! other numbers than one of double precision: a model is the model of those rows, and forgetting
//! one of them is exact to the last bit.
//!
//! A number has 44 bits here and a double holds 53, so a number is written as h·2²² + l with two
//! halves of 22 bits. The products hhᵀ, hlᵀ and llᵀ of 512 rows fit into doubles without rounding,
//! which makes them matrix products of ordinary doubles; what they give is added up in integers of
//! 128 bits.

use std::ops::Range;

use faer::{Accum, Mat, MatRef, Par};

use super::{CentredMoments, ColumnGrid, ColumnView, SumsStep};
use crate::error::{Error, Result};
use crate::linalg::{DoubleWord, UNIT, coarse, multiply, multiply_lower, par};

/// Bits of a number.
const BITS: i32 = 44;

/// Bits of its lower half.
const HALF: i32 = BITS / 2;

/// 2^HALF.
const RADIX: f64 = (1u64 << HALF) as f64;

/// Rows whose products of halves, below 2⁴⁴ each, add up without rounding.
const BLOCK: usize = 512;

/// So many products below 2⁸⁶ add up below 2¹²⁷.
const MOST_ROWS: u64 = 1 << 40;

/// Up to this width every thread has sums of its own.
const NARROW: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExactSums {
    /// The unit of column j is 2 to the power of this.
    units: Vec<i32>,
    origins: Vec<f64>,
    /// Σz per column about its origin, in its units.
    pub(super) sums: Vec<i128>,
    /// Σ z_i z_j for i ≥ j in units of both, column after column of the lower triangle.
    pub(super) products: Vec<i128>,
}

impl ExactSums {
    pub(super) fn new(grids: &[ColumnGrid]) -> Self {
        let width = grids.len();
        // |z| ≤ 2⁴³ units.
        let units = grids
            .iter()
            .map(|grid| grid.largest.log2().ceil() as i32 - (BITS - 1))
            .collect();
        let origins = grids.iter().map(|grid| grid.origin).collect();
        Self {
            units,
            origins,
            sums: vec![0; width],
            products: vec![0; width * (width + 1) / 2],
        }
    }

    pub(super) fn add(
        &mut self,
        columns: &[ColumnView<'_>],
        rows: usize,
        step: SumsStep,
        threads: usize,
    ) -> Result<()> {
        check_rows(rows as u64)?;
        let scales: Vec<f64> = self
            .units
            .iter()
            .map(|unit| f64::from(-unit).exp2())
            .collect();
        let batch = GridBlocks {
            columns,
            scales: &scales,
            origins: &self.origins.clone(),
        };
        let share = rows.div_ceil(threads).max(4 * BLOCK);
        if columns.len() <= NARROW && share < rows {
            let parts: Vec<Self> = std::thread::scope(|scope| {
                let handles: Vec<_> = (0..rows)
                    .step_by(share)
                    .map(|start| {
                        let mut part = self.empty();
                        let batch = &batch;
                        scope.spawn(move || {
                            batch.sum(start..rows.min(start + share), &mut part, step, Par::Seq);
                            part
                        })
                    })
                    .collect();
                let join = |handle: std::thread::ScopedJoinHandle<'_, Self>| {
                    handle
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                handles.into_iter().map(join).collect()
            });
            parts.iter().for_each(|part| self.absorb(part));
        } else {
            batch.sum(0..rows, self, step, par(threads));
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Self, mine: u64, theirs: u64) -> Result<()> {
        check_rows(mine.saturating_add(theirs))?;
        self.absorb(other);
        Ok(())
    }

    fn empty(&self) -> Self {
        Self {
            units: self.units.clone(),
            origins: self.origins.clone(),
            sums: vec![0; self.sums.len()],
            products: vec![0; self.products.len()],
        }
    }

    fn absorb(&mut self, other: &Self) {
        let mine = self.sums.iter_mut().chain(&mut self.products);
        mine.zip(other.sums.iter().chain(&other.products))
            .for_each(|(sum, more)| *sum = sum.wrapping_add(*more));
    }

    pub(super) fn moments(&self, rows: u64) -> CentredMoments {
        let width = self.units.len();
        let mut high = Mat::zeros(width, width);
        let mut low = Mat::zeros(width, width);
        let mut products = self.products.iter();
        for j in 0..width {
            for i in j..width {
                let found = two_words(
                    products.next().copied().unwrap_or(0),
                    self.units[i] + self.units[j],
                );
                high[(i, j)] = found.high;
                low[(i, j)] = found.low;
            }
        }
        let reach = (0..width)
            .map(|j| coarse(high[(j, j)].max(0.0).sqrt() * (1.0 + 1e-9)))
            .collect();
        let sums = self
            .sums
            .iter()
            .zip(&self.units)
            .map(|(sum, unit)| two_words(*sum, *unit))
            .collect();
        CentredMoments {
            weight: DoubleWord::new(rows as f64),
            origin: self.origins.clone(),
            sums,
            high,
            low,
            support: Vec::new(),
            charge: UNIT * UNIT * 64.0,
            reach,
            weight_reach: coarse((rows as f64).sqrt()),
            is_exact: true,
        }
    }
}

fn check_rows(rows: u64) -> Result<()> {
    if rows < MOST_ROWS {
        return Ok(());
    }
    Err(Error::Parameter {
        name: "rows",
        value: rows.to_string(),
        range: "below 2^40 in exact sums",
    })
}

/// The integer times 2^unit.
fn two_words(value: i128, unit: i32) -> DoubleWord {
    let high = value as f64;
    let low = (value - high as i128) as f64;
    let scale = f64::from(unit).exp2();
    DoubleWord {
        high: high * scale,
        low: low * scale,
    }
}

struct GridBlocks<'a> {
    columns: &'a [ColumnView<'a>],
    /// What turns a number into units.
    scales: &'a [f64],
    origins: &'a [f64],
}

impl GridBlocks<'_> {
    /// Adds the products of these rows to `into`, or takes them out.
    fn sum(&self, rows: Range<usize>, into: &mut ExactSums, step: SumsStep, par: Par) {
        let width = self.columns.len();
        let sign = if step == SumsStep::Add { 1 } else { -1 };
        let room = width * BLOCK.min(rows.len());
        let mut upper = vec![0.0; room];
        let mut lower = vec![0.0; room];
        let mut both = Mat::<f64>::zeros(width, width);
        let mut cross = both.clone();
        let mut small = both.clone();
        for start in rows.clone().step_by(BLOCK) {
            let part = start..rows.end.min(start + BLOCK);
            let upper = &mut upper[..width * part.len()];
            let lower = &mut lower[..width * part.len()];
            for (at, column) in self.columns.iter().enumerate() {
                let scale = self.scales[at];
                let origin = self.origins[at];
                let mut total = 0i128;
                let entries = upper[at..]
                    .iter_mut()
                    .step_by(width)
                    .zip(lower[at..].iter_mut().step_by(width));
                for ((h, l), x) in entries.zip(column.part(part.clone()).iter()) {
                    let units = ((x - origin) * scale).round_ties_even();
                    *h = (units / RADIX).round_ties_even();
                    *l = units - *h * RADIX;
                    total += units as i128;
                }
                into.sums[at] = into.sums[at].wrapping_add(sign * total);
            }
            let h = MatRef::from_column_major_slice(&*upper, width, part.len());
            let l = MatRef::from_column_major_slice(&*lower, width, part.len());
            multiply_lower(both.as_mut(), Accum::Replace, h, h.transpose(), 1.0, par);
            multiply(cross.as_mut(), Accum::Replace, h, l.transpose(), 1.0, par);
            multiply_lower(small.as_mut(), Accum::Replace, l, l.transpose(), 1.0, par);
            let mut sums = into.products.iter_mut();
            for j in 0..width {
                for (i, sum) in (j..width).zip(&mut sums) {
                    let middle = (cross[(i, j)] + cross[(j, i)]) as i128;
                    let found =
                        ((both[(i, j)] as i128) << BITS) + (middle << HALF) + small[(i, j)] as i128;
                    *sum = sum.wrapping_add(sign * found);
                }
            }
        }
    }
}
