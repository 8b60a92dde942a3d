//! How far the parameters can be from the optimum of the rows that are left.
//!
//! With g the gradient, H the Hessian at the parameters and e the way to the optimum,
//! self-concordance gives −eᵀg = ∫ eᵀH(θ + te)e dt ≥ eᵀHe·(1 − e^{−r})/r with r = M·max|xᵀe|, M
//! that of the loss. A score moves by at most R·‖e‖, R the largest norm of a row, and by at most
//! ρ·√(eᵀHe), ρ the largest norm of a row in H⁻¹. Hence, with μ the least eigenvalue of H and ν =
//! √(gᵀH⁻¹g),
//!
//! ```text
//! ‖e‖ ≤ s·(−ln(1 − q)/q),   s = min(‖g‖/μ, ν/√μ),   q = M·min(R·s, ρ·ν),   as long as q < 1
//! ```
//!
//! which is ‖g‖/μ once s is small. Where s is not, and every parameter is penalised, ‖g‖/λ holds
//! everywhere.
//!
//! A model with noise is compared with what retraining with the same noise would give. (A bound
//! with the noise in it would tell its size, and with that what it hides.)
//!
//! Columns that no row has are not coupled to any other: their optimum is 0, they are left out of
//! g, and the norm of what an approximate method leaves in them is added to the bound. Where rare
//! classes make μ useless, `profile.rs` bounds the distance without it.
//!
//! g is not measured at every step. A Newton step Δ with the kept Hessian Ĥ leaves the gradient g′
//! = g + ĤΔ + (H̄ − Ĥ)Δ, where H̄ is the mean Hessian along the step: the first two terms cancel,
//! and by the Lipschitz constant γ of J the third is at most γ·‖X‖·(m + ½|xᵀΔ|)·‖XΔ‖, with |xᵀΔ|
//! the most that the step moves a score, and m the most that scores have moved since Ĥ was made.
//! This is the data-dependent bound of Guo et al. (2020), carried from request to request. In the
//! norm of Ĥ⁻¹ self-concordance bounds the third term too, and the lesser of both is taken.

use std::sync::Arc;

use faer::Mat;

use super::LogisticModel;
use super::curvature::{CurvatureScales, SolvedGradient, StandingHessian};
use super::look::SeenPlace;
use super::objective::flat;
use super::pass::{RowSurvey, STRETCH};
use crate::evidence::BoundSource;
use crate::linalg::{UNIT, dot, norm};
use crate::models::ridge::{EnergyBound, relative_to};

/// What is known about how good the parameters are. Norms marked local are those of H⁻¹, H being
/// the Hessian without the rows that wait.
#[derive(Debug, Clone)]
pub(crate) struct BoundLedger {
    /// The part of the gradient that is known.
    pub(crate) leftover: Mat<f64>,
    pub(crate) leftover_local: f64,
    /// At least the norms of the part of the gradient that is not known.
    pub(crate) unknown: f64,
    pub(crate) unknown_local: f64,
    pub(crate) source: BoundSource,
    /// At least the way from where the Hessian was made.
    pub(crate) moved: f64,
    /// At least how far that way moved the score of any row.
    pub(crate) swung: f64,
    /// A place on that way that is known. Steps that undo each other, or lead in unlike directions,
    /// lead less far from it than their lengths add up to.
    pub(crate) anchor: Option<WayAnchor>,
    /// At least the norm of what later requests left wrong in the Hessian, whose rows they weighed
    /// where they stood.
    pub(crate) drift: f64,
    /// At least the same as a fraction of the Hessian: ‖H^-½(Ĥ − H)H^-½‖. A row whose scores moved
    /// by m since was weighed by a J within a factor of e^{Mm} of the one that the Hessian has, and
    /// is no more of it than its leverage.
    pub(crate) warp: f64,
    /// The norm, in the caller's coordinates, of weights that an approximate method left in columns
    /// that no row has. Their optimum is 0 and no other column depends on them: they are no part of
    /// the gradient above, and their norm is their distance.
    pub(crate) remnant: f64,
    /// At least the distance of all others to the optimum as `profile.rs` found it here, in the
    /// caller's coordinates; infinite where it was not asked.
    pub(crate) profile: f64,
}

/// A place where the model stood when its Hessian was made, or after. It is never stored: those
/// parameters may owe something to rows that left since.
#[derive(Debug, Clone)]
pub(crate) struct WayAnchor {
    theta: Arc<Mat<f64>>,
    /// What `moved` and `swung` were there.
    moved: f64,
    swung: f64,
    /// At least the square of the way from there in the norm of the kept Hessian.
    local_square: f64,
    /// Where rows were last seen on that way, for looks at them in single precision.
    pub(super) seen: Option<SeenPlace>,
}

