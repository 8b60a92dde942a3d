//! Erasure requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use efface::Method;
use efface_engine::{ChangeReport, ReceiptPlace};
use efface_receipt::{Hash, Receipt, RequestOutcome, Time};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::body::read_json;
use super::ledger::stopped;
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::callbacks::{CallbackForm, CallbackTarget};
use crate::erasures::{
    self, ErasureOrder, ErasureTarget, KeyClaim, ModelAnswer, OpenState, RowChoice, Submitted,
};
use crate::problem::{Problem, ProblemCode, ProblemDetails};

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
    /// The `preview` of each model out of the answer to a dry run: a model that would now take out
    /// other rows does nothing (`rows_changed`).
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    preview: Option<BTreeMap<String, Hash>>,
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
    /// Every model has done it.
    Done,
    /// A model did not do it, and its rows may still be there; `models` says which and why.
    Failed,
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
    /// For a network whose encoder nothing bounds: an upper bound on the relative distance of its
    /// head to the optimum on the features of that encoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_bound: Option<f64>,
    /// The largest leverage of a row: how much of its own prediction it decided, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    leverage: Option<f64>,
    /// In a dry run: how far the parameters would move, as a part of their norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<f64>,
    /// In a dry run: the digest of the rows that would leave, for `preview` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
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
        (status = 207, description = "Done by some models and not by others", body = ErasureAnswer),
        (status = 202, description = "Written down; Location says where to ask", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
    request: Request,
) -> Result<Response, Problem> {
    caller.allow(Scope::Erase, Some(&name))?;
    state.models.find(&name)?;
    begin(&state, &caller, ErasureTarget::Model(name), request).await
}

