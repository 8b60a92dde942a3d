//! What every network is made of: linear maps, normalisation, and the head that ends it.

use std::borrow::Cow;

use super::error::{OnnxError, OnnxResult};
use super::graph::{ElementType, NodeAttribute, OnnxGraph, OnnxModel, TensorDim};

/// How the weights of a linear map lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightOrder {
    /// A row per output, as PyTorch stores it.
    OutputsInputs,
    /// A row per input.
    InputsOutputs,
}

/// x ↦ xW + b.
#[derive(Debug, Clone, Copy)]
pub struct OnnxLinear<'a> {
    /// inputs × outputs numbers in the given order.
    pub weight: &'a [f32],
    /// A number per output.
    pub bias: &'a [f32],
    /// Width of x.
    pub inputs: usize,
    /// Width of the result.
    pub outputs: usize,
    /// The order of the weights.
    pub order: WeightOrder,
}

/// Layer normalisation over the last axis.
#[derive(Debug, Clone, Copy)]
pub struct OnnxNorm<'a> {
    /// Factors.
    pub scale: &'a [f32],
    /// What is added after them.
    pub shift: &'a [f32],
    /// What is added to the variance.
    pub epsilon: f32,
}

/// What becomes of the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnnxActivation {
    /// They stay as they are.
    None,
    /// Probabilities that sum to 1.
    Softmax,
    /// A probability each.
    Sigmoid,
    /// A rate each.
    Exp,
}

/// A linear map of the features and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct OnnxHead<'a> {
    /// From features to scores.
    pub linear: OnnxLinear<'a>,
    /// What follows.
    pub activation: OnnxActivation,
}

impl OnnxHead<'_> {
    /// The head alone, from `features` to `scores`.
    pub fn model(&self) -> OnnxResult<OnnxModel> {
        self.labelled(&[])
    }

    /// The same, and to the `label` of these classes that has the largest score, or, of two that
    /// share one score, to the second where it is above 0.
    pub fn labelled(&self, classes: &[String]) -> OnnxResult<OnnxModel> {
        let mut graph = OnnxGraph::new("head");
        graph.input(
            "features",
            ElementType::Float,
            &[
                TensorDim::Named("batch"),
                TensorDim::Fixed(self.linear.inputs),
            ],
        )?;
        self.add(&mut graph, self.linear.inputs)?;
        add_labels(&mut graph, self.linear.outputs, classes)?;
        Ok(graph.finish())
    }

    /// Adds the head after `features` of this width.
    pub(super) fn add(&self, graph: &mut OnnxGraph, width: usize) -> OnnxResult<()> {
        let scores = self.linear.add(graph, "head", "features", width)?;
        self.activation.add(graph, &scores, self.linear.outputs)
    }
}

impl OnnxActivation {
    /// Adds what becomes of `scores`, so many of them, as the output of the graph.
    fn add(self, graph: &mut OnnxGraph, scores: &str, outputs: usize) -> OnnxResult<()> {
        let axis = [("axis", NodeAttribute::Int(-1))];
        match self {
            Self::None => graph.named("Identity", &[scores], &[], &["scores"])?,
            Self::Softmax => graph.named("Softmax", &[scores], &axis, &["scores"])?,
            Self::Sigmoid => graph.named("Sigmoid", &[scores], &[], &["scores"])?,
            Self::Exp => graph.named("Exp", &[scores], &[], &["scores"])?,
        }
        let shape = [TensorDim::Named("batch"), TensorDim::Fixed(outputs)];
        graph.output("scores", ElementType::Float, &shape)
    }
}

/// Adds the class that `scores` speak for as a second output; nothing without classes.
fn add_labels(graph: &mut OnnxGraph, outputs: usize, classes: &[String]) -> OnnxResult<()> {
    if classes.is_empty() {
        return Ok(());
    }
    if classes.len() != outputs.max(2) {
        let shape = vec![outputs.max(2)];
        return Err(OnnxError::Shape {
            name: "classes".into(),
            found: classes.len(),
            shape,
        });
    }
    let names = graph.texts("classes", classes)?;
    let place = if outputs == 1 {
        let zero = graph.weights("head.zero", &[1], &[0.0])?;
        let column = graph.numbers("head.column", &[1], &[1])?;
        let above = graph.node("Greater", &["scores", &zero], &[])?;
        let number = graph.node(
            "Cast",
            &[&above],
            &[("to", NodeAttribute::Int(ElementType::Int64.code()))],
        )?;
        graph.node("Squeeze", &[&number, &column], &[])?
    } else {
        let settings = [
            ("axis", NodeAttribute::Int(-1)),
            ("keepdims", NodeAttribute::Int(0)),
        ];
        graph.node("ArgMax", &["scores"], &settings)?
    };
    graph.named("Gather", &[&names, &place], &[], &["label"])?;
    graph.output("label", ElementType::Text, &[TensorDim::Named("batch")])
}

