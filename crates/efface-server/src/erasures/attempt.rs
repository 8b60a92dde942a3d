//! One attempt to do a request: how many rows it would erase, and what its models answer.

use std::sync::Arc;

use efface_engine::{ChangeReport, ForgetRequest};
use efface_receipt::RequestOutcome;
use tokio::sync::oneshot;

use super::order::ExpectedRows;
use super::{ErasureOrder, ErasureTarget, lost};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};
use crate::registry::{ChangeOrder, OrderAnswer, ServedModel};

/// The outcome of a part of a request in one model.
#[derive(Debug)]
pub(crate) struct ModelAnswer<T = ChangeReport> {
    pub(crate) model: String,
    /// The number of the part: a request about several persons has one for each.
    pub(super) part: usize,
    /// False for a model that does not say whose its rows are, in a request about a person in all
    /// models.
    pub(super) is_addressed: bool,
    pub(crate) answer: Result<T, Problem>,
}

impl<T> ModelAnswer<T> {
    /// Returns true if the model could not answer now and may do so later.
    pub(super) fn is_passing(&self) -> bool {
        let is_passing =
            |problem: &Problem| problem.is_passing() || problem.code == ProblemCode::ModelUnusable;
        self.answer.as_ref().err().is_some_and(is_passing)
    }
}

impl ModelAnswer {
    /// Returns the reason if rows that the request is about may still be in the model.
    pub(crate) fn failure(&self) -> Option<Problem> {
        match &self.answer {
            Ok(report) if report.outcome == RequestOutcome::Refused => {
                let reason = report.reason.as_deref().unwrap_or("the model refused");
                let detail = match &report.receipt {
                    Some(place) => format!("{reason} (receipt {})", place.id),
                    None => reason.to_owned(),
                };
                Some(Problem::new(ProblemCode::Refused, detail))
            }
            Ok(_) => None,
            Err(problem) => Some(problem.clone()),
        }
    }
}

/// Returns true if every model that a request is for has done it.
pub(crate) fn is_done(answers: &[ModelAnswer]) -> bool {
    let addressed = || answers.iter().filter(|answer| answer.is_addressed);
    addressed().next().is_some() && addressed().all(|answer| answer.failure().is_none())
}

/// Rows that a request has taken out.
pub(super) fn rows_erased(answers: &[ModelAnswer]) -> usize {
    let reports = answers
        .iter()
        .filter_map(|answer| answer.answer.as_ref().ok());
    reports.map(|report| report.forgotten).sum()
}

/// The result of counting the rows of a request.
pub(super) enum Check {
    /// It may be done, with these rows alone; None where any rows may be erased.
    Allowed(Option<ExpectedRows>),
    /// It is about more rows than one officer may erase.
    NeedsApproval,
    /// A model is not there, or cannot say how many rows it would be.
    NotNow(Problem),
}

/// Counts the rows that a request would erase. `erased` are those that it has erased already.
///
/// Rows that are gone count for nothing: the request may be one that was done before, and whoever
/// does it finds its first answer.
pub(super) async fn check(state: &Arc<ServiceState>, order: &ErasureOrder, erased: usize) -> Check {
    let shown = order.expected_by_caller();
    let most = match state.settings.approval_above {
        Some(most) if order.approved_by.is_none() => most,
        _ => return Check::Allowed(shown),
    };
    let count = |request, answer| ChangeOrder::Count(Box::new(request), answer);
    let found = match send(state, order, None, count).await {
        Ok(found) => found,
        Err(problem) => return Check::NotNow(problem),
    };
    let mut rows = erased;
    let mut expected = ExpectedRows::new();
    for found in found {
        let is_passing = found.is_passing();
        let part = (found.model, found.part);
        match found.answer {
            Ok(named) => {
                rows += named.rows;
                // Other rows than the caller saw are not erased, however few they are.
                let is_shown = |shown: &ExpectedRows| shown.get(&part) == Some(&named.digest);
                if shown.as_ref().is_none_or(is_shown) {
                    expected.insert(part, named.digest);
                }
            }
            Err(problem) if is_passing => return Check::NotNow(problem),
            Err(_) => {}
        }
    }
    if rows > most {
        return Check::NeedsApproval;
    }
    Check::Allowed(Some(expected))
}

/// The outcome of an attempt.
pub(super) enum Attempt {
    /// Every model has answered.
    Answered(Vec<ModelAnswer>),
    /// It is about more rows than one officer may erase.
    NeedsApproval,
    /// It could not be tried.
    NotNow(Problem),
}

