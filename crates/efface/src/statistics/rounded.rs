//! Sums in doubles. Numbers are taken about an origin near the first rows, so that columns far from
//! zero keep their digits; blocks of rows are multiplied with themselves, and what they give is
//! added up in two words, so that a sum over any number of rows is as good as one over a few
//! blocks.

use std::ops::Range;

use faer::{Accum, Mat, MatRef, Par};

use super::{CentredMoments, ColumnView};
use crate::linalg::{DoubleWord, UNIT, coarse, multiply_lower, par, two_sum};

/// How rows are added up: the products of a block of rows in doubles, then those of some blocks,
/// and such stretches in two words.
#[derive(Debug, Clone, Copy)]
struct SummingChain {
    block: usize,
    blocks: usize,
}

impl SummingChain {
    /// The chain of a table of so many columns. Long blocks multiply fastest; those of narrow
    /// tables, whose products stay in the cache, are short, because every bound on a model of the
    /// sums is proportional to how long a sum in doubles is.
    fn of_width(width: usize) -> Self {
        if width <= 256 {
            Self {
                block: 32,
                blocks: 8,
            }
        } else {
            Self {
                block: 256,
                blocks: 64,
            }
        }
    }

    /// Rows of a stretch.
    fn rows(self) -> usize {
        self.block * self.blocks
    }

    /// What the products of so many rows are off by, as a share of their squares: one rounding a
    /// row of a block and one a block of a stretch, and those of an entry itself.
    fn charge(self, rows: usize) -> f64 {
        UNIT * (rows.min(self.block) + rows.div_ceil(self.block).min(self.blocks) + 16) as f64
    }
}

/// The fewest rows that a thread of its own pays for, and the most that it has at once.
const LEAST_SHARE: usize = 1024;
const MOST_SHARE: usize = 16_384;

/// What a few rows have rounded by is charged as if they were at least this share of the sums, so
/// that the charge does not tell their size.
const LEAST_CHARGED: f64 = 0.0625;

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
    /// What the rows have rounded by that came since rows last left.
    pub(super) fresh: RoundedShare,
    /// What everything before that has rounded by. Its sizes are powers of two: they outlive the
    /// rows that made them so.
    pub(super) settled: RoundedShare,
}

/// An entry (i, j) of sums is off by at most charge·√(size_i·size_j).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundedShare {
    pub(super) charge: f64,
    /// Σw z̃² of each column, the constant first.
    pub(super) size: Vec<f64>,
}

impl RoundedShare {
    fn none(all: usize) -> Self {
        Self {
            charge: 0.0,
            size: vec![0.0; all],
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.charge >= 0.0 && self.size.iter().all(|size| *size >= 0.0)
    }

    /// Both together, by Cauchy and Schwarz: a√(u_i u_j) + b√(v_i v_j) ≤ max(a, b)·√((u_i +
    /// v_i)(u_j + v_j)).
    fn and(&self, other: &Self) -> Self {
        let size = self
            .size
            .iter()
            .zip(&other.size)
            .map(|(mine, theirs)| mine + theirs);
        Self {
            charge: self.charge.max(other.charge),
            size: size.collect(),
        }
    }

    /// The same for sums about another origin, δ away.
    fn moved(&self, delta: &[DoubleWord]) -> Self {
        let weight = self.size[0].sqrt();
        let moved = |(size, delta): (&f64, &DoubleWord)| {
            (size.sqrt() + delta.value().abs() * weight).powi(2)
        };
        Self {
            charge: self.charge,
            size: self.size.iter().zip(delta).map(moved).collect(),
        }
    }
}

impl RoundedSums {
    pub(super) fn new(width: usize) -> Self {
        let all = width + 1;
        Self {
            origin: Vec::new(),
            high: Mat::zeros(all, all),
            low: Mat::zeros(all, all),
            fresh: RoundedShare::none(all),
            settled: RoundedShare::none(all),
        }
    }

