//! The loss that is minimised: the rows' share, the penalty, and what else holds the parameters in
//! place.
//!
//! ```text
//! L(θ) = Σ w_i ℓ(θᵀx_i, y_i) + Σ_j λ_j/2 ‖θ_j‖² + ½ Σ_j κ_j (Σ_c θ_jc)²/c + ⟨t, θ⟩
//! ```
//!
//! λ_j is λ in the caller's coordinates, and 0 for an intercept. The third term is a softmax's
//! alone. A softmax does not change when one number is added to all its scores, so that nothing but
//! the penalty holds a column along the sum of its classes: nothing at all for intercepts, and too
//! little to be told from rounding where λ is small or the column in large units. At the optimum
//! that sum is 0, or may as well be: the term costs nothing there, moves nothing, and holds firmly.
//! κ_j is about as large as what the rows bend the other directions of the column by. A smaller one
//! would be the least eigenvalue of the Hessian, and bounds that divide by that eigenvalue would be
//! as many times too large. t is the noise of certified removal, else absent.

use faer::Mat;

use super::hessian::unwhiten;
use super::pass::{PassFrame, RowSurvey};
use super::sample::{RowLines, RowSample};
use super::{ClassifierSettings, Link};
use crate::error::Result;
use crate::linalg::{Cholesky, dot, par};
use crate::models::basis::{Basis, power_of_two};
use crate::rows::{RowStore, Rows};

/// So many dense rows tell how large a column is, or up to twice as many.
const GAUGE_SAMPLE: usize = 2048;

/// A column has at least this share of its own square added to it before rows are brought to
/// coordinates of their own.
const LEAST_OWN: f64 = 1e-10;

/// What is added to the rows' loss.
#[derive(Debug, Clone)]
pub(crate) struct Extra {
    /// λ_j.
    pub(crate) penalty: Vec<f64>,
    /// κ_j, with which a column is held at a sum of 0 over the classes; empty where there is one
    /// score.
    pub(crate) gauge: Vec<f64>,
    /// t.
    pub(crate) tilt: Option<Mat<f64>>,
}

impl Extra {
    /// Adds the slope at θ and returns the loss.
    pub(crate) fn slope(&self, theta: &Mat<f64>, gradient: &mut Mat<f64>) -> f64 {
        let outputs = theta.ncols();
        let mut loss = 0.0;
        for c in 0..outputs {
            let column = theta.col_as_slice(c);
            let slope = gradient.col_as_slice_mut(c);
            for ((g, x), penalty) in slope.iter_mut().zip(column).zip(&self.penalty) {
                *g += penalty * x;
                loss += 0.5 * penalty * x * x;
            }
            if let Some(tilt) = &self.tilt {
                loss += dot(tilt.col_as_slice(c), column);
                slope
                    .iter_mut()
                    .zip(tilt.col_as_slice(c))
                    .for_each(|(g, t)| *g += t);
            }
        }
        for (j, gauge) in self.gauge.iter().enumerate() {
            let sum: f64 = (0..outputs).map(|c| theta[(j, c)]).sum();
            let slope = gauge * sum / outputs as f64;
            loss += 0.5 * slope * sum;
            (0..outputs).for_each(|c| gradient[(j, c)] += slope);
        }
        loss
    }

    /// The slope of one column at θ, one number a class: all of the gradient where no row has the
    /// column.
    pub(crate) fn slope_of(&self, column: usize, theta: &Mat<f64>) -> Vec<f64> {
        let outputs = theta.ncols();
        let sum: f64 = (0..outputs).map(|c| theta[(column, c)]).sum();
        let gauge = self.gauge_of(column) * sum / outputs as f64;
        let tilt = |c: usize| self.tilt.as_ref().map_or(0.0, |tilt| tilt[(column, c)]);
        (0..outputs)
            .map(|c| self.penalty[column] * theta[(column, c)] + gauge + tilt(c))
            .collect()
    }

