//! Forgetting from a classifier through the default door, for `cargo xtask bench classifiers` to
//! lay out.
//!
//! `classifiers FOLDER REQUESTS [TOLERANCE] [--iterative]` forgets one row after another, each by
//! `auto`; the folder is made by `xtask/bench/classifiers.py prepare`, and the parameters that are
//! reached are left in it as `theta`. With `--iterative` no curvature is kept.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use efface::methods::Auto;
use efface::{
    Amend, Classes, Csr, Dense, Evidence, Features, Fit, Fitted, Logistic, LogisticModel, RowId,
    RowStore, Rows, Softmax,
};
use serde_json::{Value, json};

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let iterative = args.iter().any(|arg| arg == "--iterative");
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "--iterative")
        .collect();
    match args[..] {
        [folder, requests] => forget(folder, requests, None, !iterative),
        [folder, requests, tolerance] => forget(folder, requests, Some(tolerance), !iterative),
        // `cargo test --benches` and a bare `cargo bench` come here.
        _ => eprintln!("classifiers FOLDER REQUESTS [TOLERANCE] [--iterative]"),
    }
}

/// How many threads `cargo xtask bench --threads` asks for.
fn threads(default: usize) -> usize {
    std::env::var("EFFACE_THREADS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(default)
}

fn numbers<const N: usize>(path: &Path) -> Vec<[u8; N]> {
    let raw = std::fs::read(path).expect("prepared");
    raw.chunks_exact(N)
        .map(|chunk| chunk.try_into().expect("N bytes"))
        .collect()
}

fn rows(folder: &Path) -> Rows {
    let about = std::fs::read_to_string(folder.join("about.json")).expect("prepared");
    let about: Value = serde_json::from_str(&about).expect("JSON");
    let number = |key: &str| about[key].as_u64().expect("a number") as usize;
    let width = number("width");
    let classes =
        Classes::new((0..number("classes")).map(|c| c.to_string()).collect()).expect("two");
    let floats = |name: &str| -> Vec<f64> {
        numbers(&folder.join(name))
            .into_iter()
            .map(f64::from_le_bytes)
            .collect()
    };
    let features: Features = if about["sparse"] == true {
        let starts = numbers(&folder.join("starts"))
            .into_iter()
            .map(|b| u64::from_le_bytes(b) as usize);
        let columns = numbers(&folder.join("columns"))
            .into_iter()
            .map(u32::from_le_bytes);
        Csr::from_parts(starts.collect(), columns.collect(), floats("values"), width)
            .expect("ordered")
            .into()
    } else {
        Dense::new(floats("x"), width).expect("row-major").into()
    };
    let mut targets = Vec::new();
    for class in std::fs::read(folder.join("y")).expect("prepared") {
        classes.encode(class as usize, &mut targets);
    }
    Rows::new(features, targets, classes.outputs()).expect("finite")
}

fn forget(folder: &str, requests: &str, tolerance: Option<&str>, curvature: bool) {
    let requests: usize = requests.parse().expect("a count");
    let auto = Auto {
        tolerance: tolerance.map(|text| text.parse().expect("a number")),
    };
    let folder = PathBuf::from(folder);
    let rows = rows(&folder);
    let count = rows.len();
    if rows.outputs() == 1 {
        run(
            &Logistic::new(1.0).threads(threads(1)).curvature(curvature),
            rows,
            &folder,
            |k| RowId((k * 7919 % count) as u64),
            (requests, &auto),
        );
    } else {
        run(
            &Softmax::new(1.0).threads(threads(1)).curvature(curvature),
            rows,
            &folder,
            |k| RowId((k * 7919 % count) as u64),
            (requests, &auto),
        );
    }
}

fn run<F: Fit<Model = LogisticModel>>(
    recipe: &F,
    rows: Rows,
    folder: &Path,
    row: impl Fn(usize) -> RowId,
    (requests, auto): (usize, &Auto),
) {
    let start = Instant::now();
    let mut fitted = Fitted::new(recipe, rows).expect("fits");
    let fit = start.elapsed().as_secs_f64();
    let mut times = Vec::new();
    let mut found: Vec<Evidence> = Vec::new();
    for request in 0..requests {
        let start = Instant::now();
        found.push(fitted.forget(auto, &[row(request)]).expect("forgets"));
        times.push(start.elapsed().as_secs_f64());
    }
    let first = times[0];
    let slowest = times.iter().copied().fold(0.0, f64::max);
    times.sort_by(f64::total_cmp);
    let (coefficients, intercepts) = fitted.model().parameters();
    let mut theta = Vec::new();
    for (output, intercept) in intercepts.iter().enumerate() {
        theta.extend(intercept.to_le_bytes());
        coefficients
            .col_as_slice(output)
            .iter()
            .for_each(|value| theta.extend(value.to_le_bytes()));
    }
    std::fs::write(folder.join("theta"), theta).expect("the folder can be written");
    let last = found.last().expect("a request");
    let line = json!({
        "what": "efface",
        "fit": fit,
        "first": first,
        "median": times[times.len() / 2],
        "slowest": slowest,
        "bound": last.relative_bound,
        "largest_bound": found.iter().map(|one| one.relative_bound).fold(0.0, f64::max),
        "rows_read": last.rows_read,
        "reason": last.reason,
        "waiting": fitted.model().waiting(),
    });
    println!("{line}");
}
