//! Tokens at every path of the description: what a token for one model hears of another model, what is
//! read of a request that is not allowed, and what wrong secrets cost.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use common::wire::{RunningServer, read_to_end, status};
use common::{Asked, ask, fit_houses, get, post, settings, speaking_opendsr, token};
use efface_server::{Scope, Server};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

const ERASE: &str = "/v1/models/houses/erasures";

/// Requests to every path that the service describes, about these models and ids.
fn every_request(models: &[&str], ids: &[&str]) -> Vec<(Method, String, Value)> {
    let mut requests: Vec<(Method, String, Value)> = Vec::new();
    for (path, item) in &efface_server::description().paths.paths {
        let methods = [
            (Method::GET, &item.get),
            (Method::POST, &item.post),
            (Method::PATCH, &item.patch),
            (Method::DELETE, &item.delete),
        ];
        for (method, _) in methods.iter().filter(|(_, described)| described.is_some()) {
            for model in models {
                for id in ids {
                    let mut path = path.replace("{model}", model).replace("{id}", id);
                    if path.starts_with("/v1/log/") {
                        path.push_str(&format!("?model={model}&from=0&first=1&second=1"));
                    }
                    if path == "/data-deletions/v3.0" {
                        path.push_str(&format!("?token={model}"));
                    }
                    let request = (method.clone(), path.clone(), body_of(&path));
                    if !requests.contains(&request) {
                        requests.push(request);
                    }
                }
            }
        }
    }
    requests
}

/// A body that fits a path.
fn body_of(path: &str) -> Value {
    if path.contains("predictions") {
        json!({"cells": [[3, 80.5]]})
    } else if path.ends_with("/rows") {
        json!({"rows": [{"house": "h30", "owner": "o7", "rooms": 4, "area": 77, "price": 300}]})
    } else if path.contains("data-deletions") {
        json!({"distinct_ids": ["o1"]})
    } else if path.contains("opendsr") {
        json!({
            "subject_request_id": "a7551968-d5d6-44b2-9831-815ac9017798",
            "subject_request_type": "erasure",
            "submitted_time": "2018-10-02T15:00:00Z",
            "subject_identities": [{"identity_type": "email", "identity_value": "o1", "identity_format": "raw"}],
        })
    } else {
        json!({"rows": ["h30"]})
    }
}

async fn send(
    router: &Router,
    (method, path, body): (&Method, &str, &str),
    key: &str,
    token: &str,
) -> Asked {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", key)
        .header(header::AUTHORIZATION, format!("Bearer {token}"));
    ask(router, request.body(Body::from(body.to_owned())).unwrap()).await
}

/// Two models and the tokens of somebody who works with the first, and of those who may use the
/// second alone.
struct TwoTenants {
    _folder: tempfile::TempDir,
    router: Router,
    owner: String,
    others: Vec<String>,
}

impl TwoTenants {
    async fn open(owns: Option<&[&str]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fit_houses(folder.path(), "houses", 40);
        fit_houses(folder.path(), "second", 40);
        let owner = token(folder.path(), &Scope::ALL, owns);
        let one = |scope: Scope| token(folder.path(), &[scope], Some(&["second"]));
        let mut others: Vec<String> = Scope::ALL.into_iter().map(one).collect();
        others.push(token(folder.path(), &Scope::ALL, Some(&["second"])));
        let (mut settings, _) = speaking_opendsr(folder.path(), false);
        settings.tokens = Some(folder.path().join("tokens.json"));
        settings.approval_above = Some(3);
        settings.limits.requests_per_second = f64::MAX;
        let router = Server::start(settings).await.unwrap().router();
        Self {
            _folder: folder,
            router,
            owner,
            others,
        }
    }

    async fn erase(&self, token: &str, path: &str, body: Value, key: &str) -> Asked {
        post(&self.router, path, &body, Some(key), Some(token)).await
    }
}

