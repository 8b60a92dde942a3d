//! What is told about a request once its fate is known: no row and no person, only its id, outcomes
//! and receipts.

use efface_receipt::Time;
use serde_json::{Value, json};

use super::attempt::{is_done, rows_erased};
use super::{ErasureOrder, ModelAnswer};
use crate::callbacks::{CallbackDelivery, CallbackForm};
use crate::clock::ServiceClock;

/// What became of a request.
pub(crate) enum ErasureEvent<'a> {
    /// All models have answered.
    Done(&'a [ModelAnswer]),
    /// It was taken back.
    Withdrawn,
}

impl ErasureEvent<'_> {
    /// The event's name. A request that a model did not do has failed.
    fn name(&self) -> &'static str {
        match self {
            Self::Done(answers) if is_done(answers) => "erasure.done",
            Self::Done(_) => "erasure.failed",
            Self::Withdrawn => "erasure.withdrawn",
        }
    }

    /// The callbacks that tell it to everyone who asked for that.
    pub(crate) fn deliveries(
        &self,
        order: &ErasureOrder,
        clock: &ServiceClock,
    ) -> Vec<CallbackDelivery> {
        let now = clock.milliseconds();
        let name = self.name();
        let told = order.callbacks.iter().map(|target| {
            let body = match target.form {
                CallbackForm::StandardWebhook => self.webhook(order, now),
                CallbackForm::OpenDsr => self.opendsr(order, &target.url, now),
            };
            CallbackDelivery::new(
                target.clone(),
                &order.file_name(),
                name,
                body.to_string(),
                now,
            )
        });
        told.collect()
    }

    /// The status callback of OpenDSR, which knows no failure: a request that a model did not do
    /// ends as cancelled.
    fn opendsr(&self, order: &ErasureOrder, url: &str, now: u64) -> Value {
        let (status, erased) = match self {
            Self::Done(answers) if is_done(answers) => ("completed", rows_erased(answers)),
            Self::Done(answers) => ("cancelled", rows_erased(answers)),
            Self::Withdrawn => ("cancelled", 0),
        };
        json!({
            "controller_id": order.asked_by,
            "expected_completion_time": time(now),
            "status_callback_url": url,
            "subject_request_id": order.id,
            "request_status": status,
            "results_count": erased,
        })
    }

    fn webhook(&self, order: &ErasureOrder, now: u64) -> Value {
        let models: Vec<Value> = match self {
            Self::Done(answers) => answers.iter().map(of_model).collect(),
            Self::Withdrawn => Vec::new(),
        };
        json!({"type": self.name(), "timestamp": time(now), "data": {"id": order.id, "models": models}})
    }
}

fn of_model(found: &ModelAnswer) -> Value {
    let model = &found.model;
    let problem = found.failure().map(|problem| problem.code.kind().code);
    let Ok(report) = &found.answer else {
        return json!({"model": model, "problem": problem});
    };
    let receipt = report.receipt.as_ref().map(
        |place| json!({"id": place.id, "sequence": place.sequence, "url": format!("/v1/receipts/{}", place.id)}),
    );
    match problem {
        None => {
            json!({"model": model, "outcome": report.outcome, "claim": report.claim, "receipt": receipt})
        }
        Some(_) => {
            json!({"model": model, "outcome": report.outcome, "problem": problem, "receipt": receipt})
        }
    }
}

fn time(milliseconds: u64) -> Option<Time> {
    i64::try_from(milliseconds)
        .ok()
        .and_then(Time::from_unix_milliseconds)
}
