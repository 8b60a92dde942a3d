//! What can be trained in shards: every family but k-means, whose clusters have no names that two shards share, and models
//! trained with noise, whose certificate speaks of one model.
//!
//! A shard keeps many models and never takes a row out of one, so that each keeps what prediction and further training need
//! and no curvature.

use std::borrow::Cow;

use faer::Mat;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::AnyRecipe;
use crate::error::{Error, Result};
use crate::models::{
    GaussianNb, Logistic, LogisticModel, MultinomialNb, NaiveBayes, Ridge, Softmax, request,
};
use crate::rows::{Features, Rows};
use crate::state::ModelState;
use crate::traits::{Fit, Predict};

/// A recipe that shards can be trained with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum BaseRecipe {
    /// Ridge regression.
    Ridge(Ridge),
    /// Logistic regression, two classes.
    Logistic(Logistic),
    /// Logistic regression, three classes or more.
    Softmax(Softmax),
    /// Multinomial naive Bayes.
    MultinomialNb(MultinomialNb),
    /// Gaussian naive Bayes.
    GaussianNb(GaussianNb),
}

impl TryFrom<AnyRecipe> for BaseRecipe {
    type Error = Error;

    fn try_from(recipe: AnyRecipe) -> Result<Self> {
        let refuse = |reason: &str| Err(Error::Unsupported { method: "sisa", reason: reason.into() });
        match recipe {
            AnyRecipe::Logistic(recipe) if recipe.privacy.is_some() => refuse(
                "a certificate of (ε, δ) speaks of one model, and shards are many; fit without shards, or without ε",
            ),
            AnyRecipe::KMeans(_) => refuse(
                "the clusters of different shards have no common names; fit k-means without shards, it forgets by itself",
            ),
            AnyRecipe::Sisa(_) => refuse("shards of shards are only smaller shards; ask for more of them"),
            AnyRecipe::Ridge(recipe) => Ok(Self::Ridge(recipe)),
            AnyRecipe::Logistic(recipe) => Ok(Self::Logistic(recipe.curvature(false))),
            AnyRecipe::Softmax(recipe) => Ok(Self::Softmax(recipe.curvature(false))),
            AnyRecipe::MultinomialNb(recipe) => Ok(Self::MultinomialNb(recipe)),
            AnyRecipe::GaussianNb(recipe) => Ok(Self::GaussianNb(recipe)),
        }
    }
}

impl From<BaseRecipe> for AnyRecipe {
    fn from(recipe: BaseRecipe) -> Self {
        match recipe {
            BaseRecipe::Ridge(recipe) => Self::Ridge(recipe),
            BaseRecipe::Logistic(recipe) => Self::Logistic(recipe),
            BaseRecipe::Softmax(recipe) => Self::Softmax(recipe),
            BaseRecipe::MultinomialNb(recipe) => Self::MultinomialNb(recipe),
            BaseRecipe::GaussianNb(recipe) => Self::GaussianNb(recipe),
        }
    }
}

/// The model of one shard.
#[derive(Debug, Clone)]
pub enum BaseModel {
    /// Ridge regression: its parameters alone, because training is a closed form that needs no start.
    Linear(Linear),
    /// Logistic regression, without its curvature.
    Logistic(Box<LogisticModel>),
    /// Multinomial naive Bayes.
    MultinomialNb(NaiveBayes<MultinomialNb>),
    /// Gaussian naive Bayes.
    GaussianNb(NaiveBayes<GaussianNb>),
}

/// Scores that are sums: coefficients, output after output, and a constant each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Linear {
    coefficients: Vec<f64>,
    constants: Vec<f64>,
}

impl Linear {
    fn width(&self) -> usize {
        self.coefficients.len() / self.constants.len().max(1)
    }

    fn is_sound(&self) -> bool {
        self.coefficients.len() == self.width() * self.constants.len()
            && !self.constants.is_empty()
            && self.coefficients.iter().chain(&self.constants).all(|value| value.is_finite())
    }
}