impl WayAnchor {
    /// The way from there to these parameters.
    pub(crate) fn way_to(&self, theta: &Mat<f64>) -> Mat<f64> {
        theta - &*self.theta
    }

    /// The parameters there, where that is the very place where the Hessian was made.
    pub(crate) fn birthplace(&self) -> Option<&Mat<f64>> {
        (self.moved == 0.0).then_some(&*self.theta)
    }

    /// What `swung` would be if no score had moved by more than this since.
    pub(crate) fn swung_by(&self, swing: f64) -> f64 {
        self.swung + swing
    }
}

/// A step as the account of the whole way needs it.
pub(crate) struct WayStep {
    /// The way from the anchor to where the step begins, columns that no row has left out, times
    /// the kept Hessian times the step.
    pub(crate) product: f64,
    /// The square of the step in the norm of the kept Hessian.
    pub(crate) local_square: f64,
    /// The norm of the way from the anchor to where the step ends.
    pub(crate) length: f64,
    /// The most that a unit of a way moves a score, in the plain norm and in that of the kept
    /// Hessian.
    pub(crate) reach: f64,
    pub(crate) local_reach: f64,
}

/// What the rows' share of a gradient can hide by rounding, and how far rows reach.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowFacts {
    /// max ‖x‖.
    pub(crate) reach: f64,
    /// Σ w and Σ w‖x‖².
    pub(crate) weight: f64,
    pub(crate) trace: f64,
    /// The mean weight, and how many rows weigh something.
    pub(crate) scale: f64,
    pub(crate) rows: u64,
    /// At least ‖H⁻¹‖ at the parameters, where no Hessian is kept.
    pub(crate) inverse_norm: f64,
}

impl RowFacts {
    pub(crate) fn of(survey: &RowSurvey) -> Self {
        let RowSurvey {
            reach,
            weight,
            trace,
            ..
        } = *survey;
        let rows: u64 = survey.class_rows.iter().sum();
        Self {
            reach,
            weight,
            trace,
            scale: weight / rows.max(1) as f64,
            rows,
            inverse_norm: f64::INFINITY,
        }
    }
}

impl BoundLedger {
    /// A gradient that was computed from the rows, at the place where the Hessian was made.
    pub(crate) fn measured(leftover: Mat<f64>, hidden: f64) -> Self {
        Self {
            leftover_local: f64::INFINITY,
            leftover,
            unknown: hidden,
            unknown_local: f64::INFINITY,
            source: BoundSource::Measured,
            moved: 0.0,
            swung: 0.0,
            anchor: None,
            drift: 0.0,
            warp: 0.0,
            remnant: 0.0,
            profile: f64::INFINITY,
        }
    }

    /// Notes that the model stands here, from where ways are measured from now on.
    pub(crate) fn anchor_at(&mut self, theta: &Mat<f64>) {
        self.anchor = Some(WayAnchor {
            theta: Arc::new(theta.clone()),
            moved: self.moved,
            swung: self.swung,
            local_square: 0.0,
            seen: None,
        });
    }

    /// What a fold leaves of the anchor. The place where the Hessian was made stays: like that
    /// Hessian, it may owe something to rows that went, and rows to come are weighed there. From
    /// any other place the way goes on from where the model stands.
    pub(crate) fn settle_anchor(&mut self, theta: &Mat<f64>) {
        if let Some(anchor) = &mut self.anchor {
            anchor.seen = None;
        }
        match &self.anchor {
            Some(anchor) if anchor.birthplace().is_some() => self.lose_local_way(),
            Some(_) => self.anchor_at(theta),
            None => {}
        }
    }

    /// Takes note that a step did not lead as far from the anchor as the sum of all steps says.
    pub(crate) fn shorten_way(&mut self, step: &WayStep) {
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        let size = anchor.local_square + step.local_square;
        // A little for the rounding of the three terms.
        let square = anchor.local_square + 2.0 * step.product + step.local_square + 1e-9 * size;
        anchor.local_square = square.max(0.0);
        let swing = (step.reach * step.length).min(step.local_reach * anchor.local_square.sqrt());
        self.swung = self.swung.min(anchor.swung + swing);
        self.moved = self.moved.min(anchor.moved + step.length);
    }

    /// Forgets how long the way from the anchor is in the norm of the Hessian.
    pub(crate) fn lose_local_way(&mut self) {
        if let Some(anchor) = &mut self.anchor {
            anchor.local_square = f64::INFINITY;
        }
    }

    /// Forgets the direction of the known gradient and keeps its norm.
    pub(crate) fn forget_direction(&mut self) {
        self.unknown += norm(&self.leftover);
        self.unknown_local += self.leftover_local;
        self.leftover = Mat::zeros(self.leftover.nrows(), self.leftover.ncols());
        self.leftover_local = 0.0;
    }

