//! Gradient descent, replayed on a logistic or softmax model; `methods/delta_grad.rs` says what the
//! method does.

use std::sync::Arc;

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::DeltaGrad;
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::models::logistic::{DESCENT_RUN, DescentPath, FollowSettings};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "delta_grad";

/// The run ends where the gradient is so small a share of the first one.
const GOAL: f64 = 1e-7;

impl DeltaGrad {
    /// The model with a run of gradient descent over its rows in memory, so that the next request
    /// need not make one.
    pub fn remember(&self, model: &LogisticModel, rows: &dyn RowStore) -> Result<LogisticModel> {
        self.check()?;
        let mut next = model.clone();
        next.path = Some(Arc::new(self.run(model, rows)?));
        Ok(next)
    }

    fn run(&self, model: &LogisticModel, rows: &dyn RowStore) -> Result<DescentPath> {
        model.over_all_rows(rows, |sample| {
            DescentPath::run(model, sample, self.iterations, GOAL)
        })
    }
}

impl Forget<LogisticModel> for DeltaGrad {
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
        let settings = FollowSettings {
            burn_in: self.burn_in,
            period: self.period,
            memory: self.memory,
        };
        // A run over other rows is of no use.
        let known = model
            .path
            .clone()
            .filter(|path| path.row_set == model.row_set);
        let mut reason = None;
        let mut outcome = model.open(NAME, rows, gone)?.step(
            |work: &mut RequestWork<'_>| {
                let path = match &known {
                    Some(path) => path.clone(),
                    None => {
                        let path = self.run(model, rows)?;
                        work.count_passes(path.len(), model.rows());
                        Arc::new(path)
                    }
                };
                let exact = work.follow(&path, settings)?;
                reason = Some(format!(
                    "{} steps of gradient descent, {exact} of them over all retained rows",
                    path.len()
                ));
                work.secure_bound(f64::MAX)
            },
            Claim::Approximate,
        )?;
        if known.is_none() {
            // A run that this request made itself was not made ahead of time.
            outcome
                .evidence
                .precomputed
                .retain(|part| part.what != DESCENT_RUN);
        }
        outcome.evidence.reason = reason;
        Ok(outcome)
    }
}
