//! From word ids to the head's features, and back with gradients: word vectors → LSTM layers →
//! pooling → projection.
//!
//! A layer reads the normalised output of the one below (where the settings say so) and adds to it;
//! word vectors, the values between layers and the head's input are dropped out while training, a
//! text's own features for the whole of its length, which is what recurrent layers bear best (Gal
//! and Ghahramani 2016).

use faer::Accum;

use crate::activation::tanh;
use crate::batch::{BatchShare, DropoutMasks, TextAim, TextBatch};
use crate::device::{DeviceRun, TextScore};
use crate::lstm::{LstmBackward, LstmTrace, OutputBlock, add_columns, multiply, view, view_mut};
use crate::norm;
use crate::plan::{EncoderPlan, LinearPlace, Squash};
use crate::pool::BufferPool;
use crate::pooling;

/// What one layer leaves behind for the backward pass.
struct LayerTrace {
    /// What its LSTMs read.
    x: Vec<f32>,
    norm: Option<norm::NormTrace>,
    lstms: Vec<LstmTrace>,
}

/// What a forward pass leaves behind.
struct ForwardPass {
    layers: Vec<LayerTrace>,
    pooled: Vec<f32>,
    chosen: Vec<u32>,
    /// The head's input before dropout, d × samples, by place.
    features: Vec<f32>,
}

/// The parameters in use, and the word vectors where they are not among them.
#[derive(Clone, Copy)]
pub(crate) struct EncoderWeights<'a> {
    pub(crate) plan: &'a EncoderPlan,
    pub(crate) parameters: &'a [f32],
    /// The vectors of all ids, for an embedding that is not trained.
    pub(crate) frozen: &'a [f32],
}

/// What a share came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShareScore {
    /// Cross-entropy of the texts to learn, and how many of them were right.
    pub(crate) loss: f64,
    pub(crate) correct: usize,
    /// Cross-entropy of the texts to forget.
    pub(crate) forgotten: f64,
}

impl ShareScore {
    /// Of texts with these aims.
    pub(crate) fn of(aims: &[TextAim<'_>], scores: &[TextScore]) -> Self {
        let mut total = Self::default();
        for (aim, score) in aims.iter().zip(scores) {
            if aim.is_forgotten() {
                total.forgotten += score.loss;
            } else {
                total.loss += score.loss;
                total.correct += usize::from(score.hit);
            }
        }
        total
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.correct += other.correct;
        self.forgotten += other.forgotten;
    }
}

impl EncoderWeights<'_> {
    fn table(&self) -> &[f32] {
        self.plan
            .table
            .as_ref()
            .map_or(self.frozen, |range| &self.parameters[range.clone()])
    }

    fn embed(&self, batch: &TextBatch, pool: &mut BufferPool) -> Vec<f32> {
        let table = self.table();
        let width = self.plan.word_width;
        let mut x = pool.take(width * batch.ids.len());
        for (column, &id) in x.chunks_exact_mut(width).zip(&batch.ids) {
            column.copy_from_slice(&table[id as usize * width..(id as usize + 1) * width]);
        }
        x
    }

    /// The forward pass. Without `masks` nothing is dropped and nothing is kept for a backward
    /// pass.
    fn forward(
        &self,
        batch: &TextBatch,
        masks: Option<&DropoutMasks>,
        pool: &mut BufferPool,
    ) -> ForwardPass {
        let plan = self.plan;
        let packed = &batch.packed;
        let n = packed.columns();
        let samples = packed.samples();
        let lanes = plan.settings.lanes();
        let keep = masks.is_some();
        let mut below = self.embed(batch, pool);
        if let Some(mask) = masks.and_then(|masks| masks.words.as_ref()) {
            mask.apply(&mut below, packed);
        }
        let mut layers = Vec::new();
        for (at, layer) in plan.layers.iter().enumerate() {
            let (x, norm_trace, kept) = match &layer.norm {
                Some((gain, shift)) => {
                    let gain = &self.parameters[gain.clone()];
                    let shift = &self.parameters[shift.clone()];
                    let (x, trace) = norm::forward(&below, gain, shift, pool);
                    (x, Some(trace), Some(below))
                }
                None if layer.residual => {
                    let mut x = pool.take(below.len());
                    x.copy_from_slice(&below);
                    (x, None, Some(below))
                }
                None => (below, None, None),
            };
            let mut output = pool.take(lanes * n);
            let mut lstms = Vec::new();
            for (way, lstm) in layer.directions.iter().enumerate() {
                let block = OutputBlock {
                    height: lanes,
                    first: way * lstm.hidden,
                };
                let trace = lstm.forward(self.parameters, &x, packed, &mut output, block, pool);
                if keep {
                    lstms.push(trace)
                } else {
                    trace.release(pool)
                }
            }
            if let Some(mask) = masks.and_then(|masks| masks.layers.get(at)) {
                mask.apply(&mut output, packed);
            }
            if let Some(kept) = kept {
                if layer.residual {
                    output
                        .iter_mut()
                        .zip(&kept)
                        .for_each(|(out, below)| *out += below);
                }
                pool.give(kept);
            }
            below = output;
            if keep {
                layers.push(LayerTrace {
                    x,
                    norm: norm_trace,
                    lstms,
                });
            } else {
                pool.give(x);
                norm_trace.into_iter().for_each(|trace| trace.release(pool));
            }
        }
        let (pooled, chosen) = pooling::forward(plan.settings, &below, packed);
        pool.give(below);
        let features = match &plan.projection {
            Some(linear) => {
                let mut out = apply_linear(linear, self.parameters, &pooled, samples);
                match plan.settings.squash {
                    Squash::Tanh => out.iter_mut().for_each(|value| *value = tanh(*value)),
                    Squash::Relu => out.iter_mut().for_each(|value| *value = value.max(0.0)),
                }
                out
            }
            None => pooled.clone(),
        };
        ForwardPass {
            layers,
            pooled,
            chosen,
            features,
        }
    }

