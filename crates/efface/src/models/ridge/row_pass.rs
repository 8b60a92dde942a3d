//! The gradient Xᵀ W (Xθ − y) + Λθ from the rows themselves, in twice the working precision.
//!
//! The sums A and b cannot tell how good parameters are beyond their own rounding, which correlated
//! columns amplify. The rows can: one pass in double words, O(nnz), gives the gradient almost
//! exactly, whatever the condition of A and however far the columns lie from zero. Rows are read as
//! the caller gave them; shifts and scales of the basis are applied to the sums at the end, so that
//! sparse rows stay sparse.

use std::collections::HashSet;
use std::ops::Range;

use faer::Mat;

use super::Basis;
use crate::error::{Error, Result};
use crate::linalg::{DoubleWord, UNIT, long_add, long_add_scaled, long_dot, widest};
use crate::rows::{RowId, RowRef, RowStore, RowView, Rows};

/// Dense rows whose sums are made together before they are added to the rest: short sums round
/// less.
const STRETCH: usize = 1024;
/// Sparse rows whose sums are made together. They are more than the dense ones, because joining two
/// sums costs the width of the model.
const SPARSE_STRETCH: usize = 1 << 16;

/// The rows that a gradient is taken over: all of `kept` but those in `gone`, and those in `new`.
pub(crate) struct RowPass<'a> {
    pub(crate) kept: &'a Rows,
    pub(crate) gone: &'a HashSet<RowId>,
    pub(crate) new: Option<&'a Rows>,
    pub(crate) basis: &'a Basis,
    pub(crate) penalty: &'a [f64],
    pub(crate) threads: usize,
}

/// What the rounding of a pass depends on.
#[derive(Clone, Copy)]
pub(crate) struct PassFacts<'a> {
    /// √Σwx² per column, in the basis.
    pub(crate) spread: &'a [f64],
    /// Σw.
    pub(crate) weight: f64,
    /// √Σwy².
    pub(crate) targets: f64,
    /// √Σw(xᵀθ − y)².
    pub(crate) residual: f64,
}

/// A gradient over the rows.
pub(crate) struct RowGradient {
    pub(crate) values: Mat<f64>,
    /// √Σw(xᵀθ − y)², over all outputs.
    pub(crate) residual: f64,
}

/// Parameters in two words; the second may be absent.
#[derive(Clone, Copy)]
pub(crate) struct LongParameters<'a> {
    pub(crate) high: &'a Mat<f64>,
    pub(crate) low: Option<&'a Mat<f64>>,
}

impl<'a> From<&'a Mat<f64>> for LongParameters<'a> {
    fn from(high: &'a Mat<f64>) -> Self {
        Self { high, low: None }
    }
}

/// Sums over rows in two words: Σ r·x per feature and output, and Σ r per output.
struct LongSums {
    high: Mat<f64>,
    low: Mat<f64>,
    constant: Vec<DoubleWord>,
    /// Σ w·r², which need not be precise.
    residual: f64,
}

impl LongSums {
    fn zero(features: usize, outputs: usize) -> Self {
        Self {
            high: Mat::zeros(features, outputs),
            low: Mat::zeros(features, outputs),
            constant: vec![DoubleWord::default(); outputs],
            residual: 0.0,
        }
    }

    /// Adds another sum and leaves it empty.
    fn absorb(&mut self, other: &mut Self) {
        self.residual += std::mem::take(&mut other.residual);
        for output in 0..self.constant.len() {
            let high = self.high.col_as_slice_mut(output);
            let low = self.low.col_as_slice_mut(output);
            let other_high = other.high.col_as_slice_mut(output);
            long_add_scaled(high, low, DoubleWord::new(1.0), other_high);
            other_high.fill(0.0);
            let other_low = other.low.col_as_slice_mut(output);
            low.iter_mut()
                .zip(other_low.iter())
                .for_each(|(sum, part)| *sum += part);
            other_low.fill(0.0);
            self.constant[output] = self.constant[output].plus(other.constant[output]);
            other.constant[output] = DoubleWord::default();
        }
    }
}

/// What a row is multiplied with: parameters in the caller's scales, and the constant.
struct RowScorer {
    high: Mat<f64>,
    low: Option<Mat<f64>>,
    constant: Vec<DoubleWord>,
}

