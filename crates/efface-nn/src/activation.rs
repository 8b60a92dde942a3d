//! Sigmoid and tanh by way of one polynomial exponential, in loops that the compiler turns into
//! vector code, and the two fused loops of an LSTM step.
//!
//! exp(x) = 2^k · e^r with r in ±ln2/2 and a polynomial of degree 6: relative error below 3e-7. The
//! absolute error of sigmoid and tanh is below 3e-7 everywhere; the test walks both.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts, so that k·ln2 is subtracted without losing digits.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// 1.5·2²³: adding it rounds to an integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let tail = 1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0)));
    let near_one = 1.0 + r * (1.0 + r * (0.5 + r * tail));
    let power = f32::from_bits(
        shifted
            .to_bits()
            .wrapping_sub(ROUND.to_bits())
            .wrapping_add(127)
            << 23,
    );
    near_one * power
}

/// 1/(1 + e⁻ˣ).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// tanh x = 2σ(2x) − 1.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    2.0 / (1.0 + exp(-2.0 * x)) - 1.0
}

/// Numbers worked on at once.
const LANES: usize = 16;

/// Up to [`LANES`] numbers, zeros behind them.
#[inline(always)]
fn load(from: &[f32]) -> [f32; LANES] {
    let mut numbers = [0.0; LANES];
    match from.first_chunk::<LANES>() {
        Some(whole) => numbers = *whole,
        None => numbers[..from.len()].copy_from_slice(from),
    }
    numbers
}

#[inline(always)]
fn store(to: &mut [f32], numbers: &[f32; LANES]) {
    match to.first_chunk_mut::<LANES>() {
        Some(whole) => *whole = *numbers,
        None => to.copy_from_slice(&numbers[..to.len()]),
    }
}

/// One step of a layer for all samples that take part in it. Every slice but those of cells begins
/// at the step's own first column.
pub(crate) struct StepForward<'a> {
    pub(crate) hidden: usize,
    pub(crate) active: usize,
    /// How many samples have a step before this one; the others start from zero.
    pub(crate) remembering: usize,
    /// Pre-activations i, f, g, o; leaves as activations.
    pub(crate) gates: &'a mut [f32],
    pub(crate) cells_before: &'a [f32],
    pub(crate) cells: &'a mut [f32],
    pub(crate) squashed: &'a mut [f32],
    /// The output's first lane, and how far apart its columns are.
    pub(crate) output: &'a mut [f32],
    pub(crate) height: usize,
    pub(crate) zero: &'a [f32],
}

impl pulp::NullaryFnOnce for StepForward<'_> {
    type Output = ();

    /// c = σ(f)·c₋ + σ(i)·tanh(g);  h = σ(o)·tanh(c).
    #[inline(always)]
    fn call(self) {
        let h = self.hidden;
        for place in 0..self.active {
            let (i, rest) = self.gates[4 * h * place..4 * h * (place + 1)].split_at_mut(h);
            let (f, rest) = rest.split_at_mut(h);
            let (g, o) = rest.split_at_mut(h);
            let o = &mut o[..h];
            let own = h * place..h * (place + 1);
            let before = if place < self.remembering {
                &self.cells_before[own.clone()]
            } else {
                &self.zero[..h]
            };
            let cell = &mut self.cells[own.clone()];
            let squashed = &mut self.squashed[own];
            let output = &mut self.output[self.height * place..][..h];
            for first in (0..h).step_by(LANES) {
                let own = first..(first + LANES).min(h);
                let values = CellBlock {
                    gates: [
                        &mut i[own.clone()],
                        &mut f[own.clone()],
                        &mut g[own.clone()],
                        &mut o[own.clone()],
                    ],
                    before: &before[own.clone()],
                };
                values.forward(
                    &mut cell[own.clone()],
                    &mut squashed[own.clone()],
                    &mut output[own],
                );
            }
        }
    }
}

/// The backward pass of the step.
pub(crate) struct StepBackward<'a> {
    pub(crate) hidden: usize,
    pub(crate) active: usize,
    pub(crate) remembering: usize,
    /// Activations; leaves as the gradient of the pre-activations.
    pub(crate) gates: &'a mut [f32],
    pub(crate) cells_before: &'a [f32],
    pub(crate) squashed: &'a [f32],
    pub(crate) output_gradient: &'a [f32],
    /// Carried from step to step.
    pub(crate) cell_gradient: &'a mut [f32],
    pub(crate) zero: &'a [f32],
}