#[tokio::test]
async fn a_token_hears_at_no_path_of_the_requests_for_models_of_others() {
    for owns in [None, Some(&["houses"][..])] {
        let quiet = TwoTenants::open(owns).await;
        let busy = TwoTenants::open(owns).await;
        let open = busy
            .erase(&busy.owner, ERASE, json!({"subject": "o1"}), "open")
            .await;
        assert_eq!(open.status, StatusCode::ACCEPTED);
        let done = busy
            .erase(&busy.owner, ERASE, json!({"rows": ["h9"]}), "done")
            .await;
        let receipt = done.json()["models"][0]["receipt"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let ids = ["open", "done", receipt.as_str(), "never"];
        for (method, path, body) in every_request(&["houses", "second"], &ids) {
            let body = body.to_string();
            let keys: &[&str] = match method {
                Method::POST => &["open", "done", "never"],
                _ => &["never"],
            };
            for key in keys {
                for (here, there) in busy.others.iter().zip(&quiet.others) {
                    let asked = (&method, path.as_str(), body.as_str());
                    let here = send(&busy.router, asked, key, here).await;
                    let there = send(&quiet.router, asked, key, there).await;
                    let told = |answer: &Asked| {
                        let problem = serde_json::from_slice::<Value>(&answer.bytes);
                        let problem = problem.unwrap_or_default();
                        (
                            answer.status,
                            problem["code"].clone(),
                            problem["detail"].clone(),
                        )
                    };
                    assert_eq!(told(&here), told(&there), "{method} {path} {key}");
                }
            }
        }
        let shown = get(&busy.router, "/v1/erasures/open", Some(&busy.owner)).await;
        assert_eq!(shown.json()["status"], "awaiting_approval");
    }
}

#[tokio::test]
async fn the_body_of_a_request_that_is_not_allowed_is_not_read() {
    let tenants = TwoTenants::open(None).await;
    for (method, path, body) in every_request(&["houses", "second"], &["never"]) {
        if !matches!(method, Method::POST | Method::PATCH) {
            continue;
        }
        let mut allowed = 0;
        for who in tenants.others.iter().chain([&tenants.owner]) {
            let good = body.to_string();
            let good = send(&tenants.router, (&method, &path, &good), "never", who).await;
            for broken in ["{", "", "[1]", "{\"rows\": 1}", "\u{feff}"] {
                let broken = send(&tenants.router, (&method, &path, broken), "never", who).await;
                if good.status == StatusCode::FORBIDDEN {
                    let (good, broken) = (good.json(), broken.json());
                    assert_eq!(good["detail"], broken["detail"], "{method} {path}");
                }
            }
            allowed += u32::from(good.status != StatusCode::FORBIDDEN);
        }
        assert!(allowed > 0, "nobody may use {method} {path}");
    }
}

/// Sends a request from an address of this machine.
async fn ask_from(server: &RunningServer, from: [u8; 4], token: &str) -> Option<u16> {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let head = format!(
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    status(&read_to_end(&mut stream).await)
}

/// A token with another secret.
fn with_wrong_secret(token: &str, at: usize) -> String {
    let (start, secret) = token.split_at(token.len() - 64);
    let wrong = format!("{:0>64}", format!("{:x}", at + 1));
    assert_ne!(secret, wrong);
    format!("{start}{wrong}")
}

async fn slow_hashes(server: &RunningServer, admin: &str) -> u64 {
    let head = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {admin}");
    let text = server.ask(&head, "").await;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("efface_token_hashes_total "));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn wrong_secrets_keep_no_token_waiting() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let admin = token(folder.path(), &[Scope::Admin], None);
    let fresh = token(folder.path(), &[Scope::Audit], None);
    let later = token(folder.path(), &[Scope::Audit], None);
    let path = folder.path().join("tokens.json");
    let mut settings = settings(folder.path());
    settings.tokens = Some(path.clone());
    let here = [127, 0, 0, 1];
    let server = RunningServer::start(settings.clone()).await;
    let before = slow_hashes(&server, &admin).await;
    for at in 0..300 {
        let wrong = with_wrong_secret(&fresh, at);
        assert_eq!(ask_from(&server, here, &wrong).await, Some(401));
    }
    assert_eq!(
        slow_hashes(&server, &admin).await,
        before,
        "a wrong secret was hashed slowly"
    );
    assert_eq!(ask_from(&server, here, &fresh).await, Some(200));
    assert_eq!(slow_hashes(&server, &admin).await, before + 1);
    server.stop().await;

    // Tokens of earlier versions have nothing to tell wrong secrets by: each client has its share.
    let mut records: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for record in records.as_array_mut().unwrap() {
        record.as_object_mut().unwrap().remove("check").unwrap();
    }
    std::fs::write(&path, records.to_string()).unwrap();
    // One hash, and none after that for as long as a test runs.
    settings.limits.token_hashes_per_second = 1e-9;
    let server = RunningServer::start(settings).await;
    assert_eq!(ask_from(&server, here, &fresh).await, Some(200));
    for at in 0..60 {
        let wrong = with_wrong_secret(&fresh, at);
        assert_eq!(ask_from(&server, here, &wrong).await, Some(429));
        assert_eq!(
            ask_from(&server, here, &fresh).await,
            Some(200),
            "a known token waits"
        );
    }
    assert_eq!(
        ask_from(&server, [127, 0, 0, 2], &later).await,
        Some(200),
        "another client waits"
    );
    server.stop().await;
}
