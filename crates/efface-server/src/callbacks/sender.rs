//! One attempt to deliver a callback: resolve once, look at every address, connect to what was
//! looked at, send, read a status.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::{CallbackHost, is_public};
use super::delivery::DeliveryFailure;

/// Bytes of the head of an answer that are read.
const ANSWER_BYTES: usize = 16 << 10;

/// What sends callbacks.
pub(crate) struct CallbackSender {
    tls: TlsConnector,
    allow_private: bool,
    patience: Duration,
}

impl CallbackSender {
    /// `authorities` are trusted besides those of the system.
    pub(crate) fn new(
        authorities: Vec<rustls::pki_types::CertificateDer<'static>>,
        allow_private: bool,
        patience: Duration,
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority)?;
        }
        // A system without a list, or with a broken entry, still reaches receivers of the named
        // authorities.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
            allow_private,
            patience,
        })
    }

    /// Sends a request to the host that it names.
    pub(crate) async fn send(
        &self,
        host: &CallbackHost,
        request: Request<Body>,
    ) -> Result<(), DeliveryFailure> {
        match tokio::time::timeout(self.patience, self.attempt(host, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(DeliveryFailure::passing("no answer in time")),
        }
    }

    async fn attempt(
        &self,
        host: &CallbackHost,
        request: Request<Body>,
    ) -> Result<(), DeliveryFailure> {
        let stream = self.connect(host).await?;
        if !host.is_secure() {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(host.name().to_owned());
        let name = name.map_err(|_| {
            DeliveryFailure::passing("the name of the host is none for a certificate")
        })?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream
            .map_err(|_| DeliveryFailure::passing("no TLS with a certificate of that name"))?;
        exchange(stream, request).await
    }

    /// A connection to an address that was looked at: resolving a second time could give another
    /// one.
    async fn connect(&self, host: &CallbackHost) -> Result<TcpStream, DeliveryFailure> {
        let found = tokio::net::lookup_host((host.name(), host.port())).await;
        let found: Vec<SocketAddr> = found
            .map_err(|_| DeliveryFailure::passing("the name of the host cannot be resolved"))?
            .collect();
        if !self.allow_private && found.iter().any(|address| !is_public(address.ip())) {
            return Err(DeliveryFailure::passing(
                "the host resolves to a private address, which is not allowed",
            ));
        }
        for address in found {
            if let Ok(stream) = TcpStream::connect(address).await {
                return Ok(stream);
            }
        }
        Err(DeliveryFailure::passing("no connection"))
    }
}

/// Sends the request and reads the head of the answer. Redirects are not followed: they are
/// failures like any other.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<(), DeliveryFailure> {
    let broken = |_: hyper::Error| DeliveryFailure::passing("the connection broke");
    let mut builder = http1::Builder::new();
    builder.max_buf_size(ANSWER_BYTES);
    let (mut sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    // The rest of the answer is of no interest, however long it is.
    connection.abort();
    let answer = answer.map_err(broken)?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let after = answer
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    Err(DeliveryFailure {
        reason: format!("status {}", status.as_u16()),
        retry_after: after
            .and_then(|text| text.parse().ok())
            .map(Duration::from_secs),
        is_final: status == StatusCode::GONE,
    })
}
