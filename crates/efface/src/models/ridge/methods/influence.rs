//! The influence step on a ridge model; `methods/influence.rs` says what the method does.

use faer::Mat;

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Influence;
use crate::models::RidgeModel;
use crate::models::ridge::RidgeBody;
use crate::models::ridge::change::apply_signs;
use crate::models::ridge::wide::RowOperator;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "influence";

impl Forget<RidgeModel> for Influence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &RidgeModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        if gone.is_empty() {
            let evidence = model.evidence(NAME, Claim::Approximate);
            return Ok(Outcome {
                model: model.clone(),
                evidence,
            });
        }
        let mut outcome = match &model.body {
            RidgeBody::Dense(body) => {
                let (change, start, par) = body.prepare(model, NAME, rows, gone)?;
                let residual =
                    super::projection_residual::residual_in_use(model, &change, &start, par);
                let mut signed = residual;
                apply_signs(&mut signed, &change.rows.signs);
                let theta = change.moved(&model.theta, &signed, par);
                let (next, step) = body.approximately(model, change, &start, theta, par)?;
                let mut evidence = next.evidence(NAME, Claim::Approximate);
                step.record(&mut evidence, gone.len());
                Outcome {
                    model: next,
                    evidence,
                }
            }
            RidgeBody::Wide(_) => {
                let all = RowOperator::new(model, rows, &[], None)?;
                let mut pull = Mat::zeros(model.theta.nrows(), model.outputs());
                rows.visit(gone, &mut |_, row| {
                    let mut written = vec![0.0; model.basis.width()];
                    model.basis.write(row.features, 1.0, &mut written);
                    let scores = model.score(row.features);
                    for (output, score) in scores.into_iter().enumerate() {
                        let residual = row.weight * (row.targets[output] - score);
                        crate::linalg::add_scaled(
                            pull.col_as_slice_mut(output),
                            residual,
                            &written,
                        );
                    }
                })?;
                let (step, iterations) = all.solve_rows(&pull, &model.settings)?;
                let theta = &model.theta - &step;
                let retained = RowOperator::new(model, rows, gone, None)?;
                let body = retained.bound_at(&theta, model.settings.lambda)?;
                let next = model.with(theta, retained.count(), RidgeBody::Wide(body));
                let mut evidence = next.evidence(NAME, Claim::Approximate);
                evidence.rows_read = rows.len();
                evidence.iterations = iterations;
                Outcome {
                    model: next,
                    evidence,
                }
            }
        };
        outcome.evidence.forgotten = gone.len();
        Ok(outcome)
    }
}
