//! Who trains networks and encodes texts where the processor does not: a graphics card, say.
//!
//! This crate touches no device. Whoever has one hands in a [`NetworkDevice`]; a training then
//! keeps its parameters, the state of its optimiser and its word vectors there, and what comes back
//! are losses, and the parameters after every epoch. Seeds, minibatches and what is dropped out are
//! those of a training by one thread of the processor. Products are added in another order there,
//! so that the two agree to rounding over a few steps and not to the last bit: whoever trains on a
//! device says so.

use std::fmt::Debug;

use crate::batch::{DropoutMasks, TextAim, TextBatch};
use crate::error::Result;
use crate::onnx::OnnxBert;
use crate::plan::EncoderPlan;

/// A device that trains networks and encodes texts.
pub trait NetworkDevice: Debug + Send + Sync {
    /// Which device it is, with all that the last bits of its sums depend on.
    fn name(&self) -> String;

    /// Takes a network over. None where it cannot be held there: then the processor does the work,
    /// and whoever handed the device in can ask it why.
    ///
    /// # Errors
    /// The device fails.
    fn network(
        &self,
        plan: &EncoderPlan,
        start: NetworkStart<'_>,
    ) -> Result<Option<Box<dyn DeviceNetwork>>>;

    /// Takes a pretrained encoder over, likewise, for texts of at most `max_tokens` tokens.
    ///
    /// # Errors
    /// The device fails.
    fn bert(&self, bert: &OnnxBert<'_>, max_tokens: usize) -> Result<Option<Box<dyn DeviceBert>>>;
}

/// Where a network on a device starts from.
#[derive(Debug, Clone, Copy)]
pub struct NetworkStart<'a> {
    /// All parameters.
    pub parameters: &'a [f32],
    /// The optimiser's means and squares; None for a network that only encodes.
    pub moments: Option<(&'a [f32], &'a [f32])>,
    /// The vectors of all ids, where they are not among the parameters.
    pub frozen: &'a [f32],
    /// The most texts and tokens of a minibatch.
    pub largest: (usize, usize),
}

/// One run over a minibatch, or over a part of it where memory asks for parts.
#[derive(Debug)]
pub struct DeviceRun<'a> {
    /// The texts.
    pub batch: &'a TextBatch,
    /// What is dropped of them.
    pub masks: &'a DropoutMasks,
    /// What is asked of them, by place.
    pub aims: &'a [TextAim<'a>],
}

/// What became of one text of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextScore {
    /// Its cross-entropy, times its share.
    pub loss: f64,
    /// Whether its class scored highest.
    pub hit: bool,
}

/// The length of the steps of AdamW; see the [`optimiser`](crate::TrainSettings).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamStep {
    /// What the gradient is multiplied by, so that it is not too long.
    pub clip: f32,
    /// The rate.
    pub rate: f32,
    /// What matrices are multiplied by first.
    pub shrink: f32,
    /// 1/(1 − β₁ᵏ) and 1/(1 − β₂ᵏ), k being the number of the step.
    pub shares: (f32, f32),
}

/// A network on a device.
pub trait DeviceNetwork: Send {
    /// Adds the gradient of a run to what is summed already; the scores of its texts, by place.
    ///
    /// # Errors
    /// The device fails.
    fn learn(&mut self, run: &DeviceRun<'_>) -> Result<Vec<TextScore>>;

    /// The length of the gradient, and the largest size of a parameter.
    ///
    /// # Errors
    /// The device fails.
    fn lengths(&mut self) -> Result<(f64, f32)>;

    /// Takes a step and clears the gradient.
    ///
    /// # Errors
    /// The device fails.
    fn step(&mut self, step: &AdamStep) -> Result<()>;

    /// What the head reads of these texts, by place, nothing dropped.
    ///
    /// # Errors
    /// The device fails.
    fn features(&mut self, batch: &TextBatch) -> Result<Vec<f32>>;

    /// Writes the parameters, and the optimiser's means and squares, to where they are to be.
    ///
    /// # Errors
    /// The device fails.
    fn read(
        &mut self,
        parameters: &mut [f32],
        means: &mut [f32],
        squares: &mut [f32],
    ) -> Result<()>;

    /// The gradient as it is now.
    ///
    /// # Errors
    /// The device fails.
    fn gradient(&mut self) -> Result<Vec<f32>>;
}

/// A pretrained encoder on a device.
pub trait DeviceBert: Debug + Send + Sync {
    /// Tokens that it takes at once.
    fn batch_tokens(&self) -> usize;

    /// Encodes texts that have at least one token each, which are within vocabulary and positions;
    /// a row each.
    ///
    /// # Errors
    /// The device fails.
    fn encode(&self, texts: &[&[u32]]) -> Result<Vec<f32>>;
}
