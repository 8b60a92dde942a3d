//! Receipts of every change, requests that come twice, audits and release policies.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{self, Refused, Usage};
use efface_engine::{
    AuditEntry, ChangeReport, Engine, ExportNoise, ForgetOptions, ForgetRequest, PolicyChange,
    RowSelection, Silent,
};
use efface_receipt::{Receipt, RequestKind, RequestOutcome};

fn model(bench: &Bench) -> Engine {
    bench.fit("model", &sparse(&table(&lines(40))))
}

fn request(who: RowSelection, id: &str) -> ForgetRequest {
    ForgetRequest {
        id: Some(id.into()),
        ..ForgetRequest::new(who)
    }
}

fn person(name: &str) -> RowSelection {
    RowSelection::Subject {
        column: "who".into(),
        value: name.into(),
    }
}

fn told(report: &ChangeReport) -> (&'static str, usize, bool) {
    (report.outcome.name(), report.forgotten, report.replayed)
}

#[test]
fn every_change_has_a_receipt_that_holds() {
    let bench = Bench::new();
    let all = lines(44);
    let mut engine = bench.fit("model", &sparse(&table(&all[..40])));
    sound(&engine);
    let report = engine
        .forget(
            &by_method(&ids(&[&all[3].id, &all[4].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.learn(csv(&table(&all[40..])), &Silent).unwrap();
    let fixed = format!("id,who,size,words,price\n{},someone,3,tall,4\n", all[7].id);
    engine.amend(csv(&fixed), &Silent).unwrap();
    let exported = engine.export("json", Some("a.json")).unwrap();
    let (next, _) = engine
        .rotate_key(&efface_engine::KeyRotation::default())
        .unwrap();
    engine.settle().unwrap();
    let person = by_method(&person("p2"), &Method::default());
    let previewed = engine.forget(&person, &ForgetOptions::dry_run()).unwrap();
    assert_eq!(previewed.withdrawn, 1);
    assert!(previewed.moved.unwrap() > 0.0);
    assert_eq!(
        engine
            .forget(&person, &ForgetOptions::default())
            .unwrap()
            .withdrawn,
        1
    );
    sound(&engine);
    let log = receipts(&engine);
    let kinds: Vec<RequestKind> = log.iter().map(|receipt| receipt.kind).collect();
    use RequestKind::*;
    assert_eq!(
        kinds,
        [
            Fit,
            Forget,
            Learn,
            Amend,
            Export,
            KeyRotation,
            Settle,
            Forget
        ]
    );
    let forget = &log[1];
    assert_eq!(forget.id, report.receipt.unwrap().id);
    assert_eq!(
        (forget.outcome, forget.rows.removed, forget.rows.added),
        (RequestOutcome::Erased, 2, 0)
    );
    assert_eq!(
        (
            log[0].training_set.after.count,
            forget.training_set.after.count
        ),
        (40, 38)
    );
    assert!(forget.claim.is_some() && forget.bound.is_some() && forget.method.is_some());
    assert!(
        forget.times.forgotten_at.is_some()
            && forget.times.scrubbed_at == forget.times.forgotten_at
    );
    assert!(forget.settings.contains_key("recipe"));
    assert_ne!(forget.parameters.before, Some(forget.parameters.after));
    assert_eq!((log[3].rows.removed, log[3].rows.added), (1, 1));
    assert_eq!(
        engine.public_keys().unwrap().pop().unwrap().to_string(),
        next
    );
    // The export was live in its own receipt and is withdrawn after the next forget.
    assert_eq!(exported.number, 1);
    let state = |receipt: &Receipt| {
        receipt
            .copies
            .iter()
            .map(|c| c.withdrawn_at.is_some())
            .next()
    };
    assert_eq!((state(&log[4]), state(&log[7])), (Some(false), Some(true)));
    assert_eq!(engine.summary().unwrap().exports, (0, 1));
    // Times never run backwards.
    assert!(
        log.windows(2)
            .all(|pair| pair[0].times.received_at <= pair[1].times.received_at)
    );
}

#[test]
fn receipts_name_nobody() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let asked = request(person("p3"), "ticket-77");
    engine.forget(&asked, &ForgetOptions::default()).unwrap();
    let path = bench.path("model");
    assert!(!holds(&path, "ticket-77"));
    // What was asked is remembered by a hash that nobody can make who has only the words.
    let words = r#"{"allow_missing":false,"clear_dead_columns":false,"method":{"name":"auto"},"rows":{"subject":{"column":"who","value":"p3"}},"version":1}"#;
    let plain = efface_receipt::sha256(words.as_bytes()).0;
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(32).any(|window| window == plain));
    assert!(
        engine
            .forget(&asked, &ForgetOptions::default())
            .unwrap()
            .replayed
    );
    let all = lines(40);
    let text: String = receipts(&engine)
        .iter()
        .map(|r| serde_json::to_string(r).unwrap())
        .collect();
    for name in all
        .iter()
        .map(|line| line.id.as_str())
        .chain(["p3", "ticket"])
    {
        assert!(!text.contains(&format!("\"{name}")), "{name}");
    }
}

#[test]
fn a_request_has_one_effect() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let asked = request(person("p1"), "T-1");
    let first = engine.forget(&asked, &ForgetOptions::default()).unwrap();
    let again = engine.forget(&asked, &ForgetOptions::default()).unwrap();
    assert_eq!(
        again,
        ChangeReport {
            replayed: true,
            seconds: again.seconds,
            subject_opening: None,
            ..first.clone()
        }
    );
    let error = fails(
        engine.forget(&request(person("p2"), "T-1"), &ForgetOptions::default()),
        Refused,
        "request T-1 was answered before, and asked for something else",
    );
    assert!(error.hint().is_some());
    // The order of ids does not make another request, nor do blanks around the name.
    let [a, b] = ["r00000", lines(3)[2].id.as_str()].map(String::from);
    let pair = |ids: [&String; 2]| RowSelection::Ids(ids.map(Clone::clone).to_vec());
    let one = engine
        .forget(&request(pair([&a, &b]), "T-2"), &ForgetOptions::default())
        .unwrap();
    let two = engine
        .forget(&request(pair([&b, &a]), " T-2 "), &ForgetOptions::default())
        .unwrap();
    assert_eq!(
        (told(&one), told(&two)),
        (("erased", 2, false), ("erased", 2, true))
    );
    // Another process sees the same.
    let mut other = Engine::open(&bench.path("model")).unwrap();
    assert_eq!(
        told(&other.forget(&asked, &ForgetOptions::default()).unwrap()),
        ("erased", first.forgotten, true)
    );
    for wrong in ["", " ", "a\nb", &"x".repeat(300)] {
        let error = engine
            .forget(&request(person("p2"), wrong), &ForgetOptions::default())
            .unwrap_err();
        assert_eq!(error.kind(), Usage);
    }
    sound(&engine);
}

#[test]
fn requests_that_ask_for_different_things_are_not_applied_as_one() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let all = lines(3);
    let plain = |at: usize| ForgetRequest::new(ids(&[&all[at].id]));
    // Rounds are for the head of a network, which this model has not.
    let rounds = ForgetRequest {
        method: "projection_residual:rounds=2".parse().unwrap(),
        ..plain(1)
    };
    let answers = engine.forget(&[plain(0), rounds, plain(2)], &ForgetOptions::default());
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), Usage);
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(engine.summary().unwrap().rows, 38);
}

