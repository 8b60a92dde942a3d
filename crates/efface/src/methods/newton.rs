//! One Newton step on the retained loss: θ − [∇²L^{\D}]⁻¹ ∇L^{\D}(θ). For squared loss one step is the minimum, so it
//! is exact. The Hessian is the old factor downdated by the removed rows, O(kd²); the gradient needs no retained
//! row, because it vanished before: ∇L^{\D}(θ) = −Σ_D ∇ℓ_i(θ). Where no factor is kept, the inverse form factors the
//! retained sums, O(d³), and the iterative form takes the step by conjugate gradients, like `exact`.
//!
//! For logistic and softmax models a step is not the minimum: what it leaves of the gradient is bounded without reading a
//! retained row, or measured by a pass over them, and more steps with the same Hessian make it as small as
//! asked. The bound that needs no row is a worst case. Where it is larger than the way that the step went, it does not
//! even say that the step led nearer: then the retained rows are read, and where their gradient alone is not enough the
//! intercepts are profiled out or the Hessian is made anew where the model stands now. The evidence tells by `rows_read` and
//! by a bound that is `measured`.

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::models::logistic::change::RequestWork;
use crate::models::ridge::change::{add_product, apply_signs};
use crate::models::ridge::{Body, ChangeRequest, clear};
use crate::models::{LogisticModel, RidgeModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "newton";

/// Newton steps. A ridge model takes one, which is exact, whatever the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Newton {
    /// How many; each after the first reads the retained rows once, for the gradient.
    pub steps: usize,
    /// Whether to end with a pass over the retained rows in any case, so that the bound is measured and not carried.
    pub measure: bool,
}

impl Default for Newton {
    fn default() -> Self {
        Self { steps: 1, measure: false }
    }
}

impl Forget<RidgeModel> for Newton {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let (Body::Dense(body), false) = (&model.body, gone.is_empty()) else {
            return model.exactly(NAME, rows, gone, None);
        };
        // Where a leverage is 1 up to rounding there is no step to take; the closed form knows what to do instead.
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
        let request = ChangeRequest { store: rows, gone, new: None };
        let (next, step) = body.accept(model, change, theta, ledger, request, par)?;
        let mut evidence = next.evidence(NAME, Claim::Exact);
        step.record(&mut evidence, gone.len());
        evidence.forgotten = gone.len();
        Ok(Outcome { model: next, evidence })
    }
}

impl Forget<LogisticModel> for Newton {
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
        if self.steps == 0 {
            return Err(Error::Parameter { name: "steps", value: "0".into(), range: "at least 1" });
        }
        let steps = |work: &mut RequestWork<'_>| {
            for step in 0..self.steps {
                // The first gradient is known from the rows that leave; every other one has to be looked up.
                if step > 0 {
                    work.measure()?;
                }
                work.newton()?;
            }
            if self.measure {
                work.measure()?;
            }
            work.secure_bound(work.way_gone())
        };
        model.open(NAME, rows, gone)?.step(steps, Claim::Approximate)
    }
}
