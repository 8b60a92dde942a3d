//! The service as its callers see it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use common::wire::RunningServer;
use common::{ask, fit_houses, get, open_server, post, settings, token};
use efface_engine::Engine;
use efface_evidence::PackFiles;
use efface_receipt::{
    AuditEntry, ConsistencyProof, InclusionProof, KeyRing, LogCheckpoint, LogHead, ReceiptBundle,
    leaf_hash, verify_bytes,
};
use efface_server::{Scope, Server};
use serde_json::{Value, json};

#[tokio::test]
async fn an_erasure_gives_a_receipt_that_verifies_with_the_key_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let server = open_server(folder.path()).await;
    let router = server.router();
    let row = json!({"rows": [{"rooms": 3, "area": 80}]});
    let before = post(&router, "/v1/models/houses/predictions", &row, None, None)
        .await
        .json();

    let body = json!({"subject": "o3"});
    let done = post(
        &router,
        "/v1/models/houses/erasures",
        &body,
        Some("case-1"),
        None,
    )
    .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.json());
    let answer = done.json();
    assert_eq!(answer["status"], "done");
    assert_eq!(answer["models"][0]["forgotten"], 4);
    assert_eq!(answer["models"][0]["claim"], "exact");
    let after = post(&router, "/v1/models/houses/predictions", &row, None, None)
        .await
        .json();
    assert_ne!(
        before["predictions"], after["predictions"],
        "predictions come from the old model"
    );

    let url = answer["models"][0]["receipt"]["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let wanted = Request::get(&url)
        .header(header::ACCEPT, "application/cose")
        .body(Body::empty())
        .unwrap();
    let receipt = ask(&router, wanted).await;
    assert_eq!(receipt.headers[header::CONTENT_TYPE], "application/cose");
    let keys = get(&router, "/v1/log/keys", None).await.json();
    let keys = KeyRing::parse(keys["keys"][0].as_str().unwrap()).unwrap();
    let verified = verify_bytes(&receipt.bytes, &keys).unwrap();
    assert_eq!(verified.receipt.rows.removed, 4);
    let readable = get(&router, &url, None).await.json();
    assert_eq!(
        readable["receipt"]["id"],
        answer["models"][0]["receipt"]["id"]
    );

    // The same request again has no second effect; another one under its key is refused.
    let again = post(
        &router,
        "/v1/models/houses/erasures",
        &body,
        Some("case-1"),
        None,
    )
    .await
    .json();
    assert_eq!(
        again["models"][0]["receipt"],
        answer["models"][0]["receipt"]
    );
    let other = json!({"subject": "o4"});
    let reused = post(
        &router,
        "/v1/models/houses/erasures",
        &other,
        Some("case-1"),
        None,
    )
    .await;
    assert_eq!(
        (reused.status, reused.code().as_str()),
        (StatusCode::CONFLICT, "key_reused")
    );
    let asked = get(&router, "/v1/erasures/case-1", None).await.json();
    assert_eq!(
        (
            asked["status"].as_str(),
            asked["models"][0]["outcome"].as_str()
        ),
        (Some("done"), Some("erased"))
    );
}

