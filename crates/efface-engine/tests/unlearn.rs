//! Networks in model files that are trained further to forget: receipts, what they say, and what is
//! refused.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use common::{Bench, csv, ids, predictions, receipts, sound};
use efface::{NotCovered, Recipe};
use efface_engine::{
    AuditRequest, AuditRows, EncoderChoice, EncoderSettings, Error, ErrorKind, FitRequest,
    ForgetOptions, ForgetRequest, NetworkRequest, Progress, Sharding, Silent, TrainSettings,
    Vectors, named_method,
};
use efface_receipt::ReceiptClaim;

const METHODS: [&str; 3] = ["fine_tune", "neggrad_plus", "scrub"];

fn texts() -> String {
    let mut table = String::from("doc,topic,text\n");
    for i in 0..30 {
        let (topic, own) = [
            ("fish", "seaweed"),
            ("bird", "skylark"),
            ("worm", "topsoil"),
        ][i % 3];
        table.push_str(&format!(
            "d{i},{topic},the {own} word{} {own} name{i}\n",
            i % 5
        ));
    }
    table
}

fn request(text: &str, head: Recipe) -> FitRequest {
    FitRequest {
        targets: vec!["topic".into()],
        text: vec!["text".into()],
        id: Some("doc".into()),
        model: head,
        network: Some(NetworkRequest {
            encoder: EncoderChoice::Lstm {
                settings: EncoderSettings::bilstm(4),
                training: TrainSettings {
                    epochs: 6,
                    batch: 8,
                    learning_rate: 0.02,
                    ..TrainSettings::default()
                },
                vectors: Vectors::Learned { most: 80, width: 4 },
                train_vectors: true,
            },
            max_tokens: Some(8),
            threads: 1,
            checkpoint: None,
        }),
        ..FitRequest::new(csv(text))
    }
}

fn by(method: &str, rows: &[&str]) -> ForgetRequest {
    ForgetRequest {
        method: method.parse().unwrap(),
        ..ForgetRequest::new(ids(rows))
    }
}

#[test]
fn every_method_leaves_a_receipt_that_claims_no_more_than_it_can() {
    let bench = Bench::new();
    let text = texts();
    for (head, name) in [
        (Recipe::new(efface::Ridge::new(0.1)), "ridge"),
        (Recipe::new(efface::Logistic::new(0.1)), "softmax"),
    ] {
        for method in METHODS {
            let file = format!("{name}-{method}.efface");
            let mut engine = bench.fit(&file, &request(&text, head.clone()));
            let before = predictions(&engine, &text);
            let report = engine
                .forget(&by(method, &["d3", "d7"]), &ForgetOptions::default())
                .unwrap();
            assert_eq!(
                (report.method.as_str(), report.outcome.name()),
                (method, "erased")
            );
            let evidence = &report.evidence;
            assert_eq!(evidence.claim(), efface::Claim::Approximate);
            assert!(
                evidence.bound.is_infinite() && evidence.relative_bound.is_infinite(),
                "{evidence:?}"
            );
            assert!(evidence.iterations >= 5 && evidence.rows == 28);
            let left = &evidence.not_covered;
            assert!(left.contains(&NotCovered::TrainedFurther), "{left:?}");
            assert!(!left.contains(&NotCovered::EncoderTraining), "{left:?}");

            let receipt = receipts(&engine).pop().unwrap();
            assert_eq!(receipt.method.as_deref(), Some(method));
            assert!(matches!(receipt.claim, Some(ReceiptClaim::Approximate {})));
            assert_eq!(receipt.bound.unwrap().relative, None);
            let tuning = &receipt.settings["tuning"];
            assert_eq!(tuning["epochs"], 5);
            let rate = tuning["learning_rate"].as_f64().unwrap();
            let share = if method == "fine_tune" { 1.0 } else { 0.25 };
            assert!((rate - 0.02 * share).abs() < 1e-6, "{rate}");
            assert!(
                receipt
                    .not_covered
                    .iter()
                    .any(|what| what.code == "trained_further")
            );

            // Encoder, features and head changed together, and what is stored agrees with itself.
            let after = predictions(&engine, &text);
            assert!(before.iter().zip(&after).any(|(a, b)| a.scores != b.scores));
            sound(&engine);
            let reopened = efface_engine::Engine::open(&bench.path(&file)).unwrap();
            let again = predictions(&reopened, &text);
            assert!(after.iter().zip(&again).all(|(a, b)| a.scores == b.scores));
            // The names of words that the rows alone held are gone from the file.
            let bytes = std::fs::read(bench.path(&file)).unwrap();
            let found = |name: &str| {
                bytes
                    .windows(name.len())
                    .any(|window| window == name.as_bytes())
            };
            assert!(!found("name7") && found("name8"), "{method}");

            // The head goes on forgetting, and no such forget restores the claim.
            let report = engine
                .forget(&by("auto", &["d9"]), &ForgetOptions::default())
                .unwrap();
            assert_eq!(report.evidence.claim(), efface::Claim::Approximate);
            assert!(report.evidence.bound.is_infinite() && report.tolerance_missed);
            for what in [NotCovered::TrainedFurther, NotCovered::EncoderTraining] {
                assert!(report.evidence.not_covered.contains(&what), "{method}");
            }
            let receipt = receipts(&engine).pop().unwrap();
            assert!(matches!(receipt.claim, Some(ReceiptClaim::Approximate {})));
            assert_eq!(receipt.bound.unwrap().relative, None);
            assert!(receipt.head_bound.unwrap().relative.unwrap() < 1e-3);
            let summary = engine.summary().unwrap();
            assert!(summary.bound.is_infinite() && summary.head_bound.is_some());
            // A retraining is the one of the fit.
            let report = engine
                .forget(&by("retrain", &["d10"]), &ForgetOptions::default())
                .unwrap();
            assert!(
                !report
                    .evidence
                    .not_covered
                    .contains(&NotCovered::TrainedFurther)
            );
            assert_eq!(report.evidence.claim(), efface::Claim::Exact);
            assert_eq!(engine.summary().unwrap().head_bound, None);
            sound(&engine);
        }
    }
}

