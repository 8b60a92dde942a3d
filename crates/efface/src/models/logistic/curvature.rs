//! What a classifier keeps in order to forget without its rows: the Hessian at (or near) the optimum with its Cholesky
//! factor, the Gram matrix Σ w x xᵀ, and what the bounds need to know of both.
//!
//! Rows that leave or join change the Hessian by ±w·J ⊗ xxᵀ, whose root has one column per class; they wait as a low-rank
//! block until the next settle, like those of a ridge model.

use std::sync::Arc;

use faer::{Accum, Mat, Par};

use super::objective::Extra;
use super::pass::{PassFrame, RowSample, RowSurvey};
use super::request_rows::RequestRows;
use super::train::QuadraticBowl;
use crate::error::{Error, Result};
use crate::linalg::{
    Cholesky, add_scaled, column_norm, dot, mirror_lower, multiply, multiply_lower, operator_norm, par,
};
use crate::models::ridge::change::ChangeCore;

/// More parameters than this are too many to invert their Hessian for a bound.
const INVERTIBLE: usize = 2048;

/// The Hessian and all that goes with it, in the coordinates of the model's basis.
#[derive(Debug, Clone)]
pub(crate) struct HessianCurvature {
    /// The lower triangle, penalty included.
    pub(crate) hessian: Mat<f64>,
    pub(crate) factor: Cholesky,
    pub(crate) survey: RowSurvey,
    pub(crate) scales: CurvatureScales,
}

/// Upper bounds on what the Hessian H and the Gram matrix G can do.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CurvatureScales {
    /// ‖H⁻¹‖, and what it was when last measured.
    pub(crate) inverse_norm: f64,
    pub(crate) measured: f64,
    /// The largest eigenvalue of H⁻¹G, with one G per class.
    pub(crate) pull: f64,
    /// ‖G‖.
    pub(crate) gram_norm: f64,
    /// ‖H‖ as a Frobenius norm.
    pub(crate) size: f64,
    /// max ‖x‖ in the norm of H⁻¹; infinite where that was too dear to find out, in which case max ‖x‖ has to do.
    #[serde(with = "or_infinite")]
    pub(crate) reach: f64,
}

/// Formats such as JSON have no infinity, so it is stored as an absent value.
mod or_infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

/// A curvature after rows were folded in.
pub(crate) struct SettlingCurvature {
    pub(crate) curvature: HessianCurvature,
    /// Whether the factor was made anew.
    pub(crate) refactored: bool,
    /// At most so much larger has H⁻¹ become.
    pub(crate) growth: f64,
}

/// Rows that came or went since the Hessian was brought up to date.
#[derive(Debug, Clone)]
pub(crate) struct WaitingRows {
    /// One column per row and class: √w times a root of J ⊗ xxᵀ.
    u: Mat<f64>,
    signs: Vec<f64>,
    /// The rows themselves, for G and the support: one column each, with weight and sign.
    x: Mat<f64>,
    weights: Vec<f64>,
    row_signs: Vec<f64>,
}

/// Waiting rows, solved for.
#[derive(Debug, Clone)]
pub(crate) struct LowRank {
    waiting: WaitingRows,
    /// H⁻¹u.
    z: Mat<f64>,
    pub(crate) core: ChangeCore,
    /// At least the largest fraction of the Hessian that the newest of these rows are: uᵀH⁻¹u, summed.
    pub(crate) newest: f64,
}

impl HessianCurvature {
    pub(crate) fn new(
        bowl: QuadraticBowl,
        survey: RowSurvey,
        extra: &Extra,
        sample: &RowSample<'_>,
        frame: PassFrame<'_>,
    ) -> Self {
        let QuadraticBowl { hessian, factor, .. } = bowl;
        // For more parameters the inverse would cost more than everything else in this function.
        let reach = if hessian.nrows() <= INVERTIBLE || frame.outputs == 1 && !sample.is_thin(frame) {
            sample.local_reach(frame, &factor)
        } else {
            f64::INFINITY
        };
        let scales =
            CurvatureScales { inverse_norm: 0.0, measured: 0.0, pull: 0.0, gram_norm: 0.0, size: 0.0, reach };
        let mut curvature = Self { hessian, factor, survey, scales };
        curvature.measure(extra, frame.outputs, par(frame.threads));
        curvature
    }

