//! Models whose rows and parameters are encrypted: they behave as others do, the file holds nothing
//! of a row in the clear, and without the key nothing but the log can be read.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface_engine::{
    BackupContent, Engine, ErrorKind, FitRequest, ForgetOptions, ForgetRequest, KeyAccess,
    Passphrase, RestoreRequest, Silent, fit, restore,
};
use efface_receipt::RequestKind;

fn encrypted(request: FitRequest) -> FitRequest {
    FitRequest {
        encrypt: true,
        ..request
    }
}

#[test]
fn an_encrypted_model_lives_as_a_plain_one_does() {
    let bench = Bench::new();
    let all = lines(60);
    for (name, asked) in [
        ("dense", dense(&table(&all[..50]))),
        ("sparse", sparse(&table(&all[..50]))),
    ] {
        let mut plain = bench.fit(&format!("{name}-plain"), &asked);
        let mut sealed = bench.fit(name, &encrypted(asked));
        assert!(sealed.summary().unwrap().encrypted && !plain.summary().unwrap().encrypted);
        for engine in [&mut plain, &mut sealed] {
            engine
                .forget(
                    &ForgetRequest::new(ids(&[&all[3].id])),
                    &ForgetOptions::default(),
                )
                .unwrap();
            engine.learn(csv(&table(&all[50..55])), &Silent).unwrap();
            engine.settle().unwrap();
        }
        // Read from the file again, by an engine that has nothing in memory.
        let again = Engine::open(&bench.path(name)).unwrap();
        assert_close(&again, &plain);
        let checks = again.verify_rows(None, true).unwrap();
        assert!(checks.iter().all(|check| check.passed), "{checks:?}");
        assert!(
            checks
                .iter()
                .any(|check| check.check == "rows" && check.known),
            "{checks:?}"
        );
        assert!(
            holds(&bench.path(&format!("{name}-plain")), &all[7].id),
            "{name}"
        );
        assert!(!holds(&bench.path(name), &all[7].id), "{name}");
    }
}

#[test]
fn without_the_key_only_the_log_is_left() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &encrypted(sparse(&table(&all))));
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[3].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    let keys = std::fs::read(bench.path("model.key")).unwrap();
    engine.destroy().unwrap();
    for name in ["model", "copy"] {
        let mut locked = Engine::open(&bench.path(name)).unwrap();
        let error = locked
            .forget(
                &ForgetRequest::new(ids(&[&all[5].id])),
                &ForgetOptions::default(),
            )
            .unwrap_err();
        assert!(error.to_string().contains("key"), "{error}");
        assert!(locked.parameters().is_err());
        assert!(locked.public_keys().is_ok() && locked.checkpoint().is_ok());
        let checks = locked.verify(None).unwrap();
        assert!(checks.iter().all(|check| check.passed), "{checks:?}");
        assert!(
            checks
                .iter()
                .any(|check| !check.known && check.found.contains("encrypted")),
            "{checks:?}"
        );
    }
    let mut last = None;
    let reread = Engine::open(&bench.path("model")).unwrap();
    reread
        .receipts(&mut |signed, _| {
            last = Some(signed.receipt.kind);
            Ok(())
        })
        .unwrap();
    assert_eq!(last, Some(RequestKind::Destroy));
    let left = std::fs::read_to_string(bench.path("model.key")).unwrap();
    assert!(!left.contains("NOISE+SEED") && left.contains("PRIVATE+KEY"));
    // The copy opens with the key as it was: it was the key that closed it, and nothing else.
    std::fs::write(bench.path("copy.key"), keys).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(
            bench.path("copy.key"),
            std::fs::Permissions::from_mode(0o600),
        )
        .unwrap();
    }
    assert!(
        Engine::open(&bench.path("copy"))
            .unwrap()
            .parameters()
            .is_ok()
    );
}

#[test]
fn destroying_is_asked_of_encrypted_models_alone_and_may_be_asked_again() {
    let bench = Bench::new();
    let all = lines(20);
    let mut plain = bench.fit("plain", &dense(&table(&all)));
    let error = plain.destroy().unwrap_err();
    assert!(error.to_string().contains("not encrypted"), "{error}");
    let mut sealed = bench.fit("sealed", &encrypted(dense(&table(&all))));
    sealed.destroy().unwrap();
    sealed.destroy().unwrap();
    Engine::open(&bench.path("sealed"))
        .unwrap()
        .destroy()
        .unwrap();
}

#[test]
fn the_key_goes_where_the_secrets_go() {
    let bench = Bench::new();
    let all = lines(40);
    let path = bench.path("model");
    let access = KeyAccess {
        passphrase: Some(Passphrase::new("correct horse")),
        ..KeyAccess::default()
    };
    let recovery = bench.path("recovery");
    let asked = FitRequest {
        access: access.clone(),
        recovery_key: Some(recovery.clone()),
        ..encrypted(sparse(&table(&all)))
    };
    fit(&asked, &path, false, &Silent).unwrap();
    let mut engine = Engine::open(&path).unwrap();
    assert!(engine.parameters().is_err());
    engine.set_key_access(access.clone());
    assert!(engine.parameters().is_ok());
    engine
        .backup(BackupContent::Model, &bench.path("copy"), 0o600)
        .unwrap();
    engine
        .forget(
            &ForgetRequest::new(ids(&[&all[3].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    // A copy is brought up to date, and stays encrypted.
    std::fs::rename(&path, bench.path("newest")).unwrap();
    restore(&RestoreRequest {
        backup: &bench.path("copy"),
        log: &bench.path("newest"),
        path: &path,
        mode: 0o600,
        access: &access,
        progress: &Silent,
    })
    .unwrap();
    let mut restored = Engine::open(&path).unwrap();
    restored.set_key_access(access);
    assert!(restored.summary().unwrap().encrypted);
    assert_close(&restored, &engine);
}

#[test]
fn a_file_that_says_it_is_encrypted_and_is_not_gives_no_wrong_answer() {
    let bench = Bench::new();
    let all = lines(20);
    drop(bench.fit("plain", &dense(&table(&all))));
    drop(bench.fit("sealed", &encrypted(dense(&table(&all)))));
    let run = |name: &str, sql: &str| {
        rusqlite::Connection::open(bench.path(name))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    };
    run(
        "plain",
        "INSERT INTO meta VALUES ('encryption', zeroblob(16))",
    );
    assert!(
        Engine::open(&bench.path("plain"))
            .unwrap()
            .parameters()
            .is_err()
    );
    run("sealed", "DELETE FROM meta WHERE key = 'encryption'");
    let opened = Engine::open(&bench.path("sealed"));
    assert!(opened.is_err() || opened.unwrap().parameters().is_err());
    run(
        "plain",
        "UPDATE meta SET value = zeroblob(3) WHERE key = 'encryption'",
    );
    assert_eq!(
        Engine::open(&bench.path("plain")).err().unwrap().kind(),
        ErrorKind::BadModel
    );
}
