//! A server on a real socket, and bytes sent to it as they are.

use std::net::SocketAddr;
use std::time::Duration;

use efface_server::{Server, ServerSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// No answer takes longer than this in a test; a server that hangs fails the test instead of
/// stopping it.
const LONGEST: Duration = Duration::from_secs(20);

/// A server that runs until it is stopped.
pub(crate) struct RunningServer {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl RunningServer {
    pub(crate) async fn start(settings: ServerSettings) -> Self {
        let server = Server::start(settings).await.unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self {
            address,
            stop,
            running,
        }
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        tokio::time::timeout(LONGEST, self.running)
            .await
            .unwrap()
            .unwrap();
    }

    /// Sends bytes and reads until the server closes the connection.
    pub(crate) async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that refuses early may close before everything is sent.
        let _ = stream.write_all(bytes.as_ref()).await;
        read_to_end(&mut stream).await
    }

    /// Sends a request and closes the connection after its answer.
    pub(crate) async fn ask(&self, head: &str, body: impl AsRef<[u8]>) -> String {
        let body = body.as_ref();
        let length = body.len();
        let head = format!(
            "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send(bytes).await
    }
}

/// Everything that a server says until it closes the connection.
pub(crate) async fn read_to_end(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(LONGEST, async {
        let mut part = [0; 4096];
        loop {
            match stream.read(&mut part).await {
                // A connection that is reset is closed as well.
                Ok(0) | Err(_) => break,
                Ok(count) => answer.extend_from_slice(&part[..count]),
            }
        }
    });
    // A server that neither answers nor closes the connection fails here.
    read.await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer; None where there was none.
pub(crate) fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
