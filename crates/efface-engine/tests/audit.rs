//! Audits of models in files: what they find where the truth is known, and that they leave the file
//! alone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use common::{Bench, by_method, classes, csv, dense, ids, lines, sparse, table};
use efface::eval::Task;
use efface::{KMeans, Logistic, Method, MultinomialNb, Recipe, Ridge, Softmax};
use efface_engine::{
    AuditReport, AuditRequest, AuditRows, Engine, Error, ErrorKind, ForgetOptions, RowSelection,
    Sharding, Silent,
};

/// A quick audit: few oracles.
fn quick(rows: AuditRows, methods: &[&str]) -> AuditRequest {
    let methods = methods.iter().map(|name| name.parse().unwrap()).collect();
    AuditRequest {
        methods,
        oracles: 16,
        ..AuditRequest::new(rows)
    }
}

fn subject(value: &str) -> AuditRows {
    AuditRows::Present(RowSelection::Subject {
        column: "who".into(),
        value: value.into(),
    })
}

fn audit(engine: &Engine, request: &AuditRequest) -> AuditReport {
    engine.audit(request, &Silent).unwrap()
}

#[test]
fn an_audit_compares_methods_with_retraining_and_only_reads() {
    let bench = Bench::new();
    for (name, request) in [
        ("dense", dense(&table(&lines(90)))),
        ("sparse", sparse(&table(&lines(90)))),
    ] {
        let engine = bench.fit(name, &request);
        let bytes = std::fs::read(bench.path(name)).unwrap();
        let report = audit(
            &engine,
            &quick(subject("p3"), &["exact", "influence", "retrain", "exact"]),
        );
        assert_eq!(
            std::fs::read(bench.path(name)).unwrap(),
            bytes,
            "the file is only read"
        );
        assert_eq!(
            (report.rows, report.forgotten, report.task),
            (90, 10, Task::Regression)
        );
        let names: Vec<&str> = report
            .states
            .iter()
            .map(|state| state.state.as_str())
            .collect();
        assert_eq!(
            names,
            ["before", "retrain", "exact", "influence"],
            "each once, and retraining always"
        );
        let share = |state: &str| {
            report
                .state(state)
                .unwrap()
                .distance
                .unwrap()
                .fraction
                .unwrap()
        };
        assert_eq!(share("before"), 1.0);
        assert!(
            share("exact") < 1e-8 && share("influence") > 1e-4,
            "{}",
            share("exact")
        );
        let injection = report.injection.as_ref().unwrap();
        assert_eq!((injection.retrained, injection.ways[0].after), (0.0, 0.0));
        let membership = report.membership.as_ref().unwrap();
        assert_eq!((membership.oracles, membership.forgotten), (16, 10));
        let exact = membership.of("exact").unwrap();
        let truth = membership.of("retrain").unwrap();
        assert!((exact.forgotten.auc - truth.forgotten.auc).abs() < 0.01);
        let rmse = |state: &str| report.state(state).unwrap().retained.rmse.unwrap();
        assert!((rmse("exact") - rmse("retrain")).abs() < 1e-9);
        assert!(report.not_claimed.len() >= 4);
    }
}

#[test]
fn twins_come_first_and_can_be_taken_along() {
    let mut all = lines(60);
    let twin = all[5].cells.replacen(&all[5].id.clone(), "twin", 1);
    all.push(common::Line {
        id: "twin".into(),
        cells: twin,
    });
    let bench = Bench::new();
    let engine = bench.fit("model", &dense(&table(&all)));
    let mut request = quick(AuditRows::Present(ids(&[&all[5].id, &all[6].id])), &[]);
    request.oracles = 0;
    let report = audit(&engine, &request);
    assert_eq!(
        (report.twins.surviving, report.twins.rows_with_twins),
        (1, 2)
    );
    assert_eq!(report.twins.ids, ["twin"]);
    assert!(
        report.membership.is_none() && report.left_out.iter().any(|line| line.contains("oracles"))
    );
    request.with_twins = true;
    let report = audit(&engine, &request);
    assert_eq!(
        (
            report.twins.surviving,
            report.twins.taken_along,
            report.forgotten
        ),
        (0, 1, 3)
    );
    assert_eq!(report.results()[0].passed, Some(true));
}

