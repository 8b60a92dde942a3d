//! Folding the waiting changes into the sums and the solver, so that nothing of a forgotten row is
//! left in either.

use std::collections::HashMap;
use std::sync::Arc;

use faer::Mat;

use super::bound::{CurvatureQuality, GradientAnchor, MOST_GROWTH, scaled_error};
use super::build::RidgeFrame;
use super::curvature::{CurvatureSolver, MovedSolutions};
use super::probes::ErrorProbes;
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
        let fresh = self
            .pending
            .iter()
            .any(|change| change.core.condition > REFACTOR_ABOVE);
        let moved = self.moved();
        let tight = tight_joint_growth(self.pending.iter().map(Arc::as_ref));
        self.ledger.waiting_growth = self.ledger.waiting_growth.min(tight);
        self.ledger.limit_growth();
        let charge_before = self.sums.charge;
        let mut anchor = (*self.ledger.anchor).clone();
        let updated = if fresh {
            None
        } else {
            self.solver.updated(&all)
        };
        let (emptied, refactored) = match updated {
            // Nothing can fail any more, so that the sums change where they are.
            Some(updated) => {
                let sums = Arc::make_mut(&mut self.sums);
                let emptied = sums.apply(&all, &frame.penalty.values, par(frame.settings.threads));
                self.solver = Arc::new(CurvatureSolver::Factor(updated));
                (emptied, false)
            }
            None => {
                let mut sums = (*self.sums).clone();
                let emptied = sums.apply(&all, &frame.penalty.values, par(frame.settings.threads));
                // The solver changes last of what can fail, and only when nothing does.
                let refactored =
                    CurvatureSolver::follow(&mut self.solver, &sums, &all, &moved, fresh, frame)?;
                self.sums = Arc::new(sums);
                (emptied, refactored)
            }
        };
        anchor.take_rows(&all, &emptied, &frame.penalty);
        CurvatureSolver::set_apart(&mut self.solver, &emptied, &self.sums);
        let charged = self.sums.charge - charge_before;
        self.pending.clear();
        let waiting_growth = self.ledger.waiting_growth;
        let growth = waiting_growth.sqrt();
        self.ledger.refactorisations += refactored as usize;
        self.ledger.anchor = Arc::new(GradientAnchor {
            error: scaled_error(anchor.error, growth),
            ..anchor
        });
        self.ledger.energy *= growth;
        self.ledger.waiting_growth = 1.0;
        self.ledger.joined_growth = 1.0;
        self.follow_quality(frame, charged, fresh, waiting_growth);
        self.ledger.anchor = self.anchor_near(theta, par(frame.settings.threads));
        Ok(Settled {
            rows: all.signs.len(),
            refactored,
        })
    }

    /// Brings what is known of the curvature to the settled sums, which are charged with so much
    /// more rounding than before, and whose inverse has grown by so much.
    fn follow_quality(&mut self, frame: &RidgeFrame, charged: f64, fresh: bool, grown: f64) {
        let par = par(frame.settings.threads);
        let before = self.ledger.quality;
        let width = frame.basis.width() as f64;
        let growth = before.growth;
        let mut quality = CurvatureQuality {
            caller_norm: before.caller_norm * growth,
            spread_norm: before.spread_norm * growth,
            sums_error: before.sums_error * growth,
            entry_error: before.entry_error + charged * width,
            growth: 1.0,
            carried_growth: before.carried_growth * growth,
            measured_after: 0,
            solves_measured_after: 0,
            ..before
        };
        // The carried norms only grow; take new ones before they spoil the bound.
        if fresh || quality.carried_growth > MOST_GROWTH {
            let (caller, spread) =
                self.curvature_norms(&frame.basis, frame.settings.lambda, None, par);
            quality.caller_norm = caller;
            quality.spread_norm = spread;
            quality.carried_growth = 1.0;
        }
        // What is carried grows with every request; the count of terms does not forget, but it does
        // not grow either.
        quality.limit_by_count(&self.sums);
        let inner_products = 4.0 * width * UNIT * (width * quality.spread_norm).sqrt();
        quality.solver_error = match self.solver.factor() {
            Some(factor) => ErrorProbes::few(factor, par).solver_error(self, factor, par),
            // No factor is kept beside an inverse: an update of it rounds like a product with it.
            None => {
                before.solver_error * growth + inner_products * (width * quality.spread_norm).sqrt()
            }
        };
        if self.form() == Form::Rows {
            // What the kept vectors miss weighs as much more as A⁻¹ has grown.
            quality.kept_error = (before.kept_error + quality.error() + inner_products) * grown;
        }
        self.ledger.quality = quality;
    }

    fn moved(&self) -> MovedSolutions {
        let mut last: HashMap<RowId, (usize, f64, f64)> = HashMap::new();
        let mut order = Vec::new();
        let mut left = Vec::new();
        let mut place = 0;
        for change in &self.pending {
            for ((&id, &root), &sign) in
                change.ids.iter().zip(&change.roots).zip(&change.rows.signs)
            {
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
            .filter_map(|id| {
                last.get(&id)
                    .map(|&(place, sign, root)| (id, place, sign, root))
            })
            .filter(|&(_, _, sign, root)| sign > 0.0 && root > 0.0)
            .map(|(id, place, _, root)| (id, place, root))
            .collect();
        MovedSolutions { left, arrived }
    }
}