    /// At least ‖g‖.
    pub(crate) fn gradient(&self) -> f64 {
        norm(&self.leftover) + self.unknown
    }

    /// At least √(gᵀH⁻¹g), by way of the plain norm where that is all there is.
    fn local(&self, inverse_norm: f64) -> f64 {
        let root = inverse_norm.sqrt();
        let known = self.leftover_local.min(norm(&self.leftover) * root);
        known + self.unknown_local.min(self.unknown * root)
    }

    /// Fills in the local norms after a measurement, and hands over the solve that this took.
    pub(crate) fn localise(
        &mut self,
        standing: &StandingHessian,
        par: faer::Par,
    ) -> SolvedGradient {
        let column = flat(&self.leftover);
        let mut solved = column.clone();
        standing.base.solve(&mut solved, par);
        let CurvatureScales {
            inverse_norm, blur, ..
        } = standing.base.scales;
        let square =
            dot(column.col_as_slice(0), solved.col_as_slice(0)).max(0.0) * (1.0 + 2.0 * blur);
        self.leftover_local = square.sqrt();
        self.unknown_local = self.unknown * inverse_norm.sqrt();
        SolvedGradient {
            gradient: column,
            solved,
        }
    }

    /// At least the fraction by which the Hessian is wrong: what rounding its inverse does, and
    /// what requests did, from whichever of the two accounts of that says less.
    pub(crate) fn wrong(&self, scales: &CurvatureScales) -> f64 {
        (self.drift * scales.inverse_norm).min(self.warp) + scales.blur
    }

    /// Takes note of a step: what of the gradient is known afterwards, and what the step adds to
    /// the rest. `joined` is Σ w‖x‖² over the rows that joined and wait, `growth` what those that
    /// left can have made of ‖H⁻¹‖.
    pub(crate) fn advance(
        &mut self,
        step: &StepSize,
        scales: &CurvatureScales,
        joined: f64,
        growth: f64,
    ) {
        let error = step.lipschitz * (self.swung + 0.5 * step.swing) * step.spread;
        let drifted = self.drift * step.length;
        let blurred = scales.blur * step.local;
        // ‖(Ĥ − H)Δ‖ is at most √‖H‖ times the same in the norm of H⁻¹.
        self.unknown += (scales.gram_norm + joined).sqrt() * error
            + drifted
            + scales.size.sqrt() * blurred
            + step.rounding;
        let pull = scales.pull + joined * scales.inverse_norm;
        let bent = (pull.sqrt() * error).min(self.relative_error(step, scales, joined, growth));
        let root = scales.inverse_norm.sqrt();
        let warped = (drifted * root).min(self.warp * step.local);
        self.unknown_local += bent + warped + blurred + step.rounding * root;
        self.moved += step.length;
        self.swung += step.swing;
        self.source = BoundSource::Carried;
        self.profile = f64::INFINITY;
    }

    /// At least √(vᵀH⁻¹v) of v = (H̄ − Ĥ)Δ, by self-concordance: along the step every J is within a
    /// factor e^{M(m + st)} of the kept one, so that v is at most (e^{Mm}(e^{Mt} − 1)/(Mt) −
    /// 1)·√(ΔᵀĤΔ) in the norm of Ĥ⁻¹. What later requests left wrong in Ĥ changes either norm by a
    /// factor of 1 − 2·wrong at most.
    fn relative_error(
        &self,
        step: &StepSize,
        scales: &CurvatureScales,
        joined: f64,
        growth: f64,
    ) -> f64 {
        let slack = 1.0 - 2.0 * self.wrong(scales) * growth;
        if slack.is_nan() || slack <= 0.0 {
            return f64::INFINITY;
        }
        let turned = step.concordance * step.swing;
        let above = if turned < 1e-4 {
            0.5 * turned + turned * turned
        } else {
            turned.exp_m1() / turned - 1.0
        };
        let old = (step.concordance * self.swung).exp_m1();
        let bent = old + above + old * above;
        let drifted = (self.drift * step.length.powi(2)).min(self.warp * step.local.powi(2));
        let blurred = scales.blur * step.local.powi(2);
        let along = step.along + drifted + blurred + step.rounding * step.length;
        bent * (along * (1.0 + joined * scales.inverse_norm) / slack).sqrt()
    }
}

/// What matters of a step for the bound.
pub(crate) struct StepSize {
    pub(crate) lipschitz: f64,
    pub(crate) concordance: f64,
    /// ΔᵀHΔ, over the rows that are left.
    pub(crate) along: f64,
    /// ‖Δ‖.
    pub(crate) length: f64,
    /// At least how far the step moves the score of any row.
    pub(crate) swing: f64,
    /// At least √(ΔᵀHΔ) with the Hessian that rows which left and wait still belong to.
    pub(crate) local: f64,
    /// At least ‖√w XΔ‖.
    pub(crate) spread: f64,
    pub(crate) rounding: f64,
}

