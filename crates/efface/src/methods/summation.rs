//! Statistical query unlearning: the model is a function of the sums A and b, so subtract the removed rows' share and
//! solve again. Exact for squared loss, O(kd² + d³/3) whatever n is, and the natural choice once k passes the width. The
//! iterative form keeps no sums and is refused.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::models::RidgeModel;
use crate::models::ridge::{Body, ChangeRequest, Step};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// Subtract from the sums, solve again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summation;

impl Forget<RidgeModel> for Summation {
    fn name(&self) -> &'static str {
        "summation"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let Body::Dense(body) = &model.body else {
            return Err(Error::Unsupported {
                method: "summation",
                reason: "a model in the iterative form keeps no sums; use exact".into(),
            });
        };
        if gone.is_empty() {
            let evidence = model.evidence("summation", Claim::Exact);
            return Ok(Outcome { model: model.clone(), evidence });
        }
        let (next, step) =
            body.summed(model, ChangeRequest { store: rows, gone, new: None }, Step::default())?;
        let mut evidence = next.evidence("summation", Claim::Exact);
        step.record(&mut evidence, gone.len());
        evidence.forgotten = gone.len();
        Ok(Outcome { model: next, evidence })
    }
}
