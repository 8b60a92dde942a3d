//! A folder with a model in it, and a server over it.

#![allow(dead_code, reason = "not every test file uses all of it")]

pub(crate) mod office;
pub(crate) mod receiver;
pub(crate) mod wire;

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use efface_engine::{FitRequest, Silent, fit};
use efface_io::Source;
use efface_server::{OpenDsrSettings, Scope, Server, ServerSettings, TokenGrant, TokenStore};
use http_body_util::BodyExt;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use serde_json::Value;
use tower::ServiceExt;

/// Fits a model of houses: `rows` of them, each owner having four.
pub(crate) fn fit_houses(folder: &Path, name: &str, rows: usize) {
    let mut table = String::from("house,owner,rooms,area,price\n");
    for row in 0..rows {
        let rooms = 2 + row % 5;
        let area = 40 + (row * 37) % 90;
        let price = 30 * rooms + 2 * area + (row * 13) % 17;
        table.push_str(&format!("h{row},o{},{rooms},{area},{price}\n", row / 4));
    }
    let mut request = FitRequest::new(Source::from_bytes("houses.csv", table, None).unwrap());
    request.targets = vec!["price".into()];
    request.id = Some("house".into());
    request.subject = Some("owner".into());
    fit(
        &request,
        &folder.join(format!("{name}.efface")),
        false,
        &Silent,
    )
    .unwrap();
}

/// A server over a folder with one model of 40 rows, for everyone.
pub(crate) async fn open_server(folder: &Path) -> Server {
    fit_houses(folder, "houses", 40);
    Server::start(settings(folder)).await.unwrap()
}

pub(crate) fn settings(folder: &Path) -> ServerSettings {
    ServerSettings::new(folder, "127.0.0.1:0".parse().unwrap())
}

/// A server that speaks OpenDSR, and the public key of its certificate.
pub(crate) fn speaking_opendsr(folder: &Path, is_hashed: bool) -> (ServerSettings, Vec<u8>) {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let certificate = CertificateParams::new(vec!["models.example".into()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    std::fs::write(folder.join("dsr.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("dsr.key"), key.serialize_pem()).unwrap();
    let mut settings = settings(folder);
    settings.opendsr = Some(OpenDsrSettings {
        domain: "models.example".into(),
        certificate: folder.join("dsr.pem"),
        key: folder.join("dsr.key"),
        identities: vec!["email".into(), "controller_customer_id".into()],
        is_hashed,
    });
    (settings, key.der_bytes().to_vec())
}

/// A token with these scopes.
pub(crate) fn token(folder: &Path, scopes: &[Scope], models: Option<&[&str]>) -> String {
    let store = TokenStore::open(&folder.join("tokens.json")).unwrap();
    let grant = TokenGrant {
        name: "a test".into(),
        scopes: scopes.to_vec(),
        models: models.map(|models| models.iter().map(|model| (*model).to_owned()).collect()),
        expires_at: None,
    };
    store.create(grant).unwrap().text.to_string()
}

/// One request and its answer.
pub(crate) struct Asked {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) async fn ask(router: &Router, request: Request<Body>) -> Asked {
    let response: Response<Body> = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let headers = response.headers().clone();
    let bytes = response
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes()
        .to_vec();
    Asked {
        status,
        headers,
        bytes,
    }
}

pub(crate) async fn get(router: &Router, path: &str, token: Option<&str>) -> Asked {
    ask(
        router,
        with_token(Request::get(path), token)
            .body(Body::empty())
            .unwrap(),
    )
    .await
}

pub(crate) async fn post(
    router: &Router,
    path: &str,
    body: &Value,
    key: Option<&str>,
    token: Option<&str>,
) -> Asked {
    let mut request =
        with_token(Request::post(path), token).header(header::CONTENT_TYPE, "application/json");
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    ask(router, request.body(Body::from(body.to_string())).unwrap()).await
}

fn with_token(
    request: axum::http::request::Builder,
    token: Option<&str>,
) -> axum::http::request::Builder {
    match token {
        Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    }
}
