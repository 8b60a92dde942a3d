//! Dense rows of several classes in single precision, kept between requests: half the bytes to
//! move, twice the numbers in a register. Conjugate gradients multiply with it where no Hessian is
//! kept, and `look.rs` looks at the rows through it where one is.
//!
//! A row that leaves weighs nothing from then on, and is overwritten as soon as nobody else holds
//! the table.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::Link;
use super::objective::RowObjective;
use super::pass::PassFrame;
use super::sample::RowSample;
use crate::error::Result;
use crate::linalg::{BLOCK_ROWS, LaneRows, LaneVectors, single_exponential, widest};
use crate::rows::RowId;

/// A table larger than this is not made.
const MOST_BYTES: usize = 1 << 29;

/// Fewer numbers than this are multiplied in no time, whatever their precision.
const FEWEST: usize = 1 << 14;

/// One number per row, for the rows of a block.
pub(super) type Lanes = [f32; BLOCK_ROWS];

/// Rows in the coordinates of a model's basis, constant included.
#[derive(Debug, Clone)]
pub(crate) struct LaneTable {
    rows: Arc<LaneRows>,
    ids: Arc<Vec<RowId>>,
    is_sorted: bool,
    /// 0 for rows that were overwritten, and for the places behind the last row.
    weights: Arc<Vec<Lanes>>,
    /// Rows that left and still stand in the table.
    gone: Vec<usize>,
}

impl LaneTable {
    /// None where rows are not worth copying, too many, not in memory, or beyond single precision.
    pub(super) fn of(frame: PassFrame<'_>, sample: &RowSample<'_>) -> Result<Option<Self>> {
        let width = frame.basis.width();
        let members = sample.shape.members;
        let numbers = members.saturating_mul(width);
        if frame.link != Link::Softmax
            || !sample.is_held()
            || !sample.is_for_blocks(frame)
            || sample.is_thin(frame)
            || !(FEWEST..=MOST_BYTES / size_of::<f32>()).contains(&numbers)
        {
            return Ok(None);
        }
        let mut rows = LaneRows::new(width, members);
        let mut ids = Vec::with_capacity(members);
        let mut weights: Vec<Lanes> = Vec::new();
        let mut written = vec![0.0; width];
        let mut fits = true;
        sample.each_part(|_, members| {
            for member in members {
                frame.write(member, &mut written);
                fits &= written
                    .iter()
                    .chain([&member.weight])
                    .all(|x| (*x as f32).is_finite());
                rows.push(&written);
                let lane = ids.len() % BLOCK_ROWS;
                if lane == 0 {
                    weights.push([0.0; BLOCK_ROWS]);
                }
                if let Some(block) = weights.last_mut() {
                    block[lane] = member.weight as f32;
                }
                ids.push(member.id);
            }
        })?;
        Ok(fits.then(|| Self {
            rows: Arc::new(rows),
            is_sorted: ids.is_sorted(),
            ids: Arc::new(ids),
            weights: Arc::new(weights),
            gone: Vec::new(),
        }))
    }

    /// The table without these rows. Rows that weigh nothing are not in it.
    pub(super) fn without(&self, gone: &[RowId]) -> Self {
        let mut next = self.clone();
        if self.is_sorted {
            next.gone
                .extend(gone.iter().filter_map(|id| self.ids.binary_search(id).ok()));
        } else {
            let gone: HashSet<RowId> = gone.iter().copied().collect();
            let places = self
                .ids
                .iter()
                .enumerate()
                .filter(|(_, id)| gone.contains(id));
            next.gone.extend(places.map(|(place, _)| place));
        }
        next
    }

    /// Overwrites the rows that left. Where somebody else holds the table it is copied for that.
    pub(super) fn scrub(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        self.weights = Arc::new(self.weights().into_owned());
        let rows = Arc::make_mut(&mut self.rows);
        self.gone.drain(..).for_each(|place| rows.scrub(place));
    }

    /// The same, unless that takes a copy.
    pub(super) fn scrub_own(&mut self) {
        if let (Some(rows), Some(weights)) = (
            Arc::get_mut(&mut self.rows),
            Arc::get_mut(&mut self.weights),
        ) {
            for place in self.gone.drain(..) {
                rows.scrub(place);
                weights[place / BLOCK_ROWS][place % BLOCK_ROWS] = 0.0;
            }
        }
    }

    pub(super) fn rows(&self) -> &LaneRows {
        &self.rows
    }

