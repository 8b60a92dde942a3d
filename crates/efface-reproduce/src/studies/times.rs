//! Table 1: how long a forget takes, as a share of retraining. Models are kept in the rows form (each row's x·A⁻¹ at hand), in
//! which the hat block of any request is there for the asking: what the paper assumes for PRU. What that costs in memory and
//! time is measured too. Everything here works on one thread: threads that wait for each other on a busy machine would make
//! short requests look long.

use std::time::Instant;

use efface::synthetic::Linear;
use efface::{AnyModel, AnyRecipe, Dense, Fit, Form, RowId, Rows};

use super::{Context, Job, METHODS, Measure, SPEED, forget, kept_bytes, recipe, ridge, without};
use crate::data::{Labelled, REVIEWS, count_rows};
use crate::draw::{choose, mix};
use crate::error::{Error, Result};
use crate::part::Study;
use crate::state::Values;
use crate::watch::Watch;

pub(super) struct TimesStudy {
    context: Context,
    /// The cell at hand and what was made for it.
    ready: Option<(String, Ready)>,
}

struct Ready {
    rows: Rows,
    ids: Vec<RowId>,
    model: AnyModel,
    /// Seconds of a fit in the rows form.
    prepare: f64,
}

/// Where the rows of a cell come from.
pub(crate) fn sources(context: &Context) -> Vec<&'static str> {
    let mut sources = vec![GENERATED];
    if context.data.is_real() {
        sources.extend(REVIEWS.iter().map(|set| set.name));
    }
    sources
}

/// Rare words make reviews ill-conditioned: at the usual 1e-9 every request would measure its bound anew, in O(d²), only to find
/// it where it was. The bound that is reported is the one that was reached.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// The linear problem of Izzo et al., dense.
pub(crate) const GENERATED: &str = "generated rows";

pub(crate) fn cell(source: &str, width: usize) -> String {
    format!("{source}, d={width}")
}

impl TimesStudy {
    pub(super) fn new(context: Context) -> Self {
        Self { context, ready: None }
    }

    fn rows(&self, source: &str, width: usize) -> Result<Rows> {
        let Context { plan, data, seed, .. } = &self.context;
        let count = plan.times.rows_per_feature * width;
        if let Some(set) = REVIEWS.iter().find(|set| set.name == source) {
            let reviews: Vec<Labelled> = data.texts(set, Vec::new)?;
            // A set that is smaller than ten rows a feature is taken whole.
            let count = count.min(reviews.len());
            return count_rows(set.name, &reviews, count, width, mix(*seed, 1, width as u64));
        }
        let made = Linear { rows: count, width, seed: mix(*seed, 1, width as u64) }.generate();
        Ok(Rows::new(Dense::new(made.x, width)?, made.y, 1)?)
    }

    fn prepare(&mut self, name: &str, source: &str, width: usize, watch: &mut dyn Watch) -> Result<Ready> {
        watch.say(&format!("table 1: fitting {name} in the rows form"));
        let rows = self.rows(source, width)?;
        let ids: Vec<RowId> = rows.ids().collect();
        let most = self.context.plan.times.deletions.iter().copied().max().unwrap_or(0);
        if ids.len() <= most {
            let why = format!("forgetting {most} of them");
            return Err(Error::TooFewRows { name: name.into(), found: ids.len(), needed: most + 1, why });
        }
        let start = Instant::now();
        let model = AnyRecipe::Ridge(ridge(1).form(Form::Rows).tolerance(TOLERANCE)).fit(&rows)?;
        let prepare = start.elapsed().as_secs_f64();
        // The first request pays for memory that later ones find ready.
        for (method, _) in METHODS {
            forget(method, &model, &rows, &ids[..most.min(10)])?;
        }
        Ok(Ready { rows, ids, model, prepare })
    }
}

impl Measure for TimesStudy {
    fn jobs(&self) -> Vec<Job> {
        let plan = &self.context.plan.times;
        let mut jobs = Vec::new();
        for source in sources(&self.context) {
            for &width in &plan.widths {
                for trial in 0..plan.trials {
                    let d = width as f64;
                    let n = d * plan.rows_per_feature as f64;
                    let dense = if source == GENERATED { 1.0 } else { 0.1 };
                    let fit = (n * d * d * dense + d * d * d) / SPEED;
                    let first = if trial == 0 { 4.0 * fit } else { 0.0 };
                    let retraining = if trial < plan.retrainings { fit } else { 0.0 };
                    let cost = first + retraining + d * 2e-5;
                    jobs.push(Job { study: Study::Times, cell: cell(source, width), trial, cost });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &Job, watch: &mut dyn Watch) -> Result<Values> {
        let places = sources(&self.context).into_iter().flat_map(|source| {
            let widths = self.context.plan.times.widths.clone();
            widths.into_iter().map(move |width| (source, width))
        });
        let Some((source, width)) =
            places.into_iter().find(|(source, width)| cell(source, *width) == job.cell)
        else {
            return Ok(Values::new());
        };
        if self.ready.as_ref().is_none_or(|(name, _)| *name != job.cell) {
            // The old rows go before the new ones come: both may be large.
            self.ready = None;
            let ready = self.prepare(&job.cell, source, width, watch)?;
            self.ready = Some((job.cell.clone(), ready));
        }
        let Some((_, Ready { rows, ids, model, prepare })) = &self.ready else { return Ok(Values::new()) };
        let plan = &self.context.plan.times;
        let mut values = Values::from([("prepare s".into(), *prepare), ("rows".into(), ids.len() as f64)]);
        let seed = mix(self.context.seed, 2, (width * 1000 + job.trial) as u64);
        let mut retrained = None;
        for &k in &plan.deletions {
            let gone = choose(ids, k, mix(seed, 3, k as u64));
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
            retrained = Some(gone);
        }
        if job.trial < plan.retrainings
            && let Some(gone) = retrained
        {
            // Copying the retained rows is not part of retraining.
            let left = without(rows, &gone);
            let start = Instant::now();
            recipe(1).fit(&left)?;
            values.insert("retrain s".into(), start.elapsed().as_secs_f64());
        }
        Ok(values)
    }
}
