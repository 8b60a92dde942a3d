//! OpenDSR as controllers speak it, and deletions in the form of Mixpanel's API.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use common::receiver::CallbackReceiver;
use common::wire::RunningServer;
use common::{Asked, ask, fit_houses, get, post, settings, speaking_opendsr, token};
use efface_server::{CallbackSettings, Scope, Server};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ID: &str = "a7551968-d5d6-44b2-9831-815ac9017798";
const REQUESTS: &str = "/opendsr/v2/requests";

fn request(identities: Value, callbacks: &[String]) -> Value {
    json!({
        "regulation": "gdpr",
        "subject_request_id": ID,
        "subject_request_type": "erasure",
        "submitted_time": "2018-10-02T15:00:00Z",
        "subject_identities": identities,
        "api_version": "2.0",
        "status_callback_urls": callbacks,
        "extensions": {"other-processor.example": {"id": 7}}
    })
}

fn raw(value: &str) -> Value {
    json!({"identity_type": "email", "identity_value": value, "identity_format": "raw"})
}

fn is_signed(headers: &HeaderMap, body: &[u8], key: &[u8]) -> bool {
    let domain = headers
        .get("x-opendsr-processor-domain")
        .is_some_and(|domain| domain == "models.example");
    let Some(signature) = headers.get("x-opendsr-signature") else {
        return false;
    };
    let signature = data_encoding::BASE64.decode(signature.as_bytes()).unwrap();
    domain
        && UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
            .verify(body, &signature)
            .is_ok()
}

