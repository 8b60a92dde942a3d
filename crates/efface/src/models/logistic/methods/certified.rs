//! Newton steps under a budget on a logistic or softmax model; `methods/certified.rs` says what the
//! method does.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::Certified;
use crate::models::logistic::change::RequestWork;
use crate::models::logistic::{Certifier, Privacy};
use crate::models::{LogisticModel, request};
use crate::rows::{ChangedRows, RowId, RowStore};
use crate::traits::Forget;

const NAME: &str = "certified";

impl Certified {
    /// The method for this model, which must have been fitted for it.
    pub fn of(model: &LogisticModel) -> Result<Self> {
        match model.settings().logistic.privacy {
            Some(Privacy { epsilon, delta, certifier: Certifier::Removal { .. }, .. }) => {
                Ok(Self { epsilon, delta, steps: 1 })
            }
            _ => Err(Error::Unsupported {
                method: NAME,
                reason:
                    "the model was not fitted with noise in its objective; fit with an epsilon and a delta"
                        .into(),
            }),
        }
    }
}

impl Forget<LogisticModel> for Certified {
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
        let Some(privacy) = model
            .settings()
            .logistic
            .privacy
            .filter(|_| Self::of(model).is_ok())
        else {
            return Self::of(model)?.forget(model, rows, gone);
        };
        if (privacy.epsilon, privacy.delta) != (self.epsilon, self.delta) {
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
        let within = |work: &RequestWork<'_>| work.gradient_norm() <= privacy.budget();
        let mut work = RequestWork::new(model, rows, gone, None)?;
        work.newton()?;
        if self.steps == 2 || !within(&work) {
            // The rows have to be read. Where the kept Hessian is far behind, reading them once to
            // make it anew spares the requests to come from reading them.
            if work.is_behind() {
                work.refresh()?
            } else {
                work.measure()?
            }
            if self.steps == 2 || !within(&work) {
                work.newton()?;
                work.measure()?;
            }
        }
        if within(&work) {
            return Ok(work.finish(NAME, self.claim()));
        }
        let retained = ChangedRows::new(rows, gone, None);
        // Noise is drawn for the rows it is trained on: that of other rows is other noise.
        let next = model.settings().fit(&retained, None)?;
        let evidence = next.evidence(NAME, self.claim());
        let mut evidence = request::from_scratch(evidence, gone.len(), retained.len());
        evidence.reason =
            Some("the budget would have been passed: trained anew with fresh noise".into());
        if let Some(certificate) = &mut evidence.certificate {
            certificate.retrained = true;
        }
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}
