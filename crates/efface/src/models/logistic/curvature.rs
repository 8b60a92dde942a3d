//! What a classifier keeps in order to forget without its rows: the Hessian at (or near) the
//! optimum with its Cholesky factor, the Gram matrix Σ w x xᵀ, and what the bounds need to know of
//! both.
//!
//! Rows that leave or join change the Hessian by ±w·J ⊗ xxᵀ, whose root has one column per class;
//! they wait as a low-rank block until the next settle, like those of a ridge model.

use std::sync::Arc;

use faer::{Accum, Mat, Par};

use super::bowl::QuadraticBowl;
use super::objective::Extra;
use super::pass::{PassFrame, RowSurvey};
use super::sample::RowSample;
use super::waiting_rows::{WaitingRows, scaled};
use crate::error::{Error, Result};
use crate::linalg::{
    Cholesky, SingleSymmetric, UNIT, add_scaled, dot, multiply, multiply_lower, norm,
    operator_norm, par,
};
use crate::models::ridge::change::{ChangeCore, norm_of_symmetric};

/// More parameters than this are too many to invert their Hessian for a bound over sparse rows.
const INVERTIBLE: usize = 2048;

/// The share of the penalty that bounds how far rows reach with several classes; the rows'
/// curvature has the rest.
const PENALTY_SHARE: f64 = 0.1;

/// Of fewer parameters than this, solves with the factor are quick.
const WORTH_INVERTING: usize = 512;

/// An inverse that rounding to single precision makes wrong by more than this is of no use.
const MOST_BLUR: f64 = 0.01;

/// One that changes have made wrong by more than this is made anew.
const WORN_BLUR: f64 = 1e-3;

/// The Hessian and all that goes with it, in the coordinates of the model's basis.
#[derive(Debug, Clone)]
pub(crate) struct HessianCurvature {
    /// The lower triangle, penalty included.
    pub(crate) hessian: Mat<f64>,
    pub(crate) factor: Cholesky,
    /// H⁻¹, where rows have several classes and are more than the parameters. A row is then a block
    /// of as many columns as there are classes, for all of which one look at the inverse is enough;
    /// the factor would be read for each.
    pub(crate) inverse: Option<SingleSymmetric>,
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
    /// max ‖x‖ in the norm of H⁻¹; infinite where that was too dear to find out, in which case max
    /// ‖x‖ has to do.
    #[serde(with = "or_infinite")]
    pub(crate) reach: f64,
    /// At least ‖H^-½(Ĥ − H)H^-½‖, where Ĥ is what solves take for H: its kept inverse is rounded.
    #[serde(skip)]
    pub(crate) blur: f64,
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

/// Waiting rows, solved for.
#[derive(Debug, Clone)]
pub(crate) struct LowRank {
    waiting: WaitingRows,
    /// H⁻¹u, the columns of one request after those of another.
    z: Vec<Arc<Mat<f64>>>,
    pub(crate) core: ChangeCore,
    /// At least the largest fraction of the Hessian that the newest of these rows are: ‖uᵀH⁻¹u‖.
    pub(crate) newest: f64,
}

/// Whether how far rows of one score reach in the norm of H⁻¹ is found out. For more parameters the
/// inverse, which sparse rows need, would cost more than everything else that is kept.
fn knows_reach(sample: &RowSample<'_>, frame: PassFrame<'_>) -> bool {
    frame.outputs == 1 && (frame.basis.width() <= INVERTIBLE || !sample.is_thin(frame))
}

/// Whether bounds need the Gram matrix. Without it the trace stands in for its norm, which is
/// enough where the reach of rows in the norm of H⁻¹ is known, since the bounds by that reach are
/// the sharper ones; but the account of a certified model is kept in the plain norm.
pub(crate) fn needs_gram(sample: &RowSample<'_>, frame: PassFrame<'_>) -> bool {
    frame.clip || !knows_reach(sample, frame)
}

impl HessianCurvature {
    pub(crate) fn new(
        bowl: QuadraticBowl,
        survey: RowSurvey,
        extra: &Extra,
        sample: &RowSample<'_>,
        frame: PassFrame<'_>,
    ) -> Result<Self> {
        let QuadraticBowl {
            hessian, factor, ..
        } = bowl;
        let outputs = frame.outputs;
        let parameters = hessian.nrows();
        let threads = par(frame.threads);
        let scales = CurvatureScales {
            inverse_norm: 0.0,
            measured: 0.0,
            pull: 0.0,
            gram_norm: 0.0,
            size: 0.0,
            reach: f64::INFINITY,
            blur: 0.0,
        };
        let mut curvature = Self {
            hessian,
            factor,
            inverse: None,
            survey,
            scales,
        };
        curvature.measure(extra, outputs, threads);
        if outputs > 1 {
            curvature.scales.reach = curvature.shared_reach(extra, sample, frame)?;
            let pays = parameters > WORTH_INVERTING && sample.shape.members >= parameters;
            if pays {
                curvature.invert(extra, frame.link.curvature(), threads);
            }
        } else if knows_reach(sample, frame) {
            curvature.scales.reach = sample.local_reach(frame, &curvature.factor)?;
        }
        Ok(curvature)
    }

