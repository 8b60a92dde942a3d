//! Files that are not models, or no longer: an error that says so, never a panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{BadModel, Io};
use efface_engine::{Engine, Error, ErrorKind, FORMAT, ForgetOptions};

/// Does everything that can be done to a file.
fn use_all(path: &std::path::Path) -> Result<(), Error> {
    let mut engine = Engine::open(path)?;
    engine.summary()?;
    engine.parameters()?;
    let words = "words,size\ntall green,4\n";
    engine.predict(csv(words), &mut |_| Ok(()))?;
    engine.forget(
        &by_method(&ids(&[&lines(2)[1].id]), &"retrain".parse().unwrap()),
        &ForgetOptions::dry_run(),
    )?;
    engine.forget(
        &by_method(&ids(&[&lines(2)[1].id]), &Method::default()),
        &ForgetOptions::default(),
    )?;
    Ok(())
}

#[track_caller]
fn unusable(outcome: Result<(), Error>, what: &str) {
    match outcome {
        Ok(()) => {}
        Err(error) => {
            assert!(
                matches!(error.kind(), BadModel),
                "{what}: {error} is of kind {:?}",
                error.kind()
            )
        }
    }
}

#[test]
fn truncated_files() {
    let bench = Bench::new();
    drop(bench.fit("model", &sparse(&table(&lines(30)))));
    let whole = std::fs::read(bench.path("model")).unwrap();
    let path = bench.path("cut");
    lend_key(&bench, "model", "cut");
    let lengths = (0..200)
        .chain((200..whole.len()).step_by(911))
        .chain((1..=whole.len() / 4096).map(|p| p * 4096));
    for length in lengths.filter(|length| *length < whole.len()) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let outcome = use_all(&path);
        // Zeros at the end can be cut off without harm; SQLite reads zeros there.
        let harmless = whole[length..].iter().all(|byte| *byte == 0);
        assert!(
            outcome.is_err() || harmless,
            "{length} of {} bytes",
            whole.len()
        );
        unusable(outcome, &format!("{length} bytes"));
    }
}

#[test]
fn flipped_bytes() {
    let bench = Bench::new();
    drop(bench.fit("model", &sparse(&table(&lines(12)))));
    let whole = std::fs::read(bench.path("model")).unwrap();
    let path = bench.path("flipped");
    lend_key(&bench, "model", "flipped");
    let mut noticed = 0;
    for (turn, at) in (0..110).chain((110..whole.len()).step_by(173)).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][turn % 3];
        std::fs::write(&path, &bytes).unwrap();
        let _ = std::fs::remove_file(bench.path("flipped-journal"));
        let outcome = use_all(&path);
        noticed += usize::from(outcome.is_err());
        unusable(outcome, &format!("byte {at}"));
    }
    assert!(noticed > 50, "{noticed}");
}

#[test]
fn other_files() {
    let bench = Bench::new();
    let path = bench.path("file");
    let not_ours = format!("{} is not an efface model", path.display());
    let missing = Engine::open(&path).map(drop).unwrap_err();
    assert_eq!(missing.kind(), Io, "{missing}");
    for bytes in [&b""[..], b"x,y\n1,2\n", &[0; 4096]] {
        std::fs::write(&path, bytes).unwrap();
        fails(Engine::open(&path).map(drop), BadModel, &not_ours);
        fails(Engine::open_read_only(&path).map(drop), BadModel, &not_ours);
    }
    std::fs::remove_file(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE t(x); PRAGMA application_id = 7; PRAGMA user_version = 1")
        .unwrap();
    drop(other);
    fails(Engine::open(&path).map(drop), BadModel, &not_ours);
    assert_eq!(
        Engine::open(bench.path("").as_path())
            .map(drop)
            .unwrap_err()
            .kind(),
        Io
    );
}

#[test]
fn newer_older_and_altered_files() {
    let bench = Bench::new();
    drop(bench.fit("model", &dense(&table(&lines(10)))));
    let path = bench.path("model");
    let alter = |sql: &str| {
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(sql)
            .unwrap()
    };
    for (format, age, hint) in [
        (FORMAT + 1, "a newer", "upgrade efface"),
        (FORMAT - 1, "an older", "fit the model again"),
    ] {
        alter(&format!("PRAGMA user_version = {format}"));
        let message = format!(
            "{} was written by {age} efface (format {format}); this one reads format {FORMAT}",
            path.display()
        );
        let error = fails(Engine::open(&path).map(drop), BadModel, &message);
        assert_eq!(error.hint(), Some(hint.into()));
    }
    alter(&format!("PRAGMA user_version = {FORMAT}"));
    alter("CREATE TRIGGER keep AFTER UPDATE ON rows BEGIN DELETE FROM forgotten; END");
    let message = format!(
        "{} is damaged: its tables are not those of format {FORMAT}",
        path.display()
    );
    fails(Engine::open(&path).map(drop), BadModel, &message);
    alter("DROP TRIGGER keep; PRAGMA journal_mode = WAL");
    let message = format!(
        "{} is damaged: it was put into another journal mode",
        path.display()
    );
    fails(Engine::open(&path).map(drop), BadModel, &message);
    alter("PRAGMA journal_mode = DELETE");
    assert_eq!(Engine::open(&path).unwrap().summary().unwrap().rows, 10);
    alter("DELETE FROM rows WHERE row = 3");
    let mut engine = Engine::open(&path).unwrap();
    let error = engine
        .forget(
            &by_method(&ids(&[&lines(10)[4].id]), &"retrain".parse().unwrap()),
            &ForgetOptions::default(),
        )
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadModel);
    assert!(
        error
            .to_string()
            .ends_with("it holds 9 rows where 10 belong"),
        "{error}"
    );
}

#[test]
fn a_file_in_use_is_not_changed() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &dense(&table(&lines(10))));
    let path = bench.path("model");
    engine.set_patience(std::time::Duration::ZERO).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = &lines(10)[4].id;
    let message = format!("{} is in use by another process", path.display());
    fails(
        engine.forget(
            &by_method(&ids(&[id]), &Method::default()),
            &ForgetOptions::default(),
        ),
        BadModel,
        &message,
    );
    // Looking is possible while another process prepares a change.
    assert_eq!(engine.summary().unwrap().rows, 10);
    assert!(
        engine
            .forget(
                &by_method(&ids(&[id]), &Method::default()),
                &ForgetOptions::dry_run()
            )
            .unwrap()
            .dry_run
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        engine
            .forget(
                &by_method(&ids(&[id]), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap()
            .rows,
        9
    );
    // Two engines on one file see each other's changes.
    let mut second = Engine::open(&path).unwrap();
    second
        .forget(
            &by_method(&ids(&[&lines(10)[5].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(engine.summary().unwrap().rows, 8);
    assert_eq!(
        engine
            .forget(
                &by_method(&ids(&[&lines(10)[6].id]), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap()
            .rows,
        7
    );
}