#[test]
fn outcomes_other_than_erased() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let all = lines(40);
    // Without a name a request for nobody is a slip of the hand, and nothing is recorded.
    assert_eq!(
        engine
            .forget(
                &by_method(&person("nobody"), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(receipts(&engine).len(), 1);
    let asked = request(person("nobody"), "T-3");
    assert_eq!(
        told(&engine.forget(&asked, &ForgetOptions::default()).unwrap()),
        ("not_found", 0, false)
    );
    assert_eq!(
        told(&engine.forget(&asked, &ForgetOptions::default()).unwrap()),
        ("not_found", 0, true)
    );
    let some = RowSelection::Ids(vec![all[1].id.clone(), "ghost".into()]);
    assert_eq!(
        engine
            .forget(&request(some.clone(), "T-4"), &ForgetOptions::default())
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
    let partial = ForgetRequest {
        allow_missing: true,
        ..request(some, "T-4")
    };
    let report = engine.forget(&partial, &ForgetOptions::default()).unwrap();
    assert_eq!((told(&report), report.missing), (("partial", 1, false), 1));
    let ghosts = ForgetRequest {
        allow_missing: true,
        ..ForgetRequest::new(ids(&["ghost"]))
    };
    assert_eq!(
        engine
            .forget(&ghosts, &ForgetOptions::default())
            .unwrap()
            .outcome,
        RequestOutcome::NotFound
    );
    // Everybody: the mathematics refuses, and a named request has that in writing.
    let left: Vec<String> = all
        .iter()
        .filter(|l| l.id != all[1].id)
        .map(|l| l.id.clone())
        .collect();
    assert!(
        engine
            .forget(
                &by_method(&RowSelection::Ids(left.clone()), &Method::default()),
                &ForgetOptions::default()
            )
            .is_err()
    );
    let refused = engine
        .forget(
            &request(RowSelection::Ids(left), "T-5"),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(told(&refused), ("refused", 0, false));
    assert!(refused.reason.unwrap().contains("would leave none"));
    let outcomes: Vec<RequestOutcome> = receipts(&engine)
        .iter()
        .map(|receipt| receipt.outcome)
        .collect();
    use RequestOutcome::*;
    assert_eq!(outcomes, [Done, NotFound, Partial, NotFound, Refused]);
    sound(&engine);
    assert_eq!(engine.summary().unwrap().rows, 39);
}

#[test]
fn requests_that_wait_together_are_one_change_with_a_receipt_each() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let mut alone = bench.fit("alone", &sparse(&table(&lines(40))));
    let all = lines(40);
    let one = |at: usize, id: &str| request(ids(&[&all[at].id]), id);
    let asked = [
        one(0, "a"),
        request(person("nobody"), "b"),
        one(1, "c"),
        one(0, "a"),
        one(2, "a"),
        ForgetRequest::new(ids(&["ghost"])),
        one(1, "d"),
    ];
    let answers = engine.forget(&asked, &ForgetOptions::default());
    let outcomes: Vec<Option<(&str, usize, bool)>> = answers
        .iter()
        .map(|answer| answer.as_ref().ok().map(told))
        .collect();
    assert_eq!(
        outcomes[..4],
        [
            Some(("erased", 1, false)),
            Some(("not_found", 0, false)),
            Some(("erased", 1, false)),
            Some(("erased", 1, true)),
        ]
    );
    // A request of a used name for another row, a row that is not there, and one that went in the
    // same breath.
    assert_eq!(outcomes[4..], [None, None, None]);
    let log = receipts(&engine);
    assert_eq!(log.len(), 4);
    assert_eq!(log[1].training_set, log[2].training_set);
    assert_eq!(engine.summary().unwrap().generation, 1);
    sound(&engine);
    for at in [0, 1] {
        alone
            .forget(
                &by_method(&ids(&[&all[at].id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
    }
    for (name, values) in named(&alone) {
        for (x, y) in values.iter().zip(&named(&engine)[&name]) {
            assert!(
                (x - y).abs() < 1e-9 * (1.0 + y.abs()),
                "{name}: {x} and {y}"
            );
        }
    }
    // One that would take everything does not stand in the way of the others.
    let rest: Vec<String> = all[2..].iter().map(|line| line.id.clone()).collect();
    let answers = engine.forget(
        &[request(RowSelection::Ids(rest), "e"), one(3, "f")],
        &ForgetOptions::default(),
    );
    assert_eq!(told(answers[0].as_ref().unwrap()), ("refused", 0, false));
    assert_eq!(told(answers[1].as_ref().unwrap()), ("erased", 1, false));
    sound(&engine);
}

fn batch(minimum: u64) -> PolicyChange {
    PolicyChange {
        minimum_batch: Some(minimum),
        expose_forgotten: true,
        ..PolicyChange::default()
    }
}

fn deviation(deviation: f64) -> Option<ExportNoise> {
    Some(ExportNoise::Deviation { deviation })
}

#[test]
fn a_file_that_cannot_be_changed_is_tried_once_for_all() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let all = lines(40);
    let named = |at: usize, id: &str| request(ids(&[&all[at].id]), id);
    // A request with an impossible name does not stand in the way of the others.
    let answers = engine.forget(
        &[named(0, "a"), named(1, "b\u{7}"), named(2, "c")],
        &ForgetOptions::default(),
    );
    let kinds: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().err().map(|error| error.kind()))
        .collect();
    assert_eq!(kinds, [None, Some(Usage), None]);
    // Somebody else holds the file: with a patience of 30 ms, a hundred tries would take three
    // seconds.
    let holder = rusqlite::Connection::open(bench.path("model")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    engine
        .set_patience(std::time::Duration::from_millis(30))
        .unwrap();
    let started = std::time::Instant::now();
    let many: Vec<ForgetRequest> = (0..100)
        .map(|at| named(3 + at % 30, &format!("t{at}")))
        .collect();
    let answers = engine.forget(&many, &ForgetOptions::default());
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(efface_engine::Error::Locked { .. })))
    );
    assert!(started.elapsed().as_secs_f64() < 2.0);
    drop(holder);
    let key = std::fs::read(bench.path("model.key")).unwrap();
    std::fs::remove_file(bench.path("model.key")).unwrap();
    let answers = engine.forget(&many, &ForgetOptions::default());
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(efface_engine::Error::Key { .. })))
    );
    std::fs::write(bench.path("model.key"), key).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(
        bench.path("model.key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    assert!(
        engine
            .forget(&many[..2], &ForgetOptions::default())
            .iter()
            .all(Result::is_ok)
    );
    sound(&engine);
}

#[test]
fn an_audit_is_names_and_numbers() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let result = AuditEntry {
        test: "feature_injection".into(),
        passed: Some(true),
        value: Some(0.0),
        threshold: Some(1e-9),
        trials: Some(20),
    };
    let logged = engine.record_audit(std::slice::from_ref(&result)).unwrap();
    let last = receipts(&engine).pop().unwrap();
    assert_eq!(
        (last.kind, last.sequence, &last.audit[..]),
        (RequestKind::Audit, logged.sequence, &[result.clone()][..])
    );
    for test in ["", "ann smith", "a\nb", "é", &"x".repeat(65)] {
        let wrong = engine.record_audit(&[AuditEntry {
            test: test.into(),
            ..result.clone()
        }]);
        assert_eq!(wrong.unwrap_err().kind(), Usage, "{test}");
    }
    assert!(engine.record_audit(&[]).is_err());
    assert!(
        engine
            .record_audit(&[AuditEntry {
                value: Some(f64::NAN),
                ..result
            }])
            .is_err()
    );
    sound(&engine);
}

