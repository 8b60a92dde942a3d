//! Small tables and what to do with them, for all tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use efface::Method;
use efface_engine::{
    Engine, Error, ErrorKind, FitRequest, ForgetRequest, Prediction, RowSelection, Silent, fit,
};
use efface_io::Source;
use efface_receipt::{KeyRing, LogCheckpoint, LogReplay, PublicKey, Receipt, SecretKey, verify};
use tempfile::TempDir;

/// A folder for the files of one test.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn fit(&self, name: &str, request: &FitRequest) -> Engine {
        let path = self.path(name);
        // Tests take the place of one model by another as if there had been none.
        let request = FitRequest {
            drop_suppressed: true,
            ..request.clone()
        };
        fit(&request, &path, true, &Silent).unwrap();
        Engine::open(&path).unwrap()
    }
}

/// Gives another file the key of `model`.
pub fn lend_key(bench: &Bench, model: &str, to: &str) {
    let key = |name: &str| bench.path(&format!("{name}.key"));
    std::fs::copy(key(model), key(to)).unwrap();
}

pub fn csv(text: &str) -> Source {
    Source::from_bytes("table.csv", text, None).unwrap()
}

pub fn request(text: &str, target: &str) -> FitRequest {
    let mut request = FitRequest::new(csv(text));
    request.targets = vec![target.into()];
    request
}

/// Rows of a table with id, subject, two numbers, a level, words and two targets.
pub struct Line {
    pub id: String,
    pub cells: String,
}

pub const HEADER: &str = "id,who,size,age,colour,words,price,stars\n";

pub fn lines(count: usize) -> Vec<Line> {
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let words = [
        "tall", "green", "old", "noisy", "quiet", "sunny", "damp", "bright",
    ];
    let line = |at: usize| {
        let size = next(1000) as f64 / 10.0;
        let age = 1950 + next(70);
        let colour = ["red", "blue", "grey"][next(3) as usize];
        let text: Vec<&str> = (0..3).map(|_| words[next(8) as usize]).collect();
        let price = 3.0 * size - 0.5 * (age as f64 - 1980.0) + next(100) as f64 / 10.0;
        let id = format!("r{:05x}", (at as u64 * 7919) % 0xfffff);
        let cells = format!(
            "{id},p{},{size},{age},{colour},{},{price},{}\n",
            at % 9,
            text.join(" "),
            1 + next(5)
        );
        Line { id, cells }
    };
    (0..count).map(line).collect()
}

pub fn table<'a>(lines: impl IntoIterator<Item = &'a Line>) -> String {
    let mut text = String::from(HEADER);
    lines
        .into_iter()
        .for_each(|line| text.push_str(&line.cells));
    text
}

/// Numbers and a level: dense rows.
pub fn dense(text: &str) -> FitRequest {
    let mut request = request(text, "price");
    request.id = Some("id".into());
    request.subject = Some("who".into());
    request.ignore = vec!["words".into(), "stars".into()];
    request
}

/// Words and a number: sparse rows.
pub fn sparse(text: &str) -> FitRequest {
    let mut request = request(text, "price");
    request.id = Some("id".into());
    request.subject = Some("who".into());
    request.text = vec!["words".into()];
    request.numeric = vec!["size".into()];
    request
}

/// Words alone, five classes.
pub fn classes(text: &str) -> FitRequest {
    let mut request = request(text, "stars");
    request.id = Some("id".into());
    request.text = vec!["words".into()];
    request.classify = true;
    request
}

/// Every parameter by name: `coefficients x`, `(intercept)`.
pub fn named(engine: &Engine) -> BTreeMap<String, Vec<f64>> {
    let parameters = engine.parameters().unwrap();
    let mut named: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (table, lines) in parameters.tables {
        let features = parameters
            .features
            .iter()
            .map(|name| format!("{table} {name}"));
        named.extend(features.zip(lines));
    }
    named.extend(
        parameters
            .vectors
            .into_iter()
            .map(|(name, values)| (format!("({name})"), values)),
    );
    named
}

#[track_caller]
pub fn assert_close(a: &Engine, b: &Engine) {
    let a = named(a);
    let b = named(b);
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, values) in &a {
        for (x, y) in values.iter().zip(&b[name]) {
            assert!(
                (x - y).abs() < 1e-9 * (1.0 + y.abs()),
                "{name}: {x} and {y}"
            );
        }
    }
}

/// A request for these rows by this method.
pub fn by_method(who: &RowSelection, method: &Method) -> ForgetRequest {
    ForgetRequest {
        method: *method,
        ..ForgetRequest::new(who.clone())
    }
}

pub fn ids(ids: &[&str]) -> RowSelection {
    RowSelection::Ids(ids.iter().map(|id| id.to_string()).collect())
}

pub fn predictions(engine: &Engine, text: &str) -> Vec<Prediction> {
    let mut all = Vec::new();
    let mut see = |prediction| {
        all.push(prediction);
        Ok(())
    };
    engine.predict(csv(text), &mut see).unwrap();
    all
}

