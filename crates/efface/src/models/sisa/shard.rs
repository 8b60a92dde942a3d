//! One shard: the ids of its slices, a checkpoint after each, and how the chain of checkpoints is
//! trained.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::Fit;

/// What a shard knew after one of its slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardCheckpoint<M> {
    /// A model of all slices up to here.
    Trained(M),
    /// A class had no row yet and the recipe cannot do without: the weighted mean of the targets
    /// answers to everything.
    Constant(Vec<f64>),
    /// No row up to here weighs anything: the shard has no say.
    Abstains,
    /// The slice is empty: as after the slice before.
    AsBefore,
}

impl<M> ShardCheckpoint<M> {
    /// This checkpoint with its model in another form.
    pub(super) fn convert<N>(
        &self,
        with: &mut impl FnMut(&M) -> Result<N>,
    ) -> Result<ShardCheckpoint<N>> {
        Ok(match self {
            Self::Trained(model) => ShardCheckpoint::Trained(with(model)?),
            Self::Constant(means) => ShardCheckpoint::Constant(means.clone()),
            Self::Abstains => ShardCheckpoint::Abstains,
            Self::AsBefore => ShardCheckpoint::AsBefore,
        })
    }
}

/// The slices of a shard and the checkpoints behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShardChain<M> {
    /// The ids in each slice, ascending: the order in which a store lists rows must not matter.
    pub(super) slices: Vec<Vec<RowId>>,
    pub(super) checkpoints: Vec<ShardCheckpoint<M>>,
}

/// What a training cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrainingWork {
    /// Slices trained.
    pub(super) trained: usize,
    /// Rows read.
    pub(super) read: usize,
}

/// Where the rows of a shard are read: those in `new` hide those of the store.
#[derive(Clone, Copy)]
pub(super) struct ShardRows<'a> {
    pub(super) store: &'a dyn RowStore,
    pub(super) new: Option<&'a Rows>,
}

impl ShardRows<'_> {
    fn read(&self, ids: &[RowId]) -> Result<Rows> {
        let Some(new) = self.new else {
            return Rows::read(self.store, ids);
        };
        let (fresh, kept): (Vec<RowId>, Vec<RowId>) =
            ids.iter().partition(|&&id| new.get(id).is_some());
        if kept.is_empty() {
            return Rows::read(new, &fresh);
        }
        let mut mixed = Rows::read(self.store, &kept)?;
        if !fresh.is_empty() {
            mixed.append(&Rows::read(new, &fresh)?)?;
        }
        Rows::read(&mixed, ids)
    }
}

/// Rows in the precision in which the store will keep them: a model must not know more digits than
/// its rows.
pub(super) fn as_kept(store: &dyn RowStore, sample: RowId, new: &Rows) -> Result<Rows> {
    let mut kept = Rows::read(store, &[sample])?.filter(|_| false);
    kept.append(new)?;
    Ok(kept)
}

impl<M> ShardChain<M> {
    pub(super) fn new(slices: usize) -> Self {
        Self {
            slices: vec![Vec::new(); slices],
            checkpoints: Vec::with_capacity(slices),
        }
    }

    /// What the shard knows after all slices before `end`.
    pub(super) fn after(&self, end: usize) -> &ShardCheckpoint<M> {
        let told = self.checkpoints.iter().take(end).rev();
        told.into_iter()
            .find(|c| !matches!(c, ShardCheckpoint::AsBefore))
            .unwrap_or(&ShardCheckpoint::Abstains)
    }

    /// What the shard knows.
    pub(super) fn answer(&self) -> &ShardCheckpoint<M> {
        self.after(self.checkpoints.len())
    }

    pub(super) fn len(&self) -> usize {
        self.slices.iter().map(Vec::len).sum()
    }

    /// Trains every slice that has no checkpoint yet.
    pub(super) fn train<F: Fit<Model = M>>(
        &mut self,
        recipe: &F,
        source: ShardRows<'_>,
    ) -> Result<TrainingWork> {
        let mut work = TrainingWork::default();
        let mut rows: Option<Rows> = None;
        let mut unread = 0;
        for slice in self.checkpoints.len()..self.slices.len() {
            let checkpoint = if self.slices[slice].is_empty() {
                if slice == 0 {
                    ShardCheckpoint::Abstains
                } else {
                    ShardCheckpoint::AsBefore
                }
            } else {
                let ids = self.slices[unread..=slice].concat();
                let fresh = source.read(&ids)?;
                (work.read, unread) = (work.read + ids.len(), slice + 1);
                let rows = match &mut rows {
                    Some(rows) => {
                        rows.append(&fresh)?;
                        rows
                    }
                    none => none.insert(fresh),
                };
                let start = match self.after(slice) {
                    ShardCheckpoint::Trained(model) => Some(model),
                    _ => None,
                };
                let checkpoint = learn(recipe, start, rows)?;
                work.trained += !matches!(checkpoint, ShardCheckpoint::Abstains) as usize;
                checkpoint
            };
            self.checkpoints.push(checkpoint);
        }
        Ok(work)
    }

    /// Whether the parts of a stored shard fit together.
    pub(super) fn is_sound(&self, slices: usize, outputs: usize) -> bool {
        let mut told = self.slices.iter().zip(&self.checkpoints).enumerate();
        [self.slices.len(), self.checkpoints.len()] == [slices; 2]
            && self.slices.iter().all(|ids| ids.is_sorted_by(|a, b| a < b))
            && told.all(|(slice, (ids, checkpoint))| match checkpoint {
                ShardCheckpoint::Trained(_) => !ids.is_empty(),
                ShardCheckpoint::Constant(means) => {
                    !ids.is_empty() && means.len() == outputs && means.iter().all(|m| m.is_finite())
                }
                ShardCheckpoint::Abstains => slice == 0 || !ids.is_empty(),
                ShardCheckpoint::AsBefore => slice > 0 && ids.is_empty(),
            })
    }
}

fn learn<F: Fit>(
    recipe: &F,
    start: Option<&F::Model>,
    rows: &Rows,
) -> Result<ShardCheckpoint<F::Model>> {
    if rows.iter().all(|view| view.weight == 0.0) {
        return Ok(ShardCheckpoint::Abstains);
    }
    let trained = match start {
        Some(model) => recipe.resume(model, rows),
        None => recipe.fit(rows),
    };
    match trained {
        Ok(model) => Ok(ShardCheckpoint::Trained(model)),
        Err(Error::EmptyClass { .. }) => Ok(ShardCheckpoint::Constant(mean_targets(rows))),
        Err(error) => Err(error),
    }
}

/// The weighted mean of each target. Weights are taken relative to the largest, and terms to the
/// total, lest a sum overflow.
fn mean_targets(rows: &Rows) -> Vec<f64> {
    let largest = rows
        .iter()
        .map(|view| view.weight)
        .fold(f64::MIN_POSITIVE, f64::max);
    let total: f64 = rows.iter().map(|view| view.weight / largest).sum();
    let mut means = vec![0.0; rows.outputs()];
    for view in rows.iter() {
        for (mean, target) in means.iter_mut().zip(view.targets) {
            *mean += view.weight / largest / total * target;
        }
    }
    means
        .iter()
        .map(|mean| mean.clamp(f64::MIN, f64::MAX))
        .collect()
}