#[tokio::test]
async fn what_shows_an_erasure_to_others_holds_together() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let none = get(&router, "/v1/models/houses/audit", None).await;
    assert_eq!(
        (none.status, none.code().as_str()),
        (StatusCode::NOT_FOUND, "not_found")
    );
    let body = json!({"subject": "o3"});
    let done = post(
        &router,
        "/v1/models/houses/erasures",
        &body,
        Some("case-1"),
        None,
    )
    .await
    .json();
    let url = done["models"][0]["receipt"]["url"]
        .as_str()
        .unwrap()
        .to_owned();
    // An audit that another process puts on record.
    let entry = |test: &str, value| AuditEntry {
        test: test.into(),
        passed: None,
        value: Some(value),
        threshold: None,
        trials: None,
    };
    let results = [
        entry("l2_distance/auto", 2e-15),
        entry("feature_injection/auto", 0.0),
    ];
    Engine::open(&folder.path().join("houses.efface"))
        .unwrap()
        .record_audit(&results)
        .unwrap();

    let audit = get(&router, "/v1/models/houses/audit", None).await.json();
    assert_eq!(audit["results"][0]["test"], "l2_distance/auto");
    let pictures = audit["figures"].as_array().unwrap();
    assert_eq!(pictures.len(), 2);
    assert!(
        pictures
            .iter()
            .all(|picture| picture["svg"].as_str().unwrap().starts_with("<svg "))
    );

    let keys = get(&router, "/v1/log/keys", None).await.json();
    let keys = KeyRing::parse(keys["keys"][0].as_str().unwrap()).unwrap();
    let proofs = get(&router, &format!("{url}/proofs"), None).await.json();
    let head = LogCheckpoint::verify(proofs["checkpoint"].as_str().unwrap(), &keys).unwrap();
    assert_eq!(head.size, 3);
    let wanted = Request::get(&url)
        .header(header::ACCEPT, "application/cose")
        .body(Body::empty())
        .unwrap();
    let bundle = ReceiptBundle::parse(&ask(&router, wanted).await.bytes).unwrap();
    let leaf = bundle.signed.to_bytes().unwrap();
    assert_eq!(proofs["leaf"], leaf_hash(&leaf).to_string());
    let inclusion: InclusionProof = serde_json::from_value(proofs["inclusion"].clone()).unwrap();
    inclusion.verify(&leaf, &head.root).unwrap();
    let consistency: ConsistencyProof =
        serde_json::from_value(proofs["consistency"].clone()).unwrap();
    let previous: LogHead = serde_json::from_value(proofs["previous"].clone()).unwrap();
    consistency.verify(&previous.root, &head.root).unwrap();

    let pack = get(&router, &format!("{url}/evidence"), None).await;
    assert_eq!(pack.headers[header::CONTENT_TYPE], "application/zip");
    assert_eq!(
        pack.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"evidence-1.zip\""
    );
    let pack = PackFiles::read(&pack.bytes[..]).unwrap();
    let shown = pack.verify(&keys).unwrap();
    let numbers: Vec<u64> = shown
        .receipts
        .iter()
        .map(|verified| verified.receipt.sequence)
        .collect();
    assert_eq!(numbers, [1, 2], "the receipt and the audit since");
    assert_eq!(shown.head.root, head.root);
    let unknown = get(
        &router,
        &format!("/v1/receipts/{}/evidence", "0".repeat(32)),
        None,
    )
    .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn packed_numbers_have_the_scores_of_the_same_cells() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let path = "/v1/models/houses/predictions";
    let columns = get(&router, "/v1/models/houses", None).await.json()["columns"].clone();
    assert_eq!(columns, json!(["rooms", "area"]));
    let cells = json!({"cells": [[3, 80.5], [4, 61]]});
    let expected = post(&router, path, &cells, None, None).await.json();
    let packed =
        |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|it| it.to_le_bytes()).collect() };
    let send = async |bytes: Vec<u8>| {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/octet-stream");
        ask(&router, request.body(Body::from(bytes)).unwrap()).await
    };
    let found = send(packed(&[3.0, 80.5, 4.0, 61.0])).await;
    assert_eq!(found.json(), expected);
    for bytes in [
        Vec::new(),
        packed(&[3.0]),
        packed(&[3.0, 80.5])[..15].to_vec(),
    ] {
        let refused = send(bytes).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (StatusCode::BAD_REQUEST, "invalid_request")
        );
    }
    for number in [f64::NAN, f64::INFINITY] {
        let refused = send(packed(&[3.0, number])).await;
        assert_eq!(refused.code(), "invalid_rows", "{}", refused.json());
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_says_what_would_happen() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let body = json!({"rows": ["h1", "h2"], "dry_run": true});
    let told = post(
        &router,
        "/v1/models/houses/erasures",
        &body,
        Some("case-2"),
        None,
    )
    .await
    .json();
    assert_eq!(
        (
            told["status"].as_str(),
            told["models"][0]["forgotten"].as_u64()
        ),
        (Some("dry_run"), Some(2))
    );
    assert!(told["models"][0]["leverage"].as_f64().unwrap() > 0.0);
    assert!(told["models"][0]["moved"].as_f64().unwrap() > 0.0);
    assert_eq!(told["models"][0]["withdrawn"], 0);
    let model = get(&router, "/v1/models/houses", None).await.json();
    assert_eq!(
        (model["rows"].as_u64(), model["receipts"].as_u64()),
        (Some(40), Some(1))
    );
    let unknown = get(&router, "/v1/erasures/case-2", None).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_erasure_that_misses_its_tolerance_is_done_and_approximate() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let body = json!({"rows": ["h1"], "method": "auto:tolerance=1e-300"});
    let path = "/v1/models/houses/erasures";
    let done = post(&router, path, &body, Some("case-3"), None).await;
    let answer = done.json();
    assert_eq!(done.status, StatusCode::OK, "{answer}");
    let model = &answer["models"][0];
    assert_eq!(
        (&answer["status"], &model["outcome"], &model["claim"]),
        (&"done".into(), &"erased".into(), &"approximate".into())
    );
    assert!(model["bound"].as_f64().unwrap() > 0.0, "{answer}");
}

