//! Components of all columns, and balanced classes, change for every row when one leaves. They, and
//! ridge and naive Bayes of them, follow from sums that are kept beside the model: no row that
//! stays is read.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::features::{ColumnScale, FeatureExpansion};
use efface::{
    GaussianNb, KMeans, LinearSvm, Logistic, Method, MultinomialNb, NotCovered, PoissonRegression,
    Recipe, Ridge, Softmax,
};
use efface_engine::{
    ClassWeight, Engine, ErrorKind, FitRequest, ForgetOptions, PolicyChange, Sharding, Silent,
};
use efface_receipt::ReceiptClaim;

/// Rows of four numbers with unlike spreads and means, a level, a weight, a number and a class to
/// predict.
fn rows(count: usize) -> Vec<String> {
    let mut state = 5_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..count)
        .map(|at| {
            let shared = next(1000) as f64 / 100.0;
            let numbers = [
                2000.0 + shared + next(100) as f64 / 50.0,
                3.0 * shared - next(100) as f64 / 20.0,
                next(1000) as f64 / 300.0,
                1e-3 * next(1000) as f64,
            ];
            let price = shared + numbers[2] + next(10) as f64 / 10.0;
            let class = ["a", "a", "a", "b", "b", "c"][next(6) as usize];
            let [p, q, r, s] = numbers;
            let colour = ["red", "blue"][next(2) as usize];
            format!(
                "r{at},{p},{q},{r},{s},{colour},{},{price},{class}\n",
                1 + next(3)
            )
        })
        .collect()
}

const COLUMNS: &str = "id,p,q,r,s,colour,w,price,class\n";