/// Whether the raw bytes of the file hold this text.
pub fn holds(path: &Path, text: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[track_caller]
pub fn fails<T>(result: Result<T, Error>, kind: ErrorKind, message: &str) -> Error {
    let Err(error) = result else {
        panic!("no error, where `{message}` was expected")
    };
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), kind, "{message}");
    error
}

/// The bytes of an array in a model file.
pub fn part(path: &Path, name: &str) -> Vec<u8> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection
        .prepare("SELECT bytes FROM parts WHERE name = ?1 ORDER BY part")
        .unwrap();
    let pieces = statement
        .query_map([name], |row| row.get::<_, Vec<u8>>(0))
        .unwrap();
    pieces.flat_map(Result::unwrap).collect()
}

/// A connection that does not wait for the disk.
fn hasty(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF")
        .unwrap();
    connection
}

/// The name of the array that holds the head of the model: it is the whole model where no arrays
/// stand beside it.
pub fn head_array(path: &Path) -> &'static str {
    let count = "SELECT count(*) FROM parts WHERE name = 'facts'";
    let facts: u64 = hasty(path).query_row(count, [], |row| row.get(0)).unwrap();
    if facts > 0 { "facts" } else { "model" }
}

/// Puts other bytes in the place of an array of one piece, with a checksum that fits.
pub fn forge(path: &Path, name: &str, bytes: &[u8]) {
    let connection = hasty(path);
    connection
        .execute(
            "UPDATE parts SET bytes = ?2 WHERE name = ?1",
            rusqlite::params![name, bytes],
        )
        .unwrap();
    drop(connection);
    change_manifest(path, |manifest| {
        let parts = manifest["parts"].as_array_mut().unwrap();
        let head = parts.iter_mut().find(|head| head["name"] == name).unwrap();
        head["bytes"] = bytes.len().into();
        head["sha256"] = hex(bytes).into();
    });
}

/// Rewrites the manifest, signed like the one before by the owner of the key beside the file.
pub fn change_manifest(path: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let connection = hasty(path);
    let read = |key: &str| -> Vec<u8> {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        connection.query_row(sql, [key], |row| row.get(0)).unwrap()
    };
    let mut manifest: serde_json::Value = serde_json::from_slice(&read("manifest")).unwrap();
    change(&mut manifest);
    let bytes = serde_json::to_vec(&manifest).unwrap();
    let mut head =
        LogCheckpoint::parse_unverified(&String::from_utf8(read("checkpoint")).unwrap()).unwrap();
    head.extensions = vec![format!("efface state {}", hex(&bytes))];
    let name = path.file_name().unwrap().to_string_lossy();
    let keys = std::fs::read_to_string(path.with_file_name(format!("{name}.key"))).unwrap();
    let secret = keys
        .lines()
        .find_map(|line| SecretKey::parse(line).ok())
        .unwrap();
    let note = head.sign(&secret).unwrap();
    let sql = "UPDATE meta SET value = ?2 WHERE key = ?1";
    connection
        .execute(sql, rusqlite::params!["manifest", bytes])
        .unwrap();
    connection
        .execute(sql, rusqlite::params!["checkpoint", note.into_bytes()])
        .unwrap();
}

fn hex(bytes: &[u8]) -> String {
    let digest: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(bytes).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn key(engine: &Engine) -> PublicKey {
    engine.public_keys().unwrap().remove(0).key
}

pub fn receipts(engine: &Engine) -> Vec<Receipt> {
    let mut all = Vec::new();
    let mut see = |signed: &efface_receipt::SignedReceipt, _: &[u8]| {
        all.push(signed.receipt.clone());
        Ok(())
    };
    engine.receipts(&mut see).unwrap();
    all
}

/// Every receipt, its proof, the whole log and the file itself hold.
#[track_caller]
pub fn sound(engine: &Engine) {
    let keys = KeyRing::from(key(engine));
    let mut replay = LogReplay::new(&keys);
    let mut leaves = Vec::new();
    let mut see = |_: &efface_receipt::SignedReceipt, bytes: &[u8]| {
        leaves.push(bytes.to_vec());
        Ok(())
    };
    engine.receipts(&mut see).unwrap();
    for (at, leaf) in leaves.iter().enumerate() {
        replay.push(leaf).unwrap();
        let bundle = engine.bundle(&at.to_string()).unwrap();
        let bytes = bundle.to_bytes().unwrap();
        assert_eq!(verify(&bundle, &keys).unwrap().receipt.sequence, at as u64);
        efface_receipt::verify_bytes(&bytes, &keys).unwrap();
        // The key that signs now does as well as the first one.
        let newest = engine.public_keys().unwrap().pop().unwrap().key;
        efface_receipt::verify_bytes(&bytes, &KeyRing::from(newest)).unwrap();
    }
    replay.finish(&engine.checkpoint().unwrap()).unwrap();
    let failed: Vec<_> = engine
        .verify(Some(&keys))
        .unwrap()
        .into_iter()
        .filter(|c| !c.passed)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
