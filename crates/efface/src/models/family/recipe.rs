//! A recipe of any family.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{BatchedFit, FamilyModel, LinearScorer, Model, ModelScorer, ShardTrainer};
use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::REGISTRY;
use crate::models::form::Form;
use crate::rows::{RowStore, Rows};
use crate::state::ModelState;
use crate::traits::Fit;

/// What every family tells of its recipe. Beside this a recipe has [`Fit`], `Clone`, `PartialEq`
/// and `Serialize`, from which [`RecipeFits`] follows.
pub trait FamilyRecipe: RecipeFits + fmt::Debug + Any + Send + Sync {
    /// The family of its models.
    fn family(&self) -> Family;

    /// What it says of itself, for summaries, receipts and audits.
    fn describe(&self) -> RecipeDescription;

    /// The model of a state. Everything in the state is checked before it is believed; that the
    /// model is of this recipe is checked by [`Recipe::restore`].
    fn read_model(&self, state: ModelState, beside: RowsBeside<'_>) -> Result<Model>;

    /// Whether it made a model.
    fn made(&self, model: &Model) -> bool;

    /// What scores rows, from a state without its working arrays. A model that is small beside its
    /// rows is its own scorer.
    fn read_scorer(&self, state: ModelState) -> Result<ModelScorer> {
        Ok(ModelScorer::whole(
            self.read_model(state, RowsBeside::None)?,
        ))
    }

    /// What trains the shards of a model, where the family can be trained in shards. Shards keep no
    /// curvature.
    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>>;

    /// The recipe in the form that a single change of a stored model works in.
    fn for_single_change(&self) -> Recipe {
        self.cloned()
    }

    /// The recipe in the form in which changes of a model file of these rows cost least, where it
    /// leaves that open.
    fn for_file_of(&self, _rows: &Rows) -> Recipe {
        self.cloned()
    }

    /// The recipe that a model would have been made by as it is now: a change may have settled what
    /// a recipe leaves open.
    fn as_kept_by(&self, _model: &Model) -> Recipe {
        self.cloned()
    }

    /// The recipe with a secret seed for its noise, where it has noise.
    fn with_secret(&self, _seed: u64) -> Option<Recipe> {
        None
    }

    /// Returns the recipe with another seed; None if it draws nothing.
    fn with_seed(&self, _seed: u64) -> Option<Recipe> {
        None
    }

    /// The recipe for this many threads.
    fn on_threads(&self, _threads: usize) -> Recipe {
        self.cloned()
    }

    /// The recipe with its curvature left out, for fits that nothing is ever taken out of.
    fn without_curvature(&self) -> Recipe {
        self.cloned()
    }

    /// The recipe with another penalty λ; None where it has none.
    fn with_penalty(&self, _lambda: f64) -> Option<Recipe> {
        None
    }

    /// A fit of about so many rows that sees them batch by batch; None where a fit needs all rows
    /// at once.
    fn in_batches(&self, _rows: usize) -> Option<Box<dyn BatchedFit>> {
        None
    }

    /// Whether it fits rows beyond memory by passes over a store that shows them in blocks. Then it
    /// tells how many bytes it holds in memory for so many features and outputs, however many rows
    /// there are.
    fn bytes_by_passes(&self, _features: usize, _outputs: usize) -> Option<u64> {
        None
    }

    /// Whether its models may have [`leave_one_out`](FamilyModel::leave_one_out).
    fn has_leave_one_out(&self) -> bool {
        false
    }
}

/// What lies beside a state while it is read.
#[derive(Clone, Copy)]
pub enum RowsBeside<'a> {
    /// Nothing. A ridge model in the rows form, which keeps rows, comes back in the factor form.
    None,
    /// The rows of the model, read by a ridge model in the rows form only.
    Kept(&'a dyn RowStore),
    /// Rows that have left the parameters and are still in the sums.
    Gone(&'a Rows),
}

/// What a recipe says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeDescription {
    /// What it learns.
    pub task: RecipeTask,
    /// What the scores of its models are.
    pub scores: ScoreKind,
    /// The name of the family, or of the family in shards.
    pub name: String,
    /// The settings in a few words.
    pub settings: String,
    /// The penalty, where it has one.
    pub lambda: Option<f64>,
    /// Whether it fits a constant, where it could.
    pub intercept: Option<bool>,
    /// How the curvature is kept, where there is a choice.
    pub form: Option<Form>,
    /// The seed of its random choices; None where there are none, or where it is a secret.
    pub seed: Option<u64>,
    /// The clusters that it makes.
    pub clusters: Option<usize>,
    /// Whether there is a score for every class, even where there are two.
    pub has_score_per_class: bool,
    /// Whether its models depend on the numbers of the rows, so that a row with another number is
    /// another row.
    pub knows_row_numbers: bool,
    /// Whether it trains with noise.
    pub is_certified: bool,
}

impl RecipeDescription {
    /// A description without settings.
    pub fn new(family: Family, task: RecipeTask, scores: ScoreKind) -> Self {
        Self {
            task,
            scores,
            name: family.name().into(),
            settings: String::new(),
            lambda: None,
            intercept: None,
            form: None,
            seed: None,
            clusters: None,
            has_score_per_class: false,
            knows_row_numbers: false,
            is_certified: false,
        }
    }

