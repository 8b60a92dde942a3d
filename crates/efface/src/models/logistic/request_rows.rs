//! The rows of one request: in the model's coordinates, for the algebra, and as the caller knows
//! them.

use faer::{Accum, Mat, Par};

use super::change::RequestWork;
use super::pass::PassFrame;
use super::sample::WeightedRow;
use crate::error::Result;
use crate::linalg::{column_norm, multiply};

/// The rows of one request, in the model's coordinates.
pub(crate) struct RequestRows {
    /// One column each.
    pub(crate) x: Mat<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) signs: Vec<f64>,
    pub(crate) classes: Vec<usize>,
    /// θᵀx, one line per row.
    pub(crate) scores: Mat<f64>,
}

impl RequestRows {
    pub(crate) fn new(width: usize, capacity: usize) -> Self {
        Self {
            x: Mat::zeros(width, capacity),
            weights: Vec::with_capacity(capacity),
            signs: Vec::with_capacity(capacity),
            classes: Vec::with_capacity(capacity),
            scores: Mat::zeros(0, 0),
        }
    }

    pub(crate) fn push(&mut self, frame: PassFrame<'_>, member: &WeightedRow<'_>, sign: f64) {
        frame.write(member, self.x.col_as_slice_mut(self.weights.len()));
        self.weights.push(member.weight);
        self.signs.push(sign);
        self.classes.push(member.class);
    }

    /// Whether no row joins.
    pub(crate) fn all_leave(&self) -> bool {
        self.signs.iter().all(|sign| *sign < 0.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Looks at the rows from θ.
    pub(crate) fn score(&mut self, theta: &Mat<f64>) {
        self.scores = self.scores_at(theta);
    }

    /// θᵀx, one line per row.
    pub(crate) fn scores_at(&self, theta: &Mat<f64>) -> Mat<f64> {
        let mut scores = Mat::zeros(self.len(), theta.ncols());
        let rows = self.x.as_ref().transpose();
        multiply(
            scores.as_mut(),
            Accum::Replace,
            rows,
            theta.as_ref(),
            1.0,
            Par::Seq,
        );
        scores
    }

    /// ±w (p − y) where the rows have these scores, one line a row: what each row adds to the
    /// gradient, as multiples of itself.
    pub(crate) fn pulls(&self, frame: PassFrame<'_>, scores: &Mat<f64>) -> Mat<f64> {
        let outputs = frame.outputs;
        let mut factors = Mat::zeros(self.len(), outputs);
        let mut residual = vec![0.0; outputs];
        for k in 0..self.len() {
            let scores: Vec<f64> = (0..outputs).map(|c| scores[(k, c)]).collect();
            frame.link.judge(&scores, self.classes[k], &mut residual);
            for (c, r) in residual.iter().enumerate() {
                factors[(k, c)] = self.signs[k] * self.weights[k] * r;
            }
        }
        factors
    }

    /// What the rows add to the gradient: Σ ±w (p − y) x.
    pub(crate) fn gradient(&self, pulls: &Mat<f64>) -> Mat<f64> {
        let mut gradient = Mat::zeros(self.x.nrows(), pulls.ncols());
        multiply(
            gradient.as_mut(),
            Accum::Replace,
            self.x.as_ref(),
            pulls.as_ref(),
            1.0,
            Par::Seq,
        );
        gradient
    }

    /// √w times the roots of the rows' J where they have these scores, one column per row and
    /// class, and the columns' signs.
    pub(crate) fn roots(&self, frame: PassFrame<'_>, scores: &Mat<f64>) -> (Mat<f64>, Vec<f64>) {
        let outputs = frame.outputs;
        let mut roots = Mat::zeros(outputs, self.len() * outputs);
        let mut signs = Vec::with_capacity(self.len() * outputs);
        let mut probabilities = vec![0.0; outputs];
        for k in 0..self.len() {
            let scores: Vec<f64> = (0..outputs).map(|c| scores[(k, c)]).collect();
            frame.link.probabilities(&scores, &mut probabilities);
            let weight = self.weights[k].sqrt();
            for b in 0..outputs {
                let root = roots.col_as_slice_mut(k * outputs + b);
                frame.link.root(&scores, &probabilities, b, root);
                root.iter_mut().for_each(|r| *r *= weight);
                signs.push(self.signs[k]);
            }
        }
        (roots, signs)
    }

    /// Σ w‖x‖³: how much J can have changed over these rows since the Hessian was made, per unit of
    /// movement.
    pub(crate) fn cubes(&self) -> f64 {
        (0..self.len())
            .map(|k| self.weights[k] * column_norm(&self.x, k).powi(3))
            .sum()
    }

    /// The largest ‖x‖ among those that join.
    pub(crate) fn reach(&self) -> f64 {
        let joining = (0..self.len()).filter(|&k| self.signs[k] > 0.0);
        joining.map(|k| column_norm(&self.x, k)).fold(0.0, f64::max)
    }
}

impl RequestWork<'_> {
    /// The rows of the request as the caller knows them, one column each, over the parameters that
    /// they touch, which are listed; the constant comes first.
    pub(crate) fn raw_rows(&self) -> Result<(Vec<usize>, Mat<f64>)> {
        let first = self.before.basis.intercept as usize;
        let frame = self.before.frame();
        let mut touched: Vec<usize> = (0..first).collect();
        let mut seen = vec![false; self.before.features()];
        self.store.visit(self.gone, &mut |_, row| {
            row.features.each(|j, x| {
                if x != 0.0 && !std::mem::replace(&mut seen[j], true) {
                    touched.push(first + j);
                }
            });
        })?;
        touched.sort_unstable();
        let mut place = vec![0; self.before.features() + first];
        touched
            .iter()
            .enumerate()
            .for_each(|(at, &j)| place[j] = at);
        let mut raw = Mat::zeros(touched.len(), self.gone.len());
        self.store.visit(self.gone, &mut |k, row| {
            let scale = frame.scale(row.features);
            let column = raw.col_as_slice_mut(k);
            if first == 1 {
                column[0] = scale;
            }
            row.features.each(|j, x| {
                if x != 0.0 {
                    column[place[first + j]] = x * scale;
                }
            });
        })?;
        Ok((touched, raw))
    }
}
