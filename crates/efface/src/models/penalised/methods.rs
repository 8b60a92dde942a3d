//! Forgetting on penalised models; `crate::methods` says what the methods do.

use super::PenalisedModel;
use super::loss::PenalisedLoss;
use crate::error::Result;
use crate::evidence::{Claim, Outcome};
use crate::methods::{Auto, Newton, Retrain, WarmStart};
use crate::models::request;
use crate::rows::{ChangedRows, RowId, RowStore};
use crate::traits::Forget;

impl<L: PenalisedLoss> PenalisedModel<L> {
    /// The model without rows by steps from here; None for as many as it takes.
    fn stepped(
        &self,
        method: &str,
        rows: &dyn RowStore,
        gone: &[RowId],
        steps: Option<usize>,
    ) -> Result<Outcome<Self>> {
        self.check_gone(rows, gone)?;
        if gone.is_empty() {
            return Ok(Outcome {
                model: self.clone(),
                evidence: self.evidence(method),
            });
        }
        let retained = ChangedRows::new(rows, gone, None);
        let mut outcome = self.moved(method, &retained, steps)?;
        outcome.evidence.forgotten = gone.len();
        Ok(outcome)
    }
}

impl<L: PenalisedLoss> Forget<PenalisedModel<L>> for Retrain {
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &PenalisedModel<L>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<PenalisedModel<L>>> {
        model.check_gone(rows, gone)?;
        let retained = ChangedRows::new(rows, gone, None);
        let next = PenalisedModel::train(model.settings, &retained, None, None)?;
        let evidence = request::from_scratch(next.evidence("retrain"), gone.len(), retained.len());
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl<L: PenalisedLoss> Forget<PenalisedModel<L>> for WarmStart {
    fn name(&self) -> &'static str {
        "warm_start"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &PenalisedModel<L>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<PenalisedModel<L>>> {
        model.stepped("warm_start", rows, gone, None)
    }
}

impl<L: PenalisedLoss> Forget<PenalisedModel<L>> for Newton {
    fn name(&self) -> &'static str {
        "newton"
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &PenalisedModel<L>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<PenalisedModel<L>>> {
        let mut outcome = model.stepped("newton", rows, gone, Some(self.steps))?;
        outcome.evidence.promise = Claim::Approximate;
        // So many steps were asked for, wherever they lead.
        outcome.evidence.tolerance = None;
        Ok(outcome)
    }
}

impl<L: PenalisedLoss> Forget<PenalisedModel<L>> for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &PenalisedModel<L>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<PenalisedModel<L>>> {
        self.check()?;
        let mut outcome = WarmStart.forget(model, rows, gone)?;
        if let Some(tolerance) = self.tolerance {
            outcome.evidence.tolerance = Some(tolerance);
        }
        Ok(outcome)
    }
}
