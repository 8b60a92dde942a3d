//! Retraining on a ridge model; `methods/retrain.rs` says what the method does.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Retrain;
use crate::models::ridge::RidgeBody;
use crate::models::{RidgeModel, request};
use crate::rows::{RowId, RowStore};
use crate::traits::{Fit, Forget};

const NAME: &str = "retrain";

impl Forget<RidgeModel> for Retrain {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &RidgeModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let retained = rows.all()?.filter(request::stays(gone));
        let mut next = model.settings().fit(&retained)?;
        if let (RidgeBody::Dense(old), RidgeBody::Dense(new)) = (&model.body, &mut next.body) {
            new.ledger.refactorisations = old.ledger.refactorisations;
        }
        let evidence = request::from_scratch(
            next.evidence(NAME, Claim::Exact),
            gone.len(),
            retained.len(),
        );
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}