    /// The largest ‖x‖ in the norm of H⁻¹, whatever the class. With π the largest eigenvalue of
    /// H⁻¹(I ⊗ G), H is at least I ⊗ G/π, and at least the penalty Λ; hence at least I ⊗ M, M = (1
    /// − s)·G/π + s·Λ, which is a matrix of one class.
    fn shared_reach(
        &self,
        extra: &Extra,
        sample: &RowSample<'_>,
        frame: PassFrame<'_>,
    ) -> Result<f64> {
        let width = self.survey.support.len();
        let share = (1.0 - PENALTY_SHARE) / self.scales.pull;
        let least = Mat::from_fn(width, width, |i, j| {
            let own = if i == j {
                PENALTY_SHARE * extra.penalty[j]
            } else {
                0.0
            };
            share * self.survey.gram[(i, j)] + own
        });
        match Cholesky::factor(&least, |j| extra.penalty[j] == 0.0, par(frame.threads)) {
            Ok(factor) => sample.local_reach(
                PassFrame {
                    outputs: 1,
                    ..frame
                },
                &factor,
            ),
            Err(_) => Ok(f64::INFINITY),
        }
    }

    /// Keeps H⁻¹ too, where rounding leaves it good enough; `bend` is the most that a loss bends.
    fn invert(&mut self, extra: &Extra, bend: f64, par: Par) {
        let inverse = SingleSymmetric::of(&self.factor.inverse(par));
        self.keep_inverse(inverse, 0.0, MOST_BLUR, (extra, bend));
    }

    /// Keeps the inverse that was kept before the rows `solved` left or joined, less what they take
    /// from it. It is as wrong as it was, as a fraction of a Hessian that may have become smaller
    /// by `growth`; and what is new is rounded.
    fn keep_changed_inverse(
        &mut self,
        before: &Self,
        solved: &LowRank,
        growth: f64,
        laws: (&Extra, f64),
        par: Par,
    ) {
        let wrong = before.scales.blur * growth;
        if wrong >= WORN_BLUR {
            return;
        }
        let inverse = before.inverse.as_ref().and_then(|inverse| {
            let z = solved.all_z();
            let right = solved.core.times(&z.transpose().to_owned());
            inverse.less(z.as_ref(), right.as_ref(), par)
        });
        // What the small solve rounds, it rounds by its condition more than a factor does.
        let small = 64.0 * UNIT * solved.core.condition * solved.waiting.rank() as f64;
        self.keep_inverse(inverse, wrong / (1.0 - wrong) + small, WORN_BLUR, laws);
    }

    /// Keeps an inverse that is wrong by the fraction `wrong` before it is rounded, unless it is
    /// wrong by more than `most` in all.
    fn keep_inverse(
        &mut self,
        inverse: Option<SingleSymmetric>,
        wrong: f64,
        most: f64,
        (extra, bend): (&Extra, f64),
    ) {
        let penalty = extra.penalty.iter().copied().fold(0.0, f64::max);
        let gauge = extra.gauge.iter().copied().fold(0.0, f64::max);
        let largest = bend * self.scales.gram_norm + penalty + gauge;
        // What the factor and its inverse round is far below what single precision does.
        let fine = 64.0 * UNIT * self.hessian.nrows() as f64 * self.scales.inverse_norm;
        let Some(inverse) = inverse else { return };
        let error = wrong + largest * (inverse.rounded + fine);
        if error <= most {
            self.scales.blur = error / (1.0 - error);
            self.inverse = Some(inverse);
        }
    }