    /// The weights of all rows, 0 for those that left.
    pub(super) fn weights(&self) -> Cow<'_, [Lanes]> {
        let mut weights = Cow::Borrowed(self.weights.as_slice());
        for place in &self.gone {
            weights.to_mut()[place / BLOCK_ROWS][place % BLOCK_ROWS] = 0.0;
        }
        weights
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.bytes()
            + self.weights.len() * size_of::<Lanes>()
            + self.ids.len() * size_of::<RowId>()
    }

    /// Whether these are the rows that have not left.
    fn is_of(&self, sample: &RowSample<'_>) -> Result<bool> {
        let weights = self.weights();
        let weights = weights.as_flattened();
        let mut here = self
            .ids
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight != 0.0);
        let mut matches = true;
        sample.each_part(|_, members| {
            matches &= members
                .iter()
                .all(|member| here.next().is_some_and(|(id, _)| *id == member.id));
        })?;
        Ok(matches && here.next().is_none())
    }

    /// The probabilities of a sample's rows at these parameters: for every block of the table, one
    /// vector per class. None where these are not the rows of the table.
    pub(super) fn probabilities(
        &self,
        frame: PassFrame<'_>,
        sample: &RowSample<'_>,
        theta: &Mat<f64>,
    ) -> Result<Option<Vec<Lanes>>> {
        if !self.is_of(sample)? {
            return Ok(None);
        }
        let outputs = frame.outputs;
        let bends = sample.bends(frame, theta)?;
        let weights = self.weights();
        let weights = weights.as_flattened();
        let mut places = (0..self.ids.len()).filter(|&place| weights[place] != 0.0);
        let mut laid = vec![[0.0; BLOCK_ROWS]; self.rows.blocks() * outputs];
        sample.each_part(|offset, members| {
            let lines = sample.lines_of(frame, &bends, offset, members);
            for (place, line) in places.by_ref().zip(lines.chunks_exact(outputs)) {
                let block = &mut laid[place / BLOCK_ROWS * outputs..][..outputs];
                let lane = place % BLOCK_ROWS;
                block
                    .iter_mut()
                    .zip(line)
                    .for_each(|(lanes, p)| lanes[lane] = *p as f32);
            }
        })?;
        Ok(Some(laid))
    }

    /// Every row times its shares, summed over all: a line per feature. `share` replaces the scores
    /// of a block's rows by their shares and may take notes; every thread has its own.
    pub(super) fn share_sum<N: Default + Send>(
        &self,
        threads: usize,
        vectors: &LaneVectors,
        share: impl Fn(&mut N, usize, &mut [Lanes]) + Sync,
    ) -> (Vec<f64>, Vec<N>) {
        let blocks = self.rows.blocks();
        let size = blocks.div_ceil(threads.clamp(1, blocks.max(1))).max(1);
        let work = |first: usize| {
            let mut notes = N::default();
            let range = first..(first + size).min(blocks);
            let sums = self.rows.share_sum(range, vectors, |block, scores| {
                share(&mut notes, block, scores)
            });
            (sums, notes)
        };
        let work = &work;
        std::thread::scope(|scope| {
            let others: Vec<_> = (size..blocks)
                .step_by(size)
                .map(|first| scope.spawn(move || work(first)))
                .collect();
            let (mut total, own) = work(0);
            let mut notes = vec![own];
            for other in others {
                match other.join() {
                    Ok((sums, own)) => {
                        total
                            .iter_mut()
                            .zip(sums)
                            .for_each(|(total, sum)| *total += sum);
                        notes.push(own);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            (total, notes)
        })
    }
}

impl LaneTable {
    /// How much the rows' share of the gradient changes between two places, roughly.
    pub(super) fn slope_change(
        &self,
        frame: PassFrame<'_>,
        from: &Mat<f64>,
        to: &Mat<f64>,
    ) -> Mat<f64> {
        let (width, outputs) = (from.nrows(), frame.outputs);
        let before = LaneVectors::new(width, outputs, |j, c| from[(j, c)]);
        let after = LaneVectors::new(width, outputs, |j, c| to[(j, c)]);
        let weights = self.weights();
        let (sums, _) = self.share_sum(
            frame.threads,
            &after,
            |old: &mut Vec<Lanes>, block, scores| {
                old.resize(outputs, [0.0; BLOCK_ROWS]);
                self.rows.scores(block, &before, old);
                widest(
                    #[inline(always)]
                    || {
                        into_probabilities(old);
                        into_probabilities(scores);
                        for (scores, old) in scores.iter_mut().zip(old.iter()) {
                            let new = *scores;
                            *scores =
                                std::array::from_fn(|k| weights[block][k] * (new[k] - old[k]));
                        }
                    },
                );
            },
        );
        Mat::from_fn(width, outputs, |j, c| sums[j * outputs + c])
    }
}

/// Products with the Hessian over the rows of a table.
pub(super) struct TableProducts<'a> {
    objective: &'a RowObjective<'a>,
    table: LaneTable,
    weights: Vec<Lanes>,
    probabilities: Vec<Lanes>,
}

impl<'a> TableProducts<'a> {
    /// The Hessian at these parameters, by the table at hand or by one that is made and left there.
    pub(super) fn new(
        objective: &'a RowObjective<'a>,
        theta: &Mat<f64>,
        kept: &mut Option<LaneTable>,
    ) -> Result<Option<Self>> {
        let RowObjective { sample, frame, .. } = *objective;
        let fits = kept
            .as_ref()
            .map_or(Ok(false), |table| table.is_of(sample))?;
        if !fits {
            *kept = LaneTable::of(frame, sample)?;
        }
        let Some(table) = kept.clone() else {
            return Ok(None);
        };
        let vectors = LaneVectors::new(theta.nrows(), frame.outputs, |j, c| theta[(j, c)]);
        let mut probabilities = vec![[0.0; BLOCK_ROWS]; table.rows.blocks() * frame.outputs];
        for (block, scores) in probabilities.chunks_exact_mut(frame.outputs).enumerate() {
            table.rows.scores(block, &vectors, scores);
            widest(
                #[inline(always)]
                || into_probabilities(scores),
            );
        }
        let weights = table.weights().into_owned();
        Ok(Some(Self {
            objective,
            table,
            weights,
            probabilities,
        }))
    }

    /// Σ w p(1 − p) of every class, and Σ w.
    pub(super) fn bends(&self) -> (Vec<f64>, f64) {
        let outputs = self.objective.frame.outputs;
        let mut sums = vec![0.0; outputs];
        let mut weight = 0.0;
        for (block, weights) in self.probabilities.chunks_exact(outputs).zip(&self.weights) {
            weight += f64::from(weights.iter().sum::<f32>());
            for (sum, p) in sums.iter_mut().zip(block) {
                let bends: f32 = p
                    .iter()
                    .zip(weights)
                    .map(|(p, weight)| weight * p * (1.0 - p))
                    .sum();
                *sum += f64::from(bends);
            }
        }
        (sums, weight)
    }

    /// The Hessian times `v`, penalty included, both as one long column.
    pub(super) fn times(&self, v: &[f64], out: &mut [f64]) {
        let frame = self.objective.frame;
        let (width, outputs) = (frame.basis.width(), frame.outputs);
        let vectors = LaneVectors::new(width, outputs, |j, c| v[c * width + j]);
        let weights = &self.weights;
        let (sums, _) =
            self.table
                .share_sum(frame.threads, &vectors, |(): &mut (), block, scores| {
                    let probabilities = &self.probabilities[block * outputs..(block + 1) * outputs];
                    widest(
                        #[inline(always)]
                        || bend(probabilities, &weights[block], scores),
                    );
                });
        for (c, out) in out.chunks_exact_mut(width).enumerate() {
            out.iter_mut()
                .zip(sums.iter().skip(c).step_by(outputs))
                .for_each(|(out, sum)| *out = *sum);
        }
        self.objective.extra.times(v, out);
    }
}

/// The probabilities of rows in the place of their scores.
#[inline(always)]
fn into_probabilities(scores: &mut [Lanes]) {
    let mut largest = [f32::NEG_INFINITY; BLOCK_ROWS];
    for scores in scores.iter() {
        largest
            .iter_mut()
            .zip(scores)
            .for_each(|(largest, score)| *largest = largest.max(*score));
    }
    let mut sums = [0.0f32; BLOCK_ROWS];
    for scores in scores.iter_mut() {
        let old = *scores;
        *scores = std::array::from_fn(|k| single_exponential(old[k] - largest[k]));
        sums.iter_mut().zip(&*scores).for_each(|(sum, p)| *sum += p);
    }
    let inverse = sums.map(|sum| 1.0 / sum);
    for scores in scores.iter_mut() {
        scores
            .iter_mut()
            .zip(&inverse)
            .for_each(|(p, inverse)| *p *= inverse);
    }
}

/// J times the scores of rows, times their weights.
#[inline(always)]
fn bend(probabilities: &[Lanes], weights: &Lanes, scores: &mut [Lanes]) {
    let mut means = [0.0f32; BLOCK_ROWS];
    for (scores, p) in scores.iter().zip(probabilities) {
        means
            .iter_mut()
            .zip(scores.iter().zip(p))
            .for_each(|(mean, (score, p))| *mean += score * p);
    }
    for (scores, p) in scores.iter_mut().zip(probabilities) {
        let old = *scores;
        *scores = std::array::from_fn(|k| weights[k] * p[k] * (old[k] - means[k]));
    }
}
