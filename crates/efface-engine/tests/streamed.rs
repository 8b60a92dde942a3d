//! Rows that are too many for memory: they are read in batches, and the model is the one of all of
//! them in memory.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::features::Cell;
use efface::{Method, MultinomialNb};
use efface_engine::{
    Engine, Error, FitRequest, ForgetOptions, Progress, RecordTable, RowSource, ScoringPlan,
    Silent, fit,
};
use efface_io::{ReadLimits, Source};

/// The request with so little memory that its rows are read in batches.
fn little_memory(request: &FitRequest, text: &str, memory: u64) -> FitRequest {
    let limits = ReadLimits {
        memory,
        ..ReadLimits::default()
    };
    let source = Source::from_bytes("table.csv", text, None)
        .unwrap()
        .with_limits(limits);
    FitRequest {
        source: RowSource::from(source),
        ..request.clone()
    }
}

fn answers(engine: &Engine, text: &str) -> Vec<f64> {
    predictions(engine, text)
        .iter()
        .flat_map(|row| row.scores.clone())
        .collect()
}

fn counted(text: &str) -> FitRequest {
    let mut request = classes(text);
    request.model = MultinomialNb::default().into();
    request
}

#[test]
fn rows_that_are_learned_again_are_told_of_however_they_are_kept() {
    let all = lines(900);
    let (first, second) = (table(&all[..800]), table(&all[700..]));
    let bench = Bench::new();
    for (name, mut request) in [
        ("dense", dense(&first)),
        ("sparse", sparse(&first)),
        ("counted", counted(&first)),
    ] {
        request.id = None;
        request.ignore.push("id".into());
        for memory in [1 << 30, 12_000] {
            let request = little_memory(&request, &first, memory);
            let mut engine = bench.fit(name, &request);
            let mut learn = |text: &str| engine.learn(csv(text), &Silent).unwrap();
            assert_eq!(learn(&second).remarks, [], "{name}, {memory}");
            for again in [&first, &second, &first] {
                let remarks = learn(again).remarks;
                let told = remarks.first().map(ToString::to_string).unwrap_or_default();
                assert!(
                    told.contains("same content were learned before"),
                    "{name}, {memory}: {told}"
                );
            }
            // Under a name the rows come once.
            let one = engine.learn_request(csv(&second), " night ", &Silent);
            let one = one.unwrap();
            let two = engine.learn_request(csv(&second), "night", &Silent);
            let two = two.unwrap();
            assert_eq!(
                (one.replayed, two.replayed, one.rows, two.rows),
                (false, true, 3000, 3000)
            );
            assert_eq!((two.learned, &two.receipt), (200, &one.receipt));
            sound(&engine);
        }
    }
}

/// A folder of Linux may have any bytes for a name.
#[cfg(target_os = "linux")]
#[test]
fn a_model_may_lie_under_a_name_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let text = table(&lines(300));
    let bench = Bench::new();
    for memory in [1 << 30, 12_000] {
        let path = bench
            .path("")
            .join(std::ffi::OsStr::from_bytes(b"name\xff"));
        fit(
            &little_memory(&dense(&text), &text, memory),
            &path,
            true,
            &Silent,
        )
        .unwrap();
        sound(&Engine::open(&path).unwrap());
    }
}

#[test]
fn batches_give_the_model_of_all_rows_and_it_forgets_alike() {
    let all = lines(900);
    let text = table(&all);
    let bench = Bench::new();
    for (name, request) in [
        ("dense", dense(&text)),
        ("sparse", sparse(&text)),
        ("counted", counted(&text)),
    ] {
        let mut whole = bench.fit(&format!("{name}-whole"), &request);
        let small = little_memory(&request, &text, 12_000);
        let report = fit(&small, &bench.path(name), true, &Silent).unwrap();
        assert!(
            report
                .remarks
                .iter()
                .any(|remark| remark.to_string().contains("read in batches")),
            "{name}"
        );
        // Without the rows, what the sums can be off by is counted at its worst, and said where it
        // is more than the tolerance.
        assert!(
            report.summary.relative_bound < 1e-8,
            "{name} {:e}",
            report.summary.relative_bound
        );
        assert_eq!(
            report.tolerance_missed,
            report.summary.relative_bound > 1e-9,
            "{name}"
        );
        let mut streamed = Engine::open(&bench.path(name)).unwrap();
        assert_eq!(streamed.summary().unwrap().rows, 900);
        sound(&streamed);
        let close = |a: &Engine, b: &Engine| {
            let a = answers(a, &text);
            let b = answers(b, &text);
            assert_eq!(a.len(), b.len());
            assert!(
                a.iter()
                    .zip(&b)
                    .all(|(a, b)| (a - b).abs() <= 1e-10 * (1.0 + b.abs())),
                "{name}"
            );
        };
        close(&streamed, &whole);
        for engine in [&mut streamed, &mut whole] {
            let gone = ids(&[&all[3].id, &all[899].id]);
            engine
                .forget(
                    &by_method(&gone, &Method::default()),
                    &ForgetOptions::default(),
                )
                .unwrap();
        }
        close(&streamed, &whole);
        sound(&streamed);
        streamed
            .learn(csv(&table(&[marked_line()])), &Silent)
            .unwrap();
        assert_eq!(streamed.summary().unwrap().rows, 899);
    }
}

