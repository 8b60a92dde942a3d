//! Folding the waiting changes into the sums and the solver, so that nothing of a forgotten row is left in either.

use std::collections::HashMap;
use std::sync::Arc;

use super::curvature::Moved;
use super::sums::SignedRows;
use super::{DenseBody, Penalty, Ridge};
use crate::error::Result;
use crate::linalg::par;
use crate::rows::RowId;
use crate::traits::Settled;

/// Above this condition, an updated factor is not worth keeping: the sums are factored anew.
const REFACTOR_ABOVE: f64 = 1e6;

impl DenseBody {
    /// Folds the waiting changes into sums and solver. On failure nothing changes.
    pub(crate) fn settle(&mut self, penalty: &Penalty, settings: &Ridge) -> Result<Settled> {
        let Some(all) = SignedRows::stack(self.pending.iter().map(|change| &change.rows)) else {
            return Ok(Settled::default());
        };
        let par = par(settings.threads);
        let mut sums = (*self.sums).clone();
        sums.apply(&all, &penalty.values, par);
        let fresh = self.pending.iter().any(|change| change.core.condition > REFACTOR_ABOVE);
        let moved = self.moved();
        let refactored =
            Arc::make_mut(&mut self.solver).follow(&sums, &all, &moved, fresh, &penalty.values, par)?;
        self.sums = Arc::new(sums);
        self.pending.clear();
        self.ledger.refactorisations += refactored as usize;
        // The carried bound on 1/μ only grows; take a new one before it spoils the distance bound.
        if fresh || self.ledger.inverse_norm > 4.0 * self.ledger.measured_inverse_norm {
            self.measure_inverse_norm(penalty, par);
        }
        Ok(Settled { rows: all.signs.len(), refactored })
    }

    fn moved(&self) -> Moved {
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
        Moved { left, arrived }
    }
}
