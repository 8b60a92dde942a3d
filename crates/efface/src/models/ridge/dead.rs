//! Columns that no retained row has, after an approximate method. `exact` and its like set their
//! weights to 0 by themselves; the influence function and projected steps leave what their formulas
//! give, and clearing that is a step of its own.

use faer::Mat;

use super::{RidgeBody, RidgeModel, clear};
use crate::error::{Error, Result};
use crate::evidence::{ClearedColumns, Outcome};

impl Outcome<RidgeModel> {
    /// Sets the weights of columns that no retained row has to 0, where retraining would put them,
    /// and says in the evidence how many were not 0 and how large they were.
    pub fn clear_dead_columns(&mut self) -> Result<()> {
        let model = &mut self.model;
        let RidgeBody::Dense(body) = &model.body else {
            return Err(Error::Unsupported {
                method: "clear_dead_columns",
                reason:
                    "the iterative form does not count the rows behind a column; use exact, or leave it out"
                        .into(),
            });
        };
        let columns = body.unsupported(None);
        let Some(found) = weights_in(model, &model.theta, &columns) else {
            return Ok(());
        };
        let RidgeBody::Dense(body) = &mut model.body else {
            return Ok(());
        };
        clear(&mut model.theta, &columns);
        // The closed form has 0 there too, so that clearing leads nearer to it; where columns were
        // shifted, an intercept of the caller's moves as well.
        if !model.basis.is_unshifted() {
            body.ledger.distance += found.norm;
        }
        self.evidence.cleared = Some(found);
        self.model.update(&mut self.evidence);
        Ok(())
    }
}

/// The columns among these whose weights are not all 0, and the norm of those weights; None where
/// there are none.
pub(super) fn weights_in(
    model: &RidgeModel,
    theta: &Mat<f64>,
    columns: &[usize],
) -> Option<ClearedColumns> {
    let mut weights = Mat::zeros(theta.nrows(), theta.ncols());
    let mut held = 0;
    for &j in columns {
        weights.row_mut(j).copy_from(theta.row(j));
        held += (0..weights.ncols()).any(|c| weights[(j, c)] != 0.0) as usize;
    }
    let norm = model.basis.caller_norm(&weights);
    (held > 0).then_some(ClearedColumns {
        columns: held,
        norm,
    })
}