impl pulp::NullaryFnOnce for StepBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let h = self.hidden;
        for place in 0..self.active {
            let (i, rest) = self.gates[4 * h * place..4 * h * (place + 1)].split_at_mut(h);
            let (f, rest) = rest.split_at_mut(h);
            let (g, o) = rest.split_at_mut(h);
            let o = &mut o[..h];
            let own = h * place..h * (place + 1);
            let before = if place < self.remembering {
                &self.cells_before[own.clone()]
            } else {
                &self.zero[..h]
            };
            let squashed = &self.squashed[own.clone()];
            let dh = &self.output_gradient[own.clone()];
            let dc = &mut self.cell_gradient[own];
            for first in (0..h).step_by(LANES) {
                let own = first..(first + LANES).min(h);
                let values = CellBlock {
                    gates: [
                        &mut i[own.clone()],
                        &mut f[own.clone()],
                        &mut g[own.clone()],
                        &mut o[own.clone()],
                    ],
                    before: &before[own.clone()],
                };
                values.backward(&squashed[own.clone()], &dh[own.clone()], &mut dc[own]);
            }
        }
    }
}

/// At most [`LANES`] cells of one sample. Everything is copied into arrays of fixed size first: the
/// compiler then knows that nothing overlaps, and works on whole vectors.
struct CellBlock<'a> {
    gates: [&'a mut [f32]; 4],
    before: &'a [f32],
}

impl CellBlock<'_> {
    #[inline(always)]
    fn forward(self, cell: &mut [f32], squashed: &mut [f32], output: &mut [f32]) {
        let [i, f, g, o] = self.gates;
        let mut input = load(i);
        let mut forget = load(f);
        let mut candidate = load(g);
        let mut out = load(o);
        let mut state = load(self.before);
        let mut level = [0.0; LANES];
        let mut shown = [0.0; LANES];
        input.iter_mut().for_each(|value| *value = sigmoid(*value));
        forget.iter_mut().for_each(|value| *value = sigmoid(*value));
        candidate.iter_mut().for_each(|value| *value = tanh(*value));
        out.iter_mut().for_each(|value| *value = sigmoid(*value));
        for l in 0..LANES {
            state[l] = forget[l] * state[l] + input[l] * candidate[l];
            level[l] = tanh(state[l]);
            shown[l] = out[l] * level[l];
        }
        for (to, from) in [(i, &input), (f, &forget), (g, &candidate), (o, &out)] {
            store(to, from);
        }
        store(cell, &state);
        store(squashed, &level);
        store(output, &shown);
    }

    #[inline(always)]
    fn backward(self, squashed: &[f32], dh: &[f32], dc: &mut [f32]) {
        let [i, f, g, o] = self.gates;
        let mut input = load(i);
        let mut forget = load(f);
        let mut candidate = load(g);
        let mut out = load(o);
        let before = load(self.before);
        let level = load(squashed);
        let slope = load(dh);
        let mut carried = load(dc);
        for l in 0..LANES {
            let through = carried[l] + slope[l] * out[l] * (1.0 - level[l] * level[l]);
            carried[l] = through * forget[l];
            out[l] = slope[l] * level[l] * out[l] * (1.0 - out[l]);
            let now = input[l];
            let new = candidate[l];
            input[l] = through * new * now * (1.0 - now);
            candidate[l] = through * now * (1.0 - new * new);
            forget[l] = through * before[l] * forget[l] * (1.0 - forget[l]);
        }
        for (to, from) in [(i, &input), (f, &forget), (g, &candidate), (o, &out)] {
            store(to, from);
        }
        store(dc, &carried);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_within_3e_7_everywhere() {
        let mut worst = 0.0f64;
        for at in -400_000..=400_000 {
            let x = at as f32 * 2.5e-4;
            let exact = f64::from(x);
            worst = worst.max((f64::from(sigmoid(x)) - 1.0 / (1.0 + (-exact).exp())).abs());
            worst = worst.max((f64::from(tanh(x)) - exact.tanh()).abs());
        }
        assert!(worst < 3e-7, "{worst:e}");
        assert_eq!(
            (sigmoid(f32::INFINITY), tanh(f32::NEG_INFINITY)),
            (1.0, -1.0)
        );
        assert!(
            sigmoid(f32::NAN).is_nan(),
            "a NaN must stay one, lest divergence go unseen"
        );
    }
}
