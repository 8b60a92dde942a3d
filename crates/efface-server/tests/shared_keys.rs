//! Requests that meet: several under one key, officers who disagree, tokens that are for another
//! model.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use common::{Asked, ask, fit_houses, get, post, settings, token};
use efface_server::{Scope, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const ERASE: &str = "/v1/models/houses/erasures";

/// A server over two models of 40 rows that asks for a second officer above three rows, and the
/// tokens of two officers.
async fn two_officers(folder: &Path) -> (Router, String, String) {
    fit_houses(folder, "houses", 40);
    fit_houses(folder, "second", 40);
    let ann = token(folder, &[Scope::Erase, Scope::Audit], None);
    let bob = token(folder, &[Scope::Erase, Scope::Audit], None);
    let mut settings = settings(folder);
    settings.tokens = Some(folder.join("tokens.json"));
    settings.approval_above = Some(3);
    (Server::start(settings).await.unwrap().router(), ann, bob)
}

async fn rows_left(router: &Router, token: Option<&str>) -> u64 {
    get(router, "/v1/models/houses", token).await.json()["rows"]
        .as_u64()
        .unwrap()
}

async fn withdraw(router: &Router, id: &str, token: &str) -> Asked {
    let request = Request::delete(format!("/v1/erasures/{id}"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    ask(router, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_key_that_waits_for_approval_is_for_no_other_request() {
    let folder = tempfile::tempdir().unwrap();
    let (router, ann, bob) = two_officers(folder.path()).await;
    let send =
        async |path: &str, body: Value| post(&router, path, &body, Some("big"), Some(&ann)).await;
    assert_eq!(
        send(ERASE, json!({"subject": "o1"})).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(
        send(ERASE, json!({"subject": " o1 "})).await.status,
        StatusCode::ACCEPTED,
        "the same request"
    );
    let others = [
        (ERASE, json!({"subject": "o2"})),
        (ERASE, json!({"rows": ["h30"]})),
        (ERASE, json!({"subject": "o1", "allow_missing": true})),
        ("/v1/models/second/erasures", json!({"subject": "o1"})),
        ("/v1/erasures", json!({"subject": "o1"})),
    ];
    for (path, body) in others {
        let refused = send(path, body.clone()).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (409, "key_reused"),
            "{path} {body}"
        );
    }
    let approved = post(
        &router,
        "/v1/erasures/big/approval",
        &json!({}),
        None,
        Some(&bob),
    )
    .await
    .json();
    assert_eq!(approved["models"][0]["forgotten"], 4, "{approved}");
    assert_eq!(rows_left(&router, Some(&ann)).await, 36);
    // Done, it is answered again as it was, although its rows are gone and nothing is left to
    // approve.
    let again = send(ERASE, json!({"subject": "o1"})).await.json();
    assert_eq!(
        again["models"][0]["receipt"], approved["models"][0]["receipt"],
        "{again}"
    );
    let small = json!({"rows": ["h30"]});
    let first = post(&router, ERASE, &small, Some("small"), Some(&ann))
        .await
        .json();
    let again = post(&router, ERASE, &small, Some("small"), Some(&ann))
        .await
        .json();
    assert_eq!(
        again["models"][0]["receipt"], first["models"][0]["receipt"],
        "{again}"
    );
}

#[tokio::test]
async fn of_different_requests_under_one_key_at_the_same_time_one_is_done() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    for (round, wait) in ["wait=0", "wait=10"].into_iter().enumerate() {
        let key = format!("contested-{round}");
        let mut asking = JoinSet::new();
        for row in 0..12 {
            let request = Request::post(ERASE)
                .header(header::CONTENT_TYPE, "application/json")
                .header("Idempotency-Key", &key)
                .header("Prefer", wait)
                .body(Body::from(
                    json!({"rows": [format!("h{}", 12 * round + row / 2)]}).to_string(),
                ))
                .unwrap();
            let router = router.clone();
            asking.spawn(async move { (row / 2, ask(&router, request).await) });
        }
        let mut taken = std::collections::BTreeSet::new();
        for (row, answer) in asking.join_all().await {
            match answer.status.as_u16() {
                200 | 202 => {
                    taken.insert(row);
                }
                _ => assert_eq!(answer.code(), "key_reused", "{}", answer.json()),
            }
        }
        assert_eq!(
            taken.len(),
            1,
            "requests for different rows were taken under one key"
        );
        while get(&router, "/v1/erasures", None).await.json()["erasures"] != json!([]) {
            tokio::task::yield_now().await;
        }
        assert_eq!(rows_left(&router, None).await, 39 - round as u64);
    }
    let left: Vec<_> = std::fs::read_dir(folder.path().join("inbox"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "the inbox still holds a request");
}

#[tokio::test]
async fn of_an_approval_and_a_withdrawal_at_the_same_time_one_is_too_late() {
    let folder = tempfile::tempdir().unwrap();
    let (router, ann, bob) = two_officers(folder.path()).await;
    let mut left = 40;
    for round in 0..6 {
        let id = format!("contested-{round}");
        let body = json!({"subject": format!("o{round}")});
        assert_eq!(
            post(&router, ERASE, &body, Some(&id), Some(&ann))
                .await
                .status,
            StatusCode::ACCEPTED
        );
        let path = format!("/v1/erasures/{id}/approval");
        let nothing = json!({});
        let approving = post(&router, &path, &nothing, None, Some(&bob));
        let (approved, withdrawn) = tokio::join!(approving, withdraw(&router, &id, &ann));
        match (approved.status.as_u16(), withdrawn.status.as_u16()) {
            (200, 404 | 409) => left -= 4,
            (404, 204) => {}
            both => panic!("{both:?}"),
        }
        assert_eq!(rows_left(&router, Some(&ann)).await, left);
    }
}

#[tokio::test]
async fn a_token_for_another_model_learns_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = token(
        folder.path(),
        &[Scope::Erase, Scope::Audit, Scope::Admin],
        Some(&["second"]),
    );
    let predicts = token(folder.path(), &[Scope::Predict], None);
    let (router, ann, bob) = two_officers(folder.path()).await;
    let done = post(
        &router,
        ERASE,
        &json!({"rows": ["h9"]}),
        Some("done"),
        Some(&ann),
    )
    .await
    .json();
    let receipt = done["models"][0]["receipt"]["url"]
        .as_str()
        .unwrap()
        .to_owned();
    post(
        &router,
        ERASE,
        &json!({"subject": "o1"}),
        Some("open"),
        Some(&ann),
    )
    .await;

    let proofs = format!("{receipt}/proofs");
    let pack = format!("{receipt}/evidence");
    let paths = [
        ("/v1/erasures/open", 404),
        ("/v1/erasures/done", 404),
        ("/v1/erasures/never", 404),
        ("/data-deletions/v3.0/open", 404),
        (receipt.as_str(), 404),
        (proofs.as_str(), 404),
        (pack.as_str(), 404),
        ("/v1/models/houses", 403),
        ("/v1/models/houses/audit", 403),
        ("/v1/log/receipts?model=houses", 403),
        ("/v1/log/checkpoint?model=houses", 403),
        ("/metrics", 403),
        ("/v1/callbacks", 403),
    ];
    for (path, status) in paths {
        let answer = get(&router, path, Some(&elsewhere)).await;
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        assert_eq!(answer.status.as_u16(), status, "{path}: {text}");
        assert!(!text.contains("houses"), "{path}: {text}");
    }
    assert_eq!(
        get(&router, "/v1/erasures", Some(&elsewhere)).await.json()["erasures"],
        json!([])
    );
    let models = get(&router, "/v1/models", Some(&elsewhere)).await.json();
    assert_eq!(models["models"].as_array().unwrap().len(), 1, "{models}");
    // What is refused is refused in the same words, whether there is such a request or not.
    let refusal = withdraw(&router, "never", &elsewhere).await.json()["detail"].clone();
    assert_eq!(
        withdraw(&router, "open", &elsewhere).await.json()["detail"],
        refusal
    );
    let approval = post(
        &router,
        "/v1/erasures/open/approval",
        &json!({}),
        None,
        Some(&elsewhere),
    )
    .await;
    assert_eq!(
        (approval.status.as_u16(), &approval.json()["detail"]),
        (403, &refusal)
    );
    // A dry run tells leverages, and asks for the same scope as the erasure.
    for who in [&elsewhere, &predicts] {
        for path in [ERASE, "/v1/erasures"] {
            let body = json!({"subject": "o2", "dry_run": true});
            let answer = post(&router, path, &body, None, Some(who)).await;
            assert_eq!(answer.status.as_u16(), 403, "{path}");
            assert!(!answer.json().to_string().contains("leverage"));
        }
    }
    assert_eq!(rows_left(&router, Some(&bob)).await, 39);
}

#[tokio::test]
async fn keys_that_look_like_parts_of_others_are_requests_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    for (key, row) in [("case", "h1"), ("case.2", "h2")] {
        let done = post(&router, ERASE, &json!({"rows": [row]}), Some(key), None).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.json());
    }
    let asked = get(&router, "/v1/erasures/case", None).await.json();
    assert_eq!(asked["models"].as_array().unwrap().len(), 1, "{asked}");
}

#[tokio::test]
async fn scores_that_are_no_numbers_and_rows_of_many_names_are_answered_in_valid_json() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    let path = "/v1/models/houses/predictions";
    let send = async |numbers: [f64; 2]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/octet-stream");
        ask(&router, request.body(Body::from(bytes)).unwrap()).await
    };
    for numbers in [
        [f64::MAX, -f64::MAX],
        [f64::MIN_POSITIVE, 5e-324],
        [-0.0, 0.0],
        [f64::NEG_INFINITY, 1.0],
    ] {
        let answer = send(numbers).await;
        assert!(
            [200, 422].contains(&answer.status.as_u16()),
            "{numbers:?}: {}",
            answer.json()
        );
        answer.json();
    }
    // Names that the model does not know are passed over, however many there are; the body has a
    // limit.
    let mut row: serde_json::Map<String, Value> = (0..200_000)
        .map(|at| (format!("x{at}"), json!(at)))
        .collect();
    row.insert("rooms".into(), json!(3));
    row.insert("area".into(), json!(80));
    let many = post(&router, path, &json!({"rows": [row]}), None, None)
        .await
        .json();
    let few = post(
        &router,
        path,
        &json!({"rows": [{"rooms": 3, "area": 80}]}),
        None,
        None,
    )
    .await
    .json();
    assert_eq!(many["predictions"], few["predictions"]);
}