/// Where the request stands, as soon as it is this.
async fn until(router: &Router, status: &str) -> Asked {
    let waiting = async {
        loop {
            let asked = get(router, &format!("{REQUESTS}/{ID}"), None).await;
            if asked.json()["request_status"] == status {
                return asked;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap()
}

async fn delete(router: &Router, path: &str, token: Option<&str>) -> Asked {
    let mut request = Request::delete(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    ask(router, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_request_is_taken_in_done_and_told_with_signatures_of_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    fit_houses(folder.path(), "small", 8);
    let (mut settings, key) = speaking_opendsr(folder.path(), false);
    let mut receiver = CallbackReceiver::start(&["HTTP/1.1 200 OK"]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let mut callbacks = CallbackSettings::new(vec![host.parse().unwrap()]);
    callbacks.allow_private = true;
    settings.callbacks = Some(callbacks);
    let router = Server::start(settings.clone()).await.unwrap().router();

    let discovered = get(&router, "/opendsr/v2/discovery", None).await.json();
    assert_eq!(
        discovered["supported_subject_request_types"],
        json!(["erasure"])
    );
    assert_eq!(
        discovered["supported_identities"].as_array().unwrap().len(),
        2
    );
    assert_eq!(
        discovered["processor_certificate"],
        "https://models.example/opendsr/v2/certificate.pem"
    );
    let shown = get(&router, "/opendsr/v2/certificate.pem", None).await;
    assert_eq!(
        shown.bytes,
        std::fs::read(folder.path().join("dsr.pem")).unwrap()
    );

    // Two persons: o1 and o3 have four rows each in one model, o1 has four in the other.
    let body = request(
        json!([raw("o1"), raw("o3"), raw("o1")]),
        &[format!("{host}/dsr")],
    );
    let made = post(&router, REQUESTS, &body, None, None).await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.json());
    assert!(is_signed(&made.headers, &made.bytes, &key));
    assert!(!is_signed(&made.headers, b"{}", &key));
    let sent = data_encoding::BASE64
        .decode(made.json()["encoded_request"].as_str().unwrap().as_bytes())
        .unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), body);
    assert_eq!(made.json()["subject_request_id"], ID);
    assert!(
        made.json()["expected_completion_time"].as_str() > made.json()["received_time"].as_str()
    );

    let done = until(&router, "completed").await;
    assert!(is_signed(&done.headers, &done.bytes, &key));
    assert_eq!(done.json()["results_count"], 12);
    let aliased = get(
        &router,
        &format!("/opendsr/v1/opengdpr_requests/{ID}"),
        None,
    )
    .await;
    assert_eq!(aliased.json()["request_status"], "completed");
    // Once more: one effect.
    assert_eq!(
        post(&router, REQUESTS, &body, None, None)
            .await
            .status
            .as_u16(),
        201
    );
    until(&router, "completed").await;
    assert_eq!(
        get(&router, "/v1/models/houses", None).await.json()["rows"],
        32
    );
    let late = delete(&router, &format!("{REQUESTS}/{ID}"), None).await;
    assert!(late.status.is_client_error() && late.json()["error"]["message"].is_string());
    drop(router);

    let server = RunningServer::start(settings).await;
    let came = receiver.next().await;
    let told: Value = serde_json::from_str(&came.body).unwrap();
    assert_eq!(
        (
            told["request_status"].as_str(),
            told["results_count"].as_u64()
        ),
        (Some("completed"), Some(12))
    );
    assert_eq!(told["status_callback_url"], format!("{host}/dsr"));
    let signature = came.header("x-opendsr-signature").unwrap();
    let signature = data_encoding::BASE64.decode(signature.as_bytes()).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key)
        .verify(came.body.as_bytes(), &signature)
        .unwrap();
    assert!(!came.body.contains("\"o1\""));
    server.stop().await;
}

#[tokio::test]
async fn identities_may_be_hashed_where_the_models_hold_hashes() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let (settings, _) = speaking_opendsr(folder.path(), false);
    let router = Server::start(settings).await.unwrap().router();
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(b"o2"));
    let hashed =
        json!([{"identity_type": "email", "identity_value": hash, "identity_format": "sha256"}]);
    let refused = post(&router, REQUESTS, &request(hashed.clone(), &[]), None, None).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.json()["error"]["code"].as_u64()
        ),
        (400, Some(400))
    );
    drop(router);

    // A model whose subject column holds hashes.
    let mut table = String::from("house,owner,rooms,area,price\n");
    for row in 0..12 {
        let owner =
            data_encoding::HEXLOWER.encode(&Sha256::digest(format!("o{}", row / 4).as_bytes()));
        table.push_str(&format!(
            "h{row},{owner},{},{},{}\n",
            2 + row % 5,
            40 + row * 7,
            100 + row * 9 + row % 3
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut fit = efface_engine::FitRequest::new(
        efface_io::Source::from_bytes("h.csv", table, None).unwrap(),
    );
    fit.targets = vec!["price".into()];
    fit.id = Some("house".into());
    fit.subject = Some("owner".into());
    efface_engine::fit(
        &fit,
        &folder.path().join("houses.efface"),
        false,
        &efface_engine::Silent,
    )
    .unwrap();
    let (settings, _) = speaking_opendsr(folder.path(), true);
    let router = Server::start(settings).await.unwrap().router();
    let both = json!([hashed[0], raw("o1")]);
    assert_eq!(
        post(&router, REQUESTS, &request(both, &[]), None, None)
            .await
            .status
            .as_u16(),
        201
    );
    assert_eq!(until(&router, "completed").await.json()["results_count"], 8);
}

#[tokio::test]
async fn a_request_that_waits_can_be_cancelled_and_stays_so() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let ann = token(folder.path(), &[Scope::Erase, Scope::Audit], None);
    let (mut settings, key) = speaking_opendsr(folder.path(), false);
    settings.tokens = Some(folder.path().join("tokens.json"));
    settings.approval_above = Some(1);
    let router = Server::start(settings.clone()).await.unwrap().router();
    let body = request(json!([raw("o1")]), &[]);
    assert_eq!(
        post(&router, REQUESTS, &body, None, None)
            .await
            .status
            .as_u16(),
        401
    );
    assert_eq!(
        post(&router, REQUESTS, &body, None, Some(&ann))
            .await
            .status
            .as_u16(),
        201
    );
    let path = format!("{REQUESTS}/{ID}");
    assert_eq!(
        get(&router, &path, Some(&ann)).await.json()["request_status"],
        "pending"
    );
    let cancelled = delete(&router, &path, Some(&ann)).await;
    assert_eq!(cancelled.status.as_u16(), 202);
    assert!(is_signed(&cancelled.headers, &cancelled.bytes, &key));
    drop(router);
    let router = Server::start(settings).await.unwrap().router();
    assert_eq!(
        get(&router, &path, Some(&ann)).await.json()["request_status"],
        "cancelled"
    );
    assert_eq!(
        post(&router, REQUESTS, &body, None, Some(&ann))
            .await
            .status
            .as_u16(),
        400
    );
    assert_eq!(
        get(&router, "/v1/models/houses", Some(&ann)).await.json()["rows"],
        40
    );
    let unknown = get(
        &router,
        &format!("{REQUESTS}/{}", ID.replace('a', "b")),
        Some(&ann),
    )
    .await;
    assert_eq!(unknown.status.as_u16(), 404);
}

#[tokio::test]
async fn requests_that_are_no_erasures_of_known_people_are_refused_in_the_form_of_opendsr() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let (settings, _) = speaking_opendsr(folder.path(), false);
    let router = Server::start(settings).await.unwrap().router();
    let good = request(json!([raw("secret-person")]), &[]);
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    let bad = [
        with("subject_request_type", json!("access")),
        with("subject_request_id", json!("../../x")),
        with("subject_request_id", json!(7)),
        with("submitted_time", json!("yesterday")),
        with("regulation", json!("hipaa")),
        with("subject_identities", json!([])),
        with(
            "subject_identities",
            json!([{"identity_type": "fax", "identity_value": "1", "identity_format": "raw"}]),
        ),
        with(
            "subject_identities",
            json!([{"identity_type": "email", "identity_value": "1", "identity_format": "md5"}]),
        ),
        with(
            "subject_identities",
            json!([{"identity_type": "email", "identity_format": "raw"}]),
        ),
        with("status_callback_urls", json!(["http://169.254.169.254/"])),
        json!({}),
    ];
    for body in bad {
        let answer = post(&router, REQUESTS, &body, None, None).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}: {}", answer.json());
        assert_eq!(answer.json()["error"]["code"], 400, "{body}");
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("secret-person"));
    }
    drop(router);
    let router = Server::start(common::settings(folder.path()))
        .await
        .unwrap()
        .router();
    assert_eq!(
        get(&router, "/opendsr/v2/discovery", None)
            .await
            .status
            .as_u16(),
        404
    );
}