    /// See [`Fit::class_scores`].
    pub(crate) fn class_scores(&self, outputs: usize) -> Option<usize> {
        let least = if self.has_score_per_class { 2 } else { 1 };
        self.task.classifies().then_some(outputs.max(least))
    }
}

/// What a recipe learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipeTask {
    /// Numbers, which may stand for classes.
    Numbers,
    /// Two classes.
    TwoClasses,
    /// Three classes or more.
    ManyClasses,
    /// Any number of classes.
    Classes,
    /// Clusters, without targets.
    Clusters,
}

impl RecipeTask {
    /// Whether target values can only be classes.
    pub fn classifies(self) -> bool {
        matches!(self, Self::TwoClasses | Self::ManyClasses | Self::Classes)
    }

    /// Whether there is something to predict.
    pub fn has_targets(self) -> bool {
        self != Self::Clusters
    }
}

/// What the scores of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreKind {
    /// Estimates of the targets.
    Values,
    /// Log-odds: one column for two classes, else one per class.
    LogOdds,
    /// Log-likelihoods, one column per class.
    LogLikelihoods,
    /// Distances to the centres of clusters.
    Distances,
    /// Shares of votes.
    Votes,
}

/// What follows from the typed traits of a recipe.
pub trait RecipeFits {
    /// A copy.
    fn cloned(&self) -> Recipe;

    /// Whether it is this recipe.
    fn equals(&self, other: &Recipe) -> bool;

    /// Its settings.
    fn settings(&self) -> serde_json::Result<Value>;

    /// Learns from all rows, from scratch.
    fn fit_model(&self, rows: &Rows) -> Result<Model>;

    /// Learns from all rows of a store, which may be beyond memory where
    /// [`FamilyRecipe::bytes_by_passes`] says so.
    fn fit_store_model(&self, rows: &dyn RowStore) -> Result<Model>;

    /// Learns from all rows, starting from a model of some of them.
    fn resume_model(&self, start: &Model, rows: &Rows) -> Result<Model>;

    /// See [`Fit::class_scores`].
    fn model_class_scores(&self, outputs: usize) -> Option<usize>;
}

impl<R> RecipeFits for R
where
    R: FamilyRecipe + Fit<Model: FamilyModel> + Clone + PartialEq + Serialize,
{
    fn cloned(&self) -> Recipe {
        Recipe::new(self.clone())
    }

    fn equals(&self, other: &Recipe) -> bool {
        other.get::<R>() == Some(self)
    }

    fn settings(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }

    fn fit_model(&self, rows: &Rows) -> Result<Model> {
        self.fit(rows).map(Model::new)
    }

    fn fit_store_model(&self, rows: &dyn RowStore) -> Result<Model> {
        self.fit_store(rows).map(Model::new)
    }

    fn resume_model(&self, start: &Model, rows: &Rows) -> Result<Model> {
        match start.get::<R::Model>() {
            Some(start) => self.resume(start, rows).map(Model::new),
            None => self.fit_model(rows),
        }
    }

    fn model_class_scores(&self, outputs: usize) -> Option<usize> {
        self.class_scores(outputs)
    }
}

/// A recipe of any family. As JSON it is its settings and, under `family`, the name of the family.
#[derive(Debug)]
pub struct Recipe(Box<dyn FamilyRecipe>);

impl Recipe {
    /// A recipe of a known family.
    pub fn new(recipe: impl FamilyRecipe) -> Self {
        Self(Box::new(recipe))
    }

    /// The recipe as one of a known family; None where it is of another.
    pub fn get<R: FamilyRecipe>(&self) -> Option<&R> {
        let any: &dyn Any = self.0.as_ref();
        any.downcast_ref()
    }

    /// The family of its models.
    pub fn family(&self) -> Family {
        self.0.family()
    }

    /// What it says of itself.
    pub fn describe(&self) -> RecipeDescription {
        self.0.describe()
    }

    /// The model of a state; refused where another recipe made it.
    pub fn restore(&self, state: ModelState, beside: RowsBeside<'_>) -> Result<Model> {
        let different =
            || Error::Damaged("its recipe and its state are of different models".into());
        if state.family != self.family() {
            return Err(different());
        }
        let model = self.0.read_model(state, beside)?;
        if self.0.made(&model) {
            Ok(model)
        } else {
            Err(different())
        }
    }