/// Models whose training reads rows many times read them from their own file.
fn by_passes(text: &str) -> Vec<(&'static str, FitRequest)> {
    let with = |mut request: FitRequest, model: efface::Recipe| {
        request.model = model;
        request
    };
    let mut two = dense(text);
    two.targets = vec!["old".into()];
    two.ignore = vec!["words".into(), "stars".into(), "price".into()];
    two.classify = true;
    let mut clusters = dense(text);
    clusters.targets.clear();
    // Levels have places of their own in every fit, and the lattice is drawn place by place: to the
    // bit, numbers alone are alike.
    clusters
        .ignore
        .extend(["price", "colour", "old"].map(String::from));
    let mut counts = dense(text);
    counts.targets = vec!["stars".into()];
    counts.ignore = vec!["words".into(), "price".into(), "colour".into()];
    vec![
        (
            "logistic",
            with(two.clone(), efface::Logistic::new(1.0).into()),
        ),
        (
            "softmax",
            with(classes(text), efface::Softmax::new(1.0).into()),
        ),
        ("svm", with(two, efface::LinearSvm::new(1.0).into())),
        (
            "poisson",
            with(counts, efface::PoissonRegression::new(0.5).into()),
        ),
        (
            "q-kmeans",
            with(clusters.clone(), efface::KMeans::quantised(4, 0.5).into()),
        ),
        (
            "dc-kmeans",
            with(clusters, efface::KMeans::divided(4, 1, 3).into()),
        ),
    ]
}

/// The table with a class beside: whether a thing is old.
fn aged(count: usize) -> (Vec<Line>, String) {
    let all = lines(count);
    let mut text = table(&all).replacen("stars\n", "stars,old\n", 1);
    let mut marked = String::new();
    for (at, line) in text.lines().enumerate() {
        let class = if line.len() % 3 == 0 || line.contains("19") && at % 4 == 0 {
            "yes"
        } else {
            "no"
        };
        let end = if at == 0 {
            String::new()
        } else {
            format!(",{class}")
        };
        marked.push_str(&format!("{line}{end}\n"));
    }
    std::mem::swap(&mut text, &mut marked);
    (all, text)
}

