//! How far the parameters can be from the minimum, θ* = A⁻¹b.
//!
//! Everything is measured in the energy norm ‖e‖_A = √(eᵀAe) of the error e = θ − θ*, which equals
//! √(gᵀA⁻¹g) for the gradient g = Aθ − b, and is turned into a distance once, at the end: ‖Te‖ ≤
//! ‖TA⁻¹Tᵀ‖^½·‖e‖_A, T leading to the caller's coordinates. Dividing ‖g‖ by the least eigenvalue
//! instead would charge every rounding error as if it lay in the worst direction, which correlated
//! columns make millions of times too much. In the energy norm
//!
//! - a row x that leaves has norm √h ≤ 1, h being its leverage;
//! - an error of at most η·s_j in each entry of g, s_j² = A_jj, has norm at most η·√d·‖SA⁻¹S‖^½;
//! - what the sums lost by rounding, and what a solve misses, are fractions ρ of what they are
//!   applied to. The solve's fraction is measured with random vectors, as is that of the sums where
//!   the known limit, from the number of terms in each sum, says too little.
//!
//! The gradient is known exactly at one point, the anchor; elsewhere it is g(θ₀) + A(θ − θ₀), so
//! that the rounding of A counts only for the way from the anchor, which a forget makes short.
//! `docs/theory.md` has the proofs.

use std::sync::Arc;

use faer::{Mat, Par};

use super::build::RidgeFrame;
use super::change::{LongResiduals, RidgeChange};
use super::sums::{RidgeSums, SignedRows};
use super::waiting::tight_joint_growth;
use super::{Basis, CurvatureNorms, DenseBody, RidgeModel};
use crate::evidence::{BoundSource, ClearedColumns, Evidence};
use crate::linalg::{UNIT, two_sum};

/// By so much norms may have been carried beyond what was measured before they are measured again.
pub(super) const MOST_GROWTH: f64 = 4.0;

/// Above this fraction, A⁻¹ is not known well enough for anything to follow from it.
const TRUSTED: f64 = 0.25;

/// The gradient of the settled rows at one point.
#[derive(Debug, Clone)]
pub(crate) struct GradientAnchor {
    pub(crate) theta: Mat<f64>,
    /// In two words: what rows that leave add to it is large, and has to cancel at the parameters
    /// without them.
    pub(crate) gradient: Mat<f64>,
    pub(crate) gradient_low: Mat<f64>,
    /// `gradient` is wrong by a vector of at most this energy norm,
    pub(crate) error: f64,
    /// and in each entry by at most this times the spread of its column.
    pub(crate) spread_error: f64,
}

/// How well curvature is known. Norms are upper bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvatureQuality {
    /// ‖TA⁻¹Tᵀ‖.
    pub(crate) caller_norm: f64,
    /// ‖SA⁻¹S‖.
    pub(crate) spread_norm: f64,
    /// The largest fraction by which the sums are wrong, ‖A^-½(A − Â)A^-½‖, but for what is known
    /// by entries:
    pub(crate) sums_error: f64,
    /// beyond that, an entry is wrong by at most this times the spreads of its columns, over the
    /// width. Rows that leave make a fraction larger with every fold, and this not.
    pub(crate) entry_error: f64,
    /// All of it as a fraction of the settled A, since the norms were measured with changes that
    /// wait.
    pub(crate) settled_error: f64,
    /// The largest fraction by which a solve misses, Â being taken for A.
    pub(crate) solver_error: f64,
    /// What vectors kept for the rows miss beyond that, since they were solved for.
    pub(crate) kept_error: f64,
    /// By how much A⁻¹ can have grown since the norms were measured, through changes that wait.
    pub(crate) growth: f64,
    /// By how much the norms were carried beyond what was measured, at settles.
    pub(crate) carried_growth: f64,
    /// How many of the changes that wait were there when the norms were measured,
    pub(crate) measured_after: usize,
    /// and when the error of solves was, through all of them.
    pub(crate) solves_measured_after: usize,
}