    /// Adds the second derivative to the lower triangle of a Hessian.
    pub(crate) fn bend(&self, hessian: &mut Mat<f64>) {
        let width = self.penalty.len();
        let outputs = hessian.nrows() / width.max(1);
        for c in 0..outputs {
            for (j, penalty) in self.penalty.iter().enumerate() {
                hessian[(c * width + j, c * width + j)] += penalty;
            }
        }
        for (j, gauge) in self.gauge.iter().enumerate() {
            for b in 0..outputs {
                for a in b..outputs {
                    hessian[(a * width + j, b * width + j)] += gauge / outputs as f64;
                }
            }
        }
    }

    /// The second derivative between two parameters of one column.
    pub(crate) fn bend_at(&self, i: usize, j: usize, outputs: usize) -> f64 {
        let column = j % self.penalty.len();
        let penalty = self.penalty[column];
        self.gauge_of(column) / outputs as f64 + if i == j { penalty } else { 0.0 }
    }

    /// `out += ∂²·v`, both as one long column.
    pub(crate) fn times(&self, v: &[f64], out: &mut [f64]) {
        let width = self.penalty.len();
        let outputs = v.len() / width.max(1);
        for (out, v) in out.chunks_exact_mut(width).zip(v.chunks_exact(width)) {
            out.iter_mut()
                .zip(v)
                .zip(&self.penalty)
                .for_each(|((out, v), penalty)| *out += penalty * v);
        }
        if self.gauge.is_empty() {
            return;
        }
        let mut pulls = vec![0.0; width];
        for v in v.chunks_exact(width) {
            pulls.iter_mut().zip(v).for_each(|(sum, v)| *sum += v);
        }
        pulls
            .iter_mut()
            .zip(&self.gauge)
            .for_each(|(sum, gauge)| *sum = gauge * (*sum / outputs as f64));
        for out in out.chunks_exact_mut(width) {
            out.iter_mut()
                .zip(&pulls)
                .for_each(|(out, pull)| *out += pull);
        }
    }

    /// The least penalty: the strong convexity that holds everywhere. 0 when a column is free.
    pub(crate) fn least(&self) -> f64 {
        self.penalty.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn gauge_of(&self, column: usize) -> f64 {
        self.gauge.get(column).copied().unwrap_or(0.0)
    }
}

impl ClassifierSettings {
    /// κ_j, as powers of two: Σ w x_j² over the number of classes is what equal probabilities would
    /// make of the other directions. Any positive number leads to the same optimum, so that a
    /// sample of dense rows is enough.
    pub(super) fn gauge(&self, basis: &Basis, rows: &Rows) -> Vec<f64> {
        let width = basis.width();
        if self.link != Link::Softmax {
            return Vec::new();
        }
        if self.logistic.as_given {
            // Nothing of a row may be in the units, and this is one.
            return vec![1.0; width];
        }
        let step = if rows.is_sparse() {
            1
        } else {
            rows.len().div_ceil(GAUGE_SAMPLE).max(1)
        };
        let mut squares = vec![0.0; width];
        let mut weight = 0.0;
        let mut written = vec![0.0; width];
        let first = basis.intercept as usize;
        for row in rows.iter().step_by(step) {
            weight += row.weight;
            if basis.is_unshifted() {
                squares[..first]
                    .iter_mut()
                    .for_each(|sum| *sum += row.weight);
                row.features.each(|j, x| {
                    squares[first + j] += row.weight * (x * basis.inverse_scale(j)).powi(2);
                });
            } else {
                basis.write(row.features, 1.0, &mut written);
                squares
                    .iter_mut()
                    .zip(&written)
                    .for_each(|(sum, x)| *sum += row.weight * x * x);
            }
        }
        let share = step as f64 / rows.outputs() as f64;
        // A row that is far larger than the others says nothing of what they bend.
        let gauge = |square: &f64| match square.min(weight) * share {
            size if size.is_normal() => power_of_two(size),
            // A column that no row of the sample has.
            _ => 1.0,
        };
        squares.iter().map(gauge).collect()
    }
}

/// The loss over some rows.
pub(crate) struct RowObjective<'a> {
    pub(crate) sample: &'a RowSample<'a>,
    pub(crate) frame: PassFrame<'a>,
    pub(crate) extra: &'a Extra,
}

