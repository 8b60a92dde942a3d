//! Somebody without the key writes to a model file. `verify` refuses the file, and so does every
//! change that reads what was altered: it signs nothing.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface_engine::ErrorKind::BadModel;
use efface_engine::{
    Engine, ExportNoise, ForgetOptions, ForgetRequest, PolicyChange, RowSelection, Silent,
};
use rusqlite::Connection;

fn person(name: &str, id: &str) -> ForgetRequest {
    let who = RowSelection::Subject {
        column: "who".into(),
        value: name.into(),
    };
    ForgetRequest {
        id: Some(id.into()),
        ..ForgetRequest::new(who)
    }
}

/// A file with something in every table: rows that wait, answers, exports, a policy.
fn eventful(bench: &Bench) -> Vec<u8> {
    let mut engine = bench.fit("model", &sparse(&table(&lines(200))));
    engine.export("json", Some("a server")).unwrap();
    engine
        .forget(&person("p1", "T-1"), &ForgetOptions::default())
        .unwrap();
    let policy = PolicyChange {
        minimum_batch: Some(10),
        noise: Some(ExportNoise::Deviation { deviation: 0.5 }),
        settle_after: Some(90),
        settle_within_seconds: Some(86_400),
        ..PolicyChange::default()
    };
    engine.set_policy(&policy).unwrap();
    engine
        .forget(&person("p2", "T-2"), &ForgetOptions::default())
        .unwrap();
    sound(&engine);
    drop(engine);
    std::fs::read(bench.path("model")).unwrap()
}

/// Whether `verify` refuses the file.
fn is_refused(path: &std::path::Path) -> bool {
    match Engine::open_read_only(path) {
        Ok(engine) => engine
            .verify(None)
            .map_or(true, |checks| checks.iter().any(|check| !check.passed)),
        Err(error) => error.kind() == BadModel,
    }
}

/// Every way to alter what a change of the model reads.
const READ_BY_CHANGES: [&str; 26] = [
    // The list of rows: a row of the person is hidden, another row takes its place, a hash of the
    // list is altered.
    "UPDATE keys SET key = zeroblob(48) WHERE row = 39",
    "DELETE FROM keys WHERE row = 39",
    "UPDATE keys SET key = (SELECT key FROM keys WHERE row = 35) WHERE row = 39",
    "UPDATE keys SET key = zeroblob(16) || substr(key, 17) WHERE row = 39",
    "UPDATE branches SET hashes = zeroblob(1024)",
    "DELETE FROM branches",
    // The index of names: none of them is there any more.
    "UPDATE places SET slots = substr(slots, 1, 24) || zeroblob(976)",
    "DELETE FROM places",
    // The training set: one bit of a node, a commitment more or less.
    "UPDATE cells SET node = zeroblob(40) WHERE cell < 1 << 40",
    "DELETE FROM cells WHERE cell < 1 << 40",
    "DELETE FROM members WHERE commitment = (SELECT min(commitment) FROM members)",
    "INSERT INTO members VALUES (zeroblob(32))",
    // What must not come back.
    "DELETE FROM forgotten",
    "UPDATE forgotten SET commitment = zeroblob(32) WHERE commitment = (SELECT min(commitment) FROM forgotten)",
    "INSERT INTO forgotten VALUES (zeroblob(32), x'')",
    "UPDATE forgotten SET value = CAST('2020-01-01T00:00:00Z' AS BLOB)",
    // Answers to named requests.
    "DELETE FROM requests",
    "UPDATE requests SET value = (SELECT min(value) FROM requests)",
    // Exports.
    "DELETE FROM copies",
    "UPDATE copies SET withdrawn_at = NULL",
    "UPDATE copies SET format = 'npz'",
    // The manifest and what was signed with it.
    "UPDATE meta SET value = CAST(replace(CAST(value AS TEXT), '\"minimum_batch\":10', '\"minimum_batch\":1') AS BLOB)",
    "UPDATE meta SET value = CAST(replace(CAST(value AS TEXT), '\"noise\":0.5', '\"noise\":null') AS BLOB)",
    "DELETE FROM meta WHERE key = 'checkpoint'",
    // The log's edge, and the arrays.
    "UPDATE nodes SET hash = zeroblob(32)",
    "UPDATE parts SET bytes = zeroblob(length(bytes))",
];

