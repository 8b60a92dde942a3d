//! The projection residual update on a logistic or softmax model; `methods/projection_residual.rs`
//! says what the method does.

use faer::{Accum, Mat, Par};

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::linalg::multiply;
use crate::methods::ProjectionResidual;
use crate::models::LogisticModel;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

use crate::models::projection;

const NAME: &str = "projection_residual";

impl Forget<LogisticModel> for ProjectionResidual {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        self.check()?;
        if self.rounds > 1 && !gone.is_empty() {
            return self.classifier_rounds(model, rows, gone);
        }
        let mut dropped = 0;
        let mut outcome = model.open(NAME, rows, gone)?.step(
            |work| {
                let (touched, raw) = work.raw_rows()?;
                work.projected(|coefficients, intercept| {
                    let outputs = coefficients.ncols();
                    let first = model.settings().logistic.intercept as usize;
                    let step = Mat::from_fn(touched.len(), outputs, |at, c| {
                        match touched[at].checked_sub(first) {
                            Some(j) => coefficients[(j, c)],
                            None => intercept[c],
                        }
                    });
                    let mut along = Mat::zeros(raw.ncols(), outputs);
                    let transposed = raw.as_ref().transpose();
                    multiply(
                        along.as_mut(),
                        Accum::Replace,
                        transposed,
                        step.as_ref(),
                        self.step,
                        Par::Seq,
                    );
                    let (coordinates, lost) = projection::span_coordinates(&raw, &along, Par::Seq)?;
                    dropped = lost;
                    let mut projected = Mat::zeros(touched.len(), outputs);
                    let out = projected.as_mut();
                    multiply(
                        out,
                        Accum::Replace,
                        raw.as_ref(),
                        coordinates.as_ref(),
                        1.0,
                        Par::Seq,
                    );
                    let mut kept = Mat::zeros(coefficients.nrows(), outputs);
                    let mut constants = vec![0.0; outputs];
                    for (at, &j) in touched.iter().enumerate() {
                        for c in 0..outputs {
                            match j.checked_sub(first) {
                                Some(j) => kept[(j, c)] = projected[(at, c)],
                                None => constants[c] = projected[(at, c)],
                            }
                        }
                    }
                    Ok((kept, constants))
                })?;
                work.secure_bound(f64::MAX)
            },
            Claim::Approximate,
        )?;
        outcome.evidence.directions_dropped = dropped;
        Ok(outcome)
    }
}
