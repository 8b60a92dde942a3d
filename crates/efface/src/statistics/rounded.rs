//! Sums in doubles. Numbers are taken about an origin near the first rows, so that columns far from zero keep their digits; blocks
//! of rows are multiplied with themselves, and what they give is added up in two words, so that a sum over any number of rows is
//! as good as one over a few blocks.

use std::ops::Range;

use faer::{Accum, Mat, MatRef, Par};

use super::{CentredMoments, ColumnView, SumsStep};
use crate::linalg::{DoubleWord, UNIT, coarse, multiply_lower, par, two_sum};

/// Rows of a block.
const BLOCK: usize = 256;

/// So many blocks are added up in doubles before they join the rest.
const TOGETHER: usize = 64;

/// Up to this width every thread has sums of its own.
const NARROW: usize = 1024;

/// Rows that the origin is chosen from.
const FIRST: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundedSums {
    /// Empty before the first rows.
    pub(super) origin: Vec<f64>,
    /// The lower triangle of Σw z̃z̃ᵀ in two words, z̃ being 1 and the columns about their origin.
    pub(super) high: Mat<f64>,
    pub(super) low: Mat<f64>,
    /// Σw z̃² of all rows that ever came or went: what sums have rounded by is a share of it.
    pub(super) reach: Vec<f64>,
}

impl RoundedSums {
    pub(super) fn new(width: usize) -> Self {
        let all = width + 1;
        Self {
            origin: Vec::new(),
            high: Mat::zeros(all, all),
            low: Mat::zeros(all, all),
            reach: vec![0.0; all],
        }
    }

    pub(super) fn add(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
        rows: usize,
        step: SumsStep,
        threads: usize,
    ) {
        if rows == 0 {
            return;
        }
        if self.origin.is_empty() {
            self.origin = columns.iter().map(median_of_first).collect();
        }
        let origin = std::mem::take(&mut self.origin);
        let batch = BatchBlocks { columns, weights, origin: &origin };
        let share = rows.div_ceil(threads).max(4 * BLOCK);
        // A stretch at a time, so that no sum of doubles has many terms.
        let stretch = share.min(TOGETHER * BLOCK);
        if origin.len() < NARROW && share < rows {
            for start in (0..rows).step_by(stretch * threads) {
                let parts: Vec<Mat<f64>> = std::thread::scope(|scope| {
                    let starts = (start..rows.min(start + stretch * threads)).step_by(stretch);
                    let batch = &batch;
                    let handles: Vec<_> = starts
                        .map(|start| {
                            scope.spawn(move || batch.sum(start..rows.min(start + stretch), Par::Seq))
                        })
                        .collect();
                    let join = |handle: std::thread::ScopedJoinHandle<'_, Mat<f64>>| {
                        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    };
                    handles.into_iter().map(join).collect()
                });
                parts.iter().for_each(|part| self.join(part, step));
            }
        } else {
            for start in (0..rows).step_by(stretch) {
                let part = batch.sum(start..rows.min(start + stretch), par(threads));
                self.join(&part, step);
            }
        }
        self.origin = origin;
    }

    /// Adds the sums of a stretch, or takes them out.
    fn join(&mut self, part: &Mat<f64>, step: SumsStep) {
        let sign = if step == SumsStep::Add { 1.0 } else { -1.0 };
        for j in 0..part.ncols() {
            self.reach[j] += part[(j, j)];
            let high = &mut self.high.col_as_slice_mut(j)[j..];
            let low = &mut self.low.col_as_slice_mut(j)[j..];
            for ((high, low), more) in high.iter_mut().zip(low).zip(&part.col_as_slice(j)[j..]) {
                let (sum, rest) = two_sum(*high, sign * more);
                *high = sum;
                *low += rest;
            }
        }
    }

    /// Adds sums about another origin: with z − c₁ = (z − c₂) + δ, their products are Σ + mδᵀ + δmᵀ + Wδδᵀ.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.origin.is_empty() {
            return;
        }
        if self.origin.is_empty() {
            *self = other.clone();
            return;
        }
        let entry = |i: usize, j: usize| DoubleWord { high: other.high[(i, j)], low: other.low[(i, j)] };
        let weight = entry(0, 0);
        let mut delta = vec![DoubleWord::default()];
        delta.extend(self.origin.iter().zip(&other.origin).map(|(mine, theirs)| {
            let (high, low) = two_sum(*theirs, -*mine);
            DoubleWord { high, low }
        }));
        for j in 0..delta.len() {
            // What the other sums have rounded by is carried along with them.
            let moved = other.reach[j].sqrt() + delta[j].value().abs() * other.reach[0].sqrt();
            self.reach[j] += moved * moved;
            for i in j..delta.len() {
                let mut moved = entry(i, j);
                if j == 0 {
                    // Sums: Σw(z − c₁) = m + Wδ.
                    moved = moved.plus(times(weight, delta[i]));
                } else {
                    moved = moved.plus(times(entry(i, 0), delta[j])).plus(times(entry(j, 0), delta[i]));
                    moved = moved.plus(times(times(weight, delta[i]), delta[j]));
                }
                let sum = DoubleWord { high: self.high[(i, j)], low: self.low[(i, j)] }.plus(moved);
                self.high[(i, j)] = sum.high;
                self.low[(i, j)] = sum.low;
            }
        }
    }

    /// Replaces what is known of rows that came and went by the size of the sums as they are, or as they were `before` where that is more, up to the
    /// next power of two: so much tells how well they are rounded, and nothing of a row that left. Columns that no row has any more are 0.
    pub(super) fn settle(&mut self, before: &[f64], support: &[u64]) {
        for (feature, _) in support.iter().enumerate().filter(|(_, rows)| **rows == 0) {
            let at = feature + 1;
            if self.origin.get(feature).is_some_and(|origin| *origin == 0.0) {
                for matrix in [&mut self.high, &mut self.low] {
                    matrix.col_as_slice_mut(at)[at..].fill(0.0);
                    (0..at).for_each(|column| matrix[(at, column)] = 0.0);
                }
            }
        }
        for (at, reach) in self.reach.iter_mut().enumerate() {
            let size = self.high[(at, at)].max(0.0) * (1.0 + 1e-9);
            *reach = match size.max(before[at]) {
                size if size > 0.0 => size.log2().ceil().clamp(-1000.0, 1000.0).exp2(),
                _ => 0.0,
            };
        }
    }

    /// Counts every row `factor` times.
    pub(super) fn scale(&mut self, factor: f64) {
        self.reach.iter_mut().for_each(|reach| *reach *= factor);
        for j in 0..self.high.ncols() {
            for i in j..self.high.nrows() {
                let scaled = DoubleWord { high: self.high[(i, j)], low: self.low[(i, j)] }.times(factor);
                self.high[(i, j)] = scaled.high;
                self.low[(i, j)] = scaled.low;
            }
        }
    }

    pub(super) fn moments(&self) -> CentredMoments {
        let width = self.high.nrows() - 1;
        let entry = |i: usize, j: usize| DoubleWord { high: self.high[(i, j)], low: self.low[(i, j)] };
        let origin = if self.origin.is_empty() { vec![0.0; width] } else { self.origin.clone() };
        CentredMoments {
            weight: entry(0, 0),
            origin,
            sums: (1..=width).map(|i| entry(i, 0)).collect(),
            high: self.high.as_ref().submatrix(1, 1, width, width).to_owned(),
            low: self.low.as_ref().submatrix(1, 1, width, width).to_owned(),
            support: Vec::new(),
            charge: UNIT * (BLOCK + TOGETHER + 16) as f64,
            reach: self.reach[1..].iter().map(|square| coarse(square.sqrt() * (1.0 + 1e-9))).collect(),
            weight_reach: coarse(self.reach[0].sqrt() * (1.0 + 1e-9)),
            is_exact: false,
        }
    }
}

