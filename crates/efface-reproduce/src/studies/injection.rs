//! Tables 4 and 5: the feature injection test on sparse rows, as Izzo et al. construct it. One draw
//! of the data, one fit, one retraining and one request per method a trial.

use efface::eval::weight_on;
use efface::synthetic::{FeatureInjection, LinearProblem};
use efface::{Dense, Fit, RowId, Rows};

use super::{
    BEFORE_CLEARING, METHODS, SPEED, StudyContext, StudyJob, StudyMeasure, forget, kept_bytes,
    left_before_clearing, recipe, without,
};
use crate::draw::trial_seed;
use crate::error::{Error, Result};
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct InjectionStudy {
    context: StudyContext,
}

pub(crate) fn cell(k: usize, keep: f64) -> String {
    format!("k={k}, p={keep}")
}

impl InjectionStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self { context }
    }
}

impl StudyMeasure for InjectionStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.injection;
        let n = plan.rows as f64;
        let d = plan.width as f64;
        let cost = 4.0 * n * d * d / SPEED;
        let mut jobs = Vec::new();
        // All cells of a trial before the next trial: an early end leaves every cell with about as
        // many.
        for trial in 0..plan.trials {
            for &k in &plan.deletions {
                for &keep in &plan.keeps {
                    jobs.push(StudyJob {
                        study: PaperStudy::Injection,
                        cell: cell(k, keep),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, _watch: &mut dyn RunWatch) -> Result<Values> {
        let plan = &self.context.plan.injection;
        let mut cells = plan
            .deletions
            .iter()
            .flat_map(|&k| plan.keeps.iter().map(move |&keep| (k, keep)));
        let Some((k, keep)) = cells.find(|(k, keep)| cell(*k, *keep) == job.cell) else {
            return Ok(Values::new());
        };
        if k >= plan.rows {
            let why = format!("forgetting {k} of them");
            return Err(Error::TooFewRows {
                name: "table 4".into(),
                found: plan.rows,
                needed: k + 1,
                why,
            });
        }
        let seed = trial_seed(
            self.context.seed,
            10 + k as u64,
            ((keep * 1e4) as u64) << 16 | job.trial as u64,
        );
        let base = LinearProblem {
            rows: plan.rows,
            width: plan.width,
            seed,
        };
        let made = FeatureInjection {
            base,
            removed: k,
            keep,
        }
        .generate()?;
        let rows = Rows::new(Dense::new(made.x, plan.width)?, made.y, 1)?;
        let recipe = recipe(self.context.threads);
        let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
        let last = plan.width - 1..plan.width;
        let model = recipe.fit(&rows)?;
        let before = weight_on(&model, last.clone())?;
        let retrained = weight_on(&recipe.fit(&without(&rows, &gone))?, last.clone())?;
        let mut values = Values::from([
            ("before".into(), before),
            ("retrain".into(), retrained / before),
        ]);
        for (method, name) in METHODS {
            let forgot = forget(method, &model, &rows, &gone)?;
            values.insert(
                name.into(),
                weight_on(&forgot.model, last.clone())? / before,
            );
            values.insert(format!("{name} s"), forgot.seconds);
            values.insert("kept bytes".into(), kept_bytes(&forgot.evidence));
            if method == "exact" {
                values.insert(
                    BEFORE_CLEARING.into(),
                    left_before_clearing(&forgot.evidence, before),
                );
            }
        }
        Ok(values)
    }
}