/// Scores that are quadratic in the features: z²S + zW + b with z = x − centre, as normal densities
/// are.
#[derive(Debug, Clone, Copy)]
pub struct OnnxQuadratic<'a> {
    /// What features are measured from.
    pub centre: &'a [f32],
    /// S, a row per input.
    pub squares: &'a [f32],
    /// W and b.
    pub linear: OnnxLinear<'a>,
    /// What follows.
    pub activation: OnnxActivation,
}

impl OnnxQuadratic<'_> {
    /// The whole of it, from `features` to `scores` and to the `label` of these classes that has
    /// the largest score.
    pub fn labelled(&self, classes: &[String]) -> OnnxResult<OnnxModel> {
        let OnnxLinear {
            inputs, outputs, ..
        } = self.linear;
        let mut graph = OnnxGraph::new("head");
        graph.input(
            "features",
            ElementType::Float,
            &[TensorDim::Named("batch"), TensorDim::Fixed(inputs)],
        )?;
        let centre = graph.weights("head.centre", &[inputs], self.centre)?;
        let squares = graph.weights("head.squares", &[inputs, outputs], self.squares)?;
        let z = graph.node("Sub", &["features", &centre], &[])?;
        let square = graph.node("Mul", &[&z, &z], &[])?;
        let square = graph.node("MatMul", &[&square, &squares], &[])?;
        let linear = self.linear.add(&mut graph, "head", &z, inputs)?;
        let scores = graph.node("Add", &[&square, &linear], &[])?;
        self.activation.add(&mut graph, &scores, outputs)?;
        add_labels(&mut graph, outputs, classes)?;
        Ok(graph.finish())
    }
}

impl OnnxLinear<'_> {
    /// Adds the map of `x`, which is `width` wide.
    pub(super) fn add(
        &self,
        graph: &mut OnnxGraph,
        name: &str,
        x: &str,
        width: usize,
    ) -> OnnxResult<String> {
        if self.inputs != width {
            return Err(OnnxError::Width {
                name: name.to_owned(),
                found: self.inputs,
                expected: width,
            });
        }
        let shape = [self.inputs, self.outputs];
        let values = match self.order {
            // A wrong length is reported by the graph, which sees the untouched values then.
            WeightOrder::OutputsInputs
                if self.inputs.checked_mul(self.outputs) == Some(self.weight.len()) =>
            {
                Cow::Owned(transpose(self.weight, self.inputs))
            }
            _ => Cow::Borrowed(self.weight),
        };
        let weight = graph.weights(&format!("{name}.weight"), &shape, &values)?;
        let bias = graph.weights(&format!("{name}.bias"), &[self.outputs], self.bias)?;
        let product = graph.node("MatMul", &[x, &weight], &[])?;
        graph.node("Add", &[&product, &bias], &[])
    }
}

/// Turns rows of `columns` numbers into columns.
pub(super) fn transpose(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns)
        .flat_map(|column| values.iter().skip(column).step_by(columns).copied())
        .collect()
}

impl OnnxNorm<'_> {
    /// Adds the normalisation of `x`, which is `width` wide.
    pub(super) fn add(
        &self,
        graph: &mut OnnxGraph,
        name: &str,
        x: &str,
        width: usize,
    ) -> OnnxResult<String> {
        let scale = graph.weights(&format!("{name}.scale"), &[width], self.scale)?;
        let shift = graph.weights(&format!("{name}.shift"), &[width], self.shift)?;
        let settings = [
            ("axis", NodeAttribute::Int(-1)),
            ("epsilon", NodeAttribute::Float(self.epsilon)),
        ];
        graph.node("LayerNormalization", &[x, &scale, &shift], &settings)
    }
}
