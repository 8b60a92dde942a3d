//! The closed form on a ridge model; `methods/exact.rs` says what the method does.

use faer::Mat;

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::Exact;
use crate::models::RidgeModel;
use crate::models::ridge::{GatheredRows, RidgeBody};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl Forget<RidgeModel> for Exact {
    fn name(&self) -> &'static str {
        "exact"
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
        model.exactly(self.name(), rows, gone, None)
    }
}

/// What the model without these rows would predict for them: Y_D − (I − H_D)⁻¹ r_D, one line per
/// row, for free from what forgetting computes. Rows of weight 0 are predicted like any other.
pub fn leave_out_predictions(
    model: &RidgeModel,
    rows: &dyn RowStore,
    ids: &[RowId],
) -> Result<Mat<f64>> {
    model.check_request(rows, ids)?;
    let outputs = model.outputs();
    if let RidgeBody::Dense(body) = &model.body {
        let gathered = GatheredRows::read(&model.basis, outputs, rows, ids, None)?;
        let par = body.par_for(model, ids.len());
        if let Ok(change) = body.change(gathered, &body.optimum(model), par)
            && change.core.condition < 1e4
            && change.roots.iter().all(|root| *root > 0.0)
        {
            // The change's coefficients are −(I − H_D)⁻¹ r̂.
            let errors = change.coefficients();
            return Ok(Mat::from_fn(ids.len(), outputs, |k, output| {
                (change.rows.y[(k, output)] + errors[(k, output)]) / change.roots[k]
            }));
        }
    }
    // Digits are at stake, or there is no curvature: forget, and look.
    let without = Exact.forget(model, rows, ids)?.model;
    let mut predictions = Mat::zeros(ids.len(), outputs);
    rows.visit(ids, &mut |k, row| {
        for (output, score) in without.score(row.features).into_iter().enumerate() {
            predictions[(k, output)] = score;
        }
    })?;
    if predictions.as_ref().norm_max().is_finite() {
        return Ok(predictions);
    }
    Err(Error::Damaged("a prediction is not finite".into()))
}
