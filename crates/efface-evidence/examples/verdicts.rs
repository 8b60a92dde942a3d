//! The verdicts of the first verifier, for `verify/differential.py`, which compares them with those
//! of the second. Every line of standard input is a question in JSON: its kind, its parts in base64,
//! and how many witnesses are needed; every line of standard output is `ok`, or the word of the
//! check that failed.

use std::io::{BufRead, Write};

use efface_evidence::{EvidenceError, PackFiles};
use efface_receipt::{
    KeyRing, LogCheckpoint, ReceiptFault, Signature, TimeStamp, WitnessQuorum, verify_bytes,
};
use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        let parts = question["parts"].as_array().ok_or("parts is a list")?;
        let parts = parts
            .iter()
            .map(|part| data_encoding::BASE64.decode(part.as_str().unwrap_or_default().as_bytes()))
            .collect::<Result<Vec<Vec<u8>>, _>>()?;
        let quorum = question["quorum"].as_u64().map(|needed| needed as usize);
        let kind = question["kind"].as_str().unwrap_or_default();
        writeln!(out, "{}", verdict(kind, &parts, quorum)?)?;
    }
    Ok(())
}

fn verdict(
    kind: &str,
    parts: &[Vec<u8>],
    quorum: Option<usize>,
) -> Result<&'static str, Box<dyn std::error::Error>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let checked = match (kind, parts) {
        ("keys", [list]) => KeyRing::from_bytes(list).map(drop),
        ("checkpoint", [note, keys]) => {
            let Some(note) = text(note) else {
                return Ok("text");
            };
            KeyRing::from_bytes(keys).and_then(|keys| LogCheckpoint::verify(&note, &keys).map(drop))
        }
        ("witnesses", [note, witnesses]) => {
            let Some(note) = text(note) else {
                return Ok("text");
            };
            WitnessQuorum::from_bytes(witnesses, quorum)
                .and_then(|quorum| quorum.verify(&note).map(drop))
        }
        ("stamp", [token, signature]) => {
            let signature = Signature(signature.as_slice().try_into()?);
            TimeStamp::parse(token).and_then(|stamp| {
                stamp.check(&signature)?;
                // A receipt holds a token, and not the answer that it came in.
                if stamp.token == *token {
                    Ok(())
                } else {
                    Err(ReceiptFault::Stamp("it is an answer, and no token alone"))
                }
            })
        }
        ("bundle", [bundle, keys]) => {
            KeyRing::from_bytes(keys).and_then(|keys| verify_bytes(bundle, &keys).map(drop))
        }
        ("pack", [pack, keys]) => {
            let found = PackFiles::read(pack.as_slice())
                .and_then(|pack| pack.verify(&KeyRing::from_bytes(keys)?));
            match found {
                Err(EvidenceError::File { fault, .. }) => Err(fault),
                Err(_) => return Ok("pack"),
                Ok(_) => Ok(()),
            }
        }
        _ => return Err(format!("no question of kind {kind:?}").into()),
    };
    Ok(checked.map_or_else(|fault| fault.check(), |()| "ok"))
}