#[test]
fn passes_give_the_model_of_all_rows_and_it_forgets_alike_in_little_memory() {
    let (all, text) = aged(900);
    let bench = Bench::new();
    for (name, request) in by_passes(&text) {
        let mut whole = bench.fit(&format!("{name}-whole"), &request);
        let small = little_memory(&request, &text, 12_000);
        let report = fit(&small, &bench.path(name), true, &Silent).unwrap();
        assert!(
            report
                .remarks
                .iter()
                .any(|remark| remark.to_string().contains("read in batches")),
            "{name}"
        );
        // Columns of unlike units leave a support vector machine a loose bound, in memory too.
        let bound = report.summary.relative_bound;
        let bound_in_memory = whole.summary().unwrap().relative_bound;
        assert!(
            bound <= 1.5 * bound_in_memory.max(1e-9),
            "{name} {bound:e}, in memory {bound_in_memory:e}"
        );
        let mut streamed = Engine::open(&bench.path(name)).unwrap();
        streamed.set_memory(12_000);
        assert_eq!(streamed.summary().unwrap().rows, 900);
        sound(&streamed);
        let is_exact = name.contains("kmeans");
        let close = |stage: &str, a: &Engine, b: &Engine| {
            let a = answers(a, &text);
            let b = answers(b, &text);
            assert_eq!(a.len(), b.len());
            let far = |a: f64, b: f64| {
                (a - b).abs()
                    > if is_exact {
                        0.0
                    } else {
                        1e-7 * (1.0 + b.abs())
                    }
            };
            assert!(
                !a.iter().zip(&b).any(|(a, b)| far(*a, *b)),
                "{name} {stage}"
            );
        };
        close("fitted", &streamed, &whole);
        let many: Vec<&str> = all[100..400].iter().map(|line| line.id.as_str()).collect();
        for gone in [vec![all[3].id.as_str(), &all[899].id], many] {
            for engine in [&mut streamed, &mut whole] {
                let request = by_method(&ids(&gone), &Method::default());
                engine.forget(&request, &ForgetOptions::default()).unwrap();
            }
            close("forgotten", &streamed, &whole);
            sound(&streamed);
        }
        for method in [Method::Retrain, Method::WarmStart] {
            for engine in [&mut streamed, &mut whole] {
                let request = by_method(&ids(&[&all[10 + method.name().len()].id]), &method);
                let done = engine.forget(&request, &ForgetOptions::default());
                assert!(
                    done.is_ok() || is_exact && method == Method::WarmStart,
                    "{name}"
                );
            }
            close(method.name(), &streamed, &whole);
        }
        let late = "late,p1,3.5,1999,red,tall green,7,3,no\n";
        for engine in [&mut streamed, &mut whole] {
            let header = text.lines().next().unwrap();
            engine
                .learn(csv(&format!("{header}\n{late}")), &Silent)
                .unwrap();
        }
        close("learned", &streamed, &whole);
        sound(&streamed);
    }
}