    pub(super) fn add(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
        rows: usize,
        threads: usize,
    ) {
        let size = self.join_rows(columns, weights, rows, 1.0, threads);
        let charge = self.chain().charge(rows);
        self.fresh = self.fresh.and(&RoundedShare { charge, size });
    }

    /// Takes rows out, and with them what the sums still knew of them: how large they were, and
    /// where their numbers lay. `support` tells which features some row still has.
    pub(super) fn remove(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
        rows: usize,
        threads: usize,
        support: &[u64],
    ) {
        let all = self.high.ncols();
        let before: Vec<f64> = (0..all)
            .map(|at| self.high[(at, at)] * (1.0 + 1e-9))
            .collect();
        let gone = self.join_rows(columns, weights, rows, -1.0, threads);
        let largest = |at: usize| {
            power_of_two(
                before[at]
                    .max(gone[at])
                    .max(self.fresh.size[at])
                    .max(self.settled.size[at]),
            )
        };
        let size: Vec<f64> = (0..all).map(largest).collect();
        let shares = gone
            .iter()
            .zip(&size)
            .filter(|(_, size)| **size > 0.0)
            .map(|(gone, size)| gone / size);
        let share = power_of_two(shares.fold(LEAST_CHARGED, f64::max));
        let charge = self.settled.charge + self.fresh.charge + share * self.chain().charge(rows);
        self.settled = RoundedShare { charge, size };
        self.fresh = RoundedShare::none(all);
        self.leave_origins(support);
    }

    fn chain(&self) -> SummingChain {
        SummingChain::of_width(self.high.ncols())
    }

    /// Moves origins away from numbers of rows. An origin that is a small multiple of a power of
    /// two about as large as the column's spread tells nothing of a single row, and stays; others
    /// were numbers of the first rows.
    fn leave_origins(&mut self, support: &[u64]) {
        let weight = self.high[(0, 0)];
        let coarse_origin = |(column, origin): (usize, &f64)| {
            let at = column + 1;
            if support.get(column) == Some(&0) || weight <= 0.0 {
                return 0.0;
            }
            let mean = self.high[(at, 0)] / weight;
            let spread = (self.high[(at, at)] / weight - mean * mean).max(0.0).sqrt();
            let unit = power_of_two(spread);
            let (quarters, units) = (4.0 * origin / unit, (origin + mean) / unit);
            match unit > 0.0 && units.is_finite() && quarters.fract() != 0.0 {
                true => units.round() * unit,
                false => *origin,
            }
        };
        let origin: Vec<f64> = self.origin.iter().enumerate().map(coarse_origin).collect();
        if origin != self.origin {
            let mut moved = Self {
                origin,
                ..Self::new(self.origin.len())
            };
            moved.merge(self);
            moved
                .settled
                .size
                .iter_mut()
                .for_each(|size| *size = power_of_two(*size));
            *self = moved;
        }
        // Rounding leaves no noise where every number is 0.
        for at in support
            .iter()
            .enumerate()
            .filter(|(_, rows)| **rows == 0)
            .map(|(feature, _)| feature + 1)
        {
            for matrix in [&mut self.high, &mut self.low] {
                matrix.col_as_slice_mut(at)[at..].fill(0.0);
                (0..at).for_each(|column| matrix[(at, column)] = 0.0);
            }
        }
    }

