//! As much of HTTP/1.1 as a client needs that asks its own server: one connection, kept open. It
//! shares its cores with the server that it measures, so it does little: requests are bytes that
//! were made before, and of an answer the status, the length and the body are looked at.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Result;

/// A connection to a server.
pub(super) struct HttpClient {
    stream: TcpStream,
    /// Room for an answer, of which `filled` bytes are there.
    buffer: Vec<u8>,
    filled: usize,
}

/// An answer.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A POST request as it goes over the wire.
pub(super) fn post_request(path: &str, key: Option<&str>, body: &[u8]) -> Vec<u8> {
    // JSON begins with a brace, which packed numbers of these tests do not.
    let kind = if body.starts_with(b"{") {
        "json"
    } else {
        "octet-stream"
    };
    let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\n{key}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl HttpClient {
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self {
            stream,
            buffer: vec![0; 16 << 10],
            filled: 0,
        })
    }

    pub(super) fn post(
        &mut self,
        path: &str,
        key: Option<&str>,
        body: &[u8],
    ) -> Result<HttpAnswer> {
        self.send(&post_request(path, key, body))
    }

    pub(super) fn get(&mut self, path: &str) -> Result<HttpAnswer> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    /// Sends a whole request and waits for its answer.
    pub(super) fn send(&mut self, request: &[u8]) -> Result<HttpAnswer> {
        self.stream.write_all(request)?;
        self.filled = 0;
        let end = loop {
            self.read_more()?;
            let head = &self.buffer[..self.filled];
            if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|word| word.parse().ok())
            .ok_or("no answer")?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>())
        });
        let length = length.ok_or("an answer without a length")??;
        while self.filled < end + length {
            self.read_more()?;
        }
        Ok(HttpAnswer {
            status,
            body: self.buffer[end..end + length].to_vec(),
        })
    }

    fn read_more(&mut self) -> Result {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..])? {
            0 => Err("the server hung up".into()),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }
}
