//! TLS, and clients that must show a certificate. The certificates are made here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::wire::{RunningServer, read_to_end, status};
use common::{fit_houses, settings};
use efface_server::TlsFiles;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ED25519,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Who signs certificates.
struct TestAuthority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl TestAuthority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    fn signs(&self, name: &str, key: &KeyPair) -> Certificate {
        CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(key, &self.issuer)
            .unwrap()
    }

    /// A client that trusts this authority, and shows a certificate where it has one.
    fn client(&self, shown: Option<(&Certificate, &KeyPair)>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }
}

/// Writes a certificate of the server; the authority of its clients where there is one.
fn tls_files(
    folder: &Path,
    authority: &TestAuthority,
    clients: Option<&TestAuthority>,
) -> TlsFiles {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let certificate = authority.signs("localhost", &key);
    std::fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    let client_authority = clients.map(|clients| {
        std::fs::write(folder.join("clients.pem"), clients.certificate.pem()).unwrap();
        folder.join("clients.pem")
    });
    TlsFiles {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
        client_authority,
    }
}

async fn serve(folder: &Path, tls: TlsFiles) -> RunningServer {
    fit_houses(folder, "houses", 12);
    let mut settings = settings(folder);
    settings.tls = Some(tls);
    RunningServer::start(settings).await
}

/// What a client hears of the server's health; empty where it is not let in.
async fn ask(server: &RunningServer, client: &TlsConnector) -> String {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let Ok(mut stream) = client
        .connect("localhost".try_into().unwrap(), stream)
        .await
    else {
        return String::new();
    };
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // With TLS 1.3 a client hears only after its greeting that its certificate is refused.
    let _ = stream.write_all(request).await;
    read_to_end(&mut stream).await
}

#[tokio::test]
async fn the_server_speaks_tls_and_nothing_else_where_it_has_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new();
    let server = serve(folder.path(), tls_files(folder.path(), &authority, None)).await;
    assert_eq!(
        status(&ask(&server, &authority.client(None)).await),
        Some(200)
    );
    let stranger = TestAuthority::new();
    assert_eq!(
        ask(&server, &stranger.client(None)).await,
        "",
        "a client took a certificate that it does not trust"
    );
    let plain = server
        .send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(status(&plain), None, "{plain}");
    server.stop().await;
}

#[tokio::test]
async fn only_clients_with_a_certificate_of_the_authority_are_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new();
    let clients = TestAuthority::new();
    let server = serve(
        folder.path(),
        tls_files(folder.path(), &authority, Some(&clients)),
    )
    .await;
    let key = KeyPair::generate().unwrap();
    let good = clients.signs("ann", &key);
    assert_eq!(
        status(&ask(&server, &authority.client(Some((&good, &key)))).await),
        Some(200)
    );
    assert_eq!(
        ask(&server, &authority.client(None)).await,
        "",
        "a client without a certificate was let in"
    );
    let foreign = authority.signs("ann", &key);
    assert_eq!(
        ask(&server, &authority.client(Some((&foreign, &key)))).await,
        "",
        "a foreign certificate was let in"
    );
    let mut old = CertificateParams::new(vec!["ann".to_owned()]).unwrap();
    old.not_before = rcgen::date_time_ymd(2001, 1, 1);
    old.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let old = old.signed_by(&key, &clients.issuer).unwrap();
    assert_eq!(
        ask(&server, &authority.client(Some((&old, &key)))).await,
        "",
        "an expired certificate was let in"
    );
    server.stop().await;
}

#[tokio::test]
async fn files_that_are_no_certificates_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 12);
    let authority = TestAuthority::new();
    let good = tls_files(folder.path(), &authority, None);
    std::fs::write(folder.path().join("empty.pem"), "no certificate").unwrap();
    let other = KeyPair::generate().unwrap();
    std::fs::write(folder.path().join("other.key"), other.serialize_pem()).unwrap();
    let with = |certificate: &str, key: &str, clients: Option<&str>| TlsFiles {
        certificate: folder.path().join(certificate),
        key: folder.path().join(key),
        client_authority: clients.map(|clients| folder.path().join(clients)),
    };
    let cases = [
        (with("empty.pem", "server.key", None), "empty.pem"),
        (with("missing.pem", "server.key", None), "missing.pem"),
        (with("server.pem", "empty.pem", None), "empty.pem"),
        (with("server.pem", "other.key", None), "server.pem"),
        (
            with("server.pem", "server.key", Some("empty.pem")),
            "empty.pem",
        ),
    ];
    for (files, named) in cases {
        let mut settings = settings(folder.path());
        settings.tls = Some(files);
        let refused = efface_server::Server::start(settings)
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains(named), "{named}: {refused}");
    }
    assert!(good.client_authority.is_none());
}