impl RowPass<'_> {
    /// The gradient at `theta`, or with `targets` off the product Aθ. Each entry is rounded once;
    /// see [`charge`](Self::charge) for what else may be missing.
    pub(crate) fn gradient<'b>(
        &self,
        theta: impl Into<LongParameters<'b>>,
        targets: bool,
    ) -> Result<RowGradient> {
        let theta = theta.into();
        let scorer = self.scorer(theta);
        let sums = self.sum(&scorer, targets)?;
        let first = self.basis.intercept as usize;
        let mut gradient = Mat::zeros(self.basis.width(), scorer.constant.len());
        for (output, &constant) in sums.constant.iter().enumerate() {
            if first == 1 {
                gradient[(0, output)] = constant.value();
            }
            for j in 0..self.basis.features {
                let scale = self.basis.inverse_scale(j);
                let sum = DoubleWord {
                    high: sums.high[(j, output)],
                    low: sums.low[(j, output)],
                };
                let shift = constant.times(-self.basis.scaled_origin(j));
                let entry = DoubleWord {
                    high: sum.high * scale,
                    low: sum.low * scale,
                }
                .plus(shift);
                let at = first + j;
                let pull = entry.plus_product(self.penalty[at], theta.high[(at, output)]);
                let small = theta
                    .low
                    .map_or(0.0, |low| self.penalty[at] * low[(at, output)]);
                gradient[(at, output)] = pull.plus(DoubleWord::new(small)).value();
            }
        }
        if !gradient.norm_max().is_finite() {
            return Err(Error::Overflow);
        }
        Ok(RowGradient {
            values: gradient,
            residual: sums.residual.sqrt() * (1.0 + 1e-6),
        })
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        let new = self.new.map_or(0, |new| new.len());
        self.kept.len() + new - self.gone.len()
    }

    /// Σw.
    pub(crate) fn weight(&self) -> Result<f64> {
        let mut weight = DoubleWord::default();
        for (source, slots) in self.stretches() {
            self.visit(source, slots, &mut |row| {
                weight = weight.plus(DoubleWord::new(row.weight))
            })?;
        }
        Ok(weight.value())
    }

    /// Σw and Σ w·x per feature, in the caller's coordinates.
    pub(crate) fn weight_and_sums(&self) -> Result<(f64, Vec<f64>)> {
        let mut weight = DoubleWord::default();
        let mut high = vec![0.0; self.basis.features];
        let mut low = vec![0.0; self.basis.features];
        let see = &mut |row: RowView<'_>| {
            weight = weight.plus(DoubleWord::new(row.weight));
            add_row(
                &mut high,
                &mut low,
                DoubleWord::new(row.weight),
                row.features,
                &mut Vec::new(),
            );
        };
        for (source, slots) in self.stretches() {
            self.visit(source, slots, see)?;
        }
        Ok((
            weight.value(),
            high.iter().zip(&low).map(|(h, l)| h + l).collect(),
        ))
    }

    /// What a gradient entry may miss beyond its own last digit, as a multiple of the column's
    /// spread: products of rounding errors, which matter only where columns lie a million spreads
    /// from zero.
    pub(crate) fn charge(&self, theta: &Mat<f64>, facts: &PassFacts<'_>) -> f64 {
        let first = self.basis.intercept as usize;
        let root = facts.weight.sqrt();
        let mut widest = 1.0f64;
        let mut scores = 0.0;
        for output in 0..theta.ncols() {
            for j in 0..self.basis.features {
                let about_zero = facts.spread[first + j] + self.basis.scaled_origin(j).abs() * root;
                scores += about_zero * theta[(first + j, output)].abs();
                if facts.spread[first + j] > 0.0 {
                    widest = widest.max(about_zero / facts.spread[first + j]);
                }
            }
        }
        // A sum over rows is off by 3u² for every term, an inner product by the square of its terms
        // in a lane.
        let rows = self.count() as f64;
        let lane = theta.nrows() as f64 / 8.0 + 16.0;
        let size = facts.targets + scores;
        4.0 * UNIT * UNIT * widest * (rows * facts.residual + lane * lane * size)
    }

    fn scorer(&self, theta: LongParameters<'_>) -> RowScorer {
        let first = self.basis.intercept as usize;
        let features = self.basis.features;
        let outputs = theta.high.ncols();
        let scaled = |word: &Mat<f64>| {
            Mat::from_fn(features, outputs, |j, output| {
                word[(first + j, output)] * self.basis.inverse_scale(j)
            })
        };
        let constant = |output: usize| {
            let word = |word: &Mat<f64>| if first == 1 { word[(0, output)] } else { 0.0 };
            let mut sum = DoubleWord {
                high: word(theta.high),
                low: theta.low.map_or(0.0, word),
            };
            for j in 0..features {
                let origin = -self.basis.scaled_origin(j);
                sum = sum.plus_product(origin, theta.high[(first + j, output)]);
                let low = theta.low.map_or(0.0, |low| low[(first + j, output)]);
                sum = sum.plus(DoubleWord::new(origin * low));
            }
            sum
        };
        RowScorer {
            high: scaled(theta.high),
            low: theta.low.map(scaled),
            constant: (0..outputs).map(constant).collect(),
        }
    }

    fn stretch(&self) -> usize {
        if self.kept.is_sparse() {
            SPARSE_STRETCH
        } else {
            STRETCH
        }
    }

    fn stretches(&self) -> Vec<(&Rows, Range<usize>)> {
        let size = self.stretch();
        std::iter::once(self.kept)
            .chain(self.new)
            .flat_map(|rows| {
                let slots = rows.slot_count();
                (0..slots)
                    .step_by(size)
                    .map(move |start| (rows, start..(start + size).min(slots)))
            })
            .collect()
    }

    fn visit(
        &self,
        rows: &Rows,
        slots: Range<usize>,
        see: &mut dyn FnMut(RowView<'_>),
    ) -> Result<()> {
        rows.go_on()?;
        let old = std::ptr::eq(rows, self.kept);
        for row in rows.window(slots) {
            if !(old && self.gone.contains(&row.id)) {
                see(row);
            }
        }
        Ok(())
    }

    fn sum(&self, scorer: &RowScorer, targets: bool) -> Result<LongSums> {
        let stretches = self.stretches();
        let share = stretches.len().div_ceil(self.threads.max(1)).max(1);
        let work = |part: &[(&Rows, Range<usize>)]| -> Result<LongSums> {
            let outputs = scorer.constant.len();
            let mut all = LongSums::zero(self.basis.features, outputs);
            let mut some = LongSums::zero(self.basis.features, outputs);
            let mut buffer = Vec::new();
            for (rows, slots) in part {
                self.visit(rows, slots.clone(), &mut |row| {
                    scorer.add(&mut some, row, targets, &mut buffer)
                })?;
                all.absorb(&mut some);
            }
            Ok(all)
        };
        if share >= stretches.len() {
            return work(&stretches);
        }
        let parts: Vec<Result<LongSums>> = std::thread::scope(|scope| {
            let handles: Vec<_> = stretches
                .chunks(share)
                .map(|part| scope.spawn(|| work(part)))
                .collect();
            handles
                .into_iter()
                .map(|handle| {
                    handle
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut total = LongSums::zero(self.basis.features, scorer.constant.len());
        for part in parts {
            total.absorb(&mut part?);
        }
        Ok(total)
    }
}

impl RowScorer {
    fn add(&self, sums: &mut LongSums, row: RowView<'_>, targets: bool, buffer: &mut Vec<f64>) {
        for output in 0..self.constant.len() {
            let low = self
                .low
                .as_ref()
                .map_or(&[][..], |low| low.col_as_slice(output));
            let score = row_dot(row.features, self.high.col_as_slice(output), low, buffer);
            let mut residual = score.plus(self.constant[output]);
            if targets {
                residual = residual.plus(DoubleWord::new(-row.targets[output]));
            }
            sums.residual += row.weight * residual.high * residual.high;
            let pull = residual.times(row.weight);
            sums.constant[output] = sums.constant[output].plus(pull);
            let high = sums.high.col_as_slice_mut(output);
            add_row(
                high,
                sums.low.col_as_slice_mut(output),
                pull,
                row.features,
                buffer,
            );
        }
    }
}

/// xᵀ(high + low) in two words.
fn row_dot(row: RowRef<'_>, high: &[f64], low: &[f64], buffer: &mut Vec<f64>) -> DoubleWord {
    match row {
        RowRef::Dense64(x) => long_dot(x, high, low),
        RowRef::Dense32(x) => {
            buffer.clear();
            buffer.extend(x.iter().map(|x| f64::from(*x)));
            long_dot(buffer, high, low)
        }
        RowRef::Sparse64(columns, values) => widest(
            #[inline(always)]
            || {
                let mut sum = DoubleWord::default();
                for (&j, &x) in columns.iter().zip(values) {
                    let j = j as usize;
                    sum = sum.plus_product(x, high[j]);
                    if let Some(low) = low.get(j) {
                        sum = sum.plus(DoubleWord::new(x * low));
                    }
                }
                sum
            },
        ),
        sparse => {
            let mut sum = DoubleWord::default();
            sparse.each(|j, x| {
                sum = sum.plus_product(x, high[j]);
                if let Some(low) = low.get(j) {
                    sum = sum.plus(DoubleWord::new(x * low));
                }
            });
            sum
        }
    }
}

/// `high + low += pull · x`.
fn add_row(
    high: &mut [f64],
    low: &mut [f64],
    pull: DoubleWord,
    row: RowRef<'_>,
    buffer: &mut Vec<f64>,
) {
    match row {
        RowRef::Dense64(x) => long_add_scaled(high, low, pull, x),
        RowRef::Dense32(x) => {
            buffer.clear();
            buffer.extend(x.iter().map(|x| f64::from(*x)));
            long_add_scaled(high, low, pull, buffer);
        }
        // The processor is asked for its instructions once a row, not once a number.
        RowRef::Sparse64(columns, values) => widest(
            #[inline(always)]
            || {
                for (&j, &x) in columns.iter().zip(values) {
                    long_add(&mut high[j as usize], &mut low[j as usize], pull, x);
                }
            },
        ),
        sparse => sparse.each(|j, x| long_add(&mut high[j], &mut low[j], pull, x)),
    }
}

/// What a gradient over the rows may miss beyond the last digit of each entry: `charge` times the
/// column's spread.
pub(crate) struct HiddenGradient<'a> {
    pub(crate) charge: f64,
    pub(crate) spread: &'a [f64],
}

/// The distance to the minimum that the penalty alone allows, in the caller's coordinates, whatever
/// the condition of A.
///
/// With the intercept b eliminated, the loss is λ-strongly convex in the coefficients: ‖Δθ‖ ≤ ‖g_θ
/// − m·g_b‖/λ and
/// |Δb| ≤ |g_b|/W + ‖m‖·‖Δθ‖, m being the mean row and W the sum of the weights. `sums` are W and Σwx.
pub(crate) fn penalised_distance(
    basis: &Basis,
    gradient: &Mat<f64>,
    hidden: &HiddenGradient<'_>,
    lambda: f64,
    (weight, sums): (f64, &[f64]),
) -> f64 {
    let first = basis.intercept as usize;
    let lost = |at: usize, value: f64| UNIT * value.abs() + hidden.charge * hidden.spread[at];
    let mut square = 0.0;
    for output in 0..gradient.ncols() {
        let constant = if first == 1 {
            gradient[(0, output)]
        } else {
            0.0
        };
        let lost_constant = if first == 1 { lost(0, constant) } else { 0.0 };
        let mut reduced = 0.0;
        let mut means = 0.0;
        for (j, sum) in sums.iter().enumerate() {
            let value = gradient[(first + j, output)];
            let scale = 1.0 / basis.inverse_scale(j);
            let mean = if first == 1 { sum / weight } else { 0.0 };
            let from_origin = basis.scaled_origin(j) * scale - mean;
            let entry = value * scale + from_origin * constant;
            let missing = lost(first + j, value) * scale + from_origin.abs() * lost_constant;
            reduced += (entry.abs() + missing).powi(2);
            means += mean * mean;
        }
        let coefficients = reduced.sqrt() * (1.0 + 1e-9) / lambda;
        let mut part = coefficients.powi(2);
        if first == 1 {
            let intercept = (constant.abs() + lost_constant) / weight + means.sqrt() * coefficients;
            part += intercept.powi(2);
        }
        square += part;
    }
    let distance = square.sqrt();
    if distance.is_nan() {
        f64::INFINITY
    } else {
        distance
    }
}