#[tokio::test]
async fn erasures_that_wait_together_have_an_effect_and_a_receipt_each() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let mut waiting = Vec::new();
    for row in 0..20 {
        let router = router.clone();
        waiting.push(tokio::spawn(async move {
            let body = json!({"rows": [format!("h{row}")]});
            post(
                &router,
                "/v1/models/houses/erasures",
                &body,
                Some(&format!("r{row}")),
                None,
            )
            .await
            .json()
        }));
    }
    let mut places = Vec::new();
    for answer in waiting {
        let answer = answer.await.unwrap();
        assert_eq!(answer["models"][0]["outcome"], "erased", "{answer}");
        places.push(answer["models"][0]["receipt"]["sequence"].as_u64().unwrap());
    }
    places.sort_unstable();
    assert_eq!(places, (1..=20).collect::<Vec<u64>>());
    assert_eq!(
        get(&router, "/v1/models/houses", None).await.json()["rows"],
        20
    );
}

#[tokio::test]
async fn a_person_is_erased_from_all_models_by_one_request() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "north", 12);
    fit_houses(folder.path(), "south", 40);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    let body = json!({"subject": "o5"});
    let answer = post(&router, "/v1/erasures", &body, Some("case-9"), None)
        .await
        .json();
    let outcomes: Vec<_> = answer["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["not_found", "erased"], "{answer}");
    let asked = get(&router, "/v1/erasures/case-9", None).await.json();
    assert_eq!(
        asked["models"].as_array().unwrap().len(),
        2,
        "both logs hold the request: {asked}"
    );
}

