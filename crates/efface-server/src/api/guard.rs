//! What every request passes: a name, a clock, headers that keep browsers safe, and a line in the log that names nobody.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};

/// Answers before the time of a request is over.
pub(super) async fn in_time(
    State(state): State<Arc<ServiceState>>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(state.settings.limits.request_time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            Problem::new(ProblemCode::RequestTimeout, "the request was not done in time").into_response()
        }
    }
}

/// The answer to a request that met a mistake of ours. What the panic says may hold a row, and goes nowhere.
pub(super) fn after_panic(_: Box<dyn Any + Send>) -> Response {
    Problem::new(ProblemCode::Internal, "the request met a mistake in the server").into_response()
}

/// Counts a request, writes a line to the log, and adds the headers that every answer has.
pub(super) async fn observe(
    State(state): State<Arc<ServiceState>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    // The pattern and not the path: a path may hold the name of a row or a person.
    let path = request.extensions().get::<MatchedPath>().map_or("other", |path| path.as_str()).to_owned();
    let number = request_number();
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    state.metrics.request(&path, status, started.elapsed());
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(request = number, %method, path, status, micros, "request");
    let headers = response.headers_mut();
    if let Ok(number) = HeaderValue::from_str(&number) {
        headers.insert(HeaderName::from_static("x-request-id"), number);
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

/// A name for a request, the same in the answer and in the log.
fn request_number() -> String {
    let mut bytes = [0_u8; 8];
    // Without random numbers requests go on, with a name that is not unique.
    let _ = getrandom::fill(&mut bytes);
    data_encoding::HEXLOWER.encode(&bytes)
}
