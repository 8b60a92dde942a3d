//! The table behind `cargo xtask claims`: seeded ridge problems, the library's bound on each, and
//! the truth.
//!
//! `claims PROBLEMS [CELLS]`: how many problems, and the most n·d of one of them.

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on should stop"
)]

#[path = "../tests/support/long_arithmetic.rs"]
mod long_arithmetic;
#[path = "../tests/support/ridge_problems.rs"]
mod ridge_problems;

use ridge_problems::{Finding, KINDS, examine, problem};

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let Some(count) = arguments.next() else {
        // `cargo test --benches` and a bare `cargo bench` come here.
        eprintln!("claims PROBLEMS [CELLS [SEED]]");
        return;
    };
    let count: u64 = count.parse().unwrap();
    let cells: f64 = arguments.next().map_or(2e6, |text| text.parse().unwrap());
    let mut all: Vec<Finding> = Vec::new();
    let mut refused = Vec::new();
    let only: Option<u64> = arguments.next().map(|text| text.parse().unwrap());
    for seed in only.map_or(0..count, |seed| seed..seed + 1) {
        match examine(&problem(seed, cells_of(seed, cells))) {
            Ok(found) => all.extend(found),
            Err(reason) => refused.push(reason),
        }
        if seed % 200 == 199 {
            eprintln!("{} of {count}", seed + 1);
        }
    }
    println!(
        "| kind | bounds | exceeded | true error < 1e-11 | of these bound < 1e-8 | median bound ÷ truth | claimed exact | read rows |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for kind in KINDS {
        let findings: Vec<&Finding> = all.iter().filter(|found| found.kind == kind).collect();
        line(kind, &findings);
    }
    line("all", &all.iter().collect::<Vec<_>>());
    refused
        .iter()
        .for_each(|reason| println!("refused: {reason}"));
    for found in all
        .iter()
        .filter(|found| found.truth < 1e-11 && found.bound >= 1e-8)
    {
        let problem = problem(found.seed, cells_of(found.seed, cells));
        println!(
            "loose: {} {} {:?} n={} d={} lambda={:.1e}: {:.1e} for {:.1e}",
            found.kind,
            found.seed,
            problem.recipe.form,
            problem.rows.ids().count(),
            problem.width,
            problem.recipe.lambda,
            found.bound,
            found.truth
        );
    }
    for found in all
        .iter()
        .filter(|found| found.absolute_truth > found.absolute_bound)
    {
        println!(
            "exceeded: {} {}: {:e} > {:e}",
            found.kind, found.seed, found.absolute_truth, found.absolute_bound
        );
    }
}

/// Most problems are small, so that there can be thousands; some have up to five hundred columns, a
/// few a million rows.
fn cells_of(seed: u64, cells: f64) -> f64 {
    match seed {
        _ if seed % 200 == 199 => cells.max(2e6),
        _ if seed % 25 == 24 => cells.max(1e5),
        _ => cells,
    }
}

fn line(kind: &str, findings: &[&Finding]) {
    let exceeded = findings
        .iter()
        .filter(|found| found.absolute_truth > found.absolute_bound)
        .count();
    let good: Vec<_> = findings
        .iter()
        .filter(|found| found.truth < 1e-11)
        .collect();
    let sharp = good.iter().filter(|found| found.bound < 1e-8).count();
    let mut ratios: Vec<f64> = findings
        .iter()
        .map(|found| found.bound / found.truth.max(1e-17))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    let exact = findings.iter().filter(|found| found.exact).count();
    let read = findings.iter().filter(|found| found.read_rows).count();
    let share = 100.0 * sharp as f64 / good.len().max(1) as f64;
    println!(
        "| {kind} | {} | {exceeded} | {} | {share:.1} % | {median:.0e} | {exact} | {read} |",
        findings.len(),
        good.len()
    );
}
