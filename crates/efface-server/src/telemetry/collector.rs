//! One request to a collector. It runs on the runtime of the server: the thread that gathers spans
//! has none.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer that are read.
const ANSWER_BYTES: usize = 64 << 10;

/// Sends spans to one collector.
#[derive(Debug, Clone)]
pub(super) struct CollectorClient {
    host: String,
    port: u16,
    runtime: Handle,
}

impl CollectorClient {
    /// The collector at an address such as `http://127.0.0.1:4318`.
    pub(super) fn new(address: &str) -> Result<Self, String> {
        let url: Uri = address.parse().map_err(|_| "it is no URL".to_owned())?;
        if url.scheme_str() != Some("http") || url.path() != "/" || url.query().is_some() {
            let form = "it must have the form http://HOST:PORT; a collector beside the server can send on by TLS";
            return Err(form.into());
        }
        let host = url
            .host()
            .ok_or("it names no host")?
            .trim_matches(['[', ']'])
            .to_owned();
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        Ok(Self {
            host,
            port: url.port_u16().unwrap_or(4318),
            runtime,
        })
    }

    async fn exchange(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let (mut head, body) = request.into_parts();
        // A server is asked for a path; which server that is stands in a header.
        head.headers.insert(
            header::HOST,
            format!("{}:{}", self.host, self.port).parse()?,
        );
        head.uri = head.uri.path().parse()?;
        let answer = sender
            .send_request(Request::from_parts(head, Full::new(body)))
            .await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
        connection.abort();
        Ok(Response::from_parts(head, body))
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'client, 'call>(
        &'client self,
        request: Request<Bytes>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        let exchange = self.clone().exchange(request);
        let sent = self
            .runtime
            .spawn(async move { tokio::time::timeout(PATIENCE, exchange).await });
        Box::pin(async move { sent.await?? })
    }
}
