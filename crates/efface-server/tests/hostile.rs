//! Requests that mean harm, over a real socket: each gets a clear refusal or a closed connection,
//! and changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use common::wire::{RunningServer, read_to_end, status};
use common::{fit_houses, settings, token};
use efface_server::{Scope, ServerSettings, TokenGrant, TokenStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const ERASE: &str = "POST /v1/models/houses/erasures HTTP/1.1";
const JSON: &str = "Content-Type: application/json";

/// A server over one model, with limits that a test can wait for.
async fn small_server(
    folder: &std::path::Path,
    change: impl FnOnce(&mut ServerSettings),
) -> RunningServer {
    fit_houses(folder, "houses", 40);
    let mut settings = settings(folder);
    settings.limits.head_time = Duration::from_millis(200);
    settings.limits.request_time = Duration::from_millis(400);
    settings.limits.body_bytes = 10_000;
    change(&mut settings);
    RunningServer::start(settings).await
}

/// Rows that are left in the model.
async fn rows_left(server: &RunningServer) -> u64 {
    let answer = server.ask("GET /v1/models/houses HTTP/1.1", "").await;
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str::<serde_json::Value>(body).unwrap()["rows"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn whoever_sends_or_reads_too_slowly_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |settings| settings.limits.connections = 4).await;
    let slow_heads: [&[u8]; 5] = [
        b"",
        b"POST /v1/models/houses/erasures HTT",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        // The beginning of HTTP/2, which is spoken over TLS alone.
        b"PRI * HTTP/2.0\r\n",
        // A second request on the same connection that never comes.
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    for begun in slow_heads {
        let answer = server.send(begun).await;
        let expected = if begun.starts_with(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") {
            Some(200)
        } else {
            None
        };
        let refused = status(&answer).is_some_and(|status| (400..500).contains(&status));
        assert!(
            status(&answer) == expected || refused,
            "{begun:?}: {answer}"
        );
    }
    // A body that never ends, in both forms.
    let body =
        format!("{ERASE}\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 500\r\n\r\n{{\"rows\"");
    assert_eq!(status(&server.send(body).await), Some(408));
    let chunks = format!(
        "{ERASE}\r\nHost: localhost\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{\"row"
    );
    assert_eq!(status(&server.send(chunks).await), Some(408));
    // Four who ask for long answers and never read take all places, until they are let go.
    let asked = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2000);
    let mut deaf = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let _ = tokio::time::timeout(
            Duration::from_millis(300),
            stream.write_all(asked.as_bytes()),
        )
        .await;
        deaf.push(stream);
    }
    assert_eq!(rows_left(&server).await, 40);
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_too_deep_or_nonsense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |_| {}).await;
    let json = format!("{ERASE}\r\n{JSON}");
    let large = format!("{{\"rows\": [\"{}\"]}}", "x".repeat(20_000));
    let deep = format!("{{\"rows\": {}", "[".repeat(9_000));
    let cases: [(&str, &[u8], u16); 9] = [
        (&json, large.as_bytes(), 413),
        (&json, deep.as_bytes(), 400),
        (&json, b"{\"rows\": [\"h1\xff\xfe\"]}", 400),
        (&json, b"{\"rows\": {\"h1\": true}}", 400),
        (&json, b"{\"rows\": [1, 2]}", 400),
        (&json, b"\x00\x01\x02", 400),
        (&json, b"", 400),
        (ERASE, b"{\"rows\": [\"h1\"]}", 415),
        (
            &format!("{ERASE}\r\nContent-Type: application/x-www-form-urlencoded"),
            b"rows=h1",
            415,
        ),
    ];
    for (head, body, expected) in cases {
        let answer = server.ask(head, body).await;
        assert_eq!(status(&answer), Some(expected), "{answer}");
        assert!(
            answer
                .to_ascii_lowercase()
                .contains("application/problem+json"),
            "{answer}"
        );
    }
    // A length that is a lie is refused by the length alone, and chunks are counted.
    let promised = format!(
        "{json}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n{{"
    );
    assert_eq!(status(&server.send(promised).await), Some(413));
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000)).repeat(5);
    let chunked = format!(
        "{json}\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
    );
    assert_eq!(status(&server.send(chunked).await), Some(413));
    // Heads have limits as well: bytes, headers, the path.
    let wide = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Wide: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    let many = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X-Many: 1\r\n".repeat(1000)
    );
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(70_000)
    );
    for head in [wide, many, long] {
        let answer = server.send(head).await;
        assert!(
            status(&answer).is_none_or(|status| (400..500).contains(&status)),
            "{answer}"
        );
    }
    assert_eq!(rows_left(&server).await, 40);
    server.stop().await;
}

