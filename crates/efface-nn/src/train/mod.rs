//! Training: AdamW on the cross-entropy of a linear head, over minibatches of like length. What a
//! step minimises is an [`StepObjective`]; a fit minimises the loss of the rows that teach.
//!
//! What happens at a step follows from the seed, the step's number and the state alone: the same
//! seed and thread count give the same bits, and a training that was interrupted and resumed from
//! its [`TrainingCheckpoint`] ends like one that was not. A minibatch is dealt out to the threads
//! text by text; each works alone and their gradients are added in order. After each epoch the
//! validation rows are scored, the best state so far is kept, and training stops when nothing was
//! better for `patience` epochs.

use efface::random::{seeded, training_seed};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

mod objective;
pub(crate) mod on_device;
mod settings;

pub(crate) use objective::{StepDealer, StepGroup, StepObjective};
pub use settings::TrainSettings;

use crate::batch::{BatchShare, TextAim};
use crate::device::{DeviceNetwork, NetworkDevice, NetworkStart};
use crate::encoder::{EncoderWeights, ShareScore, apply_linear, cross_entropy};
use crate::error::{Error, Result};
use crate::optimiser;
use crate::plan::EncoderPlan;
use crate::pool::BufferPool;
use crate::texts::TrainingTexts;
use objective::LearnedRows;

/// The most tokens that are encoded at once, whatever the batch size, so that memory stays bounded.
pub(crate) const MOST_TOKENS: usize = 1 << 15;

/// Whether a training goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingFlow {
    /// Go on.
    Continue,
    /// Stop here; the best state so far is kept.
    Stop,
}

/// One step, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Steps done.
    pub step: u64,
    /// The epoch, from 1.
    pub epoch: usize,
    /// Steps done in this epoch.
    pub batch: usize,
    /// Steps of this epoch.
    pub batches: usize,
    /// Mean loss in this epoch so far.
    pub loss: f64,
    /// Share of hits in this epoch so far.
    pub accuracy: f64,
    /// Mean loss in this epoch so far of the rows to forget; None where no step has taken any.
    pub forgotten: Option<f64>,
}

/// One epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Mean loss while training.
    pub loss: f64,
    /// Share of hits while training.
    pub accuracy: f64,
    /// Loss and share of hits on the validation rows, if there are any.
    pub validation: Option<(f64, f64)>,
    /// Whether this is the best epoch so far.
    pub best: bool,
}

/// A watcher of the training, which may stop it.
pub trait TrainingProgress {
    /// After every step.
    fn step(&mut self, _report: &StepReport) -> TrainingFlow {
        TrainingFlow::Continue
    }

    /// After every epoch; the checkpoint may be stored, to resume from.
    fn epoch(&mut self, _report: &EpochReport, _checkpoint: &TrainingCheckpoint) -> TrainingFlow {
        TrainingFlow::Continue
    }
}

/// A training without a watcher.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuietTraining;

impl TrainingProgress for QuietTraining {}

/// The state of a training: everything that its remaining steps depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingCheckpoint {
    /// The settings of the training it belongs to.
    pub settings: TrainSettings,
    /// Steps done.
    pub step: u64,
    /// Epochs finished.
    pub epoch: usize,
    /// Steps done in the epoch at hand.
    pub batch: usize,
    /// Epochs reported so far.
    pub history: Vec<EpochReport>,
    /// SHA-256, in hexadecimal, of the rows, words and shape that it belongs to.
    pub(crate) source: String,
    pub(crate) parameters: Vec<f32>,
    pub(crate) means: Vec<f32>,
    pub(crate) squares: Vec<f32>,
    /// The best state so far and its epoch.
    pub(crate) best: Option<(usize, Vec<f32>)>,
    pub(crate) loss: f64,
    pub(crate) correct: usize,
    pub(crate) seen: usize,
}

impl TrainingCheckpoint {
    /// The best parameters so far: those of the best epoch, or the latest where no epoch was
    /// finished.
    pub fn best(&self) -> &[f32] {
        self.best
            .as_ref()
            .map_or(&self.parameters, |(_, best)| best)
    }

    /// The best epoch so far, from 1.
    pub fn best_epoch(&self) -> Option<usize> {
        self.best.as_ref().map(|(epoch, _)| *epoch)
    }

