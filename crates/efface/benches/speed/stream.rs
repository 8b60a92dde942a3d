//! One request after another, each for one row, through `Fitted`.

use std::time::Instant;

use efface::methods::Auto;
use efface::{BoundSource, Fitted, Form, Ridge, RowId};
use serde_json::json;

use super::generated::{ColumnKind, GeneratedTable};
use super::machine::{RequestWatch, TimeSummary, factor_pass};
use super::{BenchArguments, BenchTable};

pub(crate) fn run(arguments: &BenchArguments) {
    let mut table = BenchTable::new(arguments, "A stream of requests for one row each");
    let width = arguments.number(1, 1000);
    let rows = arguments.number(2, 10 * width);
    let count = arguments.number(3, 1000.min(rows / 2));
    let form = form_named(arguments.flag("--form").unwrap_or("auto"));
    let kinds = match arguments.flag("--columns") {
        Some(name) => vec![ColumnKind::of(name)],
        None => vec![ColumnKind::Independent, ColumnKind::Correlated],
    };
    for kind in kinds {
        for threads in arguments.threads() {
            let recipe = Ridge::new(1.0).threads(threads).form(form);
            let generated = GeneratedTable::new(rows, width, kind).rows();
            let start = Instant::now();
            let mut fitted = Fitted::new(&recipe, generated).unwrap();
            let fit = start.elapsed().as_secs_f64();
            let mut times = Vec::with_capacity(count);
            let mut measured = 0;
            let mut largest = 0.0f64;
            for i in 0..count {
                let id = RowId(((i * 7919) % rows) as u64);
                let one = RequestWatch::start(threads);
                let evidence = fitted.forget(&Auto::default(), &[id]).unwrap();
                times.push(one.seconds());
                measured += (evidence.bound_source == BoundSource::Measured) as usize;
                largest = largest.max(evidence.relative_bound);
            }
            let summary = TimeSummary::of(times);
            let pass = factor_pass(width);
            table.line(&json!({
                "what": "stream", "d": width, "n": rows, "form": fitted.model().form().name(), "columns": kind.name(),
                "threads": threads, "requests": count, "fit": fit, "p50": summary.p50, "p99": summary.p99,
                "mean": summary.mean, "worst": summary.worst, "factor_pass": pass, "p99/p50": summary.p99 / summary.p50,
                "mean/pass": summary.mean / pass, "measured": measured, "largest_bound": largest,
            }));
        }
    }
}

pub(crate) fn form_named(name: &str) -> Form {
    serde_json::from_value(json!(name)).expect("auto, factor, inverse, rows or iterative")
}
