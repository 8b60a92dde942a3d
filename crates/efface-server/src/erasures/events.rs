//! What is told about a request once its fate is known: no row and no person, only its id, outcomes and receipts.

use efface_receipt::Time;
use serde_json::{Value, json};

use super::{ErasureOrder, ModelAnswer};
use crate::callbacks::{self, CallbackDelivery, CallbackForm};

/// What became of a request.
pub(crate) enum ErasureEvent<'a> {
    /// All models have answered.
    Done(&'a [ModelAnswer]),
    /// It was taken back.
    Withdrawn,
}

impl ErasureEvent<'_> {
    /// The event's name. A request that no model could do has failed.
    fn name(&self) -> &'static str {
        match self {
            Self::Done(answers) if answers.iter().any(|model| model.answer.is_ok()) => "erasure.done",
            Self::Done(_) => "erasure.failed",
            Self::Withdrawn => "erasure.withdrawn",
        }
    }

    /// The callbacks that tell it to everyone who asked for that.
    pub(crate) fn deliveries(&self, order: &ErasureOrder) -> Vec<CallbackDelivery> {
        let now = callbacks::now();
        let name = self.name();
        let told = order.callbacks.iter().map(|target| {
            let body = match target.form {
                CallbackForm::StandardWebhook => self.webhook(order, now),
            };
            CallbackDelivery::new(target.clone(), &order.id, name, body.to_string(), now)
        });
        told.collect()
    }

    fn webhook(&self, order: &ErasureOrder, now: u64) -> Value {
        let models: Vec<Value> = match self {
            Self::Done(answers) => answers.iter().map(of_model).collect(),
            Self::Withdrawn => Vec::new(),
        };
        let time = i64::try_from(now).ok().and_then(Time::from_unix_milliseconds);
        json!({"type": self.name(), "timestamp": time, "data": {"id": order.id, "models": models}})
    }
}

fn of_model(ModelAnswer { model, answer }: &ModelAnswer) -> Value {
    match answer {
        Ok(report) => {
            let receipt = report.receipt.as_ref().map(
                |place| json!({"id": place.id, "sequence": place.sequence, "url": format!("/v1/receipts/{}", place.id)}),
            );
            json!({"model": model, "outcome": report.outcome, "claim": report.claim, "receipt": receipt})
        }
        Err(problem) => json!({"model": model, "problem": problem.code.kind().code}),
    }
}
