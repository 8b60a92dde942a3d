//! Membership inference: can somebody who sees a model, and knows how such models behave, tell whether a row was in it?
//!
//! Three attackers, on rows that were forgotten and on rows that stay, on the same oracles (`oracles.rs` says which rows each
//! sees):
//!
//! - **population**: one threshold on the loss for all rows (Yeom et al. 2018). Weak, and no shadow models are needed.
//! - **LiRA**: per row, normal distributions of the margin under models with the row and without it; the score is the log of
//!   their ratio (Carlini et al. 2022).
//! - **U-LiRA**: the same, where the models "with" the row were trained with it and then unlearned it (Hayes et al. 2024). This is
//!   what LiRA becomes when it looks at models after a forget: a model that has truly forgotten gives it nothing.
//!
//! The attacker who judges an oracle was fitted on the other half of the oracles, and the two halves' results are averaged:
//! fitted on the same ones, a coin would not come out at 0.5. Where fewer than 32 oracles a side are left to fit on, both
//! distributions of a row share one variance, as Carlini et al. advise. AUC 0.5 is no leak. Intervals resample oracles.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::Way;
use super::attack::{Attack, attack, judged};
use super::bootstrap::Bootstrap;
use super::games::{Game, Games};
use super::klom::{Klom, klom, klom_of};
use super::likelihood::{fold, likelihood_ratio};
use super::oracles::{Plan, Trials};
use super::shadow::Shadows;
use super::task::{Task, check_family, judge};
use crate::error::{Error, Result};
use crate::models::{AnyModel, AnyRecipe};
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

/// What attackers found about models in one state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exposure {
    /// `before`, `retrain` or the name of a method.
    pub state: String,
    /// LiRA on the rows to forget; after a forget this is U-LiRA.
    pub forgotten: Attack,
    /// LiRA on rows that stay.
    pub retained: Attack,
    /// One threshold for the losses of the rows to forget.
    pub population_forgotten: Attack,
    /// One threshold for the losses of rows that stay.
    pub population_retained: Attack,
    /// KLoM of the rows to forget, where they had been in. Of `retrain`: one half of the retrained models against the other, which
    /// is the noise that the others stand in.
    pub klom_forgotten: Klom,
    /// KLoM of rows that stay.
    pub klom_retained: Klom,
}

impl Membership {
    /// The exposure of models in a state.
    pub fn of(&self, state: &str) -> Option<&Exposure> {
        self.exposures.iter().find(|exposure| exposure.state == state)
    }
}

/// Margins and losses of the attacked rows, D first, under one model.
struct Seen {
    margins: Vec<f64>,
    losses: Vec<f64>,
}

