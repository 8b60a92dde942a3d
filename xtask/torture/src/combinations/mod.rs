//! Random combinations of options: features × weights × family × method × change × storage. Each
//! combination is fitted, changed several times through the command, and compared with a fresh fit
//! on the rows that are left.
//!
//! A failure prints its seed, its commands and the folder with its files, and the run goes on; the
//! run ends with an error if any combination failed.

mod case;
mod plan;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use case::{Case, CaseCounts};

use crate::{Result, tell};

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The first seed.
    pub(crate) first: u64,
    /// Number of seeds.
    pub(crate) count: u64,
    /// No combination is begun after this time.
    pub(crate) time: Duration,
}

/// Totals of a run, under a lock that the threads share.
#[derive(Default)]
struct Totals {
    combinations: usize,
    refused_fits: usize,
    /// Reasons of refused fits, and how often each was given.
    reasons: BTreeMap<String, usize>,
    counts: CaseCounts,
    failures: Vec<u64>,
}

impl Totals {
    fn add(&mut self, counts: CaseCounts) {
        let total = &mut self.counts;
        if let Some(reason) = counts.refused_fit {
            self.refused_fits += 1;
            // Numbers of rows and features differ from case to case.
            let first = reason.lines().next().unwrap_or_default();
            let reason: String = first.chars().filter(|c| !c.is_ascii_digit()).collect();
            *self.reasons.entry(reason).or_default() += 1;
        }
        total.changes += counts.changes;
        total.refused_changes += counts.refused_changes;
        total.compared += counts.compared;
        total.exact += counts.exact;
        total.without_claim += counts.without_claim;
    }
}

/// Runs the combinations of the seeds, on all processors, with the command at `program`.
pub(crate) fn run(program: &Path, limits: Limits) -> Result {
    let program = program.canonicalize()?;
    let started = Instant::now();
    let next = AtomicU64::new(limits.first);
    let totals = Mutex::new(Totals::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work(&program, limits, started, &next, &totals)))
            .collect();
        for worker in workers {
            let finished = worker.join();
            finished.map_err(|_| "a worker panicked")??;
        }
        Ok::<_, String>(())
    })?;
    let totals = totals.into_inner().map_err(|_| "a worker panicked")?;
    let counts = &totals.counts;
    tell("combinations", &totals.combinations.to_string());
    tell("  refused at the fit", &totals.refused_fits.to_string());
    for (reason, count) in &totals.reasons {
        println!("    {count:>6}  {reason}");
    }
    tell("changes", &counts.changes.to_string());
    tell(
        "  refused, the model as it was",
        &counts.refused_changes.to_string(),
    );
    tell(
        "states compared with a fresh fit",
        &counts.compared.to_string(),
    );
    tell("  claimed exact", &counts.exact.to_string());
    tell(
        "states that claim no distance",
        &counts.without_claim.to_string(),
    );
    tell(
        "seconds",
        &format!("{:.0}", started.elapsed().as_secs_f64()),
    );
    tell("failures", &totals.failures.len().to_string());
    if totals.failures.is_empty() {
        return Ok(());
    }
    let seeds: Vec<String> = totals.failures.iter().map(u64::to_string).collect();
    Err(format!("failed seeds: {}", seeds.join(" ")).into())
}

/// Takes seeds until there are none left or the time is over.
fn work(
    program: &Path,
    limits: Limits,
    started: Instant,
    next: &AtomicU64,
    totals: &Mutex<Totals>,
) -> std::result::Result<(), String> {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= limits.first.saturating_add(limits.count) || started.elapsed() > limits.time {
            return Ok(());
        }
        let outcome = one(program, seed);
        let mut totals = totals.lock().map_err(|_| "a worker panicked")?;
        totals.combinations += 1;
        match outcome {
            Ok(counts) => totals.add(counts),
            Err(message) => {
                println!("{message}");
                totals.failures.push(seed);
            }
        }
    }
}

/// Runs one combination. The message of a failure has all that is needed to repeat it.
fn one(program: &Path, seed: u64) -> std::result::Result<CaseCounts, String> {
    let folder = tempfile::Builder::new()
        .prefix(&format!("combination-{seed}-"))
        .tempdir()
        .map_err(|error| error.to_string())?;
    let case = Case::new(program, folder.path().to_path_buf(), seed);
    let (commands, outcome) = case.run();
    outcome.map_err(|error| {
        let commands = commands.join("\n  ");
        let kept: PathBuf = folder.keep();
        let _ = fs::write(kept.join("commands"), &commands);
        format!(
            "seed {seed} fails: {error}\n  {commands}\n  files: {}",
            kept.display()
        )
    })
}
