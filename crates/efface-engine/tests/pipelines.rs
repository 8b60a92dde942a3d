//! Whole pipelines forget: after rows came and went, features and model are those of a fit on the
//! rows that are there.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/pipeline_list.rs"]
mod pipeline_list;

use common::*;
use efface::features::{ColumnScale, TermWeighting, WordSource};
use efface::models::logistic::Privacy;
use efface::{KMeans, Logistic, Method, NotCovered, Recipe};
use efface_engine::{
    AuditRequest, AuditRows, ClassWeight, Engine, ErrorKind, FitRequest, ForgetOptions,
    PolicyChange, Silent, SuppressionScope,
};
use pipeline_list::*;
use proptest::prelude::*;

const COLUMNS: &str = "id,size,age,colour,words,price,liked,stars\n";

/// Rows with rare words, rare levels and gaps, so that almost every row that leaves takes a name or
/// an extreme with it.
fn lines(count: usize) -> Vec<Line> {
    let mut state = 11_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let line = |at: usize| {
        let size = next(1000) as f64 / 7.0;
        let age = if next(5) == 0 {
            String::new()
        } else {
            next(70).to_string()
        };
        let colour = ["red", "blue", "grey", "rare0", "rare1", "rare2"]
            [next(3 + 3 * u64::from(at.is_multiple_of(5))) as usize];
        let mut words: Vec<String> = (0..4).map(|_| format!("word{}", next(12))).collect();
        words.push(format!("odd{}", next(40)));
        let price = size + next(100) as f64 / 10.0;
        let liked = if next(2) == 0 { "no" } else { "yes" };
        let id = format!("r{at}");
        let stars = 1 + next(3);
        Line {
            cells: format!(
                "{id},{size},{age},{colour},{},{price},{liked},{stars}\n",
                words.join(" ")
            ),
            id,
        }
    };
    (0..count).map(line).collect()
}

fn text(lines: &[&Line]) -> String {
    lines
        .iter()
        .fold(COLUMNS.to_owned(), |text, line| text + &line.cells)
}

fn asked(rows: &[&Line], (_, ask): &Pipeline) -> FitRequest {
    let mut asked = request(&text(rows), "price");
    asked.id = Some("id".into());
    ask(&mut asked);
    if !asked.targets.is_empty() {
        let targets = ["price", "liked", "stars"].map(String::from);
        asked
            .ignore
            .extend(targets.into_iter().filter(|name| *name != asked.targets[0]));
    }
    if !asked.text.is_empty() {
        asked.ignore.clear();
    }
    asked
}

/// No answer depends on rows that are gone, but for what a step leaves that does not promise to be
/// exact.
fn covered(list: &[NotCovered]) -> bool {
    list.iter().all(|what| *what == NotCovered::ApproximateStep)
}

#[track_caller]
fn same(engine: &Engine, rows: &[&Line], pipeline: &Pipeline, tolerance: f64) {
    let bench = Bench::new();
    let fresh = bench.fit("fresh", &asked(rows, pipeline));
    let found = named(engine);
    let wanted = named(&fresh);
    let name = pipeline.0;
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        wanted.keys().collect::<Vec<_>>(),
        "{name}"
    );
    for (parameter, values) in &found {
        for (x, y) in values.iter().zip(&wanted[parameter]) {
            assert!(
                (x - y).abs() <= tolerance * (1.0 + y.abs()),
                "{name}: {parameter}: {x} and {y}"
            );
        }
    }
    let scores = |engine: &Engine| predictions(engine, &text(rows));
    for (a, b) in scores(engine).iter().zip(&scores(&fresh)) {
        assert_eq!(a.label, b.label, "{name}");
        let near = a
            .scores
            .iter()
            .zip(&b.scores)
            .all(|(x, y)| (x - y).abs() <= 10.0 * tolerance * (1.0 + y.abs()));
        assert!(near, "{name}: {:?} and {:?}", a.scores, b.scores);
    }
    let summary = engine.summary().unwrap();
    assert_eq!(
        summary.feature_columns,
        fresh.summary().unwrap().feature_columns,
        "{name}"
    );
    assert!(
        covered(&summary.not_covered),
        "{name}: {:?}",
        summary.not_covered
    );
    let checks = engine.verify_rows(None, true).unwrap();
    assert!(
        checks.iter().all(|check| check.passed),
        "{name}: {checks:?}"
    );
}

