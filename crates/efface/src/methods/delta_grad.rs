//! DeltaGrad: gradient descent, replayed without the rows. A run of full-batch gradient descent from 0 is remembered with
//! the parameters and the gradient of every step. The replay takes the same steps over the retained rows, but computes their
//! gradient in the first steps and in every few later ones alone; in between it takes the remembered gradient, corrects it
//! for the parameters' having moved by an L-BFGS matrix of the differences seen so far, and subtracts the gradients
//! of the rows to forget, which are exact. After Wu, Dobriban and Davidson, "DeltaGrad: Rapid Retraining of Machine Learning
//! Models" (2020), algorithm 1, and its online form: the replay becomes the run that the next request starts from.
//!
//! Approximate: it is near gradient descent of as many steps without the rows, which is near the optimum as far as
//! gradient descent gets. The bound is measured at the end, and speaks of the optimum.
//!
//! Costs: the run, T passes over the rows when the method is first asked of a model (`rows_read` counts them), and 2T
//! parameter vectors of memory, which later evidence lists under `precomputed`; the run is not part of a stored model. Then
//! j₀ + T/T₀ passes over the retained rows and T over those to forget, and one for the bound. With the defaults that is about
//! a fifth of T passes, where `warm_start` takes a handful: the method is here to be compared with.
//!
//! When it fails: badly conditioned rows, on which gradient descent has not arrived after its steps; the bound says how far
//! it is off.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::models::logistic::{DESCENT_RUN, DescentPath, FollowSettings};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "delta_grad";

/// The run ends where the gradient is so small a share of the first one.
const GOAL: f64 = 1e-7;

/// Gradient descent, replayed from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeltaGrad {
    /// j₀: so many steps at the start read all retained rows.
    pub burn_in: usize,
    /// T₀: of the later steps, every so many read them.
    pub period: usize,
    /// m: differences that the L-BFGS matrix is made of.
    pub memory: usize,
    /// Steps of gradient descent at most; it ends before where the gradient has fallen by seven orders of magnitude.
    pub iterations: usize,
}

impl Default for DeltaGrad {
    /// The settings of the paper for logistic regression.
    fn default() -> Self {
        Self { burn_in: 10, period: 5, memory: 2, iterations: 1000 }
    }
}

impl DeltaGrad {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in
            [("period", self.period), ("memory", self.memory), ("iterations", self.iterations)]
        {
            if value == 0 {
                return Err(Error::Parameter { name, value: "0".into(), range: "at least 1" });
            }
        }
        Ok(())
    }

    /// The model with a run of gradient descent over its rows in memory, so that the next request need not make one.
    pub fn remember(&self, model: &LogisticModel, rows: &dyn RowStore) -> Result<LogisticModel> {
        self.check()?;
        let mut next = model.clone();
        next.path = Some(Arc::new(self.run(model, rows)?));
        Ok(next)
    }

    fn run(&self, model: &LogisticModel, rows: &dyn RowStore) -> Result<DescentPath> {
        model.over_all_rows(rows, |sample| DescentPath::run(model, sample, self.iterations, GOAL))
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
        let settings = FollowSettings { burn_in: self.burn_in, period: self.period, memory: self.memory };
        // A run over other rows is of no use.
        let known = model.path.clone().filter(|path| path.row_set == model.row_set);
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
            outcome.evidence.precomputed.retain(|part| part.what != DESCENT_RUN);
        }
        outcome.evidence.reason = reason;
        Ok(outcome)
    }
}