impl CurvatureQuality {
    /// What a file keeps of the norms; None while changes wait, because they are not of the settled
    /// sums then.
    pub(crate) fn norms(&self) -> Option<CurvatureNorms> {
        (self.measured_after == 0 && self.growth == 1.0).then_some(CurvatureNorms {
            caller: self.caller_norm,
            spread: self.spread_norm,
            carried: self.carried_growth,
        })
    }

    /// The fraction of what it is applied to by which a solve can be wrong.
    pub(crate) fn error(&self) -> f64 {
        (self.wrong_sums() + self.solver_error) * self.growth
    }

    /// The fraction by which the sums are wrong.
    pub(super) fn wrong_sums(&self) -> f64 {
        self.sums_error + scaled_error(self.entry_error, self.spread_norm)
    }

    /// By how much the settled sums are wrong: as a fraction, A being that of the settled rows, and
    /// by entries beyond that.
    pub(super) fn settled_sums_error(&self) -> (f64, f64) {
        match self.measured_after {
            0 => (self.sums_error, self.entry_error),
            _ => (self.settled_error, 0.0),
        }
    }

    /// Says by the number of terms alone how wrong the sums are, where that is less.
    pub(super) fn limit_by_count(&mut self, sums: &RidgeSums) {
        let by_count = sums.charge * sums.a.nrows() as f64;
        let fraction = self.wrong_sums();
        if fraction.is_nan() || fraction >= by_count * self.spread_norm {
            self.sums_error = 0.0;
            self.entry_error = by_count;
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.error() <= TRUSTED
    }

    /// Whether the norms were carried so far beyond what was measured that measuring them again
    /// pays.
    pub(super) fn is_loose(&self) -> bool {
        self.growth * self.carried_growth > MOST_GROWTH
    }

    fn slack(&self) -> f64 {
        if self.is_trusted() {
            self.growth / (1.0 - self.error())
        } else {
            f64::INFINITY
        }
    }

    /// A distance in the caller's coordinates for one unit of energy norm.
    pub(crate) fn distance_of_energy(&self) -> f64 {
        (self.caller_norm * self.slack()).sqrt()
    }

    /// The energy norm of a gradient whose entries are at most s_j.
    pub(crate) fn energy_of_spread(&self, width: usize) -> f64 {
        (self.spread_norm * self.slack() * width as f64).sqrt()
    }
}

/// What is known about how good the parameters are.
#[derive(Debug, Clone)]
pub(crate) struct DistanceLedger {
    pub(crate) anchor: Arc<GradientAnchor>,
    pub(crate) quality: CurvatureQuality,
    /// At least the norm of the gradient over the current rows in A⁻¹, A being that of the settled
    /// ones; with the growth since, this is ‖θ − θ*‖ in the energy norm.
    pub(crate) energy: f64,
    /// At least the distance in the caller's coordinates, where something better than the energy
    /// tells.
    pub(crate) measured: Option<f64>,
    pub(crate) source: BoundSource,
    /// At least the distance from the parameters to those that the energy speaks of, in the
    /// caller's coordinates; 0 unless a method was approximate.
    pub(crate) distance: f64,
    /// False after an approximate method: then the parameters are not a minimum, and exact methods
    /// start from the sums.
    pub(crate) at_optimum: bool,
    /// By how much A⁻¹, and by how much A, can have grown since rows were settled.
    pub(crate) waiting_growth: f64,
    pub(crate) joined_growth: f64,
    pub(crate) refactorisations: usize,
}

/// A bound in the caller's coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnergyBound {
    pub(crate) gradient: Option<f64>,
    pub(crate) convexity: f64,
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
    pub(crate) source: BoundSource,
}

/// A distance as a fraction of the retrained parameters' norm, which may be smaller than `size`,
/// that of the parameters at hand, by the distance itself. Never NaN: a distance that is none is
/// infinite.
pub(crate) fn relative_to(distance: f64, size: f64) -> f64 {
    match distance {
        0.0 => 0.0,
        distance if size > distance => distance / (size - distance),
        _ => f64::INFINITY,
    }
}