#[test]
fn rows_that_have_gone_are_measured_on_the_model_as_it_is() {
    let all = lines(90);
    let bench = Bench::new();
    let mut engine = bench.fit("model", &sparse(&table(&all)));
    let gone = || AuditRows::Gone(csv(&table(&all[..6])).into());
    let error = engine.audit(&quick(gone(), &[]), &Silent).unwrap_err();
    assert!(
        matches!(&error, Error::StillThere { id, line: 2 } if *id == all[0].id),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::Data);
    let names: Vec<&str> = all[..6].iter().map(|line| line.id.as_str()).collect();
    engine
        .forget(
            &by_method(&ids(&names), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let report = audit(&engine, &quick(gone(), &["exact"]));
    assert!(report.gone_before && report.rows == 90 && report.forgotten == 6);
    let states: Vec<&str> = report
        .states
        .iter()
        .map(|state| state.state.as_str())
        .collect();
    assert_eq!(states, ["before", "retrain", "model"]);
    assert!(
        report
            .state("model")
            .unwrap()
            .distance
            .unwrap()
            .fraction
            .unwrap()
            < 1e-8
    );
    assert!(report.membership.unwrap().of("exact").is_some());
}

#[test]
fn every_family_can_be_audited() {
    let bench = Bench::new();
    let all = table(&lines(150));
    let held_out = table(&lines(200)[150..]);
    for (choice, exact) in [
        (Recipe::new(Softmax::new(1.0)), "warm_start"),
        (Recipe::new(MultinomialNb::default()), "summation"),
        (Recipe::new(Ridge::default()), "exact"),
    ] {
        let mut request = classes(&all);
        request.model = choice;
        let engine = bench.fit("model", &request);
        let mut asked = quick(AuditRows::Sample(8), &[exact, "auto"]);
        asked.held_out = Some(csv(&held_out).into());
        let report = audit(&engine, &asked);
        assert_eq!((report.task, report.forgotten), (Task::Classes, 8));
        let state = report.state(exact).unwrap();
        let far = state.distance.unwrap();
        assert!(
            far.l2.unwrap() <= 1e-5 * far.norm.unwrap() && far.agreement == Some(1.0),
            "{exact}: {far:?}"
        );
        assert_eq!(state.relearning.is_none(), exact == "summation");
        assert_eq!(state.held_out.unwrap().rows, 50);
        assert_eq!(state.population.as_ref().unwrap().others, 50);
        assert_eq!(report.injection.is_none(), exact == "summation");
        assert_eq!(
            report
                .state("auto")
                .unwrap()
                .evidence
                .as_ref()
                .unwrap()
                .forgotten,
            8
        );
    }
    let mut two = classes(&all);
    (two.model, two.positive) = (Logistic::new(1.0).into(), vec!["4".into(), "5".into()]);
    let report = audit(
        &bench.fit("model", &two),
        &quick(AuditRows::Sample(8), &["newton"]),
    );
    assert!(
        report
            .state("newton")
            .unwrap()
            .distance
            .unwrap()
            .fraction
            .unwrap()
            < 0.5
    );

    let state = report.state("newton").unwrap();
    assert!(
        (0.5..1.5).contains(&state.relearning.unwrap().ratio.unwrap()),
        "{:?}",
        state.relearning
    );
    assert_eq!(
        report.state("before").unwrap().relearning.unwrap().ratio,
        Some(0.0)
    );
}

/// Both forget exactly, so that every number is that of retraining.
#[test]
fn clusters_and_shards_can_be_audited() {
    let bench = Bench::new();
    let all = table(&lines(150));
    let held_out = table(&lines(200)[150..]);
    let mut clusters = dense(&all);
    clusters.targets = Vec::new();
    clusters.subject = None;
    clusters.ignore = ["words", "stars", "who", "price", "colour"]
        .map(String::from)
        .into();
    clusters.model = KMeans::quantised(3, 1.0).into();
    let mut voting = classes(&all);
    voting.model = Softmax::new(1.0).into();
    voting.sharding = Some(Sharding {
        shards: 3,
        slices: 1,
        seed: 5,
        aggregation: None,
        threads: 2,
    });
    let mut averaged = dense(&all);
    averaged.sharding = voting.sharding;
    for (request, method, task) in [
        (clusters, "q_kmeans", Task::Clusters),
        (voting, "sisa", Task::Classes),
        (averaged, "sisa", Task::Regression),
    ] {
        let engine = bench.fit("model", &request);
        let mut asked = quick(AuditRows::Sample(6), &[method]);
        asked.held_out = Some(csv(&held_out).into());
        let report = audit(&engine, &asked);
        assert_eq!(report.task, task);
        let state = report.state(method).unwrap();
        let far = state.distance.unwrap();
        assert_eq!(far.l2, (task == Task::Clusters).then_some(0.0));
        assert_eq!(
            far.largest_prediction_change, 0.0,
            "{method} is retraining to the bit"
        );
        assert_eq!(state.held_out.unwrap().rows, 50);
        assert!(state.relearning.is_none() && report.injection.is_none());
        for what in ["relearning time", "feature injection"] {
            assert!(
                report.left_out.iter().any(|line| line.starts_with(what)),
                "{:?}",
                report.left_out
            );
        }
        let membership = report.membership.as_ref().unwrap();
        let ours = membership.of(method).unwrap();
        let truth = membership.of("retrain").unwrap();
        assert_eq!(ours.forgotten.auc, truth.forgotten.auc);
        assert_eq!(ours.paired_klom.forgotten.worst, 0.0);
        assert_eq!(ours.unpaired_klom, truth.unpaired_klom);
    }
}

#[test]
fn a_seed_fixes_the_figures_and_they_go_on_record() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &dense(&table(&lines(80))));
    let run = |engine: &Engine, seed: u64, threads: usize| {
        let request = AuditRequest {
            seed,
            threads,
            ..quick(AuditRows::Sample(6), &["influence"])
        };
        audit(engine, &request)
    };
    let one = run(&engine, 1, 1);
    let two = run(&engine, 1, 2);
    assert_eq!(one.results(), two.results());
    assert_ne!(one.results(), run(&engine, 2, 1).results());
    let tests: Vec<String> = one
        .results()
        .into_iter()
        .map(|result| result.test)
        .collect();
    assert_eq!(
        tests,
        [
            "twins_surviving",
            "l2_distance/influence",
            "relearning_ratio/influence",
            "feature_injection/influence",
            "u_lira_auc/retrain",
            "u_lira_auc/influence"
        ]
    );
    engine.record_audit(&one.results()).unwrap();
    assert!(
        engine
            .verify(None)
            .unwrap()
            .iter()
            .all(|check| check.passed)
    );
}

