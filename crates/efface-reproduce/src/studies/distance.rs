//! Izzo's L2 table: what is left of the distance to retraining when the rows to forget are
//! outliers.
//!
//! Their script draws the covariance of the rows by scikit-learn's `make_spd_matrix`, scales one
//! row more than it forgets, and compares with a model that misses that row too. The rows are made
//! in three ways here, from ours to theirs, and both comparisons are made for each, so that it can
//! be seen what moves which number.

use efface::eval::parameters;
use efface::synthetic::{LinearProblem, RegressionData, SpdLinear};
use efface::{Dense, Fit, Model, RowId, Rows};

use super::{
    METHODS, SPEED, StudyContext, StudyJob, StudyMeasure, forget, kept_bytes, recipe, without,
};
use crate::draw::trial_seed;
use crate::error::{Error, Result};
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct DistanceStudy {
    context: StudyContext,
}

/// Where the covariance of the rows comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RowCovariance {
    /// MMᵀ/d + 0.01·I, as in the other linear tables.
    Gaussian,
    /// scikit-learn's `make_spd_matrix`, as in the original script.
    Spd,
}

/// How the rows of a cell are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowConstruction {
    pub(crate) covariance: RowCovariance,
    /// How many rows are scaled beyond those that are forgotten.
    pub(crate) beyond: usize,
}

/// From ours to that of the original script, which is the last.
pub(crate) const CONSTRUCTIONS: [RowConstruction; 3] = [
    RowConstruction {
        covariance: RowCovariance::Gaussian,
        beyond: 0,
    },
    RowConstruction {
        covariance: RowCovariance::Spd,
        beyond: 0,
    },
    RowConstruction {
        covariance: RowCovariance::Spd,
        beyond: 1,
    },
];

impl RowCovariance {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RowCovariance::Gaussian => "MMᵀ/d + 0.01·I",
            RowCovariance::Spd => "make_spd_matrix",
        }
    }

    fn draw(self, rows: usize, width: usize, seed: u64) -> Result<RegressionData> {
        Ok(match self {
            RowCovariance::Gaussian => LinearProblem { rows, width, seed }.generate(),
            RowCovariance::Spd => SpdLinear { rows, width, seed }.generate()?,
        })
    }
}

pub(crate) fn cell(made: RowConstruction, k: usize) -> String {
    format!(
        "{}, {} scaled, k={k}",
        made.covariance.name(),
        k + made.beyond
    )
}

/// A value of a cell: `what` at one of the scales.
pub(crate) fn at_scale(scale: f64, what: &str) -> String {
    format!("×{scale} {what}")
}

impl DistanceStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self { context }
    }
}

fn apart(a: &Model, b: &Model) -> Result<f64> {
    let a = parameters(a)?;
    let b = parameters(b)?;
    Ok(a.iter()
        .zip(&b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt())
}

impl StudyMeasure for DistanceStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.distance;
        let n = plan.rows as f64;
        let d = plan.width as f64;
        let mut jobs = Vec::new();
        for trial in 0..plan.trials {
            for made in CONSTRUCTIONS {
                // The two drawings, and a fit of all rows and one or two of fewer for every scale.
                let fits = 3.0 + (2 + made.beyond) as f64 * plan.scales.len() as f64;
                let eigen = if made.covariance == RowCovariance::Spd {
                    10.0 * d * d * d
                } else {
                    0.0
                };
                let cost = (fits * n * d * d + eigen) / SPEED;
                for &k in &plan.deletions {
                    jobs.push(StudyJob {
                        study: PaperStudy::Distance,
                        cell: cell(made, k),
                        trial,
                        cost,
                    });
                }
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, _watch: &mut dyn RunWatch) -> Result<Values> {
        let plan = &self.context.plan.distance;
        let mut cells = CONSTRUCTIONS
            .into_iter()
            .flat_map(|made| plan.deletions.iter().map(move |&k| (made, k)));
        let Some((made, k)) = cells.find(|(made, k)| cell(*made, *k) == job.cell) else {
            return Ok(Values::new());
        };
        if k + 1 >= plan.rows {
            let why = format!("forgetting {k} of them and missing one more");
            return Err(Error::TooFewRows {
                name: "l2".into(),
                found: plan.rows,
                needed: k + 2,
                why,
            });
        }
        // Every scale, and every number of scaled rows, uses the same rows: only the size of the
        // rows differs.
        let seed = trial_seed(self.context.seed, 20, (k as u64) << 16 | job.trial as u64);
        let drawn = made.covariance.draw(plan.rows, plan.width, seed)?;
        let recipe = recipe(self.context.threads);
        let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
        let one_more: Vec<RowId> = (0..=k as u64).map(RowId).collect();
        let mut values = Values::new();
        let mut retrained: Option<(Model, Model)> = None;
        for &scale in &plan.scales {
            let scaled = drawn.clone().scaled(k + made.beyond, scale)?;
            let rows = Rows::new(Dense::new(scaled.x, plan.width)?, scaled.y, 1)?;
            let model = recipe.fit(&rows)?;
            // Where no row is scaled that stays, the rows that stay are the same at every scale.
            let (right, wrong) = match retrained.take() {
                Some((_, wrong)) if made.beyond > 0 => (recipe.fit(&without(&rows, &gone))?, wrong),
                Some(both) => both,
                None => (
                    recipe.fit(&without(&rows, &gone))?,
                    recipe.fit(&without(&rows, &one_more))?,
                ),
            };
            let moved = apart(&model, &right)?;
            let moved_wrong = apart(&model, &wrong)?;
            values.insert(at_scale(scale, "moved"), moved);
            values.insert(at_scale(scale, "retrain"), 0.0);
            values.insert(
                at_scale(scale, "retrain, one row more"),
                apart(&right, &wrong)? / moved_wrong,
            );
            for (method, name) in METHODS {
                let forgot = forget(method, &model, &rows, &gone)?;
                values.insert(at_scale(scale, name), apart(&forgot.model, &right)? / moved);
                let wrong_share = apart(&forgot.model, &wrong)? / moved_wrong;
                values.insert(
                    at_scale(scale, &format!("{name}, one row more")),
                    wrong_share,
                );
                values.insert("kept bytes".into(), kept_bytes(&forgot.evidence));
            }
            retrained = Some((right, wrong));
        }
        Ok(values)
    }
}