#[tokio::test]
async fn deletions_in_the_form_of_mixpanel_are_erasures() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    fit_houses(folder.path(), "small", 8);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    let body = json!({"distinct_ids": ["o0", "o1", "nobody"], "compliance_type": "CCPA"});
    let made = post(
        &router,
        "/data-deletions/v3.0?token=houses",
        &body,
        None,
        None,
    )
    .await;
    assert_eq!(
        (made.status.as_u16(), made.json()["status"].as_str()),
        (201, Some("ok")),
        "{}",
        made.json()
    );
    let task = made.json()["results"]["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let waiting = async {
        loop {
            let asked = get(
                &router,
                &format!("/data-deletions/v3.0/{task}?token=houses"),
                None,
            )
            .await
            .json();
            if asked["results"]["status"] == "SUCCESS" {
                return asked;
            }
            tokio::task::yield_now().await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
    assert_eq!(done["results"]["compliance_type"], "CCPA");
    assert_eq!(
        get(&router, "/v1/models/houses", None).await.json()["rows"],
        32
    );
    assert_eq!(
        get(&router, "/v1/models/small", None).await.json()["rows"],
        8,
        "another project was touched"
    );
    for (path, body) in [
        (
            "/data-deletions/v3.0?token=nothing",
            json!({"distinct_ids": ["o0"]}),
        ),
        ("/data-deletions/v3.0", json!({"distinct_ids": []})),
        (
            "/data-deletions/v3.0",
            json!({"distinct_ids": ["o0"], "compliance_type": "HIPAA"}),
        ),
        (
            "/data-deletions/v3.0",
            json!({"distinct_ids": vec!["x"; 2001]}),
        ),
    ] {
        let answer = post(&router, path, &body, None, None).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.json());
    }
    let unknown = get(&router, "/data-deletions/v3.0/gdpr-00", None).await;
    assert_eq!(unknown.status.as_u16(), 404);
}

#[tokio::test]
async fn an_id_is_for_one_request_and_a_token_for_one_model_hears_of_that_alone() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    fit_houses(folder.path(), "small", 8);
    let erases = token(folder.path(), &[Scope::Erase, Scope::Audit], None);
    let of_small = token(folder.path(), &[Scope::Audit], Some(&["small"]));
    let (mut settings, _) = speaking_opendsr(folder.path(), false);
    settings.tokens = Some(folder.path().join("tokens.json"));
    let router = Server::start(settings).await.unwrap().router();
    let send = async |person: &str| {
        post(
            &router,
            REQUESTS,
            &request(json!([raw(person)]), &[]),
            None,
            Some(&erases),
        )
        .await
    };
    let standing = async |token: &str| {
        let waiting = async {
            loop {
                let asked = get(&router, &format!("{REQUESTS}/{ID}"), Some(token))
                    .await
                    .json();
                if asked["request_status"] == "completed" {
                    return asked["results_count"].as_u64();
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .unwrap()
    };
    assert_eq!(send("o1").await.status.as_u16(), 201);
    assert_eq!(standing(&erases).await, Some(8));
    assert_eq!(
        standing(&of_small).await,
        Some(4),
        "a token for one model hears of the rows of others"
    );
    assert_eq!(send("o1").await.status.as_u16(), 201, "the same request");
    assert_eq!(
        send("o2").await.status.as_u16(),
        400,
        "another one under the same id was promised to be done"
    );
}