impl Predict for Linear {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        let width = self.width();
        request::check_features(features, width)?;
        Ok(Mat::from_fn(features.rows(), self.constants.len(), |slot, output| {
            let coefficients = &self.coefficients[output * width..(output + 1) * width];
            features.row(slot).dot(coefficients) + self.constants[output]
        }))
    }
}

impl Fit for BaseRecipe {
    type Model = BaseModel;

    fn fit(&self, rows: &Rows) -> Result<BaseModel> {
        Ok(match self {
            Self::Ridge(recipe) => {
                let (table, constants) = recipe.fit(rows)?.parameters();
                let coefficients = (0..table.ncols()).flat_map(|output| table.col_as_slice(output).to_vec());
                BaseModel::Linear(Linear { coefficients: coefficients.collect(), constants })
            }
            Self::Logistic(recipe) => BaseModel::Logistic(Box::new(recipe.fit(rows)?)),
            Self::Softmax(recipe) => BaseModel::Logistic(Box::new(recipe.fit(rows)?)),
            Self::MultinomialNb(recipe) => BaseModel::MultinomialNb(recipe.fit(rows)?),
            Self::GaussianNb(recipe) => BaseModel::GaussianNb(recipe.fit(rows)?),
        })
    }

    fn resume(&self, start: &BaseModel, rows: &Rows) -> Result<BaseModel> {
        match (self, start) {
            (Self::Logistic(recipe), BaseModel::Logistic(start)) => {
                Ok(BaseModel::Logistic(Box::new(recipe.resume(start, rows)?)))
            }
            (Self::Softmax(recipe), BaseModel::Logistic(start)) => {
                Ok(BaseModel::Logistic(Box::new(recipe.resume(start, rows)?)))
            }
            _ => self.fit(rows),
        }
    }

    fn bytes(&self, model: &BaseModel) -> usize {
        match (self, model) {
            (_, BaseModel::Linear(linear)) => 8 * (linear.coefficients.len() + linear.constants.len()),
            // Parameters and what is left of their gradient.
            (_, BaseModel::Logistic(model)) => 16 * (model.features() + 1) * model.outputs(),
            (Self::MultinomialNb(recipe), BaseModel::MultinomialNb(model)) => recipe.bytes(model),
            (Self::GaussianNb(recipe), BaseModel::GaussianNb(model)) => recipe.bytes(model),
            _ => 0,
        }
    }
}

impl Predict for BaseModel {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        match self {
            Self::Linear(model) => model.predict(features),
            Self::Logistic(model) => model.predict(features),
            Self::MultinomialNb(model) => model.predict(features),
            Self::GaussianNb(model) => model.predict(features),
        }
    }
}

/// A model as it is written down, before it is believed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored<'a> {
    Linear(Cow<'a, Linear>),
    Logistic(ModelState),
    MultinomialNb(Cow<'a, NaiveBayes<MultinomialNb>>),
    GaussianNb(Cow<'a, NaiveBayes<GaussianNb>>),
}

impl Serialize for BaseModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let stored = match self {
            Self::Linear(model) => Stored::Linear(Cow::Borrowed(model)),
            Self::Logistic(model) => Stored::Logistic(model.to_state().map_err(S::Error::custom)?),
            Self::MultinomialNb(model) => Stored::MultinomialNb(Cow::Borrowed(model)),
            Self::GaussianNb(model) => Stored::GaussianNb(Cow::Borrowed(model)),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BaseModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Linear(model) if model.is_sound() => Self::Linear(model.into_owned()),
            Stored::Linear(_) => return Err(D::Error::custom("the parameters of a shard make no sense")),
            Stored::Logistic(state) => {
                Self::Logistic(Box::new(LogisticModel::from_state(state).map_err(D::Error::custom)?))
            }
            Stored::MultinomialNb(model) => Self::MultinomialNb(model.into_owned()),
            Stored::GaussianNb(model) => Self::GaussianNb(model.into_owned()),
        })
    }
}
