//! Table 1: how long a forget takes, as a share of two other times: a refit on the rows that stay,
//! which is what the paper calls retraining, and the Newton step from a kept inverse
//! (`newton_step.rs`), by which the printed numbers were divided. Both are timed in trials that are
//! spread evenly over a cell, between the requests, so that a machine that gets busier in the
//! course of a run slows both sides of a share.
//!
//! Models are kept in the rows form (each row's x·A⁻¹ at hand), in which the hat block of any
//! request is there for the asking: what the paper assumes for PRU. What that costs in memory and
//! time is measured too. Everything here works on one thread: threads that wait for each other on a
//! busy machine would make short requests look long.

use std::time::Instant;

use efface::eval::parameters;
use efface::synthetic::LinearProblem;
use efface::{Dense, Fit, Form, Model, Recipe, RowId, Rows};

use super::{
    METHODS, SPEED, StudyContext, StudyJob, StudyMeasure, forget, kept_bytes, ridge, without,
};
use crate::data::{LabelledText, REVIEWS, count_rows};
use crate::draw::{choose, trial_seed};
use crate::error::{Error, Result};
use crate::newton_step::KeptInverse;
use crate::part::PaperStudy;
use crate::plan::{LAMBDA, TimesPlan};
use crate::processor::ProcessorWait;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct TimesStudy {
    context: StudyContext,
    /// The cell at hand and what was made for it.
    ready: Option<(String, PreparedRows)>,
}

struct PreparedRows {
    rows: Rows,
    ids: Vec<RowId>,
    model: Model,
    inverse: KeptInverse,
    /// Seconds of a fit in the rows form.
    prepare: f64,
}

/// Where the rows of a cell come from.
pub(crate) fn sources(context: &StudyContext) -> Vec<&'static str> {
    let mut sources = vec![GENERATED];
    if context.data.is_real() {
        sources.extend(REVIEWS.iter().map(|set| set.name));
    }
    sources
}

/// Rare words make reviews ill-conditioned: at the usual 1e-9 every request would measure its bound
/// anew, in O(d²), only to find it where it was. The bound that is reported is the one that was
/// reached.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// What the record calls the seconds of a refit, and, after `k=…`, those of a Newton step from a
/// kept inverse.
pub(crate) const REFIT: &str = "refit s";
pub(crate) const NEWTON_STEP: &str = "Newton step s";

/// The share of a trial's time in which the thread waited for a processor, in trials that time
/// denominators.
pub(crate) const WAITED: &str = "waited share";

/// The linear problem of Izzo et al., dense.
pub(crate) const GENERATED: &str = "generated rows";

pub(crate) fn cell(source: &str, width: usize) -> String {
    format!("{source}, d={width}")
}

impl TimesStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self {
            context,
            ready: None,
        }
    }

    fn rows(&self, source: &str, width: usize) -> Result<Rows> {
        let StudyContext {
            plan, data, seed, ..
        } = &self.context;
        let count = plan.times.rows_per_feature * width;
        if let Some(set) = REVIEWS.iter().find(|set| set.name == source) {
            let reviews: Vec<LabelledText> = data.texts(set, Vec::new)?;
            // A set that is smaller than ten rows a feature is taken whole.
            let count = count.min(reviews.len());
            return count_rows(
                set.name,
                &reviews,
                count,
                width,
                trial_seed(*seed, 1, width as u64),
            );
        }
        let made = LinearProblem {
            rows: count,
            width,
            seed: trial_seed(*seed, 1, width as u64),
        }
        .generate();
        Ok(Rows::new(Dense::new(made.x, width)?, made.y, 1)?)
    }

    fn prepare(
        &mut self,
        name: &str,
        source: &str,
        width: usize,
        watch: &mut dyn RunWatch,
    ) -> Result<PreparedRows> {
        watch.say(&format!("table 1: fitting {name} in the rows form"));
        let rows = self.rows(source, width)?;
        let ids: Vec<RowId> = rows.ids().collect();
        let most = self
            .context
            .plan
            .times
            .deletions
            .iter()
            .copied()
            .max()
            .unwrap_or(0);
        if ids.len() <= most {
            let why = format!("forgetting {most} of them");
            return Err(Error::TooFewRows {
                name: name.into(),
                found: ids.len(),
                needed: most + 1,
                why,
            });
        }
        let start = Instant::now();
        let model = Recipe::new(ridge(1).form(Form::Rows).tolerance(TOLERANCE)).fit(&rows)?;
        let prepare = start.elapsed().as_secs_f64();
        // The first request pays for memory that later ones find ready.
        for (method, _) in METHODS {
            forget(method, &model, &rows, &ids[..most.min(10)])?;
        }
        let inverse = KeptInverse::new(&rows, parameters(&model)?, LAMBDA)?;
        Ok(PreparedRows {
            rows,
            ids,
            model,
            inverse,
            prepare,
        })
    }
}

