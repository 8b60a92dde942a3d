//! Erasure requests.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use efface::Method;
use efface_engine::{ChangeReport, ReceiptPlace};
use efface_receipt::{Receipt, RequestOutcome, Time};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::body::JsonBody;
use super::ledger::stopped;
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::callbacks::{CallbackForm, CallbackTarget};
use crate::erasures::{
    self, ErasureOrder, ErasureTarget, KeyClaim, ModelAnswer, OpenState, RowChoice, Submitted,
};
use crate::problem::{Problem, ProblemCode, ProblemDetails};
use crate::registry::ChangeOrder;

/// The longest key of a request.
const LONGEST_KEY: usize = 128;

/// Rows in one request, at most.
const MOST_ROWS: usize = 100_000;

/// A request to erase rows. Exactly one of `rows` and `subject` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ErasureBody {
    /// The ids of the rows.
    #[schema(min_items = 1, max_items = 100_000)]
    rows: Option<Vec<String>>,
    /// The person whose rows they are, as the subject column of the model names them.
    subject: Option<String>,
    /// The method, as in `newton:steps=3`; what suits the model unless this says otherwise.
    method: Option<String>,
    /// Whether rows that are not there are passed over. Otherwise nothing is done if one is
    /// missing.
    #[serde(default)]
    allow_missing: bool,
    /// Whether an approximate method may leave the model no nearer to retraining than it was.
    /// Otherwise such a request is refused.
    #[serde(default)]
    allow_worse: bool,
    /// Whether everything is computed and nothing is changed.
    #[serde(default)]
    dry_run: bool,
    /// When the person asked, as in `2026-03-02T09:15:00.250Z`.
    #[schema(value_type = Option<String>, format = DateTime)]
    requested_at: Option<Time>,
    /// Where to send a callback once the request is done (Standard Webhooks, signed with Ed25519).
    /// The server knows the hosts.
    #[schema(max_length = 2048)]
    callback_url: Option<String>,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErasureStatus {
    /// Every model has answered.
    Done,
    /// It is being done.
    Running,
    /// A second token must approve it.
    AwaitingApproval,
    /// Nothing was changed, because that was asked for.
    DryRun,
}

/// An erasure.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErasureAnswer {
    /// Its id: the Idempotency-Key, or one that the server chose.
    id: String,
    status: ErasureStatus,
    /// What the models answered.
    models: Vec<ModelErasure>,
}

/// What one model answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelErasure {
    model: String,
    /// `erased`, `partial`, `not_found` or `refused`.
    #[schema(value_type = Option<String>)]
    outcome: Option<RequestOutcome>,
    /// `exact`, `certified` or `approximate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<String>,
    /// Rows that left.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<u64>,
    /// Rows that were named and are not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    /// Rows in the model afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// An upper bound on the distance to a model fitted without the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
    /// The largest leverage of a row: how much of its own prediction it decided, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    leverage: Option<f64>,
    /// In a dry run: how far the parameters would move, as a part of their norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<f64>,
    /// Exports that this withdraws.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn: Option<u64>,
    /// For a request about a person: proves whom the receipt is about. It is told once and kept
    /// nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_opening: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptLink>,
    /// Why this model did not do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemDetails>,
}

/// Where a receipt is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReceiptLink {
    id: String,
    /// Its place in the log of the model, from 0.
    sequence: u64,
    url: String,
}

impl ReceiptLink {
    pub(super) fn new(_model: &str, place: &ReceiptPlace) -> Self {
        Self::to(&place.id, place.sequence)
    }

    fn to(id: &str, sequence: u64) -> Self {
        Self {
            id: id.to_owned(),
            sequence,
            url: format!("/v1/receipts/{id}"),
        }
    }
}

/// The requests that are not done yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OpenErasureList {
    erasures: Vec<OpenErasure>,
}

/// A request that is not done yet. It names no rows.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OpenErasure {
    id: String,
    status: ErasureStatus,
    /// The model; null for all.
    model: Option<String>,
    /// The token that asked, where another one must approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
}

