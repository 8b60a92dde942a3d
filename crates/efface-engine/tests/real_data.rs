//! The whole way on real data: fit from the file, forget, and compare with a fit that never saw the
//! rows. The sets are not part of the repository; without them these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use std::path::{Path, PathBuf};

use efface::features::{Cell, Synonyms, TextAugmenter, WordSource};
use efface_engine::{
    AuditRequest, AuditRows, Engine, FitRequest, ForgetOptions, ForgetRequest, Parameters,
    RowSelection, Silent, fit,
};
use efface_io::{Source, TableRecord};

/// A file of the data folder: EFFACE_DATA, or `shared/data` beside the repository.
fn data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EFFACE_DATA").map_or(beside, PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        eprintln!(
            "skipped: there is no {}; set EFFACE_DATA to the folder that holds it",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// That table as CSV text, without the rows that `gone` picks by position and cells.
fn without(path: &Path, gone: impl Fn(usize, &[Cell]) -> bool) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut table = efface_io::open(path, None).unwrap().table().unwrap();
    let mut csv = table
        .columns()
        .iter()
        .map(|name| quote(name))
        .collect::<Vec<_>>()
        .join(",")
        + "\n";
    let mut record = TableRecord {
        line: 0,
        cells: Vec::new(),
    };
    let mut at = 0;
    while table.read(&mut record).unwrap() {
        if !gone(at, &record.cells) {
            let cells = record.cells.iter().map(|cell| match cell {
                Cell::Missing => String::new(),
                Cell::Number(number) => number.to_string(),
                Cell::Text(text) => quote(text),
            });
            csv += &(cells.collect::<Vec<_>>().join(",") + "\n");
        }
        at += 1;
    }
    csv
}

