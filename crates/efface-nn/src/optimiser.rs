//! AdamW (Loshchilov and Hutter 2019) on one slice: decay acts on the weights and not on the
//! gradient.

use crate::device::AdamStep;
use crate::plan::EncoderPlan;
use crate::vectorised::vectorised;

const KEEP_MEAN: f32 = 0.9;
const KEEP_SQUARE: f32 = 0.999;
const EPSILON: f32 = 1e-8;
/// More rates than a step can go: (1 − β₁)/√(1 − β₂) is 3.2, and less after the corrections of
/// early steps.
pub(crate) const LONGEST_STEP: f64 = 16.0;

/// The factors of a step. `step` counts from 1.
pub(crate) fn adam_step(clip: f32, (rate, decay): (f32, f32), step: u64) -> AdamStep {
    let power = i32::try_from(step).unwrap_or(i32::MAX);
    let shares = (
        1.0 / (1.0 - KEEP_MEAN.powi(power)),
        1.0 / (1.0 - KEEP_SQUARE.powi(power)),
    );
    AdamStep {
        clip,
        rate,
        shrink: 1.0 - rate * decay,
        shares,
    }
}

/// One step.
pub(crate) fn step(
    plan: &EncoderPlan,
    (parameters, means, squares): (&mut [f32], &mut [f32], &mut [f32]),
    gradient: &[f32],
    step: &AdamStep,
) {
    let AdamStep {
        clip,
        rate,
        shrink,
        shares: (mean_share, square_share),
    } = *step;
    if shrink != 1.0 {
        for range in plan.decays() {
            parameters[range]
                .iter_mut()
                .for_each(|value| *value *= shrink);
        }
    }
    vectorised(
        #[inline(always)]
        || {
            let state = parameters
                .iter_mut()
                .zip(means.iter_mut())
                .zip(squares.iter_mut());
            for (((value, mean), square), slope) in state.zip(gradient) {
                let slope = slope * clip;
                *mean = KEEP_MEAN * *mean + (1.0 - KEEP_MEAN) * slope;
                *square = KEEP_SQUARE * *square + (1.0 - KEEP_SQUARE) * slope * slope;
                *value -= rate * (*mean * mean_share) / ((*square * square_share).sqrt() + EPSILON);
            }
        },
    );
}

/// The norm of a gradient, summed in double precision.
pub(crate) fn norm(gradient: &[f32]) -> f64 {
    gradient
        .chunks(4096)
        .map(|part| {
            part.iter()
                .map(|&g| f64::from(g) * f64::from(g))
                .sum::<f64>()
        })
        .sum::<f64>()
        .sqrt()
}
