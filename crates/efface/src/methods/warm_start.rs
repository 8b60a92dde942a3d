//! Decremental training (Tsai et al. 2014): go on training from the old parameters on the retained rows, to the same
//! tolerance. Exact up to that tolerance, like retraining, in fewer passes because it starts nearby. Training goes on
//! until the distance bound is within the model's tolerance, with a Hessian made anew and with the intercepts profiled
//! out where that is what it takes; a bound that stays above it is reported as it is.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// Training from where the model stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmStart;

impl Forget<LogisticModel> for WarmStart {
    fn name(&self) -> &'static str {
        "warm_start"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        let train = |work: &mut RequestWork<'_>| {
            work.train()?;
            work.tighten(model.settings().logistic.tolerance)
        };
        model.open(self.name(), rows, gone)?.step(train, Claim::Exact)
    }
}