#[test]
fn an_export_waits_under_a_policy() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    let all = lines(40);
    engine.set_policy(&batch(2)).unwrap();
    engine.export("json", None).unwrap();
    engine
        .forget(
            &by_method(&ids(&[&all[0].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
    let release = receipts(&engine).pop().unwrap().release.unwrap();
    assert_eq!(
        (release.minimum_batch, release.batch, release.warnings.len()),
        (2, 1, 0)
    );
    engine
        .forget(
            &by_method(&ids(&[&all[1].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert!(
        engine
            .export("json", None)
            .unwrap()
            .warning
            .unwrap()
            .contains("2 requests since")
    );
    engine
        .set_policy(&PolicyChange {
            noise: deviation(0.5),
            ..batch(1)
        })
        .unwrap();
    let plain = engine.parameters().unwrap();
    let noisy = engine.export("json", None).unwrap().parameters;
    assert_ne!(plain.vectors, noisy.vectors);
    assert_eq!(
        engine.policy().unwrap().noise,
        ExportNoise::Deviation { deviation: 0.5 }
    );
    let last = &receipts(&engine)[receipts(&engine).len() - 2];
    assert_eq!(
        (last.kind, last.release.as_ref().unwrap().noise),
        (RequestKind::Policy, Some(0.5))
    );
    engine
        .set_policy(&PolicyChange {
            noise: Some(ExportNoise::None),
            ..PolicyChange::default()
        })
        .unwrap();
    assert_eq!(
        engine.parameters().unwrap(),
        engine.export("json", None).unwrap().parameters
    );
    assert!(engine.set_policy(&batch(0)).is_err());
    assert!(
        engine
            .set_policy(&PolicyChange {
                noise: deviation(f64::NAN),
                ..batch(1)
            })
            .is_err()
    );
    sound(&engine);
}

/// Every number of an export.
fn numbers(parameters: &efface_engine::Parameters) -> Vec<f64> {
    let tables = parameters
        .tables
        .iter()
        .flat_map(|(_, lines)| lines.concat());
    tables
        .chain(
            parameters
                .vectors
                .iter()
                .flat_map(|(_, values)| values.clone()),
        )
        .collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

#[test]
fn noise_follows_from_what_it_has_to_hide() {
    let bench = Bench::new();
    let all = lines(60);
    let mut engine = bench.fit("model", &dense(&table(&all)));
    let promise = |sensitivity| PolicyChange {
        noise: Some(ExportNoise::Calibrated {
            epsilon: 1.0,
            delta: 1e-5,
            sensitivity,
        }),
        ..PolicyChange::default()
    };
    // 3.7306… is the σ of Balle and Wang for ε = 1, δ = 1e-5 and a distance of 1.
    const SIGMA: f64 = 3.730631634816464;
    engine.set_policy(&promise(None)).unwrap();
    let first = numbers(&engine.export("json", None).unwrap().parameters);
    assert_eq!(
        first,
        numbers(&engine.parameters().unwrap()),
        "nothing to hide yet"
    );
    let mut path = 0.0;
    for line in &all[..3] {
        let before = numbers(&engine.parameters().unwrap());
        engine
            .forget(
                &by_method(&ids(&[&line.id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        path += distance(&before, &numbers(&engine.parameters().unwrap()));
    }
    let moved = engine.policy().unwrap().moved.unwrap();
    assert!(
        moved >= path && moved < path * (1.0 + 1e-6),
        "{moved} and {path}"
    );
    assert!(path >= distance(&first, &numbers(&engine.parameters().unwrap())));
    let exported = numbers(&engine.export("json", None).unwrap().parameters);
    let release = receipts(&engine).pop().unwrap().release.unwrap();
    let calibration = release.calibration.unwrap();
    assert_eq!((calibration.epsilon, calibration.delta), (1.0, 1e-5));
    assert_eq!(calibration.sensitivity, Some(moved));
    let sigma = release.noise.unwrap();
    assert!((sigma / (SIGMA * moved) - 1.0).abs() < 1e-8);
    let noise = distance(&exported, &numbers(&engine.parameters().unwrap()));
    assert!(noise > 0.0 && noise < 10.0 * sigma * (exported.len() as f64).sqrt());
    // A second copy without noise would show what the first one hid.
    engine.export("json", None).unwrap();
    assert_eq!(
        receipts(&engine).pop().unwrap().release.unwrap().noise,
        Some(sigma)
    );
    // A distance that was given beforehand is kept to, and what moved further is not published.
    engine.set_policy(&promise(Some(moved / 2.0))).unwrap();
    let error = engine.export("json", None).unwrap_err();
    assert!(
        error.kind() == Refused && error.to_string().contains("two copies of one version"),
        "{error}"
    );
    engine
        .forget(
            &by_method(
                &ids(&[&all[10].id, &all[11].id, &all[12].id, &all[13].id]),
                &Method::default(),
            ),
            &ForgetOptions::default(),
        )
        .unwrap();
    let far = engine.policy().unwrap().moved.unwrap();
    engine.set_policy(&promise(Some(far / 2.0))).unwrap();
    let error = engine.export("json", None).unwrap_err();
    assert!(
        error.kind() == Refused && error.to_string().contains("since the last export"),
        "{error}"
    );
    engine.set_policy(&promise(Some(far * 2.0))).unwrap();
    engine.export("json", None).unwrap();
    let release = receipts(&engine).pop().unwrap().release.unwrap();
    assert!((release.noise.unwrap() / (SIGMA * far * 2.0) - 1.0).abs() < 1e-8);
    for (epsilon, delta, sensitivity) in [
        (0.0, 1e-5, None),
        (1.0, 0.0, None),
        (1.0, 0.9, None),
        (f64::NAN, 1e-5, None),
        (1.0, 1e-5, Some(-1.0)),
    ] {
        let noise = Some(ExportNoise::Calibrated {
            epsilon,
            delta,
            sensitivity,
        });
        let wrong = engine.set_policy(&PolicyChange {
            noise,
            ..PolicyChange::default()
        });
        assert_eq!(wrong.unwrap_err().kind(), Usage);
    }
    sound(&engine);
}

#[test]
fn the_receipt_of_an_export_does_not_grow_with_the_exports_before_it() {
    let bench = Bench::new();
    let mut engine = model(&bench);
    for _ in 0..40 {
        engine.export("json", None).unwrap();
    }
    let mut sizes = Vec::new();
    engine
        .receipts(&mut |signed, bytes| {
            if signed.receipt.kind == RequestKind::Export {
                sizes.push(bytes.len());
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(sizes.len(), 40);
    assert!(sizes[39] < sizes[0] + 200, "{sizes:?}");
}