    /// `rhs ← H⁻¹·rhs`, of one column.
    pub(crate) fn solve(&self, rhs: &mut Mat<f64>, par: Par) {
        match &self.inverse {
            Some(inverse) => {
                let solved = inverse.times(rhs.col_as_slice(0));
                rhs.col_as_slice_mut(0).copy_from_slice(&solved);
            }
            None => self.factor.solve(rhs.as_mut(), par),
        }
    }

    /// H⁻¹ times the columns of the rows that wait, from the row `known` on; and times Σ pull ⊗ x
    /// over these rows, where that comes along: `pulls` has a line for each.
    fn solve_waiting(
        &self,
        waiting: &WaitingRows,
        known: usize,
        pulls: &Mat<f64>,
        par: Par,
    ) -> (Mat<f64>, Option<Mat<f64>>) {
        let Some(inverse) = &self.inverse else {
            let mut solved = waiting.columns(known);
            self.factor.solve(solved.as_mut(), par);
            return (solved, None);
        };
        let outputs = waiting.roots.nrows();
        let mut solved = Mat::zeros(self.hessian.nrows(), (waiting.rows() - known) * outputs);
        let mut pulled = Mat::zeros(self.hessian.nrows(), 1);
        for (at, k) in (known..waiting.rows()).enumerate() {
            let blocks = inverse.times_blocks(waiting.x.col_as_slice(k));
            let roots = waiting.roots.as_ref().subcols(k * outputs, outputs);
            let out = solved.as_mut().subcols_mut(at * outputs, outputs);
            multiply(out, Accum::Replace, blocks.as_ref(), roots, 1.0, par);
            let pull = pulls.as_ref().subrows(at, 1).transpose();
            multiply(pulled.as_mut(), Accum::Add, blocks.as_ref(), pull, 1.0, par);
        }
        (solved, Some(pulled))
    }