/// Scales follow from all rows, so that a forget that moves them fits anew: by passes where rows
/// are beyond memory.
#[test]
fn features_that_follow_from_rows_are_fitted_anew_by_passes() {
    let (all, text) = aged(600);
    let bench = Bench::new();
    let mut request = by_passes(&text).swap_remove(0).1;
    request.steps.scale = efface::features::ColumnScale::Standard;
    let mut whole = bench.fit("whole", &request);
    fit(
        &little_memory(&request, &text, 12_000),
        &bench.path("small"),
        true,
        &Silent,
    )
    .unwrap();
    let mut streamed = Engine::open(&bench.path("small")).unwrap();
    streamed.set_memory(12_000);
    for engine in [&mut streamed, &mut whole] {
        let gone = ids(&[&all[3].id, &all[599].id]);
        engine
            .forget(
                &by_method(&gone, &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
    }
    let [a, b] = [&streamed, &whole].map(|engine| answers(engine, &text));
    assert!(
        a.iter()
            .zip(&b)
            .all(|(a, b)| (a - b).abs() <= 1e-7 * (1.0 + b.abs()))
    );
    sound(&streamed);
}

fn marked_line() -> Line {
    Line {
        id: "late".into(),
        cells: "late,p1,3.5,1999,red,tall green,7,3\n".into(),
    }
}

#[test]
fn rows_without_ids_and_rows_held_out_go_the_same_way() {
    let text = table(&lines(600));
    let bench = Bench::new();
    let mut request = dense(&text);
    request.id = None;
    request.ignore.push("id".into());
    request.scoring = Some(ScoringPlan::HoldOut {
        share: 0.2,
        seed: 3,
    });
    let whole = bench.fit("whole", &request);
    fit(
        &little_memory(&request, &text, 20_000),
        &bench.path("small"),
        true,
        &Silent,
    )
    .unwrap();
    let small = Engine::open(&bench.path("small")).unwrap();
    assert_eq!(small.summary().unwrap().rows, whole.summary().unwrap().rows);
    assert!(small.summary().unwrap().rows < 600);
    sound(&small);
}

#[test]
fn what_cannot_be_leaves_nothing_behind() {
    let all = lines(600);
    let mut text = table(&all);
    let bench = Bench::new();
    let path = bench.path("model");
    let kind = |request: &FitRequest| fit(request, &path, true, &Silent).unwrap_err();
    // An id twice, in batches far apart.
    text.push_str(&all[1].cells);
    let found = kind(&little_memory(&dense(&text), &text, 20_000));
    assert!(
        matches!(
            &found,
            Error::RepeatedId {
                first: 3,
                second: 602,
                ..
            }
        ),
        "{found}"
    );
    // A broken cell in a late batch.
    let broken = format!("{}late,p1,3.5,1999,red,tall,much,3\n", table(&all));
    let found = kind(&little_memory(&dense(&broken), &broken, 20_000)).to_string();
    assert!(found.contains("602") && found.contains("price"), "{found}");
    // A penalty is chosen from all rows at once.
    let text = table(&all);
    let mut chosen = classes(&text);
    chosen.model = efface::Softmax::new(1.0).into();
    chosen.choose_penalty = true;
    let found = kind(&little_memory(&chosen, &text, 20_000)).to_string();
    assert!(found.contains("memory"), "{found}");
    // What fails in training does so when all rows are in the draft of the model: words that sum to
    // a constant have no optimum at λ = 0.
    let mut untrained = classes(&text);
    untrained.model = efface::Softmax::new(0.0).into();
    let whole = kind(&untrained);
    let found = kind(&little_memory(&untrained, &text, 20_000));
    assert!(
        matches!((&found, &whole), (Error::Core(_), Error::Core(_))),
        "{found}; {whole}"
    );
    // Sums that would not fit by themselves.
    let limits = ReadLimits {
        memory: 1_000,
        sums: 1_000,
        ..ReadLimits::default()
    };
    let source = Source::from_bytes("table.csv", text.as_str(), None)
        .unwrap()
        .with_limits(limits);
    let found = kind(&FitRequest {
        source: source.into(),
        ..sparse(&text)
    })
    .to_string();
    assert!(
        found.contains("the sums of") && found.contains("more than the 1000 that are allowed"),
        "{found}"
    );
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Rows of numbers alone, of which the last may hold something else.
fn numbers(rows: usize, last: &str) -> String {
    let mut text = "a,b,y\n".to_owned();
    for row in 0..rows {
        let a = (row * 7919 % 40) as f64 / 4.0;
        let b = (row * 104_729 % 997) as f64 / 50.0;
        text.push_str(&format!(
            "{a},{b},{}\n",
            2.0 * a - b + (row % 13) as f64 / 10.0
        ));
    }
    text + last
}

fn plain(text: &str) -> FitRequest {
    let mut request = request(text, "y");
    request.id = None;
    request
}

#[test]
fn rows_of_numbers_are_read_once_and_others_twice() {
    let bench = Bench::new();
    // In the third case the last row makes levels of a column that the first block took for
    // numbers.
    for (name, last) in [
        ("numbers", ""),
        ("spaces", " 1.5 ,2,3\n"),
        ("levels", "tall,2,3\n"),
    ] {
        let text = numbers(3000, last);
        let request = plain(&text);
        let whole = bench.fit(&format!("{name}-whole"), &request);
        fit(
            &little_memory(&request, &text, 100_000),
            &bench.path(name),
            true,
            &Silent,
        )
        .unwrap();
        let streamed = Engine::open(&bench.path(name)).unwrap();
        sound(&streamed);
        let found = streamed.summary().unwrap();
        let expected = whole.summary().unwrap();
        assert_eq!(
            (found.rows, found.features),
            (expected.rows, expected.features),
            "{name}"
        );
        let a = answers(&streamed, &text);
        let b = answers(&whole, &text);
        assert!(
            a.iter()
                .zip(&b)
                .all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs())),
            "{name}"
        );
    }
    // What is wrong with a row is told as it is where rows are seen before they are encoded.
    for (last, says) in [
        (",2,3\n", "a"),
        ("1,inf,3\n", "b"),
        ("1,2,much\n", "y"),
        ("1,2\n", "2 fields"),
    ] {
        let text = numbers(3000, last);
        let path = bench.path("broken");
        let found = fit(
            &little_memory(&plain(&text), &text, 100_000),
            &path,
            true,
            &Silent,
        )
        .unwrap_err()
        .to_string();
        assert!(
            found.contains("3002") && found.contains(says),
            "{last}: {found}"
        );
        assert!(!path.exists());
    }
}

/// Rows in memory are seen one after the other, those of a file in blocks.
#[test]
fn blocks_are_seen_as_rows_are() {
    let bench = Bench::new();
    let all = lines(900);
    let text = table(&all);
    let mut table = text
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let columns = table.next().unwrap();
    let cell = |text: String| {
        if text.is_empty() {
            Cell::Missing
        } else {
            Cell::Text(text)
        }
    };
    let rows = table
        .map(|row| row.into_iter().map(cell).collect())
        .collect();
    let records = RecordTable::new(columns, rows).unwrap();
    for (name, request) in [
        ("dense", dense(&text)),
        ("sparse", sparse(&text)),
        ("counted", counted(&text)),
    ] {
        let limits = ReadLimits {
            memory: 1 << 17,
            ..ReadLimits::default()
        };
        let file = Source::from_bytes("table.csv", text.as_str(), None)
            .unwrap()
            .with_limits(limits);
        let by_blocks = bench.fit(
            &format!("{name}-blocks"),
            &FitRequest {
                source: file.into(),
                ..request.clone()
            },
        );
        let by_rows = bench.fit(
            &format!("{name}-rows"),
            &FitRequest {
                source: (&records).into(),
                ..request.clone()
            },
        );
        let names = |engine: &Engine| named(engine).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&by_blocks), names(&by_rows), "{name}");
        let a = answers(&by_blocks, &text);
        let b = answers(&by_rows, &text);
        assert!(
            a.iter()
                .zip(&b)
                .all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs())),
            "{name}"
        );
    }
}

