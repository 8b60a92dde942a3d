//! Models in shards as a family: any other family that can be trained in shards, behind one recipe.

use std::sync::Arc;

use faer::Mat;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Aggregation, ShardCheckpoint, Sisa, SisaModel};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::family::Family;
use crate::methods::{Method, Retrain, SisaForget, TakesMethods};
use crate::models::family::{
    FamilyModel, FamilyRecipe, Model, NamedParameters, Recipe, RecipeDescription, RowsBeside,
    ScoreKind, ShardModel, ShardTrainer, no_parameters, no_shards,
};
use crate::rows::{Features, Rows};
use crate::state::ModelState;
use crate::traits::{Fit, Forget, Predict};

/// A recipe of any family, in shards.
pub type ShardedRecipe = Sisa<ShardRecipe>;

/// A model of any family, in shards.
pub type ShardedModel = SisaModel<ShardRecipe>;

/// A recipe of any family that shards can be trained with: every family but k-means, whose clusters
/// have no names that two shards share, and models trained with noise, whose certificate speaks of
/// one model.
#[derive(Debug, Clone)]
pub struct ShardRecipe {
    recipe: Recipe,
    trainer: Arc<dyn ShardTrainer>,
}

impl ShardRecipe {
    /// The recipe in shards; refused where its family cannot be.
    pub fn new(recipe: impl Into<Recipe>) -> Result<Self> {
        let recipe = recipe.into();
        Ok(Self {
            trainer: recipe.shard_trainer()?,
            recipe,
        })
    }

    /// The recipe of a whole model.
    pub fn whole(&self) -> &Recipe {
        &self.recipe
    }
}

impl PartialEq for ShardRecipe {
    fn eq(&self, other: &Self) -> bool {
        self.recipe == other.recipe
    }
}

impl Serialize for ShardRecipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.recipe.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ShardRecipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::new(Recipe::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Fit for ShardRecipe {
    type Model = Arc<dyn ShardModel>;

    fn fit(&self, rows: &Rows) -> Result<Self::Model> {
        self.trainer.train(None, rows)
    }

    fn resume(&self, start: &Self::Model, rows: &Rows) -> Result<Self::Model> {
        self.trainer.train(Some(start.as_ref()), rows)
    }

    fn class_scores(&self, outputs: usize) -> Option<usize> {
        self.recipe.class_scores(outputs)
    }

    fn bytes(&self, model: &Self::Model) -> usize {
        model.bytes()
    }
}

impl Predict for Arc<dyn ShardModel> {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        self.as_ref().predict(features)
    }
}

/// The recipe that the models of a stored shard are read with, by which none can be made: they are
/// plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct StoredShards;

impl Fit for StoredShards {
    type Model = ModelState;

    fn fit(&self, _rows: &Rows) -> Result<ModelState> {
        Err(Error::Unsupported {
            method: "fit",
            reason: "a stored shard cannot be trained; read it first".into(),
        })
    }
}

impl FamilyModel for ShardedModel {
    fn family(&self) -> Family {
        Family::Sisa
    }

    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn features(&self) -> usize {
        Self::features(self)
    }

    fn outputs(&self) -> Option<usize> {
        Some(Self::outputs(self))
    }

    fn scores(&self) -> ScoreKind {
        self.settings().describe().scores
    }

    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(
            Family::Sisa,
            &self.convert(StoredShards, |model| model.to_state())?,
        )
    }

    fn parameters(&self) -> Result<NamedParameters> {
        Err(no_parameters(self.settings().shards))
    }

    fn evidence(&self) -> Evidence {
        Self::evidence(self, Method::Sisa.name())
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let trained = self
            .answers()
            .filter(|answer| !matches!(answer, ShardCheckpoint::Abstains));
        let by_class = self.shards_by_class().map(|counts| {
            let counts = counts.into_iter().map(|count| count as f64).collect();
            ("shards_by_class", counts)
        });
        std::iter::once(("shards_trained", vec![trained.count() as f64]))
            .chain(by_class)
            .collect()
    }

    fn reseeded(&self, seed: u64) -> Option<Model> {
        let mut model = self.clone();
        model.recipe.seed = seed;
        Some(Model::new(model))
    }

    fn reason_of_auto(&self) -> Option<&'static str> {
        Some("only the shards that saw the rows are trained again")
    }
}

impl TakesMethods for ShardedModel {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::Sisa | Method::Auto(_) => Box::new(SisaForget),
            _ => return None,
        })
    }
}

impl FamilyRecipe for ShardedRecipe {
    fn family(&self) -> Family {
        Family::Sisa
    }

    fn describe(&self) -> RecipeDescription {
        let base = self.recipe.whole().describe();
        let plural = |count: usize, word: &str| {
            if count == 1 {
                format!("1 {word}")
            } else {
                format!("{count} {word}s")
            }
        };
        let shards = plural(self.shards, "shard");
        let slices = plural(self.slices, "slice");
        let how = match self.aggregation {
            Aggregation::Vote => "vote",
            Aggregation::Mean => "mean",
        };
        RecipeDescription {
            name: format!("{} in shards", base.name),
            settings: format!("{shards} of {slices}, {how}; {}", base.settings),
            scores: if self.aggregation == Aggregation::Vote {
                ScoreKind::Votes
            } else {
                base.scores
            },
            seed: Some(self.seed),
            knows_row_numbers: true,
            form: None,
            ..base
        }
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        let stored: SisaModel<StoredShards> = state.head()?;
        let restore = |state: &ModelState| self.recipe.trainer.restore(state.clone());
        Ok(Model::new(stored.convert(self.recipe.clone(), restore)?))
    }

    /// The number of threads changes nothing of the result.
    fn made(&self, model: &Model) -> bool {
        model
            .get::<ShardedModel>()
            .is_some_and(|model| model.settings().clone().threads(self.threads) == *self)
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Err(no_shards(
            "shards of shards are only smaller shards; ask for more of them",
        ))
    }

    fn with_seed(&self, seed: u64) -> Option<Recipe> {
        Some(self.clone().seed(seed).into())
    }

    fn on_threads(&self, threads: usize) -> Recipe {
        self.clone().threads(threads).into()
    }
}
