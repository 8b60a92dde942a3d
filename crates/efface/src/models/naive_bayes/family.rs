//! The kinds of naive Bayes as families of models.

use std::sync::Arc;

use faer::Mat;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rule::Rule;
use super::{BernoulliNb, ComplementNb, GaussianNb, MultinomialNb, NaiveBayes};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Outcome};
use crate::family::Family;
use crate::methods::{Method, Retrain, Summation, TakesMethods};
use crate::models::family::{
    BatchedFit, ClassReweighting, FamilyModel, FamilyRecipe, Model, NamedParameters,
    RecipeDescription, RecipeTask, RowsBeside, ScoreKind, ShardModel, ShardTrainer,
};
use crate::models::words::number_in_words;
use crate::rows::Rows;
use crate::state::ModelState;
use crate::traits::Forget;

/// What tells the families apart beside their likelihood.
pub trait BayesFamily: Rule + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The family.
    const FAMILY: Family;

    /// The settings in a few words.
    fn in_words(&self) -> String;

    /// The tables that scores are made of, a line per class.
    fn tables(model: &NaiveBayes<Self>) -> Vec<(&'static str, Mat<f64>)>;

    /// What is added to every variance; None where there are none.
    fn smoothing(_model: &NaiveBayes<Self>) -> Option<f64> {
        None
    }
}

impl BayesFamily for MultinomialNb {
    const FAMILY: Family = Family::MultinomialNb;

    fn in_words(&self) -> String {
        format!("smoothing {}", number_in_words(self.alpha))
    }

    fn tables(model: &NaiveBayes<Self>) -> Vec<(&'static str, Mat<f64>)> {
        vec![("feature_log_prob", model.feature_log_prob())]
    }
}

impl BayesFamily for ComplementNb {
    const FAMILY: Family = Family::ComplementNb;

    fn in_words(&self) -> String {
        format!("smoothing {}", number_in_words(self.alpha))
    }

    fn tables(model: &NaiveBayes<Self>) -> Vec<(&'static str, Mat<f64>)> {
        vec![("feature_log_prob", model.feature_log_prob())]
    }
}

impl BayesFamily for BernoulliNb {
    const FAMILY: Family = Family::BernoulliNb;

    fn in_words(&self) -> String {
        let alpha = number_in_words(self.alpha);
        format!(
            "smoothing {alpha}, features above {}",
            number_in_words(self.threshold)
        )
    }

    fn tables(model: &NaiveBayes<Self>) -> Vec<(&'static str, Mat<f64>)> {
        vec![("feature_log_prob", model.feature_log_prob())]
    }
}

impl BayesFamily for GaussianNb {
    const FAMILY: Family = Family::GaussianNb;

    fn in_words(&self) -> String {
        format!(
            "smoothing {} of the largest variance",
            number_in_words(self.var_smoothing)
        )
    }

    fn tables(model: &NaiveBayes<Self>) -> Vec<(&'static str, Mat<f64>)> {
        vec![("means", model.means()), ("variances", model.variances())]
    }

    fn smoothing(model: &NaiveBayes<Self>) -> Option<f64> {
        Some(model.smoothing())
    }
}

impl<R: BayesFamily> FamilyModel for NaiveBayes<R> {
    fn family(&self) -> Family {
        R::FAMILY
    }

    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn features(&self) -> usize {
        Self::features(self)
    }

    fn classes(&self) -> Option<usize> {
        Some(Self::classes(self))
    }

    fn scores(&self) -> ScoreKind {
        ScoreKind::LogLikelihoods
    }

    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(R::FAMILY, self)
    }

    fn parameters(&self) -> Result<NamedParameters> {
        let tables = R::tables(self).into_iter();
        Ok(NamedParameters {
            vectors: vec![("class_prior", self.class_prior())],
            tables: tables
                .map(|(name, table)| (name, table.transpose().to_owned()))
                .collect(),
        })
    }

    fn evidence(&self) -> Evidence {
        Self::evidence(self, Method::Summation.name())
    }

    fn reason_of_auto(&self) -> Option<&'static str> {
        Some("the model is its sums, and sums can be subtracted from")
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let smoothing = R::smoothing(self).map(|value| ("epsilon", vec![value]));
        std::iter::once(("class_count", self.class_counts()))
            .chain(smoothing)
            .collect()
    }

    fn reads_request_only(&self, method: &Method) -> bool {
        *method != Method::Retrain
    }

    fn reweighted(&self, change: &ClassReweighting<'_>) -> Option<Result<Outcome<Model>>> {
        let wrapped = |outcome: Outcome<Self>| Outcome {
            model: Model::new(outcome.model),
            evidence: outcome.evidence,
        };
        Some(Self::reweighted(self, change).map(wrapped))
    }
}

impl<R: BayesFamily> TakesMethods for NaiveBayes<R> {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::Summation | Method::Auto(_) => Box::new(Summation),
            _ => return None,
        })
    }
}

impl<R: BayesFamily> FamilyRecipe for R {
    fn family(&self) -> Family {
        R::FAMILY
    }

    fn describe(&self) -> RecipeDescription {
        RecipeDescription {
            settings: self.in_words(),
            has_score_per_class: true,
            ..RecipeDescription::new(R::FAMILY, RecipeTask::Classes, ScoreKind::LogLikelihoods)
        }
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        Ok(Model::new(state.head::<NaiveBayes<R>>()?))
    }

    fn in_batches(&self, _rows: usize) -> Option<Box<dyn BatchedFit>> {
        Some(Box::new(BayesBatches {
            recipe: *self,
            model: None,
        }))
    }

    fn made(&self, model: &Model) -> bool {
        model
            .get::<NaiveBayes<R>>()
            .is_some_and(|model| model.settings() == self)
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Ok(Arc::new(*self))
    }
}

/// Counts of the batches so far.
struct BayesBatches<R> {
    recipe: R,
    model: Option<NaiveBayes<R>>,
}

impl<R: BayesFamily> BatchedFit for BayesBatches<R> {
    fn add(&mut self, rows: &Rows) -> Result<()> {
        match &mut self.model {
            Some(model) => model.take_in(rows),
            None => {
                self.model = Some(NaiveBayes::train(self.recipe, rows)?);
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<Model> {
        self.model.map(Model::new).ok_or(Error::NoRows)
    }
}

impl<R: BayesFamily> ShardTrainer for R {
    fn train(&self, _start: Option<&dyn ShardModel>, rows: &Rows) -> Result<Arc<dyn ShardModel>> {
        Ok(Arc::new(NaiveBayes::train(*self, rows)?))
    }

    fn restore(&self, state: ModelState) -> Result<Arc<dyn ShardModel>> {
        Ok(Arc::new(state.head::<NaiveBayes<R>>()?))
    }
}

impl<R: BayesFamily> ShardModel for NaiveBayes<R> {
    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(R::FAMILY, self)
    }

    fn bytes(&self) -> usize {
        self.tally.bytes()
    }
}
