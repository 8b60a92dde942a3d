//! Training from where the model stands on a logistic or softmax model; `methods/warm_start.rs`
//! says what the method does.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::WarmStart;
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

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
            work.tighten(model.settings().exact_tolerance())
        };
        model
            .open(Forget::<LogisticModel>::name(self), rows, gone)?
            .step(train, Claim::Exact)
    }
}
