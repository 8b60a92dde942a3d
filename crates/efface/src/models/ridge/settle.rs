//! Folding the waiting changes into the sums and the solver, so that nothing of a forgotten row is left in either.

use std::collections::HashMap;
use std::sync::Arc;

use faer::Mat;

use super::bound::{CurvatureQuality, GradientAnchor, MOST_GROWTH, scaled_error};
use super::build::{ErrorProbes, RidgeFrame};
use super::curvature::{CurvatureSolver, MovedSolutions};
use super::sums::SignedRows;
use super::waiting::tight_joint_growth;
use super::{DenseBody, Form};
use crate::error::Result;
use crate::linalg::{UNIT, par};
use crate::rows::RowId;
use crate::traits::Settled;

/// Above this condition, an updated factor is not worth keeping: the sums are factored anew.
const REFACTOR_ABOVE: f64 = 1e6;

impl DenseBody {
    /// Folds the waiting changes into sums and solver. On failure nothing changes.
    pub(crate) fn settle(&mut self, frame: &RidgeFrame, theta: &Mat<f64>) -> Result<Settled> {
        let Some(all) = SignedRows::stack(self.pending.iter().map(|change| &change.rows)) else {
            return Ok(Settled::default());
        };
        self.fold = None;
        let nothing = SignedRows::none(&all);
        let (sums, anchor) = self.settled(frame, &nothing);
        let fresh = self.pending.iter().any(|change| change.core.condition > REFACTOR_ABOVE);
        let moved = self.moved();
        let tight = tight_joint_growth(self.pending.iter().map(Arc::as_ref));
        self.ledger.waiting_growth = self.ledger.waiting_growth.min(tight);
        if self.ledger.quality.measured_after == 0 {
            self.ledger.quality.growth = self.ledger.waiting_growth;
        }
        // The solver changes last of what can fail, and only when nothing does.
        let refactored = CurvatureSolver::follow(&mut self.solver, &sums, &all, &moved, fresh, frame)?;
        let support = sums.support.iter().zip(&self.sums.support);
        let emptied: Vec<usize> = support
            .enumerate()
            .filter(|(_, (now, before))| **now == 0 && **before > 0)
            .map(|(j, _)| j)
            .collect();
        CurvatureSolver::set_apart(&mut self.solver, &emptied, &sums);
        let charged = sums.charge - self.sums.charge;
        self.sums = Arc::new(sums);
        self.pending.clear();
        let growth = self.ledger.waiting_growth.sqrt();
        self.ledger.refactorisations += refactored as usize;
        self.ledger.anchor = Arc::new(GradientAnchor { error: scaled_error(anchor.error, growth), ..anchor });
        self.ledger.energy *= growth;
        self.ledger.waiting_growth = 1.0;
        self.ledger.joined_growth = 1.0;
        self.follow_quality(frame, charged, fresh);
        self.ledger.anchor = self.anchor_near(theta);
        Ok(Settled { rows: all.signs.len(), refactored })
    }

    /// Brings what is known of the curvature to the settled sums, which are charged with so much more rounding than before.
    fn follow_quality(&mut self, frame: &RidgeFrame, charged: f64, fresh: bool) {
        let par = par(frame.settings.threads);
        let before = self.ledger.quality;
        let width = frame.basis.width() as f64;
        let growth = before.growth;
        let mut quality = CurvatureQuality {
            caller_norm: before.caller_norm * growth,
            spread_norm: before.spread_norm * growth,
            sums_error: before.sums_error * growth,
            growth: 1.0,
            carried_growth: before.carried_growth * growth,
            measured_after: 0,
            solves_measured_after: 0,
            ..before
        };
        // The carried norms only grow; take new ones before they spoil the bound.
        if fresh || quality.carried_growth > MOST_GROWTH {
            let (caller, spread) = self.curvature_norms(&frame.basis, frame.settings.lambda, None, par);
            quality.caller_norm = caller;
            quality.spread_norm = spread;
            quality.carried_growth = 1.0;
        }
        // What is carried grows with every request; the count of terms does not forget, but it does not grow either.
        let added = charged * width * quality.spread_norm;
        let by_count = self.sums.charge * width * quality.spread_norm;
        quality.sums_error = (quality.sums_error + added).min(by_count);
        let inner_products = 4.0 * width * UNIT * (width * quality.spread_norm).sqrt();
        quality.solver_error = match self.solver.factor() {
            Some(factor) => ErrorProbes::new(factor).solver_error(self, factor, par),
            // No factor is kept beside an inverse: an update of it rounds like a product with it.
            None => before.solver_error * growth + inner_products * (width * quality.spread_norm).sqrt(),
        };
        if self.form() == Form::Rows {
            quality.kept_error = before.kept_error + quality.error() + inner_products;
        }
        self.ledger.quality = quality;
    }

    fn moved(&self) -> MovedSolutions {
        let mut last: HashMap<RowId, (usize, f64, f64)> = HashMap::new();
        let mut order = Vec::new();
        let mut left = Vec::new();
        let mut place = 0;
        for change in &self.pending {
            for ((&id, &root), &sign) in change.ids.iter().zip(&change.roots).zip(&change.rows.signs) {
                if sign < 0.0 {
                    left.push(id);
                }
                if last.insert(id, (place, sign, root)).is_none() {
                    order.push(id);
                }
                place += 1;
            }
        }
        // A row of weight 0 has no scaled vector to keep; it is solved for when asked.
        let arrived = order
            .into_iter()
            .filter_map(|id| last.get(&id).map(|&(place, sign, root)| (id, place, sign, root)))
            .filter(|&(_, _, sign, root)| sign > 0.0 && root > 0.0)
            .map(|(id, place, _, root)| (id, place, root))
            .collect();
        MovedSolutions { left, arrived }
    }
}