    /// The features of some texts, one row after the other, in the order given.
    pub(crate) fn features(&self, texts: &[&[u32]], pool: &mut BufferPool) -> Vec<f32> {
        let batch = TextBatch::new(texts);
        batch.in_order(
            &self.features_by_place(&batch, pool),
            self.plan.settings.features(),
        )
    }

    pub(crate) fn features_by_place(&self, batch: &TextBatch, pool: &mut BufferPool) -> Vec<f32> {
        self.forward(batch, None, pool).features
    }

    /// The training head's probabilities of the classes for some texts, one row after the other, in
    /// the order given.
    pub(crate) fn probabilities(&self, texts: &[&[u32]], pool: &mut BufferPool) -> Vec<f32> {
        let features = self.features(texts, pool);
        let mut logits = apply_linear(&self.plan.head, self.parameters, &features, texts.len());
        logits
            .chunks_exact_mut(self.plan.head.output)
            .for_each(softmax);
        logits
    }

    /// Adds the gradient of the loss over a share of a minibatch to `gradient`, in as many runs as
    /// memory asks for.
    pub(crate) fn learn(
        &self,
        lesson: &BatchShare<'_>,
        gradient: &mut [f32],
        pool: &mut BufferPool,
    ) -> ShareScore {
        let mut total = ShareScore::default();
        for run in lesson.runs(self.plan) {
            let scores = self.learn_run(&run.on_device(), gradient, pool);
            total.add(&ShareScore::of(&run.aims, &scores));
        }
        total
    }

    pub(crate) fn learn_run(
        &self,
        run: &DeviceRun<'_>,
        gradient: &mut [f32],
        pool: &mut BufferPool,
    ) -> Vec<TextScore> {
        let plan = self.plan;
        let DeviceRun { batch, masks, aims } = *run;
        let packed = &batch.packed;
        let samples = packed.samples();
        let pass = self.forward(batch, Some(masks), pool);
        let mut read = pass.features.clone();
        if let Some(mask) = &masks.head {
            read.iter_mut()
                .zip(&mask.factors)
                .for_each(|(value, factor)| *value *= factor);
        }
        let mut logits = apply_linear(&plan.head, self.parameters, &read, samples);
        let scores = cross_entropy(&mut logits, aims);
        let mut back = linear_backward(
            &plan.head,
            self.parameters,
            &read,
            &logits,
            samples,
            gradient,
        );
        if let Some(mask) = &masks.head {
            back.iter_mut()
                .zip(&mask.factors)
                .for_each(|(value, factor)| *value *= factor);
        }
        if let Some(linear) = &plan.projection {
            for (slope, value) in back.iter_mut().zip(&pass.features) {
                *slope *= match plan.settings.squash {
                    Squash::Tanh => 1.0 - value * value,
                    Squash::Relu => (*value > 0.0) as u8 as f32,
                };
            }
            back = linear_backward(
                linear,
                self.parameters,
                &pass.pooled,
                &back,
                samples,
                gradient,
            );
        }
        let back = pooling::backward(plan.settings, &back, &pass.chosen, packed, pool);
        self.backward(batch, pass.layers, masks, back, gradient, pool);
        scores
    }

