//! Every family of models makes the whole way: fit, open again, predict, forget, learn back, be
//! damaged.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::methods::Auto;
use efface::models::logistic::Privacy;
use efface::{Aggregation, GaussianNb, KMeans, Logistic, Method, MultinomialNb, Recipe, Softmax};
use efface_engine::ErrorKind::{BadModel, Data, Refused, Usage};
use efface_engine::{
    Engine, FitRequest, ForgetOptions, RowSelection, Sharding, Silent, fit, named_method,
};
use efface_io::Source;

/// A family on the table of `common`: what to fit, and whether a file of fewer rows gives the same
/// model.
struct Case {
    name: &'static str,
    request: fn(&str) -> FitRequest,
    claim: &'static str,
    /// k-means and shards go by the numbers of rows, which another file would give out anew.
    by_number: bool,
    /// How near exact is, in parameters.
    within: f64,
}

fn with(mut request: FitRequest, model: impl Into<Recipe>) -> FitRequest {
    request.model = model.into();
    request
}

fn words(text: &str) -> FitRequest {
    let mut request = classes(text);
    (request.subject, request.classify) = (Some("who".into()), false);
    request
}

fn numbers(text: &str) -> FitRequest {
    let mut request = dense(text);
    (request.targets, request.ignore) =
        (vec!["stars".into()], vec!["words".into(), "price".into()]);
    request
}

fn points(text: &str) -> FitRequest {
    let mut request = dense(text);
    request.targets.clear();
    request.ignore.push("price".into());
    request
}

fn sharded(mut request: FitRequest, shards: usize, slices: usize) -> FitRequest {
    request.sharding = Some(Sharding {
        shards,
        slices,
        seed: 5,
        aggregation: None,
        threads: 2,
    });
    request
}

/// Two classes of many.
fn two(mut request: FitRequest) -> FitRequest {
    request.positive = vec!["4".into(), "5".into()];
    request
}

const fn case(
    name: &'static str,
    request: fn(&str) -> FitRequest,
    claim: &'static str,
    by_number: bool,
    within: f64,
) -> Case {
    Case {
        name,
        request,
        claim,
        by_number,
        within,
    }
}

const CASES: [Case; 11] = [
    case(
        "multinomial",
        |text| words(text).naive_bayes(),
        "exact",
        false,
        1e-12,
    ),
    case(
        "gaussian",
        |text| numbers(text).naive_bayes(),
        "exact",
        false,
        1e-9,
    ),
    case(
        "quantised",
        |text| with(points(text), KMeans::quantised(3, 5.0).seed(4)),
        "exact",
        true,
        0.0,
    ),
    case(
        "divided",
        |text| with(points(text), KMeans::divided(3, 1, 4).seed(4)),
        "exact",
        true,
        0.0,
    ),
    case(
        "logistic",
        |text| with(two(numbers(text)), Logistic::new(0.5).tolerance(1e-5)),
        "approximate",
        false,
        1e-5,
    ),
    case(
        "softmax",
        |text| with(words(text), Softmax::new(0.5).tolerance(1e-5)),
        "approximate",
        false,
        1e-5,
    ),
    case(
        "certified",
        |text| {
            with(
                two(words(text)),
                Logistic::new(10.0).privacy(Privacy::removal(1.0, 1e-4, 0)),
            )
        },
        "certified",
        false,
        f64::INFINITY,
    ),
    case(
        "descent",
        |text| {
            with(
                two(words(text)),
                Logistic::new(10.0).privacy(Privacy::descent(1.0, 1e-4, 0)),
            )
        },
        "certified",
        false,
        f64::INFINITY,
    ),
    case(
        "sisa of ridge",
        |text| {
            sharded(
                FitRequest {
                    classify: true,
                    ..words(text)
                },
                3,
                1,
            )
        },
        "exact",
        true,
        0.0,
    ),
    case(
        "sisa of softmax",
        |text| sharded(with(words(text), Softmax::new(0.5)), 2, 3),
        "exact",
        true,
        0.0,
    ),
    case(
        "sisa of naive Bayes",
        |text| sharded(two(words(text)).naive_bayes(), 3, 2),
        "exact",
        true,
        0.0,
    ),
];