#[tokio::test]
async fn tokens_open_what_their_scopes_and_models_say() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    fit_houses(folder.path(), "other", 40);
    let predict = token(folder.path(), &[Scope::Predict], None);
    let erase = token(
        folder.path(),
        &[Scope::Erase, Scope::Audit],
        Some(&["houses"]),
    );
    let mut settings = settings(folder.path());
    settings.tokens = Some(folder.path().join("tokens.json"));
    let router = Server::start(settings).await.unwrap().router();
    let rows = json!({"rows": [{"rooms": 3, "area": 80}]});
    let erasure = json!({"rows": ["h1"]});
    let wrong = format!("{}0", &predict[..predict.len() - 1]);
    let cases = [
        ("/v1/models/houses/predictions", &rows, None, 401),
        ("/v1/models/houses/predictions", &rows, Some("efface_"), 401),
        (
            "/v1/models/houses/predictions",
            &rows,
            Some(wrong.as_str()),
            401,
        ),
        (
            "/v1/models/houses/predictions",
            &rows,
            Some(predict.as_str()),
            200,
        ),
        (
            "/v1/models/houses/erasures",
            &erasure,
            Some(predict.as_str()),
            403,
        ),
        (
            "/v1/models/other/erasures",
            &erasure,
            Some(erase.as_str()),
            403,
        ),
        (
            "/v1/erasures",
            &json!({"subject": "o1"}),
            Some(erase.as_str()),
            403,
        ),
        (
            "/v1/models/houses/erasures",
            &erasure,
            Some(erase.as_str()),
            200,
        ),
    ];
    for (path, body, token, status) in cases {
        let answer = post(&router, path, body, None, token).await;
        // The last digit of a token may be the one that stands there already.
        if token != Some(wrong.as_str()) || wrong != predict {
            assert_eq!(
                answer.status.as_u16(),
                status,
                "{path} {token:?}: {}",
                String::from_utf8_lossy(&answer.bytes)
            );
        }
    }
    let seen = get(&router, "/v1/models", Some(&erase)).await.json();
    assert_eq!(seen["models"].as_array().unwrap().len(), 1, "{seen}");
    assert_eq!(
        get(&router, "/metrics", Some(&erase)).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(get(&router, "/healthz", None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_withdrawn_token_opens_nothing_after_the_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = token(folder.path(), &[Scope::Admin], None);
    let path = folder.path().join("tokens.json");
    let store = efface_server::TokenStore::open(&path).unwrap();
    let id = store.records()[0].id.clone();
    assert!(
        !std::fs::read_to_string(&path)
            .unwrap()
            .contains(text.rsplit('_').next().unwrap())
    );
    store.revoke(&id).unwrap();
    assert!(efface_server::TokenStore::open(&path).unwrap().is_empty());
}

#[tokio::test]
async fn a_running_server_follows_its_folder_and_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let text = token(folder.path(), &[Scope::Admin], None);
    let mut settings = settings(folder.path());
    settings.tokens = Some(folder.path().join("tokens.json"));
    let server = RunningServer::start(settings).await;
    // The server looks once a second; whoever asks more often than the token may is told to wait,
    // and asks again.
    let until = async |model: &str, wanted: &str, holds: &str| {
        let head = format!("GET /v1/models/{model} HTTP/1.1\r\nAuthorization: Bearer {text}");
        let asking = async {
            loop {
                let answer = server.ask(&head, "").await;
                if answer.starts_with(&format!("HTTP/1.1 {wanted}")) && answer.contains(holds) {
                    break;
                }
            }
        };
        let told = tokio::time::timeout(std::time::Duration::from_secs(30), asking).await;
        assert!(told.is_ok(), "{model} never gave {wanted} with {holds}");
    };
    until("second", "404", "").await;
    fit_houses(folder.path(), "second", 12);
    until("second", "200", "\"rows\":12").await;
    let entry = AuditEntry {
        test: "t".into(),
        passed: None,
        value: Some(1.0),
        threshold: None,
        trials: None,
    };
    Engine::open(&folder.path().join("houses.efface"))
        .unwrap()
        .record_audit(&[entry])
        .unwrap();
    until("houses", "200", "\"receipts\":2").await;
    std::fs::remove_file(folder.path().join("second.efface")).unwrap();
    until("second", "404", "").await;
    let store = efface_server::TokenStore::open(&folder.path().join("tokens.json")).unwrap();
    store.revoke(&store.records()[0].id.clone()).unwrap();
    until("houses", "401", "").await;
    server.stop().await;
}

#[tokio::test]
async fn large_erasures_need_a_second_officer_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let ann = token(folder.path(), &[Scope::Erase, Scope::Audit], None);
    let bob = token(folder.path(), &[Scope::Erase, Scope::Audit], None);
    let mut settings = settings(folder.path());
    settings.tokens = Some(folder.path().join("tokens.json"));
    settings.approval_above = Some(3);
    let router = Server::start(settings.clone()).await.unwrap().router();
    let small = json!({"rows": ["h30"]});
    let done = post(
        &router,
        "/v1/models/houses/erasures",
        &small,
        None,
        Some(&ann),
    )
    .await;
    assert_eq!(done.status, StatusCode::OK);
    let large = json!({"subject": "o1"});
    let held = post(
        &router,
        "/v1/models/houses/erasures",
        &large,
        Some("big"),
        Some(&ann),
    )
    .await;
    assert_eq!(
        (held.status, held.json()["status"].as_str()),
        (StatusCode::ACCEPTED, Some("awaiting_approval"))
    );
    assert_eq!(held.headers[header::LOCATION], "/v1/erasures/big");
    drop(router);

    let router = Server::start(settings).await.unwrap().router();
    let open = get(&router, "/v1/erasures", Some(&bob)).await.json();
    assert_eq!(open["erasures"][0]["id"], "big", "{open}");
    let own = post(
        &router,
        "/v1/erasures/big/approval",
        &json!({}),
        None,
        Some(&ann),
    )
    .await;
    assert_eq!(own.status, StatusCode::FORBIDDEN);
    let approved = post(
        &router,
        "/v1/erasures/big/approval",
        &json!({}),
        None,
        Some(&bob),
    )
    .await;
    assert_eq!(
        approved.json()["models"][0]["forgotten"],
        4,
        "{}",
        approved.json()
    );
    let left: Vec<_> = std::fs::read_dir(folder.path().join("inbox"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "the request is still in the inbox");
}

#[tokio::test]
async fn learning_and_amending_rows_leave_receipts_and_forgotten_rows_stay_away() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let row =
        json!({"rows": [{"house": "new", "owner": "zoe", "rooms": 4, "area": 77, "price": 300}]});
    let learned = post(&router, "/v1/models/houses/rows", &row, None, None)
        .await
        .json();
    assert_eq!(
        (learned["learned"].as_u64(), learned["rows"].as_u64()),
        (Some(1), Some(41))
    );
    let twice = post(&router, "/v1/models/houses/rows", &row, None, None).await;
    assert_eq!(
        (twice.status.as_u16(), twice.code().as_str()),
        (409, "already_there")
    );
    let amended = Request::patch("/v1/models/houses/rows")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(row.to_string()))
        .unwrap();
    assert_eq!(ask(&router, amended).await.json()["rows"], 41);
    post(
        &router,
        "/v1/models/houses/erasures",
        &json!({"rows": ["new"]}),
        None,
        None,
    )
    .await;
    let back = post(&router, "/v1/models/houses/rows", &row, None, None).await;
    assert_eq!(
        (back.status.as_u16(), back.code().as_str()),
        (409, "must_not_come_back")
    );
    let gone = post(
        &router,
        "/v1/models/houses/erasures",
        &json!({"rows": ["new"]}),
        None,
        None,
    )
    .await;
    assert_eq!(
        (gone.status.as_u16(), gone.code().as_str()),
        (410, "already_forgotten")
    );
}

