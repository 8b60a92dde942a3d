//! Membership inference: can somebody who sees a model, and knows how such models behave, tell
//! whether a row was in it?
//!
//! Three attackers, on rows that were forgotten and on rows that stay, on the same oracles
//! (`oracles.rs` says which rows each sees):
//!
//! - **population**: one threshold on the loss for all rows (Yeom et al. 2018). Weak, and no shadow
//!   models are needed.
//! - **LiRA**: per row, normal distributions of the margin under models with the row and without
//!   it; the score is the log of their ratio (Carlini et al. 2022).
//! - **U-LiRA**: the same, where the models "with" the row were trained with it and then unlearned
//!   it (Hayes et al. 2024). This is what LiRA becomes when it looks at models after a forget: a
//!   model that has truly forgotten gives it nothing.
//!
//! The attacker who judges an oracle was fitted on the other half of the oracles, and the two
//! halves' results are averaged: fitted on the same ones, a coin would not come out at 0.5. Where
//! fewer than 32 oracles a side are left to fit on, both distributions of a row share one variance,
//! as Carlini et al. advise. AUC 0.5 is no leak. Intervals leave pairs of oracles out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::attack::{Attack, attack};
use super::bootstrap::Bootstrap;
use super::exposure::{Exposure, OracleRecord, SeenRows};
use super::oracles::{OraclePlan, Trials};
use super::shadow::ShadowFitter;
use super::task::{Task, judge};
use crate::error::{Error, Result};
use crate::methods::Method;
use crate::models::{MethodOptions, Model, Recipe};
use crate::rows::{RowId, RowStore, Rows};

/// What attackers found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Membership {
    /// Models that were fitted; each also without the rows to forget.
    pub oracles: usize,
    /// Rows to forget, each in half of them.
    pub forgotten: usize,
    /// Retained rows that were attacked, each in half of them.
    pub retained: usize,
    /// `before` any forgetting, `retrain`, then the methods in the order asked.
    pub exposures: Vec<Exposure>,
}

impl Membership {
    /// The exposure of models in a state.
    pub fn of(&self, state: &str) -> Option<&Exposure> {
        self.exposures
            .iter()
            .find(|exposure| exposure.state == state)
    }
}

/// Runs all attacks. `progress` is told how many oracles are done, and of how many.
pub fn membership_inference(
    recipe: &Recipe,
    task: Task,
    rows: &Rows,
    gone: &[RowId],
    methods: &[Method],
    trials: &Trials,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Membership> {
    let plan = OraclePlan::new(rows, gone, trials)?;
    // The retrained models are always compared, whether the caller asked for them or not.
    let methods: Vec<&Method> = methods
        .iter()
        .filter(|method| **method != Method::Retrain)
        .collect();
    let shadows = ShadowFitter::new(&plan, recipe, rows)?;
    let probe = Rows::read(rows, &[plan.forgotten.as_slice(), &plan.retained].concat())?;
    let run = |oracle: usize| {
        rows.go_on()?;
        states(&plan, &shadows, &probe, task, &methods, oracle).map_err(|cause| match cause {
            Error::Stopped => Error::Stopped,
            cause => Error::Oracle {
                oracle,
                cause: Box::new(cause),
            },
        })
    };
    let seen = in_parallel(plan.oracles, trials.threads, run, progress)?;
    let names = ["before", "retrain"]
        .into_iter()
        .chain(methods.iter().map(|method| method.name()));
    let settings = Bootstrap {
        seed: trials.bootstrap.seed ^ trials.seed,
        ..trials.bootstrap
    };
    let record = OracleRecord {
        plan: &plan,
        seen: &seen,
        settings,
    };
    let exposures: Result<Vec<Exposure>> = names
        .enumerate()
        .map(|(state, name)| record.exposure(state, name))
        .collect();
    Ok(Membership {
        oracles: plan.oracles,
        forgotten: plan.forgotten.len(),
        retained: plan.retained.len(),
        exposures: exposures?,
    })
}

/// The population attack on one model: `members` are rows that it saw, or was made to forget,
/// `others` rows that it never saw.
pub fn population_threshold(
    model: &Model,
    task: Task,
    members: &Rows,
    others: &Rows,
    settings: &Bootstrap,
) -> Result<Attack> {
    let scores = |rows: &Rows| -> Result<Vec<f64>> {
        Ok(judge(model, task, rows)?
            .iter()
            .map(|row| -row.loss)
            .collect())
    };
    attack(&scores(members)?, &scores(others)?, settings)
}

/// One oracle: before, retrained, and after every method.
fn states(
    plan: &OraclePlan,
    shadows: &ShadowFitter<'_>,
    probe: &Rows,
    task: Task,
    methods: &[&Method],
    oracle: usize,
) -> Result<Vec<SeenRows>> {
    let draw = plan.draw(oracle);
    let look = |model: &Model| -> Result<SeenRows> {
        let judged = judge(model, task, probe)?;
        let (margins, losses) = judged.iter().map(|row| (row.margin, row.loss)).unzip();
        Ok(SeenRows { margins, losses })
    };
    let model = shadows.fit(&draw, true)?;
    let mut seen = vec![look(&model)?, look(&shadows.fit(&draw, false)?)?];
    let store = shadows.store(&draw);
    let gone = plan.forgotten_in(&draw);
    for method in methods {
        let outcome = model.forget_with(method, MethodOptions::measured(), &store, &gone)?;
        seen.push(look(&outcome.model)?);
    }
    Ok(seen)
}

/// Runs jobs on several threads; the results are in the order of the jobs, whichever thread did
/// them. After an error no new job is begun, and the error of the earliest job is the answer.
fn in_parallel<T: Send>(
    jobs: usize,
    threads: usize,
    run: impl Fn(usize) -> Result<T> + Sync,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let work = || loop {
        let job = next.fetch_add(1, Ordering::Relaxed);
        if job >= jobs {
            return;
        }
        let result = run(job);
        if result.is_err() {
            next.store(jobs, Ordering::Relaxed);
        }
        found
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)[job] = Some(result);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs);
    };
    std::thread::scope(|scope| {
        (1..threads.min(jobs)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let found = found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    found.into_iter().flatten().collect()
}
