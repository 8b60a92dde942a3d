//! Checks one receipt. Standard input holds the public keys that are trusted, one a line as `efface
//! keys` prints them, an empty line, and the file of the receipt with its proofs; standard output
//! gets the answer in JSON.
//!
//! It needs nothing else of its surroundings, so that it runs in a browser with a few lines around
//! it, and in any runtime for WebAssembly: `(cat keys; echo; cat receipt.cose) | wasmtime
//! efface-verifier.wasm`. Browsers load it, so it is kept small: the question is cut rather than
//! parsed, and the answer is written by the canonical writer that the verifier has anyway.

use std::io::{Read, Write};

use efface_receipt::{KeyRing, MAX_BUNDLE_BYTES, canonical, verify_bytes};
use serde_json::{Map, Value};

/// What parts the keys from the receipt.
const EMPTY_LINE: &[u8] = b"\n\n";

/// Bytes of a question, at most: a receipt of the largest size, and keys.
const MOST_BYTES: u64 = 2 * MAX_BUNDLE_BYTES as u64;

fn main() -> std::io::Result<()> {
    let mut question = Vec::new();
    std::io::stdin()
        .take(MOST_BYTES)
        .read_to_end(&mut question)?;
    let mut members = Map::new();
    match answer(&question) {
        Ok(found) => {
            members = found;
            members.insert("verified".to_owned(), Value::Bool(true));
        }
        Err(fault) => {
            members.insert("fault".to_owned(), Value::String(fault));
            members.insert("verified".to_owned(), Value::Bool(false));
        }
    }
    let answer = canonical::write(&Value::Object(members));
    std::io::stdout().write_all(&answer.unwrap_or_default())
}

/// The receipt, the number of receipts in the log whose signed head contains it, and the key that
/// signed it.
fn answer(question: &[u8]) -> Result<Map<String, Value>, String> {
    let cut = question
        .windows(EMPTY_LINE.len())
        .position(|window| window == EMPTY_LINE);
    let (keys, receipt) =
        question.split_at(cut.ok_or("the question has no empty line after its keys")?);
    let keys =
        KeyRing::from_bytes(keys).map_err(|fault| format!("the keys cannot be read: {fault}"))?;
    let found =
        verify_bytes(&receipt[EMPTY_LINE.len()..], &keys).map_err(|fault| fault.to_string())?;
    let mut members = Map::new();
    members.insert("receipt".to_owned(), found.receipt.to_value());
    members.insert("log_size".to_owned(), Value::from(found.checkpoint.size));
    members.insert("key".to_owned(), Value::String(found.key.to_string()));
    Ok(members)
}