#[tokio::test]
async fn rows_without_names_are_scored_in_the_order_of_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let columns = get(&router, "/v1/models/houses", None).await.json()["columns"].clone();
    assert_eq!(columns, json!(["rooms", "area"]));
    let path = "/v1/models/houses/predictions";
    let named =
        json!({"rows": [{"area": 80, "rooms": 3}, {"rooms": 5, "area": 61.5, "colour": "red"}]});
    let named = post(&router, path, &named, None, None).await.json();
    let ordered = post(
        &router,
        path,
        &json!({"cells": [[3, 80], [5, 61.5]]}),
        None,
        None,
    )
    .await
    .json();
    assert_eq!(named, ordered);
    assert_eq!(named["predictions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn bad_requests_are_problems_that_repeat_nothing_of_the_body() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(&str, String, u16)> = vec![
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"secret-id\"".into(),
            400,
        ),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": \"secret-id\"}".into(),
            400,
        ),
        ("/v1/models/houses/erasures", "{\"rows\": []}".into(), 400),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"h1\"], \"subject\": \"o1\"}".into(),
            400,
        ),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"h1\"], \"secret-key\": 1}".into(),
            400,
        ),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"h1\", \"h1\"]}".into(),
            400,
        ),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"h1\"], \"method\": \"magic\"}".into(),
            400,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"rows\": [{\"rooms\": [\"secret\"]}]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"rows\": [{\"rooms\": \"secret\", \"area\": 1}]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"rows\": [{\"rooms\": 1, \"rooms\": 2, \"area\": 1}]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": [[3]]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": [[3, 80, 1]]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": [[3, \"secret\"]]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": [[3, {\"secret\": 1}]]}".into(),
            422,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": []}".into(),
            400,
        ),
        (
            "/v1/models/houses/predictions",
            "{\"cells\": [[3, 80]], \"rows\": [{\"rooms\": 1}]}".into(),
            400,
        ),
        ("/v1/models/houses/predictions", "{}".into(), 400),
        ("/v1/models/houses/predictions", deep, 400),
        (
            "/v1/models/..%2f..%2fetc/erasures",
            "{\"rows\": [\"h1\"]}".into(),
            404,
        ),
        (
            "/v1/models/nothing/erasures",
            "{\"rows\": [\"h1\"]}".into(),
            404,
        ),
        (
            "/v1/models/houses/erasures",
            "{\"rows\": [\"h999\"]}".into(),
            404,
        ),
    ];
    for (path, body, status) in cases {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let answer = ask(&router, request.body(Body::from(body.clone())).unwrap()).await;
        let shown = String::from_utf8_lossy(&answer.bytes).into_owned();
        let start: String = body.chars().take(60).collect();
        assert_eq!(answer.status.as_u16(), status, "{path} {start}: {shown}");
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "application/problem+json",
            "{path}"
        );
        assert!(!shown.contains("secret"), "{path} {start}: {shown}");
    }
    let wrong_type = Request::post("/v1/models/houses/erasures")
        .body(Body::from("{}"))
        .unwrap();
    assert_eq!(ask(&router, wrong_type).await.code(), "unsupported_media");
    let wrong_method = Request::delete("/v1/models/houses/predictions")
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        ask(&router, wrong_method).await.code(),
        "method_not_allowed"
    );
    let wrong_key = Request::post("/v1/models/houses/erasures")
        .header("Idempotency-Key", "no spaces please")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from("{\"rows\": [\"h1\"]}"))
        .unwrap();
    assert_eq!(ask(&router, wrong_key).await.code(), "invalid_request");
    assert_eq!(
        get(&router, "/v1/models/houses", None).await.json()["rows"],
        40,
        "a bad request changed the model"
    );
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut settings = settings(folder.path());
    settings.limits.body_bytes = 1000;
    let router = Server::start(settings).await.unwrap().router();
    let body = json!({"rows": [{"rooms": "x".repeat(2000)}]});
    let answer = post(&router, "/v1/models/houses/predictions", &body, None, None).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (413, "body_too_large")
    );
}

