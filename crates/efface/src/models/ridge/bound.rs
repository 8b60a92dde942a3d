//! How good the parameters are: the bound ‖θ − θ^{\D}‖ ≤ ‖∇L^{\D}(θ)‖/μ, carried from step to step where that is enough and
//! measured where it is not.

use faer::Mat;

use super::change::Change;
use super::sums::{SignedRows, Sums};
use super::{DenseBody, Penalty, RidgeModel};
use crate::evidence::{BoundSource, Evidence};
use crate::linalg::{UNIT, column_norm, inverse_norm, norm};

/// What is known about how good the parameters are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ledger {
    /// At least ‖∇L(θ)‖ in the model's coordinates.
    pub(crate) gradient: f64,
    pub(crate) source: BoundSource,
    /// At least 1/μ, and what it was when last measured.
    pub(crate) inverse_norm: f64,
    pub(crate) measured_inverse_norm: f64,
    /// At least the distance from the parameters to the minimum that the gradient speaks of, in the caller's
    /// coordinates; 0 unless a method was approximate.
    pub(crate) distance: f64,
    /// False after an approximate method: then the parameters are not a minimum, and exact methods start from the sums.
    pub(crate) at_optimum: bool,
    pub(crate) refactorisations: usize,
}

/// A bound in the caller's coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) gradient: Option<f64>,
    pub(crate) convexity: f64,
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
    pub(crate) source: BoundSource,
}

/// A distance as a fraction of the retrained parameters' norm, which may be smaller than `size`, that of the parameters at
/// hand, by the distance itself.
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
    /// All retained rows, when they were summed afresh.
    pub(crate) resummed: Option<usize>,
}

impl Step {
    pub(crate) fn record(&self, evidence: &mut Evidence, read: usize) {
        evidence.rows_read = read + self.resummed.unwrap_or(0);
        evidence.resummed = self.resummed.is_some();
        evidence.largest_leverage = self.leverage;
        evidence.condition = self.condition;
        evidence.refinements = self.refinements;
        evidence.refactored = self.refactored;
    }
}

impl DenseBody {
    pub(super) fn measure_inverse_norm(&mut self, penalty: &Penalty, par: faer::Par) {
        let apart = self.unsupported(None);
        self.ledger.inverse_norm = self.inverse_norm_of(penalty, &apart, None, par);
        self.ledger.measured_inverse_norm = self.ledger.inverse_norm;
    }

    /// At least 1/μ over the columns that some row has; the parameters of the others are exactly zero.
    pub(super) fn inverse_norm_of(
        &self,
        penalty: &Penalty,
        apart: &[usize],
        more: Option<&Change>,
        par: faer::Par,
    ) -> f64 {
        let estimate = inverse_norm(penalty.values.len(), apart, penalty.values.len() as u64, |v| {
            *v = self.solve(v, more, par);
        });
        estimate.min(1.0 / penalty.least)
    }

    /// Measures ‖A⁻¹‖ after the change where the bound carried from before it is too loose to be of use.
    pub(super) fn tighten(
        &self,
        ledger: &mut Ledger,
        model: &RidgeModel,
        change: &Change,
        theta: &Mat<f64>,
        unsupported: &[usize],
        par: faer::Par,
    ) {
        let loose = self.relative(ledger.gradient, ledger.inverse_norm, theta) > model.settings.tolerance;
        if loose && ledger.inverse_norm > 2.0 * ledger.measured_inverse_norm {
            let measured = self.inverse_norm_of(&model.penalty, unsupported, Some(change), par);
            ledger.inverse_norm = ledger.inverse_norm.min(measured);
            ledger.measured_inverse_norm = ledger.inverse_norm;
        }
    }

    /// The size of gradient that evaluating it at parameters of norm `size` can leave by rounding alone: some units of
    /// every term that is added.
    pub(super) fn rounding(&self, size: f64) -> f64 {
        let waiting: f64 = self.pending.iter().map(|change| change.rounding(size)).sum();
        UNIT * (4.0 * (self.sums.size * size + self.sums.b_size) + waiting)
    }

    /// The size of gradient that the rounding in the sums can hide.
    fn hidden(&self, size: f64) -> f64 {
        self.sums.drift * size + self.sums.b_drift
    }

    /// Whether the sums have lost many more digits than summing the rows that are left afresh would lose.
    pub(crate) fn spoilt(&self, size: f64, more: Option<&SignedRows>) -> bool {
        let (mut trace, mut targets) = self.sums.squares();
        for rows in self.pending.iter().map(|change| &change.rows).chain(more) {
            for (k, sign) in rows.signs.iter().enumerate() {
                trace += sign * column_norm(&rows.xt, k).powi(2);
                targets += sign * (0..rows.y.ncols()).map(|output| rows.y[(k, output)].powi(2)).sum::<f64>();
            }
        }
        let (drift, b_drift) = Sums::drift_of(trace.max(0.0), targets.max(0.0));
        self.hidden(size) > 16.0 * (drift * size + b_drift)
    }

    pub(crate) fn inverse_norm_after(&self, model: &RidgeModel, change: &Change) -> f64 {
        (self.ledger.inverse_norm * change.inverse_norm_growth()).min(1.0 / model.penalty.least)
    }

    /// (‖∇L‖ + what rounding can hide) / μ / ‖θ‖ in the model's coordinates.
    pub(crate) fn relative(&self, gradient: f64, inverse_norm: f64, theta: &Mat<f64>) -> f64 {
        let size = norm(theta);
        let gradient = gradient + self.rounding(size) + self.hidden(size);
        let distance = gradient * inverse_norm + 2.0 * UNIT * size;
        if size > 0.0 { distance / size } else { distance }
    }

    pub(crate) fn current_bound(&self, model: &RidgeModel) -> Bound {
        let ledger = &self.ledger;
        let size = norm(&model.theta);
        let relative = self.relative(ledger.gradient, ledger.inverse_norm, &model.theta);
        let inside = if size > 0.0 { relative * size } else { relative };
        let absolute = inside * model.basis.stretch + ledger.distance;
        let outside = model.basis.caller_norm(&model.theta);
        Bound {
            gradient: ledger.at_optimum.then_some(ledger.gradient),
            convexity: 1.0 / ledger.inverse_norm,
            absolute,
            relative: relative_to(absolute, outside),
            source: ledger.source,
        }
    }
}
