//! One shard: the ids of its slices, a checkpoint after each, and how the chain of checkpoints is
//! trained.

use serde::{Deserialize, Serialize};

use super::Sisa;
use crate::error::Result;
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::Fit;

/// What a shard knew after one of its slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardCheckpoint<M> {
    /// A model of all slices up to here.
    Trained(M),
    /// A model of the classes that the rows up to here have, where they lack a class: it has one
    /// target and one score for each of them, and the vote and the mean take no score of the others
    /// from it.
    SomeClasses {
        /// The numbers of these classes, ascending; two or more.
        classes: Vec<usize>,
        /// The model.
        model: M,
    },
    /// All rows up to here that weigh anything are of the class of this number. The shard cannot
    /// tell classes apart, and has a say only where no shard can.
    OneClass(usize),
    /// No row up to here weighs anything: the shard has no say.
    Abstains,
    /// The slice is empty: as after the slice before.
    AsBefore,
}

impl<M> ShardCheckpoint<M> {
    /// Returns the model, if there is one.
    pub fn model(&self) -> Option<&M> {
        match self {
            Self::Trained(model) | Self::SomeClasses { model, .. } => Some(model),
            _ => None,
        }
    }

    /// Returns true if the rows behind it have the class of this number. A checkpoint without a
    /// list of classes has all of them.
    pub fn has_class(&self, class: usize) -> bool {
        match self {
            Self::Trained(_) => true,
            Self::SomeClasses { classes, .. } => classes.contains(&class),
            Self::OneClass(only) => *only == class,
            Self::Abstains | Self::AsBefore => false,
        }
    }

    /// This checkpoint with its model in another form.
    pub(super) fn convert<N>(
        &self,
        with: &mut impl FnMut(&M) -> Result<N>,
    ) -> Result<ShardCheckpoint<N>> {
        Ok(match self {
            Self::Trained(model) => ShardCheckpoint::Trained(with(model)?),
            Self::SomeClasses { classes, model } => ShardCheckpoint::SomeClasses {
                classes: classes.clone(),
                model: with(model)?,
            },
            Self::OneClass(class) => ShardCheckpoint::OneClass(*class),
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
        sisa: &Sisa<F>,
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
                let checkpoint = learn(sisa, self.after(slice), rows)?;
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
                ShardCheckpoint::SomeClasses { classes, .. } => {
                    !ids.is_empty()
                        && (2..outputs).contains(&classes.len())
                        && classes.is_sorted_by(|a, b| a < b)
                        && classes.iter().all(|class| *class < outputs)
                }
                ShardCheckpoint::OneClass(class) => {
                    !ids.is_empty() && *class < class_count(outputs)
                }
                ShardCheckpoint::Abstains => slice == 0 || !ids.is_empty(),
                ShardCheckpoint::AsBefore => slice > 0 && ids.is_empty(),
            })
    }
}

/// Trains a shard on the classes that its rows have, from the checkpoint before where that has a
/// model of the same classes.
fn learn<F: Fit>(
    sisa: &Sisa<F>,
    before: &ShardCheckpoint<F::Model>,
    rows: &Rows,
) -> Result<ShardCheckpoint<F::Model>> {
    if rows.iter().all(|view| view.weight == 0.0) {
        return Ok(ShardCheckpoint::Abstains);
    }
    let train = |start: Option<&F::Model>, rows: &Rows| match start {
        Some(model) => sisa.recipe.resume(model, rows),
        None => sisa.recipe.fit(rows),
    };
    let count = class_count(rows.outputs());
    let classes: Vec<usize> = match sisa.class_scores(rows.outputs()) {
        Some(_) => (0..count).filter(|&class| has_class(rows, class)).collect(),
        None => Vec::new(),
    };
    match classes[..] {
        [class] => Ok(ShardCheckpoint::OneClass(class)),
        [_, _, ..] if classes.len() < count => {
            let start = match before {
                ShardCheckpoint::SomeClasses {
                    classes: known,
                    model,
                } if *known == classes => Some(model),
                _ => None,
            };
            // A row of weight 0 may be of a class that is left out.
            let mut weighty = rows.filter(|id| rows.get(id).is_some_and(|view| view.weight > 0.0));
            weighty.keep_targets(&classes);
            let model = train(start, &weighty)?;
            Ok(ShardCheckpoint::SomeClasses { classes, model })
        }
        // The targets are numbers, or every class has rows. Targets that name no class at all are
        // the recipe's to refuse.
        _ => {
            let start = match before {
                ShardCheckpoint::Trained(model) => Some(model),
                _ => None,
            };
            Ok(ShardCheckpoint::Trained(train(start, rows)?))
        }
    }
}

/// Returns the number of classes that so many targets tell apart: one target tells two apart by its
/// sign.
pub(super) fn class_count(outputs: usize) -> usize {
    outputs.max(2)
}

/// Returns true if a row of this class weighs something.
fn has_class(rows: &Rows, class: usize) -> bool {
    rows.iter().any(|view| {
        let is_of_class = match view.targets {
            [sign] => (*sign > 0.0) == (class == 1),
            many => many[class] > 0.0,
        };
        view.weight > 0.0 && is_of_class
    })
}
