//! The choice of a method on a logistic or softmax model; `methods/auto.rs` says what the method
//! does.

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::{Auto, Certified, DescentToDelete, Method, Newton};
use crate::models::LogisticModel;
use crate::models::logistic::Certifier;
use crate::models::logistic::change::RequestWork;
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::Forget;

const NAME: &str = "auto";

/// A measured gradient must fall to this share of the last one, or the Hessian is made anew.
const WORN: f64 = 0.3;

impl Forget<LogisticModel> for Auto {
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
        model.check_request(rows, gone)?;
        match model
            .settings()
            .logistic
            .privacy
            .map(|privacy| privacy.certifier)
        {
            Some(Certifier::Removal { .. }) => Certified::of(model)?.forget(model, rows, gone),
            Some(Certifier::Descent { .. }) => {
                DescentToDelete::of(model)?.forget(model, rows, gone)
            }
            None if gone.is_empty() => {
                let mut evidence = model.evidence(NAME, Claim::Approximate);
                evidence.tolerance = Some(
                    self.tolerance
                        .unwrap_or(model.settings().logistic.tolerance),
                );
                Ok(Outcome {
                    model: model.clone(),
                    evidence,
                })
            }
            None => self.change(model, NAME, rows, gone, None),
        }
    }
}

impl Auto {
    pub(in crate::models) fn check(&self) -> Result<()> {
        match self.tolerance {
            Some(tolerance) if !(tolerance > 0.0 && tolerance.is_finite()) => {
                let value = tolerance.to_string();
                Err(Error::Parameter {
                    name: "tolerance",
                    value,
                    range: "finite and above 0",
                })
            }
            _ => Ok(()),
        }
    }

    /// As many steps as the bound demands: a Newton step that reads no retained row; then a look at
    /// their gradient; then steps with the same Hessian as long as they pay; then training from
    /// where it stands.
    pub(crate) fn change(
        &self,
        model: &LogisticModel,
        method: &str,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Outcome<LogisticModel>> {
        let tolerance = self
            .tolerance
            .unwrap_or(model.settings().logistic.tolerance);
        // What rounding alone hides no step will reach: there is no point in chasing it.
        let at_rest = 2.0 * model.least_bound();
        let goal = if at_rest.is_finite() {
            tolerance.max(at_rest)
        } else {
            tolerance
        };
        let mut work = RequestWork::new(model, rows, gone, new)?;
        let mut trained = false;
        let reason = if model.settings().logistic.privacy.is_some() {
            // Noise is accounted for at the optimum of the rows; where rows join, only training
            // leads there.
            work.train_anew()?;
            "rows that join a certified model need training".to_string()
        } else {
            // Without a kept Hessian every step is measured as it is made.
            let bare = work.is_bare();
            work.profiles = bare;
            work.newton_towards(goal, work.first_accuracy())?;
            if work.relative_bound() > goal && !bare {
                work.measure_within(goal)?;
            }
            let mut last = f64::INFINITY;
            while work.relative_bound() > goal {
                if work.is_stale() {
                    work.refresh()?;
                    continue;
                }
                let gradient = work.gradient_norm();
                // A gradient that is no number has not fallen either.
                if gradient.is_nan() || gradient > WORN * last {
                    work.profile()?;
                    if work.relative_bound() > goal {
                        work.train()?;
                        work.tighten(goal)?;
                        trained = true;
                    }
                    break;
                }
                last = gradient;
                work.newton_towards(goal, 0.0)?;
                if !bare {
                    work.measure_within(goal)?;
                }
            }
            if work.relative_bound() > tolerance && !work.is_bare() {
                work.profile()?;
            }
            let steps = work.steps;
            let reached = work.relative_bound();
            match (trained, work.passes) {
                _ if reached > tolerance => {
                    format!(
                        "not within {tolerance:.0e}: rounding in the model as it was hides the rest, {reached:.0e}"
                    )
                }
                (true, _) => {
                    format!(
                        "steps with the kept Hessian would not reach {tolerance:.0e}: trained on"
                    )
                }
                (_, 0) => format!("one Newton step is within {tolerance:.0e} of retraining"),
                (_, passes) => {
                    format!("{steps} Newton steps and {passes} passes reach {tolerance:.0e}")
                }
            }
        };
        let chosen = match (method, trained) {
            (NAME, true) => Method::WarmStart.name(),
            (NAME, false) => Method::Newton(Newton::default()).name(),
            _ => method,
        };
        let mut outcome = work.finish(chosen, Claim::Approximate);
        outcome.evidence.reason = Some(reason);
        // A model trained with noise answers to its budget and not to a distance.
        outcome.evidence.tolerance = model
            .settings()
            .logistic
            .privacy
            .is_none()
            .then_some(tolerance);
        Ok(outcome)
    }
}
