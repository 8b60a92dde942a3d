//! The influence function: one Newton step with the *full* Hessian, θ − A⁻¹X_DᵀW_D r_D. Approximate: the curvature still
//! contains the rows that are to go, so the step is too short, by a factor 1 − h for a single row of leverage h. As a
//! row's norm grows its leverage nears 1 and the method stops moving at all (Izzo et al. 2021, theorem 3).
//! Costs what finding Z_D costs in the model's form, plus O(kd).

use faer::Mat;

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::logistic::change::RequestWork;
use crate::models::ridge::Body;
use crate::models::ridge::change::apply_signs;
use crate::models::ridge::wide::RowOperator;
use crate::models::{LogisticModel, RidgeModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "influence";

/// One step with the full Hessian.
#[derive(Debug, Clone, Copy, Default)]
pub struct Influence;

impl Forget<RidgeModel> for Influence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        if gone.is_empty() {
            let evidence = model.evidence(NAME, Claim::Approximate);
            return Ok(Outcome { model: model.clone(), evidence });
        }
        let mut outcome = match &model.body {
            Body::Dense(body) => {
                let (change, start, par) = body.prepare(model, NAME, rows, gone)?;
                let residual = super::projection_residual::residual_in_use(model, &change, &start, par);
                let mut signed = residual;
                apply_signs(&mut signed, &change.rows.signs);
                let theta = change.moved(&model.theta, &signed, par);
                let (next, step) = body.approximately(model, change, &start, theta, par)?;
                let mut evidence = next.evidence(NAME, Claim::Approximate);
                step.record(&mut evidence, gone.len());
                Outcome { model: next, evidence }
            }
            Body::Wide(_) => {
                let all = RowOperator::new(model, rows, &[], None)?;
                let mut pull = Mat::zeros(model.theta.nrows(), model.outputs());
                rows.visit(gone, &mut |_, row| {
                    let mut written = vec![0.0; model.basis.width()];
                    model.basis.write(row.features, 1.0, &mut written);
                    let scores = model.score(row.features);
                    for (output, score) in scores.into_iter().enumerate() {
                        let residual = row.weight * (row.targets[output] - score);
                        crate::linalg::add_scaled(pull.col_as_slice_mut(output), residual, &written);
                    }
                })?;
                let (step, iterations) = all.solve_rows(&pull, &model.settings)?;
                let theta = &model.theta - &step;
                let retained = RowOperator::new(model, rows, gone, None)?;
                let body = retained.bound_at(&theta, model.settings.lambda)?;
                let next = model.with(theta, retained.count(), Body::Wide(body));
                let mut evidence = next.evidence(NAME, Claim::Approximate);
                evidence.rows_read = rows.len();
                evidence.iterations = iterations;
                Outcome { model: next, evidence }
            }
        };
        outcome.evidence.forgotten = gone.len();
        Ok(outcome)
    }
}

impl Forget<LogisticModel> for Influence {
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
        let step = |work: &mut RequestWork<'_>| {
            work.influence()?;
            work.secure_bound(f64::MAX)
        };
        model.open(NAME, rows, gone)?.step(step, Claim::Approximate)
    }
}