#[test]
fn the_same_file_and_seed_give_the_same_network() {
    let bench = Bench::new();
    let text = texts();
    let fit = request(&text, Recipe::new(efface::Ridge::new(0.1)));
    for method in METHODS {
        let run = |name: &str| {
            let mut engine = bench.fit(name, &fit);
            engine
                .forget(&by(method, &["d3", "d7"]), &ForgetOptions::default())
                .unwrap();
            predictions(&engine, &text)
        };
        let first = run("a.efface");
        let second = run("b.efface");
        assert!(
            first.iter().zip(&second).all(|(a, b)| a.scores == b.scores),
            "{method}"
        );
    }
}

/// Asks to stop at once.
struct Impatient;

impl Progress for Impatient {
    fn is_interrupted(&self) -> bool {
        true
    }
}

#[test]
fn what_is_refused_or_stopped_changes_nothing() {
    let bench = Bench::new();
    let text = texts();
    let mut engine = bench.fit(
        "docs.efface",
        &request(&text, Recipe::new(efface::Ridge::new(0.1))),
    );
    let before = predictions(&engine, &text);
    for method in METHODS {
        let stopped = engine.forget(
            &by(method, &["d3"]),
            &ForgetOptions {
                progress: &Impatient,
                ..ForgetOptions::default()
            },
        );
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        let unknown = engine
            .forget(&by(method, &["d99"]), &ForgetOptions::default())
            .unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
        let none = by(&format!("{method}:epochs=0"), &["d3"]);
        let error = engine.forget(&none, &ForgetOptions::default()).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().contains("at least 1")),
            (ErrorKind::Usage, true),
            "{error}"
        );
        let dry = engine
            .forget(&by(method, &["d3"]), &ForgetOptions::dry_run())
            .unwrap();
        assert!(dry.dry_run && dry.evidence.relative_bound.is_infinite());
    }
    let error = engine
        .forget(
            &by("neggrad_plus:alpha=1.5", &["d3"]),
            &ForgetOptions::default(),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("alpha = 1.5 is out of range; it must be above 0 and below 1"),
        "{error}"
    );
    let error = named_method("retrain", &[("alpha", "0.5".into())]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("alpha has no meaning for retrain"),
        "{error}"
    );
    let error = engine
        .forget(
            &by("scrub:loss_cap=1e-6", &["d3"]),
            &ForgetOptions::default(),
        )
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(
        error.to_string().contains("went too far") && error.hint().is_none(),
        "{error}"
    );
    let after = predictions(&engine, &text);
    assert!(before.iter().zip(&after).all(|(a, b)| a.scores == b.scores));
    assert_eq!(receipts(&engine).len(), 1);
    sound(&engine);

    let sharding = Sharding {
        shards: 2,
        slices: 1,
        seed: 0,
        aggregation: None,
        threads: 1,
    };
    let fit = FitRequest {
        sharding: Some(sharding),
        ..request(&text, Recipe::new(efface::Ridge::new(0.1)))
    };
    let mut shards = bench.fit("shards.efface", &fit);
    let linear = FitRequest {
        network: None,
        classify: true,
        ..fit
    };
    let mut linear = bench.fit(
        "linear.efface",
        &FitRequest {
            sharding: None,
            ..linear
        },
    );
    for method in METHODS {
        for engine in [&mut shards, &mut linear] {
            let error = engine
                .forget(&by(method, &["d3"]), &ForgetOptions::default())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(
                error.to_string().contains("fitted as bilstm or lstm"),
                "{error}"
            );
        }
    }
}

