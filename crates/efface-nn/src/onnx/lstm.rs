//! Texts through LSTM layers: embedding, layers one after another, pooling over the tokens that are
//! there, a projection, head.
//!
//! A layer gives norm_after(lstm(norm_before(x)) + x), each part but the LSTM optional; a
//! bidirectional one puts the two directions side by side, forward first. Padding takes no part:
//! the LSTM stops at a text's length, and so does pooling.

use std::borrow::Cow;

use super::error::{OnnxError, OnnxResult};
use super::graph::{ElementType, NodeAttribute, OnnxGraph, OnnxModel, TensorDim};
use super::head::{OnnxHead, OnnxLinear, OnnxNorm, WeightOrder, transpose};

/// Where ONNX's gates i, o, f, c stand in the order i, f, g, o.
const GATES: [usize; 4] = [0, 3, 1, 2];

/// One direction of an LSTM layer, gates in the order i, f, g, o.
#[derive(Debug, Clone, Copy)]
pub struct OnnxLstm<'a> {
    /// Width of a step's input.
    pub inputs: usize,
    /// Width of the state.
    pub hidden: usize,
    /// [4·hidden, inputs], or turned as the order says.
    pub input_weight: &'a [f32],
    /// [4·hidden, hidden], likewise.
    pub recurrent_weight: &'a [f32],
    /// The order of both; a gate's number is an output.
    pub order: WeightOrder,
    /// [4·hidden].
    pub bias: &'a [f32],
    /// [4·hidden], where there is a second one as in PyTorch; added to the first.
    pub recurrent_bias: Option<&'a [f32]>,
}

/// A layer of one or two directions.
#[derive(Debug, Clone, Copy)]
pub struct LstmLayer<'a> {
    /// Normalisation of what goes in.
    pub norm_before: Option<OnnxNorm<'a>>,
    /// The direction that reads from the first token.
    pub forward: OnnxLstm<'a>,
    /// The one that reads from the last.
    pub backward: Option<OnnxLstm<'a>>,
    /// Whether the layer's input (before its normalisation) is added to its output.
    pub residual: bool,
    /// Normalisation of what comes out, after that sum.
    pub norm_after: Option<OnnxNorm<'a>>,
}

impl LstmLayer<'_> {
    fn directions(&self) -> Vec<&OnnxLstm<'_>> {
        std::iter::once(&self.forward)
            .chain(&self.backward)
            .collect()
    }
}

/// How the outputs at a text's tokens become its features. A text of no tokens gives zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnnxPooling {
    /// Their mean.
    Mean,
    /// Their largest, number by number.
    Max,
    /// Where each direction ends: the last token for the forward half, the first for the backward
    /// half.
    Last,
}

/// What follows a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnnxSquash {
    /// tanh.
    Tanh,
    /// max(0, x).
    Relu,
}

/// A linear map from the pooled vector to the features.
#[derive(Debug, Clone, Copy)]
pub struct OnnxProjection<'a> {
    /// The map.
    pub linear: OnnxLinear<'a>,
    /// What follows it.
    pub squash: OnnxSquash,
}

/// The whole network.
#[derive(Debug, Clone)]
pub struct TextLstm<'a> {
    /// [vocabulary, width].
    pub embedding: &'a [f32],
    /// Tokens that have a vector.
    pub vocabulary: usize,
    /// Width of a vector.
    pub width: usize,
    /// At least one layer.
    pub layers: Vec<LstmLayer<'a>>,
    /// How tokens become one vector.
    pub pooling: OnnxPooling,
    /// What turns the pooled vector into the features, unless it is the features.
    pub projection: Option<OnnxProjection<'a>>,
    /// The head, if there is one.
    pub head: Option<OnnxHead<'a>>,
}

