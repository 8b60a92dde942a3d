//! Connections: how many, how long they may say nothing, and how they end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::settings::ServiceLimits;

/// How long the head of a request, or the greeting of TLS, may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(10);

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
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, or a connection that is gone already: the next one may work.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are small and are sent at once.
        let _ = stream.set_nodelay(true);
        let watcher = graceful.watcher();
        let router = router.clone();
        match tls.clone() {
            None => {
                tokio::spawn(converse(stream, router, watcher, place));
            }
            Some(tls) => {
                tokio::spawn(async move {
                    match tokio::time::timeout(HEAD_TIME, tls.accept(stream)).await {
                        Ok(Ok(stream)) => converse(stream, router, watcher, place).await,
                        Ok(Err(_)) | Err(_) => tracing::debug!("a connection did not become TLS"),
                    }
                });
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not finished in time");
    }
}

/// Answers the requests of one connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
    _place: OwnedSemaphorePermit,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(64)
        .max_header_list_size(HEAD_BYTES as u32);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
