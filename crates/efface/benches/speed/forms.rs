//! Every form in which curvature can be kept, on tables of every kind, and how far the one that `auto` takes is from the best.

use efface::methods::Auto;
use efface::{Fit, Fitted, Forget, Form, Ridge, RidgeModel, RowId, Rows};
use serde_json::json;

use super::generated::{ColumnKind, GeneratedTable, sparse_table};
use super::machine::{RequestWatch, TimeSummary};
use super::{BenchArguments, BenchTable};

/// What a form costs on a table, in processor seconds of one thread and in bytes.
struct FormCost {
    form: Form,
    fit: f64,
    /// A request that begins with a stored model and ends with one, as a command does.
    command: f64,
    bytes: f64,
}

/// So many seconds a byte of a model file counts as: 100 MB a second to and from a disk.
const SECONDS_PER_BYTE: f64 = 1e-8;

impl FormCost {
    fn measure(form: Form, rows: &Rows) -> Option<Self> {
        let recipe = Ridge::new(1.0).form(form);
        let watch = RequestWatch::start(1);
        let model = recipe.fit(rows).ok()?;
        let fit = watch.seconds();
        let chosen = model.form();
        let state = model.to_state().ok()?;
        let bytes = 8.0 * (state.a.len() + state.a_low.len() + 4 * state.theta.len()) as f64;
        let times = (0..3).map(|i| {
            let watch = RequestWatch::start(1);
            let read = RidgeModel::from_state_with_rows(&state, rows).ok()?;
            let mut fitted = Fitted::of(read, rows.clone());
            fitted.forget(&Auto::default() as &dyn Forget<RidgeModel>, &[RowId(i * 7)]).ok()?;
            fitted.settle().ok()?;
            fitted.model().to_state().ok()?;
            Some(watch.seconds())
        });
        let times: Option<Vec<f64>> = times.collect();
        Some(Self { form: chosen, fit, command: TimeSummary::of(times?).p50, bytes })
    }

    /// A fit, a request, and moving the file once each.
    fn total(&self) -> f64 {
        self.fit + self.command + 2.0 * self.bytes * SECONDS_PER_BYTE
    }
}

pub(crate) fn run(arguments: &BenchArguments) {
    let mut table = BenchTable::new(arguments, "The choice of form");
    let dense = |rows, width| GeneratedTable::new(rows, width, ColumnKind::Independent).rows();
    let cases: Vec<(&str, Rows)> = vec![
        ("dense tall, 50,000 × 50", dense(50_000, 50)),
        ("dense, 8,000 × 800", dense(8_000, 800)),
        ("dense wide, 500 × 2,500", dense(500, 2_500)),
        ("words, 20,000 × 1,500, 30 a row", sparse_table(20_000, 1_500, 30)),
        ("Reuters' shape, 7,770 × 8,315, 44 a row", sparse_table(7_770, 8_315, 44)),
        ("reviews, 10,000 × 10,000, 60 a row", sparse_table(10_000, 10_000, 60)),
        ("words, 100,000 × 3,000, 20 a row", sparse_table(100_000, 3_000, 20)),
    ];
    for (name, rows) in cases {
        let chosen = FormCost::measure(Form::Auto, &rows).expect("auto fits");
        let others = [Form::Factor, Form::Iterative].into_iter().filter(|form| *form != chosen.form);
        let mut best = chosen.total();
        let mut costs = vec![];
        for form in others {
            if let Some(cost) = FormCost::measure(form, &rows) {
                best = best.min(cost.total());
                costs.push(cost);
            }
        }
        let other = costs.first();
        table.line(&json!({
            "what": "forms", "table": name, "auto takes": chosen.form.name(), "fit": chosen.fit, "forget": chosen.command,
            "MB": chosen.bytes / 1e6, "other": other.map_or("–", |cost| cost.form.name()),
            "other fit": other.map_or(f64::NAN, |cost| cost.fit), "other forget": other.map_or(f64::NAN, |cost| cost.command),
            "other MB": other.map_or(f64::NAN, |cost| cost.bytes / 1e6),
            "chosen/best": chosen.total() / best, "forget/fit": chosen.command / chosen.fit,
        }));
    }
}
