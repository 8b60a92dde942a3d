//! `efface witness`: a small witness of logs, on files. A server around it passes bodies in and
//! answers out.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use efface_engine::files::{DraftFile, PlannedOutput, check_outputs, open_plain};
use efface_engine::{Error, draw_key};
use efface_receipt::{
    CheckpointRequest, KeyRing, SecretKey, WitnessKey, WitnessQuorum, WitnessRefusal, WitnessState,
};
use serde_json::json;
use zeroize::Zeroizing;

use super::receipt::read;
use crate::cli::{WitnessAction, WitnessArguments};
use crate::failure::{Failure, Result};
use crate::list;
use crate::terminal::Terminal;

pub(crate) fn run(args: &WitnessArguments, terminal: &Terminal) -> Result {
    match &args.action {
        WitnessAction::Init { state, name } => init(state, name, terminal),
        WitnessAction::Key { state } => terminal.result(&public(&secret(state)?)),
        WitnessAction::Watch { state, keys } => watch(state, keys, terminal),
        WitnessAction::Cosign { state, request } => cosign(state, request, terminal),
    }
}

/// The keys of witnesses in a file, and how many of them are needed.
pub(super) fn keys(path: &Path, needed: Option<usize>) -> Result<WitnessQuorum> {
    Ok(WitnessQuorum::from_bytes(&read(path)?, needed).map_err(Error::from)?)
}

fn key_path(state: &Path) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

fn public(secret: &SecretKey) -> String {
    WitnessKey::new(secret.public()).to_string()
}

fn secret(state: &Path) -> Result<SecretKey> {
    let path = key_path(state);
    let mut text = Zeroizing::new(String::new());
    open_plain(&path)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|cause| Failure::file(&path, "read", &cause))?;
    Ok(SecretKey::parse(text.trim()).map_err(Error::from)?)
}

fn init(state: &Path, name: &str, terminal: &Terminal) -> Result {
    let key = key_path(state);
    check_outputs(
        &[PlannedOutput::file(state), PlannedOutput::file(&key)],
        &[],
        false,
    )?;
    let secret = draw_key(name)?;
    write(&key, secret.to_text().as_bytes(), false)?;
    keep(state, &WitnessState::default(), false)?;
    terminal.result(&public(&secret))
}

fn watch(state: &Path, keys: &Path, terminal: &Terminal) -> Result {
    let keys = KeyRing::from_bytes(&read(keys)?).map_err(Error::from)?;
    let _lock = lock(state)?;
    let mut known = load(state)?;
    let origin = known.watch(&keys).map_err(Error::from)?;
    keep(state, &known, true)?;
    terminal.message(&format!("watches {origin}"));
    Ok(())
}

fn cosign(state: &Path, request: &Path, terminal: &Terminal) -> Result {
    let body = if request == Path::new("-") {
        list::whole_input()?
    } else {
        read(request)?
    };
    let secret = secret(state)?;
    // Whoever reads the state and writes it anew holds it: two heads that came at once are judged
    // one after the other.
    let _lock = lock(state)?;
    let mut known = load(state)?;
    let asked = String::from_utf8(body).map_err(|_| Failure::data("the request is no text"))?;
    let judged = CheckpointRequest::parse(&asked)
        .map_err(WitnessRefusal::BadRequest)
        .and_then(|request| known.add_checkpoint(&request, seconds_since_1970(), &secret));
    let line = match judged {
        Ok(line) => line,
        Err(refusal) => return refused(&refusal, terminal),
    };
    // On disk before it is given away: what was signed is never forgotten.
    keep(state, &known, true)?;
    if terminal.json() {
        return terminal.object(&json!({"status": 200, "cosignature": line}));
    }
    terminal.result(line.trim_end())
}

fn refused(refusal: &WitnessRefusal, terminal: &Terminal) -> Result {
    let status = refusal.status();
    let size = if let WitnessRefusal::Conflict { size } = refusal {
        Some(*size)
    } else {
        None
    };
    if terminal.json() {
        terminal.object(&json!({"status": status, "size": size}))?;
    }
    let failure = Failure::refused(format!("status {status}: {refusal}"));
    Err(match refusal {
        WitnessRefusal::Conflict { size } => {
            failure.hint(format!("ask with `efface log MODEL --for-witness {size}`"))
        }
        WitnessRefusal::UnknownLog(_) => {
            failure.hint("`efface witness watch STATE KEYS` watches it")
        }
        _ => failure,
    })
}

fn seconds_since_1970() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Held until it is dropped. The key file is locked and not the state, which is replaced with every
/// signature.
fn lock(state: &Path) -> Result<File> {
    let path = key_path(state);
    let locked = open_plain(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|cause| Failure::file(&path, "locked", &cause))
}

fn load(state: &Path) -> Result<WitnessState> {
    serde_json::from_slice(&read(state)?)
        .map_err(|_| Failure::data(format!("{} is no file of a witness", state.display())))
}

fn keep(state: &Path, known: &WitnessState, overwrite: bool) -> Result {
    let text = serde_json::to_vec(known)
        .map_err(|cause| Failure::internal(format!("a state is no JSON: {cause}")))?;
    write(state, &text, overwrite)
}

fn write(path: &Path, bytes: &[u8], overwrite: bool) -> Result {
    let written = || -> std::io::Result<()> {
        let mut draft = DraftFile::create(path)?;
        draft.write_all(bytes)?;
        draft.publish(overwrite, 0o600)
    };
    written().map_err(|cause| Failure::file(path, "written", &cause))
}