#[tokio::test]
async fn a_server_does_not_open_itself_to_other_machines() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 8);
    let mut wide = settings(folder.path());
    wide.listen = "0.0.0.0:0".parse().unwrap();
    let refused = Server::start(wide.clone()).await.err().unwrap().to_string();
    assert!(refused.contains("no certificate"), "{refused}");
    wide.allow_insecure = true;
    assert!(Server::start(wide).await.is_ok());
    let mut empty = settings(folder.path());
    empty.tokens = Some(folder.path().join("tokens.json"));
    let refused = Server::start(empty).await.err().unwrap().to_string();
    assert!(refused.contains("holds no token"), "{refused}");
}

#[test]
fn the_description_of_the_service_is_as_recorded() {
    let description: Value = serde_json::to_value(efface_server::description()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&description).unwrap());
}

#[tokio::test]
async fn every_path_of_the_service_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let router = open_server(folder.path()).await.router();
    // The router lists its paths only where it is printed.
    let printed = format!("{router:?}");
    let served: BTreeSet<&str> = printed
        .split('"')
        // The last one is the handler of all other paths.
        .filter(|text| text.starts_with('/') && !text.starts_with("/{*"))
        .collect();
    let description = efface_server::description();
    let described: BTreeSet<&str> = description.paths.paths.keys().map(String::as_str).collect();
    assert!(served.contains("/v1/models/{model}/erasures"), "{printed}");
    assert_eq!(served, described);
}
