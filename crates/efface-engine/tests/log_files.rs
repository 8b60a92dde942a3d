//! Files that are not what their log says, keys that are gone, and places that cannot be written
//! to.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{self, BadModel, Refused};
use efface_engine::{Engine, ForgetOptions, ForgetRequest, PolicyChange, RowSelection, Silent};

fn model(bench: &Bench) -> Engine {
    bench.fit("model", &sparse(&table(&lines(40))))
}

fn batch(minimum: u64) -> PolicyChange {
    PolicyChange {
        minimum_batch: Some(minimum),
        expose_forgotten: true,
        ..PolicyChange::default()
    }
}

/// All rows of one person.
fn person(name: &str) -> RowSelection {
    RowSelection::Subject {
        column: "who".into(),
        value: name.into(),
    }
}

/// A named request to forget one person.
fn request(name: &str, id: &str) -> ForgetRequest {
    ForgetRequest {
        id: Some(id.into()),
        ..ForgetRequest::new(person(name))
    }
}

#[test]
fn without_its_key_a_model_does_not_change() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let key = bench.path("model.key");
    let secret = std::fs::read(&key).unwrap();
    let first = &lines(1)[0].id;
    let before = std::fs::read(bench.path("model")).unwrap();
    std::fs::remove_file(&key).unwrap();
    let message = format!(
        "key file {}: it is not there, and without it no receipt can be signed",
        key.display()
    );
    fails(
        engine.forget(
            &by_method(&ids(&[first]), &Method::default()),
            &ForgetOptions::default(),
        ),
        Refused,
        &message,
    );
    bench.fit("other", &sparse(&table(&lines(10))));
    std::fs::copy(bench.path("other.key"), &key).unwrap();
    let message = format!("key file {}: it holds no key of this model", key.display());
    fails(
        engine.forget(
            &by_method(&ids(&[first]), &Method::default()),
            &ForgetOptions::default(),
        ),
        Refused,
        &message,
    );
    assert_eq!(std::fs::read(bench.path("model")).unwrap(), before);
    // Looking needs no key.
    assert_eq!(engine.summary().unwrap().rows, 40);
    assert!(
        engine
            .forget(
                &by_method(&ids(&[first]), &Method::default()),
                &ForgetOptions::dry_run()
            )
            .is_ok()
    );
    std::fs::write(&key, secret).unwrap();
    engine
        .forget(
            &by_method(&ids(&[first]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    sound(&engine);
}

#[test]
fn a_file_that_is_not_what_its_log_says_is_found_out() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    engine
        .forget(&request("p1", "T-1"), &ForgetOptions::default())
        .unwrap();
    engine
        .forget(&request("p2", "T-2"), &ForgetOptions::default())
        .unwrap();
    drop(engine);
    let whole = std::fs::read(bench.path("model")).unwrap();
    let path = bench.path("altered");
    lend_key(&bench, "model", "altered");
    for (sql, check) in [
        ("DELETE FROM receipts WHERE sequence = 2", "log"),
        (
            "UPDATE receipts SET bytes = (SELECT bytes FROM receipts WHERE sequence = 1) WHERE sequence = 2",
            "log",
        ),
        (
            "UPDATE nodes SET hash = zeroblob(32) WHERE level = 1",
            "log",
        ),
        (
            "UPDATE parts SET bytes = zeroblob(length(bytes)) WHERE name = 'theta'",
            "parameters",
        ),
        (
            "UPDATE rows SET payload = zeroblob(length(payload)) WHERE row = 5",
            "training set",
        ),
        (
            "DELETE FROM members WHERE commitment = (SELECT min(commitment) FROM members)",
            "training set",
        ),
        (
            "UPDATE keys SET key = zeroblob(32) WHERE row = 5",
            "training set",
        ),
        (
            "UPDATE requests SET value = (SELECT min(value) FROM requests)",
            "requests",
        ),
        ("DELETE FROM forgotten", "suppression list"),
        (
            "UPDATE forgotten SET commitment = zeroblob(32) WHERE commitment = (SELECT min(commitment) FROM forgotten)",
            "suppression list",
        ),
        (
            "UPDATE forgotten SET value = CAST('2020-01-01T00:00:00Z' AS BLOB)",
            "suppression list",
        ),
    ] {
        std::fs::write(&path, &whole).unwrap();
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let checks = Engine::open_read_only(&path).unwrap().verify(None).unwrap();
        let failed: Vec<_> = checks
            .iter()
            .filter(|c| !c.passed)
            .map(|c| c.check)
            .collect();
        assert!(failed.contains(&check), "{sql}: {failed:?}");
    }
    // A count that nothing but the rows can contradict.
    std::fs::write(&path, &whole).unwrap();
    let mut support = part(&path, "support");
    support[0] += 1;
    forge(&path, "support", &support);
    let checks = Engine::open_read_only(&path).unwrap().verify(None).unwrap();
    assert!(
        checks
            .iter()
            .any(|check| check.check == "rows" && !check.passed),
        "{checks:?}"
    );
    let checks = Engine::open_read_only(&path)
        .unwrap()
        .verify_rows(None, false)
        .unwrap();
    assert!(
        checks
            .iter()
            .any(|check| check.check == "rows" && !check.known),
        "{checks:?}"
    );
    // A bound that was never known does not pass for one that holds.
    std::fs::write(&path, &whole).unwrap();
    change_manifest(&path, |manifest| {
        manifest["model"]["relative_bound"] = serde_json::Value::Null
    });
    let checks = Engine::open_read_only(&path).unwrap().verify(None).unwrap();
    assert!(checks.iter().all(|check| check.passed), "{checks:?}");
    // A stranger's key does not fit.
    let stranger = bench.fit("other", &sparse(&table(&lines(10))));
    let checks = Engine::open_read_only(&bench.path("model"))
        .unwrap()
        .verify(Some(&key(&stranger).into()))
        .unwrap();
    assert!(
        checks
            .iter()
            .any(|check| check.check == "log" && !check.passed)
    );
}

#[test]
fn a_log_that_was_cut_short_is_not_continued() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    engine
        .forget(
            &by_method(&person("p1"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let path = bench.path("model");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("DELETE FROM nodes WHERE level = 1")
        .unwrap();
    let error = engine
        .forget(
            &by_method(&person("p2"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap_err();
    assert_eq!(error.kind(), BadModel, "{error}");
    assert_eq!(engine.summary().unwrap().generation, 1);
}

#[test]
fn overwriting_a_model_starts_another_log_with_another_key() {
    let bench = Bench::new();
    let first = key(&model(&bench));
    let engine = model(&bench);
    assert_ne!(key(&engine).to_string(), first.to_string());
    // A key and a seed.
    assert_eq!(
        std::fs::read_to_string(bench.path("model.key"))
            .unwrap()
            .lines()
            .count(),
        2
    );
    sound(&engine);
}

#[test]
fn the_file_grows_by_receipts_alone() {
    let bench = Bench::new();
    let all = lines(400);
    let mut engine = bench.fit("model", &dense(&table(&all[..200])));
    let size = || std::fs::metadata(bench.path("model")).unwrap().len();
    let before = size();
    for round in 0..20 {
        let gone: Vec<&str> = all[round * 10..][..10]
            .iter()
            .map(|line| line.id.as_str())
            .collect();
        engine
            .learn(csv(&table(&all[200 + round * 10..][..10])), &Silent)
            .unwrap();
        engine
            .forget(
                &by_method(&ids(&gone), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
    }
    engine.settle().unwrap();
    let log: usize = receipts(&engine)
        .iter()
        .map(|r| serde_json::to_vec(r).unwrap().len() + 300)
        .sum();
    // The list of what must not come back has two entries a row, of 64 bytes each.
    let most = before + log as u64 + 200 * 160 + 16 * 4096;
    assert!(
        size() <= most,
        "{} bytes, {before} before, {log} of receipts",
        size()
    );
    sound(&engine);
}

#[test]
fn a_clock_that_runs_backwards_does_not_take_the_log_along() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    // As if the last change had been made in 2100.
    let later = 4_102_444_800_000_i64;
    change_manifest(&bench.path("model"), |manifest| {
        manifest["ledger"]["newest"] = later.into()
    });
    engine
        .forget(
            &by_method(&person("p1"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine
        .forget(
            &by_method(&person("p2"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let log = receipts(&engine);
    let times: Vec<i64> = log
        .iter()
        .map(|r| r.times.received_at.unix_milliseconds())
        .collect();
    assert_eq!(times[1..], [later, later]);
    sound(&engine);
}

/// A refusal that holds for every user, the administrator too: a folder lies where SQLite's journal
/// would, and a file where a folder would.
#[test]
fn a_place_that_cannot_be_written_to_changes_nothing() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let before = std::fs::read(bench.path("model")).unwrap();
    std::fs::create_dir(bench.path("model-journal")).unwrap();
    std::fs::write(bench.path("model-journal").join("kept"), "").unwrap();
    let more = csv(&table(&lines(44)[40..]));
    let io = |result: Result<(), efface_engine::Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("model"), "{error}");
    };
    io(engine
        .forget(
            &by_method(&person("p1"), &Method::default()),
            &ForgetOptions::default(),
        )
        .map(drop));
    io(engine.learn(&more, &Silent).map(drop));
    io(engine.settle().map(drop));
    io(engine.export("json", None).map(drop));
    io(engine.set_policy(&batch(2)).map(drop));
    let answers = engine.forget(
        &[request("p1", "a"), request("p2", "b")],
        &ForgetOptions::default(),
    );
    answers.into_iter().for_each(|answer| io(answer.map(drop)));
    std::fs::remove_dir_all(bench.path("model-journal")).unwrap();
    assert_eq!(std::fs::read(bench.path("model")).unwrap(), before);
    engine
        .forget(
            &by_method(&person("p1"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    sound(&engine);
    std::fs::write(bench.path("file"), "").unwrap();
    let wanted = dense(&table(&lines(10)));
    io(efface_engine::fit(&wanted, &bench.path("file").join("model"), false, &Silent).map(drop));
    assert_eq!(std::fs::read(bench.path("file")).unwrap(), b"");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_changes_nothing() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let file = bench.path("model");
    let folder = file.parent().unwrap().to_owned();
    let mut mode = std::fs::metadata(&folder).unwrap().permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&folder, mode.clone()).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    let error = engine
        .forget(
            &by_method(&person("p1"), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(engine.summary().unwrap().rows, 40);
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