/// Erases rows of a model.
#[utoipa::path(
    post, path = "/v1/models/{model}/erasures", tag = "erasures", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model"),
        ("Idempotency-Key" = Option<String>, Header, description = "A name for the request, up to 128 of A-Z a-z 0-9 . _ ~ -; the same request under the same key has one effect")),
    request_body = ErasureBody,
    responses((status = 200, description = "Done", body = ErasureAnswer),
        (status = 202, description = "Written down; Location says where to ask", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ErasureBody>,
) -> Result<Response, Problem> {
    caller.allow(Scope::Erase, Some(&name))?;
    state.models.find(&name)?;
    begin(&state, &caller, ErasureTarget::Model(name), &headers, body).await
}

/// Erases the rows of a person from every model.
#[utoipa::path(
    post, path = "/v1/erasures", tag = "erasures", security(("token" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A name for the request, up to 128 of A-Z a-z 0-9 . _ ~ -; the same request under the same key has one effect")),
    request_body = ErasureBody,
    responses((status = 200, description = "Done", body = ErasureAnswer),
        (status = 202, description = "Written down; Location says where to ask", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create_everywhere(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ErasureBody>,
) -> Result<Response, Problem> {
    caller.allow(Scope::Erase, None)?;
    begin(&state, &caller, ErasureTarget::AllModels, &headers, body).await
}

/// Lists the requests that are not done yet.
#[utoipa::path(
    get, path = "/v1/erasures", tag = "erasures", security(("token" = [])),
    responses((status = 200, description = "The open requests", body = OpenErasureList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn list(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
) -> Result<Json<OpenErasureList>, Problem> {
    caller.allow(Scope::Audit, None)?;
    let mut erasures = Vec::new();
    for (id, open, target) in state.open.all() {
        let model = match target {
            ErasureTarget::Model(name) => Some(name),
            ErasureTarget::AllModels => None,
        };
        if model.as_ref().is_none_or(|name| caller.sees(name)) {
            let asked_by = match &open {
                OpenState::AwaitingApproval { asked_by } => Some(asked_by.clone()),
                OpenState::Running => None,
            };
            erasures.push(OpenErasure {
                id,
                status: status_of(&open),
                model,
                asked_by,
            });
        }
    }
    Ok(Json(OpenErasureList { erasures }))
}

/// Says where a request stands.
#[utoipa::path(
    get, path = "/v1/erasures/{id}", tag = "erasures", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the erasure")),
    responses((status = 200, description = "Where it stands", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn show(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Json<ErasureAnswer>, Problem> {
    caller
        .allow(Scope::Audit, None)
        .or_else(|_| caller.allow(Scope::Erase, None))?;
    if let Some(open) = open_state(&state, &caller, &id) {
        return Ok(Json(ErasureAnswer {
            id,
            status: status_of(&open),
            models: Vec::new(),
        }));
    }
    let seen: Vec<_> = state
        .models
        .all()
        .into_iter()
        .filter(|model| caller.sees(model.name()))
        .collect();
    let asked = id.clone();
    let found = state
        .settings
        .work
        .run(move || erasures::look_up(&seen, &asked))
        .await
        .map_err(stopped)?;
    if found.is_empty() {
        return Err(Problem::new(
            ProblemCode::NotFound,
            "there is no erasure of that id",
        ));
    }
    let models = found
        .into_iter()
        .map(|(model, receipt)| of_receipt(model, &receipt))
        .collect();
    Ok(Json(ErasureAnswer {
        id,
        status: ErasureStatus::Done,
        models,
    }))
}

/// Approves a request that another token asked for.
#[utoipa::path(
    post, path = "/v1/erasures/{id}/approval", tag = "erasures", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the erasure")),
    responses((status = 200, description = "Done", body = ErasureAnswer),
        (status = 202, description = "Approved, and being done", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn approve(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Response, Problem> {
    allow_open(&state, &caller, &id)?;
    let submitted =
        erasures::approve(&state, &id, &caller, state.settings.limits.erasure_patience).await?;
    answer(id, submitted)
}

/// Takes back a request that waits for approval.
#[utoipa::path(
    delete, path = "/v1/erasures/{id}", tag = "erasures", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the erasure")),
    responses((status = 204, description = "Taken back"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn withdraw(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<StatusCode, Problem> {
    allow_open(&state, &caller, &id)?;
    erasures::withdraw(&state, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where a request stands that is not done yet; None for one about a model that the caller may not
/// see.
pub(super) fn open_state(state: &ServiceState, caller: &Caller, id: &str) -> Option<OpenState> {
    let (open, target) = state.open.find(id)?;
    match target {
        ErasureTarget::Model(name) if !caller.sees(&name) => None,
        _ => Some(open),
    }
}

/// Whether the caller may erase what an open request is about. Whoever may not see its model learns
/// nothing of it.
pub(super) fn allow_open(state: &ServiceState, caller: &Caller, id: &str) -> Result<(), Problem> {
    match state.open.find(id) {
        Some((_, ErasureTarget::Model(name))) if caller.sees(&name) => {
            caller.allow(Scope::Erase, Some(&name))
        }
        Some(_) | None => caller.allow(Scope::Erase, None),
    }
}

async fn begin(
    state: &Arc<ServiceState>,
    caller: &Caller,
    target: ErasureTarget,
    headers: &HeaderMap,
    body: ErasureBody,
) -> Result<Response, Problem> {
    let dry_run = body.dry_run;
    let order = order(state, caller, target, headers, body)?;
    if dry_run {
        let models = preview(state, &order)
            .await?
            .into_iter()
            .map(of_answer)
            .collect();
        return Ok(Json(ErasureAnswer {
            id: order.id,
            status: ErasureStatus::DryRun,
            models,
        })
        .into_response());
    }
    let id = order.id.clone();
    let submitted = accept(state, order, patience(state, headers)).await?;
    answer(id, submitted)
}

/// Callers who wait no longer than this may be gone before a model has answered.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// Does a request, unless it waits already, or somebody else must approve it first.
pub(super) async fn accept(
    state: &Arc<ServiceState>,
    mut order: ErasureOrder,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let key = KeyClaim::new(state, &order)?;
    if let Some(open) = state.open.state(&order.id) {
        return Ok(Submitted::Accepted(open));
    }
    if let Some(most) = state.settings.approval_above {
        order.needs_approval = rows_at_stake(state, &order).await? > most;
    }
    if order.needs_approval {
        return erasures::hold_for_approval(state, order).await;
    }
    // A request that was done before is answered from the log, at once: a promise would hide that
    // its key was used for another.
    let mut patience = patience;
    if patience < SHORT_PATIENCE && is_known(state, &order).await? {
        patience = state.settings.limits.erasure_patience;
    }
    let submitted = erasures::submit(state, order, key, patience).await?;
    match submitted {
        Submitted::Done(mut models) if !models.is_empty() && models.iter().all(is_reused) => {
            let reused = models.pop().and_then(|model| model.answer.err());
            Err(reused.unwrap_or_else(|| Problem::invalid("the key was used before")))
        }
        submitted => Ok(submitted),
    }
}

fn is_reused(found: &ModelAnswer) -> bool {
    found
        .answer
        .as_ref()
        .err()
        .is_some_and(|problem| problem.code == ProblemCode::KeyReused)
}

/// Whether the log of a model that a request is about knows its key.
async fn is_known(state: &Arc<ServiceState>, order: &ErasureOrder) -> Result<bool, Problem> {
    let models = match &order.target {
        ErasureTarget::Model(name) => vec![state.models.find(name)?],
        ErasureTarget::AllModels => state.models.all(),
    };
    let id = order.id.clone();
    let found = state
        .settings
        .work
        .run(move || erasures::look_up(&models, &id))
        .await;
    Ok(!found.map_err(stopped)?.is_empty())
}

/// How many rows a request would erase. Rows that are gone count for nothing: the request may be
/// one that was done before, and whoever does it finds its first answer. A model that cannot say
/// how many stops the request.
async fn rows_at_stake(state: &Arc<ServiceState>, order: &ErasureOrder) -> Result<usize, Problem> {
    let is_gone = |problem: &Problem| {
        matches!(
            problem.code,
            ProblemCode::RowNotFound | ProblemCode::AlreadyForgotten
        )
    };
    let answers = match preview(state, order).await {
        Err(problem) if is_gone(&problem) => return Ok(0),
        answers => answers?,
    };
    let mut rows = 0;
    for found in answers {
        let is_passing = found.is_passing();
        match found.answer {
            Ok(report) => rows += report.forgotten,
            Err(problem) if is_passing => return Err(problem),
            Err(_) => {}
        }
    }
    Ok(rows)
}

fn order(
    state: &ServiceState,
    caller: &Caller,
    target: ErasureTarget,
    headers: &HeaderMap,
    body: ErasureBody,
) -> Result<ErasureOrder, Problem> {
    let rows = match (body.rows, body.subject) {
        (Some(rows), None) if rows.is_empty() => return Err(Problem::invalid("`rows` is empty")),
        (Some(rows), None) if rows.len() > MOST_ROWS => {
            return Err(Problem::invalid(format!(
                "`rows` holds {} ids; {MOST_ROWS} are taken at a time",
                rows.len()
            )));
        }
        (Some(rows), None) => RowChoice::Rows(rows),
        (None, Some(subject)) if subject.trim().is_empty() => {
            return Err(Problem::invalid("`subject` is empty"));
        }
        (None, Some(subject)) => RowChoice::Subject(subject),
        _ => return Err(Problem::invalid("give either `rows` or `subject`")),
    };
    let method = match body.method {
        Some(text) => text
            .parse::<Method>()
            .map_err(|error| Problem::invalid(error.to_string()))?,
        None => Method::default(),
    };
    let mut callbacks = Vec::new();
    if let Some(url) = body.callback_url {
        let none = || Problem::invalid("this server was not told where it may send callbacks");
        state.callbacks.as_ref().ok_or_else(none)?.check_url(&url)?;
        callbacks.push(CallbackTarget {
            url,
            form: CallbackForm::StandardWebhook,
        });
    }
    Ok(ErasureOrder {
        id: key(headers)?,
        target,
        rows,
        method,
        allow_missing: body.allow_missing,
        allow_worse: body.allow_worse,
        requested_at: body.requested_at,
        asked_by: caller.id().to_owned(),
        needs_approval: false,
        approved_by: None,
        callbacks,
    })
}

/// The key of a request, or a new one.
fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|_| {
            Problem::new(ProblemCode::Internal, "the system gives no random numbers")
        })?;
        return Ok(data_encoding::HEXLOWER.encode(&bytes));
    };
    let text = value.to_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    if values.next().is_some()
        || text.is_empty()
        || text.len() > LONGEST_KEY
        || !text.bytes().all(plain)
    {
        let detail = "the Idempotency-Key must be one value of 1 to 128 characters out of A-Z a-z 0-9 . _ ~ -";
        return Err(Problem::invalid(detail));
    }
    Ok(text.to_owned())
}

/// How long the caller waits: what `Prefer: wait=SECONDS` (RFC 7240) says, and no longer than the
/// server does.
fn patience(state: &ServiceState, headers: &HeaderMap) -> Duration {
    let most = state.settings.limits.erasure_patience;
    let preferred = headers.get("prefer").and_then(|value| value.to_str().ok());
    let wait = preferred.and_then(|text| {
        text.split(',')
            .find_map(|part| part.trim().strip_prefix("wait="))
    });
    wait.and_then(|seconds| seconds.parse::<u64>().ok())
        .map_or(most, |seconds| most.min(Duration::from_secs(seconds)))
}

/// What would happen, model by model.
async fn preview(
    state: &Arc<ServiceState>,
    order: &ErasureOrder,
) -> Result<Vec<ModelAnswer>, Problem> {
    let models = match &order.target {
        ErasureTarget::Model(name) => vec![state.models.find(name)?],
        ErasureTarget::AllModels => state.models.all(),
    };
    let single = models.len() == 1;
    let mut answers = Vec::new();
    for model in models {
        let requests = match order.requests_for(&model) {
            Err(problem) if single => return Err(problem),
            Err(problem) => {
                answers.push(ModelAnswer {
                    model: model.name().to_owned(),
                    answer: Err(problem),
                });
                continue;
            }
            Ok(requests) => requests,
        };
        let single = single && requests.len() == 1;
        for mut request in requests {
            // A name would be taken for a request that may be there already.
            request.id = None;
            let asked = async {
                let (answer, reply) = oneshot::channel();
                model.order(ChangeOrder::Preview(Box::new(request), answer))?;
                let stopped =
                    |_| Problem::new(ProblemCode::Internal, "the thread of the model has stopped");
                Ok(reply.await.map_err(stopped)??)
            };
            match asked.await {
                Err(problem) if single => return Err(problem),
                answer => answers.push(ModelAnswer {
                    model: model.name().to_owned(),
                    answer,
                }),
            }
        }
    }
    Ok(answers)
}

/// The answer over HTTP. A request about one model that was not done is a problem of its own.
fn answer(id: String, submitted: Submitted) -> Result<Response, Problem> {
    match submitted {
        Submitted::Done(mut models) => {
            if let [ModelAnswer { answer: Err(_), .. }] = models.as_slice()
                && let Some(ModelAnswer {
                    answer: Err(problem),
                    ..
                }) = models.pop()
            {
                return Err(problem);
            }
            let models = models.into_iter().map(of_answer).collect();
            Ok(Json(ErasureAnswer {
                id,
                status: ErasureStatus::Done,
                models,
            })
            .into_response())
        }
        Submitted::Accepted(open) => {
            let place = format!("/v1/erasures/{id}");
            let body = Json(ErasureAnswer {
                id,
                status: status_of(&open),
                models: Vec::new(),
            });
            let mut response = (StatusCode::ACCEPTED, body).into_response();
            if let Ok(place) = HeaderValue::from_str(&place) {
                response.headers_mut().insert(header::LOCATION, place);
            }
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            Ok(response)
        }
    }
}

fn status_of(open: &OpenState) -> ErasureStatus {
    match open {
        OpenState::Running => ErasureStatus::Running,
        OpenState::AwaitingApproval { .. } => ErasureStatus::AwaitingApproval,
    }
}

fn of_answer(ModelAnswer { model, answer }: ModelAnswer) -> ModelErasure {
    match answer {
        Ok(report) => of_report(model, report),
        Err(problem) => ModelErasure {
            problem: Some(problem.details()),
            ..ModelErasure::nothing(model)
        },
    }
}

fn of_report(model: String, report: ChangeReport) -> ModelErasure {
    ModelErasure {
        outcome: Some(report.outcome),
        claim: Some(report.claim),
        forgotten: Some(report.forgotten as u64),
        missing: Some(report.missing as u64),
        rows: Some(report.rows as u64),
        bound: report.bound.is_finite().then_some(report.bound),
        leverage: report
            .evidence
            .largest_leverage
            .filter(|leverage| leverage.is_finite()),
        moved: report.moved,
        withdrawn: Some(report.withdrawn as u64),
        subject_opening: report.subject_opening,
        receipt: report
            .receipt
            .as_ref()
            .map(|place| ReceiptLink::to(&place.id, place.sequence)),
        ..ModelErasure::nothing(model)
    }
}

fn of_receipt(model: String, receipt: &Receipt) -> ModelErasure {
    ModelErasure {
        outcome: Some(receipt.outcome),
        receipt: Some(ReceiptLink::to(&receipt.id, receipt.sequence)),
        ..ModelErasure::nothing(model)
    }
}

impl ModelErasure {
    fn nothing(model: String) -> Self {
        Self {
            model,
            outcome: None,
            claim: None,
            forgotten: None,
            missing: None,
            rows: None,
            bound: None,
            leverage: None,
            moved: None,
            withdrawn: None,
            subject_opening: None,
            receipt: None,
            problem: None,
        }
    }
}
