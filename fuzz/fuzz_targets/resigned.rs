#![no_main]
//! Receipts whose signer lies: values of valid receipts are replaced and the receipts are signed
//! anew, so that nothing but the rules of consistency can refuse them. A receipt that is signed is
//! read back to the same bytes, and a log of such receipts is replayed or refused.
//!
//! The input is a list of edits: four bytes each say which receipt, which value, and by what it is
//! replaced.

use std::sync::LazyLock;

use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit};
use efface_io::Source;
use efface_receipt::{KeyRing, LogReplay, Receipt, SecretKey, SignedReceipt};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The receipts of a log, as JSON, and the key that signs them.
struct BaseLog {
    receipts: Vec<Value>,
    key: String,
}

static LOG: LazyLock<BaseLog> = LazyLock::new(|| match base() {
    Some(log) => log,
    None => panic!("no log could be made"),
});

fn base() -> Option<BaseLog> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("model");
    let rows: String = (0..24)
        .map(|at| format!("r{at},{},{}\n", at * 7 % 11, at % 5))
        .collect();
    let mut request =
        FitRequest::new(Source::from_bytes("a.csv", format!("id,x,y\n{rows}"), None).ok()?);
    request.targets = vec!["y".into()];
    request.id = Some("id".into());
    fit(&request, &path, false, &Silent).ok()?;
    let mut engine = Engine::open(&path).ok()?;
    let one = |id: &str| ForgetRequest::new(RowSelection::Ids(vec![id.into()]));
    engine
        .learn(
            &Source::from_bytes("b.csv", "id,x,y\nn1,2,3\n", None).ok()?,
            &Silent,
        )
        .ok()?;
    engine.export("json", None).ok()?;
    engine.forget(&one("r3"), &ForgetOptions::default()).ok()?;
    engine.forget(&one("r4"), &ForgetOptions::default()).ok()?;
    engine.settle().ok()?;
    let mut receipts = Vec::new();
    engine
        .receipts(&mut |signed, _| {
            receipts.extend(serde_json::to_value(&signed.receipt));
            Ok(())
        })
        .ok()?;
    let key = std::fs::read_to_string(folder.path().join("model.key")).ok()?;
    Some(BaseLog { receipts, key })
}

/// Values that the fields of a receipt should not have.
const VALUES: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2",
    "9007199254740991",
    "9007199254740992",
    "18446744073709551615",
    "1e308",
    "0.5",
    "null",
    "true",
    "\"\"",
    "\"done\"",
    "\"forget\"",
    "\"fit\"",
    "\"erased\"",
    "\"exact\"",
    "\"2026-03-02T09:15:00.000Z\"",
    "[]",
    "{}",
];

fn replace_value(value: &mut Value, left: &mut usize, new: &Value) -> bool {
    match value {
        Value::Array(all) if !all.is_empty() => {
            all.iter_mut().any(|inner| replace_value(inner, left, new))
        }
        Value::Object(all) if !all.is_empty() => all
            .iter_mut()
            .any(|(_, inner)| replace_value(inner, left, new)),
        _ if *left == 0 => {
            *value = new.clone();
            true
        }
        _ => {
            *left -= 1;
            false
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(secret) = LOG.key.lines().find_map(|line| SecretKey::parse(line).ok()) else {
        return;
    };
    let mut receipts = LOG.receipts.clone();
    for edit in data.chunks_exact(4).take(8) {
        let which = usize::from(edit[0]) % receipts.len();
        let mut left = usize::from(edit[1]) % 128;
        let Ok(new) = serde_json::from_str(VALUES[usize::from(edit[2]) % VALUES.len()]) else {
            return;
        };
        replace_value(&mut receipts[which], &mut left, &new);
    }
    let keys = KeyRing::from(secret.public());
    let mut replay = LogReplay::new(&keys);
    for receipt in receipts {
        let Ok(receipt) = serde_json::from_value::<Receipt>(receipt) else {
            return;
        };
        // What contradicts itself is not signed; what is signed is read back as it was.
        let Ok(signed) = SignedReceipt::sign(receipt, &secret) else {
            return;
        };
        let Ok(bytes) = signed.to_bytes() else { return };
        assert_eq!(
            SignedReceipt::parse(&bytes)
                .and_then(|read| read.to_bytes())
                .ok(),
            Some(bytes.clone())
        );
        if replay.push(&bytes).is_err() {
            return;
        }
    }
});
