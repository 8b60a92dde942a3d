//! A ridge fit beside the product XᵀX that it cannot do without.

use std::time::Instant;

use efface::{Dense, Fit, Ridge, Rows};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatRef, Par};
use serde_json::json;

use super::generated::{ColumnKind, GeneratedTable};
use super::machine::{RequestWatch, TimeSummary};
use super::{BenchArguments, BenchTable};

pub(crate) fn run(arguments: &BenchArguments) {
    let mut table = BenchTable::new(arguments, "Ridge fits");
    let rows = arguments.number(1, 30_000);
    let width = arguments.number(2, 3000);
    let single = arguments.flag("--single").is_some();
    let GeneratedTable { x, y, .. } = GeneratedTable::new(rows, width, ColumnKind::Independent);
    for threads in arguments.threads() {
        let mut square = Mat::<f64>::zeros(width, width);
        let xt = MatRef::from_column_major_slice(&x, width, rows);
        let par = if threads == 1 {
            Par::Seq
        } else {
            Par::rayon(threads)
        };
        let product = median(threads, || {
            let lower = BlockStructure::TriangularLower;
            let full = BlockStructure::Rectangular;
            triangular::matmul(
                square.as_mut(),
                lower,
                Accum::Replace,
                xt,
                full,
                xt.transpose(),
                full,
                1.0,
                par,
            );
        });
        let start = Instant::now();
        let kept = if single {
            let x: Vec<f32> = x.iter().map(|x| *x as f32).collect();
            Rows::new(Dense::new(x, width).unwrap(), y.clone(), 1).unwrap()
        } else {
            Rows::new(Dense::new(x.clone(), width).unwrap(), y.clone(), 1).unwrap()
        };
        let taken = start.elapsed().as_secs_f64();
        let recipe = Ridge::new(1.0).threads(threads);
        let fit = median(threads, || drop(recipe.fit(&kept).unwrap()));
        table.line(&json!({
            "what": "fit", "n": rows, "d": width, "numbers": if single { "float32" } else { "float64" }, "threads": threads,
            "copy and check": taken, "fit": fit, "faer XᵀX": product, "fit/XᵀX": fit / product,
        }));
    }
}

/// With one thread processor time, which other programs do not lengthen.
fn median(threads: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..3).map(|_| {
        let watch = RequestWatch::start(threads);
        work();
        watch.seconds()
    });
    TimeSummary::of(times.collect()).p50
}
