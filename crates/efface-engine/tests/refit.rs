//! A forget that is acknowledged while a new fit over the same file runs is never lost.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Bench, dense, lines, table};
use efface_engine::{
    Engine, Error, FitRequest, ForgetOptions, ForgetRequest, Progress, RowSelection, Sharding,
    Silent, fit, refit,
};

/// Forgets a row of the old model at the moment when the new one is being fitted.
struct ForgetMeanwhile<'a> {
    path: &'a Path,
    id: &'a str,
    done: AtomicBool,
}

impl<'a> ForgetMeanwhile<'a> {
    fn of(path: &'a Path, id: &'a str) -> Self {
        Self {
            path,
            id,
            done: AtomicBool::new(false),
        }
    }
}

impl Progress for ForgetMeanwhile<'_> {
    fn start(&self, what: &str, _: Option<u64>) {
        if what == "fitting" && !self.done.swap(true, Ordering::Relaxed) {
            let request = ForgetRequest::new(RowSelection::Ids(vec![self.id.into()]));
            let report = Engine::open(self.path)
                .unwrap()
                .forget(&request, &ForgetOptions::default())
                .unwrap();
            assert_eq!(report.forgotten, 1, "the forget is acknowledged");
        }
    }
}

fn is_forgotten(path: &Path, id: &str) -> bool {
    let request = ForgetRequest::new(RowSelection::Ids(vec![id.into()]));
    let asked = Engine::open(path)
        .unwrap()
        .forget(&request, &ForgetOptions::dry_run());
    matches!(asked, Err(Error::WasForgotten { .. }))
}

#[test]
fn a_refit_that_would_bring_the_row_back_is_refused_and_the_model_stays() {
    let bench = Bench::new();
    let rows = lines(40);
    let request = dense(&table(&rows));
    drop(bench.fit("model", &request));
    let path = bench.path("model");
    let seventh = rows[7].id.as_str();
    let meanwhile = ForgetMeanwhile::of(&path, seventh);
    let refused = refit(&request, &path, &meanwhile).unwrap_err();
    assert!(meanwhile.done.load(Ordering::Relaxed));
    assert!(
        matches!(&refused, Error::ComesBack { id, .. } if id == seventh),
        "{refused}"
    );
    assert!(is_forgotten(&path, seventh));
    // A file without the row is welcome, and the row stays on the list.
    let left = dense(&table(rows.iter().filter(|line| line.id != seventh)));
    let report = refit(&left, &path, &Silent).unwrap();
    assert_eq!(
        (report.summary.rows, report.summary.receipts, report.carried),
        (39, 3, 1)
    );
    assert!(is_forgotten(&path, seventh));
    // One that is forgotten while a fit of other rows runs does no harm to the fit.
    let ninth = rows[9].id.as_str();
    let fewer = dense(&table(
        rows.iter()
            .filter(|line| line.id != seventh && line.id != ninth),
    ));
    let report = refit(&fewer, &path, &ForgetMeanwhile::of(&path, ninth)).unwrap();
    assert_eq!((report.summary.rows, report.summary.receipts), (38, 5));
    assert!(is_forgotten(&path, ninth) && is_forgotten(&path, seventh));
    assert!(
        Engine::open(&path)
            .unwrap()
            .verify(None)
            .unwrap()
            .iter()
            .all(|check| check.passed)
    );
}

/// A model in shards goes by the numbers of its rows, which a refit continues.
#[test]
fn models_that_go_by_numbers_are_refitted_too() {
    let bench = Bench::new();
    let rows = lines(60);
    let sharding = Some(Sharding {
        shards: 3,
        slices: 2,
        seed: 1,
        aggregation: None,
        threads: 1,
    });
    let request = |text: &str| FitRequest {
        sharding,
        ..dense(text)
    };
    drop(bench.fit("model", &request(&table(&rows[..40]))));
    let path = bench.path("model");
    refit(&request(&table(&rows[10..])), &path, &Silent).unwrap();
    let who = RowSelection::Ids(vec![rows[20].id.clone()]);
    let report = Engine::open(&path)
        .unwrap()
        .forget(&ForgetRequest::new(who), &ForgetOptions::default())
        .unwrap();
    assert_eq!((report.rows, report.claim.as_str()), (49, "exact"));
    assert!(
        Engine::open(&path)
            .unwrap()
            .verify(None)
            .unwrap()
            .iter()
            .all(|check| check.passed)
    );
}

#[test]
fn a_fit_that_overwrites_is_refused_too() {
    let bench = Bench::new();
    let rows = lines(40);
    let request = dense(&table(&rows));
    drop(bench.fit("model", &request));
    let path = bench.path("model");
    let seventh = rows[7].id.as_str();
    let refused = fit(&request, &path, true, &ForgetMeanwhile::of(&path, seventh)).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("has forgotten rows while the new one was fitted"),
        "{refused}"
    );
    assert!(is_forgotten(&path, seventh));
    assert_eq!(Engine::open(&path).unwrap().summary().unwrap().rows, 39);
}