/// The commonest value of the first column, and how often it stands there.
fn busiest(path: &Path) -> (String, usize) {
    let table = efface_io::open(path, None).unwrap().table().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for record in table {
        if let Some(Cell::Text(name)) = record.unwrap().cells.into_iter().next() {
            *counts.entry(name).or_insert(0) += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap()
}

/// The relative distance of the coefficients, by feature name; a feature that one side lacks counts
/// as 0 there.
fn distance(a: &Parameters, b: &Parameters) -> f64 {
    let named = |p: &Parameters| -> std::collections::BTreeMap<String, f64> {
        p.features
            .iter()
            .cloned()
            .zip(p.table("coefficients").iter().map(|c| c[0]))
            .collect()
    };
    let a = named(a);
    let b = named(b);
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &std::collections::BTreeMap<String, f64>, name: &String| {
        of.get(name).copied().unwrap_or(0.0)
    };
    let off: f64 = names
        .iter()
        .map(|name| (value(&a, name) - value(&b, name)).powi(2))
        .sum();
    (off / b.values().map(|v| v * v).sum::<f64>()).sqrt()
}

/// Fits, forgets, fits without, and returns how far apart the two ends are and the reported
/// relative bound.
fn compare(
    path: &Path,
    prepare: impl Fn(&mut FitRequest),
    who: &RowSelection,
    rest: String,
) -> (f64, f64, usize) {
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.efface");
    let left = folder.path().join("left.efface");
    let mut request = FitRequest::new(efface_io::open(path, None).unwrap());
    prepare(&mut request);
    fit(&request, &all, false, &Silent).unwrap();
    let mut engine = Engine::open(&all).unwrap();
    let report = engine
        .forget(&ForgetRequest::new(who.clone()), &ForgetOptions::default())
        .unwrap();
    assert_eq!(report.claim, "exact");
    let mut request = FitRequest::new(Source::from_bytes("left.csv", rest, None).unwrap());
    prepare(&mut request);
    fit(&request, &left, false, &Silent).unwrap();
    let truth = Engine::open(&left).unwrap().parameters().unwrap();
    let found = engine.parameters().unwrap();
    assert_eq!(found.rows, truth.rows);
    (
        distance(&found, &truth),
        report.evidence.relative_bound,
        report.forgotten,
    )
}

#[test]
fn california_housing() {
    let Some(path) = data("california-housing/california-housing.csv") else {
        return;
    };
    let ids: Vec<String> = (0..50).map(|i| (i * 400).to_string()).collect();
    let rest = without(&path, |at, _| at % 400 == 0 && at < 20_000);
    let prepare = |request: &mut FitRequest| {
        request.targets = vec!["median_house_value".into()];
    };
    let (off, bound, gone) = compare(&path, prepare, &RowSelection::Ids(ids), rest);
    assert!(
        off < 1e-10 && bound < 1e-9 && gone == 50,
        "{off:e} {bound:e} {gone}"
    );
}

#[test]
fn a_reviewer_of_musical_instruments() {
    let Some(path) = data("amazon-musical/musical-instruments.csv.gz") else {
        return;
    };
    // A supplied vocabulary, so that both fits have the same columns.
    let words = "amp bass cable case good great guitar love mic pedal price quality sound string strings strap tone tuner";
    let words: Vec<String> = words.split(' ').map(String::from).collect();
    let (reviewer, reviews) = busiest(&path);
    let rest = without(&path, |_, cells| cells[0] == Cell::Text(reviewer.clone()));
    let prepare = |request: &mut FitRequest| {
        request.targets = vec!["stars".into()];
        request.text = vec!["text".into()];
        request.subject = Some("reviewer_id".into());
        request.words = WordSource::Supplied(words.clone());
    };
    let who = RowSelection::Subject {
        column: "reviewer_id".into(),
        value: reviewer.clone(),
    };
    let (off, bound, gone) = compare(&path, prepare, &who, rest);
    assert!(
        off < 1e-10 && bound < 1e-9 && gone == reviews,
        "{off:e} {bound:e} {gone}"
    );
}

#[test]
fn adult_with_levels_and_classes() {
    let Some(path) = data("adult/adult.csv.gz") else {
        return;
    };
    let ids: Vec<String> = (0..20).map(|i| (i * 1000 + 7).to_string()).collect();
    let rest = without(&path, |at, _| at % 1000 == 7 && at < 20_000);
    let prepare = |request: &mut FitRequest| {
        request.targets = vec!["income".into()];
        request.classify = true;
        request.ignore = vec!["split".into()];
    };
    let (off, _, gone) = compare(&path, prepare, &RowSelection::Ids(ids), rest);
    // Incomes in dollars beside shares of a thousand people: retraining twice does not agree to
    // more digits.
    assert!(off < 1e-8 && gone == 20, "{off:e} {gone}");
}

/// The news as the source paper has them: 2,225 articles become 2,325. 99 of them are there twice,
/// which an audit tells.
#[test]
fn a_hundred_articles_more_and_the_twins_among_them() {
    let Some(path) = data("bbc/bbc-text.csv") else {
        return;
    };
    let Some(words) = data("wordnet/wordnet30-synonyms.tsv") else {
        return;
    };
    let table =
        Synonyms::read(std::io::BufReader::new(std::fs::File::open(words).unwrap())).unwrap();
    assert!((40_000..=44_599).contains(&table.len()), "{}", table.len());
    let mut texts = Vec::new();
    for record in efface_io::open(&path, None).unwrap().table().unwrap() {
        if let Some(Cell::Text(text)) = record.unwrap().cells.pop() {
            texts.push(text);
        }
    }
    let made = TextAugmenter::new(&table, 1).more(&texts, 100).unwrap();
    assert_eq!(texts.len() + made.len(), 2325);
    assert!(
        made.iter()
            .all(|(at, text)| *text != texts[*at] && !texts.contains(text))
    );

    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("news.efface");
    let mut request = FitRequest::new(efface_io::open(&path, None).unwrap());
    request.targets = vec!["category".into()];
    request.text = vec!["text".into()];
    request.words = WordSource::Learned(200);
    request.classify = true;
    fit(&request, &model, false, &Silent).unwrap();
    let engine = Engine::open_read_only(&model).unwrap();
    let asked = AuditRequest {
        oracles: 0,
        ..AuditRequest::new(AuditRows::Sample(20))
    };
    let report = engine.audit(&asked, &Silent).unwrap();
    // 99 pairs, and a few more that differ only in words beyond the two hundred.
    assert!(
        (198..300).contains(&report.twins.rows_with_twins),
        "{:?}",
        report.twins
    );
    assert!(
        report
            .state("auto")
            .unwrap()
            .distance
            .unwrap()
            .fraction
            .unwrap()
            < 1e-8
    );
}
