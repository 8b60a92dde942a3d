//! Forgetting in two steps: parameters first, bytes and curvature later.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{NotFound, Refused, Usage};
use efface_engine::{Engine, ForgetOptions, ForgetRequest, PolicyChange, RowSelection, Silent};
use efface_receipt::{RequestKind, SettledRun};

fn later(after: u64, within_seconds: u64) -> PolicyChange {
    let settle_after = Some(after);
    let settle_within_seconds = Some(within_seconds);
    PolicyChange {
        settle_after,
        settle_within_seconds,
        ..PolicyChange::default()
    }
}

/// Words that no other row has.
fn marked(at: usize) -> Line {
    let id = format!("marker{at:04}id");
    let cells = format!(
        "{id},marker{at:04}who,{}.5,1999,red,marker{at:04}word common,{},3\n",
        at % 7,
        at % 11
    );
    Line { cells, id }
}

/// A model that puts scrubbing off, and one of the same rows that does not.
fn pair(bench: &Bench, rows: &[Line]) -> (Engine, Engine) {
    let mut deferred = bench.fit("model", &sparse(&table(rows)));
    deferred.set_policy(&later(100, 3600)).unwrap();
    (deferred, bench.fit("twin", &sparse(&table(rows))))
}

fn forget(engine: &mut Engine, id: &str) -> efface_engine::ChangeReport {
    engine
        .forget(
            &by_method(&ids(&[id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap()
}

#[test]
fn what_is_forgotten_is_out_of_everything_before_it_is_scrubbed() {
    let bench = Bench::new();
    let mut all = lines(40);
    all.push(marked(1));
    all.push(marked(2));
    let (mut engine, mut twin) = pair(&bench, &all);
    let path = bench.path("model");
    let old = part(&path, "theta");
    let report = forget(&mut engine, &all[40].id);
    forget(&mut twin, &all[40].id);
    assert!(
        !report.scrubbed
            && report
                .evidence
                .kept_beside
                .iter()
                .any(|what| what.code() == "awaiting_settle")
    );
    assert_eq!((report.rows, report.features_dropped), (41, 1));
    // The first step leaves the row's bytes, and says so.
    assert!(holds(&path, "marker0001word"));
    let bytes = std::fs::read(&path).unwrap();
    let coefficient = |at: usize| &old[8 * at..8 * (at + 4)];
    assert_ne!(part(&path, "theta"), old);
    assert!(
        !bytes.windows(32).any(|window| window == coefficient(0)),
        "the old parameters are overwritten"
    );
    let summary = engine.summary().unwrap();
    assert_eq!(
        (
            summary.rows,
            summary.unscrubbed,
            summary.unscrubbed_since.is_some()
        ),
        (41, 1, true)
    );
    sound(&engine);
    // Nothing that is asked gives it back: not by name, not with new rows, not in what is shown.
    assert_eq!(
        engine
            .forget(
                &by_method(&ids(&[&all[40].id]), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap_err()
            .kind(),
        NotFound
    );
    let again = engine.learn(csv(&table([&all[40]])), &Silent).unwrap_err();
    assert_eq!(again.kind(), Refused);
    let who = RowSelection::Subject {
        column: "who".into(),
        value: "marker0001who".into(),
    };
    assert_eq!(
        engine
            .forget(
                &by_method(&who, &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap_err()
            .kind(),
        NotFound
    );
    assert_close(&engine, &twin);
    assert!(
        !engine
            .parameters()
            .unwrap()
            .features
            .iter()
            .any(|name| name.contains("marker0001"))
    );
    // Nor does an engine that knows only the file.
    let mut engine = Engine::open(&path).unwrap();
    assert_close(&engine, &twin);
    sound(&engine);
    for method in ["auto", "exact", "newton", "influence"] {
        let found = engine
            .forget(
                &by_method(&ids(&[&all[3].id]), &method.parse().unwrap()),
                &ForgetOptions::dry_run(),
            )
            .unwrap();
        let other = twin
            .forget(
                &by_method(&ids(&[&all[3].id]), &method.parse().unwrap()),
                &ForgetOptions::dry_run(),
            )
            .unwrap();
        assert_eq!(
            (found.rows, &found.method),
            (other.rows, &other.method),
            "{method}"
        );
    }
    forget(&mut engine, &all[41].id);
    forget(&mut twin, &all[41].id);
    assert_close(&engine, &twin);
    sound(&engine);
    // The second step.
    let settled = engine.settle().unwrap();
    assert_eq!(settled.scrubbed, 2);
    assert!(!holds(&path, "marker0001") && !holds(&path, "marker0002"));
    assert_close(&engine, &twin);
    assert_eq!(engine.summary().unwrap().unscrubbed, 0);
    let log = receipts(&engine);
    let settle = log.last().unwrap();
    assert_eq!(
        (settle.kind, settle.settles),
        (RequestKind::Settle, Some(SettledRun { first: 2, last: 3 }))
    );
    assert!(
        settle.times.scrubbed_at >= log[3].times.forgotten_at && settle.times.scrubbed_at.is_some()
    );
    assert!(log[2].times.forgotten_at.is_some() && log[2].times.scrubbed_at.is_none());
    assert_eq!(settle.parameters.before, Some(settle.parameters.after));
    sound(&engine);
    // And on from there.
    forget(&mut engine, &all[5].id);
    forget(&mut twin, &all[5].id);
    assert_close(&Engine::open(&path).unwrap(), &twin);
}

#[test]
fn as_many_as_the_policy_allows_wait_and_no_more() {
    let bench = Bench::new();
    let all = lines(40);
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    engine.set_policy(&later(3, 3600)).unwrap();
    let scrubbed: Vec<bool> = (0..7)
        .map(|at| forget(&mut engine, &all[at].id).scrubbed)
        .collect();
    assert_eq!(scrubbed, [false, false, true, false, false, true, false]);
    let log = receipts(&engine);
    let runs: Vec<_> = log.iter().filter_map(|receipt| receipt.settles).collect();
    assert_eq!(
        runs,
        [
            SettledRun { first: 2, last: 3 },
            SettledRun { first: 6, last: 7 }
        ]
    );
    sound(&engine);
    // A group counts as what it is, and a replay is the first answer.
    let named = |at: usize| ForgetRequest {
        id: Some(format!("T-{at}")),
        ..ForgetRequest::new(ids(&[&all[at].id]))
    };
    engine.set_policy(&later(10, 3600)).unwrap();
    let answers = engine.forget(
        &[named(10), named(11), named(12)],
        &ForgetOptions::default(),
    );
    assert!(
        answers
            .iter()
            .all(|answer| !answer.as_ref().unwrap().scrubbed)
    );
    assert!(
        !engine
            .forget(&named(11), &ForgetOptions::default())
            .unwrap()
            .scrubbed
    );
    sound(&engine);
    let log = receipts(&engine);
    assert_eq!(engine.settle_if_due().unwrap(), None);
    engine.settle().unwrap();
    let settle = receipts(&engine).pop().unwrap();
    assert_eq!(
        settle.settles.map(|run| run.last),
        Some(log.len() as u64 - 1)
    );
    assert!(forget(&mut engine, &all[20].id).forgotten == 1);
    sound(&engine);
}

#[test]
fn none_waits_longer_than_the_policy_allows() {
    let bench = Bench::new();
    let all = lines(30);
    let (mut engine, _) = pair(&bench, &all);
    let path = bench.path("model");
    let age = |hours: i64| {
        change_manifest(&path, |manifest| {
            let since = manifest["waiting"]["since"].as_i64().unwrap();
            manifest["waiting"]["since"] = (since - hours * 3_600_000).into();
        });
    };
    forget(&mut engine, &all[0].id);
    assert_eq!(engine.settle_if_due().unwrap(), None);
    age(1);
    // Looking does not settle; staying open does when asked, and so does the next forget.
    assert_eq!(
        Engine::open_read_only(&path)
            .unwrap()
            .summary()
            .unwrap()
            .unscrubbed,
        1
    );
    assert!(engine.settle_if_due().unwrap().is_some());
    forget(&mut engine, &all[1].id);
    age(2);
    assert!(forget(&mut engine, &all[2].id).scrubbed);
    forget(&mut engine, &all[3].id);
    age(2);
    let engine = Engine::open(&path).unwrap();
    assert_eq!(engine.summary().unwrap().unscrubbed, 0);
    sound(&engine);
    // Without a key nothing is signed, and opening a model is not the place to say so.
    let mut engine = engine;
    forget(&mut engine, &all[4].id);
    age(2);
    let key = bench.path("model.key");
    let secret = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert_eq!(
        Engine::open(&path).unwrap().summary().unwrap().unscrubbed,
        1
    );
    std::fs::write(&key, secret).unwrap();
}

#[test]
fn a_clock_that_went_back_lets_nothing_wait() {
    let bench = Bench::new();
    let all = lines(30);
    let (mut engine, _) = pair(&bench, &all);
    let path = bench.path("model");
    assert!(!forget(&mut engine, &all[0].id).scrubbed);
    // As if the clock had been a year ahead then: by the log's own time, which never goes back, no
    // time passes now.
    change_manifest(&path, |manifest| {
        let ahead = manifest["ledger"]["newest"].as_i64().unwrap() + 365 * 86_400_000;
        manifest["ledger"]["newest"] = ahead.into();
        manifest["waiting"]["since"] = ahead.into();
    });
    let mut engine = Engine::open(&path).unwrap();
    assert_eq!(engine.summary().unwrap().unscrubbed, 0);
    assert!(forget(&mut engine, &all[1].id).scrubbed);
    sound(&engine);
}

#[test]
fn every_other_change_settles_first() {
    let bench = Bench::new();
    let all = lines(44);
    let (mut engine, mut twin) = pair(&bench, &all[..40]);
    let path = bench.path("model");
    let both = |engine: &mut Engine, twin: &mut Engine, at: usize| {
        assert!(!forget(engine, &all[at].id).scrubbed);
        forget(twin, &all[at].id);
    };
    let scrubbed = |engine: &Engine| {
        assert_eq!(engine.summary().unwrap().unscrubbed, 0);
        sound(engine);
    };
    both(&mut engine, &mut twin, 0);
    engine.learn(csv(&table(&all[40..])), &Silent).unwrap();
    twin.learn(csv(&table(&all[40..])), &Silent).unwrap();
    scrubbed(&engine);
    assert_close(&engine, &twin);
    // An engine that starts from the file alone does as well.
    both(&mut engine, &mut twin, 1);
    let mut engine = Engine::open(&path).unwrap();
    let fixed = format!("id,who,size,words,price\n{},someone,3,tall,4\n", all[7].id);
    engine.amend(csv(&fixed), &Silent).unwrap();
    twin.amend(csv(&fixed), &Silent).unwrap();
    scrubbed(&engine);
    assert_close(&engine, &twin);
    both(&mut engine, &mut twin, 2);
    engine.export("json", None).unwrap();
    twin.export("json", None).unwrap();
    scrubbed(&engine);
    let kinds: Vec<RequestKind> = receipts(&engine)
        .iter()
        .rev()
        .take(2)
        .map(|receipt| receipt.kind)
        .collect();
    assert_eq!(kinds, [RequestKind::Export, RequestKind::Settle]);
    // A method that makes the sums anew leaves nothing to wait for.
    both(&mut engine, &mut twin, 3);
    assert!(
        engine
            .forget(
                &by_method(&ids(&[&all[4].id]), &"retrain".parse().unwrap()),
                &ForgetOptions::default()
            )
            .unwrap()
            .scrubbed
    );
    twin.forget(
        &by_method(&ids(&[&all[4].id]), &"retrain".parse().unwrap()),
        &ForgetOptions::default(),
    )
    .unwrap();
    scrubbed(&engine);
    assert_close(&engine, &twin);
    // A key may change while rows wait; a policy that lets them wait on leaves them, and one that
    // does not scrubs them.
    both(&mut engine, &mut twin, 5);
    engine
        .rotate_key(&efface_engine::KeyRotation::default())
        .unwrap();
    engine.set_policy(&later(2, 60)).unwrap();
    assert_eq!(engine.summary().unwrap().unscrubbed, 1);
    engine.set_policy(&later(1, 0)).unwrap();
    scrubbed(&engine);
    let kinds: Vec<RequestKind> = receipts(&engine)
        .iter()
        .rev()
        .take(2)
        .map(|receipt| receipt.kind)
        .collect();
    assert_eq!(kinds, [RequestKind::Settle, RequestKind::Policy]);
    assert_close(&engine, &twin);
    assert!(forget(&mut engine, &all[6].id).scrubbed);
}

#[test]
fn approximate_and_exact_requests_in_turn() {
    let bench = Bench::new();
    let all = lines(40);
    let (mut engine, mut twin) = pair(&bench, &all);
    for (at, method) in [
        "influence",
        "exact",
        "influence",
        "auto",
        "newton",
        "influence",
    ]
    .iter()
    .enumerate()
    {
        for engine in [&mut engine, &mut twin] {
            engine
                .forget(
                    &by_method(&ids(&[&all[at].id]), &method.parse().unwrap()),
                    &ForgetOptions::default(),
                )
                .unwrap();
        }
        assert_close(&engine, &twin);
        assert_close(&Engine::open(&bench.path("model")).unwrap(), &twin);
        sound(&engine);
    }
    engine.settle().unwrap();
    sound(&engine);
    assert_close(&engine, &twin);
}

#[test]
fn families_without_sums_scrub_at_once() {
    let bench = Bench::new();
    let all = lines(60);
    let request = classes(&table(&all)).naive_bayes();
    let mut engine = bench.fit("model", &request);
    let policy = engine.set_policy(&later(50, 60)).unwrap();
    assert!(!policy.can_defer);
    assert!(forget(&mut engine, &all[0].id).scrubbed);
    sound(&engine);
}

#[test]
fn a_policy_of_nonsense_is_refused() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &dense(&table(&lines(20))));
    for wrong in [later(0, 60), later(10_001, 60), later(5, 366 * 86_400)] {
        assert_eq!(engine.set_policy(&wrong).unwrap_err().kind(), Usage);
    }
    let half = PolicyChange {
        settle_after: Some(7),
        ..PolicyChange::default()
    };
    let policy = engine.set_policy(&half).unwrap();
    assert_eq!(
        (
            policy.settle_after,
            policy.settle_within_seconds,
            policy.can_defer
        ),
        (7, 86_400, true)
    );
    let half = PolicyChange {
        settle_within_seconds: Some(0),
        ..PolicyChange::default()
    };
    assert_eq!(engine.set_policy(&half).unwrap().settle_after, 1);
}

#[test]
fn a_list_of_waiting_rows_that_was_tampered_with_is_found_out() {
    let bench = Bench::new();
    let all = lines(30);
    let (mut engine, _) = pair(&bench, &all);
    forget(&mut engine, &all[0].id);
    forget(&mut engine, &all[1].id);
    let path = bench.path("model");
    let whole = std::fs::read(&path).unwrap();
    type Forge = fn(&mut serde_json::Value);
    let forgeries: [Forge; 6] = [
        |manifest| manifest["waiting"] = serde_json::Value::Null,
        |manifest| manifest["waiting"]["rows"] = vec![0].into(),
        |manifest| manifest["waiting"]["rows"] = vec![0, 2].into(),
        |manifest| manifest["waiting"]["last"] = 2.into(),
        |manifest| {
            let since = manifest["waiting"]["since"].as_i64().unwrap();
            manifest["waiting"]["since"] = (since + 60_000).into();
        },
        |manifest| manifest["waiting"]["rows"] = vec![1, 0].into(),
    ];
    for (at, forgery) in forgeries.into_iter().enumerate() {
        std::fs::write(&path, &whole).unwrap();
        change_manifest(&path, forgery);
        let refused = match Engine::open_read_only(&path) {
            Ok(engine) => match engine.verify(None) {
                Ok(checks) => checks.iter().any(|check| !check.passed),
                Err(_) => true,
            },
            Err(_) => true,
        };
        assert!(refused, "forgery {at}");
    }
}

/// A model file never grows by more than the receipts over its life.
#[test]
fn a_file_grows_with_its_log_alone() {
    let bench = Bench::new();
    let rows: Vec<Line> = (0..60).map(marked).collect();
    let mut request = sparse(&table(&rows));
    request.words = efface::features::WordSource::Hashed(64);
    let mut engine = bench.fit("model", &request);
    engine.set_policy(&later(8, 3600)).unwrap();
    engine.settle().unwrap();
    let path = bench.path("model");
    let size = || std::fs::metadata(&path).unwrap().len();
    let logged = |engine: &Engine| {
        let mut bytes = 0;
        engine
            .receipts(&mut |_, leaf| {
                bytes += leaf.len() as u64;
                Ok(())
            })
            .unwrap();
        bytes
    };
    let start = size();
    let log = logged(&engine);
    for round in 1..=20 {
        let names: Vec<String> = (0..30).map(|at| marked((round - 1) * 30 + at).id).collect();
        for three in names.chunks(3) {
            let three: Vec<&str> = three.iter().map(String::as_str).collect();
            engine
                .forget(
                    &by_method(&ids(&three), &Method::default()),
                    &ForgetOptions::default(),
                )
                .unwrap();
        }
        let new: Vec<Line> = (0..30).map(|at| marked(round * 30 + 30 + at)).collect();
        engine.learn(csv(&table(&new)), &Silent).unwrap();
    }
    engine.settle().unwrap();
    let grown = size() - start;
    let told = logged(&engine) - log;
    // A receipt of more than 2,048 bytes takes a page of 4,096. Beside them: a hash for every node
    // over them and for every id that must not come back.
    let pages = (receipts(&engine).len() as u64 + 16) * 4096;
    assert!(
        told < grown && grown <= pages,
        "the file grew by {grown} bytes, its log by {told}"
    );
    assert_eq!(engine.summary().unwrap().rows, 60);
    sound(&engine);
}

#[test]
fn an_engine_that_stays_open_has_the_features_of_one_that_reads_the_file() {
    let bench = Bench::new();
    let mut all = lines(40);
    all.extend((0..6).map(marked));
    for (name, request) in [
        ("sparse", sparse(&table(&all))),
        ("dense", dense(&table(&all))),
    ] {
        let mut engine = bench.fit(name, &request);
        engine.set_policy(&later(100, 3600)).unwrap();
        // In an order that is not that of the file, with words that leave for good.
        for at in [45, 3, 41, 17, 40, 9] {
            assert!(!forget(&mut engine, &all[at].id).scrubbed);
            let fresh = Engine::open_read_only(&bench.path(name)).unwrap();
            let asked = table(&all);
            let here = predictions(&engine, &asked);
            let there = predictions(&fresh, &asked);
            assert!(
                here.iter().zip(&there).all(|(a, b)| a.scores == b.scores),
                "{name} without {at}"
            );
            let here = engine.summary().unwrap();
            let there = fresh.summary().unwrap();
            assert_eq!(
                here.feature_columns, there.feature_columns,
                "{name} without {at}"
            );
            assert_eq!(here.not_covered, there.not_covered, "{name} without {at}");
        }
        sound(&engine);
    }
}
