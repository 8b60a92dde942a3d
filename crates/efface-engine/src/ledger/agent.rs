//! A signing key in an agent that speaks the protocol of ssh-agent (draft-ietf-sshm-ssh-agent): a
//! socket, and messages of which each has its length before it. Two are asked for: which keys there
//! are, and a signature.

use std::path::Path;

type AgentResult<T> = std::result::Result<T, String>;

const LIST_KEYS: u8 = 11;
const KEYS: u8 = 12;
const SIGN: u8 = 13;
const SIGNATURE: u8 = 14;
const ED25519: &[u8] = b"ssh-ed25519";
/// More than an agent with hundreds of keys answers.
#[cfg(unix)]
const LARGEST: u32 = 1 << 20;

/// The one Ed25519 key of an agent.
pub(super) fn public_key(socket: &Path) -> AgentResult<[u8; 32]> {
    let answer = ask(socket, &[LIST_KEYS])?;
    let mut reader = AgentReader(&answer);
    if reader.byte() != Some(KEYS) {
        return Err("the agent does not list its keys".into());
    }
    let mut found = Vec::new();
    for _ in 0..reader.number().unwrap_or(0) {
        let (Some(blob), Some(_comment)) = (reader.bytes(), reader.bytes()) else {
            return Err("the agent's list of keys is cut short".into());
        };
        found.extend(ed25519_key(blob));
    }
    match found.as_slice() {
        [key] => Ok(*key),
        keys => Err(format!(
            "the agent holds {} Ed25519 keys where there must be one; run an agent for the key of this model alone",
            keys.len()
        )),
    }
}

/// The signature of a message by this key.
pub(super) fn sign(socket: &Path, key: &[u8; 32], message: &[u8]) -> AgentResult<[u8; 64]> {
    let mut request = vec![SIGN];
    put(&mut request, &blob(key));
    put(&mut request, message);
    request.extend(0u32.to_be_bytes());
    let answer = ask(socket, &request)?;
    let mut reader = AgentReader(&answer);
    if reader.byte() != Some(SIGNATURE) {
        return Err("the agent does not sign with the key of this model".into());
    }
    let mut signature = AgentReader(reader.bytes().unwrap_or_default());
    let kind = signature.bytes();
    let bytes = signature
        .bytes()
        .and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
    match bytes {
        Some(bytes) if kind == Some(ED25519) => Ok(bytes),
        _ => Err("the agent gave no Ed25519 signature".into()),
    }
}

/// A public key as the agent names it.
fn blob(key: &[u8; 32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, ED25519);
    put(&mut bytes, key);
    bytes
}

fn ed25519_key(blob: &[u8]) -> Option<[u8; 32]> {
    let mut reader = AgentReader(blob);
    let kind = reader.bytes()?;
    let key = <[u8; 32]>::try_from(reader.bytes()?).ok()?;
    (kind == ED25519).then_some(key)
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u32).to_be_bytes());
    bytes.extend_from_slice(part);
}

#[cfg(unix)]
fn ask(socket: &Path, request: &[u8]) -> AgentResult<Vec<u8>> {
    use std::io::{Read, Write};
    let told = |cause: std::io::Error| {
        format!("the agent at {} does not answer: {cause}", socket.display())
    };
    let mut stream = std::os::unix::net::UnixStream::connect(socket).map_err(told)?;
    let mut message = Vec::new();
    put(&mut message, request);
    stream.write_all(&message).map_err(told)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(told)?;
    let length = u32::from_be_bytes(length);
    if length > LARGEST {
        return Err(format!(
            "the agent's answer has {length} bytes, more than the {LARGEST} that are read"
        ));
    }
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer).map_err(told)?;
    Ok(answer)
}

#[cfg(not(unix))]
fn ask(_: &Path, _: &[u8]) -> AgentResult<Vec<u8>> {
    Err("agents are asked through Unix sockets, which this system does not have".into())
}

/// The parts of a message; None where it is cut short.
struct AgentReader<'a>(&'a [u8]);

impl<'a> AgentReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }
}
