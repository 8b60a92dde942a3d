//! The element-wise parts of the forward pass: normalisation, GELU, softmax.
//!
//! Plain loops that the compiler turns into vector instructions of whatever the processor has. Sums
//! are taken in sixteen lanes and fused multiplications are explicit, so that every machine gets
//! the same bits here.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

use crate::vectorised::vectorised;

const LANES: usize = 16;

/// Normalises each row to mean 0 and variance 1, then scales and shifts it.
pub(super) fn layer_norm(rows: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    vectorised(
        #[inline(always)]
        || {
            rows.chunks_exact_mut(scale.len())
                .for_each(|row| norm_row(row, scale, shift, epsilon))
        },
    );
}

/// `rows += residual + bias`, then as [`layer_norm`]: what ends both halves of a layer, in one pass
/// over memory.
pub(super) fn add_norm(
    rows: &mut [f32],
    residual: &[f32],
    bias: &[f32],
    scale: &[f32],
    shift: &[f32],
    epsilon: f32,
) {
    let width = scale.len();
    vectorised(
        #[inline(always)]
        || {
            for (row, residual) in rows
                .chunks_exact_mut(width)
                .zip(residual.chunks_exact(width))
            {
                for ((x, r), b) in row.iter_mut().zip(residual).zip(bias) {
                    *x += r + b;
                }
                norm_row(row, scale, shift, epsilon);
            }
        },
    );
}

#[inline(always)]
fn norm_row(row: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = sum(row, |x| x) / count;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
    let factor = 1.0 / (variance + epsilon).sqrt();
    for ((x, s), b) in row.iter_mut().zip(scale).zip(shift) {
        *x = ((*x - mean) * factor).mul_add(*s, *b);
    }
}

/// `rows += bias`, row by row.
pub(super) fn add_bias(rows: &mut [f32], bias: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
            }
        },
    );
}

/// `rows = gelu(rows + bias)`, with gelu(x) = x·(1 + erf(x/√2))/2.
pub(super) fn bias_gelu(rows: &mut [f32], bias: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (x, b) in row.iter_mut().zip(bias) {
                    let value = *x + b;
                    *x = 0.5 * value * (1.0 + erf(value * FRAC_1_SQRT_2));
                }
            }
        },
    );
}

/// Softmax of each row of `width` numbers.
pub(super) fn softmax(rows: &mut [f32], width: usize) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(width) {
                let most = largest(row);
                row.iter_mut().for_each(|x| *x = exp(*x - most));
                let factor = 1.0 / sum(row, |x| x);
                row.iter_mut().for_each(|x| *x *= factor);
            }
        },
    );
}

/// Writes the mean of some rows.
pub(super) fn mean(rows: &[f32], out: &mut [f32]) {
    let width = out.len();
    out.fill(0.0);
    for row in rows.chunks_exact(width) {
        out.iter_mut().zip(row).for_each(|(o, x)| *o += x);
    }
    let count = (rows.len() / width) as f32;
    out.iter_mut().for_each(|x| *x /= count);
}

/// Scales a row to length 1. A row of zeros stays one.
pub(super) fn scale_to_unit_length(out: &mut [f32]) {
    let length = sum(out, |x| x * x).sqrt().max(1e-12);
    out.iter_mut().for_each(|x| *x /= length);
}

#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += of(chunk[lane]);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|&x| of(x)).sum::<f32>()
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] > lanes[lane] {
                chunk[lane]
            } else {
                lanes[lane]
            };
        }
    }
    lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}

/// eˣ for x ≤ 0, within 2 units in the last place. Below −87 it gives e⁻⁸⁷, which no sum of a
/// softmax feels.
///
/// eˣ = 2ⁿ·eʳ with n the nearest whole number to x/ln 2, and a polynomial for eʳ on |r| ≤ ln 2 / 2.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding this leaves a whole number in the low bits.
    const WHOLE: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first short enough for its products with n to be exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -87.0 { x } else { -87.0 };
    let shifted = x.mul_add(LOG2_E, WHOLE);
    let n = shifted - WHOLE;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = 1.0 / 720.0;
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, coefficient);
    }
    let power = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    p * power
}

/// The error function, within 4e-7: an odd rational function fitted to it on [−4, 4], beyond which
/// erf is ±1 in f32.
#[inline(always)]
fn erf(x: f32) -> f32 {
    const P: [f32; 5] = [
        2.845_449_5e-4,
        3.882_346_7e-3,
        5.309_861_5e-2,
        1.935_215_6e-1,
        FRAC_2_SQRT_PI,
    ];
    const Q: [f32; 5] = [
        1.185_333_5e-3,
        1.520_523_1e-2,
        1.153_402_7e-1,
        5.048_365_6e-1,
        1.0,
    ];
    let x = x.clamp(-4.0, 4.0);
    let t = x * x;
    let mut p = 1.986_968_5e-6;
    let mut q = 3.742_104_3e-5;
    for k in 0..5 {
        p = t.mul_add(p, P[k]);
        q = t.mul_add(q, Q[k]);
    }
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its series, or its continued fraction for large arguments, in double precision.
    fn erf64(x: f64) -> f64 {
        if x.abs() > 3.0 {
            let tail = (1..60)
                .rev()
                .fold(0.0, |f, k| (k as f64 / 2.0) / (x.abs() + f));
            let rest = (-x * x).exp() / std::f64::consts::PI.sqrt() / (x.abs() + tail);
            return (1.0 - rest).copysign(x);
        }
        let mut term = x;
        let mut total = x;
        for n in 1..200 {
            term *= -x * x / n as f64;
            total += term / (2 * n + 1) as f64;
        }
        total * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn erf_is_within_its_stated_error() {
        let worst = (-60_000..=60_000)
            .map(|k| k as f32 * 1e-4)
            .map(|x| (f64::from(erf(x)) - erf64(f64::from(x))).abs())
            .fold(0.0, f64::max);
        assert!(worst < 4e-7, "{worst:e}");
    }

    #[test]
    fn exp_is_within_its_stated_error() {
        let worst = (0..=86_000)
            .map(|k| k as f32 * -1e-3)
            .map(|x| (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 2.4e-7, "{worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn softmax_sums_to_one_whatever_the_scale() {
        let mut rows = vec![1e4f32, 0.0, -1e4, 3.0, 3.0, 3.0];
        softmax(&mut rows, 3);
        assert_eq!(rows[0], 1.0);
        assert!(rows[1..3].iter().all(|&x| x < 1e-37));
        assert!(rows[3..].iter().all(|&x| (x - 1.0 / 3.0).abs() < 1e-7));
    }

    #[test]
    fn rows_of_any_width_are_normalised() {
        for width in [1, 7, 16, 33] {
            let mut row: Vec<f32> = (0..width).map(|k| k as f32).collect();
            layer_norm(&mut row, &vec![1.0; width], &vec![0.0; width], 1e-12);
            assert!(row.iter().sum::<f32>().abs() < 1e-5);
        }
        let mut flat = vec![5.0f32; 20];
        layer_norm(&mut flat, &[1.0; 20], &[2.0; 20], 1e-12);
        assert!(flat.iter().all(|&x| x == 2.0));
    }
}