impl TextLstm<'_> {
    /// From `tokens` [batch, time] and `lengths` (batch) to `features` and `scores`. Tokens past a
    /// text's length may be any within the vocabulary.
    pub fn model(&self) -> OnnxResult<OnnxModel> {
        let Some(last) = self.layers.last() else {
            return Err(OnnxError::Count {
                name: "layers".into(),
                found: 0,
                range: "at least 1".into(),
            });
        };
        let mut graph = OnnxGraph::new("lstm");
        let g = &mut graph;
        g.input(
            "tokens",
            ElementType::Int64,
            &[TensorDim::Named("batch"), TensorDim::Named("time")],
        )?;
        g.input("lengths", ElementType::Int64, &[TensorDim::Named("batch")])?;
        let embedding = g.weights("embedding", &[self.vocabulary, self.width], self.embedding)?;
        let vectors = g.node(
            "Gather",
            &[&embedding, "tokens"],
            &[("axis", NodeAttribute::Int(0))],
        )?;
        let mut x = g.node(
            "Transpose",
            &[&vectors],
            &[("perm", NodeAttribute::Ints(&[1, 0, 2]))],
        )?;
        let lengths = g.node("Cast", &["lengths"], &[("to", NodeAttribute::Int(6))])?;
        // [time, batch, directions, hidden] to [time, batch, both side by side].
        g.numbers("side_by_side", &[3], &[0, 0, -1])?;
        let mut width = self.width;
        for (number, layer) in self.layers.iter().enumerate() {
            (x, width) = add_layer(g, &format!("layer.{number}"), layer, &x, width, &lengths)?;
        }
        let pooled = if self.projection.is_some() {
            "pooled"
        } else {
            "features"
        };
        pool(g, self.pooling, &x, width, last.backward.is_some(), pooled)?;
        if let Some(OnnxProjection { linear, squash }) = &self.projection {
            let y = linear.add(g, "projection", pooled, width)?;
            let op = if *squash == OnnxSquash::Tanh {
                "Tanh"
            } else {
                "Relu"
            };
            g.named(op, &[&y], &[], &["features"])?;
            width = linear.outputs;
        }
        g.output(
            "features",
            ElementType::Float,
            &[TensorDim::Named("batch"), TensorDim::Fixed(width)],
        )?;
        if let Some(head) = &self.head {
            head.add(g, width)?;
        }
        Ok(graph.finish())
    }
}

/// Adds a layer after `x` of [time, batch, width]; gives back its output and how wide that is.
fn add_layer(
    g: &mut OnnxGraph,
    name: &str,
    layer: &LstmLayer<'_>,
    x: &str,
    width: usize,
    lengths: &str,
) -> OnnxResult<(String, usize)> {
    let before = match &layer.norm_before {
        Some(norm) => norm.add(g, &format!("{name}.norm_before"), x, width)?,
        None => x.to_owned(),
    };
    let directions = layer.directions();
    let hidden = layer.forward.hidden;
    let mut w = Vec::new();
    let mut r = Vec::new();
    let mut b = Vec::new();
    for (direction, lstm) in directions.iter().enumerate() {
        let name = format!("{name}.{}", ["forward", "backward"][direction]);
        lstm.check(&name, width, hidden)?;
        w.extend(gates(&lstm.by_gate(lstm.input_weight)));
        r.extend(gates(&lstm.by_gate(lstm.recurrent_weight)));
        b.extend(gates(lstm.bias));
        match lstm.recurrent_bias {
            Some(bias) => b.extend(gates(bias)),
            None => b.resize(b.len() + 4 * hidden, 0.0),
        }
    }
    let count = directions.len();
    let w = g.weights(
        &format!("{name}.input_weight"),
        &[count, 4 * hidden, width],
        &w,
    )?;
    let r = g.weights(
        &format!("{name}.recurrent_weight"),
        &[count, 4 * hidden, hidden],
        &r,
    )?;
    let b = g.weights(&format!("{name}.bias"), &[count, 8 * hidden], &b)?;
    let direction = if count == 2 {
        "bidirectional"
    } else {
        "forward"
    };
    let settings = [
        ("hidden_size", NodeAttribute::Int(hidden as i64)),
        ("direction", NodeAttribute::Text(direction)),
    ];
    let y = g.node("LSTM", &[&before, &w, &r, &b, lengths], &settings)?;
    let y = g.node(
        "Transpose",
        &[&y],
        &[("perm", NodeAttribute::Ints(&[0, 2, 1, 3]))],
    )?;
    let mut y = g.node("Reshape", &[&y, "side_by_side"], &[])?;
    let outputs = count * hidden;
    if layer.residual {
        if outputs != width {
            return Err(OnnxError::Residual {
                name: name.to_owned(),
                inputs: width,
                outputs,
            });
        }
        y = g.node("Add", &[&y, x], &[])?;
    }
    if let Some(norm) = &layer.norm_after {
        y = norm.add(g, &format!("{name}.norm_after"), &y, outputs)?;
    }
    Ok((y, outputs))
}

impl OnnxLstm<'_> {
    /// The weights as [4·hidden, …].
    fn by_gate<'v>(&self, values: &'v [f32]) -> Cow<'v, [f32]> {
        match self.order {
            WeightOrder::OutputsInputs => Cow::Borrowed(values),
            WeightOrder::InputsOutputs => Cow::Owned(transpose(values, 4 * self.hidden)),
        }
    }

    fn check(&self, name: &str, width: usize, hidden: usize) -> OnnxResult<()> {
        if self.inputs != width {
            return Err(OnnxError::Width {
                name: name.to_owned(),
                found: self.inputs,
                expected: width,
            });
        }
        if self.hidden != hidden || hidden == 0 {
            let range = format!("{}, as in the other direction, and not 0", hidden.max(1));
            return Err(OnnxError::Count {
                name: format!("{name}.hidden"),
                found: self.hidden,
                range,
            });
        }
        for (part, values, columns) in [
            ("input_weight", self.input_weight, width),
            ("recurrent_weight", self.recurrent_weight, hidden),
            ("bias", self.bias, 1),
            (
                "recurrent_bias",
                self.recurrent_bias.unwrap_or(self.bias),
                1,
            ),
        ] {
            if hidden
                .checked_mul(4)
                .and_then(|rows| rows.checked_mul(columns))
                != Some(values.len())
            {
                let shape = if columns == 1 {
                    vec![4 * hidden]
                } else {
                    vec![4 * hidden, columns]
                };
                return Err(OnnxError::Shape {
                    name: format!("{name}.{part}"),
                    found: values.len(),
                    shape,
                });
            }
        }
        Ok(())
    }
}

