//! One LSTM layer in one direction, forward and backward over whole sequences, on flat f32 buffers.
//!
//! ```text
//! G = W_ih X + b                    one product for all steps
//! G_t += W_hh h_{t−1}               one product a step
//! i, f, o = σ(G), g = tanh(G);  c_t = f·c_{t−1} + i·g;  h_t = o·tanh(c_t)
//! ```
//!
//! Backward mirrors it: one product a step carries dh, and dW_ih, dW_hh and dX are one product each
//! over all steps. Matrices are column-major with one column per token, in the places of
//! [`PackedTexts`]; W_ih is 4H × I and W_hh 4H × H, gates in the order i, f, g, o, and the one bias
//! is the sum of the two that PyTorch keeps. A layer in reverse reads each text from its own end.
//! Everything here runs on the calling thread: a batch is divided among threads instead
//! (`train.rs`), which needs no waiting between steps.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::activation::{StepBackward, StepForward};
use crate::packed::PackedTexts;
use crate::pool::BufferPool;

/// `out = a · b`, or `out += a · b`, on the calling thread.
pub(crate) fn multiply(out: MatMut<'_, f32>, accum: Accum, a: MatRef<'_, f32>, b: MatRef<'_, f32>) {
    matmul(out, accum, a, b, 1.0, Par::Seq);
}

/// A column-major matrix over a slice.
pub(crate) fn view(values: &[f32], rows: usize, columns: usize) -> MatRef<'_, f32> {
    MatRef::from_column_major_slice(&values[..rows * columns], rows, columns)
}

/// A column-major matrix over a slice, to write to.
pub(crate) fn view_mut(values: &mut [f32], rows: usize, columns: usize) -> MatMut<'_, f32> {
    MatMut::from_column_major_slice_mut(&mut values[..rows * columns], rows, columns)
}

/// Where the weights of a layer lie among all parameters, and which way it reads.
#[derive(Debug, Clone)]
pub struct LstmPlace {
    /// I: the width of what it reads.
    pub input: usize,
    /// H: the width of what it writes.
    pub hidden: usize,
    /// Whether it reads each text from its end.
    pub reverse: bool,
    /// W_ih, 4H × I, column-major.
    pub weight_input: Range<usize>,
    /// W_hh, 4H × H, column-major.
    pub weight_hidden: Range<usize>,
    /// b, 4H.
    pub bias: Range<usize>,
}

/// A block of rows inside a column-major buffer: where a layer writes its output beside another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputBlock {
    /// The height of the whole buffer.
    pub(crate) height: usize,
    /// The first row of the block.
    pub(crate) first: usize,
}

/// What the backward pass needs of the forward one.
#[derive(Debug, Default)]
pub(crate) struct LstmTrace {
    /// Activations i, f, g, o: 4H × N. The backward pass turns them into gradients in place.
    gates: Vec<f32>,
    /// c: H × N.
    cells: Vec<f32>,
    /// tanh c: H × N.
    squashed: Vec<f32>,
    /// h of the step before: H × N.
    before: Vec<f32>,
}

/// What the backward pass of a layer reads.
pub(crate) struct LstmBackward<'a> {
    /// The parameters of the whole encoder.
    pub(crate) parameters: &'a [f32],
    /// The input of the forward pass, I × N.
    pub(crate) x: &'a [f32],
    pub(crate) packed: &'a PackedTexts,
    pub(crate) trace: LstmTrace,
    pub(crate) output_gradient: &'a [f32],
    /// Where the layer's rows lie in `output_gradient`.
    pub(crate) lanes: OutputBlock,
}

impl LstmPlace {
    /// A layer whose parameters start at `start`.
    pub(crate) fn at(start: usize, input: usize, hidden: usize, reverse: bool) -> Self {
        let weight_input = start..start + 4 * hidden * input;
        let weight_hidden = weight_input.end..weight_input.end + 4 * hidden * hidden;
        let bias = weight_hidden.end..weight_hidden.end + 4 * hidden;
        Self {
            input,
            hidden,
            reverse,
            weight_input,
            weight_hidden,
            bias,
        }
    }

