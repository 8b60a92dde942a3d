//! What guides training by a factor: L-BFGS, started from the inverse of the Hessian of some rows,
//! or of all.

use std::collections::VecDeque;

use faer::Mat;

use super::bowl::QuadraticBowl;
use super::objective::{ObjectivePlace, RowObjective, flat};
use super::train::TrainingLimits;
use crate::error::Result;
use crate::linalg::{Cholesky, add_scaled, dot, norm, par};

/// Rows per parameter in the first sample of the Hessian.
const SAMPLE: usize = 4;
/// Pairs of step and change of gradient that are remembered.
const MEMORY: usize = 12;
/// So many steps may bring the gradient down by a factor of ten before the Hessian is made anew.
const PATIENCE: usize = 8;

/// The first Hessian is that of one row in so many.
fn sample_stride(rows: usize, parameters: usize) -> usize {
    (rows / (SAMPLE * parameters).max(1)).clamp(1, 16)
}

/// How many rows the first Hessian is made of.
pub(super) fn sampled_rows(rows: usize, parameters: usize) -> usize {
    rows / sample_stride(rows, parameters)
}

/// The next direction: L-BFGS, preconditioned by the factor of the Hessian of some rows.
pub(super) struct DescentGuide {
    factor: Cholesky,
    /// What it is the factor of, where that is of all rows.
    whole: Option<WholeHessian>,
    stride: usize,
    /// Steps s and the changes y of the gradient along them, oldest first, with sᵀy.
    pairs: VecDeque<(Mat<f64>, Mat<f64>, f64)>,
    /// Steps since the gradient last fell by a factor of ten, and what it was then.
    waited: usize,
    mark: f64,
    /// Whether the Hessian is that of all rows where the parameters stand.
    fresh: bool,
    /// The steps since it was made, in its norm.
    way: f64,
    /// Passes over the rows that it took.
    pub(super) passes: usize,
}

/// A Hessian of all rows, which may be kept.
struct WholeHessian {
    hessian: Mat<f64>,
    wrong: f64,
    /// The parameters where it was made.
    at: Mat<f64>,
}

impl DescentGuide {
    /// A guide for the way from here, by a sample of the rows.
    pub(super) fn new(
        objective: &RowObjective<'_>,
        place: &ObjectivePlace,
        limits: &mut TrainingLimits,
    ) -> Result<Self> {
        let parameters = objective.frame.basis.width() * objective.frame.outputs;
        let stride = sample_stride(objective.sample.shape.members, parameters);
        Self::of_stride(objective, place, stride, limits)
    }

    /// A guide by the Hessian of all rows.
    pub(super) fn whole(
        objective: &RowObjective<'_>,
        place: &ObjectivePlace,
        limits: &mut TrainingLimits,
    ) -> Result<Self> {
        Self::of_stride(objective, place, 1, limits)
    }

    fn of_stride(
        objective: &RowObjective<'_>,
        place: &ObjectivePlace,
        stride: usize,
        limits: &mut TrainingLimits,
    ) -> Result<Self> {
        let mark = norm(&place.gradient);
        if stride > 1
            && let Some(factor) = objective.sampled_factor(&place.theta, stride, *limits)?
        {
            // The other one is over all rows, for their columns.
            return Ok(Self {
                passes: 2,
                ..Self::by(factor, stride, mark)
            });
        }
        let QuadraticBowl {
            hessian,
            factor,
            wrong,
            passes,
        } = objective.bowl(&place.theta, *limits)?;
        // What single precision would take from these rows it would take again.
        limits.single &= wrong > 0.0;
        let whole = limits.keep.then(|| WholeHessian {
            hessian,
            wrong,
            at: place.theta.clone(),
        });
        Ok(Self {
            whole,
            fresh: true,
            passes,
            ..Self::by(factor, 1, mark)
        })
    }

    /// A guide by a factor that is at hand.
    pub(super) fn by(factor: Cholesky, stride: usize, mark: f64) -> Self {
        Self {
            factor,
            whole: None,
            stride,
            pairs: VecDeque::new(),
            waited: 0,
            mark,
            fresh: false,
            way: 0.0,
            passes: 0,
        }
    }

    /// Whether it guides by the Hessian of all rows, made no farther away than this.
    pub(super) fn is_whole_within(&self, most: f64) -> bool {
        self.whole.is_some() && self.way <= most
    }

    /// The Hessian of all rows, if that is what guides, and the way from where it was made to here.
    pub(super) fn into_whole(self, here: &Mat<f64>) -> Option<(QuadraticBowl, Mat<f64>)> {
        let WholeHessian { hessian, wrong, at } = self.whole?;
        let made = QuadraticBowl {
            hessian,
            factor: self.factor,
            wrong,
            passes: self.passes,
        };
        Some((made, here - at))
    }

    /// Approximately H⁻¹·gradient.
    pub(super) fn direction(&self, gradient: &Mat<f64>, limits: TrainingLimits) -> Mat<f64> {
        let mut direction = gradient.clone();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for (s, y, sy) in self.pairs.iter().rev() {
            let share = dot(s.col_as_slice(0), direction.col_as_slice(0)) / sy;
            add_scaled(direction.col_as_slice_mut(0), -share, y.col_as_slice(0));
            shares.push(share);
        }
        self.factor.solve(direction.as_mut(), par(limits.threads));
        for ((s, y, sy), share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let rest = share - dot(y.col_as_slice(0), direction.col_as_slice(0)) / sy;
            add_scaled(direction.col_as_slice_mut(0), rest, s.col_as_slice(0));
        }
        direction
    }

    /// Takes note of a step, so long in the norm of the Hessian.
    pub(super) fn learn(&mut self, from: &ObjectivePlace, to: &ObjectivePlace, length: f64) {
        self.fresh = false;
        self.way += length;
        let s = flat(&(&to.theta - &from.theta));
        let y = flat(&(&to.gradient - &from.gradient));
        let sy = dot(s.col_as_slice(0), y.col_as_slice(0));
        // Convexity makes this product positive, but rounding can make it negative: then the pair
        // is of no use.
        if sy > 1e-14 * norm(&s) * norm(&y) {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y, sy));
        }
    }

    pub(super) fn is_slow(&mut self, gradient: f64) -> bool {
        self.waited += 1;
        if gradient <= 0.1 * self.mark {
            (self.waited, self.mark) = (0, gradient);
        }
        self.waited >= PATIENCE
    }

    /// Makes the Hessian anew, from more rows. Returns the passes that this took: none when it
    /// could not be better.
    pub(super) fn improve(
        &mut self,
        objective: &RowObjective<'_>,
        place: &ObjectivePlace,
        limits: &mut TrainingLimits,
    ) -> Result<usize> {
        if self.fresh {
            return Ok(0);
        }
        *self = Self::of_stride(objective, place, self.stride.div_ceil(4), limits)?;
        Ok(self.passes)
    }
}