    /// Adds the products of rows, times a sign, and gives their squares.
    fn join_rows(
        &mut self,
        columns: &[ColumnView<'_>],
        weights: Option<ColumnView<'_>>,
        rows: usize,
        sign: f64,
        threads: usize,
    ) -> Vec<f64> {
        let mut squares = vec![0.0; self.high.ncols()];
        if rows == 0 {
            return squares;
        }
        if self.origin.is_empty() {
            self.origin = columns.iter().map(median_of_first).collect();
        }
        let origin = std::mem::take(&mut self.origin);
        let batch = BatchBlocks {
            columns,
            weights,
            origin: &origin,
            chain: self.chain(),
        };
        let share = rows.div_ceil(threads).clamp(LEAST_SHARE, MOST_SHARE);
        if origin.len() < NARROW && threads > 1 && share < rows {
            for start in (0..rows).step_by(share * threads) {
                let parts: Vec<BatchSum> = std::thread::scope(|scope| {
                    let starts = (start..rows.min(start + share * threads)).step_by(share);
                    let batch = &batch;
                    let handles: Vec<_> = starts
                        .map(|start| {
                            scope.spawn(move || batch.sum(start..rows.min(start + share), Par::Seq))
                        })
                        .collect();
                    let join = |handle: std::thread::ScopedJoinHandle<'_, BatchSum>| {
                        handle
                            .join()
                            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    };
                    handles.into_iter().map(join).collect()
                });
                parts
                    .iter()
                    .for_each(|part| self.join(part, sign, &mut squares));
            }
        } else {
            let part = batch.sum(0..rows, par(threads));
            self.join(&part, sign, &mut squares);
        }
        self.origin = origin;
        squares
    }

    /// Adds the sums of some rows, times a sign.
    fn join(&mut self, part: &BatchSum, sign: f64, squares: &mut [f64]) {
        for (j, square) in squares.iter_mut().enumerate() {
            *square += part.high[(j, j)];
            add_column(&mut self.high, &mut self.low, &part.high, sign, j);
            let low = &mut self.low.col_as_slice_mut(j)[j..];
            low.iter_mut()
                .zip(&part.low.col_as_slice(j)[j..])
                .for_each(|(low, more)| *low += sign * more);
        }
    }

    /// Adds sums about another origin: with z − c₁ = (z − c₂) + δ, their products are
    /// Σ + mδᵀ + δmᵀ + Wδδᵀ.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.origin.is_empty() {
            return;
        }
        if self.origin.is_empty() {
            *self = other.clone();
            return;
        }
        let entry = |i: usize, j: usize| DoubleWord {
            high: other.high[(i, j)],
            low: other.low[(i, j)],
        };
        let weight = entry(0, 0);
        let mut delta = vec![DoubleWord::default()];
        delta.extend(self.origin.iter().zip(&other.origin).map(|(mine, theirs)| {
            let (high, low) = two_sum(*theirs, -*mine);
            DoubleWord { high, low }
        }));
        // What the other sums have rounded by is carried along with them.
        self.fresh = self.fresh.and(&other.fresh.moved(&delta));
        self.settled = self.settled.and(&other.settled.moved(&delta));
        for j in 0..delta.len() {
            for i in j..delta.len() {
                let mut moved = entry(i, j);
                if j == 0 {
                    // Sums: Σw(z − c₁) = m + Wδ.
                    moved = moved.plus(times(weight, delta[i]));
                } else {
                    moved = moved
                        .plus(times(entry(i, 0), delta[j]))
                        .plus(times(entry(j, 0), delta[i]));
                    moved = moved.plus(times(times(weight, delta[i]), delta[j]));
                }
                let sum = DoubleWord {
                    high: self.high[(i, j)],
                    low: self.low[(i, j)],
                }
                .plus(moved);
                self.high[(i, j)] = sum.high;
                self.low[(i, j)] = sum.low;
            }
        }
    }

    /// Counts every row `factor` times.
    pub(super) fn scale(&mut self, factor: f64) {
        for share in [&mut self.fresh, &mut self.settled] {
            share.size.iter_mut().for_each(|size| *size *= factor);
        }
        for j in 0..self.high.ncols() {
            for i in j..self.high.nrows() {
                let scaled = DoubleWord {
                    high: self.high[(i, j)],
                    low: self.low[(i, j)],
                }
                .times(factor);
                self.high[(i, j)] = scaled.high;
                self.low[(i, j)] = scaled.low;
            }
        }
    }

    pub(super) fn moments(&self) -> CentredMoments {
        let width = self.high.nrows() - 1;
        let entry = |i: usize, j: usize| DoubleWord {
            high: self.high[(i, j)],
            low: self.low[(i, j)],
        };
        let origin = if self.origin.is_empty() {
            vec![0.0; width]
        } else {
            self.origin.clone()
        };
        let rounded = self.fresh.and(&self.settled);
        let reach = |square: &f64| coarse(square.sqrt() * (1.0 + 1e-9));
        CentredMoments {
            weight: entry(0, 0),
            origin,
            sums: (1..=width).map(|i| entry(i, 0)).collect(),
            high: self.high.as_ref().submatrix(1, 1, width, width).to_owned(),
            low: self.low.as_ref().submatrix(1, 1, width, width).to_owned(),
            support: Vec::new(),
            charge: rounded.charge,
            reach: rounded.size[1..].iter().map(reach).collect(),
            weight_reach: reach(&rounded.size[0]),
            is_exact: false,
        }
    }
}