    /// Takes the measure of H and G. Parameters that no row has are coupled to nothing and known to be 0.
    pub(crate) fn measure(&mut self, extra: &Extra, outputs: usize, par: Par) {
        let width = self.survey.support.len();
        let total = width * outputs;
        let apart: Vec<usize> = (0..total).filter(|at| self.survey.support[at % width] == 0).collect();
        let seed = total as u64;
        let inverse_norm = operator_norm(total, &apart, seed, |v| self.factor.solve(v.as_mut(), par));
        let pull = operator_norm(total, &apart, seed + 1, |v| {
            self.factor.sandwich(v, |v| *v = self.gram_times(v), par);
        });
        let columns: Vec<usize> = (0..width).filter(|j| self.survey.support[*j] == 0).collect();
        let gram_norm = operator_norm(width, &columns, seed + 2, |v| *v = self.gram_times(v));
        let size = {
            let mut square = 0.0;
            for j in 0..total {
                let column = &self.hessian.col_as_slice(j)[j..];
                square += column.iter().map(|x| x * x).sum::<f64>() * 2.0 - column[0].powi(2);
            }
            square.sqrt()
        };
        let least = extra.least();
        let inverse_norm = if least > 0.0 { inverse_norm.min(1.0 / least) } else { inverse_norm };
        let gram_norm = gram_norm.min(self.survey.trace);
        self.scales =
            CurvatureScales { inverse_norm, measured: inverse_norm, pull, gram_norm, size, ..self.scales };
    }

    /// G times one long column, class by class.
    fn gram_times(&self, v: &Mat<f64>) -> Mat<f64> {
        let width = self.survey.gram.nrows();
        let outputs = v.nrows() / width;
        let mut product = Mat::zeros(v.nrows(), 1);
        for c in 0..outputs {
            multiply(
                product.as_mut().subrows_mut(c * width, width),
                Accum::Replace,
                self.survey.gram.as_ref(),
                v.as_ref().subrows(c * width, width),
                1.0,
                Par::Seq,
            );
        }
        product
    }

    /// At least ‖√w XΔ‖ over all rows: rows that left and have not been settled still count.
    pub(crate) fn spread(&self, step: &Mat<f64>, waiting: Option<&WaitingRows>) -> f64 {
        let product = self.gram_times(step);
        let mut square = dot(product.col_as_slice(0), step.col_as_slice(0)).max(0.0);
        if let Some(waiting) = waiting {
            for k in (0..waiting.rows()).filter(|&k| waiting.row_signs[k] > 0.0) {
                let x = waiting.x.col_as_slice(k);
                for part in step.col_as_slice(0).chunks_exact(x.len()) {
                    square += waiting.weights[k] * dot(x, part).powi(2);
                }
            }
        }
        square.sqrt()
    }

