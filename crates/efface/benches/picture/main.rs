//! The picture of the first page: how long each method takes to forget, and how much it leaves
//! undone.
//!
//! `picture FILE` measures, writes an SVG to FILE and prints the numbers; `cargo xtask picture`
//! runs it. The rows are generated. What is left is the distance to retraining as a share of the
//! distance that forgetting has to go, ‖θ′ − θ^{\D}‖/‖θ − θ^{\D}‖: 0 is the retrained model, 1 is a
//! model that has not moved.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should stop and say where"
)]

mod chart;

use std::time::Instant;

use efface::methods::{
    Auto, Exact, Influence, Newton, ProjectionResidual, Retrain, Summation, WarmStart,
};
use efface::synthetic::LinearProblem;
use efface::{Dense, Fit, Forget, Logistic, LogisticModel, Ridge, RidgeModel, RowId, Rows};
use faer::Mat;

use self::chart::{Chart, MethodGroup, MethodLine};

const ROWS: usize = 20_000;
const WIDTH: usize = 1_000;
const FORGOTTEN: usize = 10;
/// The three numbers above, as people write them.
const TITLE: &str = "Forgetting 10 of 20,000 rows with 1,000 features";
const LAMBDA: f64 = 1.0;
/// All work is done by the thread that is timed.
const THREADS: usize = 1;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let Some(file) = args.first() else {
        // `cargo test --benches` and a bare `cargo bench` come here.
        eprintln!("picture FILE: writes the picture of the first page");
        return;
    };
    let rows = rows();
    let chart = Chart {
        title: TITLE.into(),
        groups: vec![ridge(&rows), logistic(&rows)],
    };
    std::fs::write(file, chart.svg()).expect("the file can be written");
    print!("{}", chart.markdown());
}

/// Generated rows whose class, 1 or −1, follows a linear score with noise.
fn rows() -> Rows {
    let data = LinearProblem {
        rows: ROWS,
        width: WIDTH,
        seed: 7,
    }
    .generate();
    let classes = data
        .y
        .iter()
        .map(|&y| if y > 0.0 { 1.0 } else { -1.0 })
        .collect();
    Rows::new(Dense::new(data.x, WIDTH).expect("row-major"), classes, 1).expect("finite")
}

fn ridge(rows: &Rows) -> MethodGroup {
    let methods: [(&dyn Forget<RidgeModel>, &str); 5] = [
        (&Retrain, "retrain"),
        (&Exact, "exact"),
        (&Summation, "summation"),
        (&Influence, "influence"),
        (&ProjectionResidual::default(), "projection_residual"),
    ];
    let model = Ridge::new(LAMBDA).threads(THREADS).fit(rows).expect("fits");
    let parameters = |model: &RidgeModel| model.parameters().0;
    MethodGroup {
        name: "ridge".into(),
        lines: measure(&methods, &model, rows, parameters),
    }
}

fn logistic(rows: &Rows) -> MethodGroup {
    let methods: [(&dyn Forget<LogisticModel>, &str); 6] = [
        (&Retrain, "retrain"),
        (&Auto::default(), "auto"),
        (&WarmStart, "warm_start"),
        (&Newton::default(), "newton"),
        (&Influence, "influence"),
        (&ProjectionResidual::default(), "projection_residual"),
    ];
    let model = Logistic::new(LAMBDA)
        .threads(THREADS)
        .fit(rows)
        .expect("fits");
    let parameters = |model: &LogisticModel| model.parameters().0;
    MethodGroup {
        name: "logistic regression".into(),
        lines: measure(&methods, &model, rows, parameters),
    }
}

/// One line for each method: the mean time, what was claimed, and the share of the way that is
/// left. The first method is retraining.
fn measure<M>(
    methods: &[(&dyn Forget<M>, &str)],
    model: &M,
    rows: &Rows,
    parameters: impl Fn(&M) -> Mat<f64>,
) -> Vec<MethodLine> {
    // Rows from all over the table: 7,919 is a prime that does not divide the number of rows.
    let gone: Vec<RowId> = (0..FORGOTTEN)
        .map(|i| RowId((i * 7919 % ROWS) as u64))
        .collect();
    let before = parameters(model);
    let (retraining, _) = methods.first().expect("retraining is the first");
    let retrained = parameters(
        &retraining
            .forget(model, rows, &gone)
            .expect("forgets")
            .model,
    );
    let way = (&before - &retrained).norm_l2();
    let mut lines = Vec::new();
    for (method, name) in methods {
        // The first run warms the caches and is not counted. The others are timed together, because
        // the system counts processor time in steps of milliseconds.
        let outcome = method.forget(model, rows, &gone).expect("forgets");
        let watch = Stopwatch::start();
        let mut runs = 0;
        while runs < 2 || watch.seconds() < 0.5 {
            method.forget(model, rows, &gone).expect("forgets");
            runs += 1;
        }
        let seconds = watch.seconds() / f64::from(runs);
        lines.push(MethodLine {
            method: (*name).into(),
            claim: outcome.evidence.claim().name().into(),
            relative_bound: outcome.evidence.relative_bound,
            seconds,
            left: (&parameters(&outcome.model) - &retrained).norm_l2() / way,
        });
    }
    lines
}

/// Measures the processor time of this thread, which other programs on the machine do not lengthen;
/// the time of day where the system does not tell it.
struct Stopwatch {
    begin: Instant,
    processor: Option<f64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            begin: Instant::now(),
            processor: processor_seconds(),
        }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(before), Some(now)) => now - before,
            _ => self.begin.elapsed().as_secs_f64(),
        }
    }
}

/// How long this thread has been on a processor. Linux counts it in nanoseconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}