#[test]
fn an_audit_compares_whole_networks() {
    let bench = Bench::new();
    let text = texts();
    let fit = request(&text, Recipe::new(efface::Logistic::new(0.1)));
    let engine = bench.fit("docs.efface", &fit);
    let bytes = std::fs::read(bench.path("docs.efface")).unwrap();
    let methods = ["newton", "scrub", "fine_tune"]
        .map(|name| name.parse().unwrap())
        .to_vec();
    let unseen =
        csv("doc,topic,text\nu1,fish,the seaweed seaweed\nu2,bird,skylark the\nu3,worm,topsoil\n");
    let rows = AuditRows::Present(ids(&["d3", "d7"]));
    let asked = AuditRequest {
        methods,
        oracles: 0,
        held_out: Some(unseen.into()),
        ..AuditRequest::new(rows)
    };
    let report = engine.audit(&asked, &Silent).unwrap();
    let names: Vec<&str> = report
        .states
        .iter()
        .map(|state| state.state.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "before",
            "retrain_head",
            "newton",
            "retrain_network",
            "scrub",
            "fine_tune"
        ]
    );
    for state in &report.states[3..] {
        assert!(state.distance.is_none() && state.seconds.is_some());
        assert_eq!((state.retained.rows, state.forgotten.rows), (28, 2));
        assert_eq!(state.held_out.as_ref().unwrap().rows, 3);
        assert!(state.population.is_some() && state.retained.log_loss.unwrap().is_finite());
    }
    assert!(report.states[4].relearning.is_some() && report.states[3].relearning.is_none());
    assert_eq!(
        report.states[4].evidence.as_ref().unwrap().claim(),
        efface::Claim::Approximate
    );
    assert!(
        report
            .left_out
            .iter()
            .any(|what| what.contains("for retrain_network, scrub, fine_tune")),
        "{:?}",
        report.left_out
    );
    assert_eq!(report.comparison, "retrain_head");
    let recall: Vec<&str> = report.recall().into_iter().map(|(name, _)| name).collect();
    assert_eq!(recall, names);
    let tests: Vec<String> = report.results().into_iter().map(|one| one.test).collect();
    for state in ["before", "retrain_network", "newton", "scrub"] {
        let test = format!("forgotten_accuracy/{state}");
        assert!(tests.contains(&test), "{tests:?}");
    }
    assert!(
        !tests.iter().any(|test| test.ends_with("/retrain")),
        "{tests:?}"
    );
    // A complete network is trained whichever methods are compared, also for rows of a file.
    for rows in [
        AuditRows::Present(ids(&["d3"])),
        AuditRows::Gone(csv("doc,topic,text\nz1,bird,the seaweed seaweed\n").into()),
    ] {
        let asked = AuditRequest {
            oracles: 0,
            ..AuditRequest::new(rows)
        };
        let report = engine.audit(&asked, &Silent).unwrap();
        let anew = report.state("retrain_network").unwrap();
        assert_eq!(anew.forgotten.rows, 1);
        assert!(report.state("retrain").is_none() && anew.forgotten.accuracy.is_some());
    }
    assert_eq!(
        std::fs::read(bench.path("docs.efface")).unwrap(),
        bytes,
        "the file is only read"
    );
    let linear = FitRequest {
        network: None,
        model: efface::Ridge::default().into(),
        classify: true,
        ..fit
    };
    let engine = bench.fit("linear.efface", &linear);
    let error = engine
        .audit(
            &AuditRequest {
                held_out: None,
                ..asked
            },
            &Silent,
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("fitted as bilstm or lstm"),
        "{error}"
    );
}