    /// Takes the measure of H and G. Parameters that no row has are coupled to nothing and known to
    /// be 0.
    pub(crate) fn measure(&mut self, extra: &Extra, outputs: usize, par: Par) {
        let width = self.survey.support.len();
        let total = width * outputs;
        let apart: Vec<usize> = (0..total)
            .filter(|at| self.survey.support[at % width] == 0)
            .collect();
        let seed = total as u64;
        let inverse_norm =
            operator_norm(total, &apart, seed, |v| self.factor.solve(v.as_mut(), par));
        let least = extra.least();
        let inverse_norm = if least > 0.0 {
            inverse_norm.min(1.0 / least)
        } else {
            inverse_norm
        };
        let trace = self.survey.trace;
        let mut pull = trace * inverse_norm;
        let mut gram_norm = trace;
        if self.survey.gram.nrows() > 0 {
            pull = operator_norm(total, &apart, seed + 1, |v| {
                self.factor.sandwich(v, |v| *v = self.gram_times(v), par);
            });
            let columns: Vec<usize> = (0..width)
                .filter(|j| self.survey.support[*j] == 0)
                .collect();
            let found = operator_norm(width, &columns, seed + 2, |v| *v = self.gram_times(v));
            gram_norm = found.min(trace);
        }
        let size = {
            let mut square = 0.0;
            for j in 0..total {
                let column = &self.hessian.col_as_slice(j)[j..];
                square += column.iter().map(|x| x * x).sum::<f64>() * 2.0 - column[0].powi(2);
            }
            square.sqrt()
        };
        self.scales = CurvatureScales {
            inverse_norm,
            measured: inverse_norm,
            pull,
            gram_norm,
            size,
            ..self.scales
        };
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
        let mut square = if self.survey.gram.nrows() > 0 {
            dot(self.gram_times(step).col_as_slice(0), step.col_as_slice(0)).max(0.0)
        } else {
            self.scales.gram_norm * dot(step.col_as_slice(0), step.col_as_slice(0))
        };
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
        frame: PassFrame<'_>,
    ) -> Result<SettlingCurvature> {
        let outputs = frame.outputs;
        let bend = frame.link.curvature();
        let par = par(frame.threads);
        let width = self.survey.support.len();
        let gone = waiting.unsupported(&self.survey.support);
        let survey = waiting.applied(&self.survey, &gone, par);
        let apart: Vec<usize> = (0..width * outputs)
            .filter(|at| gone.binary_search(&(at % width)).is_ok())
            .collect();
        let mut hessian = self.hessian.clone();
        let root = waiting.columns(0);
        let signed = scaled(&root, &waiting.signs);
        multiply_lower(
            hessian.as_mut(),
            Accum::Add,
            signed.as_ref(),
            root.transpose(),
            1.0,
            par,
        );
        clear_columns(&mut hessian, &apart, extra);
        // A rank-m update costs m·p² and a new factor p³/3, but the first goes column by column and
        // the second by matrix products, which are 3 to 8 times as fast.
        let cheap = 12 * waiting.rank() < hessian.nrows() && apart.is_empty();
        let updated = match solved {
            Some(solved) if cheap && solved.core.condition < 1e4 => {
                self.factor.clone().changed(root.as_ref(), &waiting.signs)
            }
            _ => None,
        };
        let refactored = updated.is_none();
        let factor = match updated {
            Some(factor) => factor,
            None => Cholesky::factor(&hessian, |at| extra.penalty[at % width] == 0.0, par)
                .map_err(|pivot| Error::Singular {
                    pivot: pivot % width,
                    width,
                })?,
        };
        let joined = waiting.joined();
        let growth = match solved {
            // The core was made with Ĥ: H ≤ (1 + 2b)·Ĥ ≤ (1 + 2b)·γ·Ĥ′, and Ĥ′ − H′ = Ĥ − H ≤ b·H.
            Some(solved) => {
                let blur = self.scales.blur;
                let blunt = solved.growth() * (1.0 + 2.0 * blur);
                if blunt * blur < 1.0 {
                    blunt / (1.0 - blunt * blur)
                } else {
                    f64::INFINITY
                }
            }
            None => {
                // H ≤ growth·H′: the largest eigenvalue of H′⁻¹H, over the parameters that are
                // still coupled to others.
                let total = hessian.nrows();
                let grown = operator_norm(total, &apart, total as u64 + 3, |v| {
                    factor.sandwich(v, |v| *v = symmetric_times(&self.hessian, v), par);
                });
                grown.max(1.0)
            }
        };
        let mut scales = self.scales;
        scales.inverse_norm *= growth;
        let newcomers =
            waiting.joining_reach() * (outputs as f64 * self.scales.inverse_norm).sqrt();
        scales.reach = scales.reach.max(newcomers) * growth.sqrt();
        scales.pull = (scales.pull + joined * self.scales.inverse_norm) * growth;
        scales.gram_norm += joined;
        let mut settled = Self {
            hessian,
            factor,
            inverse: None,
            survey,
            scales,
        };
        settled.scales.blur = 0.0;
        let is_known = solved.is_some() && apart.is_empty() && joined == 0.0;
        if !is_known || scales.inverse_norm > 2.0 * scales.measured {
            settled.measure(extra, outputs, par);
        }
        if self.inverse.is_some() {
            if let (Some(solved), true) = (solved, apart.is_empty()) {
                settled.keep_changed_inverse(self, solved, growth, (extra, bend), par);
            }
            if settled.inverse.is_none() {
                settled.invert(extra, bend, par);
            }
        }
        Ok(SettlingCurvature {
            curvature: settled,
            refactored,
            growth,
        })
    }

    pub(crate) fn bytes(&self) -> Vec<(&'static str, usize)> {
        let square = |m: &Mat<f64>| m.nrows() * m.ncols() * 8;
        let mut parts = vec![
            ("Hessian and its factor", 2 * square(&self.hessian)),
            ("Gram matrix", square(&self.survey.gram)),
        ];
        parts.extend(
            self.inverse
                .as_ref()
                .map(|inverse| ("inverse of the Hessian", inverse.bytes())),
        );
        parts
    }
}

impl LowRank {
    /// The rows that wait, and H⁻¹ times what the newest of them, of which `pulls` has a line each,
    /// add to the gradient, where that comes along. Gives the rows back when the Hessian with these
    /// changes cannot be told from a singular one.
    pub(crate) fn new(
        curvature: &HessianCurvature,
        before: Option<&LowRank>,
        waiting: WaitingRows,
        pulls: &Mat<f64>,
        par: Par,
    ) -> std::result::Result<(Self, Option<Mat<f64>>), Box<WaitingRows>> {
        let known = before.map_or(0, |before| before.waiting.rows());
        let (fresh, pulled) = curvature.solve_waiting(&waiting, known, pulls, par);
        let count = fresh.ncols();
        let mut lines = Mat::zeros(count, waiting.rank());
        for line in 0..count {
            let along = waiting.along(fresh.col_as_slice(line));
            along
                .into_iter()
                .enumerate()
                .for_each(|(at, entry)| lines[(line, at)] = entry);
        }
        let own = waiting.rank() - count;
        let newest = norm_of_symmetric(&lines.as_ref().subcols(own, count).to_owned());
        let core = ChangeCore::extended(
            before.map(|before| &before.core),
            &lines,
            &waiting.signs,
            par,
        );
        let mut z = before.map_or(Vec::new(), |before| before.z.clone());
        z.push(Arc::new(fresh));
        match core {
            Some(core) => Ok((
                Self {
                    waiting,
                    z,
                    core,
                    newest,
                },
                pulled,
            )),
            None => Err(Box::new(waiting)),
        }
    }

