//! SISA: sharded, isolated, sliced, aggregated training, around any other recipe.
//!
//! ```text
//! row i        lies in slice r of shard s; (s, r) is a hash of the seed and the row's id
//! shard s      checkpoint_0 = fit(slice 0),  checkpoint_r = resume(checkpoint_{r−1}, slices 0 … r)
//! answer       the vote, or the mean score, of the last checkpoints of all shards
//! forget D     in each shard of D: go back to the checkpoint before the first slice of D, and train from there
//! ```
//!
//! | method | claim | cost of a row |
//! |---|---|---|
//! | [`SisaForget`] | exact | the trainings of slices r … R−1 of one shard; on average (R+1)/2 trainings of n/S rows at most |
//! | [`Retrain`](crate::methods::Retrain) | exact | all S·R trainings |
//!
//! Guarantee: exact for requests that do not depend on the published model, whatever the recipe
//! does, as long as it is deterministic. (Whoever chooses rows after looking at the model chooses
//! shards with them, and training with the same seed keeps that choice: Gupta et al. 2021.) No row moves when
//! another leaves, so the checkpoints before the touched slice are those of a fit that never saw
//! the row, and those after it are trained as that fit would train them: the model is, bit for bit,
//! that of the same `Sisa` recipe on the retained rows. The reported bound is therefore 0. It says
//! nothing of the distance to *one* model of all rows: a shard learns from n/S rows, and the answer
//! of many such models is another one, as a rule a worse one. Several rows in one shard cost one
//! training of its chain; touched shards are trained side by side on `threads` threads, with the
//! same result for any number.
//!
//! Memory: S·R checkpoints, and the ids of all rows. Slices pay for recipes that profit from a
//! start ([`Fit::resume`]). One that ignores it, as ridge and naive Bayes do, trains a shard of R
//! slices R times over and gains nothing by it: give it one slice.
//!
//! When it fails, or says less: a shard or a first slice may lack a class. It is then trained on
//! the classes that it has, as a model with fewer outputs, and cannot vote for the others; the mean
//! score of a class is that of the shards which have it. A shard of one class cannot tell classes
//! apart: it has a say only where no shard can, and then votes for its class. A class that no shard
//! has is never the answer. [`shards_by_class`](SisaModel::shards_by_class) counts how many shards
//! have each class: one that few shards have seldom wins a vote. No row is moved to mend that,
//! because where a row lies would then depend on others.
//! A shard without rows that weigh something abstains: it counts in neither vote nor mean. Any
//! error of the recipe is the error of the whole (ridge without a penalty needs more rows a slice
//! than it has columns, for one). The fit refuses more shards than rows as a mistake; forgetting
//! below that number is no mistake and leaves empty shards. The mean of log-likelihoods, as naive
//! Bayes scores, is ruled by its lowest term, so vote there. Scores must mean the same in every
//! shard: the clusters of k-means do not.
//!
//! Bourtoule, Chandrasekaran, Choquette-Choo, Jia, Travers, Zhang, Lie and Papernot 2021, "Machine
//! unlearning". There rows are dealt to shards in turn; a hash leaves the shards a little unequal,
//! and nobody else's place to chance.

mod aggregate;
mod family;
mod forget;
mod recipe;
mod shard;

pub use crate::methods::SisaForget;
pub use family::{ShardRecipe, ShardedModel, ShardedRecipe};
pub use recipe::{Aggregation, Sisa};
pub use shard::ShardCheckpoint;

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::request;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Precomputed};
use crate::not_covered::NotCovered;
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::{Fit, Predict};
use shard::{ShardChain, ShardRows, TrainingWork};

/// A fitted sharded model, with every checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "StoredSisa<F>",
    bound(
        serialize = "F: Serialize, F::Model: Serialize",
        deserialize = "F: Deserialize<'de>, F::Model: Deserialize<'de>"
    )
)]
pub struct SisaModel<F: Fit> {
    recipe: Sisa<F>,
    width: usize,
    outputs: usize,
    /// Shared with the model before a change, where the change did not touch them.
    #[serde(serialize_with = "write_shards")]
    shards: Vec<Arc<ShardChain<F::Model>>>,
}

impl<F> Fit for Sisa<F>
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    type Model = SisaModel<F>;

    fn fit(&self, rows: &Rows) -> Result<SisaModel<F>> {
        if self.shards > rows.len() && !rows.is_empty() {
            let value = format!("{} ({} rows)", self.shards, rows.len());
            return Err(Error::Parameter {
                name: "shards",
                value,
                range: "at most the number of rows",
            });
        }
        Ok(SisaModel::train(self, rows)?.0)
    }

    fn bytes(&self, model: &SisaModel<F>) -> usize {
        model.precomputed().iter().map(|part| part.bytes).sum()
    }
}

impl<F: Fit> SisaModel<F> {
    /// The recipe it was fitted with.
    pub fn settings(&self) -> &Sisa<F> {
        &self.recipe
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        self.width
    }

    /// How many targets a row has.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What each shard knows, all its slices taken together; never [`ShardCheckpoint::AsBefore`].
    pub fn answers(&self) -> impl Iterator<Item = &ShardCheckpoint<F::Model>> {
        self.shards.iter().map(|shard| shard.answer())
    }

    /// Returns how many shards have rows of each class; None if the targets are numbers.
    pub fn shards_by_class(&self) -> Option<Vec<usize>> {
        self.recipe.class_scores(self.outputs)?;
        let shards_with = |class| self.answers().filter(|a| a.has_class(class)).count();
        let classes = 0..shard::class_count(self.outputs);
        Some(classes.map(shards_with).collect())
    }