/// What a step found out, for the evidence.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Step {
    pub(crate) leverage: Option<f64>,
    pub(crate) condition: Option<f64>,
    pub(crate) refinements: usize,
    pub(crate) refactored: bool,
    /// How many retained rows were read, when the sums could not tell enough.
    pub(crate) reread: Option<usize>,
    /// What stood in columns that no row has any more, before they were set to 0.
    pub(crate) cleared: Option<ClearedColumns>,
}

impl Step {
    pub(crate) fn record(&self, evidence: &mut Evidence, read: usize) {
        evidence.rows_read = read + self.reread.unwrap_or(0);
        evidence.resummed = self.reread.is_some();
        evidence.largest_leverage = self.leverage;
        evidence.condition = self.condition;
        evidence.refinements = self.refinements;
        evidence.refactored = self.refactored;
        evidence.cleared = self.cleared;
    }
}

/// The gradient at some parameters as the sums and the anchor tell it, and the energy norm of what
/// they may hide.
pub(crate) struct GradientSurvey {
    pub(crate) gradient: Mat<f64>,
    pub(crate) hidden: f64,
    /// The fraction that solving through changes that wait adds to the error of a solve.
    pub(crate) solve_error: f64,
}

impl DistanceLedger {
    /// The ledger of parameters about which nothing is known yet.
    pub(crate) fn new(anchor: GradientAnchor, quality: CurvatureQuality) -> Self {
        Self {
            anchor: Arc::new(anchor),
            quality,
            energy: f64::INFINITY,
            measured: None,
            source: BoundSource::Measured,
            distance: 0.0,
            at_optimum: true,
            waiting_growth: 1.0,
            joined_growth: 1.0,
            refactorisations: 0,
        }
    }

    /// Takes what all changes that wait do together for what those since the norms were measured
    /// do, where that says less. With A₀ settled, A₁ where the norms were measured and A now, A⁻¹
    /// is at most the growth since the settle times A₀⁻¹, and A₀⁻¹ at most A₁⁻¹ times what rows
    /// that joined add to A₀.
    pub(super) fn limit_growth(&mut self) {
        let together = self.waiting_growth * self.joined_growth;
        self.quality.growth = match self.quality.measured_after {
            0 => self.waiting_growth,
            _ => self.quality.growth.min(together),
        };
    }

    /// The distance bound in the caller's coordinates. Handing parameters out rounds once more.
    pub(crate) fn absolute(&self, basis: &Basis, theta: &Mat<f64>) -> f64 {
        self.distance_to_energy_minimum() + self.distance + 4.0 * UNIT * basis.caller_norm(theta)
    }

    /// The distance to the parameters that the energy speaks of: what was measured, or what the
    /// energy allows.
    pub(crate) fn distance_to_energy_minimum(&self) -> f64 {
        let carried =
            || self.energy * self.waiting_growth.sqrt() * self.quality.distance_of_energy();
        let inside = self.measured.unwrap_or_else(carried);
        if inside.is_nan() {
            f64::INFINITY
        } else {
            inside
        }
    }

    /// The bound as a fraction of the parameters' norm.
    pub(crate) fn relative(&self, basis: &Basis, theta: &Mat<f64>) -> f64 {
        relative_to(self.absolute(basis, theta), basis.caller_norm(theta))
    }

    /// Notes the energy of a known gradient, `solved` being A⁻¹ times it: as a vector it is known
    /// almost exactly, and only what is hidden has to be charged in the worst direction.
    pub(crate) fn note(&mut self, survey: &GradientSurvey, solved: &Mat<f64>, basis: &Basis) {
        let along: f64 = (0..solved.ncols())
            .map(|j| crate::linalg::dot(survey.gradient.col_as_slice(j), solved.col_as_slice(j)))
            .sum();
        self.source = BoundSource::Measured;
        let error = self.quality.error() + survey.solve_error;
        if error > TRUSTED {
            self.energy = f64::INFINITY;
            self.measured = None;
            return;
        }
        let energy = (along.max(0.0) / (1.0 - error)).sqrt();
        let per_energy = self.quality.distance_of_energy();
        self.energy = (energy + survey.hidden) * self.joined_growth.sqrt();
        self.measured = Some(
            basis.caller_norm(solved) * (1.0 + 1e-9)
                + per_energy * (error * energy + survey.hidden),
        );
    }
}

