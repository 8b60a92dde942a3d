//! Newton steps that improve parameters until their bound is good enough.

use faer::Mat;

use super::Basis;
use super::bound::{DistanceLedger, GradientSurvey};
use super::dense::clear;
use crate::error::Result;

/// A refinement that does not at least halve the bound is the last one.
pub(super) const WORTH_IT: f64 = 0.5;

/// When to stop refining.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefinementPlan {
    /// The relative bound that is good enough.
    pub(crate) goal: f64,
    /// Steps to take even if it was good enough before them.
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// Newton steps θ − A⁻¹g as long as they pay. Leaves the best parameters and what is known of them;
/// returns the steps that led there. `survey` finds the gradient.
pub(crate) fn refine(
    ledger: &mut DistanceLedger,
    theta: &mut Mat<f64>,
    basis: &Basis,
    unsupported: &[usize],
    plan: RefinementPlan,
    survey: &mut dyn FnMut(&mut DistanceLedger, &Mat<f64>) -> Result<GradientSurvey>,
    solve: &dyn Fn(&Mat<f64>) -> Mat<f64>,
) -> Result<usize> {
    let mut candidate = theta.clone();
    let mut best = f64::INFINITY;
    let mut steps = 0;
    for round in 0..=plan.most {
        let mut noted = ledger.clone();
        let found = survey(&mut noted, &candidate)?;
        let solved = solve(&found.gradient);
        noted.note(&found, &solved, basis);
        let reached = noted.relative(basis, &candidate);
        let pays = reached <= WORTH_IT * best;
        if round == 0 || reached < best {
            *ledger = noted;
            theta.copy_from(&candidate);
            steps = round;
        }
        let enough = round >= plan.least && (reached <= plan.goal || !pays);
        if enough || !solved.norm_max().is_finite() {
            break;
        }
        best = best.min(reached);
        candidate = &candidate - solved;
        clear(&mut candidate, unsupported);
    }
    Ok(steps)
}