/// How far parameters may lie from those of a new fit: classifiers are trained up to their
/// tolerance.
fn tolerance(pipeline: &Pipeline) -> f64 {
    let trained = ["logistic", "softmax", "svm", "Poisson"];
    if trained.iter().any(|name| pipeline.0.starts_with(name)) {
        1e-8
    } else {
        1e-10
    }
}

#[test]
fn a_pipeline_without_rows_is_the_pipeline_of_the_others() {
    let rows = lines(60);
    for pipeline in PIPELINES {
        let bench = Bench::new();
        let all: Vec<&Line> = rows.iter().collect();
        let mut engine = bench.fit("model", &asked(&all, pipeline));
        let mut left = all.clone();
        for gone in [vec!["r7"], vec!["r0", "r55", "r20"], vec!["r33"]] {
            let report = engine
                .forget(
                    &by_method(&ids(&gone), &Method::default()),
                    &ForgetOptions::default(),
                )
                .unwrap();
            // Newton steps on a classifier reach the tolerance, and promise no more.
            let is_classifier = tolerance(pipeline) > 1e-10;
            assert!(
                report.claim == "exact" || is_classifier,
                "{}: {report:?}",
                pipeline.0
            );
            assert!(!report.tolerance_missed, "{}: {report:?}", pipeline.0);
            assert!(
                covered(&report.evidence.not_covered),
                "{}: {report:?}",
                pipeline.0
            );
            let is_exact = report.claim == "exact";
            assert!(
                !is_exact || report.evidence.not_covered.is_empty(),
                "{}: {report:?}",
                pipeline.0
            );
            let kept: Vec<&str> = report
                .evidence
                .kept_beside
                .iter()
                .map(NotCovered::code)
                .collect();
            assert!(
                kept.contains(&"forgotten_ids") && kept.contains(&"storage_blocks"),
                "{kept:?}"
            );
            left.retain(|line| !gone.contains(&line.id.as_str()));
            same(&engine, &left, pipeline, tolerance(pipeline));
        }
    }
}

#[test]
fn rows_that_join_and_change_have_a_say_in_the_features() {
    let rows = lines(60);
    for pipeline in PIPELINES {
        let bench = Bench::new();
        let first: Vec<&Line> = rows[..50].iter().collect();
        let mut engine = bench.fit("model", &asked(&first, pipeline));
        let more: Vec<&Line> = rows[50..].iter().collect();
        engine.learn(csv(&text(&more)), &Silent).unwrap();
        let all: Vec<&Line> = rows.iter().collect();
        same(&engine, &all, pipeline, tolerance(pipeline));
        let mended: Vec<Line> = rows[3..5]
            .iter()
            .map(|line| Line {
                id: line.id.clone(),
                cells: line.cells.replace("word1", "novel"),
            })
            .collect();
        engine
            .amend(csv(&text(&mended.iter().collect::<Vec<_>>())), &Silent)
            .unwrap();
        let after: Vec<&Line> = rows
            .iter()
            .map(|line| mended.iter().find(|new| new.id == line.id).unwrap_or(line))
            .collect();
        same(&engine, &after, pipeline, tolerance(pipeline));
    }
}

#[test]
fn rows_may_wait_to_be_scrubbed_where_the_features_stay() {
    let rows = lines(60);
    for pipeline in &PIPELINES[..5] {
        let bench = Bench::new();
        let all: Vec<&Line> = rows.iter().collect();
        let mut engine = bench.fit("model", &asked(&all, pipeline));
        let policy = PolicyChange {
            settle_after: Some(100),
            settle_within_seconds: Some(3600),
            ..PolicyChange::default()
        };
        engine.set_policy(&policy).unwrap();
        let mut left = all.clone();
        for gone in ["r8", "r9", "r10", "r41"] {
            engine
                .forget(
                    &by_method(&ids(&[gone]), &Method::default()),
                    &ForgetOptions::default(),
                )
                .unwrap();
            left.retain(|line| line.id != gone);
            let mut again = Engine::open(&bench.path("model")).unwrap();
            same(&again, &left, pipeline, 1e-10);
            if gone == "r9" {
                again.settle().unwrap();
                same(&again, &left, pipeline, 1e-10);
            }
            engine = again;
        }
    }
}

