//! A change that fails, or whose process dies, at the last moment.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use efface_io::Source;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::file::{ModelStore, journal_path};
use crate::operations::request::{FitRequest, ForgetOptions, ForgetRequest, RowSelection};
use crate::progress::Silent;

thread_local! {
    static FAIL: Cell<bool> = const { Cell::new(false) };
    static COPY: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Runs between the last write and the commit.
pub(super) fn interrupt(store: &ModelStore) -> Result<()> {
    if let Some(path) = COPY.take() {
        // What a crash would leave on disk, the cache having been written back in the middle of the
        // transaction.
        store.with(|connection| Ok(connection.cache_flush()?))?;
        std::fs::copy(store.path(), &path).unwrap();
        std::fs::copy(journal_path(store.path()), journal_path(&path)).unwrap();
    }
    if FAIL.get() {
        Err(Error::EmptyRequest)
    } else {
        Ok(())
    }
}

fn model(path: &Path) -> Engine {
    let text: String = (0..40)
        .map(|at| format!("r{at},{},word{at} common,{}\n", at * 7 % 11, at % 5))
        .collect();
    let source = Source::from_bytes("a.csv", format!("id,x,t,y\n{text}"), None).unwrap();
    let mut request = FitRequest::new(source);
    request.targets = vec!["y".into()];
    request.id = Some("id".into());
    request.text = vec!["t".into()];
    crate::fit(&request, path, false, &Silent).unwrap();
    Engine::open(path).unwrap()
}

#[test]
fn a_failure_before_the_commit_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut engine = model(&path);
    let before = std::fs::read(&path).unwrap();
    let more = Source::from_bytes("a.csv", "id,t,y\nnew,common,3\n", None).unwrap();
    let fixed = Source::from_bytes("a.csv", "id,t,y\nr3,common,3\n", None).unwrap();
    let who = RowSelection::Ids(vec!["r7".into(), "r8".into()]);
    FAIL.set(true);
    assert!(
        engine
            .forget(&ForgetRequest::new(who.clone()), &ForgetOptions::default())
            .is_err()
    );
    assert!(engine.learn(&more, &Silent).is_err());
    assert!(engine.amend(&fixed, &Silent).is_err());
    FAIL.set(false);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Nothing of the journal is played back, and its bytes keep their name until they are
    // overwritten.
    assert_eq!(std::fs::read(journal_path(&path)).unwrap()[..512], [0; 512]);
    // The engine goes on as if nothing had happened.
    assert_eq!(
        engine
            .forget(&ForgetRequest::new(who.clone()), &ForgetOptions::default())
            .unwrap()
            .rows,
        38
    );
    assert_eq!(engine.learn(&more, &Silent).unwrap().rows, 39);
    assert_eq!(engine.amend(&fixed, &Silent).unwrap().rows, 39);
}

#[test]
fn the_journal_is_empty_after_a_change_and_after_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut engine = model(&path);
    let forget = |engine: &mut Engine, id: &str| {
        engine.forget(
            &ForgetRequest::new(RowSelection::Ids(vec![id.into()])),
            &ForgetOptions::default(),
        )
    };
    let holds = |text: &str| {
        let journal = std::fs::read(journal_path(&path)).unwrap();
        journal
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    FAIL.set(true);
    assert!(forget(&mut engine, "r7").is_err());
    FAIL.set(false);
    assert!(
        holds("word7"),
        "a failed change leaves the pages that it was about to overwrite"
    );
    drop(engine);
    let mut engine = Engine::open(&path).unwrap();
    assert!(std::fs::read(journal_path(&path)).unwrap().is_empty());
    assert!(forget(&mut engine, "r7").unwrap().scrubbed);
    assert!(std::fs::read(journal_path(&path)).unwrap().is_empty());
    // Rows that wait to be scrubbed may wait in the journal too; the settle clears both.
    engine
        .set_policy(&crate::PolicyChange {
            settle_after: Some(9),
            ..Default::default()
        })
        .unwrap();
    assert!(!forget(&mut engine, "r8").unwrap().scrubbed);
    assert!(!std::fs::read(journal_path(&path)).unwrap().is_empty());
    assert_eq!(engine.settle().unwrap().scrubbed, 1);
    assert!(std::fs::read(journal_path(&path)).unwrap().is_empty());
}

#[test]
fn a_crash_in_the_middle_is_rolled_back_by_the_next_process_that_opens_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut engine = model(&path);
    let before = std::fs::read(&path).unwrap();
    for (name, write) in [("crashed", true), ("read", false)] {
        let copy = folder.path().join(name);
        COPY.set(Some(copy.clone()));
        FAIL.set(true);
        assert!(
            engine
                .forget(
                    &ForgetRequest::new(RowSelection::Ids(vec!["r7".into()])),
                    &ForgetOptions::default()
                )
                .is_err()
        );
        FAIL.set(false);
        let mut journal = std::fs::File::open(journal_path(&copy)).unwrap();
        assert_ne!(std::fs::read(&copy).unwrap(), before);
        let opened = if write {
            Engine::open(&copy)
        } else {
            Engine::open_read_only(&copy)
        };
        assert_eq!(opened.unwrap().summary().unwrap().rows, 40);
        assert_eq!(std::fs::read(&copy).unwrap(), before);
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut journal, &mut bytes).unwrap();
        assert!(
            bytes.iter().all(|byte| *byte == 0),
            "what is left of the journal on disk"
        );
    }
}

#[test]
fn a_failure_leaves_what_waits_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut engine = model(&path);
    let later = crate::PolicyChange {
        settle_after: Some(9),
        ..Default::default()
    };
    engine.set_policy(&later).unwrap();
    let one = |at: usize| RowSelection::Ids(vec![format!("r{at}")]);
    let more = Source::from_bytes("a.csv", "id,t,y\nnew,common,3\n", None).unwrap();
    for waiting in 0..3 {
        let before = std::fs::read(&path).unwrap();
        FAIL.set(true);
        assert!(
            engine
                .forget(&ForgetRequest::new(one(waiting)), &ForgetOptions::default())
                .is_err()
        );
        assert!(engine.settle().is_err());
        assert!(engine.learn(&more, &Silent).is_err());
        assert!(engine.export("json", None).is_err());
        assert!(engine.set_policy(&later).is_err());
        FAIL.set(false);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(engine.summary().unwrap().unscrubbed, waiting);
        assert!(
            !engine
                .forget(&ForgetRequest::new(one(waiting)), &ForgetOptions::default())
                .unwrap()
                .scrubbed
        );
    }
    // A crash between the two steps: the next process that opens the file finds the first one done.
    let copy = folder.path().join("crashed");
    std::fs::copy(
        folder.path().join("model.key"),
        folder.path().join("crashed.key"),
    )
    .unwrap();
    COPY.set(Some(copy.clone()));
    FAIL.set(true);
    assert!(engine.settle().is_err());
    FAIL.set(false);
    let mut crashed = Engine::open(&copy).unwrap();
    assert_eq!(
        (
            crashed.summary().unwrap().rows,
            crashed.summary().unwrap().unscrubbed
        ),
        (37, 3)
    );
    assert_eq!(crashed.settle().unwrap().scrubbed, 3);
    assert!(
        crashed
            .verify(None)
            .unwrap()
            .iter()
            .all(|check| check.passed)
    );
    assert_eq!(engine.settle().unwrap().scrubbed, 3);
    assert_eq!(engine.parameters().unwrap(), crashed.parameters().unwrap());
}
