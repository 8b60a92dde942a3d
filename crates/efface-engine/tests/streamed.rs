//! Rows that are too many for memory: they are read in batches, and the model is the one of all of them in memory.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::{Method, MultinomialNb};
use efface_engine::{Engine, Error, FitRequest, ForgetOptions, RowSource, ScoringPlan, Silent, fit};
use efface_io::{ReadLimits, Source};

/// The request with so little memory that its rows are read in batches.
fn little_memory(request: &FitRequest, text: &str, memory: u64) -> FitRequest {
    let limits = ReadLimits { memory, ..ReadLimits::default() };
    let source = Source::from_bytes("table.csv", text, None).unwrap().with_limits(limits);
    FitRequest { source: RowSource::from(source), ..request.clone() }
}

fn answers(engine: &Engine, text: &str) -> Vec<f64> {
    predictions(engine, text).iter().flat_map(|row| row.scores.clone()).collect()
}

fn counted(text: &str) -> FitRequest {
    let mut request = classes(text);
    request.model = MultinomialNb::default().into();
    request
}

#[test]
fn batches_give_the_model_of_all_rows_and_it_forgets_alike() {
    let all = lines(900);
    let text = table(&all);
    let bench = Bench::new();
    for (name, request) in [("dense", dense(&text)), ("sparse", sparse(&text)), ("counted", counted(&text))] {
        let mut whole = bench.fit(&format!("{name}-whole"), &request);
        let small = little_memory(&request, &text, 12_000);
        let report = fit(&small, &bench.path(name), true, &Silent).unwrap();
        assert!(report.remarks.iter().any(|remark| remark.contains("read in batches")), "{name}");
        // Without the rows, what the sums can be off by is counted at its worst, and said where it is more than the tolerance.
        assert!(report.summary.relative_bound < 1e-8, "{name} {:e}", report.summary.relative_bound);
        assert_eq!(report.tolerance_missed, report.summary.relative_bound > 1e-9, "{name}");
        let mut streamed = Engine::open(&bench.path(name)).unwrap();
        assert_eq!(streamed.summary().unwrap().rows, 900);
        sound(&streamed);
        let close = |a: &Engine, b: &Engine| {
            let a = answers(a, &text);
            let b = answers(b, &text);
            assert_eq!(a.len(), b.len());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-10 * (1.0 + b.abs())), "{name}");
        };
        close(&streamed, &whole);
        for engine in [&mut streamed, &mut whole] {
            let gone = ids(&[&all[3].id, &all[899].id]);
            engine.forget(&by_method(&gone, &Method::default()), &ForgetOptions::default()).unwrap();
        }
        close(&streamed, &whole);
        sound(&streamed);
        streamed.learn(csv(&table(&[marked_line()])), &Silent).unwrap();
        assert_eq!(streamed.summary().unwrap().rows, 899);
    }
}

fn marked_line() -> Line {
    Line { id: "late".into(), cells: "late,p1,3.5,1999,red,tall green,7,3\n".into() }
}

#[test]
fn rows_without_ids_and_rows_held_out_go_the_same_way() {
    let text = table(&lines(600));
    let bench = Bench::new();
    let mut request = dense(&text);
    request.id = None;
    request.ignore.push("id".into());
    request.scoring = Some(ScoringPlan::HoldOut { share: 0.2, seed: 3 });
    let whole = bench.fit("whole", &request);
    fit(&little_memory(&request, &text, 20_000), &bench.path("small"), true, &Silent).unwrap();
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
    assert!(matches!(&found, Error::RepeatedId { first: 3, second: 602, .. }), "{found}");
    // A broken cell in a late batch.
    let broken = format!("{}late,p1,3.5,1999,red,tall,much,3\n", table(&all));
    let found = kind(&little_memory(&dense(&broken), &broken, 20_000)).to_string();
    assert!(found.contains("602") && found.contains("price"), "{found}");
    // A classifier reads its rows many times.
    let text = table(&all);
    let mut logistic = classes(&text);
    logistic.model = efface::Softmax::new(1.0).into();
    let found = kind(&little_memory(&logistic, &text, 20_000)).to_string();
    assert!(found.contains("memory"), "{found}");
    // Sums that would not fit by themselves.
    let found = kind(&little_memory(&sparse(&text), &text, 1_000)).to_string();
    assert!(found.contains("take more than 1000 bytes of memory"), "{found}");
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