/// The loss at one place.
pub(crate) struct ObjectivePlace {
    pub(crate) theta: Mat<f64>,
    pub(crate) loss: f64,
    pub(crate) gradient: Mat<f64>,
    pub(crate) margin: f64,
}

impl RowObjective<'_> {
    pub(crate) fn at(&self, theta: Mat<f64>) -> Result<ObjectivePlace> {
        Ok(self.after(theta, None)?.0)
    }

    /// The loss at one place, and at least how far the way there moves the score of any row, where
    /// it is given.
    pub(crate) fn after(
        &self,
        theta: Mat<f64>,
        way: Option<&Mat<f64>>,
    ) -> Result<(ObjectivePlace, Option<f64>)> {
        let mut slope = self.sample.slope(self.frame, &theta, way)?;
        slope.loss += self.extra.slope(&theta, &mut slope.gradient);
        // A little for the rounding of the scores.
        let swing = way.map(|_| (1.0 + 1e-6) * slope.swing.sqrt());
        let place = ObjectivePlace {
            theta,
            loss: slope.loss,
            gradient: slope.gradient,
            margin: slope.margin,
        };
        Ok((place, swing))
    }

    /// The lower triangle of the Hessian.
    pub(crate) fn hessian(&self, theta: &Mat<f64>, stride: usize) -> Result<Mat<f64>> {
        let mut hessian = self
            .sample
            .hessian::<f64>(self.frame, theta, stride, None)?;
        self.extra.bend(&mut hessian);
        Ok(hessian)
    }

    /// The same with products in single precision, which are half the work. Rows are brought to
    /// coordinates where they point everywhere alike: what is rounded is then a small share of the
    /// Hessian in every direction, however columns depend on each other. None where there are no
    /// such coordinates.
    pub(crate) fn single_hessian(&self, theta: &Mat<f64>) -> Result<Option<Mat<f64>>> {
        let frame = self.frame;
        let RowSurvey {
            mut gram, weight, ..
        } = self.sample.survey(frame, true)?;
        for (j, penalty) in self.extra.penalty.iter().enumerate() {
            // A column that no row has and no penalty holds is told from others all the same.
            let own = penalty.max(LEAST_OWN * gram[(j, j)]);
            gram[(j, j)] += if own > 0.0 { own } else { 1.0 };
        }
        // Rows are then about as large as their number of columns says, whatever their number.
        gram *= faer::Scale(1.0 / weight);
        let Ok(factor) = Cholesky::factor(&gram, |_| false, par(frame.threads)) else {
            return Ok(None);
        };
        let mut hessian = self.sample.hessian::<f32>(frame, theta, 1, Some(&factor))?;
        unwhiten(&mut hessian, &factor, par(frame.threads));
        self.extra.bend(&mut hessian);
        Ok(Some(hessian))
    }

    /// The Hessian times a vector, both as one long column; `bends` are those of the sample.
    pub(crate) fn times(&self, bends: &RowLines, v: &[f64], out: &mut [f64]) -> Result<()> {
        let product = self.sample.times(self.frame, bends, v)?;
        out.copy_from_slice(product.col_as_slice(0));
        self.extra.times(v, out);
        Ok(())
    }
}

/// Parameters as one long column, class after class.
pub(crate) fn flat(theta: &Mat<f64>) -> Mat<f64> {
    let width = theta.nrows();
    Mat::from_fn(width * theta.ncols(), 1, |at, _| {
        theta[(at % width, at / width)]
    })
}

/// The inverse of [`flat`].
pub(crate) fn shaped(column: &Mat<f64>, width: usize) -> Mat<f64> {
    Mat::from_fn(width, column.nrows() / width, |j, c| {
        column[(c * width + j, 0)]
    })
}
