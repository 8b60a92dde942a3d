//! Commands beside a process that holds the model.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use rusqlite::Connection;

/// Every command asks for the same patience, also one that only looks, and also while a model is
/// opened.
#[test]
fn every_command_waits_as_long_as_it_is_told() {
    let folder = Folder::with_houses();
    let writer = Connection::open(folder.path("houses.efface")).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for line in [
        "inspect houses.efface",
        "verify houses.efface",
        "log houses.efface",
        "keys houses.efface",
        "policy houses.efface",
        "predict houses.efface houses.csv",
        "forget houses.efface --ids h1 --dry-run",
        "forget houses.efface --ids h1",
        "settle houses.efface",
    ] {
        let started = Instant::now();
        let ended = folder.run(&format!("--wait 0 {line}"));
        assert!(
            ended.err.contains("is in use by another process"),
            "{line}: {}",
            ended.err
        );
        // Without being told, a command waits for five seconds.
        assert!(
            started.elapsed() < Duration::from_secs(4),
            "{line}: {:?}",
            started.elapsed()
        );
    }
    // Whoever waits long enough gets an answer.
    let release = std::thread::spawn(move || writer.execute_batch("ROLLBACK").unwrap());
    folder.done("--wait 60 inspect houses.efface");
    release.join().unwrap();
}

/// On Unix a process that closes a file loses its locks on it. Opening a model a second time must
/// not cost the first its lock, or another process would change the file at the same time.
#[test]
fn opening_a_model_twice_keeps_the_lock_of_the_first() {
    let folder = Folder::with_houses();
    let path = folder.path("houses.efface");
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    drop(efface_engine::Engine::open_read_only(&path).unwrap());
    let ended = folder.run("--wait 0 forget houses.efface --ids h1");
    assert!(
        ended.err.contains("is in use by another process"),
        "{} {}",
        ended.out,
        ended.err
    );
}
