//! Gradient descent and publishing noise on a logistic or softmax model;
//! `methods/descent_to_delete.rs` says what the method does.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::DescentToDelete;
use crate::models::LogisticModel;
use crate::models::logistic::change::RequestWork;
use crate::models::logistic::{Certifier, Privacy};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "descent_to_delete";

impl DescentToDelete {
    /// The method for this model, which must have been fitted for it.
    pub fn of(model: &LogisticModel) -> Result<Self> {
        match model.settings().logistic.privacy {
            Some(Privacy { epsilon, delta, certifier: Certifier::Descent { .. }, .. }) => {
                Ok(Self { epsilon, delta })
            }
            _ => Err(Error::Unsupported {
                method: NAME,
                reason:
                    "the model does not publish behind noise; fit it for descent with an epsilon and a delta"
                        .into(),
            }),
        }
    }
}

impl Forget<LogisticModel> for DescentToDelete {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Certified {
            epsilon: self.epsilon,
            delta: self.delta,
        }
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        model.check_request(rows, gone)?;
        if Self::of(model)? != *self {
            return Err(Error::Unsupported {
                method: NAME,
                reason: "the model was fitted for another epsilon and delta".into(),
            });
        }
        if gone.is_empty() {
            let evidence = model.evidence(NAME, self.claim());
            return Ok(Outcome {
                model: model.clone(),
                evidence,
            });
        }
        let mut work = RequestWork::new(model, rows, gone, None)?;
        work.train_anew()?;
        Ok(work.finish(NAME, self.claim()))
    }
}