/// Writes to the file that is being read.
struct Meddler(std::path::PathBuf, std::sync::atomic::AtomicBool);

impl Progress for Meddler {
    fn at(&self, _: u64) {
        use std::io::Write;
        if !self.1.swap(true, std::sync::atomic::Ordering::Relaxed) {
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(&self.0)
                .unwrap();
            file.write_all(b"1,2,3\n").unwrap();
        }
    }
}

#[test]
fn a_file_that_changes_under_the_reader_gives_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("rows.csv");
    for memory in [60_000, 1 << 30] {
        std::fs::write(&data, numbers(3000, "")).unwrap();
        let limits = ReadLimits {
            memory,
            ..ReadLimits::default()
        };
        let source = efface_io::open(&data, None).unwrap().with_limits(limits);
        let request = FitRequest {
            source: source.into(),
            ..plain("a,y\n1,2\n")
        };
        let bench = Bench::new();
        let path = bench.path("model");
        let error = fit(&request, &path, true, &Meddler(data.clone(), false.into()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("changed while it was read"), "{error}");
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Writes down how far passes over files go and have come.
#[derive(Default)]
struct ByteCount(std::sync::Mutex<Vec<(Option<u64>, u64)>>);

impl Progress for ByteCount {
    fn start_bytes(&self, _: &str, total: Option<u64>) {
        self.0.lock().unwrap().push((total, 0));
    }
    fn at(&self, done: u64) {
        if let Some((_, most)) = self.0.lock().unwrap().last_mut() {
            *most = done.max(*most);
        }
    }
}

#[test]
fn passes_tell_the_bytes_of_all_files_and_a_stream_those_that_came() {
    let bench = Bench::new();
    let text = numbers(3000, "");
    let files = || vec![csv(&text), csv(&text.replace("a,b,y", "y,a,b"))];
    for memory in [60_000, 1 << 30] {
        let limits = ReadLimits {
            memory,
            ..ReadLimits::default()
        };
        let files = files()
            .into_iter()
            .map(|file| file.with_limits(limits))
            .collect();
        let request = FitRequest {
            source: RowSource::several(files).unwrap(),
            ..plain(&text)
        };
        let told = ByteCount::default();
        assert_eq!(
            fit(&request, &bench.path("files"), true, &told)
                .unwrap()
                .summary
                .rows,
            6000
        );
        let told = told.0.into_inner().unwrap();
        let size = 2 * text.len() as u64;
        assert!(
            !told.is_empty()
                && told
                    .iter()
                    .all(|(total, done)| *total == Some(size) && *done <= size)
        );
        assert_eq!(told.last().unwrap().1, size);
    }
    let stream = Box::new(std::io::Cursor::new(text.clone()));
    let limits = ReadLimits {
        memory: 60_000,
        ..ReadLimits::default()
    };
    let source = Source::from_stream("rows.csv", stream, None)
        .unwrap()
        .with_limits(limits);
    let told = ByteCount::default();
    let request = FitRequest {
        source: source.into(),
        ..plain(&text)
    };
    assert_eq!(
        fit(&request, &bench.path("stream"), true, &told)
            .unwrap()
            .summary
            .rows,
        3000
    );
    assert!(
        told.0
            .into_inner()
            .unwrap()
            .iter()
            .all(|(total, done)| total.is_none() && *done <= text.len() as u64)
    );
}