#[test]
fn what_cannot_be_audited_is_refused_with_a_reason() {
    let unknown = efface_engine::named_method("magic", &[]).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Usage);
    assert!(
        unknown.to_string().contains("no method `magic`"),
        "{unknown}"
    );
    let bench = Bench::new();
    let engine = bench.fit("model", &dense(&table(&lines(40))));
    let told = |request: AuditRequest| {
        let error = engine.audit(&request, &Silent).unwrap_err();
        (error.kind(), error.to_string())
    };
    let sample = AuditRows::Sample;
    for (request, kind, says) in [
        (quick(sample(0), &[]), ErrorKind::Usage, "sample = 0"),
        (quick(sample(40), &[]), ErrorKind::Usage, "sample = 40"),
        (
            quick(sample(30), &[]),
            ErrorKind::Refused,
            "retained rows: 10, and at least 16 are needed",
        ),
        (
            quick(sample(4), &["warm_start"]),
            ErrorKind::Refused,
            "training is a closed form",
        ),
        (
            AuditRequest {
                oracles: 8,
                ..quick(sample(4), &[])
            },
            ErrorKind::Usage,
            "oracles = 8",
        ),
        (
            AuditRequest {
                keep: 1.5,
                ..quick(sample(4), &[])
            },
            ErrorKind::Usage,
            "keep = 1.5",
        ),
        (
            AuditRequest {
                threads: 0,
                ..quick(sample(4), &[])
            },
            ErrorKind::Usage,
            "threads = 0",
        ),
        (quick(subject("nobody"), &[]), ErrorKind::NotFound, "nobody"),
        (
            quick(AuditRows::Present(ids(&[])), &[]),
            ErrorKind::Usage,
            "names no row",
        ),
    ] {
        let (found, message) = told(request);
        assert!(message.contains(says), "{message}");
        assert_eq!(found, kind, "{message}");
    }
}