#[track_caller]
fn near(case: &Case, a: &Engine, b: &Engine) {
    if case.name.starts_with("sisa") {
        let text = table(&lines(60));
        assert_eq!(scores(a, &text), scores(b, &text), "{}", case.name);
        assert_eq!(a.parameters().unwrap_err().kind(), Refused);
        return;
    }
    let a = named(a);
    let b = named(b);
    assert_eq!(
        a.keys().collect::<Vec<_>>(),
        b.keys().collect::<Vec<_>>(),
        "{}",
        case.name
    );
    for (name, values) in &a {
        for (x, y) in values.iter().zip(&b[name]) {
            assert!(
                (x - y).abs() <= case.within * (1.0 + y.abs()),
                "{}, {name}: {x} and {y}",
                case.name
            );
        }
    }
}

fn scores(engine: &Engine, text: &str) -> Vec<(Vec<f64>, Option<String>)> {
    predictions(engine, text)
        .into_iter()
        .map(|p| (p.scores, p.label))
        .collect()
}

#[test]
fn there_and_back() {
    for case in &CASES {
        let bench = Bench::new();
        let lines = lines(60);
        let text = table(&lines);
        let mut engine = bench.fit("model", &(case.request)(&text));
        let before = scores(&engine, &text);
        assert!(
            before
                .iter()
                .all(|(scores, label)| label.is_some() && scores.iter().all(|s| s.is_finite()))
        );
        assert_eq!(
            scores(
                &Engine::open_read_only(&bench.path("model")).unwrap(),
                &text
            ),
            before,
            "{}",
            case.name
        );
        assert_eq!(engine.summary().unwrap().outputs.len(), before[0].0.len());

        std::fs::copy(bench.path("model"), bench.path("copy")).unwrap();
        lend_key(&bench, "model", "copy");
        let gone: Vec<&str> = [3, 17, 59]
            .iter()
            .map(|at| lines[*at].id.as_str())
            .collect();
        let report = engine
            .forget(
                &by_method(&ids(&gone), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        assert_eq!(
            (report.forgotten, report.rows, report.claim.as_str()),
            (3, 57, case.claim),
            "{}",
            case.name
        );
        assert!(report.evidence.reason.is_some(), "{}", case.name);
        match case.claim {
            "certified" => {
                let certificate = report.evidence.certificate.unwrap();
                assert!(certificate.used <= certificate.budget, "{certificate:?}");
                assert_eq!(engine.summary().unwrap().certificate.unwrap(), certificate);
            }
            _ => {
                let tolerance = report.evidence.tolerance.unwrap_or(1e-6);
                assert!(
                    report.evidence.relative_bound <= tolerance.min(1e-4),
                    "{}",
                    case.name
                );
            }
        }
        let checks = engine.verify(None).unwrap();
        assert!(
            checks.iter().all(|check| check.passed),
            "{}: {checks:?}",
            case.name
        );
        let mut retrained = Engine::open(&bench.path("copy")).unwrap();
        assert_eq!(
            retrained
                .forget(
                    &by_method(&ids(&gone), &"retrain".parse().unwrap()),
                    &ForgetOptions::default()
                )
                .unwrap()
                .method,
            "retrain"
        );
        near(case, &engine, &retrained);
        let kept = |at: &usize| ![3, 17, 59].contains(at);
        if !case.by_number {
            let left = (0..60).filter(kept).map(|at| &lines[at]);
            near(
                case,
                &engine,
                &bench.fit("fresh", &(case.request)(&table(left))),
            );
        }

        // Equal content under new ids: the model of all rows, but for families that go by numbers.
        let back: Vec<Line> = [3, 17, 59]
            .iter()
            .map(|at| Line {
                id: String::new(),
                cells: lines[*at].cells.replacen('r', "n", 1),
            })
            .collect();
        let report = engine.learn(csv(&table(&back)), &Silent).unwrap();
        assert_eq!((report.learned, report.rows), (3, 60), "{}", case.name);
        if !case.by_number {
            let whole = bench.fit("whole", &(case.request)(&text));
            near(case, &engine, &whole);
        }
        let again = Engine::open(&bench.path("model")).unwrap();
        assert_eq!(
            scores(&again, &text),
            scores(&engine, &text),
            "{}",
            case.name
        );
    }
}

/// A corrected row lies elsewhere in the file; it must still be found, by number too.
#[test]
fn amended_rows_can_be_forgotten() {
    for case in &CASES {
        let bench = Bench::new();
        let lines = lines(40);
        let mut engine = bench.fit("model", &(case.request)(&table(&lines)));
        let fixed = Line {
            id: lines[5].id.clone(),
            cells: lines[9].cells.replacen(&lines[9].id, &lines[5].id, 1),
        };
        let report = engine.amend(csv(&table(&[fixed])), &Silent).unwrap();
        assert_eq!(
            (report.forgotten, report.learned, report.rows),
            (1, 1, 40),
            "{}",
            case.name
        );
        std::fs::copy(bench.path("model"), bench.path("copy")).unwrap();
        lend_key(&bench, "model", "copy");
        engine
            .forget(
                &by_method(&ids(&[&lines[5].id, &lines[7].id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        let mut retrained = Engine::open(&bench.path("copy")).unwrap();
        retrained
            .forget(
                &by_method(
                    &ids(&[&lines[5].id, &lines[7].id]),
                    &"retrain".parse().unwrap(),
                ),
                &ForgetOptions::default(),
            )
            .unwrap();
        near(case, &engine, &retrained);
    }
}

#[test]
fn nothing_of_a_forgotten_row_is_left_in_the_file() {
    for case in &CASES {
        let bench = Bench::new();
        let mut lines = lines(40);
        let id = "marker0001id".to_string();
        // A number that no other row has, to be looked for as it would be stored.
        let cells =
            format!("{id},marker0001who,61.81234567890123,1999,red,marker0001word tall,10,3\n");
        lines.push(Line { id, cells });
        let mut engine = bench.fit("model", &(case.request)(&table(&lines)));
        let path = bench.path("model");
        assert!(holds(&path, "marker0001"));
        let who = RowSelection::Subject {
            column: "who".into(),
            value: "marker0001who".into(),
        };
        engine
            .forget(
                &by_method(&who, &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        assert!(!holds(&path, "marker0001"), "{}", case.name);
        let bytes = std::fs::read(&path).unwrap();
        for number in [
            61.81234567890123_f64.to_le_bytes(),
            61.81234567890123_f64.to_be_bytes(),
        ] {
            assert!(
                !bytes.windows(8).any(|window| window == number),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn damage_is_noticed() {
    for case in &CASES {
        let bench = Bench::new();
        drop(bench.fit("model", &(case.request)(&table(&lines(30)))));
        let whole = std::fs::read(bench.path("model")).unwrap();
        let path = bench.path("flipped");
        lend_key(&bench, "model", "flipped");
        for at in (0..whole.len()).step_by(619) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            std::fs::write(&path, &bytes).unwrap();
            let _ = std::fs::remove_file(bench.path("flipped-journal"));
            let outcome = Engine::open(&path).and_then(|mut engine| {
                engine.summary()?;
                if !case.name.starts_with("sisa") {
                    engine.parameters()?;
                }
                engine.predict(csv("words,size,age,colour\ntall,4,1990,red\n"), &mut |_| {
                    Ok(())
                })?;
                engine.forget(
                    &by_method(&ids(&[&lines(2)[1].id]), &Method::default()),
                    &ForgetOptions::default(),
                )
            });
            if let Err(error) = outcome {
                assert_eq!(error.kind(), BadModel, "{}, byte {at}: {error}", case.name);
            }
        }
    }
}

/// Arrays that match their checksum and still make no sense: somebody wrote them.
#[test]
fn a_forged_model_is_refused() {
    for case in &CASES {
        let bench = Bench::new();
        drop(bench.fit("model", &(case.request)(&table(&lines(30)))));
        let path = bench.path("model");
        let head = head_array(&path);
        let whole = part(&path, head);
        let mut forgeries = vec![
            vec![],
            vec![0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x81; 9000],
        ];
        forgeries.push([whole.as_slice(), &[0]].concat());
        forgeries.extend(
            (0..whole.len())
                .step_by(whole.len() / 40 + 1)
                .map(|at| whole[..at].to_vec()),
        );
        for forged in forgeries {
            forge(&path, head, &forged);
            let engine = Engine::open(&path).unwrap();
            let error = engine
                .predict(csv("words,size,age,colour\n"), &mut |_| Ok(()))
                .unwrap_err();
            assert_eq!(error.kind(), BadModel, "{}: {error}", case.name);
        }
        // Numbers changed one by one: whatever comes of it is no panic.
        for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
            let mut forged = whole.clone();
            forged[at] ^= 0x11;
            forge(&path, head, &forged);
            let mut engine = Engine::open(&path).unwrap();
            let _ = engine.parameters();
            let _ = engine.forget(
                &by_method(&ids(&[&lines(2)[1].id]), &Method::default()),
                &ForgetOptions::dry_run(),
            );
        }
    }
}

#[test]
fn methods_of_other_models_are_refused() {
    let bench = Bench::new();
    let lines = lines(30);
    let who = ids(&[&lines[1].id]);
    let mut ridge = bench.fit("ridge", &dense(&table(&lines)));
    let before = std::fs::read(bench.path("ridge")).unwrap();
    let mut ask = |method: &str, message: &str| {
        fails(
            ridge.forget(
                &by_method(&who, &method.parse().unwrap()),
                &ForgetOptions::default(),
            ),
            Refused,
            message,
        );
    };
    ask(
        "q_kmeans",
        "q_kmeans cannot be used here: this model has no clusters; use exact, or auto",
    );
    ask(
        "sisa",
        "sisa cannot be used here: the model was not fitted in shards; use exact, or auto",
    );
    ask(
        "certified",
        "certified cannot be used here: only a logistic model can be fitted with the noise that it needs; use exact, or auto",
    );
    let within = |tolerance| {
        Method::from(Auto {
            tolerance: Some(tolerance),
        })
    };
    let message = "tolerance = 2 is out of range; it must be above 0 and below 1";
    fails(
        ridge.forget(&by_method(&who, &within(2.0)), &ForgetOptions::default()),
        Usage,
        message,
    );
    let foreign = named_method("influence", &[("tolerance", "0.1".into())]);
    assert_eq!(foreign.unwrap_err().kind(), Refused);
    let steps = "newton:steps=3".parse().unwrap();
    assert_eq!(
        ridge
            .forget(&by_method(&who, &steps), &ForgetOptions::default())
            .unwrap_err()
            .kind(),
        Refused
    );
    assert_eq!(std::fs::read(bench.path("ridge")).unwrap(), before);
    assert_eq!(
        ridge
            .forget(&by_method(&who, &within(1e-3)), &ForgetOptions::default())
            .unwrap()
            .rows,
        29
    );

    let mut clusters = bench.fit(
        "clusters",
        &with(points(&table(&lines)), KMeans::quantised(2, 5.0)),
    );
    let message =
        "dc_kmeans cannot be used here: the model was fitted with the other scheme; use q_kmeans";
    fails(
        clusters.forget(
            &by_method(&who, &"dc_kmeans".parse().unwrap()),
            &ForgetOptions::default(),
        ),
        Refused,
        message,
    );
}

#[test]
fn requests_that_do_not_fit_the_model() {
    let bench = Bench::new();
    let path = bench.path("model");
    let text = table(&lines(20));
    let mut request = with(points(&text), KMeans::quantised(2, 1.0));
    request.targets = vec!["price".into()];
    let message = "k-means has no target: it clusters features alone";
    fails(fit(&request, &path, false, &Silent), Usage, message);
    let mut request = with(points(&text), KMeans::quantised(2, 1.0));
    request.classify = true;
    fails(
        fit(&request, &path, false, &Silent),
        Usage,
        "k-means has no classes: it finds clusters by itself",
    );
    let many = with(points(&text), KMeans::quantised(50, 1.0));
    let message = "clusters = 50 (20 distinct points) is out of range; it must be at most the number of distinct points";
    fails(fit(&many, &path, false, &Silent), Usage, message);
    let mut request = numbers(&text).naive_bayes();
    request.targets.push("price".into());
    fails(
        fit(&request, &path, false, &Silent),
        Usage,
        "a classifier has one target column, not 2",
    );
    let negative = "x,y\n-1,a\n2,b\n3,a\n";
    let request = with(common::request(negative, "y"), MultinomialNb::default());
    let error = fit(&request, &path, false, &Silent).unwrap_err();
    assert!(matches!(error.kind(), Usage | Data), "{error}");
    let logistic = with(numbers(&text), Logistic::default());
    let error = fails(
        fit(&logistic, &path, false, &Silent),
        Data,
        "column `stars` has 5 classes; logistic takes two",
    );
    assert!(
        error
            .hint()
            .unwrap()
            .to_string()
            .contains("`model = softmax`")
    );
    let softmax = with(two(numbers(&text)), Softmax::default());
    let error = fails(
        fit(&softmax, &path, false, &Silent),
        Data,
        "column `stars` has 2 classes; softmax takes three or more",
    );
    assert!(
        error
            .hint()
            .unwrap()
            .to_string()
            .contains("`model = logistic`")
    );
    let refused = |request: FitRequest, part: &str| {
        let error = fit(&request, &path, false, &Silent).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(matches!(error.kind(), Refused | Usage), "{error}");
    };
    let private = Logistic::default().privacy(Privacy::removal(1.0, 1e-4, 0));
    refused(
        sharded(with(two(words(&text)), private), 2, 1),
        "speaks of one model",
    );
    refused(
        sharded(with(points(&text), KMeans::quantised(2, 1.0)), 2, 1),
        "no common names",
    );
    refused(sharded(dense(&text), 50, 1), "shards = 50 (20 rows)");
    refused(sharded(dense(&text), 0, 1), "shards = 0");
    refused(
        with(
            two(words(&text)),
            Logistic::default().privacy(Privacy::removal(-1.0, 0.1, 0)),
        ),
        "epsilon = -1",
    );
    refused(
        with(
            two(words(&text)),
            Logistic::default().privacy(Privacy::removal(1.0, 2.0, 0)),
        ),
        "delta = 2",
    );
    let mut vote = sharded(dense(&text), 2, 1);
    vote.sharding.as_mut().unwrap().aggregation = Some(Aggregation::Vote);
    refused(vote, "not on numbers");
    assert!(!path.exists());
}

/// Noise that everybody can make again hides nothing.
#[test]
fn the_seed_of_the_noise_is_drawn_and_kept_secret() {
    let bench = Bench::new();
    let text = table(&lines(40));
    let private = Logistic::new(5.0).privacy(Privacy::removal(1.0, 1e-4, 0));
    let request = with(two(words(&text)), private);
    let a = bench.fit("a", &request);
    let b = bench.fit("b", &request);
    assert_ne!(named(&a), named(&b));
    let summary = serde_json::to_value(a.summary().unwrap()).unwrap();
    assert_eq!(summary["recipe"]["privacy"]["seed"], 0);
}

#[test]
fn options_reach_the_method() {
    let bench = Bench::new();
    let lines = lines(60);
    let who = ids(&[&lines[3].id, &lines[4].id]);
    drop(bench.fit(
        "model",
        &with(two(numbers(&table(&lines))), Logistic::new(0.5)),
    ));
    // The order of features is drawn at every fit, so that two of them agree to rounding: all
    // methods start from one.
    let fitted = || {
        std::fs::copy(bench.path("model"), bench.path("copy")).unwrap();
        lend_key(&bench, "model", "copy");
        let _ = std::fs::remove_file(bench.path("copy.head"));
        Engine::open(&bench.path("copy")).unwrap()
    };
    let bound = |method: &str| {
        fitted()
            .forget(
                &by_method(&who, &method.parse().unwrap()),
                &ForgetOptions::default(),
            )
            .unwrap()
            .evidence
            .relative_bound
    };
    let one = bound("newton");
    // One step may have measured already, where the bound that needs no row said nothing.
    assert!(bound("newton:measure=true") <= one);
    assert!(bound("newton:steps=3,measure=true") < 1e-3 * one);
    assert!(bound("auto:tolerance=1e-10") <= 1e-10);
    let message = "exact cannot be used here: there is no closed form; use newton, or auto";
    fails(
        fitted().forget(
            &by_method(&who, &"exact".parse().unwrap()),
            &ForgetOptions::default(),
        ),
        Refused,
        message,
    );
    let message = "summation cannot be used here: the loss is not a sum of fixed statistics; use newton, or auto";
    fails(
        fitted().forget(
            &by_method(&who, &"summation".parse().unwrap()),
            &ForgetOptions::default(),
        ),
        Refused,
        message,
    );
    assert_eq!(
        fitted()
            .forget(
                &by_method(&who, &"certified".parse().unwrap()),
                &ForgetOptions::default()
            )
            .unwrap_err()
            .kind(),
        Refused
    );
    let message = "steps = 0 is out of range; it must be 1 to 100";
    fails(
        fitted().forget(
            &by_method(&who, &"newton:steps=0".parse().unwrap()),
            &ForgetOptions::default(),
        ),
        Usage,
        message,
    );
}

#[test]
fn columns_decide_the_likelihood() {
    let bench = Bench::new();
    let text = table(&lines(30));
    let model = |request: FitRequest| bench.fit("model", &request).summary().unwrap().model;
    assert_eq!(model(words(&text).naive_bayes()), "multinomial naive Bayes");
    assert_eq!(model(numbers(&text).naive_bayes()), "Gaussian naive Bayes");
    let asked = GaussianNb::default();
    assert_eq!(model(with(words(&text), asked)), "Gaussian naive Bayes");
}

#[test]
fn clusters_of_lines_without_columns() {
    let bench = Bench::new();
    let source = |text: &str| Source::from_bytes("a.svm", text, None).unwrap();
    let text = "nan 1:1 2:0.1\n1 1:1.1\n0 1:9 2:9\n5 1:9.1 2:9\n0 1:9 2:9.3\n";
    let mut engine = bench.fit(
        "model",
        &with(FitRequest::new(source(text)), KMeans::quantised(2, 0.05)),
    );
    let mut clusters = Vec::new();
    let see = &mut |p: efface_engine::Prediction| {
        clusters.push(p.label.unwrap());
        Ok(())
    };
    engine.predict(source(text), see).unwrap();
    assert_eq!(clusters[0], clusters[1]);
    assert_eq!(clusters[2], clusters[4]);
    assert_ne!(clusters[0], clusters[2]);
    assert_eq!(
        engine
            .forget(
                &by_method(&ids(&["4"]), &Method::default()),
                &ForgetOptions::default()
            )
            .unwrap()
            .rows,
        4
    );
}
