//! Spans of requests, as a collector of OpenTelemetry gets them: `cargo test -p efface-server
//! --features otel --test telemetry`. The collector is one of the test's own that keeps the bytes;
//! spans are protobuf, in which texts stand as they are.

#![cfg(feature = "otel")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use common::wire::RunningServer;
use common::{fit_houses, settings, token};
use efface_server::{Scope, Server};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Somebody who takes spans and shows them.
async fn collector() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Bytes)>) {
    let (tell, came) = mpsc::unbounded_channel();
    let take = move |headers: HeaderMap, body: Bytes| async move {
        tell.send((headers, body)).unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        axum::serve(listener, Router::new().route("/v1/traces", post(take))).await
    });
    (address, came)
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_a_collector_and_name_nobody() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let secret = token(folder.path(), &[Scope::Admin], None);
    let (address, mut came) = collector().await;
    let mut settings = settings(folder.path());
    settings.tokens = Some(folder.path().join("tokens.json"));
    settings.collector = Some(address);
    let server = RunningServer::start(settings).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let head = format!(
        "POST /v1/models/houses/erasures HTTP/1.1\r\nAuthorization: Bearer {secret}\r\nIdempotency-Key: case-77\r\n\
         Content-Type: application/json\r\ntraceparent: 00-{trace}-b7ad6b7169203331-01"
    );
    let answer = server.ask(&head, r#"{"subject": "o3"}"#).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.ask("GET /nowhere/o3 HTTP/1.1", "").await;
    // What is not sent yet is sent when the server stops.
    server.stop().await;
    let (headers, bytes) = tokio::time::timeout(Duration::from_secs(20), came.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(headers["content-type"], "application/x-protobuf");
    for part in [
        "efface",
        "POST /v1/models/{model}/erasures",
        "http.response.status_code",
        "GET other",
    ] {
        assert!(holds(&bytes, part.as_bytes()), "{part} is in no span");
    }
    let trace = data_encoding::HEXLOWER.decode(trace.as_bytes()).unwrap();
    assert!(
        holds(&bytes, &trace),
        "the span is not part of the caller's trace"
    );
    for name in ["o3", "case-77", "houses", secret.as_str(), "localhost"] {
        assert!(!holds(&bytes, name.as_bytes()), "{name} is in a span");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_stops_nothing_and_one_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut settings = settings(folder.path());
    settings.collector = Some("https://collector.example:4318".into());
    let refused = Server::start(settings.clone())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("http://HOST:PORT"), "{refused}");
    // Nobody listens on the port of a socket that was closed.
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    settings.collector = Some(format!("http://{closed}"));
    let server = RunningServer::start(settings).await;
    let answer = server.ask("GET /v1/models HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.stop().await;
}
