//! Every family of models behind one type, for whoever does not know at compile time which one it has: the engine, which
//! opens a file, and the command, which reads a name.
//!
//! [`AnyRecipe`] fits an [`AnyModel`]. [`AnyModel::forget`] takes the name of a method, looks it up in the
//! [table](crate::methods::table) and refuses a pair that makes no sense with the reason and with what to use instead.

mod base;
mod forget;
mod rule;
mod scorer;
mod state;

pub use crate::family::Family;
pub use base::{BaseModel, BaseRecipe, Linear};
pub use scorer::Scorer;
pub use state::{NamedParameters, no_parameters};

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::logistic::Link;
use super::{
    GaussianNb, KMeans, KMeansModel, Logistic, LogisticModel, MultinomialNb, NaiveBayes, Ridge, RidgeModel,
    Sisa, SisaModel, Softmax,
};
use crate::error::Result;
use crate::evidence::{Evidence, Outcome};
use crate::rows::{Features, RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Predict, Settled};

/// A recipe of any family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum AnyRecipe {
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
    /// k-means.
    KMeans(KMeans),
    /// One of the others, in shards.
    Sisa(Sisa<BaseRecipe>),
}

impl AnyRecipe {
    /// The family of its models.
    pub fn family(&self) -> Family {
        match self {
            Self::Ridge(_) => Family::Ridge,
            Self::Logistic(_) => Family::Logistic,
            Self::Softmax(_) => Family::Softmax,
            Self::MultinomialNb(_) => Family::MultinomialNb,
            Self::GaussianNb(_) => Family::GaussianNb,
            Self::KMeans(_) => Family::KMeans,
            Self::Sisa(_) => Family::Sisa,
        }
    }
}

impl Fit for AnyRecipe {
    type Model = AnyModel;

    fn fit(&self, rows: &Rows) -> Result<AnyModel> {
        Ok(match self {
            Self::Ridge(recipe) => AnyModel::Ridge(Box::new(recipe.fit(rows)?)),
            Self::Logistic(recipe) => AnyModel::Logistic(Box::new(recipe.fit(rows)?)),
            Self::Softmax(recipe) => AnyModel::Logistic(Box::new(recipe.fit(rows)?)),
            Self::MultinomialNb(recipe) => AnyModel::MultinomialNb(recipe.fit(rows)?),
            Self::GaussianNb(recipe) => AnyModel::GaussianNb(recipe.fit(rows)?),
            Self::KMeans(recipe) => AnyModel::KMeans(recipe.fit(rows)?),
            Self::Sisa(recipe) => AnyModel::Sisa(recipe.fit(rows)?),
        })
    }
}

/// A fitted model of any family.
#[derive(Debug, Clone)]
pub enum AnyModel {
    /// Ridge regression.
    Ridge(Box<RidgeModel>),
    /// Logistic regression, two classes or more.
    Logistic(Box<LogisticModel>),
    /// Multinomial naive Bayes.
    MultinomialNb(NaiveBayes<MultinomialNb>),
    /// Gaussian naive Bayes.
    GaussianNb(NaiveBayes<GaussianNb>),
    /// k-means.
    KMeans(KMeansModel),
    /// A model in shards.
    Sisa(SisaModel<BaseRecipe>),
}

/// Does the same to the model inside, whichever it is.
macro_rules! each {
    ($any:expr, $model:ident => $work:expr) => {
        match $any {
            AnyModel::Ridge($model) => $work,
            AnyModel::Logistic($model) => $work,
            AnyModel::MultinomialNb($model) => $work,
            AnyModel::GaussianNb($model) => $work,
            AnyModel::KMeans($model) => $work,
            AnyModel::Sisa($model) => $work,
        }
    };
}

impl AnyModel {
    /// Its family.
    pub fn family(&self) -> Family {
        match self {
            Self::Ridge(_) => Family::Ridge,
            Self::Logistic(model) => match model.settings().link {
                Link::Logistic => Family::Logistic,
                Link::Softmax => Family::Softmax,
            },
            Self::MultinomialNb(_) => Family::MultinomialNb,
            Self::GaussianNb(_) => Family::GaussianNb,
            Self::KMeans(_) => Family::KMeans,
            Self::Sisa(_) => Family::Sisa,
        }
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        each!(self, model => model.rows())
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        match self {
            Self::Ridge(model) => model.features(),
            Self::Logistic(model) => model.features(),
            Self::MultinomialNb(model) => model.features(),
            Self::GaussianNb(model) => model.features(),
            Self::KMeans(model) => model.centers().ncols(),
            Self::Sisa(model) => model.features(),
        }
    }
}

impl Predict for AnyModel {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        each!(self, model => model.predict(features))
    }
}

/// Runs a change of the model inside and puts the result back under its name.
macro_rules! changed {
    ($any:expr, $model:ident => $work:expr) => {
        match $any {
            AnyModel::Ridge($model) => forget::wrap($work, |model| AnyModel::Ridge(Box::new(model))),
            AnyModel::Logistic($model) => forget::wrap($work, |model| AnyModel::Logistic(Box::new(model))),
            AnyModel::MultinomialNb($model) => forget::wrap($work, AnyModel::MultinomialNb),
            AnyModel::GaussianNb($model) => forget::wrap($work, AnyModel::GaussianNb),
            AnyModel::KMeans($model) => forget::wrap($work, AnyModel::KMeans),
            AnyModel::Sisa($model) => forget::wrap($work, AnyModel::Sisa),
        }
    };
}

impl Amend for AnyModel {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        let outcome = changed!(self, inner => inner.learn(rows, new))?;
        self.held_to_tolerance(outcome, rows, &[], new)
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        let outcome = changed!(self, inner => inner.amend(rows, corrected))?;
        let replaced: Vec<RowId> = corrected.ids().collect();
        self.held_to_tolerance(outcome, rows, &replaced, corrected)
    }

    fn settle(&mut self) -> Result<Settled> {
        each!(self, model => model.settle())
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        each!(self, model => model.update_evidence(evidence));
    }

    fn waiting(&self) -> usize {
        each!(self, model => model.waiting())
    }
}