    fn is_sound(&self, total: usize) -> bool {
        let arrays = [&self.parameters, &self.means, &self.squares];
        arrays
            .iter()
            .all(|array| array.len() == total && array.iter().all(|value| value.is_finite()))
            && self
                .best
                .as_ref()
                .is_none_or(|(_, best)| best.len() == total && best.iter().all(|v| v.is_finite()))
    }
}

/// A training under way.
pub struct Trainer<'a> {
    plan: &'a EncoderPlan,
    frozen: &'a [f32],
    lessons: &'a TrainingTexts,
    objective: Box<dyn StepObjective + 'a>,
    /// Validation rows: the best epoch is chosen by their loss, and no step learns from them.
    judge: Vec<usize>,
    state: TrainingCheckpoint,
    /// The loss of rows to forget, summed over this epoch, and how many there were.
    forgotten: (f64, usize),
    /// One gradient and one set of buffers a thread.
    benches: Vec<ThreadBuffers>,
    /// Where the state is while it changes, if not in `state`.
    device: Option<Box<dyn DeviceNetwork>>,
}

/// The buffers of one thread.
#[derive(Default)]
struct ThreadBuffers {
    gradient: Vec<f32>,
    pool: BufferPool,
}

impl<'a> Trainer<'a> {
    /// A training from the given parameters.
    pub(crate) fn new(
        plan: &'a EncoderPlan,
        frozen: &'a [f32],
        lessons: &'a TrainingTexts,
        settings: TrainSettings,
        parameters: Vec<f32>,
        source: String,
    ) -> Result<Self> {
        let zeros = vec![0.0; parameters.len()];
        let state = TrainingCheckpoint {
            settings,
            step: 0,
            epoch: 0,
            batch: 0,
            history: Vec::new(),
            source,
            parameters,
            means: zeros.clone(),
            squares: zeros,
            best: None,
            loss: 0.0,
            correct: 0,
            seen: 0,
        };
        Self::from_checkpoint(plan, frozen, lessons, state)
    }

    /// A training that goes on where it was left.
    pub(crate) fn from_checkpoint(
        plan: &'a EncoderPlan,
        frozen: &'a [f32],
        lessons: &'a TrainingTexts,
        state: TrainingCheckpoint,
    ) -> Result<Self> {
        state.settings.check()?;
        if !state.is_sound(plan.total()) {
            return Err(Error::Damaged(
                "the checkpoint belongs to a network of another shape, or is not finite".into(),
            ));
        }
        let (teach, judge) = split(lessons, &state.settings);
        let objective = Box::new(LearnedRows(teach));
        let benches = Vec::new();
        Ok(Self {
            plan,
            frozen,
            lessons,
            objective,
            judge,
            state,
            forgotten: (0.0, 0),
            benches,
            device: None,
        })
    }

    /// This training on a device, if it has room for it; whether it has.
    pub(crate) fn on(&mut self, device: &dyn NetworkDevice) -> Result<bool> {
        let longest = self.lessons.texts.iter().map(Vec::len).max().unwrap_or(1);
        let batch = self
            .state
            .settings
            .batch
            .max(256)
            .min(self.lessons.texts.len());
        let start = NetworkStart {
            parameters: &self.state.parameters,
            moments: Some((&self.state.means, &self.state.squares)),
            frozen: self.frozen,
            largest: (batch, (batch * longest).min(MOST_TOKENS.max(longest))),
        };
        self.device = device.network(self.plan, start)?;
        Ok(self.device.is_some())
    }

    /// This training with another objective. It has no validation rows, so that the last state is
    /// the one that is kept.
    pub(crate) fn towards(mut self, objective: Box<dyn StepObjective + 'a>) -> Self {
        self.objective = objective;
        self.judge.clear();
        self
    }

    /// Says which training this is: see [`TrainingCheckpoint::source`].
    pub(crate) fn belongs_to(&mut self, source: String) {
        self.state.source = source;
    }

    /// The state as it is now.
    pub fn checkpoint(&self) -> &TrainingCheckpoint {
        &self.state
    }

    /// Gives the state away.
    pub fn finish(self) -> TrainingCheckpoint {
        self.state
    }

    /// Brings the state back from a device.
    fn bring_back(&mut self) -> Result<()> {
        let TrainingCheckpoint {
            parameters,
            means,
            squares,
            ..
        } = &mut self.state;
        self.device
            .as_mut()
            .map_or(Ok(()), |device| device.read(parameters, means, squares))
    }