    /// This curvature with the waiting rows folded in. `solved` tells how good an
    /// update of the factor would be; without it the factor is made anew.
    pub(crate) fn settled(
        &self,
        waiting: &WaitingRows,
        solved: Option<&LowRank>,
        extra: &Extra,
        outputs: usize,
        par: Par,
    ) -> Result<SettlingCurvature> {
        let width = self.survey.support.len();
        let gone = waiting.unsupported(&self.survey.support);
        let survey = waiting.applied(&self.survey, &gone, par);
        let apart: Vec<usize> =
            (0..width * outputs).filter(|at| gone.binary_search(&(at % width)).is_ok()).collect();
        let mut hessian = self.hessian.clone();
        let signed = scaled(&waiting.u, &waiting.signs);
        let root = waiting.u.as_ref();
        multiply_lower(hessian.as_mut(), Accum::Add, signed.as_ref(), root.transpose(), 1.0, par);
        clear_columns(&mut hessian, &apart, extra);
        // A rank-m update costs m·p², a new factor p³/3.
        let cheap = 3 * waiting.signs.len() < hessian.nrows() && apart.is_empty();
        let updated = match solved {
            Some(solved) if cheap && solved.core.condition < 1e4 => {
                self.factor.clone().changed(root, &waiting.signs)
            }
            _ => None,
        };
        let refactored = updated.is_none();
        let factor = match updated {
            Some(factor) => factor,
            None => Cholesky::factor(&hessian, |at| extra.penalty[at % width] == 0.0, par)
                .map_err(|pivot| Error::Singular { pivot: pivot % width, width })?,
        };
        let joined = waiting.joined();
        let growth = match solved {
            Some(solved) => solved.growth(),
            None => {
                // H ≤ growth·H′: the largest eigenvalue of H′⁻¹H, over the parameters that are still coupled to others.
                let total = hessian.nrows();
                let grown = operator_norm(total, &apart, total as u64 + 3, |v| {
                    factor.sandwich(v, |v| *v = symmetric_times(&self.hessian, v), par);
                });
                grown.max(1.0)
            }
        };
        let mut scales = self.scales;
        scales.inverse_norm *= growth;
        let newcomers = waiting.joining_reach() * (outputs as f64 * self.scales.inverse_norm).sqrt();
        scales.reach = scales.reach.max(newcomers) * growth.sqrt();
        scales.pull = (scales.pull + joined * self.scales.inverse_norm) * growth;
        scales.gram_norm += joined;
        let mut settled = Self { hessian, factor, survey, scales };
        if refactored || joined > 0.0 || scales.inverse_norm > 2.0 * scales.measured {
            settled.measure(extra, outputs, par);
        }
        Ok(SettlingCurvature { curvature: settled, refactored, growth })
    }

