//! Picks the method and says why. For squared loss there is always an exact one, so the choice is only about cost.

use super::{Exact, Summation};
use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::{Form, RidgeModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// The cheapest exact method for the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Auto;

impl Forget<RidgeModel> for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        let (k, d) = (gone.len(), model.features());
        let (method, reason): (&dyn Forget<RidgeModel>, String) = match model.form() {
            Form::Iterative => (
                &Exact,
                format!(
                    "no d×d matrix is kept at {d} features: conjugate gradients from the current parameters"
                ),
            ),
            // The closed form inverts a k×k matrix; beyond the width, solving the d×d one again is cheaper.
            _ if k > d => {
                (&Summation, format!("{k} rows are more than the {d} features: subtract and solve again"))
            }
            _ => (&Exact, "squared loss has a closed form in what the model keeps".to_string()),
        };
        let mut outcome = method.forget(model, rows, gone)?;
        outcome.evidence.reason = Some(reason);
        Ok(outcome)
    }
}
