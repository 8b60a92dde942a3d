//! Yesterday's copy is put in the place of a model. Rows that were forgotten since are in it: every
//! change refuses it, no score is given, and `verify` says so.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface_engine::ErrorKind::BadModel;
use efface_engine::{BackupContent, Engine, ForgetOptions, ForgetRequest, PolicyChange, Silent};

#[test]
fn an_older_copy_is_noticed_and_signs_nothing() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let path = bench.path("model");
    let gone = |at: usize| ForgetRequest::new(ids(&[&all[at].id]));
    engine.forget(&gone(3), &ForgetOptions::default()).unwrap();
    let checkpoint = engine.checkpoint().unwrap();
    engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    engine.forget(&gone(4), &ForgetOptions::default()).unwrap();
    assert_eq!(engine.rollback().unwrap(), None);
    sound(&engine);
    drop(engine);

    std::fs::copy(bench.path("copy"), &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut engine = Engine::open(&path).unwrap();
    let told = engine.rollback().unwrap().unwrap();
    assert!(
        told.contains("its log has 2 receipts, and 3 were signed"),
        "{told}"
    );
    let refused = |outcome: Result<(), efface_engine::Error>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), BadModel, "{error}");
        assert!(error.to_string().contains("it is an older copy"), "{error}");
    };
    refused(engine.forget(&gone(5), &ForgetOptions::default()).map(drop));
    refused(
        engine
            .learn(csv(&table(&lines(41)[40..])), &Silent)
            .map(drop),
    );
    refused(engine.export("json", None).map(drop));
    refused(engine.settle().map(drop));
    refused(
        engine
            .rotate_key(&efface_engine::KeyRotation::default())
            .map(drop),
    );
    refused(
        engine
            .set_policy(&PolicyChange {
                minimum_batch: Some(12),
                ..PolicyChange::default()
            })
            .map(drop),
    );
    refused(engine.scorer().map(drop));
    assert_eq!(std::fs::read(&path).unwrap(), before, "nothing was signed");
    let failed: Vec<_> = engine
        .verify(None)
        .unwrap()
        .into_iter()
        .filter(|check| !check.passed)
        .map(|check| check.check)
        .collect();
    assert_eq!(failed, ["rollback"]);
    // Whoever knows a newer head than the file has, or an older one, can ask for it.
    let since = |engine: &Engine, note: &str| {
        let checks = engine.verify_since(None, note).unwrap();
        checks
            .into_iter()
            .find(|check| check.check == "since")
            .unwrap()
            .passed
    };
    assert!(since(&engine, &checkpoint));
    let newer = std::fs::read_to_string(bench.path("model.head")).unwrap();
    assert!(!since(&engine, &newer));
    // Who knows what was forgotten since takes the file that says so away, and forgets it again.
    std::fs::remove_file(bench.path("model.head")).unwrap();
    engine.forget(&gone(4), &ForgetOptions::default()).unwrap();
    sound(&engine);
    // The log has a second history now, and the head of the first one shows it.
    assert!(!since(&engine, &newer));
}

#[test]
fn a_copy_is_a_whole_model_and_overwrites_nothing() {
    let bench = Bench::new();
    let engine = bench.fit("model", &sparse(&table(&lines(40))));
    let report = engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    assert_eq!((report.rows, report.receipts), (40, 1));
    let copy = Engine::open_read_only(&bench.path("copy")).unwrap();
    assert!(copy.verify(None).unwrap().iter().all(|check| check.passed));
    assert!(
        engine
            .backup(BackupContent::Model, &bench.path("copy"), 0o600)
            .is_err(),
        "there is a file already"
    );
    assert!(
        engine
            .backup(BackupContent::Model, &bench.path("model"), 0o600)
            .is_err(),
        "the model itself"
    );
}

/// A crash between a change and the writing of its head leaves an older head, which the log
/// continues.
#[test]
fn an_older_head_is_no_fault() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let head = std::fs::read(bench.path("model.head")).unwrap();
    for line in &all[3..6] {
        engine
            .forget(
                &ForgetRequest::new(ids(&[&line.id])),
                &ForgetOptions::default(),
            )
            .unwrap();
    }
    std::fs::write(bench.path("model.head"), head).unwrap();
    assert_eq!(engine.rollback().unwrap(), None);
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[6].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    std::fs::write(bench.path("model.head"), "cut").unwrap();
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[7].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    sound(&engine);
}