    /// What is kept beside the rows, and its memory.
    pub fn precomputed(&self) -> Vec<Precomputed> {
        let size = |checkpoint: &ShardCheckpoint<F::Model>| match checkpoint.model() {
            Some(model) => self.recipe.recipe.bytes(model),
            None => 0,
        };
        let checkpoints = self
            .shards
            .iter()
            .flat_map(|shard| &shard.checkpoints)
            .map(size)
            .sum();
        let ids = self.rows() * size_of::<RowId>();
        [("checkpoints", checkpoints), ("row ids of the slices", ids)]
            .map(|(what, bytes)| Precomputed {
                what: what.into(),
                bytes,
            })
            .into()
    }

    /// The same shards with every model in another form, such as one that can be written down.
    pub fn convert<G: Fit>(
        &self,
        recipe: G,
        mut with: impl FnMut(&F::Model) -> Result<G::Model>,
    ) -> Result<SisaModel<G>> {
        let Sisa {
            shards,
            slices,
            seed,
            aggregation,
            threads,
            ..
        } = self.recipe;
        let mut converted = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let checkpoints = shard
                .checkpoints
                .iter()
                .map(|checkpoint| checkpoint.convert(&mut with));
            let checkpoints = checkpoints.collect::<Result<_>>()?;
            converted.push(Arc::new(ShardChain {
                slices: shard.slices.clone(),
                checkpoints,
            }));
        }
        let recipe = Sisa {
            recipe,
            shards,
            slices,
            seed,
            aggregation,
            threads,
        };
        Ok(SisaModel {
            recipe,
            width: self.width,
            outputs: self.outputs,
            shards: converted,
        })
    }

    /// What is known of the model as it stands, under the name of a method.
    pub fn evidence(&self, method: &str) -> Evidence {
        let start = request::evidence(method, self.rows(), (0.0, 1.0), "", 0);
        Evidence {
            precomputed: self.precomputed(),
            not_covered: vec![NotCovered::AdaptiveRequests],
            ..start
        }
    }

    /// A model in which nobody has a say has nothing to answer with.
    fn check_answers(self) -> Result<Self> {
        if self
            .answers()
            .all(|answer| matches!(answer, ShardCheckpoint::Abstains))
        {
            return Err(Error::NoWeight);
        }
        Ok(self)
    }
}

impl<F> SisaModel<F>
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    fn train(recipe: &Sisa<F>, rows: &Rows) -> Result<(Self, TrainingWork)> {
        recipe.check()?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        let mut shards: Vec<ShardChain<F::Model>> = (0..recipe.shards)
            .map(|_| ShardChain::new(recipe.slices))
            .collect();
        for id in rows.ids() {
            let (shard, slice) = recipe.place(id);
            shards[shard].slices[slice].push(id);
        }
        shards
            .iter_mut()
            .flat_map(|shard| &mut shard.slices)
            .for_each(|ids| ids.sort_unstable());
        let work = forget::train_all(
            recipe,
            &mut shards,
            ShardRows {
                store: rows,
                new: None,
            },
        )?;
        let shards = shards.into_iter().map(Arc::new).collect();
        let model = Self {
            recipe: recipe.clone(),
            width: rows.width(),
            outputs: rows.outputs(),
            shards,
        };
        Ok((model.check_answers()?, work))
    }
}

impl<F: Fit> Predict for SisaModel<F>
where
    F::Model: Predict,
{
    /// The vote or the mean, one column per column of the shards' own scores.
    fn predict(&self, features: &crate::rows::Features) -> Result<faer::Mat<f64>> {
        request::check_width(features.width(), self.width)?;
        aggregate::predict(&self.recipe, self.answers(), self.outputs, features)
    }
}

fn write_shards<M: Serialize, S: Serializer>(
    shards: &[Arc<ShardChain<M>>],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(shards.iter().map(|shard| shard.as_ref()))
}

/// A model as it is written down, before it is believed.
#[derive(Deserialize)]
#[serde(bound(deserialize = "F: Deserialize<'de>, F::Model: Deserialize<'de>"))]
struct StoredSisa<F: Fit> {
    recipe: Sisa<F>,
    width: usize,
    outputs: usize,
    shards: Vec<ShardChain<F::Model>>,
}

impl<F: Fit> TryFrom<StoredSisa<F>> for SisaModel<F> {
    type Error = Error;

    fn try_from(
        StoredSisa {
            recipe,
            width,
            outputs,
            shards,
        }: StoredSisa<F>,
    ) -> Result<Self> {
        recipe.check()?;
        let in_place = |(at, shard): (usize, &ShardChain<F::Model>)| {
            let slices = shard.slices.iter().enumerate();
            slices
                .into_iter()
                .all(|(slice, ids)| ids.iter().all(|&id| recipe.place(id) == (at, slice)))
        };
        if outputs == 0
            || shards.len() != recipe.shards
            || !shards
                .iter()
                .all(|shard| shard.is_sound(recipe.slices, outputs))
            || !shards.iter().enumerate().all(in_place)
        {
            return Err(Error::Damaged(
                "the shards of the model do not fit together".into(),
            ));
        }
        let shards = shards.into_iter().map(Arc::new).collect();
        Self {
            recipe,
            width,
            outputs,
            shards,
        }
        .check_answers()
    }
}
