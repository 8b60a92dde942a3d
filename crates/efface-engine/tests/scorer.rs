//! A model that is loaded once and shared between threads, and rows that were never a file.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use efface::features::Cell;
use efface_engine::{
    Engine, FitRequest, ForgetOptions, ForgetRequest, Prediction, RecordTable, RowSource, Scorer,
    Silent, SparseRows,
};
use efface_io::Source;

/// The rows of a CSV text as records in memory.
fn records(text: &str) -> RecordTable {
    let mut rows = text
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let columns = rows.next().unwrap();
    let cells = rows
        .map(|row| row.into_iter().map(Cell::Text).collect())
        .collect();
    RecordTable::new(columns, cells).unwrap()
}

/// What a prediction says beside the line, which records count without a header.
fn told(predictions: &[Prediction]) -> Vec<(Option<String>, Vec<f64>, Option<String>)> {
    predictions
        .iter()
        .map(|row| (row.id.clone(), row.scores.clone(), row.label.clone()))
        .collect()
}

#[test]
fn threads_score_while_another_forgets() {
    let bench = Bench::new();
    let all = lines(60);
    let text = table(&all);
    let mut engine = bench.fit("model", &sparse(&text));
    let scorer: Scorer = engine.scorer().unwrap();
    let before = told(&scorer.predict_all(csv(&text)).unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let score = || {
            let scorer = scorer.clone();
            let asked = records(&text);
            let mut passes = 0;
            // At least one pass begins after the last forget.
            let mut is_last = false;
            while !is_last {
                is_last = is_over.load(Ordering::SeqCst);
                assert_eq!(told(&scorer.predict_all(&asked).unwrap()), before);
                passes += 1;
            }
            passes
        };
        let scoring = [threads.spawn(score), threads.spawn(score)];
        for line in &all[..8] {
            engine
                .forget(
                    &ForgetRequest::new(ids(&[&line.id])),
                    &ForgetOptions::default(),
                )
                .unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(scoring.into_iter().all(|thread| thread.join().unwrap() > 0));
    });
    // A scorer stays the model that was loaded; the next one is the model of now.
    assert_eq!(
        (scorer.generation(), engine.summary().unwrap().generation),
        (0, 8)
    );
    let after = engine.scorer().unwrap();
    assert_eq!(after.generation(), 8);
    assert_ne!(told(&after.predict_all(csv(&text)).unwrap()), before);
    assert_eq!(after.outputs(), ["price"]);
    assert!(after.classes().is_none());
}

#[test]
fn records_give_the_scores_of_their_file() {
    let bench = Bench::new();
    let text = table(&lines(40));
    for (name, request) in [
        ("dense", dense(&text)),
        ("sparse", sparse(&text)),
        ("classes", classes(&text)),
    ] {
        let engine = bench.fit(name, &request);
        let scorer = engine.scorer().unwrap();
        let from_file = scorer.predict_all(csv(&text)).unwrap();
        let from_memory = scorer.predict_all(records(&text)).unwrap();
        assert_eq!(told(&from_file), told(&from_memory));
        assert_eq!(
            (from_file[0].line, from_memory[0].line),
            (2, 1),
            "records have no header"
        );
        let mut again = Vec::new();
        let count = engine.predict(records(&text), &mut |row| {
            again.push(row);
            Ok(())
        });
        assert_eq!((count.unwrap().rows, told(&again)), (40, told(&from_file)));
    }
}

