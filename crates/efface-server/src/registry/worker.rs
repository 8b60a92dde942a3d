//! The thread that changes a model. Erasures that wait together become one commit, with a receipt
//! each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use efface_engine::{
    ChangeReport, Engine, Error, ForgetOptions, ForgetRequest, RecordTable, RowsPreview, Silent,
};
use tokio::sync::oneshot;

use super::served_model::CurrentModel;
use crate::metrics::ServiceMetrics;

/// Erasures in one commit, at most.
const LARGEST_GROUP: usize = 1024;

/// How long the next group waits for those who were just answered and ask again, as a part of the
/// time of the last group: a larger group costs hardly more than a small one.
const GATHERING_PART: u32 = 20;

/// How often rows that wait to be scrubbed are looked at while nothing else is to do.
const SETTLE_EVERY: Duration = Duration::from_secs(10);

/// The answer to an order.
pub(crate) type OrderAnswer<T> = oneshot::Sender<Result<T, Error>>;

/// The answer to a change.
type ChangeAnswer = OrderAnswer<ChangeReport>;

/// A change of a model.
pub(crate) enum ChangeOrder {
    /// Rows leave.
    Erase(Box<ForgetRequest>, ChangeAnswer),
    /// What would happen if rows left.
    Preview(Box<ForgetRequest>, ChangeAnswer),
    /// Counts the rows that would leave.
    Count(Box<ForgetRequest>, OrderAnswer<RowsPreview>),
    /// Rows join.
    Learn(RecordTable, ChangeAnswer),
    /// Rows are corrected.
    Amend(RecordTable, ChangeAnswer),
}

pub(super) struct ChangeWorker {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) engine: Engine,
    pub(super) current: Arc<CurrentModel>,
    pub(super) metrics: Arc<ServiceMetrics>,
}

impl ChangeWorker {
    /// Works until nobody can send orders any more, and then finishes those that were sent.
    pub(super) fn run(mut self, orders: &Receiver<ChangeOrder>) {
        // An order that was taken out of the queue while a group was gathered, and is of another
        // kind.
        let mut next = None;
        // Until when erasures are gathered after a group.
        let mut gathering = Instant::now();
        loop {
            let order = match next.take() {
                Some(order) => Ok(order),
                None => orders.recv_timeout(SETTLE_EVERY),
            };
            match order {
                Ok(order) => {
                    let mut gathered = 0;
                    let mut last = Instant::now();
                    next = self.change(order, &mut || {
                        let more = orders
                            .recv_timeout(gathering.saturating_duration_since(Instant::now()));
                        gathered += usize::from(more.is_ok());
                        last = Instant::now();
                        more.ok()
                    });
                    gathering = Instant::now();
                    // Whoever is alone does not wait for company.
                    if gathered > 0 {
                        gathering += last.elapsed() / GATHERING_PART;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = self.engine.settle_if_due() {
                        tracing::warn!(model = self.name, %error, "forgotten rows still wait to be scrubbed");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Makes a change. Erasures that `more` gives join it; an order of another kind is handed back.
    pub(super) fn change(
        &mut self,
        order: ChangeOrder,
        more: &mut dyn FnMut() -> Option<ChangeOrder>,
    ) -> Option<ChangeOrder> {
        match order {
            ChangeOrder::Erase(request, answer) => {
                let mut requests = vec![*request];
                let mut answers = vec![answer];
                let mut other = None;
                while requests.len() < LARGEST_GROUP {
                    match more() {
                        Some(ChangeOrder::Erase(request, answer)) => {
                            requests.push(*request);
                            answers.push(answer);
                        }
                        end => {
                            other = end;
                            break;
                        }
                    }
                }
                self.erase(&requests, answers);
                return other;
            }
            ChangeOrder::Preview(request, answer) => {
                let report = self.engine.forget(&*request, &ForgetOptions::dry_run());
                send(answer, report);
            }
            ChangeOrder::Count(request, answer) => {
                send(answer, self.engine.preview_rows(&request));
            }
            ChangeOrder::Learn(rows, answer) => {
                let report = self.engine.learn(rows, &Silent);
                self.finish(vec![(answer, report)]);
            }
            ChangeOrder::Amend(rows, answer) => {
                let report = self.engine.amend(rows, &Silent);
                self.finish(vec![(answer, report)]);
            }
        }
        None
    }

    fn erase(&mut self, requests: &Vec<ForgetRequest>, answers: Vec<ChangeAnswer>) {
        let started = Instant::now();
        let reports = self.engine.forget(requests, &ForgetOptions::default());
        self.metrics
            .group(&self.name, requests.len(), started.elapsed());
        self.finish(answers.into_iter().zip(reports).collect());
    }

    /// Lets predictions have the new model, and then answers: after the answer no prediction comes
    /// from the old one.
    fn finish(&mut self, answers: Vec<(ChangeAnswer, Result<ChangeReport, Error>)>) {
        let changed = answers
            .iter()
            .any(|(_, report)| report.as_ref().is_ok_and(|report| !report.replayed));
        if changed && let Err(error) = self.current.replace(&self.engine, &self.path) {
            tracing::error!(model = self.name, %error, "the changed model could not be loaded for predictions");
        }
        for (answer, report) in answers {
            send(answer, report);
        }
    }
}

fn send<T>(answer: OrderAnswer<T>, report: Result<T, Error>) {
    // Whoever asked may have gone away; what was done is done.
    let _ = answer.send(report);
}
