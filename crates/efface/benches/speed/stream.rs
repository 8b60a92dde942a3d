//! One request after another, each for one row, through `Fitted`.

use std::time::Instant;

use efface::methods::Auto;
use efface::{Fitted, Form, Ridge, RowId};
use serde_json::json;

use super::BenchArguments;
use super::generated::{ColumnKind, GeneratedTable};
use super::machine::{RequestWatch, TimeSummary, factor_pass};

pub(crate) fn run(arguments: &BenchArguments) {
    let width = arguments.number(1, 1000);
    let rows = arguments.number(2, 10 * width);
    let count = arguments.number(3, 1000.min(rows / 2));
    let kind = ColumnKind::of(arguments.flag("--columns").unwrap_or("independent"));
    let form = form_named(arguments.flag("--form").unwrap_or("auto"));
    let recipe = Ridge::new(1.0).threads(arguments.threads()).form(form);
    let table = GeneratedTable::new(rows, width, kind).rows();
    let start = Instant::now();
    let mut fitted = Fitted::new(&recipe, table).unwrap();
    let fit = start.elapsed().as_secs_f64();
    let mut times = Vec::with_capacity(count);
    let mut measured = 0;
    let mut refinements = 0;
    let mut largest = 0.0f64;
    for i in 0..count {
        let id = RowId(((i * 7919) % rows) as u64);
        let one = RequestWatch::start(arguments.threads());
        let evidence = fitted.forget(&Auto::default(), &[id]).unwrap();
        times.push(one.seconds());
        measured += (evidence.bound_source == efface::evidence::BoundSource::Measured) as usize;
        refinements += evidence.refinements;
        largest = largest.max(evidence.relative_bound);
    }
    if arguments.flag("--trace").is_some() {
        let micro: Vec<u64> = times.iter().map(|t| (t * 1e6) as u64).collect();
        eprintln!("{micro:?}");
    }
    let summary = TimeSummary::of(times);
    println!(
        "{}",
        json!({"what": "stream", "d": width, "n": rows, "form": fitted.model().form().name(), "columns": kind.name(),
               "requests": count, "fit": fit, "p50": summary.p50, "p90": summary.p90, "p99": summary.p99, "mean": summary.mean,
               "worst": summary.worst, "measured": measured, "refinements": refinements, "largest_bound": largest,
               "refactorisations": fitted.model().refactorisations(), "factor_pass": factor_pass(width)})
    );
}

pub(crate) fn form_named(name: &str) -> Form {
    serde_json::from_value(json!(name)).expect("auto, factor, inverse, rows or iterative")
}