    pub(crate) fn bytes(&self) -> [(&'static str, usize); 2] {
        let square = |m: &Mat<f64>| m.nrows() * m.ncols() * 8;
        [("Hessian and its factor", 2 * square(&self.hessian)), ("Gram matrix", square(&self.survey.gram))]
    }
}

impl WaitingRows {
    /// The rows of a request on top of those that wait already.
    pub(crate) fn new(before: Option<&WaitingRows>, movers: &RequestRows, frame: PassFrame<'_>) -> Self {
        let (u, signs) = movers.roots(frame);
        let x = movers.x.as_ref().subcols(0, movers.len()).to_owned();
        let weights = movers.weights.clone();
        let row_signs = movers.signs.clone();
        match before {
            None => Self { u, signs, x, weights, row_signs },
            Some(old) => Self {
                u: beside(&old.u, &u),
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

    /// Σ w‖x‖² over the rows that join: at most so much larger has G become.
    pub(crate) fn joined(&self) -> f64 {
        let joining = (0..self.rows()).filter(|&k| self.row_signs[k] > 0.0);
        joining.map(|k| self.weights[k] * column_norm(&self.x, k).powi(2)).sum()
    }

    /// The largest ‖x‖ among the rows that join.
    pub(crate) fn joining_reach(&self) -> f64 {
        let joining = (0..self.rows()).filter(|&k| self.row_signs[k] > 0.0);
        joining.map(|k| column_norm(&self.x, k)).fold(0.0, f64::max)
    }

    /// Σ (uᵀΔ)² over the columns of rows that left: how much longer Δ is in the norm of the Hessian that still has them.
    pub(crate) fn left_along(&self, step: &Mat<f64>) -> f64 {
        self.left_product(step, step)
    }

    /// Σ (uᵀa)(uᵀb) over the columns of rows that left.
    pub(crate) fn left_product(&self, a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        let leaving = (0..self.rank()).filter(|&k| self.signs[k] < 0.0).map(|k| self.u.col_as_slice(k));
        leaving.map(|u| dot(u, a.col_as_slice(0)) * dot(u, b.col_as_slice(0))).sum()
    }

    /// Columns that no row has any more, ascending.
    fn unsupported(&self, support: &[u64]) -> Vec<usize> {
        let most = self.row_signs.iter().filter(|sign| **sign < 0.0).count() as u64;
        let change = |j: usize| -> i64 {
            let touching = (0..self.rows()).filter(|&k| self.x[(j, k)] != 0.0 && self.weights[k] > 0.0);
            touching.map(|k| self.row_signs[k] as i64).sum()
        };
        (0..support.len())
            .filter(|&j| support[j] <= most)
            .filter(|&j| support[j] as i64 + change(j) <= 0)
            .collect()
    }

    /// What is known of the rows, with these folded in; `gone` are the columns that no row has any more.
    fn applied(&self, survey: &RowSurvey, gone: &[usize], par: Par) -> RowSurvey {
        let mut survey = survey.clone();
        let factors: Vec<f64> = self.weights.iter().zip(&self.row_signs).map(|(w, s)| w * s).collect();
        let signed = scaled(&self.x, &factors);
        let gram = survey.gram.as_mut();
        multiply_lower(gram, Accum::Add, signed.as_ref(), self.x.as_ref().transpose(), 1.0, par);
        mirror_lower(survey.gram.as_mut());
        for &j in gone {
            for i in 0..survey.gram.nrows() {
                survey.gram[(i, j)] = 0.0;
                survey.gram[(j, i)] = 0.0;
            }
        }
        for (k, sign) in self.row_signs.iter().enumerate() {
            if self.weights[k] > 0.0 {
                for (count, x) in survey.support.iter_mut().zip(self.x.col_as_slice(k)) {
                    *count = count.saturating_add_signed(if *x != 0.0 { *sign as i64 } else { 0 });
                }
            }
            survey.weight += sign * self.weights[k];
            if *sign > 0.0 {
                survey.reach = survey.reach.max(column_norm(&self.x, k));
            }
        }
        survey.trace = (0..survey.gram.nrows()).map(|j| survey.gram[(j, j)]).sum();
        survey
    }
}

impl LowRank {
    /// None when the Hessian with these changes cannot be told from a singular one.
    pub(crate) fn new(
        curvature: &HessianCurvature,
        before: Option<&LowRank>,
        waiting: WaitingRows,
        par: Par,
    ) -> Option<Self> {
        let known = before.map_or(0, |before| before.z.ncols());
        let mut fresh = waiting.u.as_ref().subcols(known, waiting.rank() - known).to_owned();
        curvature.factor.solve(fresh.as_mut(), par);
        let newest = (known..waiting.rank())
            .map(|k| dot(waiting.u.col_as_slice(k), fresh.col_as_slice(k - known)))
            .sum::<f64>();
        let z = before.map_or_else(|| fresh.clone(), |before| beside(&before.z, &fresh));
        let core = ChangeCore::new(&waiting.u, &z, &waiting.signs, par)?;
        Some(Self { waiting, z, core, newest })
    }

    pub(crate) fn waiting(&self) -> &WaitingRows {
        &self.waiting
    }

    /// `solved −= Z (S + UᵀZ)⁻¹ Zᵀ rhs`: from H⁻¹·rhs without these rows' change to the one with it.
    fn correct(&self, rhs: &Mat<f64>, solved: &mut Mat<f64>) {
        let mut along = Mat::zeros(self.z.ncols(), rhs.ncols());
        let z = self.z.as_ref();
        multiply(along.as_mut(), Accum::Replace, z.transpose(), rhs.as_ref(), 1.0, Par::Seq);
        let along = self.core.times(&along);
        multiply(solved.as_mut(), Accum::Add, z, along.as_ref(), -1.0, Par::Seq);
    }

    /// An upper bound on how much ‖H⁻¹‖ grows, as a factor.
    pub(crate) fn growth(&self) -> f64 {
        let leaving = self.waiting.signs.iter().filter(|sign| **sign < 0.0).count();
        match leaving {
            0 => 1.0,
            all if all == self.waiting.signs.len() => self.core.norm.max(1.0),
            _ => self.core.growth(),
        }
    }
}

/// The Hessian of the rows at hand, as it is now.
#[derive(Debug, Clone)]
pub(crate) struct StandingHessian {
    pub(crate) base: Arc<HessianCurvature>,
    pub(crate) pending: Option<Arc<LowRank>>,
}

impl StandingHessian {
    /// H⁻¹·rhs, with everything that waits.
    pub(crate) fn solve(&self, rhs: &Mat<f64>, par: Par) -> Mat<f64> {
        let mut solved = rhs.clone();
        self.base.factor.solve(solved.as_mut(), par);
        if let Some(pending) = &self.pending {
            pending.correct(rhs, &mut solved);
        }
        solved
    }

    /// H·v.
    pub(crate) fn times(&self, v: &Mat<f64>) -> Mat<f64> {
        let mut product = symmetric_times(&self.base.hessian, v);
        if let Some(pending) = &self.pending {
            let u = pending.waiting.u.as_ref();
            let mut along = Mat::zeros(pending.waiting.rank(), 1);
            multiply(along.as_mut(), Accum::Replace, u.transpose(), v.as_ref(), 1.0, Par::Seq);
            for (k, sign) in pending.waiting.signs.iter().enumerate() {
                along[(k, 0)] *= sign;
            }
            multiply(product.as_mut(), Accum::Add, u, along.as_ref(), 1.0, Par::Seq);
        }
        product
    }

    pub(crate) fn growth(&self) -> f64 {
        self.pending.as_ref().map_or(1.0, |pending| pending.growth())
    }

    /// Columns that no row has, ascending.
    pub(crate) fn unsupported(&self) -> Vec<usize> {
        match &self.pending {
            Some(pending) => pending.waiting.unsupported(&self.base.survey.support),
            None => self.base.survey.unseen(),
        }
    }
}

/// A product with a symmetric matrix of which only the lower triangle is stored.
fn symmetric_times(lower: &Mat<f64>, v: &Mat<f64>) -> Mat<f64> {
    let n = lower.nrows();
    let mut product = Mat::zeros(n, 1);
    for j in 0..n {
        let column = &lower.col_as_slice(j)[j..];
        let along = dot(&column[1..], &v.col_as_slice(0)[j + 1..]);
        product[(j, 0)] += along;
        let scale = v[(j, 0)];
        add_scaled(&mut product.col_as_slice_mut(0)[j..], scale, column);
    }
    product
}

/// Sets rows and columns of parameters that no row has to what the penalty alone makes of them.
fn clear_columns(hessian: &mut Mat<f64>, apart: &[usize], extra: &Extra) {
    let total = hessian.nrows();
    let width = extra.penalty.len();
    for &j in apart {
        hessian.col_as_slice_mut(j)[j..].fill(0.0);
        (0..j).for_each(|i| hessian[(j, i)] = 0.0);
    }
    for &j in apart {
        for i in (j..total).step_by(width) {
            hessian[(i, j)] = extra.bend_at(i, j, total / width);
        }
    }
}

/// The columns of a matrix, each times its factor.
fn scaled(a: &Mat<f64>, factors: &[f64]) -> Mat<f64> {
    let mut scaled = a.clone();
    for (k, factor) in factors.iter().enumerate() {
        scaled.col_as_slice_mut(k).iter_mut().for_each(|x| *x *= factor);
    }
    scaled
}

fn beside(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    let mut both = Mat::zeros(a.nrows(), a.ncols() + b.ncols());
    both.as_mut().subcols_mut(0, a.ncols()).copy_from(a);
    both.as_mut().subcols_mut(a.ncols(), b.ncols()).copy_from(b);
    both
}