    /// The step that comes after step t in reading order, if any.
    pub fn next(&self, t: usize, packed: &PackedTexts) -> Option<usize> {
        if self.reverse {
            t.checked_sub(1)
        } else {
            Some(t + 1).filter(|&next| next < packed.steps())
        }
    }

    /// The step that comes before step t in reading order, if any.
    pub fn previous(&self, t: usize, packed: &PackedTexts) -> Option<usize> {
        if self.reverse {
            Some(t + 1).filter(|&next| next < packed.steps())
        } else {
            t.checked_sub(1)
        }
    }

    /// The steps in reading order.
    pub fn reading_order(
        &self,
        packed: &PackedTexts,
    ) -> Box<dyn DoubleEndedIterator<Item = usize>> {
        if self.reverse {
            Box::new((0..packed.steps()).rev())
        } else {
            Box::new(0..packed.steps())
        }
    }

    /// Reads `x` (I × N) and writes its rows of `output`.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        x: &[f32],
        packed: &PackedTexts,
        output: &mut [f32],
        lanes: OutputBlock,
        pool: &mut BufferPool,
    ) -> LstmTrace {
        let h = self.hidden;
        let n = packed.columns();
        let bias = &parameters[self.bias.clone()];
        let mut gates = pool.take(4 * h * n);
        gates
            .chunks_exact_mut(4 * h)
            .for_each(|column| column.copy_from_slice(bias));
        let weight_input = view(&parameters[self.weight_input.clone()], 4 * h, self.input);
        multiply(
            view_mut(&mut gates, 4 * h, n),
            Accum::Add,
            weight_input,
            view(x, self.input, n),
        );
        let weight_hidden = view(&parameters[self.weight_hidden.clone()], 4 * h, h);
        let mut cells = pool.take(h * n);
        let mut squashed = pool.take(h * n);
        let mut before = pool.zeros(h * n);
        let zero = vec![0.0; h];
        for t in self.reading_order(packed) {
            let columns = packed.step(t);
            let active = columns.len();
            let previous = self.previous(t, packed);
            let block = &mut gates[4 * h * columns.start..4 * h * columns.end];
            // Texts that begin at this step have no state yet: their columns of `before` are zero
            // and need no product.
            let remembering = previous.map_or(0, |step| packed.active(step).min(active));
            if remembering > 0 {
                let remembered = view(&before[h * columns.start..], h, remembering);
                multiply(
                    view_mut(block, 4 * h, remembering),
                    Accum::Add,
                    weight_hidden,
                    remembered,
                );
            }
            // The cells of the step before lie on one side of this step's: split between them to
            // borrow both.
            let own = h * columns.start;
            let (cells_before, cells) = match previous.map(|step| h * packed.step(step).start) {
                Some(from) if from > own => {
                    let (low, high) = cells.split_at_mut(from);
                    (&high[..], &mut low[own..])
                }
                Some(from) => {
                    let (low, high) = cells.split_at_mut(own);
                    (&low[from..], high)
                }
                None => (&[][..], &mut cells[own..]),
            };
            pulp::Arch::new().dispatch(StepForward {
                hidden: h,
                active,
                remembering,
                gates: block,
                cells_before,
                cells,
                squashed: &mut squashed[own..],
                output: &mut output[lanes.height * columns.start + lanes.first..],
                height: lanes.height,
                zero: &zero,
            });
            if let Some(next) = self.next(t, packed) {
                for place in 0..active.min(packed.active(next)) {
                    let out = lanes.height * (columns.start + place) + lanes.first;
                    let to = h * packed.column(next, place);
                    before[to..to + h].copy_from_slice(&output[out..out + h]);
                }
            }
        }
        LstmTrace {
            gates,
            cells,
            squashed,
            before,
        }
    }

    /// Adds to `gradient` the gradients of the layer's weights, given that of its output, and to
    /// `input_gradient`, where one is asked for, that of its input.
    pub(crate) fn backward(
        &self,
        task: LstmBackward<'_>,
        gradient: &mut [f32],
        input_gradient: Option<&mut [f32]>,
        pool: &mut BufferPool,
    ) {
        let LstmBackward {
            parameters,
            x,
            packed,
            trace,
            output_gradient,
            lanes,
        } = task;
        let h = self.hidden;
        let n = packed.columns();
        let LstmTrace {
            mut gates,
            cells,
            squashed,
            before,
        } = trace;
        let weight_hidden = view(&parameters[self.weight_hidden.clone()], 4 * h, h);
        let mut cell_gradient = vec![0.0; h * packed.samples()];
        let mut dh = vec![0.0; h * packed.samples()];
        let zero = vec![0.0; h];
        for t in self.reading_order(packed).rev() {
            let columns = packed.step(t);
            let active = columns.len();
            for place in 0..active {
                let out = lanes.height * (columns.start + place) + lanes.first;
                dh[h * place..h * (place + 1)].copy_from_slice(&output_gradient[out..out + h]);
            }
            if let Some(next) = self.next(t, packed) {
                let both = active.min(packed.active(next));
                let later = view(&gates[4 * h * packed.step(next).start..], 4 * h, both);
                multiply(
                    view_mut(&mut dh, h, both),
                    Accum::Add,
                    weight_hidden.transpose(),
                    later,
                );
            }
            let previous = self.previous(t, packed);
            let remembering = previous.map_or(0, |step| packed.active(step).min(active));
            let own = h * columns.start;
            let from = previous.map_or(0, |step| h * packed.step(step).start);
            pulp::Arch::new().dispatch(StepBackward {
                hidden: h,
                active,
                remembering,
                gates: &mut gates[4 * own..4 * h * columns.end],
                cells_before: &cells[from..],
                squashed: &squashed[own..],
                output_gradient: &dh,
                cell_gradient: &mut cell_gradient,
                zero: &zero,
            });
        }
        let gates_gradient = view(&gates, 4 * h, n);
        let out = view_mut(&mut gradient[self.weight_input.clone()], 4 * h, self.input);
        multiply(
            out,
            Accum::Add,
            gates_gradient,
            view(x, self.input, n).transpose(),
        );
        let out = view_mut(&mut gradient[self.weight_hidden.clone()], 4 * h, h);
        multiply(
            out,
            Accum::Add,
            gates_gradient,
            view(&before, h, n).transpose(),
        );
        add_columns(&mut gradient[self.bias.clone()], &gates);
        if let Some(input_gradient) = input_gradient {
            let weight_input = view(&parameters[self.weight_input.clone()], 4 * h, self.input);
            let out = view_mut(input_gradient, self.input, n);
            multiply(out, Accum::Add, weight_input.transpose(), gates_gradient);
        }
        [gates, cells, squashed, before]
            .into_iter()
            .for_each(|buffer| pool.give(buffer));
    }
}

impl LstmTrace {
    /// Gives the buffers back, where no backward pass will.
    pub(crate) fn release(self, pool: &mut BufferPool) {
        [self.gates, self.cells, self.squashed, self.before]
            .into_iter()
            .for_each(|buffer| pool.give(buffer));
    }
}

/// Adds every column of a column-major matrix as tall as `sum` to `sum`.
pub(crate) fn add_columns(sum: &mut [f32], matrix: &[f32]) {
    for column in matrix.chunks_exact(sum.len().max(1)) {
        for (total, value) in sum.iter_mut().zip(column) {
            *total += value;
        }
    }
}

#[cfg(test)]
#[path = "lstm_tests.rs"]
mod tests;
