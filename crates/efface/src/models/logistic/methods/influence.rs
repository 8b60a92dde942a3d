//! The influence step on a logistic or softmax model; `methods/influence.rs` says what the method
//! does.

use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::Influence;
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "influence";

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
