//! Callbacks that have not arrived.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use efface_receipt::Time;
use serde::Serialize;
use utoipa::ToSchema;

use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::callbacks::{CallbackDelivery, CallbackDesk};
use crate::problem::{Problem, ProblemCode, ProblemDetails};
use crate::work::WorkLost;

/// Callbacks that have not arrived, and the key that receivers check signatures with.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallbackList {
    /// The public key in the form of Standard Webhooks: `whpk_` and base64.
    public_key: String,
    callbacks: Vec<CallbackEntry>,
}

/// A callback that has not arrived.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallbackEntry {
    /// Its id, the same in the header `webhook-id` of every attempt.
    id: String,
    url: String,
    /// Whether no attempt follows: the dead letters.
    given_up: bool,
    attempts: u32,
    /// What the last attempt met.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Time>,
    /// When it is tried next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
}

impl CallbackEntry {
    fn of(delivery: CallbackDelivery) -> Self {
        let time = |milliseconds: u64| {
            i64::try_from(milliseconds)
                .ok()
                .and_then(Time::from_unix_milliseconds)
        };
        Self {
            id: delivery.id,
            url: delivery.target.url,
            given_up: delivery.next_at.is_none(),
            attempts: delivery.attempts,
            last_failure: delivery.last_failure,
            created_at: time(delivery.created_at),
            next_at: delivery.next_at.and_then(time),
        }
    }
}

/// Lists the callbacks that have not arrived.
#[utoipa::path(
    get, path = "/v1/callbacks", tag = "callbacks", security(("token" = [])),
    responses((status = 200, description = "The callbacks", body = CallbackList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn list(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
) -> Result<Json<CallbackList>, Problem> {
    let desk = desk(&state, &caller)?;
    let callbacks = desk.all().into_iter().map(CallbackEntry::of).collect();
    Ok(Json(CallbackList {
        public_key: desk.public_key(),
        callbacks,
    }))
}

/// Sends a callback again.
#[utoipa::path(
    post, path = "/v1/callbacks/{id}/retry", tag = "callbacks", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the callback")),
    responses((status = 202, description = "It is sent soon"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn retry(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<StatusCode, Problem> {
    let desk = desk(&state, &caller)?;
    state
        .settings
        .work
        .run(move || desk.retry(&id))
        .await
        .map_err(stopped)??;
    Ok(StatusCode::ACCEPTED)
}

/// Gives a callback up.
#[utoipa::path(
    delete, path = "/v1/callbacks/{id}", tag = "callbacks", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the callback")),
    responses((status = 204, description = "It is not sent again"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn give_up(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<StatusCode, Problem> {
    let desk = desk(&state, &caller)?;
    state
        .settings
        .work
        .run(move || desk.remove(&id))
        .await
        .map_err(stopped)??;
    Ok(StatusCode::NO_CONTENT)
}

fn desk(state: &ServiceState, caller: &Caller) -> Result<Arc<CallbackDesk>, Problem> {
    caller.allow(Scope::Admin, None)?;
    let none = || Problem::new(ProblemCode::NotFound, "this server sends no callbacks");
    state.callbacks.clone().ok_or_else(none)
}

fn stopped(_: WorkLost) -> Problem {
    Problem::new(
        ProblemCode::Internal,
        "the thread that writes callbacks down has stopped",
    )
}
