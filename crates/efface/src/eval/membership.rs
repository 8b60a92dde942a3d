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

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::attack::{Attack, attack};
use super::bootstrap::Bootstrap;
use super::exposure::{Exposure, OracleRecord, SeenRows};
use super::oracles::{OraclePlan, Trials};
use super::shadow::ShadowFitter;
use super::task::{Task, judge};
use super::view::{FixedFeatures, OracleSubject};
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

/// Runs all attacks on models whose features are the same whatever rows they are fitted on.
/// `progress` is told how many oracles are done, and of how many.
pub fn membership_inference(
    recipe: &Recipe,
    task: Task,
    rows: &Rows,
    gone: &[RowId],
    methods: &[Method],
    trials: &Trials,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Membership> {
    let subject = OracleSubject {
        recipe,
        task,
        rows,
        features: &FixedFeatures,
    };
    subject.membership(gone, methods, trials, progress)
}

impl OracleSubject<'_> {
    /// Runs all attacks. `progress` is told how many oracles are done, and of how many.
    pub fn membership(
        &self,
        gone: &[RowId],
        methods: &[Method],
        trials: &Trials,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Membership> {
        let plan = OraclePlan::new(self.rows, gone, trials)?;
        // The retrained models are always compared, whether the caller asked for them or not.
        let methods: Vec<&Method> = methods
            .iter()
            .filter(|method| **method != Method::Retrain)
            .collect();
        let shadows = ShadowFitter::new(&plan, self)?;
        let run = |oracle: usize| {
            self.rows.go_on()?;
            self.states(&plan, &shadows, &methods, oracle)
                .map_err(|cause| match cause {
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

    /// One oracle: before, retrained, and after every method.
    fn states(
        &self,
        plan: &OraclePlan,
        shadows: &ShadowFitter<'_>,
        methods: &[&Method],
        oracle: usize,
    ) -> Result<Vec<SeenRows>> {
        let draw = plan.draw(oracle);
        let attacked = [plan.forgotten.as_slice(), &plan.retained].concat();
        let look = |model: &Model, view: &Rows| -> Result<SeenRows> {
            let judged = judge(model, self.task, &Rows::read(view, &attacked)?)?;
            let (margins, losses) = judged.iter().map(|row| (row.margin, row.loss)).unzip();
            Ok(SeenRows { margins, losses })
        };
        let with = shadows.view(&draw, true)?;
        let without = shadows.view(&draw, false)?;
        let model = shadows.fit(&draw, &with, true)?;
        let retrained = shadows.fit(&draw, &without, false)?;
        let mut seen = vec![look(&model, &with)?, look(&retrained, &without)?];
        let gone = plan.forgotten_in(&draw);
        let shared = |view: &Cow<'_, Rows>| matches!(view, Cow::Borrowed(_));
        let has_other_features = !(shared(&with) && shared(&without));
        // A method that the features follow works in those of the rows that stay.
        let mut in_new_features: Option<Model> = None;
        for method in methods {
            let (start, view) = if has_other_features && self.features.are_followed_by(method) {
                let start = match in_new_features.take() {
                    Some(start) => start,
                    None => shadows.fit(&draw, &without, true)?,
                };
                (&*in_new_features.insert(start), &without)
            } else {
                (&model, &with)
            };
            let after = start.forget_with(
                method,
                MethodOptions::measured(),
                &shadows.store(&draw, view),
                &gone,
            )?;
            seen.push(look(&after.model, view)?);
        }
        Ok(seen)
    }
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
