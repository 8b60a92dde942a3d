//! k-means as a family of models.

use std::sync::Arc;

use super::{KMeans, KMeansModel, Scheme};
use crate::error::Result;
use crate::evidence::{Claim, Evidence, Outcome};
use crate::family::Family;
use crate::methods::{DcKMeans, Method, QKMeans, Retrain, TakesMethods};
use crate::models::family::{
    FamilyModel, FamilyRecipe, Model, NamedParameters, Recipe, RecipeDescription, RecipeTask,
    RowsBeside, ScoreKind, ShardTrainer, no_shards,
};
use crate::models::words::number_in_words;
use crate::rows::{RowId, RowStore};
use crate::state::ModelState;
use crate::traits::Forget;

impl FamilyModel for KMeansModel {
    fn family(&self) -> Family {
        Family::KMeans
    }

    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn features(&self) -> usize {
        self.centers().ncols()
    }

    fn scores(&self) -> ScoreKind {
        ScoreKind::Distances
    }

    fn to_state(&self) -> Result<ModelState> {
        ModelState::new(Family::KMeans, self)
    }

    fn parameters(&self) -> Result<NamedParameters> {
        let centers = self.centers().transpose().to_owned();
        Ok(NamedParameters {
            vectors: Vec::new(),
            tables: vec![("centers", centers)],
        })
    }

    fn evidence(&self) -> Evidence {
        let method = match self.settings().scheme {
            Scheme::Quantised { .. } => Method::QKMeans,
            Scheme::Divided { .. } => Method::DcKMeans,
        };
        Self::evidence(self, method.name())
    }

    fn reseeded(&self, seed: u64) -> Option<Model> {
        let mut model = self.clone();
        model.recipe.seed = seed;
        Some(Model::new(model))
    }

    fn reason_of_auto(&self) -> Option<&'static str> {
        Some("the scheme that the model was fitted with decides")
    }

    fn iterations(&self) -> Option<usize> {
        Some(Self::iterations(self))
    }
}

impl TakesMethods for KMeansModel {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(match method {
            Method::Retrain => Box::new(Retrain),
            Method::QKMeans => Box::new(QKMeans),
            Method::DcKMeans => Box::new(DcKMeans),
            Method::Auto(_) => Box::new(SchemeOfModel),
            _ => return None,
        })
    }
}

/// The method of the scheme that a model was fitted with.
struct SchemeOfModel;

impl Forget<KMeansModel> for SchemeOfModel {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &KMeansModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<KMeansModel>> {
        match model.settings().scheme {
            Scheme::Quantised { .. } => QKMeans.forget(model, rows, gone),
            Scheme::Divided { .. } => DcKMeans.forget(model, rows, gone),
        }
    }
}

impl FamilyRecipe for KMeans {
    fn family(&self) -> Family {
        Family::KMeans
    }

    fn describe(&self) -> RecipeDescription {
        let settings = match self.scheme {
            Scheme::Quantised { epsilon, .. } => {
                format!("on a lattice of cells of {}", number_in_words(epsilon))
            }
            Scheme::Divided { height, width } => {
                format!("over a tree of height {height} and width {width}")
            }
        };
        RecipeDescription {
            settings,
            seed: Some(self.seed),
            clusters: Some(self.k),
            knows_row_numbers: true,
            ..RecipeDescription::new(Family::KMeans, RecipeTask::Clusters, ScoreKind::Distances)
        }
    }

    fn read_model(&self, state: ModelState, _beside: RowsBeside<'_>) -> Result<Model> {
        Ok(Model::new(state.head::<KMeansModel>()?))
    }

    fn made(&self, model: &Model) -> bool {
        model
            .get::<KMeansModel>()
            .is_some_and(|model| model.settings() == self)
    }

    fn with_seed(&self, seed: u64) -> Option<Recipe> {
        Some(Self { seed, ..*self }.into())
    }

    fn bytes_by_passes(&self, features: usize, _outputs: usize) -> Option<u64> {
        // A stage has centres and sums of two words; all stages of a run are kept.
        let stages = self.iterations as u64 + 2;
        Some(
            (self.k as u64)
                .saturating_mul(features as u64 + 1)
                .saturating_mul(24)
                .saturating_mul(stages),
        )
    }

    fn shard_trainer(&self) -> Result<Arc<dyn ShardTrainer>> {
        Err(no_shards(
            "the clusters of different shards have no common names; fit k-means without shards, it forgets by itself",
        ))
    }
}