/// Erases the rows of a person from every model.
#[utoipa::path(
    post, path = "/v1/erasures", tag = "erasures", security(("token" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A name for the request, up to 128 of A-Z a-z 0-9 . _ ~ -; the same request under the same key has one effect")),
    request_body = ErasureBody,
    responses((status = 200, description = "Done", body = ErasureAnswer),
        (status = 207, description = "Done by some models and not by others", body = ErasureAnswer),
        (status = 202, description = "Written down; Location says where to ask", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create_everywhere(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.allow(Scope::Erase, None)?;
    begin(&state, &caller, ErasureTarget::AllModels, request).await
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
    let found = answered(&state, &caller, &id).await?;
    if found.is_empty() {
        return Err(Problem::new(
            ProblemCode::NotFound,
            "there is no erasure of that id",
        ));
    }
    let status = if is_refused(&found) {
        ErasureStatus::Failed
    } else {
        ErasureStatus::Done
    };
    let models = found
        .into_iter()
        .map(|(model, receipt)| of_receipt(model, &receipt))
        .collect();
    Ok(Json(ErasureAnswer { id, status, models }))
}

/// Approves a request that another token asked for.
#[utoipa::path(
    post, path = "/v1/erasures/{id}/approval", tag = "erasures", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the erasure"), OpenErasureQuery),
    responses((status = 200, description = "Done", body = ErasureAnswer),
        (status = 207, description = "Done by some models and not by others", body = ErasureAnswer),
        (status = 202, description = "Approved, and being done", body = ErasureAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn approve(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
    query: Result<Query<OpenErasureQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let target = allow_open(&state, &caller, &id, Some(query))?;
    let patience = state.settings.limits.erasure_patience;
    let submitted = erasures::approve(&state, &id, &target, &caller, patience).await?;
    answer(id, submitted)
}

/// Takes back a request that waits for approval.
#[utoipa::path(
    delete, path = "/v1/erasures/{id}", tag = "erasures", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the erasure"), OpenErasureQuery),
    responses((status = 204, description = "Taken back"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn withdraw(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
    query: Result<Query<OpenErasureQuery>, QueryRejection>,
) -> Result<StatusCode, Problem> {
    let target = allow_open(&state, &caller, &id, Some(query))?;
    erasures::withdraw(&state, &id, &target).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The choice among open requests with the same id.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OpenErasureQuery {
    /// The model of the request; needed only where requests about several models have the same id.
    model: Option<String>,
}

/// Returns the state of a request that is not done yet; None for one about a model that the caller
/// may not see.
pub(super) fn open_state(state: &ServiceState, caller: &Caller, id: &str) -> Option<OpenState> {
    let mut open = state.open.find(id).into_iter();
    open.find(|(_, target)| sees(caller, target))
        .map(|(open, _)| open)
}

fn sees(caller: &Caller, target: &ErasureTarget) -> bool {
    match target {
        ErasureTarget::Model(name) => caller.sees(name),
        ErasureTarget::AllModels => true,
    }
}

/// Fails unless the caller may erase what an open request is about, and returns what that is.
/// Whoever may not see its model learns nothing of it.
pub(super) fn allow_open(
    state: &ServiceState,
    caller: &Caller,
    id: &str,
    query: Option<Result<Query<OpenErasureQuery>, QueryRejection>>,
) -> Result<ErasureTarget, Problem> {
    caller.allow_scope(Scope::Erase)?;
    let named = match query {
        Some(query) => query.map_err(|_| unreadable_query())?.0.model,
        None => None,
    };
    let mut open = state.open.find(id);
    open.retain(|(_, target)| sees(caller, target));
    if let Some(name) = named {
        open.retain(|(_, target)| *target == ErasureTarget::Model(name.clone()));
    }
    let target = match open.pop() {
        Some(_) if !open.is_empty() => {
            let detail = "requests about several models have this id; name one by `?model=`";
            return Err(Problem::new(ProblemCode::Refused, detail));
        }
        Some((_, target)) => target,
        None => ErasureTarget::AllModels,
    };
    match &target {
        ErasureTarget::Model(name) => caller.allow(Scope::Erase, Some(name))?,
        ErasureTarget::AllModels => caller.allow(Scope::Erase, None)?,
    }
    Ok(target)
}

pub(super) fn unreadable_query() -> Problem {
    Problem::invalid("the query of the path cannot be read")
}

/// The receipts of a request in the logs of the models that the caller may see.
pub(super) async fn answered(
    state: &Arc<ServiceState>,
    caller: &Caller,
    id: &str,
) -> Result<Vec<(String, Receipt)>, Problem> {
    let mut seen = state.models.all();
    seen.retain(|model| caller.sees(model.name()));
    let id = id.to_owned();
    let look = move || erasures::look_up(&seen, &id);
    state.settings.work.run(look).await.map_err(stopped)
}

/// Returns true if a model refused, so that its rows are still there.
pub(super) fn is_refused(receipts: &[(String, Receipt)]) -> bool {
    let refused = |receipt: &Receipt| receipt.outcome == RequestOutcome::Refused;
    receipts.iter().any(|(_, receipt)| refused(receipt))
}

async fn begin(
    state: &Arc<ServiceState>,
    caller: &Caller,
    target: ErasureTarget,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let body: ErasureBody = read_json(request).await?;
    let dry_run = body.dry_run;
    let order = order(state, caller, target, &headers, body)?;
    if dry_run {
        let models = alone(erasures::preview(state, &order).await?)?;
        return Ok(Json(ErasureAnswer {
            id: order.id,
            status: ErasureStatus::DryRun,
            models: models.into_iter().map(of_answer).collect(),
        })
        .into_response());
    }
    let id = order.id.clone();
    let submitted = accept(state, order, patience(state, &headers)).await?;
    answer(id, submitted)
}

/// Callers who wait no longer than this may be gone before a model has answered.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// Does a request, unless it waits already, or somebody else must approve it first.
pub(super) async fn accept(
    state: &Arc<ServiceState>,
    order: ErasureOrder,
    patience: Duration,
) -> Result<Submitted, Problem> {
    let key = KeyClaim::new(state, &order)?;
    if let Some(open) = state.open.state_of(&order) {
        return Ok(Submitted::Accepted(open));
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
    let models = erasures::models_of(state, &order.target)?;
    let id = order.id.clone();
    let found = state
        .settings
        .work
        .run(move || erasures::look_up(&models, &id))
        .await;
    Ok(!found.map_err(stopped)?.is_empty())
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
        expected_rows: body.preview,
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

/// The answers of the models; a request that one model alone answers, and does not do, is a problem
/// of its own.
fn alone(models: Vec<ModelAnswer>) -> Result<Vec<ModelAnswer>, Problem> {
    if let [model] = models.as_slice() {
        model.failure().map_or(Ok(()), Err)?;
    }
    Ok(models)
}

/// The answer over HTTP.
fn answer(id: String, submitted: Submitted) -> Result<Response, Problem> {
    match submitted {
        Submitted::Done(models) => {
            let models = alone(models)?;
            let (code, status) = if erasures::is_done(&models) {
                (StatusCode::OK, ErasureStatus::Done)
            } else {
                (StatusCode::MULTI_STATUS, ErasureStatus::Failed)
            };
            let models = models.into_iter().map(of_answer).collect();
            Ok((code, Json(ErasureAnswer { id, status, models })).into_response())
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

fn of_answer(found: ModelAnswer) -> ModelErasure {
    let problem = found.failure();
    let model = match found.answer {
        Ok(report) => of_report(found.model, report),
        Err(_) => ModelErasure::nothing(found.model),
    };
    match problem {
        // A claim about the model is no claim about this request.
        Some(problem) => ModelErasure {
            claim: None,
            bound: None,
            problem: Some(problem.details()),
            ..model
        },
        None => model,
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
        head_bound: report.evidence.head_bound.map(|head| head.relative_bound),
        leverage: report
            .evidence
            .largest_leverage
            .filter(|leverage| leverage.is_finite()),
        moved: report.moved,
        preview: report.rows_digest.map(|digest| digest.to_string()),
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
            head_bound: None,
            leverage: None,
            moved: None,
            preview: None,
            withdrawn: None,
            subject_opening: None,
            receipt: None,
            problem: None,
        }
    }
}
