//! Somebody who gets callbacks: a socket that answers what it is told to and shows what came.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// A request as it came.
pub(crate) struct ReceivedCallback {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedCallback {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| {
            line.split_once(':')
                .is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
        };
        self.head
            .lines()
            .find(named)?
            .split_once(':')
            .map(|(_, value)| value.trim())
    }
}

/// A receiver of callbacks.
pub(crate) struct CallbackReceiver {
    pub(crate) port: u16,
    came: mpsc::UnboundedReceiver<ReceivedCallback>,
}

impl CallbackReceiver {
    /// Answers one request after the other with these heads, the last of them for ever. An empty
    /// one is no answer: the connection stays open until the sender has waited long enough.
    pub(crate) async fn start(answers: &[&str]) -> Self {
        Self::start_with(answers, None).await
    }

    pub(crate) async fn start_with(answers: &[&str], tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        let answers = Arc::new(answers);
        let (tell, came) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for at in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let answer = answers[at.min(answers.len() - 1)].clone();
                let tell = tell.clone();
                match tls.clone() {
                    None => {
                        tokio::spawn(answer_one(stream, answer, tell));
                    }
                    Some(tls) => {
                        tokio::spawn(async move {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer_one(stream, answer, tell).await;
                            }
                        });
                    }
                }
            }
        });
        Self { port, came }
    }

    pub(crate) async fn next(&mut self) -> ReceivedCallback {
        tokio::time::timeout(Duration::from_secs(20), self.came.recv())
            .await
            .unwrap()
            .unwrap()
    }

    /// What has come, if anything has.
    pub(crate) fn try_next(&mut self) -> Option<ReceivedCallback> {
        self.came.try_recv().ok()
    }

    /// Whether nothing has come.
    pub(crate) fn is_untouched(&mut self) -> bool {
        self.came.try_recv().is_err()
    }
}

async fn answer_one(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: String,
    tell: mpsc::UnboundedSender<ReceivedCallback>,
) {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let received = ReceivedCallback {
                head: head.to_owned(),
                body: body.to_owned(),
            };
            let length = received
                .header("content-length")
                .map_or(0, |length| length.parse().unwrap());
            if received.body.len() >= length && answer.is_empty() {
                let _ = stream.read(&mut part).await;
                return;
            }
            if received.body.len() >= length {
                stream
                    .write_all(format!("{answer}\r\nContent-Length: 0\r\n\r\n").as_bytes())
                    .await
                    .unwrap();
                tell.send(received).unwrap_or_default();
                return;
            }
        }
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
}
