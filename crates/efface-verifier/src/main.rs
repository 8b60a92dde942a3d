//! Checks one receipt: a question in JSON on standard input, the answer in JSON on standard output.
//!
//! It needs nothing else of its surroundings, so that it runs in a browser with a few lines around it, and in any runtime for
//! WebAssembly: `wasmtime efface-verifier.wasm < question.json`.

use std::io::{Read, Write};

use efface_receipt::{KeyRing, Receipt, verify_bytes};
use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyQuestion {
    /// The public keys that are trusted, as `efface keys` prints them.
    keys: String,
    /// The receipt with its proofs, in base64.
    receipt: String,
}

/// What was found.
#[derive(Serialize)]
#[serde(untagged)]
enum VerifyAnswer {
    Verified {
        verified: bool,
        receipt: Box<Receipt>,
        /// Receipts in the log whose signed head contains this one.
        log_size: u64,
        /// The key that signed it.
        key: String,
    },
    NotVerified {
        verified: bool,
        fault: String,
    },
}

/// Bytes of a question, at most: a receipt of the largest size in base64, and keys.
const MOST_BYTES: u64 = 32 << 20;

fn main() -> std::io::Result<()> {
    let mut question = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut question)?;
    let answer =
        answer(&question).unwrap_or_else(|fault| VerifyAnswer::NotVerified { verified: false, fault });
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, &answer)?;
    output.write_all(b"\n")
}

fn answer(question: &str) -> Result<VerifyAnswer, String> {
    let question: VerifyQuestion = serde_json::from_str(question)
        .map_err(|_| "the question is not of the form {keys, receipt}".to_owned())?;
    let keys = KeyRing::parse(&question.keys).map_err(|fault| format!("the keys cannot be read: {fault}"))?;
    let bytes = data_encoding::BASE64.decode(question.receipt.as_bytes());
    let bytes = bytes.map_err(|_| "the receipt is not in base64".to_owned())?;
    let found = verify_bytes(&bytes, &keys).map_err(|fault| fault.to_string())?;
    Ok(VerifyAnswer::Verified {
        verified: true,
        receipt: Box::new(found.receipt),
        log_size: found.checkpoint.size,
        key: found.key.to_string(),
    })
}
