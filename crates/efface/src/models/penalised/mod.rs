//! Linear models whose loss is convex and whose penalty alone holds them in place: support vector
//! machines with the squared hinge loss, and Poisson regression.
//!
//! Method: θ = argmin Σ w ℓ(θᵀx, y) + λ/2 ‖θ‖², by Newton's method (`solver.rs`). Forgetting takes
//! the same steps from where the model stands, on the rows that are left: one or two passes where a
//! fit takes ten.
//!
//! Exactness: the loss with its penalty is λ-strongly convex, so that the distance to the optimum
//! is at most the gradient over λ. That needs no smooth curvature, which the squared hinge has not,
//! and no bounded one, which the Poisson loss has not. Nothing is carried from request to request:
//! every bound is measured in a pass over the rows.
//!
//! Memory: the parameters and nothing else, so that there is nothing a row could stay in.

mod family;
mod loss;
mod methods;
mod settings;
mod solver;

pub use loss::{LossPoint, PenalisedLoss, PoissonLoss, SquaredHinge};
pub use settings::{LinearSvm, Penalised, PoissonRegression};

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::family::FamilyRecipe;
use super::request;
use super::ridge::relative_to;
use crate::error::{Error, Result};
use crate::evidence::{BoundSource, Evidence, Outcome};
use crate::linalg::dot;
use crate::rows::{ChangedRows, Features, RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Predict, Settled};
use solver::{OutputProblem, TrainingRows};

/// A fitted model of a convex loss with a penalty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct PenalisedModel<L: PenalisedLoss> {
    settings: Penalised<L>,
    width: usize,
    rows: usize,
    /// Coefficients and behind them the constant, a list for each output.
    parameters: Vec<Vec<f64>>,
    gradient: f64,
    convexity: f64,
    bound: f64,
    steps: usize,
}

impl<L: PenalisedLoss> PenalisedModel<L> {
    /// The model of these rows, from the parameters of another one where there is one; None for as
    /// many steps as it takes.
    fn train(
        settings: Penalised<L>,
        rows: &dyn RowStore,
        start: Option<&Self>,
        steps: Option<usize>,
    ) -> Result<Self> {
        settings.check()?;
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        let held = if rows.is_beyond_memory() {
            None
        } else {
            Some(rows.all()?)
        };
        let training = held
            .as_deref()
            .map_or(TrainingRows::Passed(rows), TrainingRows::Held);
        let mut weight = 0.0;
        training.each_block(&mut |block| {
            weight += block.iter().map(|row| row.weight).sum::<f64>();
            Ok(())
        })?;
        if weight <= 0.0 {
            return Err(Error::NoWeight);
        }
        let lambda = if L::PENALTY_PER_ROW {
            settings.lambda * weight
        } else {
            settings.lambda
        };
        let width = rows.width();
        let start =
            start.filter(|model| model.width == width && model.parameters.len() == rows.outputs());
        let most = steps.unwrap_or(settings.max_iterations);
        let mut model = Self {
            settings,
            width,
            rows: rows.len(),
            parameters: Vec::with_capacity(rows.outputs()),
            gradient: 0.0,
            convexity: lambda,
            bound: 0.0,
            steps: 0,
        };
        for output in 0..rows.outputs() {
            let problem =
                OutputProblem::<L>::new(training, output, lambda, settings.intercept, width)?;
            let from =
                start.map_or_else(|| problem.start(), |model| model.parameters[output].clone());
            let (place, taken) = problem.minimised(from, most)?;
            let found = problem.bound(&place);
            if steps.is_none() && taken == most {
                let tolerance = settings.tolerance;
                return Err(Error::NotTrained {
                    iterations: taken,
                    gradient: found.gradient,
                    tolerance,
                });
            }
            model.gradient = model.gradient.hypot(found.gradient);
            model.bound = model.bound.hypot(found.distance);
            model.steps = model.steps.max(taken);
            model.parameters.push(place.theta);
        }
        Ok(model)
    }

    /// The settings it was fitted with.
    pub fn settings(&self) -> &Penalised<L> {
        &self.settings
    }

