//! Retraining from scratch on the retained rows: O(nd²), the definition of correct, what every other method is
//! compared with. It reads every row and keeps nothing of the old curvature.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::ridge::Body;
use crate::models::{LogisticModel, RidgeModel, request};
use crate::rows::{RowId, RowStore};
use crate::traits::{Fit, Forget};

const NAME: &str = "retrain";

/// Fit again without the rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retrain;

impl Forget<RidgeModel> for Retrain {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let retained = rows.all()?.filter(request::stays(gone));
        let mut next = model.settings().fit(&retained)?;
        if let (Body::Dense(old), Body::Dense(new)) = (&model.body, &mut next.body) {
            new.ledger.refactorisations = old.ledger.refactorisations;
        }
        let evidence = request::from_scratch(next.evidence(NAME, Claim::Exact), gone.len(), retained.len());
        Ok(Outcome { model: next, evidence })
    }
}

impl Forget<LogisticModel> for Retrain {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        model.check_request(rows, gone)?;
        let retained = rows.all()?.filter(request::stays(gone));
        let next = model.settings().fit(&retained, None)?;
        let evidence = request::from_scratch(next.evidence(NAME, Claim::Exact), gone.len(), retained.len());
        Ok(Outcome { model: next, evidence })
    }
}