type Asked = (&'static str, fn(&mut FitRequest));

fn fitted(bench: &Bench, name: &str, rows: &[String], ask: fn(&mut FitRequest)) -> Engine {
    let mut asked = request(&(COLUMNS.to_owned() + &rows.concat()), "price");
    asked.id = Some("id".into());
    asked.model = Ridge::new(0.5).into();
    ask(&mut asked);
    for column in ["w", "price", "class"] {
        if !asked
            .targets
            .iter()
            .chain(&asked.weight)
            .any(|used| used == column)
        {
            asked.ignore.push(column.into());
        }
    }
    bench.fit(name, &asked)
}

fn components(request: &mut FitRequest, count: usize, centred: bool) {
    request.steps.expansion = FeatureExpansion::Components { count, centred };
}

fn balanced(request: &mut FitRequest) {
    request.targets = vec!["class".into()];
    request.classify = true;
    request.class_weight = Some(ClassWeight::Balanced);
}

/// So many of the pipelines follow from sums alone whatever rows leave.
const CERTAIN: usize = 4;

/// Pipelines whose components or weights change for all rows.
const SUMMED: &[Asked] = &[
    ("pca", |request| components(request, 3, true)),
    ("svd", |request| components(request, 2, false)),
    ("scaled pca", |request| {
        request.steps.scale = ColumnScale::Standard;
        components(request, 3, true);
    }),
    // Columns of about 2,000 with a spread of a few.
    ("balanced ridge", balanced),
    ("balanced, weighted, scaled ridge", |request| {
        balanced(request);
        request.weight = Some("w".into());
        request.steps.scale = ColumnScale::Standard;
    }),
    ("balanced ridge of components", |request| {
        balanced(request);
        request.steps.scale = ColumnScale::Standard;
        components(request, 3, true);
    }),
    (
        "ridge of components with classes that count more",
        |request| {
            balanced(request);
            request.class_weight = Some(ClassWeight::Listed(vec![("b".into(), 3.0)]));
            components(request, 2, true);
        },
    ),
    ("balanced Gaussian naive Bayes", |request| {
        balanced(request);
        request.model = GaussianNb::default().into();
    }),
    ("balanced, weighted, multinomial naive Bayes", |request| {
        balanced(request);
        request.weight = Some("w".into());
        request.ignore.push("q".into());
        request.model = MultinomialNb::default().into();
    }),
];

fn forget(engine: &mut Engine, gone: &[&str], method: &Method) -> efface_engine::ChangeReport {
    engine
        .forget(&by_method(&ids(gone), method), &ForgetOptions::default())
        .unwrap()
}

fn without(rows: &[String], gone: &[&str]) -> Vec<String> {
    rows.iter()
        .filter(|row| !gone.iter().any(|id| row.starts_with(&format!("{id},"))))
        .cloned()
        .collect()
}

#[test]
fn no_row_that_stays_is_read() {
    for (at, (name, ask)) in SUMMED.iter().enumerate() {
        // Bounds that are worked out from sums may pass the tolerance; then the rows are read, and
        // the model is the same.
        let from_sums = |read: usize, few: usize| read == few || at >= CERTAIN;
        let bench = Bench::new();
        let mut left = rows(200);
        let mut engine = fitted(&bench, "model", &left, *ask);
        for gone in [vec!["r7"], vec!["r0", "r190", "r33"], vec!["r8"]] {
            let report = forget(&mut engine, &gone, &Method::default());
            assert_eq!(report.claim, "exact", "{name}: {report:?}");
            assert!(
                from_sums(report.evidence.rows_read, gone.len()),
                "{name}: {report:?}"
            );
            let reason = report.evidence.reason.as_ref().unwrap();
            assert!(
                reason.contains("kept sums") || at >= CERTAIN,
                "{name}: {report:?}"
            );
            assert!(report.evidence.not_covered.is_empty(), "{name}: {report:?}");
            left = without(&left, &gone);
            assert_close(&engine, &fitted(&bench, "fresh", &left, *ask));
            // From the file, as another process would.
            engine = Engine::open(&bench.path("model")).unwrap();
        }
        let arriving = "n1,2004,9,1,0.2,red,2,7,b\nn2,2001,3,2,0.5,blue,1,3,c\n";
        let report = engine
            .learn(csv(&(COLUMNS.to_owned() + arriving)), &Silent)
            .unwrap();
        assert!(
            from_sums(report.evidence.rows_read, 2),
            "{name}: {report:?}"
        );
        left.extend(arriving.split_inclusive('\n').map(String::from));
        assert_close(&engine, &fitted(&bench, "fresh", &left, *ask));
        let mended = "r5,2003,8,1,0.3,blue,1,6,a\n";
        engine
            .amend(csv(&(COLUMNS.to_owned() + mended)), &Silent)
            .unwrap();
        left = without(&left, &["r5"]);
        left.push(mended.into());
        assert_close(&engine, &fitted(&bench, "fresh", &left, *ask));
        // Retraining means just that, and what follows is again from sums.
        let retrained = forget(&mut engine, &["r20"], &Method::Retrain);
        assert_eq!(retrained.evidence.rows_read, left.len() - 1, "{name}");
        let report = forget(&mut engine, &["r21"], &Method::default());
        assert!(
            from_sums(report.evidence.rows_read, 1),
            "{name}: {report:?}"
        );
        left = without(&left, &["r20", "r21"]);
        assert_close(&engine, &fitted(&bench, "fresh", &left, *ask));
        let checks = engine.verify_rows(None, true).unwrap();
        assert!(
            checks.iter().all(|check| check.passed),
            "{name}: {checks:?}"
        );
    }
}

/// Returns the expansions of three columns: none, products, waves (as many as there are columns, so
/// that a model of the columns themselves has the same width) and components.
fn expansions() -> [FeatureExpansion; 6] {
    let polynomial = |interactions| FeatureExpansion::Polynomial {
        degree: 2,
        interactions,
    };
    let components = |centred| FeatureExpansion::Components { count: 2, centred };
    [
        FeatureExpansion::None,
        polynomial(false),
        polynomial(true),
        FeatureExpansion::Fourier {
            features: 3,
            scale: 4.0,
            seed: 7,
        },
        components(true),
        components(false),
    ]
}

/// A fit on the columns `q`, `r` and `s` with classes to predict.
fn expanded(
    rows: &[String],
    model: &Recipe,
    expansion: FeatureExpansion,
    class_weight: Option<&ClassWeight>,
    scale: ColumnScale,
) -> FitRequest {
    let mut asked = request(&(COLUMNS.to_owned() + &rows.concat()), "class");
    asked.id = Some("id".into());
    asked.ignore = ["p", "colour", "price", "w"].map(String::from).to_vec();
    asked.classify = true;
    asked.model = model.clone();
    asked.class_weight = class_weight.cloned();
    asked.steps.scale = scale;
    asked.steps.expansion = expansion;
    asked
}

/// The model and its scores are those of a fit on the rows that are there, and the file is sound.
#[track_caller]
fn is_fresh(engine: &Engine, fresh: &Engine, name: &str) {
    let found = named(engine);
    let wanted = named(fresh);
    assert!(found.keys().eq(wanted.keys()), "{name}");
    for (parameter, values) in &found {
        for (x, y) in values.iter().zip(&wanted[parameter]) {
            let near = (x - y).abs() <= 1e-7 * (1.0 + y.abs());
            assert!(near, "{name}: {parameter}: {x} and {y}");
        }
    }
    let table = COLUMNS.to_owned() + &rows(20).concat();
    for (a, b) in predictions(engine, &table)
        .iter()
        .zip(&predictions(fresh, &table))
    {
        let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-7 * (1.0 + y.abs());
        assert!(
            a.scores.iter().zip(&b.scores).all(near),
            "{name}: {a:?} and {b:?}"
        );
    }
    let checks = engine.verify_rows(None, true).unwrap();
    assert!(
        checks.iter().all(|check| check.passed),
        "{name}: {checks:?}"
    );
}

/// Every expansion of the columns with all kinds of class weights and of scales, through a forget,
/// a learn and an amend: what is kept beside the model may never be of other features than the
/// model reads.
#[test]
fn expansions_and_class_weights_follow_every_change() {
    let weights = [
        None,
        Some(ClassWeight::Balanced),
        Some(ClassWeight::Listed(vec![("b".into(), 3.0)])),
    ];
    let models: [(&str, Recipe); 4] = [
        ("ridge", Ridge::new(0.5).into()),
        ("softmax", Softmax::new(0.5).tolerance(1e-10).into()),
        ("svm", LinearSvm::new(0.5).into()),
        ("Gaussian naive Bayes", GaussianNb::default().into()),
    ];
    let new = "n1,2004,9,1,0.2,red,2,7,b\n";
    let amended = "r5,2003,8,1,0.3,blue,1,6,a\n";
    for (family, model) in &models {
        // Ridge alone keeps sums over the features; others are tried on one scale.
        let scales = [
            ColumnScale::Standard,
            ColumnScale::None,
            ColumnScale::MinMax,
        ];
        let scales = &scales[..if *family == "ridge" { 3 } else { 1 }];
        for (expansion, weight, scale) in expansions().into_iter().flat_map(|expansion| {
            weights
                .iter()
                .flat_map(move |weight| scales.iter().map(move |scale| (expansion, weight, *scale)))
        }) {
            let name = format!("{family}, {expansion:?}, {weight:?}, {scale:?}");
            let ask = |rows: &[String]| expanded(rows, model, expansion, weight.as_ref(), scale);
            let bench = Bench::new();
            let mut left = rows(50);
            let mut engine = bench.fit("model", &ask(&left));
            let report = forget(&mut engine, &["r7", "r8"], &Method::default());
            assert_eq!(report.claim, "exact", "{name}: {report:?}");
            left = without(&left, &["r7", "r8"]);
            is_fresh(&engine, &bench.fit("fresh", &ask(&left)), &name);
            engine = Engine::open(&bench.path("model")).unwrap();
            engine
                .learn(csv(&(COLUMNS.to_owned() + new)), &Silent)
                .unwrap();
            engine
                .amend(csv(&(COLUMNS.to_owned() + amended)), &Silent)
                .unwrap();
            left = without(&left, &["r5"]);
            left.extend([new, amended].map(String::from));
            is_fresh(&engine, &bench.fit("fresh", &ask(&left)), &name);
        }
    }
}

/// A classifier of components reads the rows for its own sake; the evidence says what followed from
/// sums and what did not.
#[test]
fn a_classifier_of_components_says_what_was_read() {
    let bench = Bench::new();
    let ask: fn(&mut FitRequest) = |request| {
        request.targets = vec!["class".into()];
        request.positive = vec!["a".into()];
        request.model = Logistic::new(0.1).tolerance(1e-10).into();
        request.steps.scale = ColumnScale::Standard;
        components(request, 3, true);
    };
    let all = rows(150);
    let mut engine = fitted(&bench, "model", &all, ask);
    let report = forget(&mut engine, &["r7"], &Method::default());
    assert_eq!(
        (report.method.as_str(), report.evidence.rows_read),
        ("retrain", 149)
    );
    let reason = report.evidence.reason.as_ref().unwrap();
    assert!(
        reason.contains("components of the features follow from kept sums"),
        "{reason}"
    );
    assert_close(
        &engine,
        &fitted(&bench, "fresh", &without(&all, &["r7"]), ask),
    );
}

/// A row that dwarfed the others has cost the sums digits that only the rows still have.
#[test]
fn sums_that_lost_their_digits_are_made_anew() {
    for (name, ask) in &SUMMED[..6] {
        let bench = Bench::new();
        let mut all = rows(120);
        all.push("huge,9000,-4000,3000,2000,red,1,5000,a\n".into());
        let mut engine = fitted(&bench, "model", &all, *ask);
        let left = without(&all, &["huge"]);
        let report = forget(&mut engine, &["huge"], &Method::default());
        assert_eq!(report.claim, "exact", "{name}: {report:?}");
        assert_close(&engine, &fitted(&bench, "fresh", &left, *ask));
        let report = forget(&mut engine, &["r3"], &Method::default());
        // Few rows of a column far from 0 leave a bound near the tolerance, which the rows then
        // make small again.
        assert!(
            report.evidence.rows_read == 1 || name.starts_with("balanced"),
            "{name}: {report:?}"
        );
        assert_close(
            &engine,
            &fitted(&bench, "fresh", &without(&left, &["r3"]), *ask),
        );
    }
}

/// Methods that keep the features leave no sums behind that still hold a row, and the next exact
/// request makes them anew.
#[test]
fn sums_do_not_outlive_a_method_that_keeps_the_features() {
    let bench = Bench::new();
    let (_, ask) = SUMMED[0];
    let all = rows(120);
    let mut engine = fitted(&bench, "model", &all, ask);
    let later = PolicyChange {
        settle_after: Some(9),
        ..PolicyChange::default()
    };
    engine.set_policy(&later).unwrap();
    let report = forget(&mut engine, &["r1"], &Method::named("influence").unwrap());
    assert!(
        report
            .evidence
            .not_covered
            .contains(&NotCovered::FeatureComponents),
        "{report:?}"
    );
    let report = forget(&mut engine, &["r2"], &Method::default());
    assert!(
        report.evidence.rows_read > 100 && report.evidence.not_covered.is_empty(),
        "{report:?}"
    );
    assert_close(
        &engine,
        &fitted(&bench, "fresh", &without(&all, &["r1", "r2"]), ask),
    );
    let report = forget(&mut engine, &["r3"], &Method::default());
    assert_eq!(report.evidence.rows_read, 1, "{report:?}");
    assert_close(
        &engine,
        &fitted(&bench, "fresh", &without(&all, &["r1", "r2", "r3"]), ask),
    );
}

/// Where other words are chosen, columns become constant, or gaps are filled with another mean, the
/// rows are read.
#[test]
fn features_that_change_otherwise_are_read_from_the_rows() {
    let bench = Bench::new();
    let ask: fn(&mut FitRequest) = |request| {
        request.steps.scale = ColumnScale::Standard;
        components(request, 2, true);
    };
    let mut all = rows(60);
    // The last row alone makes `s` vary, and alone is green.
    for row in &mut all {
        let mut cells: Vec<&str> = row.split(',').collect();
        cells[4] = "0.5";
        *row = cells.join(",");
    }
    all.push("odd,2001,1,1,9,green,1,4,a\n".into());
    let mut engine = fitted(&bench, "model", &all, ask);
    let left = without(&all, &["odd"]);
    let report = forget(&mut engine, &["odd"], &Method::default());
    assert!(report.evidence.rows_read >= 60, "{report:?}");
    assert_close(&engine, &fitted(&bench, "fresh", &left, ask));
    // A class that disappears.
    let mut classes = rows(40);
    classes.retain(|row| !row.ends_with(",c\n"));
    classes.push("last,2001,1,1,9,red,1,4,c\n".into());
    let (_, ask) = SUMMED[3];
    let mut engine = fitted(&bench, "classes", &classes, ask);
    let report = forget(&mut engine, &["last"], &Method::default());
    assert_eq!(report.evidence.rows_read, 1, "{report:?}");
    assert_eq!(
        report.evidence.not_covered,
        [NotCovered::EmptyClasses { classes: 1 }]
    );
}

/// Sums that are not whole, or of another model, are damage and nothing else, also where the owner
/// of the key signed them.
#[test]
fn damaged_sums_are_told() {
    let bench = Bench::new();
    let all = rows(60);
    fitted(&bench, "model", &all, SUMMED[0].1);
    fitted(&bench, "other", &all, SUMMED[5].1);
    let path = bench.path("model");
    let sums = part(&path, "sums");
    let other = part(&bench.path("other"), "sums");
    let mut lying = sums.clone();
    lying[0] ^= 0x40;
    for bytes in [
        &sums[..sums.len() - 1],
        &sums[..9],
        &[][..],
        &lying[..],
        &other[..],
    ] {
        forge(&path, "sums", bytes);
        let mut engine = Engine::open(&path).unwrap();
        let request = by_method(&ids(&["r3"]), &Method::default());
        let found = engine.forget(
            &request,
            &ForgetOptions {
                dry_run: true,
                ..ForgetOptions::default()
            },
        );
        match found {
            Err(error) => assert_eq!(error.kind(), ErrorKind::BadModel, "{error}"),
            // Sums of other features are of no use, and the rows are read.
            Ok(report) => assert!(
                report.evidence.rows_read >= 59 && bytes == other,
                "{report:?}"
            ),
        }
    }
}

/// A row that leaves with a 0 in a column which was shifted before is no sign of an altered model.
#[test]
fn counts_of_shifted_columns_are_upper_bounds() {
    let bench = Bench::new();
    // Rows 1 and 2 share the least value that is left when row 0 is gone.
    let line = |at: i32| format!("r{at},{},{}\n", (at - 1).max(at / 2), 3 * at + at % 4);
    let lines: String = (0..30).map(line).collect();
    let mut asked = request(&format!("id,q,price\nlow,-5,1\nr,0,2\n{lines}"), "price");
    asked.id = Some("id".into());
    asked.steps.scale = ColumnScale::MinMax;
    let mut engine = bench.fit("model", &asked);
    for id in ["low", "r", "r0"] {
        forget(&mut engine, &[id], &Method::default());
        for check in engine.verify_rows(None, true).unwrap() {
            assert!(check.passed, "{id}: {}", check.found);
        }
    }
}

/// Counts and extremes of columns that are not those of the rows are found by reading the rows,
/// also where the owner of the key signed them.
#[test]
fn counts_of_columns_are_held_against_the_rows() {
    let bench = Bench::new();
    let mut asked = request(&(COLUMNS.to_owned() + &rows(60).concat()), "price");
    asked.id = Some("id".into());
    asked.ignore = ["w", "class"].map(String::from).to_vec();
    asked.steps.scale = ColumnScale::MinMax;
    bench.fit("model", &asked);
    let path = bench.path("model");
    let stored = part(&path, "encoder");
    let found = || {
        let checks = Engine::open(&path)
            .unwrap()
            .verify_rows(None, true)
            .unwrap();
        let told = checks.into_iter().find(|check| check.check == "rows");
        told.unwrap().found
    };
    assert!(!found().contains("what is kept of column"), "{}", found());
    type Damage = fn(&mut serde_json::Value);
    let changes: [(&str, Damage); 3] = [
        ("q", |sums| sums["least"]["value"] = (-777.5).into()),
        ("q", |sums| sums["most"]["rows"] = 9.into()),
        ("r", |sums| sums["present"] = 61.into()),
    ];
    for (column, change) in changes {
        let mut encoder: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        let columns = encoder["columns"].as_array_mut().unwrap();
        let own = columns.iter_mut().find(|own| own["name"] == column);
        change(&mut own.unwrap()["kind"]["number"]["sums"]);
        forge(&path, "encoder", &serde_json::to_vec(&encoder).unwrap());
        let wanted = format!("what is kept of column `{column}` is not that of its rows");
        assert_eq!(found(), wanted);
    }
}

/// A row of two numbers and a number to predict.
type Triple = [i64; 3];

/// Rows whose two numbers vary equally in all directions, but for a pair of rows along (`tilt`,
/// `tilt`/2) that makes one direction vary more, and two rows that make it vary much more as long as
/// they are there. Numbers are so large that their squares are rounded.
fn nearly_round(tilt: i64) -> (Vec<Triple>, [Triple; 2]) {
    let mut state = 11_u64;
    let mut next = move |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) as i64 % below
    };
    let mut around = Vec::new();
    for _ in 0..12 {
        let (p, q) = ((1 << 30) + next(1 << 29), next(1 << 30));
        around.extend([(p, q), (-p, -q), (-q, p), (q, -p)]);
    }
    around.extend([(tilt, tilt / 2), (-tilt, -tilt / 2)]);
    let mut row = |(p, q): (i64, i64)| {
        let y = (3 * p + 2 * q) / (1 << 20) + next(1 << 10);
        [p + 123_456_789, q - 987_654_321, y]
    };
    let rows = around.into_iter().map(&mut row).collect();
    let wide = 1 << 31;
    (rows, [row((wide, wide / 8)), row((-wide, -wide / 8))])
}