    /// From the gradient of the last layer's output to those of all layers and the word vectors.
    fn backward(
        &self,
        batch: &TextBatch,
        layers: Vec<LayerTrace>,
        masks: &DropoutMasks,
        mut back: Vec<f32>,
        gradient: &mut [f32],
        pool: &mut BufferPool,
    ) {
        let plan = self.plan;
        let packed = &batch.packed;
        let lanes = plan.settings.lanes();
        for (at, trace) in layers.into_iter().enumerate().rev() {
            let layer = &plan.layers[at];
            let mut through = None;
            let mask = masks.layers.get(at);
            if layer.residual && mask.is_some() {
                let mut copy = pool.take(back.len());
                copy.copy_from_slice(&back);
                through = Some(copy);
            }
            if let Some(mask) = mask {
                mask.apply(&mut back, packed);
            }
            // Frozen word vectors have no gradient to add to.
            let wanted = at > 0 || plan.table.is_some();
            let mut input = pool.zeros(if wanted {
                layer.input * packed.columns()
            } else {
                0
            });
            for (way, (lstm, lstm_trace)) in layer.directions.iter().zip(trace.lstms).enumerate() {
                let block = OutputBlock {
                    height: lanes,
                    first: way * lstm.hidden,
                };
                let wish = wanted.then_some(&mut input[..]);
                let task = LstmBackward {
                    parameters: self.parameters,
                    x: &trace.x,
                    packed,
                    trace: lstm_trace,
                    output_gradient: &back,
                    lanes: block,
                };
                lstm.backward(task, gradient, wish, pool);
            }
            pool.give(trace.x);
            if !wanted {
                pool.give(back);
                return;
            }
            if let (Some((gain, shift)), Some(norm_trace)) = (&layer.norm, trace.norm) {
                let scale = &self.parameters[gain.clone()];
                let (low, high) = gradient.split_at_mut(shift.start);
                norm::backward(
                    &norm_trace,
                    scale,
                    &mut input,
                    &mut low[gain.clone()],
                    &mut high[..shift.len()],
                );
                norm_trace.release(pool);
            }
            if layer.residual {
                let through = through.as_ref().unwrap_or(&back);
                input
                    .iter_mut()
                    .zip(through)
                    .for_each(|(sum, value)| *sum += value);
            }
            through.into_iter().for_each(|copy| pool.give(copy));
            pool.give(std::mem::replace(&mut back, input));
        }
        if let Some(table) = &plan.table {
            if let Some(mask) = &masks.words {
                mask.apply(&mut back, packed);
            }
            let width = plan.word_width;
            let table = &mut gradient[table.clone()];
            for (column, &id) in batch.ids.iter().enumerate() {
                let row = &mut table[id as usize * width..(id as usize + 1) * width];
                add_columns(row, &back[column * width..(column + 1) * width]);
            }
        }
        pool.give(back);
    }
}

/// W x + b for every column.
pub(crate) fn apply_linear(
    linear: &LinearPlace,
    parameters: &[f32],
    x: &[f32],
    columns: usize,
) -> Vec<f32> {
    let bias = &parameters[linear.bias.clone()];
    let mut out = Vec::with_capacity(linear.output * columns);
    (0..columns).for_each(|_| out.extend_from_slice(bias));
    let weight = view(
        &parameters[linear.weight.clone()],
        linear.output,
        linear.input,
    );
    let result = view_mut(&mut out, linear.output, columns);
    multiply(result, Accum::Add, weight, view(x, linear.input, columns));
    out
}

/// Adds the gradients of weight and bias, and returns that of the input.
fn linear_backward(
    linear: &LinearPlace,
    parameters: &[f32],
    x: &[f32],
    back: &[f32],
    columns: usize,
    gradient: &mut [f32],
) -> Vec<f32> {
    let back = &back[..linear.output * columns];
    let slopes = view(back, linear.output, columns);
    let out = view_mut(
        &mut gradient[linear.weight.clone()],
        linear.output,
        linear.input,
    );
    multiply(
        out,
        Accum::Add,
        slopes,
        view(x, linear.input, columns).transpose(),
    );
    add_columns(&mut gradient[linear.bias.clone()], back);
    let weight = view(
        &parameters[linear.weight.clone()],
        linear.output,
        linear.input,
    );
    let mut input = vec![0.0; linear.input * columns];
    multiply(
        view_mut(&mut input, linear.input, columns),
        Accum::Replace,
        weight.transpose(),
        slopes,
    );
    input
}

/// The scores of some texts, with the logits replaced by the gradient of what is minimised.
pub(crate) fn cross_entropy(logits: &mut [f32], aims: &[TextAim<'_>]) -> Vec<TextScore> {
    let classes = logits.len() / aims.len().max(1);
    let lines = logits.chunks_exact_mut(classes.max(1)).zip(aims);
    let scores = lines.map(|(line, aim)| {
        let largest = line.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = line
            .iter()
            .map(|&value| f64::from(value - largest).exp())
            .sum();
        let loss = f64::from(aim.share) * (total.ln() - f64::from(line[aim.class] - largest));
        let beats = |(c, value): (usize, &f32)| c == aim.class || *value < line[aim.class];
        let hit = line.iter().enumerate().all(beats);
        for (c, value) in line.iter_mut().enumerate() {
            let probability = (f64::from(*value - largest).exp() / total) as f32;
            *value = aim.slope(c, probability);
        }
        TextScore { loss, hit }
    });
    scores.collect()
}

/// Scores become probabilities.
fn softmax(line: &mut [f32]) {
    let largest = line.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = line
        .iter()
        .map(|&value| f64::from(value - largest).exp())
        .sum();
    line.iter_mut()
        .for_each(|value| *value = (f64::from(*value - largest).exp() / total) as f32);
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