impl DenseBody {
    /// Finds out what is known of the norms after a change, and measures them where what is known
    /// is too loose to be of use.
    pub(super) fn tighten(
        &self,
        ledger: &mut DistanceLedger,
        frame: &RidgeFrame,
        change: &RidgeChange,
        par: Par,
    ) {
        self.count_directions(ledger, change);
        if ledger.quality.is_loose() {
            self.measure_norms(ledger, frame, change, par);
        }
    }

    /// Counts that rows which wait point in different directions, which is far cheaper than
    /// measuring what they do to A⁻¹.
    pub(super) fn count_directions(&self, ledger: &mut DistanceLedger, change: &RidgeChange) {
        let changes = self
            .pending
            .iter()
            .map(Arc::as_ref)
            .chain(std::iter::once(change));
        ledger.waiting_growth = ledger.waiting_growth.min(tight_joint_growth(changes));
        ledger.limit_growth();
    }

    /// Measures the norms after a change.
    pub(super) fn measure_norms(
        &self,
        ledger: &mut DistanceLedger,
        frame: &RidgeFrame,
        change: &RidgeChange,
        par: Par,
    ) {
        let (caller, spread) =
            self.curvature_norms(&frame.basis, frame.settings.lambda, Some(change), par);
        let quality = &mut ledger.quality;
        if quality.measured_after == 0 {
            quality.settled_error = quality.wrong_sums();
        }
        // The fractions have grown with the old norms; the new ones start from there, or from the
        // count of terms.
        let grown = quality.solver_error * quality.growth;
        quality.solver_error = grown;
        if let Some(found) = self.solver_error_through(change, par) {
            quality.solver_error = found;
            quality.solves_measured_after = self.pending.len() + 1;
        }
        quality.caller_norm = caller.min(quality.caller_norm * quality.growth);
        quality.spread_norm = spread.min(quality.spread_norm * quality.growth);
        quality.sums_error *= quality.growth;
        quality.limit_by_count(&self.sums);
        quality.growth = 1.0;
        quality.carried_growth = 1.0;
        quality.measured_after = self.pending.len() + 1;
    }

    /// The gradient over the settled rows, the waiting changes and `more`.
    pub(crate) fn survey(
        &self,
        ledger: &DistanceLedger,
        theta: &Mat<f64>,
        more: Option<&RidgeChange>,
        par: Par,
    ) -> GradientSurvey {
        let (mut gradient, low, mut hidden) = self.survey_words(ledger, theta, more, par);
        gradient += low;
        let per_spread = ledger.quality.energy_of_spread(theta.nrows());
        hidden += 2.0 * UNIT * per_spread * largest_share(&gradient, &self.sums.spread);
        for j in self.unsupported(more.map(|change| &change.rows)) {
            gradient.row_mut(j).fill(0.0);
        }
        let solve_error = self.waiting_error(&ledger.quality, more);
        GradientSurvey {
            gradient,
            hidden,
            solve_error,
        }
    }

    /// An anchor near these parameters, nothing being left to wait: the old one was computed from
    /// rows that may be gone by now. It has as many digits as a float, so that no file holds
    /// parameters longer than it should.
    pub(crate) fn anchor_near(&self, theta: &Mat<f64>, par: Par) -> Arc<GradientAnchor> {
        let near = Mat::from_fn(theta.nrows(), theta.ncols(), |j, c| {
            f64::from(theta[(j, c)] as f32)
        });
        if near == self.ledger.anchor.theta {
            return self.ledger.anchor.clone();
        }
        let near = if near.norm_max().is_finite() {
            near
        } else {
            theta.clone()
        };
        Arc::new(self.anchor_at(&near, par))
    }