/// Checks a request and does it. `erased` are the rows that it has erased already.
pub(super) async fn attempt(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
    erased: usize,
) -> Attempt {
    match check(state, order, erased).await {
        Check::Allowed(expected) => attempt_checked(state, order, expected).await,
        Check::NeedsApproval => Attempt::NeedsApproval,
        Check::NotNow(problem) => Attempt::NotNow(problem),
    }
}

/// Does a request that was checked. If its rows have changed since, it is checked again.
pub(super) async fn attempt_checked(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
    mut expected: Option<ExpectedRows>,
) -> Attempt {
    loop {
        let answers = match execute(state, order, expected.as_ref()).await {
            Ok(answers) => answers,
            Err(problem) => return Attempt::NotNow(problem),
        };
        let has_changed = |answer: &ModelAnswer| {
            let problem = answer.answer.as_ref().err();
            problem.is_some_and(|problem| problem.code == ProblemCode::RowsChanged)
        };
        // A caller who saw other rows looks at them again.
        if order.expected_rows.is_some() || !answers.iter().any(has_changed) {
            return Attempt::Answered(answers);
        }
        expected = match check(state, order, rows_erased(&answers)).await {
            Check::Allowed(expected) => expected,
            Check::NeedsApproval => return Attempt::NeedsApproval,
            Check::NotNow(problem) => return Attempt::NotNow(problem),
        };
    }
}

/// The models that a request is about.
pub(crate) fn models_of(
    state: &ServiceState,
    target: &ErasureTarget,
) -> Result<Vec<Arc<ServedModel>>, Problem> {
    let models = match target {
        ErasureTarget::Model(name) => return Ok(vec![state.models.find(name)?]),
        ErasureTarget::AllModels => state.models.all(),
    };
    if models.is_empty() {
        let detail = "the server has no model now";
        return Err(Problem::new(ProblemCode::NotFound, detail));
    }
    Ok(models)
}

/// Previews a request, model by model. Fails if there is no model.
pub(crate) async fn preview(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
) -> Result<Vec<ModelAnswer>, Problem> {
    send(state, order, None, |mut request, answer| {
        // A name would be taken for a request that may be there already.
        request.id = None;
        ChangeOrder::Preview(Box::new(request), answer)
    })
    .await
}

/// Sends a request to its models and gathers their answers. Fails if there is no model.
async fn execute(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
    expected: Option<&ExpectedRows>,
) -> Result<Vec<ModelAnswer>, Problem> {
    send(state, order, expected, |request, answer| {
        ChangeOrder::Erase(Box::new(request), answer)
    })
    .await
}

async fn send<T>(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
    expected: Option<&ExpectedRows>,
    as_order: impl Fn(ForgetRequest, OrderAnswer<T>) -> ChangeOrder,
) -> Result<Vec<ModelAnswer<T>>, Problem> {
    // All parts are sent before the first answer is awaited: they become one commit.
    let mut waiting = Vec::new();
    for model in models_of(state, &order.target)? {
        let name = || model.name().to_owned();
        match order.requests_for(&model, expected) {
            Ok(requests) => {
                for (part, request) in requests.into_iter().enumerate() {
                    let (answer, reply) = oneshot::channel();
                    let sent = model.order(as_order(request, answer));
                    waiting.push((name(), part, true, sent.map(|()| reply)));
                }
            }
            Err(problem) => {
                let is_addressed = order.target != ErasureTarget::AllModels;
                waiting.push((name(), 0, is_addressed, Err(problem)));
            }
        }
    }
    if order.target == ErasureTarget::AllModels {
        // Rows of a model that cannot be opened are not erased.
        let detail = "the model cannot be opened; the server's log says why";
        let unusable = || Problem::new(ProblemCode::ModelUnusable, detail);
        let unopened = state.models.unopened().into_iter();
        waiting.extend(unopened.map(|model| (model, 0, true, Err(unusable()))));
    }
    let mut answers = Vec::with_capacity(waiting.len());
    for (model, part, is_addressed, sent) in waiting {
        let answer = match sent {
            Ok(reply) => {
                let report = reply.await.map_err(lost);
                report.and_then(|report| report.map_err(Problem::from))
            }
            Err(problem) => Err(problem),
        };
        answers.push(ModelAnswer {
            model,
            part,
            is_addressed,
            answer,
        });
    }
    Ok(answers)
}