    pub(crate) fn waiting(&self) -> &WaitingRows {
        &self.waiting
    }

    /// H⁻¹u in one piece.
    fn all_z(&self) -> Mat<f64> {
        let height = self.z.first().map_or(0, |z| z.nrows());
        let mut all = Mat::zeros(height, self.waiting.rank());
        let mut at = 0;
        for z in &self.z {
            all.as_mut()
                .subcols_mut(at, z.ncols())
                .copy_from(z.as_ref());
            at += z.ncols();
        }
        all
    }

    /// `solved −= Z (S + UᵀZ)⁻¹ Uᵀ solved`, of one column: from H⁻¹·rhs without these rows' change
    /// to the one with it.
    fn correct(&self, solved: &mut Mat<f64>) {
        let along = self.waiting.along(solved.col_as_slice(0));
        let along = self
            .core
            .times(&Mat::from_fn(along.len(), 1, |at, _| along[at]));
        let mut at = 0;
        for z in &self.z {
            let own = along.as_ref().subrows(at, z.ncols());
            multiply(
                solved.as_mut(),
                Accum::Add,
                z.as_ref().as_ref(),
                own,
                -1.0,
                Par::Seq,
            );
            at += z.ncols();
        }
    }

    /// An upper bound on how much ‖H⁻¹‖ grows, as a factor.
    pub(crate) fn growth(&self) -> f64 {
        let leaving = self
            .waiting
            .signs
            .iter()
            .filter(|sign| **sign < 0.0)
            .count();
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
    /// The gradient that the last measurement found. The next request solves for it together with
    /// its own rows.
    pub(crate) solved: Option<Arc<SolvedGradient>>,
}

/// A gradient as one long column, and H⁻¹ times it, H being the Hessian without the rows that wait.
#[derive(Debug, Clone)]
pub(crate) struct SolvedGradient {
    pub(crate) gradient: Mat<f64>,
    pub(crate) solved: Mat<f64>,
}

impl StandingHessian {
    /// A Hessian with nothing waiting.
    pub(crate) fn new(base: HessianCurvature) -> Self {
        Self {
            base: Arc::new(base),
            pending: None,
            solved: None,
        }
    }

    /// H⁻¹ times this gradient, H being the Hessian without the rows that wait, where that is
    /// known.
    pub(crate) fn known_solution(&self, gradient: &Mat<f64>) -> Option<Mat<f64>> {
        if norm(gradient) == 0.0 {
            return Some(gradient.clone());
        }
        let known = self
            .solved
            .as_ref()
            .filter(|known| known.gradient == *gradient)?;
        Some(known.solved.clone())
    }

    /// H⁻¹·rhs, with everything that waits.
    pub(crate) fn solve(&self, rhs: &Mat<f64>, par: Par) -> Mat<f64> {
        let mut solved = rhs.clone();
        self.base.solve(&mut solved, par);
        self.corrected(solved)
    }

    /// From H⁻¹·rhs without what waits to the one with it.
    pub(crate) fn corrected(&self, mut solved: Mat<f64>) -> Mat<f64> {
        if let Some(pending) = &self.pending {
            pending.correct(&mut solved);
        }
        solved
    }

    /// H·v.
    pub(crate) fn times(&self, v: &Mat<f64>) -> Mat<f64> {
        let mut product = symmetric_times(&self.base.hessian, v);
        if let Some(pending) = &self.pending {
            let waiting = &pending.waiting;
            let mut along = waiting.along(v.col_as_slice(0));
            along
                .iter_mut()
                .zip(&waiting.signs)
                .for_each(|(along, sign)| *along *= sign);
            waiting.add_to(&along, product.col_as_slice_mut(0));
        }
        product
    }

    pub(crate) fn growth(&self) -> f64 {
        self.pending
            .as_ref()
            .map_or(1.0, |pending| pending.growth())
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
pub(super) fn symmetric_times(lower: &Mat<f64>, v: &Mat<f64>) -> Mat<f64> {
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