    /// The anchor at these parameters.
    ///
    /// What the sums may be wrong by on the way there is known in each entry, by the number of
    /// their terms, and as an energy. As an energy it is often less, but grows with every fold by
    /// as much as rows that leave could make it grow at worst. So it is kept by entries unless that
    /// says far more.
    pub(super) fn anchor_at(&self, theta: &Mat<f64>, par: Par) -> GradientAnchor {
        const FAR_MORE: f64 = 8.0;
        let SettledGradient { gradient, low, way } =
            self.settled_gradient(&self.ledger, theta, par);
        let GradientAnchor {
            mut error,
            mut spread_error,
            ..
        } = *self.ledger.anchor;
        let per_spread = self.ledger.quality.energy_of_spread(theta.nrows());
        if way.by_count * per_spread <= FAR_MORE * (way.measured + way.by_entries * per_spread) {
            spread_error += way.by_count;
        } else {
            error += way.measured;
            spread_error += way.by_entries;
        }
        GradientAnchor {
            theta: theta.clone(),
            gradient,
            gradient_low: low,
            error,
            spread_error,
        }
    }

    /// The gradient over the settled rows, from the anchor.
    fn settled_gradient(
        &self,
        ledger: &DistanceLedger,
        theta: &Mat<f64>,
        par: Par,
    ) -> SettledGradient {
        let anchor = &ledger.anchor;
        // The way from the anchor in two words: rounding it would cost as much as rounding A.
        let way = theta - &anchor.theta;
        let way_low = Mat::from_fn(theta.nrows(), way.ncols(), |j, c| {
            two_sum(theta[(j, c)], -anchor.theta[(j, c)]).1
        });
        let mut gradient = anchor.gradient.clone();
        let mut low = anchor.gradient_low.clone();
        if way.norm_max() == 0.0 {
            return SettledGradient {
                gradient,
                low,
                way: WayError::default(),
            };
        }
        let along = self
            .sums
            .add_product(&way, &way_low, &mut gradient, &mut low, par);
        let energy = (along.max(0.0) / (1.0 - ledger.quality.error()).max(0.0)).sqrt();
        let size = weighted_sum(&way, &self.sums.spread);
        let (fraction, entries) = ledger.quality.settled_sums_error();
        let way = WayError {
            by_count: self.sums.charge * size,
            measured: fraction * energy,
            by_entries: entries / theta.nrows() as f64 * size,
        };
        SettledGradient { gradient, low, way }
    }

    /// The gradient in two words, and the energy norm of what they may hide.
    fn survey_words(
        &self,
        ledger: &DistanceLedger,
        theta: &Mat<f64>,
        more: Option<&RidgeChange>,
        par: Par,
    ) -> (Mat<f64>, Mat<f64>, f64) {
        let anchor = &ledger.anchor;
        let SettledGradient {
            mut gradient,
            mut low,
            way,
        } = self.settled_gradient(ledger, theta, par);
        let per_spread = ledger.quality.energy_of_spread(theta.nrows());
        let growth = ledger.waiting_growth.sqrt();
        // By the number of terms in the sums, or by what was measured of them, whichever says less.
        let sums =
            (way.by_count * per_spread).min(way.measured * growth + way.by_entries * per_spread);
        let mut hidden = scaled_error(anchor.error, growth)
            + scaled_error(anchor.spread_error, per_spread)
            + sums;
        for change in self.pending.iter().map(Arc::as_ref).chain(more) {
            let residuals = LongResiduals::of(&change.rows, theta);
            residuals.add_to_gradient(&change.rows, &mut gradient, &mut low);
            hidden += scaled_error(residuals.lost * change.energy_of_rows(), growth);
        }
        (gradient, low, hidden)
    }

    /// What solving through the changes that wait and `more` adds to the error of a solve, as far
    /// as that was not measured.
    pub(crate) fn waiting_error(
        &self,
        quality: &CurvatureQuality,
        more: Option<&RidgeChange>,
    ) -> f64 {
        let changes = self.pending.iter().map(Arc::as_ref).chain(more);
        let added = changes
            .skip(quality.solves_measured_after)
            .map(|change| change.solve_error(quality))
            .sum();
        // What one change adds grows with those after it, like everything that a solve misses; rows
        // that joined raise spreads.
        let joined = self.ledger.joined_growth * more.map_or(1.0, |change| 1.0 + change.joined());
        scaled_error(added, quality.growth * joined)
    }

