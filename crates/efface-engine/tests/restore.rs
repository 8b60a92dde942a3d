//! An older copy takes the place of a model that was lost. What was forgotten since is forgotten
//! from it, and the log goes on.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::*;
use efface_engine::ErrorKind::{BadModel, Refused};
use efface_engine::{
    BackupContent, Engine, ErrorKind, ForgetOptions, ForgetRequest, KeyAccess, KeyRotation,
    PolicyChange, RestoreReport, RestoreRequest, RowSelection, Silent, restore,
};
use efface_receipt::RequestKind;

fn gone(line: &Line) -> ForgetRequest {
    ForgetRequest::new(ids(&[&line.id]))
}

fn forget(engine: &mut Engine, request: &ForgetRequest) {
    engine.forget(request, &ForgetOptions::default()).unwrap();
}

fn person(name: &str, request: &str) -> ForgetRequest {
    let who = RowSelection::Subject {
        column: "who".into(),
        value: name.into(),
    };
    ForgetRequest {
        id: Some(request.into()),
        ..ForgetRequest::new(who)
    }
}

fn run(bench: &Bench, log: &Path) -> Result<RestoreReport, efface_engine::Error> {
    restore(&RestoreRequest {
        backup: &bench.path("copy"),
        log,
        path: &bench.path("model"),
        mode: 0o600,
        access: &KeyAccess::default(),
        progress: &Silent,
    })
}

/// Moves the newest file out of the way, as if it were found damaged.
fn set_aside(bench: &Bench) -> PathBuf {
    std::fs::rename(bench.path("model"), bench.path("newest")).unwrap();
    bench.path("newest")
}

