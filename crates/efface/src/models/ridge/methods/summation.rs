//! Subtracted sums on a ridge model; `methods/summation.rs` says what the method does.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::Summation;
use crate::models::RidgeModel;
use crate::models::ridge::{ChangeRequest, RidgeBody, Step};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl Forget<RidgeModel> for Summation {
    fn name(&self) -> &'static str {
        "summation"
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
        let RidgeBody::Dense(body) = &model.body else {
            return Err(Error::Unsupported {
                method: "summation",
                reason: "a model in the iterative form keeps no sums; use exact".into(),
            });
        };
        if gone.is_empty() {
            let evidence = model.evidence("summation", Claim::Exact);
            return Ok(Outcome {
                model: model.clone(),
                evidence,
            });
        }
        let (next, step) = body.summed(
            model,
            ChangeRequest {
                store: rows,
                gone,
                new: None,
            },
            Step::default(),
        )?;
        let mut evidence = next.evidence("summation", Claim::Exact);
        step.record(&mut evidence, gone.len());
        evidence.forgotten = gone.len();
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}
