//! Scores without what changes need. A linear model's scorer is its coefficients and nothing else;
//! a model that is small beside its rows is its own scorer.

use std::fmt;
use std::sync::Arc;

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::{Model, NamedParameters, ShardModel};
use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::request;
use crate::rows::Features;
use crate::state::ModelState;
use crate::traits::Predict;

/// What scores rows and says what it consists of.
pub trait ScoresRows: Predict + fmt::Debug + Send + Sync {
    /// The parameters by name; refused for a model that has none of its own.
    fn parameters(&self) -> Result<NamedParameters>;

    /// The model, where it is its own scorer.
    fn model(&self) -> Option<&Model> {
        None
    }
}

/// A scorer of any family, shared between threads.
#[derive(Debug, Clone)]
pub struct ModelScorer(Arc<dyn ScoresRows>);

impl ModelScorer {
    /// A scorer of a known kind.
    pub fn new(scorer: impl ScoresRows + 'static) -> Self {
        Self(Arc::new(scorer))
    }

    /// A model that is its own scorer.
    pub fn whole(model: Model) -> Self {
        Self::new(model)
    }

    /// The model, where it is its own scorer.
    pub fn model(&self) -> Option<&Model> {
        self.0.model()
    }

    /// The parameters by name; refused for a model that has none of its own.
    pub fn parameters(&self) -> Result<NamedParameters> {
        self.0.parameters()
    }
}

impl Predict for ModelScorer {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        self.0.predict(features)
    }
}

impl ScoresRows for Model {
    fn parameters(&self) -> Result<NamedParameters> {
        Self::parameters(self)
    }

    fn model(&self) -> Option<&Model> {
        Some(self)
    }
}

/// Scores that are sums, xᵀw + b: coefficients, output after output, and a constant each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearScorer {
    coefficients: Vec<f64>,
    constants: Vec<f64>,
}

impl LinearScorer {
    /// The scorer of coefficients (features × outputs) and one constant per output.
    pub fn new(coefficients: &Mat<f64>, constants: Vec<f64>) -> Self {
        let columns = (0..coefficients.ncols()).map(|output| coefficients.col_as_slice(output));
        Self {
            coefficients: columns.flatten().copied().collect(),
            constants,
        }
    }

    /// The scorer that a shard was stored as.
    pub(crate) fn from_state(state: &ModelState) -> Result<Self> {
        let scorer: Self = state.head()?;
        let sound = scorer.coefficients.len() == scorer.width() * scorer.constants.len()
            && !scorer.constants.is_empty()
            && scorer
                .coefficients
                .iter()
                .chain(&scorer.constants)
                .all(|value| value.is_finite());
        if sound {
            Ok(scorer)
        } else {
            Err(Error::Damaged(
                "the parameters of a shard make no sense".into(),
            ))
        }
    }

    fn width(&self) -> usize {
        self.coefficients.len() / self.constants.len().max(1)
    }
}

impl Predict for LinearScorer {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        let width = self.width();
        request::check_features(features, width)?;
        Ok(Mat::from_fn(
            features.rows(),
            self.constants.len(),
            |slot, output| {
                let coefficients = &self.coefficients[output * width..(output + 1) * width];
                features.row(slot).dot(coefficients) + self.constants[output]
            },
        ))
    }
}

impl ScoresRows for LinearScorer {
    fn parameters(&self) -> Result<NamedParameters> {
        let width = self.width();
        let table = Mat::from_fn(width, self.constants.len(), |feature, output| {
            self.coefficients[output * width + feature]
        });
        Ok(NamedParameters::linear(table, self.constants.clone()))
    }
}

/// The model of a ridge shard: training is a closed form that needs no start, so that parameters
/// are all it has to keep.
impl ShardModel for LinearScorer {
    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(Family::Ridge, self)
    }

    fn bytes(&self) -> usize {
        8 * (self.coefficients.len() + self.constants.len())
    }
}
