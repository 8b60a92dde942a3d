//! Retraining on a logistic or softmax model; `methods/retrain.rs` says what the method does.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Retrain;
use crate::models::{LogisticModel, request};
use crate::rows::{ChangedRows, RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "retrain";

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
        let retained = ChangedRows::new(rows, gone, None);
        let next = model.settings().fit(&retained, None)?;
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