/// What changes read in part or not at all: `verify` alone reads all of it.
const READ_BY_VERIFY: [&str; 14] = [
    "INSERT INTO keys SELECT 1000, key FROM keys WHERE row = 39",
    "INSERT INTO branches VALUES (77, randomblob(1024))",
    "INSERT INTO places VALUES (1000, zeroblob(1000))",
    "INSERT INTO keys VALUES (1000, zeroblob(48))",
    "INSERT INTO rows VALUES (1000, zeroblob(48))",
    "DELETE FROM receipts WHERE sequence = 1",
    "UPDATE receipts SET bytes = (SELECT bytes FROM receipts WHERE sequence = 1) WHERE sequence = 2",
    "UPDATE nodes SET hash = zeroblob(32) WHERE level = 0 AND place = 0",
    "INSERT INTO nodes VALUES (50, 0, zeroblob(32))",
    "UPDATE rows SET payload = zeroblob(length(payload)) WHERE row = 33",
    "UPDATE rows SET payload = (SELECT payload FROM rows WHERE row = 35) WHERE row = 33",
    "INSERT INTO meta VALUES ('more', x'00')",
    "INSERT INTO parts VALUES (99, 'more', x'00')",
    "INSERT INTO receipts VALUES (99, x'00')",
];

#[test]
fn an_altered_table_is_refused_by_verify_and_by_changes() {
    let bench = Bench::new();
    let whole = eventful(&bench);
    let path = bench.path("altered");
    lend_key(&bench, "model", "altered");
    let alter = |sql: &str| {
        std::fs::write(&path, &whole).unwrap();
        // The last round may have changed it: this is no rollback.
        let _ = std::fs::remove_file(bench.path("altered.head"));
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        assert!(connection.total_changes() > 0, "{sql}");
    };
    for sql in READ_BY_CHANGES.iter().chain(&READ_BY_VERIFY) {
        alter(sql);
        assert!(is_refused(&path), "verify accepts: {sql}");
    }
    for sql in READ_BY_CHANGES {
        alter(sql);
        let before = std::fs::read(&path).unwrap();
        // Each change alone may not read what was altered; together they read all of it, and none
        // signs over it.
        let mut refused = 0;
        let mut note = |outcome: Result<(), efface_engine::Error>| match outcome {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), BadModel, "{sql}: {error}");
                refused += 1;
            }
        };
        match Engine::open(&path) {
            Err(error) => note(Err(error)),
            Ok(mut engine) => {
                note(
                    engine
                        .forget(&person("p3", "T-3"), &ForgetOptions::default())
                        .map(drop),
                );
                note(
                    engine
                        .learn(csv(&table(&lines(203)[202..])), &Silent)
                        .map(drop),
                );
                note(
                    engine
                        .export("json", None)
                        .map(drop)
                        .or_else(|error| match error {
                            // The policy says to wait, which is an answer.
                            efface_engine::Error::Held { .. } => Ok(()),
                            error => Err(error),
                        }),
                );
            }
        }
        assert!(refused > 0, "every change accepts: {sql}");
        if refused == 3 {
            assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
        }
    }
}

/// The attacks that were found: without the key, a forgotten row comes back, and a policy becomes
/// none.
#[test]
fn a_forgotten_row_does_not_come_back_behind_a_decoy() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[3].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    drop(engine);
    let path = bench.path("model");
    let decoy = "UPDATE forgotten SET commitment = substr(commitment, 1, 31) || x'00'";
    Connection::open(&path)
        .unwrap()
        .execute_batch(decoy)
        .unwrap();
    let mut engine = Engine::open(&path).unwrap();
    let error = engine.learn(csv(&table(&all[3..4])), &Silent).unwrap_err();
    assert_eq!(error.kind(), BadModel, "{error}");
    assert!(
        error.to_string().contains("is not the one that was signed"),
        "{error}"
    );
}

/// A manifest that somebody else signed with a key of their own is refused by the key beside the
/// file, and by whoever verifies with the key that the log began with.
#[test]
fn a_stranger_cannot_sign_for_the_owner() {
    let bench = Bench::new();
    let owner = key(&bench.fit("model", &sparse(&table(&lines(40)))));
    drop(bench.fit("other", &sparse(&table(&lines(40)))));
    // The stranger's whole file under the owner's name.
    std::fs::copy(bench.path("other"), bench.path("model")).unwrap();
    let mut engine = Engine::open(&bench.path("model")).unwrap();
    let error = engine
        .forget(&person("p1", "T-1"), &ForgetOptions::default())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("another model lies in its place"),
        "{error}"
    );
    std::fs::remove_file(bench.path("model.head")).unwrap();
    let error = engine
        .forget(&person("p1", "T-1"), &ForgetOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("it holds no key of this model"),
        "{error}"
    );
    let checks = engine.verify(Some(&owner.into())).unwrap();
    assert!(checks.iter().any(|check| !check.passed), "{checks:?}");
}
