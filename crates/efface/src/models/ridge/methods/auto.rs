//! The choice of a method on a ridge model; `methods/auto.rs` says what the method does.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Auto;
use crate::methods::{Exact, Summation};
use crate::models::{Form, RidgeModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "auto";

impl Forget<RidgeModel> for Auto {
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
        let k = gone.len();
        let d = model.features();
        let (method, reason): (&dyn Forget<RidgeModel>, String) = match model.form() {
            Form::Iterative => (
                &Exact,
                format!(
                    "no d×d matrix is kept at {d} features: conjugate gradients from the current parameters"
                ),
            ),
            // The closed form inverts a k×k matrix; beyond the width, solving the d×d one again is
            // cheaper.
            _ if k > d => (
                &Summation,
                format!("{k} rows are more than the {d} features: subtract and solve again"),
            ),
            _ => (
                &Exact,
                "squared loss has a closed form in what the model keeps".to_string(),
            ),
        };
        let mut outcome = method.forget(model, rows, gone)?;
        outcome.evidence.reason = Some(reason);
        Ok(outcome)
    }
}
