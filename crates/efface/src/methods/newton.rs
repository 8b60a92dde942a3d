//! One Newton step on the retained loss: θ − [∇²L^{\D}]⁻¹ ∇L^{\D}(θ). For squared loss one step is the minimum, so it
//! is exact. The Hessian is the old factor downdated by the removed rows, O(kd²); the gradient needs no retained
//! row, because it vanished before: ∇L^{\D}(θ) = −Σ_D ∇ℓ_i(θ). Where no factor is kept, the inverse form factors the
//! retained sums, O(d³), and the iterative form takes the step by conjugate gradients, like `exact`.

use faer::Mat;

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::RidgeModel;
use crate::models::ridge::change::{add_product, apply_signs};
use crate::models::ridge::{Body, MEASURED, clear};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// One Newton step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Newton;

impl Forget<RidgeModel> for Newton {
    fn name(&self) -> &'static str {
        "newton"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(&self, model: &RidgeModel, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        let (Body::Dense(body), false) = (&model.body, gone.is_empty()) else {
            return model.exactly(self.name(), rows, gone, None);
        };
        let (change, start, par) = body.prepare(model, self.name(), rows, gone)?;
        let hessian = body.factor_after(model, &change.rows, par)?;
        // −∇L^{\D}(θ) = X̂ᵀS r̂, from the removed rows alone.
        let mut step = Mat::zeros(start.nrows(), start.ncols());
        let mut signed = change.residual.clone();
        apply_signs(&mut signed, &change.rows.signs);
        add_product(&mut step, &change.rows.xt, &signed, 1.0, par);
        hessian.solve(step.as_mut(), par);
        let mut theta = &*start + &step;
        let unsupported = body.unsupported(Some(&change.rows));
        clear(&mut theta, &unsupported);
        // What rounding left, once more through the same factor.
        let left = body.gradient(&theta, Some(&change.rows), par);
        let mut correction = left.clone();
        hessian.solve(correction.as_mut(), par);
        let mut refined = &theta - &correction;
        clear(&mut refined, &unsupported);
        let after = body.gradient(&refined, Some(&change.rows), par);
        let better = after.norm_l2() < left.norm_l2();
        let reached = if better { after.norm_l2() } else { left.norm_l2() };
        if better {
            theta = refined;
        }
        let bound = body.relative(reached, body.inverse_norm_after(model, &change), &theta);
        if bound > model.settings.tolerance && body.spoilt(crate::linalg::norm(&theta), Some(&change.rows)) {
            // The sums cannot give what they have lost; the closed form knows how to repair them.
            return model.exactly(self.name(), rows, gone, None);
        }
        let (mut next, mut step) = body.approximately(model, change, &start, theta, par);
        if let Body::Dense(body) = &mut next.body {
            body.ledger.gradient = reached;
            body.ledger.source = MEASURED;
            body.ledger.distance = 0.0;
            body.ledger.at_optimum = true;
        }
        step.refinements = better as usize;
        let mut evidence = next.evidence(self.name(), self.claim());
        step.record(&mut evidence, gone.len());
        evidence.forgotten = gone.len();
        Ok(Outcome { model: next, evidence })
    }
}
