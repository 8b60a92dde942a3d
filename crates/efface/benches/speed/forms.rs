//! Every form in which curvature can be kept, on tables of every kind, and how far the one that
//! `auto` takes is from the best.

use efface::methods::Auto;
use efface::{Fit, Fitted, Forget, Form, Ridge, RidgeModel, RowId, RowStore, Rows};
use serde_json::json;

use super::generated::{ColumnKind, GeneratedTable, sparse_table};
use super::machine::{RequestWatch, TimeSummary};
use super::{BenchArguments, BenchTable};

/// What a form costs on a table, in processor seconds with one thread, seconds of the day with
/// more, and in bytes.
struct FormCost {
    form: Form,
    fit: f64,
    /// A request that begins with a stored model and ends with one, as a command does.
    command: f64,
    bytes: f64,
    /// Bytes that a request as a command reads and writes: the model both ways, and all rows where
    /// passes go over them.
    moved: f64,
}

/// So many seconds a byte counts as that a command reads or writes: 100 MB a second to and from a
/// disk.
const SECONDS_PER_BYTE: f64 = 1e-8;

impl FormCost {
    fn measure(form: Form, rows: &Rows, threads: usize) -> Option<Self> {
        let recipe = Ridge::new(1.0).form(form).threads(threads);
        let watch = RequestWatch::start(threads);
        let model = recipe.fit(rows).ok()?;
        let fit = watch.seconds();
        let chosen = model.form();
        let state = model.to_state().ok()?;
        let bytes = 8.0
            * (state.a.len() + state.a_low.len() + state.factor.len() + 4 * state.theta.len())
                as f64;
        let times = (0..3).map(|i| {
            // A command of the iterative form reads all rows, and of the others only those that
            // leave.
            let beforehand = (chosen != Form::Iterative).then(|| rows.clone());
            let watch = RequestWatch::start(threads);
            let read = RidgeModel::from_state_with_rows(&state, rows).ok()?;
            let mut fitted = Fitted::of(read, beforehand.unwrap_or_else(|| rows.clone()));
            fitted
                .forget(&Auto::default() as &dyn Forget<RidgeModel>, &[RowId(i * 7)])
                .ok()?;
            fitted.settle().ok()?;
            fitted.model().to_state().ok()?;
            Some(watch.seconds())
        });
        let times: Option<Vec<f64>> = times.collect();
        let row_bytes = |row: efface::RowView<'_>| {
            let count = row.features.entries().len();
            count * if rows.is_sparse() { 12 } else { 8 }
        };
        let read = if chosen == Form::Iterative {
            rows.iter().map(row_bytes).sum::<usize>()
        } else {
            0
        };
        let moved = 2.0 * bytes + read as f64;
        Some(Self {
            form: chosen,
            fit,
            command: TimeSummary::of(times?).p50,
            bytes,
            moved,
        })
    }

    /// A fit and a request with what it reads and writes.
    fn total(&self) -> f64 {
        self.fit + self.command + self.moved * SECONDS_PER_BYTE
    }
}

pub(crate) fn run(arguments: &BenchArguments) {
    let mut table = BenchTable::new(arguments, "The choice of form");
    let first = arguments.number(1, 1).max(1);
    let last = arguments.number(2, TABLES.len());
    for threads in arguments.threads() {
        for (name, rows) in TABLES.iter().take(last).skip(first - 1) {
            measure_table(&mut table, name, &rows(), threads);
        }
    }
}

/// A table, made when its turn comes: all of them together would fill the memory of a small
/// machine.
type LazyTable = fn() -> Rows;

const TABLES: [(&str, LazyTable); 11] = [
    ("dense tall, 50,000 × 50", || dense(50_000, 50)),
    ("dense, 8,000 × 800", || dense(8_000, 800)),
    ("dense, 4,000 × 2,000", || dense(4_000, 2_000)),
    ("dense wide, 500 × 2,500", || dense(500, 2_500)),
    ("dense wide, correlated, 500 × 2,500", || {
        GeneratedTable::new(500, 2_500, ColumnKind::Correlated).rows()
    }),
    ("words, 20,000 × 1,500, 30 a row", || {
        sparse_table(20_000, 1_500, 30)
    }),
    ("words, 100,000 × 3,000, 20 a row", || {
        sparse_table(100_000, 3_000, 20)
    }),
    ("words, 3,000 × 4,000, 80 a row", || {
        sparse_table(3_000, 4_000, 80)
    }),
    ("Reuters' shape, 7,770 × 8,315, 44 a row", || {
        sparse_table(7_770, 8_315, 44)
    }),
    ("reviews, 10,000 × 10,000, 60 a row", || {
        sparse_table(10_000, 10_000, 60)
    }),
    ("wide, 20,000 × 100,000, 60 a row", || {
        sparse_table(20_000, 100_000, 60)
    }),
];

/// Above this width a d×d matrix takes more memory than a small machine has, so that the factor is
/// not measured beside.
const WIDEST_FACTOR: usize = 12_000;

fn dense(rows: usize, width: usize) -> Rows {
    GeneratedTable::new(rows, width, ColumnKind::Independent).rows()
}

/// Measures the form that `auto` takes and the other one.
fn measure_table(table: &mut BenchTable, name: &str, rows: &Rows, threads: usize) {
    let chosen = FormCost::measure(Form::Auto, rows, threads).expect("auto fits");
    let others = [Form::Factor, Form::Iterative].into_iter().filter(|form| {
        *form != chosen.form && (*form == Form::Iterative || rows.width() <= WIDEST_FACTOR)
    });
    let mut best = chosen.total();
    let mut costs = vec![];
    for form in others {
        if let Some(cost) = FormCost::measure(form, rows, threads) {
            best = best.min(cost.total());
            costs.push(cost);
        }
    }
    let other = costs.first();
    table.line(&json!({
        "what": "forms", "table": name, "threads": threads, "auto takes": chosen.form.name(), "fit": chosen.fit, "forget": chosen.command,
        "MB": chosen.bytes / 1e6, "other": other.map_or("–", |cost| cost.form.name()),
        "other fit": other.map_or(f64::NAN, |cost| cost.fit), "other forget": other.map_or(f64::NAN, |cost| cost.command),
        "other MB": other.map_or(f64::NAN, |cost| cost.bytes / 1e6),
        "chosen/best": chosen.total() / best, "forget/fit": chosen.command / chosen.fit,
    }));
}
