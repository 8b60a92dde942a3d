//! The settings of SISA, with their ranges, and where a row goes.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::random::{DrawPurpose, random_word};
use crate::rows::RowId;
use crate::traits::Fit;

/// The most checkpoints of a model: more would take memory without making a forget faster.
const MOST_SLICES: usize = 1 << 16;

/// How the shards' answers become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregation {
    /// Every shard that can tell classes apart has one vote, for one of the classes that it has; for
    /// classifiers only. One output: the mean of +1 (score above 0) and −1. Several: for each, the
    /// share of these shards that score it highest; a tie goes to the earlier.
    #[default]
    Vote,
    /// The mean of the scores; that of a class is over the shards that have it.
    Mean,
}

/// The recipe of a sharded model: another recipe, trained on each shard by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sisa<F> {
    /// What each shard is trained with.
    pub recipe: F,
    /// S, the shards; at least 1, at most the number of rows.
    pub shards: usize,
    /// R, the slices of a shard; at least 1, and S·R at most 65,536.
    pub slices: usize,
    /// What the place of a row follows from, together with its id.
    pub seed: u64,
    /// How the shards' answers become one.
    pub aggregation: Aggregation,
    /// How many shards may be trained at a time; at least 1. It does not change the result.
    pub threads: usize,
}

impl<F> Sisa<F> {
    /// One recipe over S shards of R slices each: votes, seed 0, one thread.
    pub fn new(recipe: F, shards: usize, slices: usize) -> Self {
        Self {
            recipe,
            shards,
            slices,
            seed: 0,
            aggregation: Aggregation::Vote,
            threads: 1,
        }
    }

    /// Another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Another way to make one answer of many.
    pub fn aggregation(self, aggregation: Aggregation) -> Self {
        Self {
            aggregation,
            ..self
        }
    }

    /// More shards trained at a time.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The shard and the slice of a row: a function of the seed and the id, so that no row moves
    /// when another leaves.
    pub fn place(&self, id: RowId) -> (usize, usize) {
        let among = |count: usize, purpose| {
            (random_word(self.seed, purpose, id.0, 0) % count.max(1) as u64) as usize
        };
        (
            among(self.shards, DrawPurpose::Shard),
            among(self.slices, DrawPurpose::Slice),
        )
    }

    /// Returns the number of scores if the targets name classes, as they do in a vote whatever the
    /// recipe.
    pub(super) fn class_scores(&self, outputs: usize) -> Option<usize>
    where
        F: Fit,
    {
        let votes = (self.aggregation == Aggregation::Vote).then_some(outputs);
        self.recipe.class_scores(outputs).or(votes)
    }

    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("shards", self.shards),
            ("slices", self.slices),
            ("threads", self.threads),
        ] {
            if value == 0 {
                return Err(Error::Parameter {
                    name,
                    value: "0".into(),
                    range: "at least 1",
                });
            }
        }
        if self
            .shards
            .checked_mul(self.slices)
            .is_none_or(|slices| slices > MOST_SLICES)
        {
            let value = format!("{} · {}", self.shards, self.slices);
            return Err(Error::Parameter {
                name: "shards · slices",
                value,
                range: "at most 65536",
            });
        }
        Ok(())
    }
}
