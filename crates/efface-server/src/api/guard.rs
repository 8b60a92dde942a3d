//! What every request passes: a name, a clock, headers that keep browsers safe, and a line in the
//! log that names nobody.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
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
        Err(_) => Problem::new(
            ProblemCode::RequestTimeout,
            "the request was not done in time",
        )
        .into_response(),
    }
}

/// Refuses by its head what need not be read: a body that is announced to be too large, and what a
/// page of another site made a browser send.
pub(super) async fn admit(
    State(state): State<Arc<ServiceState>>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().size_hint().lower() > state.settings.limits.body_bytes as u64 {
        let detail = "the body is larger than this server takes";
        return Problem::new(ProblemCode::BodyTooLarge, detail).into_response();
    }
    match foreign(&state, &request) {
        Some(detail) => Problem::new(ProblemCode::CrossSite, detail).into_response(),
        None => next.run(request).await,
    }
}

/// Why a request is taken for one of another site; None for one that is not. Programs send none of
/// the headers that this looks at.
fn foreign(state: &ServiceState, request: &Request) -> Option<&'static str> {
    let header = |name: HeaderName| {
        request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = header(header::HOST).or_else(|| request.uri().host());
    // Without tokens, whoever reaches the server may do everything. A site can have its own name
    // resolve to this machine; its pages then are of the same origin as ours, and only the name
    // tells them apart.
    let is_open = state.tokens.is_none() && state.settings.listen.ip().is_loopback();
    if is_open && host.is_some_and(|host| !is_this_machine(host)) {
        return Some(
            "without tokens the server answers under localhost and addresses of this machine alone",
        );
    }
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let detail = "a page of another site sent the request";
    match (
        header(HeaderName::from_static("sec-fetch-site")),
        header(header::ORIGIN),
    ) {
        (Some("same-origin" | "none"), _) | (None, None) => None,
        (Some(_), _) => Some(detail),
        // A browser that is too old to say where the request comes from, or plain HTTP.
        (None, Some(origin)) => {
            let origin = origin.split_once("://").map(|(_, host)| host);
            let same = origin
                .zip(host)
                .is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host));
            (!same).then_some(detail)
        }
    }
}

/// Whether a Host header names this machine, with or without a port.
fn is_this_machine(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let plain = without_port.trim_start_matches('[').trim_end_matches(']');
    let address = plain.parse::<std::net::IpAddr>();
    plain.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The answer to a request that met a mistake of ours. What the panic says may hold a row, and goes
/// nowhere.
pub(super) fn after_panic(_: Box<dyn Any + Send>) -> Response {
    Problem::new(
        ProblemCode::Internal,
        "the request met a mistake in the server",
    )
    .into_response()
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
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("other", |path| path.as_str())
        .to_owned();
    let number = request_number();
    let tracer = state.tracer.as_ref();
    let span = tracer.map(|tracer| tracer.begin(&method, &path, request.headers()));
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    state.metrics.request(&path, status, started.elapsed());
    if let Some(span) = span {
        span.end(status);
    }
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
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'",
        ));
    response
}

/// A name for a request, the same in the answer and in the log.
fn request_number() -> String {
    let mut bytes = [0_u8; 8];
    // Without random numbers requests go on, with a name that is not unique.
    let _ = getrandom::fill(&mut bytes);
    data_encoding::HEXLOWER.encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::is_this_machine;

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:80",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "10.0.0.1",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
