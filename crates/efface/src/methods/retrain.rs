//! Retraining from scratch on the retained rows: O(nd²), the definition of correct, what every other method is
//! compared with. It reads every row and keeps nothing of the old curvature.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::RidgeModel;
use crate::models::ridge::Body;
use crate::rows::{RowId, RowStore};
use crate::traits::{Fit, Forget};

/// Fit again without the rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retrain;

impl Forget<RidgeModel> for Retrain {
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let out: std::collections::HashSet<RowId> = gone.iter().copied().collect();
        let retained = rows.all()?.filter(|id| !out.contains(&id));
        let mut next = model.settings().fit(&retained)?;
        if let (Body::Dense(old), Body::Dense(new)) = (&model.body, &mut next.body) {
            new.ledger.refactorisations = old.ledger.refactorisations;
        }
        let mut evidence = next.evidence("retrain", Claim::Exact);
        evidence.forgotten = gone.len();
        evidence.rows_read = retained.len();
        evidence.refactored = true;
        evidence.precomputed.clear();
        Ok(Outcome { model: next, evidence })
    }
}