fn times(a: DoubleWord, b: DoubleWord) -> DoubleWord {
    a.times(b.high).plus(DoubleWord::new(a.high * b.low))
}

/// The median of the first rows: a number of the column itself, so that a column that never changes is 0 about it, and no odd row
/// moves it.
fn median_of_first(column: &ColumnView<'_>) -> f64 {
    let mut first: Vec<f64> = column.iter().take(FIRST).collect();
    let middle = first.len() / 2;
    match first.get(middle) {
        None => 0.0,
        Some(_) => *first.select_nth_unstable_by(middle, f64::total_cmp).1,
    }
}

struct BatchBlocks<'a> {
    columns: &'a [ColumnView<'a>],
    weights: Option<ColumnView<'a>>,
    origin: &'a [f64],
}

impl BatchBlocks<'_> {
    /// The products of these rows.
    fn sum(&self, rows: Range<usize>, par: Par) -> Mat<f64> {
        let all = self.columns.len() + 1;
        let mut sum = Mat::zeros(all, all);
        let mut block = vec![0.0; all * BLOCK.min(rows.len())];
        for start in rows.clone().step_by(BLOCK) {
            let part = start..rows.end.min(start + BLOCK);
            let filled = &mut block[..all * part.len()];
            filled.iter_mut().step_by(all).for_each(|one| *one = 1.0);
            for (at, (column, origin)) in self.columns.iter().zip(self.origin).enumerate() {
                let values = column.part(part.clone()).iter();
                filled[at + 1..]
                    .iter_mut()
                    .step_by(all)
                    .zip(values)
                    .for_each(|(entry, x)| *entry = x - origin);
            }
            if let Some(weights) = self.weights {
                for (row, weight) in filled.chunks_exact_mut(all).zip(weights.part(part.clone()).iter()) {
                    row.iter_mut().for_each(|entry| *entry *= weight.sqrt());
                }
            }
            let z = MatRef::from_column_major_slice(&*filled, all, part.len());
            multiply_lower(sum.as_mut(), Accum::Add, z, z.transpose(), 1.0, par);
        }
        sum
    }
}
