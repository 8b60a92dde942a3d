//! Rows that came or went since the Hessian was brought up to date, as a low-rank block on top of
//! it.

use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::pass::{PassFrame, RowSurvey};
use super::request_rows::RequestRows;
use crate::linalg::{add_scaled, column_norm, dot, mirror_lower, multiply, multiply_lower};

/// Rows that came or went since the Hessian was brought up to date. Their block has one column r ⊗
/// x per row and class, r being a column of √w times a root of J; it is written out only where it
/// is folded in, because a request would copy all of it.
#[derive(Debug, Clone)]
pub(crate) struct WaitingRows {
    /// r, one column per column of the block, and the sign of each.
    pub(super) roots: Mat<f64>,
    pub(super) signs: Vec<f64>,
    /// The rows themselves: one column each, with weight and sign.
    pub(super) x: Mat<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) row_signs: Vec<f64>,
}

impl WaitingRows {
    /// The rows of a request, weighed where they have these scores, on top of those that wait
    /// already.
    pub(crate) fn new(
        before: Option<&WaitingRows>,
        movers: &RequestRows,
        scores: &Mat<f64>,
        frame: PassFrame<'_>,
    ) -> Self {
        let (roots, signs) = movers.roots(frame, scores);
        let x = movers.x.as_ref().subcols(0, movers.len()).to_owned();
        let weights = movers.weights.clone();
        let row_signs = movers.signs.clone();
        match before {
            None => Self {
                roots,
                signs,
                x,
                weights,
                row_signs,
            },
            Some(old) => Self {
                roots: beside(&old.roots, &roots),
                signs: [old.signs.as_slice(), &signs].concat(),
                x: beside(&old.x, &x),
                weights: [old.weights.as_slice(), &weights].concat(),
                row_signs: [old.row_signs.as_slice(), &row_signs].concat(),
            },
        }
    }

    /// Columns of the low-rank block.
    pub(crate) fn rank(&self) -> usize {
        self.signs.len()
    }

    /// Rows that wait.
    pub(crate) fn rows(&self) -> usize {
        self.row_signs.len()
    }

    /// The block, written out for the rows from `first` on.
    pub(super) fn columns(&self, first: usize) -> Mat<f64> {
        let width = self.x.nrows();
        let outputs = self.roots.nrows();
        Mat::from_fn(width * outputs, (self.rows() - first) * outputs, |i, at| {
            self.roots[(i / width, first * outputs + at)]
                * self.x[(i % width, first + at / outputs)]
        })
    }

    /// The block's inner products with one long column: rᵀ(Vᵀx), V being the column with one line
    /// per feature.
    pub(super) fn along(&self, v: &[f64]) -> Vec<f64> {
        let outputs = self.roots.nrows();
        let v = MatRef::from_column_major_slice(v, self.x.nrows(), outputs);
        let mut scores = Mat::zeros(outputs, self.rows());
        multiply(
            scores.as_mut(),
            Accum::Replace,
            v.transpose(),
            self.x.as_ref(),
            1.0,
            Par::Seq,
        );
        let column = |at: usize| {
            dot(
                self.roots.col_as_slice(at),
                scores.col_as_slice(at / outputs),
            )
        };
        (0..self.rank()).map(column).collect()
    }

    /// Adds the block times `shares` to one long column.
    pub(super) fn add_to(&self, shares: &[f64], out: &mut [f64]) {
        let outputs = self.roots.nrows();
        let mut moves = Mat::zeros(outputs, self.rows());
        for (at, share) in shares.iter().enumerate() {
            add_scaled(
                moves.col_as_slice_mut(at / outputs),
                *share,
                self.roots.col_as_slice(at),
            );
        }
        let out = MatMut::from_column_major_slice_mut(out, self.x.nrows(), outputs);
        multiply(
            out,
            Accum::Add,
            self.x.as_ref(),
            moves.transpose(),
            1.0,
            Par::Seq,
        );
    }

    /// Σ w‖x‖² over the rows that join: at most so much larger has G become.
    pub(crate) fn joined(&self) -> f64 {
        let joining = (0..self.rows()).filter(|&k| self.row_signs[k] > 0.0);
        joining
            .map(|k| self.weights[k] * column_norm(&self.x, k).powi(2))
            .sum()
    }

