//! How often the 95 % intervals of the attack's AUC cover the truth: `cargo xtask claims coverage
//! [AUDITS [ORACLES …]]`.
//!
//! Two tables, for 32, 64 and 128 oracles and with 1,000 audits a line unless told otherwise:
//!
//! - **margins**: models whose margins are drawn, with rows that vary together (the rows of an
//!   audit share their models) and pairs of models that vary against each other (they see opposite
//!   halves of the retained rows). The truth is 0.5 where membership leaves no mark, and else the
//!   mean AUC of as many other audits: that of attackers fitted on so many models.
//! - **models**: whole audits of ridge regression. After `exact`, the truth is 0.5; before any
//!   forgetting, it is the mean over all audits of the line.
//!
//! Every draw follows from fixed seeds, so that two runs print the same.

mod world;

use efface::eval::{Attack, Bootstrap, Task, Trials, membership_inference};
use efface::synthetic::LinearProblem;
use efface::{Dense, Method, Recipe, Result, Ridge, RowId, Rows};
use world::{LITTLE_RESAMPLING, MarginWorld};

fn main() -> Result<()> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse::<usize>().ok());
    let Some(audits) = numbers.next() else {
        // `cargo test --benches` and a bare `cargo bench` come here.
        eprintln!("coverage AUDITS [ORACLES …]");
        return Ok(());
    };
    let mut sizes: Vec<usize> = numbers.collect();
    if sizes.is_empty() {
        sizes.extend([32, 64, 128]);
    }
    println!("| margins: oracles | rows | audits | true AUC | covered | mean width |");
    println!("|---|---|---|---|---|---|");
    for &oracles in &sizes {
        for rows in [1, 5, 20] {
            for lift in [0.0, 0.4, 1.5] {
                let world = MarginWorld::new(oracles, rows, lift);
                let found = in_parallel(audits, |seed| world.audit(1 + seed))?;
                let truth = match lift {
                    0.0 => 0.5,
                    _ => mean_area(&in_parallel(audits, |seed| {
                        world.audit(1 + seed + audits as u64)
                    })?),
                };
                println!("| {oracles} | {rows} | {}", line(&found, truth));
            }
        }
    }
    println!("\n| models: oracles | state | audits | true AUC | covered | mean width |");
    println!("|---|---|---|---|---|---|");
    for &oracles in &sizes {
        let both = in_parallel(audits, |seed| ridge_audit(oracles, seed))?;
        let exact: Vec<Attack> = both.iter().map(|(exact, _)| exact.clone()).collect();
        let before: Vec<Attack> = both.into_iter().map(|(_, before)| before).collect();
        println!("| {oracles} | exact | {}", line(&exact, 0.5));
        println!(
            "| {oracles} | before | {}",
            line(&before, mean_area(&before))
        );
    }
    Ok(())
}

fn mean_area(found: &[Attack]) -> f64 {
    found.iter().map(|attack| attack.auc).sum::<f64>() / found.len() as f64
}

fn line(found: &[Attack], truth: f64) -> String {
    let audits = found.len() as f64;
    let covered = found
        .iter()
        .filter(|attack| attack.auc_interval.covers(truth))
        .count() as f64;
    let width = found
        .iter()
        .map(|attack| attack.auc_interval.high - attack.auc_interval.low)
        .sum::<f64>();
    format!(
        "{audits} | {truth:.3} | {:.1} % | {:.3} |",
        100.0 * covered / audits,
        width / audits
    )
}

/// An audit of ridge regression on 120 rows of 12 columns, of which 10 are forgotten: U-LiRA after
/// `exact`, LiRA before.
fn ridge_audit(oracles: usize, seed: u64) -> Result<(Attack, Attack)> {
    let problem = LinearProblem {
        rows: 120,
        width: 12,
        seed: 3,
    }
    .generate();
    let rows = Rows::new(Dense::new(problem.x, problem.width)?, problem.y, 1)?;
    let bootstrap = Bootstrap {
        resamples: LITTLE_RESAMPLING,
        ..Bootstrap::default()
    };
    let trials = Trials {
        oracles,
        retained: 10,
        seed,
        bootstrap,
        ..Trials::default()
    };
    let gone: Vec<RowId> = (0..10).map(RowId).collect();
    let recipe = Recipe::new(Ridge::new(0.1));
    let ways = ["exact".parse::<Method>()?];
    let found = membership_inference(
        &recipe,
        Task::Regression,
        &rows,
        &gone,
        &ways,
        &trials,
        &|_, _| (),
    )?;
    let area = |state: &str| {
        found
            .of(state)
            .map(|exposure| exposure.forgotten.clone())
            .ok_or(efface::Error::NoRows)
    };
    Ok((area("exact")?, area("before")?))
}

/// Runs the audits of the seeds 0, 1, … on all cores; the results are in their order.
fn in_parallel<T: Send>(audits: usize, run: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = audits.div_ceil(threads).max(1);
    let parts: Vec<Result<Vec<T>>> = std::thread::scope(|scope| {
        let part = |from: usize| {
            let run = &run;
            scope.spawn(move || {
                (from..audits.min(from + share))
                    .map(|seed| run(seed as u64))
                    .collect()
            })
        };
        let handles: Vec<_> = (0..audits).step_by(share).map(part).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Result<Vec<T>>>| {
            handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    parts
        .into_iter()
        .collect::<Result<Vec<Vec<T>>>>()
        .map(|parts| parts.into_iter().flatten().collect())
}
