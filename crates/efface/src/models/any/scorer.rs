//! Scores without what changes need. A linear model's scorer is its coefficients and nothing else; a model that is small beside
//! its rows is its own scorer.

use faer::Mat;

use super::state::NamedParameters;
use super::{AnyModel, Family};
use crate::error::Result;
use crate::models::{LogisticModel, RidgeState, request};
use crate::rows::Features;
use crate::state::ModelState;
use crate::traits::Predict;

/// What scores rows. It is made from the state of a model without its working arrays, see
/// [`ModelState::is_working_array`].
#[derive(Debug, Clone)]
pub struct Scorer {
    family: Family,
    kind: ScorerKind,
}

#[derive(Debug, Clone)]
enum ScorerKind {
    Linear { coefficients: Mat<f64>, intercept: Vec<f64> },
    Whole(AnyModel),
}

impl Scorer {
    /// The scorer of a state.
    pub fn from_state(state: ModelState) -> Result<Self> {
        let family = state.family;
        let linear = |(coefficients, intercept)| ScorerKind::Linear { coefficients, intercept };
        let kind = match family {
            Family::Ridge => linear(RidgeState::from_model_state(state)?.parameters()?),
            Family::Logistic | Family::Softmax => linear(LogisticModel::from_state(state)?.parameters()),
            _ => ScorerKind::Whole(AnyModel::from_state(state)?),
        };
        Ok(Self { family, kind })
    }

    /// The family of the model.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The model, where it is its own scorer.
    pub fn model(&self) -> Option<&AnyModel> {
        match &self.kind {
            ScorerKind::Linear { .. } => None,
            ScorerKind::Whole(model) => Some(model),
        }
    }

    /// The parameters by name; refused for a model in shards.
    pub fn parameters(&self) -> Result<NamedParameters> {
        match &self.kind {
            ScorerKind::Linear { coefficients, intercept } => {
                Ok(NamedParameters::linear((coefficients.clone(), intercept.clone())))
            }
            ScorerKind::Whole(model) => model.parameters(),
        }
    }
}

impl Predict for Scorer {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        match &self.kind {
            ScorerKind::Linear { coefficients, intercept } => {
                linear_scores(coefficients, intercept, features)
            }
            ScorerKind::Whole(model) => model.predict(features),
        }
    }
}

/// xᵀw + b for every row and output.
fn linear_scores(coefficients: &Mat<f64>, intercept: &[f64], features: &Features) -> Result<Mat<f64>> {
    request::check_features(features, coefficients.nrows())?;
    Ok(Mat::from_fn(features.rows(), intercept.len(), |slot, output| {
        features.row(slot).dot(coefficients.col_as_slice(output)) + intercept[output]
    }))
}
