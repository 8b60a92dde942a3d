//! What the steps of a training minimise. A step takes one or more groups of rows, and each group
//! says how the cross-entropy of its rows to their labels, and their divergence from what a teacher
//! said of them, count in it. A fit has one group a step; methods that forget add the rows to
//! forget, whose losses count negatively.

use efface::random::{seeded, training_seed};
use rand::seq::SliceRandom;

use super::TrainSettings;
use crate::texts::TrainingTexts;

/// How many batches' worth of texts are sorted by length together.
const POOL: usize = 16;

/// Rows of one step whose losses count alike. A step minimises, summed over its groups, label ·
/// mean cross-entropy + teacher · mean KL(teacher‖student), each mean weighted by the rows'
/// weights.
pub(crate) struct StepGroup {
    pub(crate) rows: Vec<usize>,
    pub(crate) label: f32,
    pub(crate) teacher: f32,
}

impl StepGroup {
    /// Whether the step raises the loss of these rows.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.label < 0.0 || self.teacher < 0.0
    }
}

/// The loss hook of a training.
pub(crate) trait StepObjective {
    /// The steps of an epoch.
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>>;

    /// The teacher's probabilities of the classes for a row; empty without a teacher.
    fn taught(&self, _row: usize) -> &[f32] {
        &[]
    }

    /// The mean cross-entropy of a step's rows to forget above which the training has gone too far,
    /// in nats.
    fn loss_cap(&self) -> f64 {
        f64::INFINITY
    }
}

/// A fit: the loss of these rows.
pub(super) struct LearnedRows(pub(super) Vec<usize>);

impl StepObjective for LearnedRows {
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>> {
        let learn = |rows| {
            vec![StepGroup {
                rows,
                label: 1.0,
                teacher: 0.0,
            }]
        };
        dealer.batches(&self.0, 1).into_iter().map(learn).collect()
    }
}

/// Deals rows into the minibatches of one epoch.
pub(crate) struct StepDealer<'a> {
    pub(super) lessons: &'a TrainingTexts,
    pub(super) settings: &'a TrainSettings,
    /// The epoch, from 0.
    pub(super) epoch: usize,
}

impl StepDealer<'_> {
    /// The epoch, from 0.
    pub(crate) fn epoch(&self) -> usize {
        self.epoch
    }

    /// Minibatches: shuffled, then sorted by length within a pool, then the batches shuffled again.
    /// Another purpose is another order.
    pub(crate) fn batches(&self, rows: &[usize], purpose: u64) -> Vec<Vec<usize>> {
        let batch = self.settings.batch;
        let mut random = seeded(training_seed(
            self.settings.seed,
            self.epoch as u64,
            purpose,
        ));
        let mut rows = rows.to_vec();
        rows.shuffle(&mut random);
        let mut batches = Vec::new();
        for pool in rows.chunks_mut(batch * POOL) {
            pool.sort_by_key(|&row| self.lessons.texts[row].len());
            batches.extend(pool.chunks(batch).map(<[usize]>::to_vec));
        }
        batches.shuffle(&mut random);
        batches
    }
}