#[tokio::test]
async fn names_in_paths_are_looked_up_and_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret.txt"), "of the machine").unwrap();
    let server = small_server(folder.path(), |_| {}).await;
    let paths = [
        "/v1/models/nothing",
        "/v1/models/../../etc/passwd",
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/%2e%2e%2fhouses",
        "/v1/models/..%5c..%5cetc",
        "/v1/models/houses%00",
        "/v1/models/houses.efface",
        "/v1/models//houses",
        "/v1/models/%ff%fe",
        "/page/../../Cargo.toml",
        "/page/..%2f..%2fsecret.txt",
        "/secret.txt",
        "/tokens.json",
        "/v1/receipts/..%2f..%2fhouses.efface",
        "/v1/erasures/..%2finbox",
        "/v1/erasures/%0d%0aSet-Cookie:%20a=b",
        "http://169.254.169.254/latest/meta-data",
        "/v1/log/receipts?model=..%2f..%2fetc",
        "/v1/log/receipts?from=-1",
        "/v1/log/receipts?from=99999999999999999999999999",
    ];
    for path in paths {
        let answer = server.ask(&format!("GET {path} HTTP/1.1"), "").await;
        assert!(
            status(&answer).is_some_and(|status| (400..500).contains(&status)),
            "{path}: {answer}"
        );
        assert!(
            answer
                .to_ascii_lowercase()
                .contains("application/problem+json"),
            "{path}: {answer}"
        );
        assert!(
            !answer.contains("of the machine")
                && !answer.to_ascii_lowercase().contains("set-cookie"),
            "{path}: {answer}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn headers_cannot_carry_others_into_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |_| {}).await;
    let keys: [&[u8]; 7] = [
        b"a%0d%0aSet-Cookie: x=y",
        b"a\rSet-Cookie: x=y",
        b"a\x00b",
        b"a\n folded: yes",
        b"caf\xc3\xa9",
        b"../../../etc/passwd",
        b"\"quoted\"",
    ];
    for key in keys {
        let mut head = format!(
            "{ERASE}\r\n{JSON}\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: "
        )
        .into_bytes();
        head.extend_from_slice(key);
        head.extend_from_slice(b"\r\nContent-Length: 16\r\n\r\n{\"rows\": [\"h1\"]}");
        let answer = server.send(head).await;
        assert_eq!(status(&answer), Some(400), "{answer}");
        assert!(
            !answer.to_ascii_lowercase().contains("set-cookie"),
            "{answer}"
        );
    }
    // Two keys, or two tokens, could be read differently by a proxy and by the server.
    let twice = format!("{ERASE}\r\n{JSON}\r\nIdempotency-Key: a\r\nIdempotency-Key: b");
    assert_eq!(
        status(&server.ask(&twice, "{\"rows\": [\"h1\"]}").await),
        Some(400)
    );
    assert_eq!(rows_left(&server).await, 40);
    server.stop().await;
}

#[tokio::test]
async fn a_request_cannot_be_smuggled_behind_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |_| {}).await;
    let hidden = format!(
        "{ERASE}\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 16\r\n\r\n{{\"rows\": [\"h1\"]}}"
    );
    let predict = "POST /v1/models/houses/predictions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let body = "{\"cells\": [[3, 80]]}";
    let length = body.len();
    let heads = [
        // Two lengths that differ.
        format!("{predict}\r\nContent-Length: {length}\r\nContent-Length: 0\r\n\r\n{body}"),
        format!("{predict}\r\nContent-Length: {length}, 0\r\n\r\n{body}"),
        format!("{predict}\r\nContent-Length: +{length}\r\n\r\n{body}"),
        format!("{predict}\r\nContent-Length: -1\r\n\r\n{body}"),
        // A length and chunks, in both orders: the chunks end before the hidden request begins.
        format!("{predict}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{predict}\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
        // Codings that a proxy may take for chunks, or not.
        format!("{predict}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("{predict}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("{predict}\r\nTransfer-Encoding: identity\r\n\r\n{body}"),
        format!("{predict}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!("{predict}\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
        // Chunks whose sizes are nonsense.
        format!("{predict}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n"),
        format!("{predict}\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"),
        // HTTP/1.0 has no chunks.
        format!(
            "{}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            predict.replace("1.1", "1.0")
        ),
    ];
    for head in heads {
        let answer = server.send(format!("{head}{hidden}")).await;
        let first = status(&answer);
        assert!(
            first.is_none_or(|status| (400..500).contains(&status)),
            "{head}: {answer}"
        );
        assert_eq!(
            answer.matches("HTTP/1.").count().max(1),
            1,
            "a second request was answered: {head}: {answer}"
        );
        assert_eq!(
            rows_left(&server).await,
            40,
            "the hidden request was done: {head}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn tokens_that_are_missing_expired_or_for_something_else_open_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let predict = token(folder.path(), &[Scope::Predict], None);
    let elsewhere = token(folder.path(), &[Scope::Erase], Some(&["other"]));
    let erase = token(folder.path(), &[Scope::Erase, Scope::Audit], None);
    let store = TokenStore::open(&folder.path().join("tokens.json")).unwrap();
    let grant = TokenGrant {
        name: "old".into(),
        scopes: vec![Scope::Admin],
        models: None,
        expires_at: Some(1),
    };
    let expired = store.create(grant).unwrap().text.to_string();
    let server = small_server(folder.path(), |settings| {
        settings.tokens = Some(folder.path().join("tokens.json"));
        settings.limits.request_time = Duration::from_secs(20);
    })
    .await;
    let cases = [
        (String::new(), 401),
        (format!("\r\nAuthorization: Bearer {expired}"), 401),
        (format!("\r\nAuthorization: Basic {erase}"), 401),
        (
            format!("\r\nAuthorization: Bearer {}", &erase[..erase.len() - 1]),
            401,
        ),
        (format!("\r\nAuthorization: Bearer {erase}0"), 401),
        (
            format!("\r\nAuthorization: Bearer {erase}\r\nAuthorization: Bearer {erase}"),
            401,
        ),
        (format!("\r\nCookie: token={erase}"), 401),
        (
            format!("\r\nAuthorization: Bearer {}", "a".repeat(5_000)),
            401,
        ),
        (format!("\r\nAuthorization: Bearer {predict}"), 403),
        (format!("\r\nAuthorization: Bearer {elsewhere}"), 403),
        (format!("\r\nAuthorization: Bearer {erase}"), 200),
    ];
    for (header, expected) in cases {
        let answer = server
            .ask(
                &format!("{ERASE}\r\n{JSON}{header}"),
                "{\"rows\": [\"h1\"]}",
            )
            .await;
        assert_eq!(status(&answer), Some(expected), "{answer}");
        let asks = answer
            .to_ascii_lowercase()
            .contains("www-authenticate: bearer");
        assert_eq!(asks, expected == 401, "{answer}");
        assert!(
            !answer.contains(&erase) && !answer.contains(&predict),
            "{answer}"
        );
    }
    // A token in the path would be in the logs of proxies.
    let in_path = format!(
        "{}?token={erase}&access_token={erase} HTTP/1.1\r\n{JSON}",
        ERASE.trim_end_matches(" HTTP/1.1")
    );
    assert_eq!(
        status(&server.ask(&in_path, "{\"rows\": [\"h2\"]}").await),
        Some(401)
    );
    server.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_cannot_send_requests() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |_| {}).await;
    let body = "{\"rows\": [\"h1\"]}";
    let refused = [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: http://localhost.evil.example",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site\r\nOrigin: http://localhost",
    ];
    for header in refused {
        let answer = server
            .ask(&format!("{ERASE}\r\n{JSON}\r\n{header}"), body)
            .await;
        assert!(
            status(&answer) == Some(403) && answer.contains("cross_site"),
            "{header}: {answer}"
        );
    }
    // What a form can send without asking first is no JSON; what asks first is told nothing that
    // allows it.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
    ] {
        let answer = server
            .ask(&format!("{ERASE}\r\nContent-Type: {kind}"), body)
            .await;
        assert_eq!(status(&answer), Some(415), "{kind}: {answer}");
    }
    let asked = "OPTIONS /v1/models/houses/erasures HTTP/1.1\r\nOrigin: https://evil.example\r\n\
                 Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type";
    let answer = server.ask(asked, "").await;
    assert!(
        status(&answer) == Some(403)
            && !answer.to_ascii_lowercase().contains("access-control-allow"),
        "{answer}"
    );
    // A name of somebody else's that resolves to this machine makes their page one of the same
    // origin.
    for path in ["GET /v1/models HTTP/1.1", "GET / HTTP/1.1", ERASE] {
        let rebound = format!(
            "{path}\r\nHost: rebound.example:8080\r\n{JSON}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = server.send(rebound).await;
        assert!(
            status(&answer) == Some(403) && answer.contains("cross_site"),
            "{path}: {answer}"
        );
    }
    assert_eq!(rows_left(&server).await, 40);
    for header in [
        "Origin: http://localhost",
        "Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost",
    ] {
        let answer = server
            .ask(
                &format!("{ERASE}\r\n{JSON}\r\n{header}"),
                "{\"rows\": [\"h1\"], \"dry_run\": true}",
            )
            .await;
        assert_eq!(status(&answer), Some(200), "{header}: {answer}");
    }
    let page = server.ask("GET / HTTP/1.1", "").await.to_ascii_lowercase();
    for header in [
        "frame-ancestors 'none'",
        "x-frame-options: deny",
        "x-content-type-options: nosniff",
        "form-action 'none'",
    ] {
        assert!(page.contains(header), "{header}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_in_flight_is_finished_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let server = small_server(folder.path(), |settings| {
        settings.limits.head_time = Duration::from_secs(20);
        settings.limits.request_time = Duration::from_secs(20);
    })
    .await;
    let body = "{\"rows\": [\"h1\"]}";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{ERASE}\r\nHost: localhost\r\n{JSON}\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server has taken the request up when it asks for the body.
    let mut told = [0; 25];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut told)
        .await
        .unwrap();
    assert!(told.starts_with(b"HTTP/1.1 100"));
    let stopping = tokio::spawn(server.stop());
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(status(&read_to_end(&mut stream).await), Some(200));
    stopping.await.unwrap();
}
