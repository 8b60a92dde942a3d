//! Layer normalisation of every column: x̂ = (x − mean)/√(variance + ε), then gain·x̂ + shift.

use crate::pool::BufferPool;

/// ε, which keeps a constant column from being divided by 0.
pub(crate) const EPSILON: f32 = 1e-5;

/// What the backward pass needs.
pub(crate) struct NormTrace {
    /// x̂.
    normal: Vec<f32>,
    /// 1/√(variance + ε), one a column.
    scales: Vec<f32>,
}

impl NormTrace {
    /// Gives its buffer back.
    pub(crate) fn release(self, pool: &mut BufferPool) {
        pool.give(self.normal);
    }
}

pub(crate) fn forward(
    x: &[f32],
    gain: &[f32],
    shift: &[f32],
    pool: &mut BufferPool,
) -> (Vec<f32>, NormTrace) {
    let width = gain.len();
    let mut out = pool.take(x.len());
    let mut normal = pool.take(x.len());
    let mut scales = Vec::with_capacity(x.len() / width.max(1));
    let columns = x
        .chunks_exact(width)
        .zip(out.chunks_exact_mut(width))
        .zip(normal.chunks_exact_mut(width));
    for ((x, out), normal) in columns {
        let mean = x.iter().sum::<f32>() / width as f32;
        let variance = x
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum::<f32>()
            / width as f32;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        for j in 0..width {
            normal[j] = (x[j] - mean) * scale;
            out[j] = gain[j] * normal[j] + shift[j];
        }
        scales.push(scale);
    }
    (out, NormTrace { normal, scales })
}

/// Turns the gradient of the output into that of the input, in place, and adds those of gain and
/// shift.
pub(crate) fn backward(
    trace: &NormTrace,
    gain: &[f32],
    slopes: &mut [f32],
    gain_gradient: &mut [f32],
    shift_gradient: &mut [f32],
) {
    let width = gain.len();
    let columns = slopes
        .chunks_exact_mut(width)
        .zip(trace.normal.chunks_exact(width))
        .zip(&trace.scales);
    for ((slopes, normal), scale) in columns {
        let mut mean = 0.0;
        let mut along = 0.0;
        for j in 0..width {
            gain_gradient[j] += slopes[j] * normal[j];
            shift_gradient[j] += slopes[j];
            slopes[j] *= gain[j];
            mean += slopes[j];
            along += slopes[j] * normal[j];
        }
        (mean, along) = (mean / width as f32, along / width as f32);
        for j in 0..width {
            slopes[j] = scale * (slopes[j] - mean - normal[j] * along);
        }
    }
}