    /// Whether the sums are too far gone, or were never good enough, for anything to be computed
    /// from them.
    pub(crate) fn is_spoilt(&self, rows: &SignedRows) -> bool {
        let mut left: Vec<f64> = (0..self.sums.a.nrows())
            .map(|j| self.sums.a[(j, j)])
            .collect();
        for rows in self
            .pending
            .iter()
            .map(|change| &change.rows)
            .chain(std::iter::once(rows))
        {
            for (k, sign) in rows.signs.iter().enumerate() {
                for (left, x) in left.iter_mut().zip(rows.xt.col_as_slice(k)) {
                    *left += sign * x * x;
                }
            }
        }
        // A column that no row has any more is known without a sum.
        for j in self.unsupported(Some(rows)) {
            left[j] = 0.0;
        }
        let worst = left
            .iter()
            .zip(&self.sums.spread)
            .filter(|(left, _)| **left > 0.0)
            .map(|(left, spread)| spread * spread / left)
            .fold(1.0, f64::max);
        // A column that has lost so much of its size has lost as many digits.
        worst * (self.sums.charge + UNIT) * self.sums.a.nrows() as f64 > 1e-8
            || !self.ledger.quality.is_trusted()
    }

    pub(crate) fn current_bound(&self, model: &RidgeModel) -> EnergyBound {
        let ledger = &self.ledger;
        let absolute = ledger.absolute(&model.basis, &model.theta);
        let size = model.basis.caller_norm(&model.theta);
        let trace: f64 = self.sums.spread.iter().map(|s| s * s).sum();
        EnergyBound {
            gradient: ledger
                .at_optimum
                .then_some(ledger.energy * ledger.waiting_growth.sqrt() * trace.sqrt()),
            convexity: ledger.quality.distance_of_energy().powi(-2),
            absolute,
            relative: relative_to(absolute, size),
            source: ledger.source,
        }
    }
}

/// The gradient over the settled rows in two words, and what the sums may have cost it on the way
/// from the anchor.
struct SettledGradient {
    gradient: Mat<f64>,
    low: Mat<f64>,
    way: WayError,
}

/// What may be wrong with A times the way from the anchor.
#[derive(Default)]
struct WayError {
    /// In each entry at most this times the spread of its column, by the number of terms in the
    /// sums,
    by_count: f64,
    /// or at most this as an energy by the settled A, by what was measured of the sums,
    measured: f64,
    /// and this times the spreads beyond it.
    by_entries: f64,
}

/// An error times a factor that may be infinite; no error stays none.
pub(super) fn scaled_error(error: f64, factor: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error * factor }
}

/// The energy norm of an error of one unit of every entry of `theta`, ‖e_j‖_A being at most s_j:
/// √Σ_c (Σ_j s_j|θ_jc|)².
pub(crate) fn weighted_sum(theta: &Mat<f64>, spread: &[f64]) -> f64 {
    let column = |output: usize| -> f64 {
        theta
            .col_as_slice(output)
            .iter()
            .zip(spread)
            .map(|(value, s)| value.abs() * s)
            .sum()
    };
    (0..theta.ncols())
        .map(|output| column(output).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// The largest |v_j|/s_j.
pub(crate) fn largest_share(v: &Mat<f64>, spread: &[f64]) -> f64 {
    let mut largest = 0.0f64;
    for output in 0..v.ncols() {
        for (value, spread) in v.col_as_slice(output).iter().zip(spread) {
            if *spread > 0.0 {
                largest = largest.max(value.abs() / spread);
            }
        }
    }
    largest
}

impl GradientAnchor {
    /// The anchor at zero, where the gradient is −b with whatever summing b lost.
    pub(crate) fn at_zero(sums: &RidgeSums) -> Self {
        Self {
            theta: Mat::zeros(sums.b.nrows(), sums.b.ncols()),
            gradient: &sums.b * faer::Scale(-1.0),
            gradient_low: Mat::zeros(sums.b.nrows(), sums.b.ncols()),
            error: 0.0,
            spread_error: sums.b_charge * sums.target_spread,
        }
    }
}
