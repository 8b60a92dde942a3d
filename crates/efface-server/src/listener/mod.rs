//! Connections: how many, how long they may say nothing or take nothing, and how they end.

mod stall;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::util::MapRequest;

use crate::access::ClientAddress;
use crate::settings::ServiceLimits;
use stall::StallGuard;

/// How long requests in flight may take after the server was asked to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(60);

/// Bytes of all headers of a request.
const HEAD_BYTES: usize = 64 << 10;

/// Accepts connections until `stop` is done, and lets those that are open finish.
pub(crate) async fn serve(
    limits: &ServiceLimits,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: impl Future<Output = ()> + Send,
) {
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let patience = limits.head_time;
    let mut stop = pin!(stop);
    loop {
        // A place first: whoever comes when all are taken waits in the system's queue.
        let place = tokio::select! {
            () = &mut stop => break,
            place = connections.clone().acquire_owned() => place,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, client) = match accepted {
            Ok((stream, address)) => (stream, ClientAddress(address.ip())),
            Err(error) => {
                // Too many open files, or a connection that is gone already: the next one may work.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are small and are sent at once.
        let _ = stream.set_nodelay(true);
        let conversation = Conversation {
            router: MapRequest::new(router.clone(), from_client(client)),
            watcher: graceful.watcher(),
            patience,
            place,
        };
        match tls.clone() {
            // Without TLS nothing says that a client speaks HTTP/2, and waiting to find out would
            // have no end.
            None => {
                tokio::spawn(conversation.in_http1(stream));
            }
            Some(tls) => {
                tokio::spawn(async move {
                    match tokio::time::timeout(patience, tls.accept(stream)).await {
                        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                            conversation.in_http2(stream).await;
                        }
                        Ok(Ok(stream)) => conversation.in_http1(stream).await,
                        Ok(Err(_)) | Err(_) => tracing::debug!("a connection did not become TLS"),
                    }
                });
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(LAST_REQUESTS, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests were not finished in time");
    }
}

/// Tells requests of a connection where they came from.
fn from_client<B>(client: ClientAddress) -> impl Fn(Request<B>) -> Request<B> + Clone {
    move |mut request| {
        request.extensions_mut().insert(client);
        request
    }
}

/// What one connection needs until it ends.
struct Conversation<F> {
    router: MapRequest<Router, F>,
    watcher: Watcher,
    /// How long the head of a request may take, and how long answers may lie without being taken.
    patience: Duration,
    /// The place of the connection among all, free again when it ends.
    place: OwnedSemaphorePermit,
}

impl<F: Fn(Request<Incoming>) -> Request<Incoming> + Clone + Send + 'static> Conversation<F> {
    async fn in_http1(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self {
            router,
            watcher,
            patience,
            place,
        } = self;
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(patience);
        // A buffer as large would not do: what came in one read may be larger than it.
        builder.max_header_size(HEAD_BYTES);
        let stream = TokioIo::new(StallGuard::new(stream, patience));
        let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
        ended(watcher.watch(connection).await);
        drop(place);
    }

    async fn in_http2(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self {
            router,
            watcher,
            patience,
            place,
        } = self;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(64)
            .max_header_list_size(HEAD_BYTES as u32)
            .keep_alive_interval(patience)
            .keep_alive_timeout(patience);
        let stream = TokioIo::new(StallGuard::new(stream, patience));
        let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
        ended(watcher.watch(connection).await);
        drop(place);
    }
}

fn ended(outcome: hyper::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}