/// Whether a trial also times what the requests are divided by: `denominators` of the trials,
/// evenly spread.
fn times_denominators(plan: &TimesPlan, trial: usize) -> bool {
    let until = |trial: usize| trial * plan.denominators / plan.trials.max(1);
    until(trial + 1) > until(trial)
}

impl StudyMeasure for TimesStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.times;
        let mut jobs = Vec::new();
        for source in sources(&self.context) {
            for &width in &plan.widths {
                for trial in 0..plan.trials {
                    let d = width as f64;
                    let n = d * plan.rows_per_feature as f64;
                    let dense = if source == GENERATED { 1.0 } else { 0.1 };
                    let fit = (n * d * d * dense + d * d * d) / SPEED;
                    let dense_fit = (n * d * d + d * d * d) / SPEED;
                    let first = if trial == 0 {
                        4.0 * fit + dense_fit
                    } else {
                        0.0
                    };
                    // One thread makes about half of `SPEED`.
                    let steps = 2.0 * plan.deletions.len() as f64 * d * d * d / SPEED;
                    let denominators = if times_denominators(plan, trial) {
                        fit + steps
                    } else {
                        0.0
                    };
                    let cost = first + denominators + d * 2e-5;
                    jobs.push(StudyJob {
                        study: PaperStudy::Times,
                        cell: cell(source, width),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, watch: &mut dyn RunWatch) -> Result<Values> {
        let places = sources(&self.context).into_iter().flat_map(|source| {
            let widths = self.context.plan.times.widths.clone();
            widths.into_iter().map(move |width| (source, width))
        });
        let Some((source, width)) = places
            .into_iter()
            .find(|(source, width)| cell(source, *width) == job.cell)
        else {
            return Ok(Values::new());
        };
        if self
            .ready
            .as_ref()
            .is_none_or(|(name, _)| *name != job.cell)
        {
            // The old rows go before the new ones come: both may be large.
            self.ready = None;
            let ready = self.prepare(&job.cell, source, width, watch)?;
            self.ready = Some((job.cell.clone(), ready));
        }
        let Some((
            _,
            PreparedRows {
                rows,
                ids,
                model,
                inverse,
                prepare,
            },
        )) = &self.ready
        else {
            return Ok(Values::new());
        };
        let plan = &self.context.plan.times;
        let mut values = Values::from([
            ("prepare s".into(), *prepare),
            ("rows".into(), ids.len() as f64),
        ]);
        let seed = trial_seed(self.context.seed, 2, (width * 1000 + job.trial) as u64);
        let denominators = times_denominators(plan, job.trial);
        let wait = ProcessorWait::begin();
        for (at, &k) in plan.deletions.iter().enumerate() {
            let gone = choose(ids, k, trial_seed(seed, 3, k as u64));
            if denominators {
                let start = Instant::now();
                inverse.without(rows, &gone)?;
                values.insert(
                    format!("k={k} {NEWTON_STEP}"),
                    start.elapsed().as_secs_f64(),
                );
            }
            // A refit takes nearly as long for every k, and is timed for one of them.
            if denominators && at == plan.deletions.len() / 2 {
                // Copying the retained rows is not part of retraining.
                let left = without(rows, &gone);
                let start = Instant::now();
                // At the tolerance of the model: nothing is asked of retraining that is not asked
                // of forgetting.
                Recipe::new(ridge(1).tolerance(TOLERANCE)).fit(&left)?;
                values.insert(REFIT.into(), start.elapsed().as_secs_f64());
            }
            for (method, name) in METHODS {
                let forgot = forget(method, model, rows, &gone)?;
                values.insert(format!("k={k} {name} s"), forgot.seconds);
                if method == "exact" {
                    values.insert(format!("k={k} exact bound"), forgot.evidence.relative_bound);
                    values.insert("kept bytes".into(), kept_bytes(&forgot.evidence));
                    values.insert(
                        format!("k={k} exact refactored"),
                        f64::from(u8::from(forgot.evidence.refactored)),
                    );
                }
            }
        }
        if denominators && let Some(share) = wait.share() {
            values.insert(WAITED.into(), share);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StudyPlan;

    #[test]
    fn denominators_are_timed_as_often_as_planned_and_all_over_the_run() {
        for (trials, denominators) in [(100, 10), (100, 7), (5, 5), (3, 2), (1, 1)] {
            let plan = TimesPlan {
                trials,
                denominators,
                ..StudyPlan::full().times
            };
            let chosen: Vec<usize> = (0..trials)
                .filter(|trial| times_denominators(&plan, *trial))
                .collect();
            assert_eq!(chosen.len(), denominators);
            let widest = chosen
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .max()
                .unwrap_or(1);
            assert!(widest <= trials.div_ceil(denominators), "{chosen:?}");
        }
    }
}