    /// Trains until the epochs are over, nothing gets better, or `progress` says stop. After an
    /// error the state is the one before the step that failed.
    pub fn run(&mut self, progress: &mut dyn TrainingProgress) -> Result<()> {
        while self.state.epoch < self.state.settings.epochs && !self.is_patience_over() {
            let dealer = StepDealer {
                lessons: self.lessons,
                settings: &self.state.settings,
                epoch: self.state.epoch,
            };
            let batches = self.objective.steps(&dealer);
            while self.state.batch < batches.len() {
                self.step(&batches)?;
                let state = &self.state;
                let report = StepReport {
                    step: state.step,
                    epoch: state.epoch + 1,
                    batch: state.batch,
                    batches: batches.len(),
                    loss: state.loss / state.seen.max(1) as f64,
                    accuracy: state.correct as f64 / state.seen.max(1) as f64,
                    forgotten: (self.forgotten.1 > 0)
                        .then(|| self.forgotten.0 / self.forgotten.1 as f64),
                };
                if progress.step(&report) == TrainingFlow::Stop {
                    return self.bring_back();
                }
            }
            self.bring_back()?;
            let report = self.close_epoch()?;
            if progress.epoch(&report, &self.state) == TrainingFlow::Stop {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_patience_over(&self) -> bool {
        let best = self.state.best_epoch().unwrap_or(0);
        !self.judge.is_empty()
            && self.state.epoch >= best + self.state.settings.patience
            && best > 0
    }

    fn weights(&self) -> EncoderWeights<'_> {
        EncoderWeights {
            plan: self.plan,
            parameters: &self.state.parameters,
            frozen: self.frozen,
        }
    }

    fn step(&mut self, batches: &[Vec<StepGroup>]) -> Result<()> {
        let settings = self.state.settings;
        let groups = &batches[self.state.batch];
        let count = |forgotten: bool| {
            groups
                .iter()
                .filter(|group| group.is_forgotten() == forgotten)
                .map(|group| group.rows.len())
                .sum()
        };
        let learned: usize = count(false);
        let forgotten: usize = count(true);
        let (score, norm, largest) = self.sum_gradient(groups, learned + forgotten)?;
        for (what, value) in [
            ("loss", score.loss),
            ("loss of the rows to forget", score.forgotten),
            ("gradient norm", norm),
        ] {
            if !value.is_finite() {
                return Err(self.diverged(what, value)?);
            }
        }
        let cap = self.objective.loss_cap();
        if score.forgotten > cap {
            return Err(Error::Overshot {
                step: self.state.step + 1,
                epoch: self.state.epoch + 1,
                what: "loss of the rows to forget",
                value: score.forgotten,
                cap,
            });
        }
        let scale = (f64::from(settings.clip) / norm.max(f64::MIN_POSITIVE)).min(1.0) as f32;
        let total = (batches.len() * settings.epochs) as u64;
        let rate = settings.rate(self.state.step, total);
        // The most that the step can make of the largest parameter. A step that could overflow is
        // not taken, so that the state before it stays usable.
        let decay = 1.0 + f64::from(rate) * f64::from(settings.weight_decay);
        let reach = f64::from(largest) * decay + optimiser::LONGEST_STEP * f64::from(rate);
        if reach > f64::from(f32::MAX) / 16.0 {
            return Err(self.diverged("largest parameter", reach)?);
        }
        let state = &mut self.state;
        state.step += 1;
        let step = optimiser::adam_step(scale, (rate, settings.weight_decay), state.step);
        match &mut self.device {
            Some(device) => device.step(&step)?,
            None => {
                let arrays = (
                    &mut state.parameters[..],
                    &mut state.means[..],
                    &mut state.squares[..],
                );
                optimiser::step(self.plan, arrays, &self.benches[0].gradient, &step);
            }
        }
        state.batch += 1;
        state.loss += score.loss * learned as f64;
        state.correct += score.correct;
        state.seen += learned;
        self.forgotten.0 += score.forgotten * forgotten as f64;
        self.forgotten.1 += forgotten;
        Ok(())
    }

    /// The gradient of a step, which stays where it was made: its score, its length and the largest
    /// size of a parameter.
    fn sum_gradient(
        &mut self,
        groups: &[StepGroup],
        texts: usize,
    ) -> Result<(ShareScore, f64, f32)> {
        if let Some(mut device) = self.device.take() {
            let score = on_device::learn(device.as_mut(), self.plan, &self.lesson(groups, 0, 1));
            let lengths = device.lengths();
            self.device = Some(device);
            let (score, (norm, largest)) = (score?, lengths?);
            return Ok((score, norm, largest));
        }
        let shares = self.state.settings.threads.min(texts);
        let mut benches = std::mem::take(&mut self.benches);
        let lessons: Vec<BatchShare<'_>> = (0..shares)
            .map(|share| self.lesson(groups, share, shares))
            .collect();
        benches.resize_with(shares.max(benches.len()), ThreadBuffers::default);
        for bench in &mut benches {
            bench.gradient.clear();
            bench.gradient.resize(self.plan.total(), 0.0);
        }
        let score = learn_side_by_side(self.weights(), &lessons, &mut benches[..shares]);
        let (first, others) = benches.split_at_mut(1);
        let gradient = &mut first[0].gradient;
        for other in &others[..shares - 1] {
            gradient
                .iter_mut()
                .zip(&other.gradient)
                .for_each(|(sum, value)| *sum += value);
        }
        let norm = optimiser::norm(gradient);
        let largest = self
            .state
            .parameters
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        self.benches = benches;
        Ok((score, norm, largest))
    }

    /// The loss of the first minibatch, and its gradient.
    pub(crate) fn first_gradient(&mut self) -> Result<(f64, Vec<f32>)> {
        let dealer = StepDealer {
            lessons: self.lessons,
            settings: &self.state.settings,
            epoch: 0,
        };
        let batches = self.objective.steps(&dealer);
        let texts = batches[0].iter().map(|group| group.rows.len()).sum();
        let (score, ..) = self.sum_gradient(&batches[0], texts)?;
        let gradient = match &mut self.device {
            Some(device) => device.gradient()?,
            None => self.benches[0].gradient.clone(),
        };
        Ok((score.loss, gradient))
    }

    /// A step that must not be taken, and the state before it.
    fn diverged(&mut self, what: &'static str, value: f64) -> Result<Error> {
        self.bring_back()?;
        let step = self.state.step + 1;
        let epoch = self.state.epoch + 1;
        Ok(Error::Diverged {
            step,
            epoch,
            what,
            value,
            last_good: Box::new(self.state.clone()),
        })
    }

    /// What one thread of `shares` reads of a step. Groups are sorted by length: every n-th text
    /// makes shares of equal work.
    fn lesson<'b>(&'b self, groups: &[StepGroup], share: usize, shares: usize) -> BatchShare<'b> {
        let Self { lessons, state, .. } = self;
        let seed = training_seed(state.settings.seed, state.step, 2 + share as u64);
        let mut lesson = BatchShare {
            texts: Vec::new(),
            aims: Vec::new(),
            seed,
        };
        // Counted over all groups, so that no thread is left without a text while there is one.
        let mut before = 0;
        for group in groups {
            let weight: f32 = group.rows.iter().map(|&row| lessons.weights[row]).sum();
            let first = (share + shares - before % shares) % shares;
            for &row in group.rows.iter().skip(first).step_by(shares) {
                lesson.texts.push(lessons.texts[row].as_slice());
                lesson.aims.push(TextAim {
                    class: lessons.classes[row],
                    share: lessons.weights[row] / weight,
                    label: group.label,
                    teacher: group.teacher,
                    taught: self.objective.taught(row),
                });
            }
            before += group.rows.len();
        }
        lesson
    }

