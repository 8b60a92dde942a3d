//! From one vector a token to one vector a text.

use crate::packed::PackedTexts;
use crate::plan::{EncoderSettings, Pooling};
use crate::pool::BufferPool;

/// The pooled vectors, by place, and for [`Pooling::Max`] the step that each value came from.
pub(crate) fn forward(
    settings: EncoderSettings,
    tokens: &[f32],
    packed: &PackedTexts,
) -> (Vec<f32>, Vec<u32>) {
    let h = settings.lanes();
    let samples = packed.samples();
    let mut pooled = vec![0.0; h * samples];
    let mut chosen = Vec::new();
    match settings.pooling {
        Pooling::Mean => {
            for t in 0..packed.steps() {
                let block = &tokens[h * packed.step(t).start..h * packed.step(t).end];
                pooled
                    .iter_mut()
                    .zip(block)
                    .for_each(|(sum, value)| *sum += value);
            }
            for place in 0..samples {
                let share = 1.0 / packed.length(place) as f32;
                pooled[h * place..h * (place + 1)]
                    .iter_mut()
                    .for_each(|value| *value *= share);
            }
        }
        Pooling::Max => {
            pooled.fill(f32::NEG_INFINITY);
            chosen = vec![0; h * samples];
            for t in 0..packed.steps() {
                let block = &tokens[h * packed.step(t).start..h * packed.step(t).end];
                for ((best, step), value) in pooled.iter_mut().zip(&mut chosen).zip(block) {
                    // NaN must win the maximum, or a training that diverged would not be noticed.
                    if *value > *best || value.is_nan() {
                        (*best, *step) = (*value, t as u32);
                    }
                }
            }
        }
        Pooling::Last => each_last(settings, packed, |lane, place, column| {
            pooled[h * place + lane] = tokens[h * column + lane];
        }),
    }
    (pooled, chosen)
}

/// The gradient of every token's vector.
pub(crate) fn backward(
    settings: EncoderSettings,
    slopes: &[f32],
    chosen: &[u32],
    packed: &PackedTexts,
    pool: &mut BufferPool,
) -> Vec<f32> {
    let h = settings.lanes();
    let mut tokens = pool.zeros(h * packed.columns());
    match settings.pooling {
        Pooling::Mean => {
            for t in 0..packed.steps() {
                for place in 0..packed.active(t) {
                    let share = 1.0 / packed.length(place) as f32;
                    let column = h * packed.column(t, place);
                    let from = &slopes[h * place..h * (place + 1)];
                    tokens[column..column + h]
                        .iter_mut()
                        .zip(from)
                        .for_each(|(to, value)| *to = value * share);
                }
            }
        }
        Pooling::Max => {
            for (at, (&step, &value)) in chosen.iter().zip(slopes).enumerate() {
                tokens[h * packed.column(step as usize, at / h) + at % h] = value;
            }
        }
        Pooling::Last => each_last(settings, packed, |lane, place, column| {
            tokens[h * column + lane] = slopes[h * place + lane];
        }),
    }
    tokens
}

/// Where each direction has read everything: at the end, or for one in reverse at the start.
fn each_last(
    settings: EncoderSettings,
    packed: &PackedTexts,
    mut see: impl FnMut(usize, usize, usize),
) {
    for place in 0..packed.samples() {
        for lane in 0..settings.lanes() {
            let step = if lane < settings.hidden {
                packed.length(place) - 1
            } else {
                0
            };
            see(lane, place, packed.column(step, place));
        }
    }
}
