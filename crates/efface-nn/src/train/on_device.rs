//! A step of a training on a device: what one thread of the processor would do, asked of the
//! device.

use crate::batch::{BatchShare, TextBatch};
use crate::device::DeviceNetwork;
use crate::encoder::ShareScore;
use crate::error::Result;
use crate::plan::EncoderPlan;

/// Adds the gradient of a minibatch, with the texts, the order and the dropout of one thread.
pub(super) fn learn(
    device: &mut dyn DeviceNetwork,
    plan: &EncoderPlan,
    lesson: &BatchShare<'_>,
) -> Result<ShareScore> {
    let mut total = ShareScore::default();
    for run in lesson.runs(plan) {
        let scores = device.learn(&run.on_device())?;
        total.add(&ShareScore::of(&run.aims, &scores));
    }
    Ok(total)
}

/// The features of some texts, one row after the other, in the order given.
pub(crate) fn features(
    device: &mut dyn DeviceNetwork,
    width: usize,
    texts: &[&[u32]],
) -> Result<Vec<f32>> {
    let batch = TextBatch::new(texts);
    Ok(batch.in_order(&device.features(&batch)?, width))
}

#[cfg(test)]
#[path = "on_device_tests.rs"]
mod tests;
