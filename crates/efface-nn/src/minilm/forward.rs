//! The forward pass over one batch of packed texts.
//!
//! Activations are rows, a token each; faer sees them as matrices with a column per token,
//! contiguous in memory, and weights stored [inputs, outputs] as matrices of outputs × inputs in
//! columns. One product serves all tokens of the batch. Attention alone goes text by text and head
//! by head.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::config::MiniLmConfig;
use super::kernels::{
    add_bias, add_norm, bias_gelu, layer_norm, mean, scale_to_unit_length, softmax,
};
use super::weights::{MiniLmLayer, MiniLmLinear, MiniLmWeights};

/// Buffers that batches share, so that memory is asked for once.
#[derive(Default)]
pub(super) struct EncodingBuffers {
    /// A token's vector between halves of a layer: [tokens, hidden].
    x: Vec<f32>,
    /// The result of a half: [tokens, hidden].
    y: Vec<f32>,
    /// Query, key and value: [tokens, 3·hidden].
    qkv: Vec<f32>,
    /// What the heads read: [tokens, hidden].
    context: Vec<f32>,
    /// Attention weights of one head: [queries, keys].
    scores: Vec<f32>,
    /// The middle of the feed-forward block: [tokens, intermediate].
    middle: Vec<f32>,
    /// A row per text.
    out: Vec<f32>,
}

/// Encodes texts of at least one token each, which must be within the vocabulary and the positions.
pub(super) fn run<'s>(
    config: &MiniLmConfig,
    weights: &MiniLmWeights,
    unit_length: bool,
    texts: &[&[u32]],
    scratch: &'s mut EncodingBuffers,
) -> &'s [f32] {
    let hidden = config.hidden_size;
    let epsilon = config.layer_norm_eps;
    let tokens: usize = texts.iter().map(|text| text.len()).sum();
    let s = scratch;
    s.x.resize(tokens * hidden, 0.0);
    s.y.resize(tokens * hidden, 0.0);
    s.qkv.resize(tokens * 3 * hidden, 0.0);
    s.context.resize(tokens * hidden, 0.0);
    s.middle.resize(tokens * config.intermediate_size, 0.0);
    s.out.resize(texts.len() * hidden, 0.0);

    embed(weights, texts, hidden, &mut s.x);
    layer_norm(&mut s.x, &weights.norm.scale, &weights.norm.shift, epsilon);
    for layer in &weights.layers {
        product(&layer.query_key_value, &s.x, &mut s.qkv);
        add_bias(&mut s.qkv, &layer.query_key_value.bias);
        for range in ranges(texts) {
            attend(config, &s.qkv, range, &mut s.scores, &mut s.context);
        }
        product(&layer.attention, &s.context, &mut s.y);
        let MiniLmLayer {
            attention,
            attention_norm: norm,
            ..
        } = layer;
        add_norm(
            &mut s.y,
            &s.x,
            &attention.bias,
            &norm.scale,
            &norm.shift,
            epsilon,
        );

        product(&layer.widen, &s.y, &mut s.middle);
        bias_gelu(&mut s.middle, &layer.widen.bias);
        product(&layer.narrow, &s.middle, &mut s.x);
        let MiniLmLayer { narrow, norm, .. } = layer;
        add_norm(
            &mut s.x,
            &s.y,
            &narrow.bias,
            &norm.scale,
            &norm.shift,
            epsilon,
        );
    }
    for (range, out) in ranges(texts).zip(s.out.chunks_exact_mut(hidden)) {
        mean(&s.x[range.start * hidden..range.end * hidden], out);
        if unit_length {
            scale_to_unit_length(out);
        }
    }
    &s.out
}

/// Where each text's tokens lie in the batch.
fn ranges(texts: &[&[u32]]) -> impl Iterator<Item = Range<usize>> {
    texts.iter().scan(0, |end, text| {
        let start = *end;
        *end += text.len();
        Some(start..*end)
    })
}

fn embed(weights: &MiniLmWeights, texts: &[&[u32]], hidden: usize, out: &mut [f32]) {
    let places = texts
        .iter()
        .flat_map(|text| text.iter().zip(weights.positions.chunks_exact(hidden)));
    for ((&token, position), out) in places.zip(out.chunks_exact_mut(hidden)) {
        let word = &weights.words[token as usize * hidden..][..hidden];
        for ((o, w), p) in out.iter_mut().zip(word).zip(position) {
            *o = w + p;
        }
    }
}

/// `out = x · W`, without the bias: whatever follows adds it on its own pass.
fn product(linear: &MiniLmLinear, x: &[f32], out: &mut [f32]) {
    let outputs = linear.bias.len();
    let inputs = linear.weight.len() / outputs;
    let tokens = x.len() / inputs;
    matmul(
        MatMut::from_column_major_slice_mut(out, outputs, tokens),
        Accum::Replace,
        MatRef::from_column_major_slice(&linear.weight, outputs, inputs),
        MatRef::from_column_major_slice(x, inputs, tokens),
        1.0,
        Par::Seq,
    );
}

/// softmax(QKᵀ/√w)·V for each head of one text.
fn attend(
    config: &MiniLmConfig,
    qkv: &[f32],
    text: Range<usize>,
    scores: &mut Vec<f32>,
    context: &mut [f32],
) {
    let hidden = config.hidden_size;
    let width = config.head_width();
    let length = text.len();
    let scale = 1.0 / (width as f32).sqrt();
    scores.resize(length * length, 0.0);
    let qkv = &qkv[text.start * 3 * hidden..text.end * 3 * hidden];
    let qkv = MatRef::from_column_major_slice(qkv, 3 * hidden, length);
    let context = &mut context[text.start * hidden..text.end * hidden];
    let mut context = MatMut::from_column_major_slice_mut(context, hidden, length);
    for head in 0..config.num_attention_heads {
        let query = qkv.subrows(head * width, width);
        let key = qkv.subrows(hidden + head * width, width);
        let value = qkv.subrows(2 * hidden + head * width, width);
        let mut weights = MatMut::from_column_major_slice_mut(scores, length, length);
        matmul(
            weights.as_mut(),
            Accum::Replace,
            key.transpose(),
            query,
            scale,
            Par::Seq,
        );
        softmax(scores, length);
        let weights = MatRef::from_column_major_slice(scores, length, length);
        let out = context.as_mut().subrows_mut(head * width, width);
        matmul(out, Accum::Replace, value, weights, 1.0, Par::Seq);
    }
}
