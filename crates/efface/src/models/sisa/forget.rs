//! Rows that leave, join or change: the touched shards are trained again from their first touched
//! slice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::shard::{ShardChain, ShardRows, TrainingWork, as_kept};
use super::{Sisa, SisaModel};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence, Outcome};
use crate::methods::{Retrain, SisaForget};
use crate::models::request;
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Forget, Settled};

/// Trains what is missing in each shard, several at a time. Every shard is trained alone, so that
/// the number of threads decides nothing; of several errors the first shard's is reported.
pub(super) fn train_all<F>(
    sisa: &Sisa<F>,
    shards: &mut [ShardChain<F::Model>],
    source: ShardRows<'_>,
) -> Result<TrainingWork>
where
    F: Fit + Sync,
    F::Model: Send + Sync,
{
    let threads = sisa.threads.min(shards.len());
    let done: Vec<Result<TrainingWork>> = if threads <= 1 {
        shards
            .iter_mut()
            .map(|shard| shard.train(sisa, source))
            .collect()
    } else {
        side_by_side(threads, shards, |shard| shard.train(sisa, source))
    };
    done.into_iter()
        .try_fold(TrainingWork::default(), |sum, work| {
            let work = work?;
            Ok(TrainingWork {
                trained: sum.trained + work.trained,
                read: sum.read + work.read,
            })
        })
}

/// Does `work` on each item on so many threads; the results are in the order of the items.
fn side_by_side<T: Send, R: Send>(
    threads: usize,
    items: &mut [T],
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<R> {
    let queue = Mutex::new(items.iter_mut().enumerate());
    // Nothing panics while it holds the lock, so a poisoned queue is as good as any.
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let drain = || {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            done.push((at, work(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(drain)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

impl<F> SisaModel<F>
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    /// Takes ids out, puts ids in, and trains the touched shards from their first touched slice. A
    /// row whose content changes does both: it keeps its id and therefore its place.
    fn change(
        &self,
        method: &str,
        source: ShardRows<'_>,
        leave: &[RowId],
        join: &[RowId],
    ) -> Result<Outcome<Self>> {
        let stays = request::stays(leave);
        let places = |id: &RowId| self.recipe.place(*id);
        let mut touched: BTreeMap<usize, ShardChain<F::Model>> = BTreeMap::new();
        for (shard, slice) in leave.iter().chain(join).map(places) {
            let entry = touched.entry(shard).or_insert_with(|| {
                let ShardChain {
                    slices,
                    checkpoints,
                } = self.shards[shard].as_ref();
                let kept = |ids: &Vec<RowId>| ids.iter().copied().filter(|&id| stays(id)).collect();
                ShardChain {
                    slices: slices.iter().map(kept).collect(),
                    checkpoints: checkpoints[..slice].to_vec(),
                }
            });
            entry.checkpoints.truncate(slice);
        }
        for id in leave {
            let (shard, slice) = places(id);
            if self.shards[shard].slices[slice].binary_search(id).is_err() {
                return Err(Error::UnknownRow(*id));
            }
        }
        for id in join {
            let (shard, slice) = places(id);
            if let Some(shard) = touched.get_mut(&shard) {
                shard.slices[slice].push(*id);
            }
        }
        let (at, mut touched): (Vec<usize>, Vec<ShardChain<F::Model>>) =
            touched.into_iter().unzip();
        for ids in touched.iter_mut().flat_map(|shard| &mut shard.slices) {
            ids.sort_unstable();
            if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::DuplicateRow(twice[0]));
            }
        }
        let work = train_all(&self.recipe, &mut touched, source)?;
        let mut shards = self.shards.clone();
        for (at, shard) in at.into_iter().zip(touched) {
            shards[at] = Arc::new(shard);
        }
        let model = Self {
            recipe: self.recipe.clone(),
            shards,
            ..*self
        }
        .check_answers()?;
        let evidence = Evidence {
            forgotten: leave.len(),
            learned: join.len(),
            rows_read: work.read,
            iterations: work.trained,
            refactored: work.trained > 0,
            ..model.evidence(method)
        };
        Ok(Outcome { model, evidence })
    }

    fn check_gone(&self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        request::check_outputs(rows.outputs(), self.outputs)?;
        request::check_gone(rows, gone, self.width)
    }

    /// Takes rows in, under new ids or in the place of others.
    fn take_in(
        &self,
        method: &str,
        rows: &dyn RowStore,
        new: &Rows,
        leave: &[RowId],
    ) -> Result<Outcome<Self>> {
        let sample = self
            .shards
            .iter()
            .flat_map(|shard| &shard.slices)
            .flatten()
            .next();
        let new = as_kept(rows, *sample.ok_or(Error::NoRows)?, new)?;
        let join: Vec<RowId> = new.ids().collect();
        self.change(
            method,
            ShardRows {
                store: rows,
                new: Some(&new),
            },
            leave,
            &join,
        )
    }
}

impl<F> Forget<SisaModel<F>> for SisaForget
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    fn name(&self) -> &'static str {
        "sisa"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &SisaModel<F>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<SisaModel<F>>> {
        model.check_gone(rows, gone)?;
        model.change(
            "sisa",
            ShardRows {
                store: rows,
                new: None,
            },
            gone,
            &[],
        )
    }
}

impl<F> Forget<SisaModel<F>> for Retrain
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    /// Trains every shard anew. Fewer rows than shards are no error here: the request must not fail
    /// for it.
    fn forget(
        &self,
        model: &SisaModel<F>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<SisaModel<F>>> {
        model.check_gone(rows, gone)?;
        let retained = rows.all()?.filter(request::stays(gone));
        let (next, work) = SisaModel::train(&model.recipe, &retained)?;
        let evidence = Evidence {
            iterations: work.trained,
            ..next.evidence("retrain")
        };
        let evidence = request::from_scratch(evidence, gone.len(), work.read);
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl<F> Amend for SisaModel<F>
where
    F: Fit + Clone + Sync,
    F::Model: Clone + Send + Sync,
{
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(new.outputs(), self.outputs)?;
        request::check_new(rows, new, self.width)?;
        self.take_in("learn", rows, new, &[])
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        request::check_outputs(corrected.outputs(), self.outputs)?;
        let ids = request::check_corrected(rows, corrected, self.width)?;
        self.take_in("amend", rows, corrected, &ids)
    }

    /// Nothing ever waits: no checkpoint of a forgotten row is kept.
    fn settle(&mut self) -> Result<Settled> {
        Ok(Settled::default())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        request::refresh(evidence, self.evidence(&evidence.method));
    }
}