    /// Judges the epoch and keeps the state if it is the best.
    fn close_epoch(&mut self) -> Result<EpochReport> {
        let mut device = self.device.take();
        let width = self.plan.settings.features();
        let judge = || match &mut device {
            Some(device) => self.judged_by(&self.judge, |texts| {
                on_device::features(device.as_mut(), width, texts)
            }),
            None => self.judged(&self.judge),
        };
        let validation = (!self.judge.is_empty()).then(judge).transpose();
        self.device = device;
        let validation = validation?;
        let best = self.state.history.iter().rfind(|report| report.best);
        let better = match (validation, best.and_then(|report| report.validation)) {
            // On a few hundred rows the accuracy moves in coarse steps; the loss tells epochs apart
            // more finely.
            (Some((loss, _)), Some((best_loss, _))) => loss < best_loss,
            _ => true,
        };
        let state = &mut self.state;
        let seen = state.seen.max(1) as f64;
        let report = EpochReport {
            epoch: state.epoch + 1,
            loss: state.loss / seen,
            accuracy: state.correct as f64 / seen,
            validation,
            best: better,
        };
        state.epoch += 1;
        if better {
            state.best = Some((state.epoch, state.parameters.clone()));
        }
        state.history.push(report);
        (state.batch, state.loss, state.correct, state.seen) = (0, 0.0, 0, 0);
        self.forgotten = (0.0, 0);
        Ok(report)
    }