    /// Coefficients, one column per output, and the constants.
    pub fn parameters(&self) -> (Mat<f64>, Vec<f64>) {
        let coefficients = Mat::from_fn(self.width, self.parameters.len(), |feature, output| {
            self.parameters[output][feature]
        });
        (
            coefficients,
            self.parameters
                .iter()
                .map(|theta| theta[self.width])
                .collect(),
        )
    }

    /// What is known of the model as it stands.
    pub(crate) fn evidence(&self, method: &str) -> Evidence {
        let size = self
            .parameters
            .iter()
            .map(|theta| dot(theta, theta))
            .sum::<f64>()
            .sqrt();
        let mut evidence = request::evidence(method, self.rows, (self.bound, 1.0), "nothing", 0);
        evidence.precomputed.clear();
        evidence.tolerance = Some(self.settings.tolerance);
        evidence.relative_bound = relative_to(self.bound, size);
        evidence.bound_source = BoundSource::Measured;
        evidence.gradient_norm = Some(self.gradient);
        evidence.convexity = self.convexity;
        evidence.iterations = self.steps;
        evidence
    }

    /// The model of other rows, by as many steps from here as are asked for or as it takes.
    fn moved(
        &self,
        method: &str,
        rows: &dyn RowStore,
        steps: Option<usize>,
    ) -> Result<Outcome<Self>> {
        let model = Self::train(self.settings, rows, Some(self), steps)?;
        // Each step reads the rows for the curvature and for the gradient where it leads.
        let evidence = Evidence {
            rows_read: rows.len(),
            ..model.evidence(method)
        };
        Ok(Outcome { model, evidence })
    }

    fn check_gone(&self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        request::check_outputs(rows.outputs(), self.parameters.len())?;
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, self.width)
    }
}

impl<L: PenalisedLoss> Fit for Penalised<L> {
    type Model = PenalisedModel<L>;

    fn fit(&self, rows: &Rows) -> Result<PenalisedModel<L>> {
        PenalisedModel::train(*self, rows, None, None)
    }

    fn fit_store(&self, rows: &dyn RowStore) -> Result<PenalisedModel<L>> {
        PenalisedModel::train(*self, rows, None, None)
    }

    fn resume(&self, start: &PenalisedModel<L>, rows: &Rows) -> Result<PenalisedModel<L>> {
        PenalisedModel::train(*self, rows, Some(start), None)
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        FamilyRecipe::describe(self).class_scores(outputs)
    }

    fn bytes(&self, model: &PenalisedModel<L>) -> usize {
        8 * (model.width + 1) * model.parameters.len()
    }
}

impl<L: PenalisedLoss> Predict for PenalisedModel<L> {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        request::check_features(features, self.width)?;
        Ok(Mat::from_fn(
            features.rows(),
            self.parameters.len(),
            |slot, output| {
                let theta = &self.parameters[output];
                L::prediction(features.row(slot).dot(&theta[..self.width]) + theta[self.width])
            },
        ))
    }
}

impl<L: PenalisedLoss> Amend for PenalisedModel<L> {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(new.outputs(), self.parameters.len())?;
        request::check_numbers(new)?;
        request::check_new(rows, new, self.width)?;
        let mut outcome = self.moved("learn", &ChangedRows::new(rows, &[], Some(new)), None)?;
        outcome.evidence.learned = new.len();
        Ok(outcome)
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(corrected.outputs(), self.parameters.len())?;
        request::check_numbers(corrected)?;
        let ids = request::check_corrected(rows, corrected, self.width)?;
        let mut outcome = self.moved(
            "amend",
            &ChangedRows::new(rows, &ids, Some(corrected)),
            None,
        )?;
        outcome.evidence.forgotten = ids.len();
        outcome.evidence.learned = ids.len();
        Ok(outcome)
    }

    /// Nothing ever waits: there is no curvature that it could wait for.
    fn settle(&mut self) -> Result<Settled> {
        Ok(Settled::default())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        request::refresh(evidence, self.evidence(&evidence.method));
    }
}
