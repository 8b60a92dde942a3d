//! As much of HTTP/1.1 as a client needs that asks its own server: one connection, kept open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Result;

/// A connection to a server.
pub(super) struct HttpClient {
    stream: BufReader<TcpStream>,
}

/// An answer.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl HttpClient {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(super) fn post(&mut self, path: &str, key: Option<&str>, body: &[u8]) -> Result<HttpAnswer> {
        // JSON begins with a brace, which packed numbers of these tests do not.
        let kind = if body.starts_with(b"{") { "json" } else { "octet-stream" };
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(key) = key {
            head.push_str(&format!("Idempotency-Key: {key}\r\n"));
        }
        head.push_str("\r\n");
        self.ask(head.into_bytes(), body)
    }

    pub(super) fn get(&mut self, path: &str) -> Result<HttpAnswer> {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes(), &[])
    }

    fn ask(&mut self, mut request: Vec<u8>, body: &[u8]) -> Result<HttpAnswer> {
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or("no answer")?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(HttpAnswer { status, body })
    }
}