/// The four blocks of rows in ONNX's order.
fn gates(values: &[f32]) -> impl Iterator<Item = f32> {
    let block = values.len() / 4;
    GATES
        .into_iter()
        .flat_map(move |gate| values[gate * block..(gate + 1) * block].iter().copied())
}

/// Adds the pooling of `x`, [time, batch, width], under the name `out`.
fn pool(
    g: &mut OnnxGraph,
    pooling: OnnxPooling,
    x: &str,
    width: usize,
    both: bool,
    out: &str,
) -> OnnxResult<()> {
    g.numbers("zero", &[], &[0])?;
    g.numbers("one", &[], &[1])?;
    g.numbers("axis_0", &[1], &[0])?;
    g.numbers("axis_1", &[1], &[1])?;
    g.numbers("axis_2", &[1], &[2])?;
    g.weights("nothing", &[], &[0.0])?;
    // A step's number against a text's length, [time, 1] and [batch], says which tokens are there.
    let shape = g.node("Shape", &["tokens"], &[])?;
    let time = g.node(
        "Gather",
        &[&shape, "one"],
        &[("axis", NodeAttribute::Int(0))],
    )?;
    let steps = g.node("Range", &["zero", &time, "one"], &[])?;
    let steps = g.node("Unsqueeze", &[&steps, "axis_1"], &[])?;
    match pooling {
        OnnxPooling::Mean => {
            let mask = g.node("Less", &[&steps, "lengths"], &[])?;
            let total = masked_sum(g, x, &mask)?;
            let count = g.node("Max", &["lengths", "one"], &[])?;
            let count = g.node("Cast", &[&count], &[("to", NodeAttribute::Int(1))])?;
            let count = g.node("Unsqueeze", &[&count, "axis_1"], &[])?;
            g.named("Div", &[&total, &count], &[], &[out])
        }
        OnnxPooling::Max => {
            let mask = g.node("Less", &[&steps, "lengths"], &[])?;
            let mask = g.node("Unsqueeze", &[&mask, "axis_2"], &[])?;
            g.weights("least", &[], &[f32::MIN])?;
            let kept = g.node("Where", &[&mask, x, "least"], &[])?;
            let axes = [
                ("axes", NodeAttribute::Ints(&[0])),
                ("keepdims", NodeAttribute::Int(0)),
            ];
            let most = g.node("ReduceMax", &[&kept], &axes)?;
            let any = g.node("Greater", &["lengths", "zero"], &[])?;
            let any = g.node("Unsqueeze", &[&any, "axis_1"], &[])?;
            g.named("Where", &[&any, &most, "nothing"], &[], &[out])
        }
        OnnxPooling::Last => {
            let last = g.node("Sub", &["lengths", "one"], &[])?;
            let mask = g.node("Equal", &[&steps, &last], &[])?;
            if !both {
                let end = masked_sum(g, x, &mask)?;
                return g.named("Identity", &[&end], &[], &[out]);
            }
            // The first token is there only if any is.
            let first = g.node("Equal", &[&steps, "zero"], &[])?;
            let there = g.node("Less", &[&steps, "lengths"], &[])?;
            let first = g.node("And", &[&first, &there], &[])?;
            let half = width as i64 / 2;
            let split = g.numbers("halves", &[2], &[half, half])?;
            let axis = [("axis", NodeAttribute::Int(2))];
            g.named(
                "Split",
                &[x, &split],
                &axis,
                &["forward_half", "backward_half"],
            )?;
            let ahead = masked_sum(g, "forward_half", &mask)?;
            let back = masked_sum(g, "backward_half", &first)?;
            g.named(
                "Concat",
                &[&ahead, &back],
                &[("axis", NodeAttribute::Int(1))],
                &[out],
            )
        }
    }
}

/// The sum over time of `x` where the mask of [time, batch] holds. `Where` rather than a product,
/// so that nothing in the padding can get through.
fn masked_sum(g: &mut OnnxGraph, x: &str, mask: &str) -> OnnxResult<String> {
    let mask = g.node("Unsqueeze", &[mask, "axis_2"], &[])?;
    let kept = g.node("Where", &[&mask, x, "nothing"], &[])?;
    g.node(
        "ReduceSum",
        &[&kept, "axis_0"],
        &[("keepdims", NodeAttribute::Int(0))],
    )
}
