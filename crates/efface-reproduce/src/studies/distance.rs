//! Izzo's L2 table: what is left of the distance to retraining when the rows to forget are outliers. Their scripts compare with
//! a model that misses one row more than was forgotten; both comparisons are made here.

use efface::eval::parameters;
use efface::synthetic::{Linear, Outliers};
use efface::{AnyModel, Dense, Fit, RowId, Rows};

use super::{Context, Job, METHODS, Measure, SPEED, forget, kept_bytes, recipe, without};
use crate::draw::mix;
use crate::error::{Error, Result};
use crate::part::Study;
use crate::state::Values;
use crate::watch::Watch;

pub(super) struct DistanceStudy {
    context: Context,
}

pub(crate) fn cell(k: usize, scale: f64) -> String {
    format!("k={k}, ×{scale}")
}

impl DistanceStudy {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }
}

fn apart(a: &AnyModel, b: &AnyModel) -> Result<f64> {
    let (a, b) = (parameters(a)?, parameters(b)?);
    Ok(a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt())
}

impl Measure for DistanceStudy {
    fn jobs(&self) -> Vec<Job> {
        let plan = &self.context.plan.distance;
        let (n, d) = (plan.rows as f64, plan.width as f64);
        let cost = 5.0 * n * d * d / SPEED;
        let mut jobs = Vec::new();
        for trial in 0..plan.trials {
            for &k in &plan.deletions {
                for &scale in &plan.scales {
                    jobs.push(Job { study: Study::Distance, cell: cell(k, scale), trial, cost });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &Job, _watch: &mut dyn Watch) -> Result<Values> {
        let plan = &self.context.plan.distance;
        let mut cells = plan.deletions.iter().flat_map(|&k| plan.scales.iter().map(move |&scale| (k, scale)));
        let Some((k, scale)) = cells.find(|(k, scale)| cell(*k, *scale) == job.cell) else {
            return Ok(Values::new());
        };
        if k + 1 >= plan.rows {
            let why = format!("forgetting {k} of them and missing one more");
            return Err(Error::TooFewRows { name: "l2".into(), found: plan.rows, needed: k + 2, why });
        }
        // The same rows for every scale: only their size differs.
        let seed = mix(self.context.seed, 20, (k as u64) << 16 | job.trial as u64);
        let base = Linear { rows: plan.rows, width: plan.width, seed };
        let made = Outliers { base, removed: k, scale }.generate()?;
        let rows = Rows::new(Dense::new(made.x, plan.width)?, made.y, 1)?;
        let recipe = recipe(self.context.threads);
        let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
        let one_more: Vec<RowId> = (0..=k as u64).map(RowId).collect();
        let model = recipe.fit(&rows)?;
        let right = recipe.fit(&without(&rows, &gone))?;
        let wrong = recipe.fit(&without(&rows, &one_more))?;
        let (moved, moved_wrong) = (apart(&model, &right)?, apart(&model, &wrong)?);
        let mut values = Values::from([
            ("moved".into(), moved),
            ("retrain".into(), 0.0),
            ("retrain, one row more".into(), apart(&right, &wrong)? / moved_wrong),
        ]);
        for (method, name) in METHODS {
            let forgot = forget(method, &model, &rows, &gone)?;
            values.insert(name.into(), apart(&forgot.model, &right)? / moved);
            values.insert(format!("{name}, one row more"), apart(&forgot.model, &wrong)? / moved_wrong);
            values.insert("kept bytes".into(), kept_bytes(&forgot.evidence));
        }
        Ok(values)
    }
}