/// Runs all attacks. `progress` is told how many oracles are done, and of how many.
pub fn membership_inference(
    recipe: &AnyRecipe,
    task: Task,
    rows: &Rows,
    gone: &[RowId],
    ways: &[Way],
    trials: &Trials,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Membership> {
    check_family(recipe)?;
    let plan = Plan::new(rows, gone, trials)?;
    // Retraining is there in any case.
    let ways: Vec<&Way> = ways.iter().filter(|way| way.method != "retrain").collect();
    let shadows = Shadows::new(&plan, recipe, rows)?;
    let probe = Rows::read(rows, &[plan.forgotten.as_slice(), &plan.retained].concat())?;
    let run = |oracle: usize| {
        rows.go_on()?;
        states(&plan, &shadows, &probe, task, &ways, oracle).map_err(|cause| match cause {
            Error::Stopped => Error::Stopped,
            cause => Error::Oracle { oracle, cause: Box::new(cause) },
        })
    };
    let seen = in_parallel(plan.oracles, trials.threads, run, progress)?;
    let names = ["before", "retrain"].into_iter().chain(ways.iter().map(|way| way.method.as_str()));
    let settings = Bootstrap { seed: trials.bootstrap.seed ^ trials.seed, ..trials.bootstrap };
    let world = World { plan: &plan, seen: &seen, settings };
    let exposures: Result<Vec<Exposure>> =
        names.enumerate().map(|(state, name)| world.exposure(state, name)).collect();
    Ok(Membership {
        oracles: plan.oracles,
        forgotten: plan.forgotten.len(),
        retained: plan.retained.len(),
        exposures: exposures?,
    })
}

/// The population attack on one model: `members` are rows that it saw, or was made to forget, `others` rows that it never saw.
pub fn population_threshold(
    model: &AnyModel,
    task: Task,
    members: &Rows,
    others: &Rows,
    settings: &Bootstrap,
) -> Result<Attack> {
    let scores = |rows: &Rows| -> Result<Vec<f64>> {
        Ok(judge(model, task, rows)?.iter().map(|row| -row.loss).collect())
    };
    attack(&scores(members)?, &scores(others)?, settings)
}

/// One oracle: before, retrained, and after every method.
fn states(
    plan: &Plan,
    shadows: &Shadows<'_>,
    probe: &Rows,
    task: Task,
    ways: &[&Way],
    oracle: usize,
) -> Result<Vec<Seen>> {
    let draw = plan.draw(oracle);
    let look = |model: &AnyModel| -> Result<Seen> {
        let judged = judge(model, task, probe)?;
        let (margins, losses) = judged.iter().map(|row| (row.margin, row.loss)).unzip();
        Ok(Seen { margins, losses })
    };
    let model = shadows.fit(&draw, true)?;
    let mut seen = vec![look(&model)?, look(&shadows.fit(&draw, false)?)?];
    let (store, gone) = (shadows.store(&draw), plan.forgotten_in(&draw));
    for way in ways {
        seen.push(look(&model.forget(&way.method, &way.options, &store, &gone)?.model)?);
    }
    Ok(seen)
}

/// Runs jobs on several threads; the results are in order, whoever did them. After an error no new job is begun, and the error
/// of the earliest job is the answer.
fn in_parallel<T: Send>(
    jobs: usize,
    threads: usize,
    run: impl Fn(usize) -> Result<T> + Sync,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
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
        found.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[job] = Some(result);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs);
    };
    std::thread::scope(|scope| {
        (1..threads.min(jobs)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.into_iter().flatten().collect()
}

/// What all oracles showed.
struct World<'a> {
    plan: &'a Plan,
    seen: &'a [Vec<Seen>],
    settings: Bootstrap,
}

/// The rows that an attack is about.
#[derive(Clone, Copy)]
enum Group {
    Forgotten,
    Retained,
}

impl World<'_> {
    fn exposure(&self, state: usize, name: &str) -> Result<Exposure> {
        use Group::{Forgotten, Retained};
        Ok(Exposure {
            state: name.into(),
            forgotten: self.lira(state, Forgotten)?,
            retained: self.lira(state, Retained)?,
            population_forgotten: self.population(state, Forgotten)?,
            population_retained: self.population(state, Retained)?,
            klom_forgotten: self.klom(state, Forgotten)?,
            klom_retained: self.klom(state, Retained)?,
        })
    }

    /// The places of a group among the attacked rows.
    fn places(&self, group: Group) -> std::ops::Range<usize> {
        let (k, all) = (self.plan.forgotten.len(), self.plan.forgotten.len() + self.plan.retained.len());
        match group {
            Group::Forgotten => 0..k,
            Group::Retained => k..all,
        }
    }

    /// For every oracle, whether each attacked row was in.
    fn inside(&self) -> Vec<Vec<bool>> {
        let draws = (0..self.plan.oracles).map(|oracle| self.plan.draw(oracle));
        draws.map(|draw| [draw.forgotten, draw.retained].concat()).collect()
    }

    fn population(&self, state: usize, group: Group) -> Result<Attack> {
        let mut games = Vec::new();
        for (cluster, inside) in self.inside().iter().enumerate() {
            for place in self.places(group) {
                let score = -self.seen[cluster][state].losses[place];
                games.push(Game { score, member: inside[place], cluster });
            }
        }
        judged(&[Games::new(games)?], &self.settings)
    }

    fn lira(&self, state: usize, group: Group) -> Result<Attack> {
        let places = self.places(group);
        let margins: Vec<&[f64]> =
            self.seen.iter().map(|seen| &seen[state].margins[places.clone()]).collect();
        let inside: Vec<Vec<bool>> =
            self.inside().iter().map(|inside| inside[places.clone()].to_vec()).collect();
        likelihood_ratio(&margins, &inside, &self.settings)
    }

    fn klom(&self, state: usize, group: Group) -> Result<Klom> {
        const RETRAINED: usize = 1;
        let inside = self.inside();
        let mut values = Vec::new();
        for place in self.places(group) {
            let margins = |state: usize, of: &dyn Fn(usize) -> bool| -> Vec<f64> {
                let of = (0..self.plan.oracles).filter(|oracle| of(*oracle));
                of.map(|oracle| self.seen[oracle][state].margins[place]).collect()
            };
            values.push(if state == RETRAINED {
                let half = |which: usize| margins(RETRAINED, &|oracle| fold(oracle) == which);
                klom(&half(0), &half(1))?
            } else {
                // Where a forgotten row had not been in, nothing was unlearned for it.
                let counts = |oracle: usize| matches!(group, Group::Retained) || inside[oracle][place];
                klom(&margins(RETRAINED, &counts), &margins(state, &counts))?
            });
        }
        klom_of(values)
    }
}