fn names(bench: &Bench) -> BTreeSet<String> {
    let folder = std::fs::read_dir(bench.path("model").parent().unwrap()).unwrap();
    folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// A model of 40 rows, a copy of it, and much that happened since: two rows and a person forgotten,
/// a row corrected, rows learned.
fn lived(bench: &Bench) -> Engine {
    let all = lines(43);
    let mut engine = bench.fit("model", &sparse(&table(&all[..40])));
    forget(&mut engine, &gone(&all[3]));
    engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    forget(&mut engine, &gone(&all[4]));
    engine.learn(csv(&table(&all[40..42])), &Silent).unwrap();
    forget(&mut engine, &person("p2", "T-2"));
    let fixed = format!("id,who,size,words,price\n{},p8,3,tall,4\n", all[8].id);
    engine.amend(csv(&fixed), &Silent).unwrap();
    forget(
        &mut engine,
        &ForgetRequest::new(ids(&[&all[5].id, &all[6].id])),
    );
    engine.export("json", None).unwrap();
    engine.rotate_key(&KeyRotation::default()).unwrap();
    engine
}

#[test]
fn what_was_forgotten_since_is_forgotten_from_the_copy_and_the_log_goes_on() {
    let bench = Bench::new();
    let all = lines(43);
    let engine = lived(&bench);
    let head = engine.checkpoint().unwrap();
    let size = engine.summary().unwrap().receipts;
    let kept_rows = engine.summary().unwrap().rows;
    drop(engine);
    let newest = set_aside(&bench);
    // The rows of the newest file, and its arrays, may be beyond repair: the log and the lists are
    // enough.
    let connection = rusqlite::Connection::open(&newest).unwrap();
    connection
        .execute_batch("UPDATE rows SET payload = x'00'; UPDATE parts SET bytes = x'ff'")
        .unwrap();
    drop(connection);
    let before = [
        std::fs::read(&newest).unwrap(),
        std::fs::read(bench.path("copy")).unwrap(),
    ];

    let report = run(&bench, &newest).unwrap();
    // p2 had rows 2, 11, 20, 29 and 38; row 3 was gone before the copy was made, row 8 was
    // corrected since.
    assert_eq!(
        (report.forgotten, report.lost, report.receipts_since),
        (9, 3, 7)
    );
    assert_eq!((report.rows, kept_rows), (30, 33));
    assert_eq!(
        before,
        [
            std::fs::read(&newest).unwrap(),
            std::fs::read(bench.path("copy")).unwrap()
        ]
    );
    let mut engine = Engine::open(&bench.path("model")).unwrap();
    sound(&engine);
    assert!(
        engine
            .verify_since(None, &head)
            .unwrap()
            .iter()
            .all(|check| check.passed)
    );
    assert_eq!(engine.summary().unwrap().receipts, size + 1);
    let last = receipts(&engine).pop().unwrap();
    assert_eq!(
        (last.kind, last.rows.removed, last.sequence),
        (RequestKind::Restore, 3, size)
    );
    assert_eq!(last.training_set.before.unwrap().count, 33);
    for at in [2, 4, 5, 6, 11, 20, 29, 38] {
        assert!(!holds(&bench.path("model"), &format!(",{},", all[at].id)));
    }
    // The parameters are those of a fit of what is left.
    let left = (0..40)
        .filter(|at| ![3, 4, 5, 6, 8].contains(at) && at % 9 != 2)
        .map(|at| &all[at]);
    let elsewhere = Bench::new();
    assert_close(&engine, &elsewhere.fit("model", &sparse(&table(left))));
    // What must not come back does not, a request is known again, and the key that signs is the
    // newest.
    let back = engine.learn(csv(&table(&all[4..5])), &Silent).unwrap_err();
    assert_eq!(back.kind(), Refused, "{back}");
    assert!(engine.learn(csv(&table(&all[2..3])), &Silent).is_err());
    let again = engine
        .forget(&person("p2", "T-2"), &ForgetOptions::default())
        .unwrap();
    assert!(again.replayed && again.forgotten == 5);
    assert_eq!(engine.summary().unwrap().exports, (1, 0));
    // Rows that were lost are learned again, and life goes on.
    engine.learn(csv(&table(&all[40..43])), &Silent).unwrap();
    forget(&mut engine, &gone(&all[9]));
    sound(&engine);
    assert_eq!(engine.rollback().unwrap(), None);
}

#[test]
fn a_copy_of_the_log_is_enough_and_holds_no_row() {
    let bench = Bench::new();
    let engine = lived(&bench);
    let log = bench.path("log");
    engine.backup(BackupContent::Log, &log, 0o600).unwrap();
    let words = ["tall", "green", "noisy", "grey"];
    assert!(words.iter().any(|word| holds(&bench.path("copy"), word)));
    // Names of words are in the encoder, ids and cells in the rows: neither is in the log.
    assert!(!words.iter().any(|word| holds(&log, word)));
    assert!(!lines(43).iter().any(|line| holds(&log, &line.id)));
    // Nor is a person, whose name is long enough here not to stand in a hash by chance.
    let named = table(&lines(20)).replace(",p3,", ",someone-called-three,");
    let beside = Bench::new();
    let people = beside.fit("people", &sparse(&named));
    people
        .backup(BackupContent::Log, &beside.path("log"), 0o600)
        .unwrap();
    assert!(holds(&beside.path("people"), "someone-called-three"));
    assert!(!holds(&beside.path("log"), "someone-called-three"));
    drop(engine);
    std::fs::remove_file(bench.path("model")).unwrap();
    let report = run(&bench, &log).unwrap();
    assert_eq!((report.rows, report.forgotten, report.lost), (30, 9, 3));
    sound(&Engine::open(&bench.path("model")).unwrap());
    let expected = ["copy", "log", "model", "model.head", "model.key"].map(String::from);
    assert_eq!(names(&bench), BTreeSet::from(expected));
}

#[test]
fn rows_that_wait_on_either_side_are_gone_and_the_log_says_so() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    engine
        .set_policy(&PolicyChange {
            settle_after: Some(9),
            ..PolicyChange::default()
        })
        .unwrap();
    forget(&mut engine, &gone(&all[1]));
    engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    forget(&mut engine, &gone(&all[2]));
    assert_eq!(engine.summary().unwrap().unscrubbed, 2);
    drop(engine);
    let newest = set_aside(&bench);
    let report = run(&bench, &newest).unwrap();
    assert_eq!((report.forgotten, report.lost, report.rows), (1, 0, 38));
    let engine = Engine::open(&bench.path("model")).unwrap();
    assert_eq!(engine.summary().unwrap().unscrubbed, 0);
    sound(&engine);
    let kinds: Vec<RequestKind> = receipts(&engine)
        .iter()
        .map(|receipt| receipt.kind)
        .collect();
    assert_eq!(kinds[4..], [RequestKind::Restore, RequestKind::Settle]);
    drop(engine);
    // A copy that is up to date has nothing to forget, and can be restored as well.
    std::fs::rename(bench.path("model"), bench.path("newest2")).unwrap();
    std::fs::copy(bench.path("newest2"), bench.path("copy")).unwrap();
    let report = run(&bench, &bench.path("newest2")).unwrap();
    assert_eq!(
        (report.forgotten, report.lost, report.receipts_since),
        (0, 0, 0)
    );
    sound(&Engine::open(&bench.path("model")).unwrap());
}

