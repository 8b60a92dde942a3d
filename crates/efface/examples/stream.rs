//! A stream of requests on a model in memory: rows leave, rows come, and every answer carries its
//! bound.
//!
//! `cargo run --release -p efface --example stream`

use std::time::Instant;

use efface::methods::Exact;
use efface::synthetic::LinearProblem;
use efface::{Dense, Fit, Fitted, Ridge, RowId, Rows};

fn main() -> efface::Result<()> {
    let width = 50;
    let data = LinearProblem {
        rows: 5_000,
        width,
        seed: 1,
    }
    .generate();
    let rows = Rows::new(Dense::new(data.x, width)?, data.y, 1)?;
    let recipe = Ridge::new(1.0);
    let mut fitted = Fitted::new(&recipe, rows)?;

    let begin = Instant::now();
    let mut largest_bound: f64 = 0.0;
    for id in 0..1_000 {
        // Every second request corrects its mistake: the row that was forgotten joins again under
        // its id.
        let gone = fitted.rows().filter(|row| row == RowId(id));
        let evidence = fitted.forget(&Exact, &[RowId(id)])?;
        largest_bound = largest_bound.max(evidence.relative_bound);
        if id % 2 == 0 {
            largest_bound = largest_bound.max(fitted.learn(&gone)?.relative_bound);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("1500 changes in {seconds:.2} s; no bound above {largest_bound:.0e}");

    // What the bounds promise can be checked here, because the rows are at hand.
    let retrained = recipe.fit(fitted.rows())?.parameters().0;
    let distance = (&fitted.model().parameters().0 - &retrained).norm_l2() / retrained.norm_l2();
    println!("distance to a model that was fitted on the rows that are left: {distance:.0e}");
    assert!(distance <= 1e-9, "the model has drifted from retraining");
    Ok(())
}
