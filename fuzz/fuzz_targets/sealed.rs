#![no_main]
//! A model file whose owner lies: a valid one in which values were replaced, with every checksum
//! and signature made anew, so that nothing but sense can refuse it. It opens or is refused in
//! little memory, and whatever is asked of it is answered.
//!
//! The input is a list of edits: four bytes each say what is edited, where, and by what.

use std::path::Path;
use std::sync::LazyLock;

use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit};
use efface_io::Source;
use efface_receipt::{LogCheckpoint, SecretKey, SignedHead, sha256};
use libfuzzer_sys::fuzz_target;
use rusqlite::{Connection, params};
use serde_json::Value;

/// A model file and its key file.
struct BaseModel {
    model: Vec<u8>,
    key: String,
}

/// One model of every kind that is quick to make.
static MODELS: LazyLock<Vec<BaseModel>> = LazyLock::new(|| {
    let models: Vec<BaseModel> = (0..5).filter_map(base).collect();
    assert_eq!(models.len(), 5, "not every model could be made");
    models
});

fn base(kind: usize) -> Option<BaseModel> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("model");
    let mut request = FitRequest::new(Source::from_bytes("a.csv", rows(), None).ok()?);
    request.id = Some("id".into());
    match kind {
        0 => request.targets = vec!["y".into()],
        1 => {
            request.targets = vec!["y".into()];
            request.text = vec!["t".into()];
        }
        2 => {
            request.targets = vec!["c".into()];
            request.text = vec!["t".into()];
            request = request.naive_bayes();
        }
        3 => {
            request.targets = vec!["c".into()];
            request.model = efface::Logistic::default().into();
        }
        _ => {
            request.ignore = vec!["t".into(), "c".into()];
            request.model = efface::KMeans::quantised(2, 1.0).into();
        }
    }
    fit(&request, &path, false, &Silent).ok()?;
    Engine::open(&path)
        .ok()?
        .forget(&by_id("r3"), &ForgetOptions::default())
        .ok()?;
    let key = std::fs::read_to_string(folder.path().join("model.key")).ok()?;
    Some(BaseModel {
        model: std::fs::read(&path).ok()?,
        key,
    })
}

fn rows() -> String {
    let line = |at: u32| {
        format!(
            "r{at},{},word{} two,{},{}\n",
            at * 7 % 11,
            at % 4,
            at % 5,
            at % 2
        )
    };
    format!("id,x,t,y,c\n{}", (0..24).map(line).collect::<String>())
}

fn by_id(id: &str) -> ForgetRequest {
    ForgetRequest::new(RowSelection::Ids(vec![id.into()]))
}

/// Numbers that counts, sizes and indices should not be.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "1099511627776",
    "9007199254740992",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "-1e308",
    "0.5",
    "null",
];

/// Replaces one value of the manifest, counted through the whole tree.
fn replace_value(value: &mut Value, left: &mut usize, new: &Value) -> bool {
    match value {
        Value::Array(all) => all.iter_mut().any(|inner| replace_value(inner, left, new)),
        Value::Object(all) => all
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

fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(all) => all.iter().map(count_values).sum(),
        Value::Object(all) => all.values().map(count_values).sum(),
        _ => 1,
    }
}

/// Applies the edits and signs what came of them.
fn edit(path: &Path, key: &str, edits: &[u8]) -> Option<()> {
    let connection = Connection::open(path).ok()?;
    let read = |name: &str| -> Option<Vec<u8>> {
        connection
            .query_row("SELECT value FROM meta WHERE key = ?1", [name], |row| {
                row.get(0)
            })
            .ok()
    };
    let write = |name: &str, value: &[u8]| {
        connection
            .execute(
                "UPDATE meta SET value = ?2 WHERE key = ?1",
                params![name, value],
            )
            .ok()
    };
    let mut manifest: Value = serde_json::from_slice(&read("manifest")?).ok()?;
    for edit in edits.chunks_exact(4).take(8) {
        let place = usize::from(u16::from_le_bytes([edit[1], edit[2]]));
        match edit[0] % 3 {
            0 | 1 => {
                let mut left = place % count_values(&manifest).max(1);
                let number = NUMBERS[usize::from(edit[3]) % NUMBERS.len()];
                let new = serde_json::from_str(number).ok()?;
                replace_value(&mut manifest, &mut left, &new);
            }
            // A byte of a stored array, whose hash is made anew.
            _ => {
                let count = manifest["parts"].as_array()?.len().max(1);
                let head = manifest["parts"].get_mut(usize::from(edit[1]) % count)?;
                let first = head["first"].as_u64()?;
                let sql = "SELECT bytes FROM parts WHERE part = ?1";
                let mut bytes: Vec<u8> =
                    connection.query_row(sql, [first], |row| row.get(0)).ok()?;
                let at = usize::from(edit[2]) * 7 % bytes.len().max(1);
                *bytes.get_mut(at)? = edit[3];
                connection
                    .execute(
                        "UPDATE parts SET bytes = ?2 WHERE part = ?1",
                        params![first, bytes],
                    )
                    .ok()?;
                head["sha256"] = Value::String(sha256(&bytes).to_string());
            }
        }
    }
    let bytes = serde_json::to_vec(&manifest).ok()?;
    write("manifest", &bytes)?;
    let secret = key.lines().find_map(|line| SecretKey::parse(line).ok())?;
    let note = String::from_utf8(read("checkpoint")?).ok()?;
    let mut head = LogCheckpoint::parse_unverified(&note).ok()?;
    // Where the manifest lies about its log, the head lies in the same way.
    head.size = manifest["ledger"]["size"].as_u64().unwrap_or(head.size);
    head.extensions = vec![format!("efface state {}", sha256(&bytes))];
    let signed = SignedHead::sign(&head, &secret).ok()?;
    write("checkpoint", signed.checkpoint.as_bytes())?;
    write(
        "head",
        &[&signed.key_id.0[..], &signed.signature.0].concat(),
    )?;
    Some(())
}

fuzz_target!(|data: &[u8]| {
    let Some((which, edits)) = data.split_first() else {
        return;
    };
    let base = &MODELS[usize::from(*which) % MODELS.len()];
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    let path = folder.path().join("model");
    let key = folder.path().join("model.key");
    if std::fs::write(&path, &base.model).is_err() || std::fs::write(&key, &base.key).is_err() {
        return;
    }
    #[cfg(unix)]
    let _ = std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600));
    if edit(&path, &base.key, edits).is_none() {
        return;
    }
    if let Ok(engine) = Engine::open_read_only(&path) {
        let _ = engine.summary();
        let _ = engine.parameters();
        let _ = engine.verify(None);
        if let Ok(source) = Source::from_bytes("a.csv", rows(), None) {
            let _ = engine.predict(&source, &mut |_| Ok(()));
        }
    }
    if let Ok(mut engine) = Engine::open(&path) {
        let _ = engine.forget(&by_id("r5"), &ForgetOptions::default());
        let _ = engine.settle();
    }
});