#[test]
fn a_log_that_is_not_the_newer_one_of_the_copy_is_refused() {
    let bench = Bench::new();
    drop(lived(&bench));
    let newest = set_aside(&bench);
    let inputs = || {
        [
            std::fs::read(bench.path("copy")).unwrap(),
            std::fs::read(&newest).unwrap(),
        ]
    };
    let before = inputs();
    let files = names(&bench);
    let refused = |log: &Path, kind: ErrorKind, says: &str| {
        let error = run(&bench, log).unwrap_err();
        assert!(
            error.kind() == kind && error.to_string().contains(says),
            "{says}: {error}"
        );
        assert_eq!(inputs(), before);
        assert!(!bench.path("model").exists());
    };
    // Another model's, and one that is older than the copy.
    bench.fit("other", &sparse(&table(&lines(40))));
    refused(
        &bench.path("other"),
        BadModel,
        "it does not continue the copy: the head is of the log",
    );
    for file in ["other", "other.key", "other.head"] {
        std::fs::remove_file(bench.path(file)).unwrap();
    }
    // A head beside the model that is newer than the log: more was forgotten than it tells.
    std::fs::copy(bench.path("copy"), bench.path("older")).unwrap();
    refused(&bench.path("older"), BadModel, "9 were signed");
    // A log that was cut short below the copy.
    let head = std::fs::read(bench.path("model.head")).unwrap();
    std::fs::remove_file(bench.path("model.head")).unwrap();
    std::fs::rename(bench.path("copy"), bench.path("swapped")).unwrap();
    std::fs::rename(&newest, bench.path("copy")).unwrap();
    let error = run(&bench, &bench.path("swapped")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the log has 2 receipts, and the head 9"),
        "{error}"
    );
    std::fs::rename(bench.path("copy"), &newest).unwrap();
    std::fs::rename(bench.path("swapped"), bench.path("copy")).unwrap();
    std::fs::write(bench.path("model.head"), head).unwrap();
    std::fs::remove_file(bench.path("older")).unwrap();
    // Whatever is altered in the newer log or its lists, without the key.
    for sql in [
        "UPDATE receipts SET bytes = bytes || x'00' WHERE sequence = 5",
        "DELETE FROM receipts WHERE sequence = 8",
        "UPDATE nodes SET hash = zeroblob(32) WHERE level = 0 AND place = 4",
        "DELETE FROM members WHERE commitment = (SELECT min(commitment) FROM members)",
        "INSERT INTO members VALUES (randomblob(32))",
        "DELETE FROM forgotten WHERE commitment = (SELECT min(commitment) FROM forgotten)",
        "DELETE FROM requests",
        "DELETE FROM copies",
        "UPDATE meta SET value = replace(value, '\"forgotten\":', '\"forgotten\" :') WHERE key = 'manifest'",
    ] {
        let altered = bench.path("altered");
        std::fs::copy(&newest, &altered).unwrap();
        let connection = rusqlite::Connection::open(&altered).unwrap();
        assert_ne!(connection.execute(sql, []).unwrap(), 0, "{sql}");
        drop(connection);
        refused(&altered, BadModel, "");
        std::fs::remove_file(&altered).unwrap();
    }
    assert_eq!(names(&bench), files, "nothing is left behind");
    // Without the newest key nothing is signed, and nothing is written where something is.
    std::fs::rename(bench.path("model.key"), bench.path("elsewhere")).unwrap();
    refused(&newest, Refused, "it is not there");
    std::fs::rename(bench.path("elsewhere"), bench.path("model.key")).unwrap();
    std::fs::copy(bench.path("copy"), bench.path("model")).unwrap();
    assert_eq!(run(&bench, &newest).unwrap_err().kind(), Refused);
}