fn times(a: DoubleWord, b: DoubleWord) -> DoubleWord {
    a.times(b.high).plus(DoubleWord::new(a.high * b.low))
}

/// The next power of two, upwards; 0 stays.
fn power_of_two(size: f64) -> f64 {
    if size > 0.0 {
        size.log2().ceil().clamp(-1000.0, 1000.0).exp2()
    } else {
        0.0
    }
}

/// The median of the first rows: a number of the column itself, so that a column that never changes
/// is 0 about it, and no odd row moves it.
fn median_of_first(column: &ColumnView<'_>) -> f64 {
    let mut first: Vec<f64> = column.iter().take(FIRST).collect();
    let middle = first.len() / 2;
    match first.get(middle) {
        None => 0.0,
        Some(_) => *first.select_nth_unstable_by(middle, f64::total_cmp).1,
    }
}

/// Adds a column of doubles to one in two words, from the diagonal on.
fn add_column(high: &mut Mat<f64>, low: &mut Mat<f64>, more: &Mat<f64>, sign: f64, j: usize) {
    let words = high.col_as_slice_mut(j)[j..]
        .iter_mut()
        .zip(&mut low.col_as_slice_mut(j)[j..]);
    for ((high, low), more) in words.zip(&more.col_as_slice(j)[j..]) {
        let (sum, rest) = two_sum(*high, sign * more);
        *high = sum;
        *low += rest;
    }
}

struct BatchBlocks<'a> {
    columns: &'a [ColumnView<'a>],
    weights: Option<ColumnView<'a>>,
    origin: &'a [f64],
    chain: SummingChain,
}

/// The products of some rows, in two words.
struct BatchSum {
    high: Mat<f64>,
    low: Mat<f64>,
}

impl BatchBlocks<'_> {
    /// The products of these rows, a stretch at a time, so that no sum of doubles has many terms.
    fn sum(&self, rows: Range<usize>, par: Par) -> BatchSum {
        let all = self.columns.len() + 1;
        let mut total = BatchSum {
            high: Mat::zeros(all, all),
            low: Mat::zeros(all, all),
        };
        for start in rows.clone().step_by(self.chain.rows()) {
            let stretch = self.stretch(start..rows.end.min(start + self.chain.rows()), par);
            (0..all).for_each(|j| add_column(&mut total.high, &mut total.low, &stretch, 1.0, j));
        }
        total
    }

    fn stretch(&self, rows: Range<usize>, par: Par) -> Mat<f64> {
        let all = self.columns.len() + 1;
        let length = self.chain.block;
        let mut sum = Mat::zeros(all, all);
        let mut block = vec![0.0; all * length.min(rows.len())];
        for start in rows.clone().step_by(length) {
            let part = start..rows.end.min(start + length);
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
                for (row, weight) in filled
                    .chunks_exact_mut(all)
                    .zip(weights.part(part.clone()).iter())
                {
                    row.iter_mut().for_each(|entry| *entry *= weight.sqrt());
                }
            }
            let z = MatRef::from_column_major_slice(&*filled, all, part.len());
            multiply_lower(sum.as_mut(), Accum::Add, z, z.transpose(), 1.0, par);
        }
        sum
    }
}
