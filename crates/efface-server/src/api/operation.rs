//! What runs the service asks: whether it lives, whether it is ready, what it counts.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// Says that the server lives.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "It lives", body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "alive\n"
}

/// Says whether the server has models to serve.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "It is ready", body = String, content_type = "text/plain"),
    (status = 503, description = "No model can be served", body = String, content_type = "text/plain")))]
pub(super) async fn ready(State(state): State<Arc<ServiceState>>) -> (StatusCode, &'static str) {
    let working = state.models.all().iter().all(|model| model.is_working());
    if state.models.all().is_empty() || !working {
        return (StatusCode::SERVICE_UNAVAILABLE, "no model can be served\n");
    }
    (StatusCode::OK, "ready\n")
}

/// Gives the counters in the text form of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(("token" = [])), responses(
    (status = 200, description = "The counters", body = String, content_type = "application/openmetrics-text"),
    (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn metrics(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
) -> Result<Response, Problem> {
    caller.allow(Scope::Admin, None)?;
    let text = state.metrics.text();
    let text =
        text.map_err(|_| Problem::new(ProblemCode::Internal, "the counters could not be written"))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