/// r ↦ −ln(1 − r)/r: the factor that a bound pays because the Hessian is known at one end of the
/// way only.
pub(crate) fn price(r: f64) -> f64 {
    if r < 1e-8 {
        1.0 + 0.5 * r + r * r
    } else {
        -(-r).ln_1p() / r
    }
}

impl LogisticModel {
    /// The gradient norm that evaluating it can hide by rounding: at parameters of norm 0, and for
    /// every unit of their norm.
    pub(crate) fn rounding(&self, facts: &RowFacts) -> [f64; 2] {
        let width = self.basis.width() as f64;
        let scores = width.sqrt() * self.settings.link.curvature() * facts.trace;
        let penalty = 4.0 * self.extra.penalty.iter().copied().fold(0.0, f64::max);
        // Long sums are made of sums over stretches of rows, each of which can round.
        let length = 4.0 + (facts.rows as f64 / STRETCH as f64).sqrt();
        [
            UNIT * length * (facts.weight * facts.trace).sqrt(),
            UNIT * (scores + penalty),
        ]
    }

    /// The gradient norm that rounding can hide at these parameters.
    pub(crate) fn hidden(&self, facts: &RowFacts, theta: &Mat<f64>) -> f64 {
        let [always, more] = self.rounding(facts);
        always + more * norm(theta)
    }

    /// The distance bound at the parameters, in the caller's coordinates.
    pub(crate) fn current_bound(&self) -> EnergyBound {
        self.bound_by(&self.ledger)
    }

    /// The relative bound if the gradient were 0 but for what its evaluation can hide: no step
    /// leads below that.
    pub(crate) fn least_bound(&self) -> f64 {
        let zero = Mat::zeros(self.theta.nrows(), self.theta.ncols());
        let mut ledger = BoundLedger::measured(zero, self.hidden(&self.facts, &self.theta));
        if let Some(standing) = &self.standing {
            ledger.leftover_local = 0.0;
            ledger.unknown_local = ledger.unknown * standing.base.scales.inverse_norm.sqrt();
        }
        self.bound_by(&ledger).relative
    }

    fn bound_by(&self, ledger: &BoundLedger) -> EnergyBound {
        let concordance = self.settings.link.concordance();
        let gradient = ledger.gradient();
        let (inverse_norm, local, reach) = match &self.standing {
            None => (self.facts.inverse_norm, f64::INFINITY, f64::INFINITY),
            Some(standing) => {
                let CurvatureScales {
                    inverse_norm: base,
                    reach,
                    ..
                } = standing.base.scales;
                let growth = standing.growth();
                let newcomers = standing
                    .pending
                    .as_ref()
                    .map_or(0.0, |p| p.waiting().joining_reach());
                let reach = reach.max(newcomers * (self.outputs() as f64 * base).sqrt());
                let slack = 1.0 - ledger.wrong(&standing.base.scales) * growth;
                let factor = growth * (concordance * ledger.swung).exp() / slack;
                if slack > 0.0 && factor.is_finite() {
                    (
                        base * factor,
                        ledger.local(base) * factor.sqrt(),
                        reach * factor.sqrt(),
                    )
                } else {
                    (f64::INFINITY, f64::INFINITY, f64::INFINITY)
                }
            }
        };
        let near = (gradient * inverse_norm).min(local * inverse_norm.sqrt());
        let reached = concordance * (self.facts.reach * near).min(reach * local);
        let mut inside = if reached < 1.0 {
            near * price(reached)
        } else {
            f64::INFINITY
        };
        let least = self.extra.least();
        let mut convexity = 1.0 / inverse_norm;
        if least > 0.0 && (inside.is_nan() || inside > gradient / least) {
            (inside, convexity) = (gradient / least, least);
        }
        let size = norm(&self.theta);
        let inside = if inside.is_nan() {
            f64::INFINITY
        } else {
            inside + 2.0 * UNIT * size
        };
        let mut absolute = inside * self.basis.stretch;
        if ledger.profile < absolute {
            absolute = ledger.profile;
            convexity = self.settings.logistic.lambda;
        }
        absolute += ledger.remnant;
        EnergyBound {
            gradient: Some(gradient),
            convexity,
            absolute,
            relative: relative_to(absolute, self.basis.caller_norm(&self.theta)),
            source: ledger.source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_starts_at_one_and_grows() {
        assert_eq!(price(0.0), 1.0);
        assert!((price(1e-8) - price(0.99e-8)).abs() < 1e-9);
        assert!(price(0.5) > 1.38 && price(0.5) < 1.39);
    }
}