#[test]
fn a_method_that_keeps_the_features_says_so_and_the_next_one_follows() {
    let rows = lines(60);
    let pipeline = &PIPELINES[0];
    let bench = Bench::new();
    let all: Vec<&Line> = rows.iter().collect();
    let mut engine = bench.fit("model", &asked(&all, pipeline));
    let influence = Method::named("influence").unwrap();
    let report = engine
        .forget(
            &by_method(&ids(&["r7"]), &influence),
            &ForgetOptions::default(),
        )
        .unwrap();
    let scales = ["age", "size"].map(|column| NotCovered::FeatureScale {
        column: column.into(),
    });
    assert!(
        scales
            .iter()
            .all(|scale| report.evidence.not_covered.contains(scale)),
        "{report:?}"
    );
    assert_eq!(report.claim, "approximate");
    engine
        .forget(
            &by_method(&ids(&["r8"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let left: Vec<&Line> = all
        .into_iter()
        .filter(|line| line.id != "r7" && line.id != "r8")
        .collect();
    same(&engine, &left, pipeline, 1e-10);
}

/// Returns the ids of rows whose departure changes most statistics: those of the least and greatest
/// size.
fn extremes(rows: &[&Line]) -> [String; 2] {
    let size = |line: &&&Line| -> f64 { line.cells.split(',').nth(1).unwrap().parse().unwrap() };
    let order = |a: &&&Line, b: &&&Line| size(a).total_cmp(&size(b));
    [
        rows.iter().min_by(order).unwrap().id.clone(),
        rows.iter().max_by(order).unwrap().id.clone(),
    ]
}

/// The numbers by which columns are scaled and words are weighed, and the names of the features.
fn features_of(engine: &Engine) -> (Vec<String>, Vec<f64>) {
    let parameters = engine.parameters().unwrap();
    let scales = parameters
        .vectors
        .iter()
        .filter(|(name, _)| name.starts_with("feature_"))
        .flat_map(|(_, values)| values.clone())
        .collect();
    (parameters.features, scales)
}

/// Returns true if two models read the same features.
fn read_alike(a: &Engine, b: &Engine) -> bool {
    let (names, scales) = features_of(a);
    let (other_names, other_scales) = features_of(b);
    names == other_names
        && scales
            .iter()
            .zip(&other_scales)
            .all(|(x, y)| (x - y).abs() <= 1e-12 * (1.0 + y.abs()))
}

/// Every pipeline, and every method that does not retrain: the evidence lists what still follows
/// from rows that are gone, later changes do not hide it, and an answer that claims to be exact is
/// that of a fit on the rows that are there.
#[test]
fn a_method_that_does_not_retrain_tells_stale_features_until_they_are_made_anew() {
    let new = Line {
        id: "n1".into(),
        cells: "n1,60.5,30,red,word1 word2 word3 word4 odd1,60,no,1\n".into(),
    };
    let methods: Vec<Method> = ["influence", "newton", "projection_residual", "delta_grad"]
        .into_iter()
        .map(|name| Method::named(name).unwrap())
        .collect();
    let rows = lines(40);
    let all: Vec<&Line> = rows.iter().collect();
    let gone = extremes(&all);
    let mut left: Vec<&Line> = all
        .iter()
        .copied()
        .filter(|line| !gone.contains(&line.id))
        .collect();
    let mut tried = 0;
    for pipeline in PIPELINES {
        let name = pipeline.0;
        let bench = Bench::new();
        let fresh = bench.fit("fresh", &asked(&left, pipeline));
        for method in &methods {
            let mut engine = bench.fit("model", &asked(&all, pipeline));
            let who = ids(&[&gone[0], &gone[1]]);
            // Not every method is for every family.
            let Ok(report) = engine.forget(&by_method(&who, method), &ForgetOptions::default())
            else {
                continue;
            };
            tried += 1;
            let name = format!("{name} by {}", method.name());
            let is_told = |list: &[NotCovered]| {
                list.iter()
                    .any(|what| what.reaches_answers() && *what != NotCovered::ApproximateStep)
            };
            assert!(
                read_alike(&engine, &fresh) || is_told(&report.evidence.not_covered),
                "{name}: {report:?}"
            );
            assert_ne!(report.claim, "certified", "{name}");
            // As another process would.
            engine = Engine::open(&bench.path("model")).unwrap();
            let summary = engine.summary().unwrap();
            assert!(
                read_alike(&engine, &fresh) || is_told(&summary.not_covered),
                "{name}: {:?}",
                summary.not_covered
            );
            let report = engine.learn(csv(&text(&[&new])), &Silent).unwrap();
            left.push(&new);
            if report.claim == "exact" && covered(&report.evidence.not_covered) {
                same(&engine, &left, pipeline, tolerance(pipeline));
            }
            let retrained = by_method(&ids(&["n1"]), &Method::Retrain);
            engine
                .forget(&retrained, &ForgetOptions::default())
                .unwrap();
            left.pop();
            same(&engine, &left, pipeline, tolerance(pipeline));
        }
    }
    assert!(tried > 30, "{tried}");
}

/// A certificate of noise speaks of the parameters. It is not claimed for a model whose features
/// still follow from rows that are gone, and retraining makes both anew.
#[test]
fn no_certificate_is_claimed_for_features_that_follow_from_rows_that_are_gone() {
    for scale in [
        ColumnScale::None,
        ColumnScale::Standard,
        ColumnScale::MinMax,
    ] {
        for privacy in [
            Privacy::removal(1.0, 1e-4, 0),
            Privacy::descent(1.0, 1e-4, 0),
        ] {
            let ask = |rows: &[&Line]| {
                let mut asked = request(&text(rows), "liked");
                asked.id = Some("id".into());
                numbers(&mut asked);
                asked.ignore.extend(["price", "stars"].map(String::from));
                asked.steps.scale = scale;
                asked.model = Logistic::new(10.0).privacy(privacy).into();
                asked
            };
            let rows = lines(60);
            let all: Vec<&Line> = rows.iter().collect();
            let [gone, kept] = extremes(&all);
            let bench = Bench::new();
            let mut engine = bench.fit("model", &ask(&all));
            let mut forget = |id: &str, method: Method| {
                let asked = by_method(&ids(&[id]), &method);
                let report = engine.forget(&asked, &ForgetOptions::default()).unwrap();
                let has_scale = report
                    .evidence
                    .not_covered
                    .iter()
                    .any(|what| matches!(what, NotCovered::FeatureScale { .. }));
                (
                    report.claim,
                    has_scale,
                    report.evidence.certificate.is_some(),
                )
            };
            let is_scaled = scale != ColumnScale::None;
            let claim = if is_scaled {
                "approximate"
            } else {
                "certified"
            };
            assert_eq!(
                forget(&gone, Method::default()),
                (claim.to_owned(), is_scaled, !is_scaled),
                "{scale:?}"
            );
            let (_, has_scale, _) = forget(&kept, Method::Retrain);
            assert!(!has_scale, "{scale:?}");
            let left: Vec<&Line> = all
                .iter()
                .copied()
                .filter(|line| line.id != gone && line.id != kept)
                .collect();
            assert!(
                read_alike(&engine, &bench.fit("fresh", &ask(&left))),
                "{scale:?}"
            );
        }
    }
}

/// Returns the largest difference between scores of the same rows.
fn largest_change(a: &Engine, b: &Engine, table: &str) -> f64 {
    let scores = |engine: &Engine| -> Vec<f64> {
        predictions(engine, table)
            .into_iter()
            .flat_map(|row| row.scores)
            .collect()
    };
    let gaps = scores(a)
        .into_iter()
        .zip(scores(b))
        .map(|(x, y)| (x - y).abs());
    gaps.fold(0.0, f64::max)
}

/// An audit retrains features and model: its largest change of a score is that of two fresh fits,
/// whatever the features are, and a method that promises no exactness is held against that too.
#[test]
fn an_audit_compares_with_a_fit_of_features_and_model() {
    let rows = lines(40);
    let all: Vec<&Line> = rows.iter().collect();
    let gone = extremes(&all);
    let left: Vec<&Line> = all
        .iter()
        .copied()
        .filter(|line| !gone.contains(&line.id))
        .collect();
    for pipeline in PIPELINES {
        let name = pipeline.0;
        let bench = Bench::new();
        let mut engine = bench.fit("model", &asked(&all, pipeline));
        let fresh = bench.fit("fresh", &asked(&left, pipeline));
        let influence = Method::named("influence").unwrap();
        let mut request = AuditRequest {
            methods: vec![Method::default(), influence],
            oracles: 0,
            ..AuditRequest::new(AuditRows::Present(ids(&[&gone[0], &gone[1]])))
        };
        let report = match engine.audit(&request, &Silent) {
            Ok(report) => report,
            // Not every method is for every family, or for balanced classes.
            Err(_) => {
                request.methods.pop();
                engine.audit(&request, &Silent).unwrap()
            }
        };
        let told = |state: &str| report.state(state).unwrap().distance.unwrap();
        let near = |found: f64, engine: &Engine| {
            let wanted = largest_change(engine, &fresh, &text(&all));
            assert!(
                (found - wanted).abs() <= 100.0 * tolerance(pipeline) * (1.0 + wanted),
                "{name}: {found} and {wanted}"
            );
        };
        near(told("before").largest_prediction_change, &engine);
        let auto = report
            .states
            .iter()
            .find(|state| !["before", "retrain", "influence"].contains(&state.state.as_str()));
        let auto = auto.unwrap().distance.unwrap().largest_prediction_change;
        assert!(auto <= 1e-6, "{name}: {auto}");
        if request.methods.len() == 2 {
            let forgotten = engine
                .forget(
                    &by_method(&ids(&[&gone[0], &gone[1]]), &influence),
                    &ForgetOptions::default(),
                )
                .unwrap();
            // An audit also sees the weights of names that no prediction reaches any more.
            if forgotten.features_dropped == 0 {
                near(told("influence").largest_prediction_change, &engine);
            }
        }
        // A row that left by a step that kept the features is still seen in them.
        let mut again = engine;
        if request.methods.len() == 1 {
            let who = by_method(&ids(&[&gone[0], &gone[1]]), &Method::default());
            again.forget(&who, &ForgetOptions::default()).unwrap();
        }
        let departed: Vec<&Line> = all
            .iter()
            .copied()
            .filter(|line| gone.contains(&line.id))
            .collect();
        let afterwards = AuditRequest {
            oracles: 0,
            ..AuditRequest::new(AuditRows::Gone(csv(&text(&departed)).into()))
        };
        let report = again.audit(&afterwards, &Silent).unwrap();
        let found = report.state("model").unwrap().distance.unwrap();
        near(found.largest_prediction_change, &again);
    }
}

/// The models of the attacks have features of their own: a scale that follows from a row which is
/// gone is seen in the rows that stay, and a method that makes the features anew leaves nothing.
#[test]
fn oracles_are_fitted_with_their_features() {
    let rows = lines(60);
    let all: Vec<&Line> = rows.iter().collect();
    let far = Line {
        id: "far".into(),
        cells: "far,400,30,red,word1 word2 word3 word4 odd1,60,no,1\n".into(),
    };
    let with: Vec<&Line> = all.iter().copied().chain([&far]).collect();
    for name in [
        "ridge between extremes",
        "logistic between extremes",
        "ridge on weights of words",
        "ridge on principal components of numbers",
        "ridge on standard scores",
    ] {
        let pipeline = PIPELINES
            .iter()
            .find(|pipeline| pipeline.0 == name)
            .unwrap();
        let bench = Bench::new();
        let engine = bench.fit("model", &asked(&with, pipeline));
        let request = AuditRequest {
            methods: vec![Method::default(), Method::named("influence").unwrap()],
            oracles: 16,
            threads: 2,
            ..AuditRequest::new(AuditRows::Present(ids(&["far"])))
        };
        let report = engine.audit(&request, &Silent).unwrap();
        let membership = report.membership.unwrap();
        let worst = |state: &str| membership.of(state).unwrap().paired_klom.retained.worst;
        assert!(worst("auto") < 1e-9, "{name}: {}", worst("auto"));
        assert!(worst("influence") > 1e-3, "{name}: {}", worst("influence"));
    }
}

#[test]
fn features_that_would_all_go_are_kept_and_said() {
    let bench = Bench::new();
    let mut asked = request("id,note,y\na,good,1\nb,x,2\nc,y,3\n", "y");
    asked.id = Some("id".into());
    asked.text = vec!["note".into()];
    let mut engine = bench.fit("model", &asked);
    let before = named(&engine);
    let refused = engine.forget(
        &by_method(&ids(&["a"]), &Method::default()),
        &ForgetOptions::default(),
    );
    let error = refused.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        error
            .to_string()
            .contains("no word of column `note` is left"),
        "{error}"
    );
    assert_eq!(named(&engine), before);
    assert_eq!(engine.summary().unwrap().rows, 3);
}

/// Scales and weights that change for all rows are algebra on the sums: no row that stays is read,
/// and the evidence says so. One column lies so far from 0 that sums of its squares as they are
/// would have lost its spread.
#[test]
fn scales_change_without_reading_the_rows() {
    let rows: Vec<String> = lines(120).iter().enumerate().map(far_away).collect();
    let fitted = |bench: &Bench, name: &str, rows: &[String], ask: fn(&mut FitRequest)| {
        let mut asked = request(&(COLUMNS.to_owned() + &rows.concat()), "price");
        asked.id = Some("id".into());
        asked.ignore = ["age", "liked", "stars"].map(String::from).to_vec();
        ask(&mut asked);
        bench.fit(name, &asked)
    };
    let standard = |request: &mut FitRequest| {
        request.steps.scale = ColumnScale::Standard;
        request.ignore.push("words".into());
    };
    let extremes = |request: &mut FitRequest| {
        request.steps.scale = ColumnScale::MinMax;
        request.ignore.push("words".into());
    };
    let weights = |request: &mut FitRequest| {
        request.text = vec!["words".into()];
        request.ignore.clear();
        request.words = WordSource::Learned(1000);
        request.steps.words.weighting = Some(TermWeighting {
            normalised: false,
            ..TermWeighting::default()
        });
    };
    // The words of a row are always five, so that their columns nearly add up to the constant's:
    // after the first request the bound passes the tolerance, and the rows are read.
    for (ask, name, gone) in [
        (standard as fn(&mut FitRequest), "standard", vec![40, 3, 71]),
        (weights, "weights", vec![40]),
    ] {
        let bench = Bench::new();
        let mut engine = fitted(&bench, "model", &rows, ask);
        let mut left = rows.clone();
        for at in gone {
            let gone = format!("r{at}");
            left.retain(|row| !row.starts_with(&format!("{gone},")));
            let request = by_method(&ids(&[gone.as_str()]), &Method::default());
            let report = engine.forget(&request, &ForgetOptions::default()).unwrap();
            assert_eq!(
                (report.claim.as_str(), report.method.as_str()),
                ("exact", "exact"),
                "{name}"
            );
            assert_eq!(report.evidence.rows_read, 1, "{name}: {report:?}");
            assert!(
                report.evidence.reason.as_ref().unwrap().contains("algebra"),
                "{report:?}"
            );
            assert_close(&engine, &fitted(&bench, "fresh", &left, ask));
        }
        // Retraining means just that.
        let request = by_method(&ids(&["r90"]), &Method::Retrain);
        let report = engine.forget(&request, &ForgetOptions::default()).unwrap();
        let found = (report.method.as_str(), report.evidence.rows_read);
        assert_eq!(found, ("retrain", left.len() - 1), "{name}");
    }
    // Which value is the next extreme, only the rows can tell: all are read for that, and the model
    // is not fitted to them.
    let bench = Bench::new();
    let mut engine = fitted(&bench, "model", &rows, extremes);
    let request = by_method(&ids(&["r50"]), &Method::default());
    let report = engine.forget(&request, &ForgetOptions::default()).unwrap();
    assert_eq!(
        (report.method.as_str(), report.evidence.rows_read),
        ("exact", 120),
        "{report:?}"
    );
    let left: Vec<String> = rows
        .iter()
        .filter(|row| !row.starts_with("r50,"))
        .cloned()
        .collect();
    assert_close(&engine, &fitted(&bench, "fresh", &left, extremes));
}

/// The line with 10⁸ added to its size; that of row 50 is the greatest.
fn far_away((at, line): (usize, &Line)) -> String {
    let mut cells: Vec<String> = line.cells.split(',').map(String::from).collect();
    let size: f64 = cells[1].parse().unwrap();
    cells[1] = format!(
        "{}",
        1e8 + size.round() + if at == 50 { 300.0 } else { 0.0 }
    );
    cells.join(",")
}

/// Balanced weights are n/(k·n_c). They are the same as a column of weights that says so, and are
/// kept no method that leaves them.
#[test]
fn balanced_classes_count_alike() {
    let bench = Bench::new();
    let rows = "id,x,w,y\na,1,0.625,p\nb,2,0.625,p\nc,4,0.625,p\nd,3,2.5,q\ne,7,0.625,p\n";
    let fitted = |name: &str, ask: &dyn Fn(&mut FitRequest)| {
        let mut asked = request(rows, "y");
        asked.id = Some("id".into());
        asked.model = Logistic::default().tolerance(1e-10).into();
        ask(&mut asked);
        bench.fit(name, &asked)
    };
    let weighed = fitted("column", &|request| request.weight = Some("w".into()));
    let mut balanced = fitted("balanced", &|request| {
        request.ignore = vec!["w".into()];
        request.class_weight = Some(ClassWeight::Balanced);
    });
    assert_close(&balanced, &weighed);
    let refused = engine_error(balanced.forget(
        &by_method(&ids(&["a"]), &Method::Influence),
        &ForgetOptions::default(),
    ));
    assert!(refused.contains("balanced weights"), "{refused}");
    let mut asked = request(rows, "x");
    asked.class_weight = Some(ClassWeight::Balanced);
    let wrong = engine_error(efface_engine::fit(
        &asked,
        &bench.path("wrong"),
        false,
        &Silent,
    ));
    assert!(wrong.contains("classes"), "{wrong}");
    let mut asked = request(rows, "y");
    asked.model = Logistic::default().into();
    asked.class_weight = Some(ClassWeight::Listed(vec![("r".into(), 2.0)]));
    let wrong = engine_error(efface_engine::fit(
        &asked,
        &bench.path("wrong"),
        false,
        &Silent,
    ));
    assert!(wrong.contains("there are p, q"), "{wrong}");
}

fn engine_error<T>(result: efface_engine::Result<T>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_column_that_becomes_constant_keeps_its_unit() {
    let bench = Bench::new();
    let mut asked = request("id,x,z,y\na,1,5,1\nb,1,4,2\nc,7,3,4\nd,1,2,2\n", "y");
    asked.id = Some("id".into());
    for scale in [ColumnScale::Standard, ColumnScale::MinMax] {
        asked.steps.scale = scale;
        let mut engine = bench.fit("model", &asked);
        engine
            .forget(
                &by_method(&ids(&["c"]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        let mut fresh = asked.clone();
        fresh.source = csv("id,x,z,y\na,1,5,1\nb,1,4,2\nd,1,2,2\n").into();
        let fresh = bench.fit("fresh", &fresh);
        assert_close(&engine, &fresh);
        // The scales are those of the rows that stay: x is 1 everywhere, and z has another spread.
        let parameters = engine.parameters().unwrap();
        assert_eq!(parameters.vector("feature_shift")[0], 1.0);
        assert_eq!(parameters.vector("feature_scale")[0], 1.0);
        assert!(parameters.vector("feature_scale")[1] > 1.0);
        let scores: Vec<Vec<f64>> = predictions(&engine, "x,z\n1,5\n2,5\n")
            .into_iter()
            .map(|row| row.scores)
            .collect();
        assert!(
            scores.iter().flatten().all(|score| score.is_finite()),
            "{scores:?}"
        );
    }
}

/// The randomness of k-means follows from the numbers of rows, which a new fit without the last
/// rows gives them too.
#[test]
fn clusters_of_scaled_rows_are_those_of_the_others() {
    let bench = Bench::new();
    let rows = lines(40);
    let fitted = |name: &str, rows: &[&Line]| {
        let mut asked = request(&text(rows), "price");
        asked.id = Some("id".into());
        numbers(&mut asked);
        asked.steps.scale = ColumnScale::Standard;
        asked.targets = Vec::new();
        asked
            .ignore
            .extend(["price".into(), "liked".into(), "stars".into()]);
        asked.model = Recipe::from(KMeans::quantised(3, 0.05));
        bench.fit(name, &asked)
    };
    let all: Vec<&Line> = rows.iter().collect();
    let mut engine = fitted("model", &all);
    let report = engine
        .forget(
            &by_method(&ids(&["r38", "r39"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(
        (report.claim.as_str(), report.method.as_str()),
        ("exact", "retrain")
    );
    assert_close(&engine, &fitted("fresh", &all[..38]));
}

/// Where features differ in scale alone, a classifier is trained on from where it stands;
/// retraining begins anew.
#[test]
fn a_classifier_of_scaled_rows_is_trained_on() {
    let rows = lines(60);
    let bench = Bench::new();
    let fitted = |name: &str, rows: &[&Line]| {
        let mut asked = request(&text(rows), "liked");
        asked.id = Some("id".into());
        numbers(&mut asked);
        asked.steps.scale = ColumnScale::Standard;
        asked.ignore.extend(["price".into(), "stars".into()]);
        asked.model = Logistic::default().into();
        bench.fit(name, &asked)
    };
    let all: Vec<&Line> = rows.iter().collect();
    let mut engine = fitted("model", &all);
    for (gone, method, made) in [
        ("r59", Method::default(), "warm_start"),
        ("r58", Method::Retrain, "retrain"),
    ] {
        let report = engine
            .forget(
                &by_method(&ids(&[gone]), &method),
                &ForgetOptions::default(),
            )
            .unwrap();
        assert_eq!(
            (report.claim.as_str(), report.method.as_str()),
            ("exact", made)
        );
        assert_eq!(report.evidence.rows_read, engine.summary().unwrap().rows);
    }
    assert_close(&engine, &fitted("fresh", &all[..58]));
}

/// A row that dwarfed its column leaves parameters far from where the others want them.
#[test]
fn a_classifier_whose_scale_collapses_is_that_of_the_others() {
    let bench = Bench::new();
    let rows = |count: usize| {
        let line = |at: usize| {
            let x = ((at * 7919 % 1000) as f64 / 1000.0 + (at * 104_729 % 1000) as f64 / 1000.0
                - 1.0)
                * 2.0;
            let noise = (at * 31 % 101) as f64 / 101.0 - 0.5;
            let class = if at == 300 || 0.4 * x + noise > 0.0 {
                "p"
            } else {
                "q"
            };
            format!("r{at},{},{class}\n", if at == 300 { 1e5 } else { x })
        };
        (0..count)
            .map(line)
            .fold("id,x,y\n".to_owned(), |text, line| text + &line)
    };
    let fitted = |name: &str, count: usize| {
        let mut asked = request(&rows(count), "y");
        asked.id = Some("id".into());
        asked.steps.scale = ColumnScale::Standard;
        asked.model = Logistic::new(1e-8).into();
        bench.fit(name, &asked)
    };
    let mut engine = fitted("model", 301);
    let report = engine
        .forget(
            &by_method(&ids(&["r300"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert_eq!(report.claim, "exact");
    assert_close(&engine, &fitted("fresh", 300));
}

/// A word that only the forgotten row held has another place when the row returns; the row is known
/// all the same.
#[test]
fn a_row_that_comes_back_under_another_id_is_known_by_its_words() {
    let rows = lines(30);
    let bench = Bench::new();
    let mut all: Vec<&Line> = rows.iter().collect();
    let marked = Line {
        id: "m".into(),
        cells: "m,1,2,red,unheard word1,3,no,1\n".into(),
    };
    all.push(&marked);
    let mut engine = bench.fit("model", &asked(&all, &PIPELINES[2]));
    let policy = PolicyChange {
        suppress: Some(SuppressionScope::Content),
        ..PolicyChange::default()
    };
    engine.set_policy(&policy).unwrap();
    engine
        .forget(
            &by_method(&ids(&["m"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    assert!(!holds(&bench.path("model"), "unheard"));
    let again = COLUMNS.to_owned() + &marked.cells.replace("m,1", "other,1");
    let error = engine.learn(csv(&again), &Silent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_changes_in_any_order_equal_a_fit(
        which in 0..PIPELINES.len(),
        changes in prop::collection::vec((0..3u8, any::<prop::sample::Index>()), 1..7),
    ) {
        let rows = lines(60);
        let pipeline = &PIPELINES[which];
        let bench = Bench::new();
        let mut there: Vec<Line> = lines(40);
        let mut waiting: Vec<Line> = rows.into_iter().skip(40).collect();
        let mut engine = bench.fit("model", &asked(&there.iter().collect::<Vec<_>>(), pipeline));
        for (change, at) in changes {
            match change {
                0 => {
                    let gone = there.remove(at.index(there.len()));
                    let request = by_method(&ids(&[&gone.id]), &Method::default());
                    engine.forget(&request, &ForgetOptions::default()).unwrap();
                }
                1 => {
                    let new = waiting.remove(at.index(waiting.len()));
                    engine.learn(csv(&text(&[&new])), &Silent).unwrap();
                    there.push(new);
                }
                _ => {
                    let row = at.index(there.len());
                    there[row].cells = there[row].cells.replace("word3", "odd99").replace("grey", "green");
                    engine.amend(csv(&text(&[&there[row]])), &Silent).unwrap();
                }
            }
        }
        same(&engine, &there.iter().collect::<Vec<_>>(), pipeline, tolerance(pipeline));
    }
}