    /// Mean loss and share of hits on some rows, without dropout, by the processor.
    pub(crate) fn judged(&self, rows: &[usize]) -> Result<(f64, f64)> {
        let mut pool = BufferPool::default();
        self.judged_by(rows, |texts| Ok(self.weights().features(texts, &mut pool)))
    }

    /// The same, from features that somebody else makes.
    fn judged_by(
        &self,
        rows: &[usize],
        mut features: impl FnMut(&[&[u32]]) -> Result<Vec<f32>>,
    ) -> Result<(f64, f64)> {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|&row| self.lessons.texts[row].len());
        let mut total = ShareScore::default();
        let texts: Vec<&[u32]> = rows
            .iter()
            .map(|&row| self.lessons.texts[row].as_slice())
            .collect();
        let mut start = 0;
        for chunk in in_chunks(&texts) {
            let features = features(chunk)?;
            let mut logits = apply_linear(
                &self.plan.head,
                &self.state.parameters,
                &features,
                chunk.len(),
            );
            let own = rows[start..start + chunk.len()].iter();
            let aims: Vec<TextAim<'_>> = own
                .map(|&row| TextAim::learn(self.lessons.classes[row], 1.0))
                .collect();
            total.add(&ShareScore::of(&aims, &cross_entropy(&mut logits, &aims)));
            start += chunk.len();
        }
        Ok((
            total.loss / rows.len() as f64,
            total.correct as f64 / rows.len() as f64,
        ))
    }
}

/// Texts in runs that are encoded at once: at most 256 of them, and no more tokens than memory
/// bears.
pub(crate) fn in_chunks<'a, 'b>(texts: &'b [&'a [u32]]) -> Vec<&'b [&'a [u32]]> {
    let mut chunks = Vec::new();
    let mut start = 0;
    let mut tokens = 0;
    for (at, text) in texts.iter().enumerate() {
        if at > start && (at - start == 256 || tokens + text.len() > MOST_TOKENS) {
            chunks.push(&texts[start..at]);
            (start, tokens) = (at, 0);
        }
        tokens += text.len();
    }
    if start < texts.len() {
        chunks.push(&texts[start..]);
    }
    chunks
}

/// Runs every share on a thread of its own, the first one on the calling thread.
fn learn_side_by_side(
    weights: EncoderWeights<'_>,
    lessons: &[BatchShare<'_>],
    benches: &mut [ThreadBuffers],
) -> ShareScore {
    std::thread::scope(|scope| {
        let learn = move |lesson: &BatchShare<'_>, bench: &mut ThreadBuffers| {
            weights.learn(lesson, &mut bench.gradient, &mut bench.pool)
        };
        let mut shares = lessons.iter().zip(benches);
        let first = shares.next();
        let others: Vec<_> = shares
            .map(|(lesson, bench)| scope.spawn(move || learn(lesson, bench)))
            .collect();
        let mut total = first.map_or(ShareScore::default(), |(lesson, bench)| {
            learn(lesson, bench)
        });
        for other in others {
            match other.join() {
                Ok(score) => {
                    total.add(&score);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    })
}

/// Splits the rows into those that teach and those that validate: a share of each class validates,
/// and at least one row of each class teaches.
fn split(lessons: &TrainingTexts, settings: &TrainSettings) -> (Vec<usize>, Vec<usize>) {
    let mut random = seeded(training_seed(settings.seed, 0, 0));
    let mut teach = Vec::new();
    let mut judge = Vec::new();
    for class in 0..lessons.class_count {
        let mut rows: Vec<usize> = (0..lessons.texts.len())
            .filter(|&row| lessons.classes[row] == class)
            .collect();
        rows.shuffle(&mut random);
        let held = ((rows.len() as f64 * f64::from(settings.validation)).round() as usize)
            .min(rows.len().saturating_sub(1));
        judge.extend_from_slice(&rows[..held]);
        teach.extend_from_slice(&rows[held..]);
    }
    teach.sort_unstable();
    judge.sort_unstable();
    (teach, judge)
}