    /// The largest ‖x‖ among the rows that join.
    pub(crate) fn joining_reach(&self) -> f64 {
        let joining = (0..self.rows()).filter(|&k| self.row_signs[k] > 0.0);
        joining.map(|k| column_norm(&self.x, k)).fold(0.0, f64::max)
    }

    /// Σ (uᵀΔ)² over the columns of rows that left: how much longer Δ is in the norm of the Hessian
    /// that still has them.
    pub(crate) fn left_along(&self, step: &Mat<f64>) -> f64 {
        self.left_product(step, step)
    }

    /// Σ (uᵀa)(uᵀb) over the columns of rows that left.
    pub(crate) fn left_product(&self, a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        let along = self.along(a.col_as_slice(0));
        let other = self.along(b.col_as_slice(0));
        (0..self.rank())
            .filter(|&k| self.signs[k] < 0.0)
            .map(|k| along[k] * other[k])
            .sum()
    }

    /// Columns that no row has any more, ascending.
    pub(super) fn unsupported(&self, support: &[u64]) -> Vec<usize> {
        let most = self.row_signs.iter().filter(|sign| **sign < 0.0).count() as u64;
        let change = |j: usize| -> i64 {
            let touching =
                (0..self.rows()).filter(|&k| self.x[(j, k)] != 0.0 && self.weights[k] > 0.0);
            touching.map(|k| self.row_signs[k] as i64).sum()
        };
        (0..support.len())
            .filter(|&j| support[j] <= most)
            .filter(|&j| support[j] as i64 + change(j) <= 0)
            .collect()
    }

    /// What is known of the rows, with these folded in; `gone` are the columns that no row has any
    /// more.
    pub(super) fn applied(&self, survey: &RowSurvey, gone: &[usize], par: Par) -> RowSurvey {
        let mut survey = survey.clone();
        let factors: Vec<f64> = self
            .weights
            .iter()
            .zip(&self.row_signs)
            .map(|(w, s)| w * s)
            .collect();
        let keeps_gram = survey.gram.nrows() > 0;
        if keeps_gram {
            let signed = scaled(&self.x, &factors);
            let gram = survey.gram.as_mut();
            multiply_lower(
                gram,
                Accum::Add,
                signed.as_ref(),
                self.x.as_ref().transpose(),
                1.0,
                par,
            );
            mirror_lower(survey.gram.as_mut());
            for &j in gone {
                for i in 0..survey.gram.nrows() {
                    survey.gram[(i, j)] = 0.0;
                    survey.gram[(j, i)] = 0.0;
                }
            }
        }
        for (k, sign) in self.row_signs.iter().enumerate() {
            if self.weights[k] > 0.0 {
                for (count, x) in survey.support.iter_mut().zip(self.x.col_as_slice(k)) {
                    *count = count.saturating_add_signed(if *x != 0.0 { *sign as i64 } else { 0 });
                }
            }
            survey.weight += sign * self.weights[k];
            survey.trace += factors[k] * column_norm(&self.x, k).powi(2);
            if *sign > 0.0 {
                survey.reach = survey.reach.max(column_norm(&self.x, k));
            }
        }
        if keeps_gram {
            survey.trace = (0..survey.gram.nrows()).map(|j| survey.gram[(j, j)]).sum();
        } else {
            // A little for the rounding of sums and differences: it is a bound.
            survey.trace = survey.trace.max(0.0) * (1.0 + 1e-12);
        }
        survey
    }
}

/// The columns of a matrix, each times its factor.
pub(super) fn scaled(a: &Mat<f64>, factors: &[f64]) -> Mat<f64> {
    let mut scaled = a.clone();
    for (k, factor) in factors.iter().enumerate() {
        scaled
            .col_as_slice_mut(k)
            .iter_mut()
            .for_each(|x| *x *= factor);
    }
    scaled
}

fn beside(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    let mut both = Mat::zeros(a.nrows(), a.ncols() + b.ncols());
    both.as_mut().subcols_mut(0, a.ncols()).copy_from(a);
    both.as_mut().subcols_mut(a.ncols(), b.ncols()).copy_from(b);
    both
}
