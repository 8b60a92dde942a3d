//! Newton steps on a ridge model; `methods/newton.rs` says what the method does.

use faer::Mat;

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Newton;
use crate::models::RidgeModel;
use crate::models::ridge::change::{add_product, apply_signs};
use crate::models::ridge::{ChangeRequest, RidgeBody, clear};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "newton";

impl Forget<RidgeModel> for Newton {
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
        let (RidgeBody::Dense(body), false) = (&model.body, gone.is_empty()) else {
            return model.exactly(NAME, rows, gone, None);
        };
        // Where a leverage is 1 up to rounding there is no step to take; the closed form knows what
        // to do instead.
        let Ok((change, start, par)) = body.prepare(model, NAME, rows, gone) else {
            return model.exactly(NAME, rows, gone, None);
        };
        let Ok(hessian) = body.factor_after(model, &change.rows, par) else {
            return model.exactly(NAME, rows, gone, None);
        };
        // −∇L^{\D}(θ) = X̂ᵀS r̂, from the removed rows alone.
        let mut step = Mat::zeros(start.nrows(), start.ncols());
        let mut signed = change.residual.clone();
        apply_signs(&mut signed, &change.rows.signs);
        add_product(&mut step, &change.rows.xt, &signed, 1.0, par);
        hessian.solve(step.as_mut(), par);
        let mut theta = &*start + &step;
        let unsupported = body.unsupported(Some(&change.rows));
        clear(&mut theta, &unsupported);
        let ledger = body.unknown_after(&change);
        let request = ChangeRequest {
            store: rows,
            gone,
            new: None,
        };
        let (next, step) = body.accept(model, change, theta, ledger, request, par)?;
        let mut evidence = next.evidence(NAME, Claim::Exact);
        step.record(&mut evidence, gone.len());
        evidence.forgotten = gone.len();
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}
