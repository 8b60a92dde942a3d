//! Deletions in the form of Mixpanel's GDPR API (version 3), which tools that delete people
//! everywhere already speak. The project token of that API is the name of a model here; without
//! one, people are erased from all models.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::body::read_json;
use super::erasures::{accept, allow_open, answered, is_refused, open_state, unreadable_query};
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::erasures::{self, ErasureOrder, ErasureTarget, OpenState, RowChoice};
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// People in one request, as there.
const MOST_PEOPLE: usize = 2000;

/// Which project.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ProjectQuery {
    /// The name of the model; all models without one.
    token: Option<String>,
}

/// A deletion.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct DeletionBody {
    /// The people, as the subject columns name them.
    #[schema(min_items = 1, max_items = 2000)]
    distinct_ids: Vec<String>,
    /// `GDPR` or `CCPA`; GDPR unless this says otherwise.
    compliance_type: Option<String>,
}

/// A deletion that was taken in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletionCreated {
    status: &'static str,
    results: DeletionTask,
}

/// The id by which a deletion is asked after.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletionTask {
    task_id: String,
}

/// Where a deletion stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletionStanding {
    status: &'static str,
    results: DeletionJob,
}

/// A deletion. The people are not named: the server forgets them with the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletionJob {
    tracking_id: String,
    /// `PENDING`, `STARTED`, `SUCCESS` or `FAILURE`: a model refused, and its rows are still there.
    status: &'static str,
    requesting_user: String,
    compliance_type: &'static str,
    project_id: u64,
    date_requested: String,
    distinct_ids: Vec<String>,
}

/// Deletes people.
#[utoipa::path(
    post, path = "/data-deletions/v3.0", tag = "data-deletions", params(ProjectQuery), security(("token" = [])),
    request_body = DeletionBody,
    responses((status = 201, description = "Taken in", body = DeletionCreated),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    query: Result<Query<ProjectQuery>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<(StatusCode, Json<DeletionCreated>), Problem> {
    caller.allow_scope(Scope::Erase)?;
    let Query(query) = query.map_err(|_| unreadable_query())?;
    let target = match query.token {
        Some(name) => {
            caller.allow(Scope::Erase, Some(&name))?;
            state.models.find(&name)?;
            ErasureTarget::Model(name)
        }
        None => {
            caller.allow(Scope::Erase, None)?;
            ErasureTarget::AllModels
        }
    };
    let body: DeletionBody = read_json(request).await?;
    let people = body.distinct_ids;
    if people.is_empty()
        || people.len() > MOST_PEOPLE
        || people.iter().any(|person| person.trim().is_empty())
    {
        return Err(Problem::invalid(format!(
            "distinct_ids must be 1 to {MOST_PEOPLE} ids, none of them empty"
        )));
    }
    let regulation = match body.compliance_type.as_deref().unwrap_or("GDPR") {
        kind if kind.eq_ignore_ascii_case("gdpr") => "gdpr",
        kind if kind.eq_ignore_ascii_case("ccpa") => "ccpa",
        _ => return Err(Problem::invalid("compliance_type must be GDPR or CCPA")),
    };
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Problem::new(ProblemCode::Internal, "the system gives no random numbers"))?;
    // The regulation is in the id, because nothing else of the request is kept.
    let id = format!("{regulation}-{}", data_encoding::HEXLOWER.encode(&bytes));
    let order = ErasureOrder {
        id: id.clone(),
        target,
        rows: RowChoice::Subjects(people),
        method: efface::Method::default(),
        allow_worse: false,
        allow_missing: true,
        requested_at: None,
        asked_by: caller.id().to_owned(),
        needs_approval: false,
        approved_by: None,
        callbacks: Vec::new(),
        expected_rows: None,
    };
    accept(&state, order, Duration::ZERO).await?;
    Ok((
        StatusCode::CREATED,
        Json(DeletionCreated {
            status: "ok",
            results: DeletionTask { task_id: id },
        }),
    ))
}

/// Says where a deletion stands.
#[utoipa::path(
    get, path = "/data-deletions/v3.0/{id}", tag = "data-deletions", security(("token" = [])),
    params(("id" = String, Path, description = "The task_id")),
    responses((status = 200, description = "Where it stands", body = DeletionStanding),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn show(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Json<DeletionStanding>, Problem> {
    caller
        .allow(Scope::Audit, None)
        .or_else(|_| caller.allow(Scope::Erase, None))?;
    let mut date_requested = String::new();
    let status = match open_state(&state, &caller, &id) {
        Some(OpenState::AwaitingApproval { .. }) => "PENDING",
        Some(OpenState::Running) => "STARTED",
        None => {
            let found = answered(&state, &caller, &id).await?;
            let unknown = || Problem::new(ProblemCode::NotFound, "there is no deletion of that id");
            date_requested = found
                .first()
                .ok_or_else(unknown)?
                .1
                .times
                .received_at
                .to_string();
            if is_refused(&found) {
                "FAILURE"
            } else {
                "SUCCESS"
            }
        }
    };
    let results = DeletionJob {
        compliance_type: if id.starts_with("ccpa-") {
            "CCPA"
        } else {
            "GDPR"
        },
        tracking_id: id,
        status,
        requesting_user: caller.id().to_owned(),
        project_id: 0,
        date_requested,
        distinct_ids: Vec::new(),
    };
    Ok(Json(DeletionStanding {
        status: "ok",
        results,
    }))
}

/// Cancels a deletion that waits for approval.
#[utoipa::path(
    delete, path = "/data-deletions/v3.0/{id}", tag = "data-deletions", security(("token" = [])),
    params(("id" = String, Path, description = "The task_id")),
    responses((status = 204, description = "Cancelled"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn cancel(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<StatusCode, Problem> {
    let target = allow_open(&state, &caller, &id, None)?;
    erasures::withdraw(&state, &id, &target).await?;
    Ok(StatusCode::NO_CONTENT)
}
