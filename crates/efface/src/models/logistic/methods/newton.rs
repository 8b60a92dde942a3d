//! Newton steps on a logistic or softmax model; `methods/newton.rs` says what the method does.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::Newton;
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "newton";

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
            return Err(Error::Parameter {
                name: "steps",
                value: "0".into(),
                range: "at least 1",
            });
        }
        let steps = |work: &mut RequestWork<'_>| {
            for step in 0..self.steps {
                // The first gradient is known from the rows that leave; every other one has to be
                // looked up.
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
        model
            .open(NAME, rows, gone)?
            .step(steps, Claim::Approximate)
    }
}