#[tokio::test]
async fn a_key_of_one_model_stands_in_no_way_of_another_token_and_model() {
    let folder = tempfile::tempdir().unwrap();
    let other = token(
        folder.path(),
        &[Scope::Erase, Scope::Audit],
        Some(&["second"]),
    );
    let (router, ann, bob) = two_officers(folder.path()).await;
    let second = "/v1/models/second/erasures";
    let body = json!({"subject": "o1"});
    let theirs = post(&router, second, &body, Some("case"), Some(&other)).await;
    assert_eq!(theirs.json()["status"], "awaiting_approval");
    let ours = post(&router, ERASE, &body, Some("case"), Some(&ann)).await;
    assert_eq!(
        ours.json()["status"],
        "awaiting_approval",
        "{}",
        ours.json()
    );
    // Within a model, and for all models, the key is in use.
    for path in [second, "/v1/erasures"] {
        let reused = post(
            &router,
            path,
            &json!({"subject": "o2"}),
            Some("case"),
            Some(&bob),
        )
        .await;
        assert_eq!(reused.code(), "key_reused", "{path}");
    }
    drop(router);
    // Both are written down under the same id.
    let mut settings = settings(folder.path());
    settings.tokens = Some(folder.path().join("tokens.json"));
    settings.approval_above = Some(3);
    let router = Server::start(settings).await.unwrap().router();
    let seen = |who: &str| {
        let (router, who) = (router.clone(), who.to_owned());
        async move { get(&router, "/v1/erasures", Some(&who)).await.json()["erasures"].clone() }
    };
    assert_eq!(seen(&bob).await.as_array().unwrap().len(), 2);
    assert_eq!(seen(&other).await.as_array().unwrap().len(), 1);
    // Whoever sees both says which one is meant.
    let approval = "/v1/erasures/case/approval";
    let unclear = post(&router, approval, &json!({}), None, Some(&bob)).await;
    assert_eq!(unclear.code(), "refused", "{}", unclear.json());
    assert_eq!(withdraw(&router, "case", &bob).await.code(), "refused");
    let named = format!("{approval}?model=houses");
    let approved = post(&router, &named, &json!({}), None, Some(&bob))
        .await
        .json();
    assert_eq!(approved["models"][0]["model"], "houses", "{approved}");
    assert_eq!(rows_left(&router, Some(&ann)).await, 36);
    assert_eq!(
        withdraw(&router, "case", &other).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(seen(&bob).await, json!([]));
}
