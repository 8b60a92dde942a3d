//! Callbacks as their receivers see them, and where they must not go.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use common::receiver::CallbackReceiver;
use common::wire::{RunningServer, status};
use common::{fit_houses, get, post, settings};
use efface_receipt::{PublicKey, Signature};
use efface_server::{CallbackSettings, Server, ServerSettings};
use serde_json::{Value, json};

const GOOD: &str = "HTTP/1.1 200 OK";

/// A folder's settings with callbacks to these hosts.
fn calling(folder: &Path, hosts: &[String], allow_private: bool) -> ServerSettings {
    let mut settings = settings(folder);
    let mut callbacks =
        CallbackSettings::new(hosts.iter().map(|host| host.parse().unwrap()).collect());
    callbacks.allow_private = allow_private;
    settings.callbacks = Some(callbacks);
    settings
}

/// Erases rows and asks for a callback.
async fn erase(server: &RunningServer, row: &str, url: &str) -> String {
    let body = json!({"rows": [row], "callback_url": url}).to_string();
    let head = format!(
        "POST /v1/models/houses/erasures HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: case-{row}"
    );
    server.ask(&head, body).await
}

/// The callbacks that have not arrived, as soon as there is one that failed.
async fn failed(server: &RunningServer) -> Value {
    let waiting = async {
        loop {
            let answer = server.ask("GET /v1/callbacks HTTP/1.1", "").await;
            let list: Value =
                serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            if list["callbacks"][0]["attempts"].as_u64().unwrap_or(0) > 0 {
                return list["callbacks"][0].clone();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap()
}

/// Waits until no callback is left.
async fn none_left(router: &Router) {
    let waiting = async {
        while get(router, "/v1/callbacks", None).await.json()["callbacks"] != json!([]) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_callback_is_a_signed_webhook_that_names_the_receipt_and_no_row() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut receiver = CallbackReceiver::start(&[GOOD]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let server =
        RunningServer::start(calling(folder.path(), std::slice::from_ref(&host), true)).await;
    let answer = erase(&server, "h7", &format!("{host}/hooks?team=privacy")).await;
    assert_eq!(status(&answer), Some(200), "{answer}");
    let done: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();

    let came = receiver.next().await;
    assert!(
        came.head.starts_with("POST /hooks?team=privacy HTTP/1.1"),
        "{}",
        came.head
    );
    let told: Value = serde_json::from_str(&came.body).unwrap();
    assert_eq!(
        (told["type"].as_str(), told["data"]["id"].as_str()),
        (Some("erasure.done"), Some("case-h7"))
    );
    assert_eq!(
        told["data"]["models"][0]["receipt"]["id"],
        done["models"][0]["receipt"]["id"]
    );
    assert!(
        !came.body.contains("\"h7\""),
        "a row is named: {}",
        came.body
    );

    let list = server.ask("GET /v1/callbacks HTTP/1.1", "").await;
    let list: Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let key = list["public_key"]
        .as_str()
        .unwrap()
        .strip_prefix("whpk_")
        .unwrap();
    let key: [u8; 32] = data_encoding::BASE64
        .decode(key.as_bytes())
        .unwrap()
        .try_into()
        .unwrap();
    let key = PublicKey::from_bytes("callbacks", &key).unwrap();
    let signature = came
        .header("webhook-signature")
        .unwrap()
        .strip_prefix("v1a,")
        .unwrap();
    let signature = Signature(
        data_encoding::BASE64
            .decode(signature.as_bytes())
            .unwrap()
            .try_into()
            .unwrap(),
    );
    let id = came.header("webhook-id").unwrap();
    let time = came.header("webhook-timestamp").unwrap();
    assert!(key.verifies(format!("{id}.{time}.{}", came.body).as_bytes(), &signature));
    assert!(!key.verifies(format!("{id}.{time}.{} ", came.body).as_bytes(), &signature));
    server.stop().await;
}

#[tokio::test]
async fn what_did_not_arrive_is_kept_in_a_list_and_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut receiver = CallbackReceiver::start(&["HTTP/1.1 500 Oh", GOOD]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let server =
        RunningServer::start(calling(folder.path(), std::slice::from_ref(&host), true)).await;
    erase(&server, "h1", &format!("{host}/")).await;
    let first = receiver.next().await;
    let kept = failed(&server).await;
    assert_eq!(
        (kept["last_failure"].as_str(), kept["given_up"].as_bool()),
        (Some("status 500"), Some(false))
    );
    assert!(kept["next_at"].as_str() > kept["created_at"].as_str());
    let id = kept["id"].as_str().unwrap();
    let again = server
        .ask(&format!("POST /v1/callbacks/{id}/retry HTTP/1.1"), "")
        .await;
    assert_eq!(status(&again), Some(202), "{again}");
    let second = receiver.next().await;
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.body, second.body);
    server.stop().await;
    let router = Server::start(calling(folder.path(), &[host], true))
        .await
        .unwrap()
        .router();
    none_left(&router).await;
}

#[tokio::test]
async fn redirects_are_not_followed_and_gone_is_final() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut inside = CallbackReceiver::start(&[GOOD]).await;
    let moved = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{}/secret",
        inside.port
    );
    let mut receiver = CallbackReceiver::start(&[&moved, "HTTP/1.1 410 Gone"]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let server =
        RunningServer::start(calling(folder.path(), std::slice::from_ref(&host), true)).await;
    erase(&server, "h1", &format!("{host}/")).await;
    receiver.next().await;
    let kept = failed(&server).await;
    assert_eq!(kept["last_failure"], "status 302");
    assert!(inside.is_untouched(), "a redirect was followed");
    let id = kept["id"].as_str().unwrap();
    server
        .ask(&format!("POST /v1/callbacks/{id}/retry HTTP/1.1"), "")
        .await;
    receiver.next().await;
    let waiting = async {
        loop {
            let kept = failed(&server).await;
            if kept["given_up"] == true {
                return kept;
            }
        }
    };
    let kept = tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
    assert_eq!(kept["last_failure"], "status 410");
    let gone = server
        .ask(&format!("DELETE /v1/callbacks/{id} HTTP/1.1"), "")
        .await;
    assert_eq!(status(&gone), Some(204));
    let unknown = server
        .ask(&format!("DELETE /v1/callbacks/{id} HTTP/1.1"), "")
        .await;
    assert_eq!(status(&unknown), Some(404));
    server.stop().await;
}

#[tokio::test]
async fn callbacks_go_to_named_hosts_and_not_to_the_inside_of_a_network() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut receiver = CallbackReceiver::start(&[GOOD]).await;
    let port = receiver.port;
    // The first is an address, the second a name that resolves to one of this machine.
    let hosts = [
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
    ];
    let server = RunningServer::start(calling(folder.path(), &hosts, false)).await;
    for (row, host) in ["h1", "h2"].into_iter().zip(&hosts) {
        assert_eq!(
            status(&erase(&server, row, &format!("{host}/")).await),
            Some(200)
        );
        let kept = failed(&server).await;
        let reason = kept["last_failure"].as_str().unwrap();
        assert!(reason.contains("private address"), "{reason}");
        let id = kept["id"].as_str().unwrap();
        server
            .ask(&format!("DELETE /v1/callbacks/{id} HTTP/1.1"), "")
            .await;
    }
    assert!(receiver.is_untouched(), "a private address was called");
    let refused = [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        format!("http://[::1]:{port}/"),
        format!("http://127.0.0.1:{}/", port.wrapping_add(1)),
        format!("https://127.0.0.1:{port}/"),
        format!("http://localhost:{port}@evil.example/"),
        "gopher://localhost/".to_owned(),
        "not a URL".to_owned(),
    ];
    for url in refused {
        let answer = erase(&server, "h3", &url).await;
        assert_eq!(status(&answer), Some(400), "{url}: {answer}");
    }
    server.stop().await;
    // A server that was told of no host sends none.
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    let body = json!({"rows": ["h3"], "callback_url": format!("http://127.0.0.1:{port}/")});
    let answer = post(&router, "/v1/models/houses/erasures", &body, None, None).await;
    assert_eq!(answer.status.as_u16(), 400);
    assert_eq!(
        get(&router, "/v1/callbacks", None).await.status.as_u16(),
        404
    );
    assert_eq!(
        get(&router, "/v1/models/houses", None).await.json()["rows"],
        38,
        "a refused request was done"
    );
}

#[tokio::test]
async fn a_restart_goes_on_with_what_was_not_delivered() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut receiver = CallbackReceiver::start(&[GOOD]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let settings = calling(folder.path(), std::slice::from_ref(&host), true);
    // A server that does requests and ends before it sends anything, as if it had been killed.
    let router = Server::start(settings.clone()).await.unwrap().router();
    let body = json!({"rows": ["h1"], "callback_url": format!("{host}/")});
    let done = post(
        &router,
        "/v1/models/houses/erasures",
        &body,
        Some("case-1"),
        None,
    )
    .await
    .json();
    assert!(receiver.is_untouched());
    drop(router);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("inbox"))
        .unwrap()
        .collect();
    assert!(
        left.is_empty(),
        "a request that is done is still in the inbox"
    );

    let server = RunningServer::start(settings).await;
    let came = receiver.next().await;
    let told: Value = serde_json::from_str(&came.body).unwrap();
    assert_eq!(
        told["data"]["models"][0]["receipt"]["id"],
        done["models"][0]["receipt"]["id"]
    );
    server.stop().await;
}

#[tokio::test]
async fn certificates_of_receivers_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let mut receiver = CallbackReceiver::start_with(&[GOOD], Some(Arc::new(config).into())).await;
    let authority = folder.path().join("receivers.pem");
    std::fs::write(&authority, cert.pem()).unwrap();
    let hosts = [
        format!("localhost:{}", receiver.port),
        format!("127.0.0.1:{}", receiver.port),
    ];
    let mut settings = calling(folder.path(), &hosts, true);
    let strangers = settings.clone();
    settings.callbacks.as_mut().unwrap().authority = Some(authority);
    let server = RunningServer::start(settings).await;
    erase(&server, "h1", &format!("https://{}/", hosts[0])).await;
    assert!(receiver.next().await.body.contains("erasure.done"));
    // The certificate is not for the address.
    erase(&server, "h2", &format!("https://{}/", hosts[1])).await;
    let kept = failed(&server).await;
    assert!(
        kept["last_failure"].as_str().unwrap().contains("TLS"),
        "{kept}"
    );
    server.stop().await;
    // Nobody trusts the authority.
    let server = RunningServer::start(strangers).await;
    erase(&server, "h3", &format!("https://{}/", hosts[0])).await;
    let kept = failed(&server).await;
    assert!(
        kept["last_failure"].as_str().unwrap().contains("TLS"),
        "{kept}"
    );
    assert!(receiver.is_untouched());
    server.stop().await;
}