fn lines_of(rows: &[Triple], name: &str, unit: f64) -> String {
    let class = |y: i64| ["a", "b", "c"][y.rem_euclid(3) as usize];
    let line = |(at, [p, q, y]): (usize, &Triple)| {
        let [p, q] = [p, q].map(|value| *value as f64 * unit);
        let count = y.rem_euclid(5);
        format!("{name}{at},{p},{q},{y},{},{count}\n", class(*y))
    };
    rows.iter().enumerate().map(line).collect()
}

const TRIPLE: &str = "id,p,q,y,class,count\n";

fn of_one_component(text: &str, target: Option<&str>) -> FitRequest {
    let mut asked = request(&(TRIPLE.to_owned() + text), "y");
    asked.id = Some("id".into());
    asked.targets = target.into_iter().map(String::from).collect();
    let others = ["y", "class", "count"];
    let unused = others.iter().filter(|name| Some(**name) != target);
    asked.ignore = unused.map(|name| name.to_string()).collect();
    components(&mut asked, 1, true);
    asked
}

/// No family claims to be exact on components that a fit would be refused.
#[test]
fn no_family_is_exact_where_a_fit_is_refused() {
    let bench = Bench::new();
    let (left, gone) = nearly_round(1 << 8);
    let unit = 2f64.powi(-30);
    let kept = lines_of(&left, "r", unit);
    let text = kept.clone() + &lines_of(&gone, "wide", unit);
    let shards = Sharding {
        shards: 2,
        slices: 1,
        seed: 5,
        aggregation: None,
        threads: 1,
    };
    type FamilyChoice = (&'static str, Option<&'static str>, fn(&mut FitRequest));
    let families: [FamilyChoice; 7] = [
        ("ridge", Some("y"), |_| {}),
        ("logistic", Some("class"), |asked| {
            asked.positive = vec!["a".into()];
            asked.model = Logistic::new(0.5).into();
        }),
        ("softmax", Some("class"), |asked| {
            asked.model = Softmax::new(0.5).into()
        }),
        ("svm", Some("class"), |asked| {
            asked.model = LinearSvm::new(0.5).into()
        }),
        ("Poisson", Some("count"), |asked| {
            asked.model = PoissonRegression::new(0.5).into()
        }),
        ("naive Bayes", Some("class"), |asked| {
            asked.model = GaussianNb::default().into()
        }),
        ("k-means", None, |asked| {
            asked.model = KMeans::quantised(3, 5.0).into()
        }),
    ];
    for sharding in [None, Some(shards)] {
        for (name, target, ask) in &families {
            let mut asked = of_one_component(&text, *target);
            ask(&mut asked);
            if sharding.is_some() && target.is_none() {
                continue;
            }
            asked.sharding = sharding;
            let mut engine = bench.fit("model", &asked);
            let report = forget(&mut engine, &["wide0", "wide1"], &Method::default());
            assert_eq!(report.claim, "approximate", "{name}: {report:?}");
            let recorded = receipts(&engine).pop().unwrap().claim;
            assert!(
                matches!(recorded, Some(ReceiptClaim::Approximate { .. })),
                "{name}"
            );
            let mut fresh = of_one_component(&kept, *target);
            ask(&mut fresh);
            let refused = efface_engine::fit(&fresh, &bench.path("fresh"), true, &Silent);
            assert!(
                refused.unwrap_err().to_string().contains("component"),
                "{name}"
            );
        }
    }
}
