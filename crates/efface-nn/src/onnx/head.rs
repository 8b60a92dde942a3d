//! What every network is made of: linear maps, normalisation, and the head that ends it.

use std::borrow::Cow;

use super::error::{Error, Result};
use super::graph::{Attribute, Dim, Element, Graph, Model};

/// How the weights of a linear map lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A row per output, as PyTorch stores it.
    OutputsInputs,
    /// A row per input.
    InputsOutputs,
}

/// x ↦ xW + b.
#[derive(Debug, Clone, Copy)]
pub struct Linear<'a> {
    /// inputs × outputs numbers in the given order.
    pub weight: &'a [f32],
    /// A number per output.
    pub bias: &'a [f32],
    /// Width of x.
    pub inputs: usize,
    /// Width of the result.
    pub outputs: usize,
    /// The order of the weights.
    pub order: Order,
}

/// Layer normalisation over the last axis.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// Factors.
    pub scale: &'a [f32],
    /// What is added after them.
    pub shift: &'a [f32],
    /// What is added to the variance.
    pub epsilon: f32,
}

/// What becomes of the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// They stay as they are.
    None,
    /// Probabilities that sum to 1.
    Softmax,
    /// A probability each.
    Sigmoid,
}

/// A linear map of the features and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// From features to scores.
    pub linear: Linear<'a>,
    /// What follows.
    pub activation: Activation,
}

impl Head<'_> {
    /// The head alone, from `features` to `scores`.
    pub fn model(&self) -> Result<Model> {
        let mut graph = Graph::new("head");
        graph.input("features", Element::Float, &[Dim::Named("batch"), Dim::Fixed(self.linear.inputs)])?;
        self.add(&mut graph, self.linear.inputs)?;
        Ok(graph.finish())
    }

    /// Adds the head after `features` of this width.
    pub(super) fn add(&self, graph: &mut Graph, width: usize) -> Result<()> {
        let scores = self.linear.add(graph, "head", "features", width)?;
        let axis = [("axis", Attribute::Int(-1))];
        match self.activation {
            Activation::None => graph.named("Identity", &[&scores], &[], &["scores"])?,
            Activation::Softmax => graph.named("Softmax", &[&scores], &axis, &["scores"])?,
            Activation::Sigmoid => graph.named("Sigmoid", &[&scores], &[], &["scores"])?,
        }
        graph.output("scores", &[Dim::Named("batch"), Dim::Fixed(self.linear.outputs)])
    }
}

impl Linear<'_> {
    /// Adds the map of `x`, which is `width` wide.
    pub(super) fn add(&self, graph: &mut Graph, name: &str, x: &str, width: usize) -> Result<String> {
        if self.inputs != width {
            return Err(Error::Width { name: name.to_owned(), found: self.inputs, expected: width });
        }
        let shape = [self.inputs, self.outputs];
        let values = match self.order {
            // A wrong length is reported by the graph, which sees the untouched values then.
            Order::OutputsInputs if self.inputs.checked_mul(self.outputs) == Some(self.weight.len()) => {
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
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}

impl Norm<'_> {
    /// Adds the normalisation of `x`, which is `width` wide.
    pub(super) fn add(&self, graph: &mut Graph, name: &str, x: &str, width: usize) -> Result<String> {
        let scale = graph.weights(&format!("{name}.scale"), &[width], self.scale)?;
        let shift = graph.weights(&format!("{name}.shift"), &[width], self.shift)?;
        let settings = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(self.epsilon))];
        graph.node("LayerNormalization", &[x, &scale, &shift], &settings)
    }
}
