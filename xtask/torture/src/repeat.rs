//! Requests that come again and again, out of order, from two threads: one effect each.

use std::time::Instant;

use efface_engine::{Engine, ForgetOptions, ForgetRequest};

use crate::{Dice, Result, ids, model, sound, table, tell};

pub(crate) fn run(count: usize) -> Result {
    const DISTINCT: usize = 1000;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    let rows = DISTINCT + 200;
    drop(model(
        &path,
        table((0..rows).map(|at| format!("r{at}")), 10, 1),
    )?);
    let started = Instant::now();
    let half = |seed: u64| -> std::result::Result<(usize, usize), String> {
        let mut engine = Engine::open(&path).map_err(|error| error.to_string())?;
        engine
            .set_patience(std::time::Duration::from_secs(60))
            .map_err(|error| error.to_string())?;
        let mut dice = Dice(seed);
        let mut first = 0;
        let mut again = 0;
        let mut left = count / 2;
        while left > 0 {
            let size = left.min(1 + dice.below(400) as usize);
            let some: Vec<ForgetRequest> = (0..size)
                .map(|_| {
                    let at = dice.below(DISTINCT as u64);
                    let name = Some(format!("T-{at}"));
                    ForgetRequest {
                        id: name,
                        ..ForgetRequest::new(ids(&[format!("r{at}")]))
                    }
                })
                .collect();
            for answer in engine.forget(&some, &ForgetOptions::default()) {
                let report = answer.map_err(|error| error.to_string())?;
                if report.outcome.name() != "erased" || report.forgotten != 1 {
                    return Err(format!("a request ended as {}", report.outcome.name()));
                }
                if report.replayed {
                    again += 1
                } else {
                    first += 1
                }
            }
            left -= size;
        }
        Ok((first, again))
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| half(3));
        let two = scope.spawn(|| half(4));
        (one.join(), two.join())
    });
    let one = one.map_err(|_| "a thread died")??;
    let two = two.map_err(|_| "a thread died")??;
    let first = one.0 + two.0;
    let again = one.1 + two.1;
    let seconds = started.elapsed().as_secs_f64();
    sound(&path)?;
    let summary = Engine::open(&path)?.summary()?;
    let receipts = summary.receipts as usize;
    if summary.rows + first != rows || receipts != first + 1 || first > DISTINCT {
        return Err(format!(
            "{first} effects, {} rows, {receipts} receipts",
            summary.rows
        )
        .into());
    }
    tell(
        "duplicate and reordered requests, two threads",
        &format!(
            "{count}: {first} effects, {again} first answers again, {:.0}/s",
            count as f64 / seconds
        ),
    );
    Ok(())
}