#[test]
fn sparse_rows_give_the_scores_of_their_file() {
    let bench = Bench::new();
    let text = "1 1:0.5 3:2\n0 2:1\n3 1:1 2:1 3:1\n2 3:0.25\n";
    let source = Source::from_bytes("rows.svm", text, None).unwrap();
    let rows = SparseRows::new(vec![
        (1.0, vec![(1, 0.5), (3, 2.0)]),
        (0.0, vec![(2, 1.0)]),
        (3.0, vec![(1, 1.0), (2, 1.0), (3, 1.0)]),
        (2.0, vec![(3, 0.25)]),
    ])
    .unwrap();
    let from_file = bench.fit("file", &FitRequest::new(&source));
    let from_memory = bench.fit("memory", &FitRequest::new(&rows));
    assert_eq!(
        from_file.parameters().unwrap(),
        from_memory.parameters().unwrap()
    );
    let scores = |engine: &Engine, rows: RowSource| {
        told(&engine.scorer().unwrap().predict_all(rows).unwrap())
    };
    assert_eq!(
        scores(&from_file, source.into()),
        scores(&from_memory, rows.into())
    );
    let error = SparseRows::new(vec![(0.0, vec![(2, 1.0), (1, 1.0)])]).unwrap_err();
    assert_eq!(error.to_string(), "line 1: the indices do not increase");
}

#[test]
fn models_of_records_are_those_of_their_file() {
    let bench = Bench::new();
    let all = lines(50);
    let first = table(&all[..40]);
    let more = table(&all[40..]);
    let mended = table(&all[5..8]).replace("red", "blue");
    let mut from_file = bench.fit("file", &dense(&first));
    let in_memory = FitRequest {
        source: records(&first).into(),
        ..dense(&first)
    };
    let mut from_memory = bench.fit("memory", &in_memory);
    from_file.learn(csv(&more), &Silent).unwrap();
    from_memory.learn(records(&more), &Silent).unwrap();
    from_file.amend(csv(&mended), &Silent).unwrap();
    from_memory.amend(records(&mended), &Silent).unwrap();
    assert_close(&from_file, &from_memory);
    sound(&from_memory);
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let text = |text: &str| Cell::Text(text.into());
    let twice = RecordTable::new(vec!["a".into(), "a".into()], Vec::new()).unwrap_err();
    assert!(
        twice
            .to_string()
            .starts_with("rows in memory: columns share a name"),
        "{twice}"
    );
    let short = RecordTable::new(vec!["a".into(), "b".into()], vec![vec![text("x")]]).unwrap_err();
    assert_eq!(
        short.to_string(),
        "line 1: the row has 1 cells where there are 2 columns"
    );
    let named = |name: &str, value: &str| (name.to_owned(), text(value));
    let twice =
        RecordTable::from_records(vec![vec![named("a", "x"), named("a", "y")]]).unwrap_err();
    assert!(twice.to_string().contains("share a name"), "{twice}");
    let bench = Bench::new();
    let engine = bench.fit("model", &dense(&table(&lines(20))));
    let few = RecordTable::from_records(vec![vec![named("size", "3")]]).unwrap();
    assert!(engine.scorer().unwrap().predict_all(few).is_err());
    let columns = HEADER.trim().split(',').map(str::to_owned).collect();
    let none = RecordTable::new(columns, Vec::new()).unwrap();
    let mut engine = engine;
    let error = engine.learn(none, &Silent).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rows in memory has no rows; at least one is needed"
    );
}

#[test]
fn a_model_in_memory_is_not_that_of_a_log_which_others_continued() {
    let bench = Bench::new();
    let all = lines(30);
    let mut one = bench.fit("model", &dense(&table(&all)));
    one.forget(
        &ForgetRequest::new(ids(&[&all[0].id])),
        &ForgetOptions::default(),
    )
    .unwrap();
    let mut other = Engine::open(&bench.path("model")).unwrap();
    other
        .forget(
            &ForgetRequest::new(ids(&[&all[1].id])),
            &ForgetOptions::default(),
        )
        .unwrap();
    // The log grows without a new model. What the first engine remembers is older than that.
    one.rotate_key(&efface_engine::KeyRotation::default())
        .unwrap();
    one.forget(
        &ForgetRequest::new(ids(&[&all[2].id])),
        &ForgetOptions::default(),
    )
    .unwrap();
    let fresh = bench.fit("fresh", &dense(&table(&all[3..])));
    assert_close(&one, &fresh);
}