    /// What scores rows, from a state without its working arrays, see
    /// [`ModelState::is_working_array`].
    pub fn restore_scorer(&self, state: ModelState) -> Result<ModelScorer> {
        if state.family != self.family() {
            return Err(Error::Damaged(
                "its recipe and its state are of different models".into(),
            ));
        }
        self.0.read_scorer(state)
    }

    /// What trains the shards of a model, where the family can be trained in shards.
    pub fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        self.0.shard_trainer()
    }

    /// A fit of about so many rows that sees them batch by batch; None where a fit needs all rows
    /// at once.
    pub fn in_batches(&self, rows: usize) -> Option<Box<dyn BatchedFit>> {
        self.0.in_batches(rows)
    }

    /// See [`FamilyRecipe::bytes_by_passes`].
    pub fn bytes_by_passes(&self, features: usize, outputs: usize) -> Option<u64> {
        self.0.bytes_by_passes(features, outputs)
    }

    /// The recipe in the form that a single change of a stored model works in.
    pub fn for_single_change(&self) -> Self {
        self.0.for_single_change()
    }

    /// The recipe in the form in which changes of a model file of these rows cost least.
    pub fn for_file_of(&self, rows: &Rows) -> Self {
        self.0.for_file_of(rows)
    }

    /// The recipe that a model would have been made by as it is now.
    pub fn as_kept_by(&self, model: &Model) -> Self {
        self.0.as_kept_by(model)
    }

    /// The recipe with a secret seed for its noise; None where it has no noise.
    pub fn with_secret(&self, seed: u64) -> Option<Self> {
        self.0.with_secret(seed)
    }

    /// The recipe without the seed of its noise, for summaries and receipts: a reader who knows the
    /// seed can take the noise away.
    pub fn without_secret(&self) -> Self {
        self.0.with_secret(0).unwrap_or_else(|| self.clone())
    }

    /// Returns the recipe with another seed; None if it draws nothing.
    pub fn with_seed(&self, seed: u64) -> Option<Self> {
        self.0.with_seed(seed)
    }

    /// The recipe for this many threads.
    pub fn on_threads(&self, threads: usize) -> Self {
        self.0.on_threads(threads)
    }

    /// The recipe with its curvature left out.
    pub fn without_curvature(&self) -> Self {
        self.0.without_curvature()
    }

    /// The recipe with another penalty λ; None where it has none.
    pub fn with_penalty(&self, lambda: f64) -> Option<Self> {
        self.0.with_penalty(lambda)
    }

    /// Whether its models can tell what they would answer without each of their rows.
    pub fn has_leave_one_out(&self) -> bool {
        self.0.has_leave_one_out()
    }
}

impl<R: FamilyRecipe> From<R> for Recipe {
    fn from(recipe: R) -> Self {
        Self::new(recipe)
    }
}

impl Clone for Recipe {
    fn clone(&self) -> Self {
        self.0.cloned()
    }
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other)
    }
}

impl Fit for Recipe {
    type Model = Model;

    fn fit(&self, rows: &Rows) -> Result<Model> {
        self.0.fit_model(rows)
    }

    fn resume(&self, start: &Model, rows: &Rows) -> Result<Model> {
        self.0.resume_model(start, rows)
    }

    fn fit_store(&self, rows: &dyn RowStore) -> Result<Model> {
        self.0.fit_store_model(rows)
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        self.0.model_class_scores(outputs)
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut settings = self.0.settings().map_err(S::Error::custom)?;
        let family = serde_json::to_value(self.family()).map_err(S::Error::custom)?;
        match &mut settings {
            Value::Object(fields) => fields.insert("family".into(), family),
            _ => return Err(S::Error::custom("a recipe is written as named settings")),
        };
        settings.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut fields = serde_json::Map::<String, Value>::deserialize(deserializer)?;
        let named = fields
            .remove("family")
            .ok_or_else(|| D::Error::missing_field("family"))?;
        let family: Family = serde_json::from_value(named).map_err(D::Error::custom)?;
        let registered = REGISTRY.iter().find(|entry| entry.family == family);
        let registered = registered
            .ok_or_else(|| D::Error::custom("its recipe is not kept as settings alone"))?;
        (registered.read)(Value::Object(fields)).map_err(D::Error::custom)
    }
}

/// A family, and how its recipe is read.
pub struct RegisteredFamily {
    family: Family,
    read: fn(Value) -> serde_json::Result<Recipe>,
}

impl RegisteredFamily {
    /// The family of this recipe.
    pub const fn of<R: FamilyRecipe + DeserializeOwned>(family: Family) -> Self {
        Self {
            family,
            read: |settings| Ok(Recipe::new(serde_json::from_value::<R>(settings)?)),
        }
    }
}

/// Why a family cannot be trained in shards.
pub fn no_shards(reason: &str) -> Error {
    Error::Unsupported {
        method: "sisa",
        reason: reason.into(),
    }
}

impl From<LinearScorer> for ModelScorer {
    fn from(scorer: LinearScorer) -> Self {
        Self::new(scorer)
    }
}
