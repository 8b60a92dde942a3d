//! Rounds of the projection residual update on a ridge model; `methods/projection_residual.rs` says
//! what the method does.

use crate::error::Result;
use crate::evidence::Outcome;
use crate::methods::ProjectionResidual;
use crate::models::RidgeModel;
use crate::models::projection;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl ProjectionResidual {
    /// All rounds at once: for squared loss they are one step.
    pub(super) fn ridge_rounds(
        &self,
        model: &RidgeModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<RidgeModel>> {
        let whole = Self::default().forget(model, rows, gone)?;
        let full = projection::distance(&whole.model.parameters(), &model.parameters());
        // Round t moves by α(1 − α)^(t−1) of the whole.
        let mut rounds = 0;
        let mut left = 1.0;
        while rounds < self.rounds {
            let moved = self.step * left * full;
            left *= 1.0 - self.step;
            rounds += 1;
            if moved <= self.tolerance {
                break;
            }
        }
        let mut outcome = if left == 0.0 {
            whole
        } else {
            Self {
                step: 1.0 - left,
                ..Self::default()
            }
            .forget(model, rows, gone)?
        };
        outcome.evidence.iterations = rounds;
        Ok(outcome)
    }
}
