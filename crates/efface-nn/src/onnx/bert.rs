//! A BERT encoder with mean pooling, and a head after it.

use super::error::{OnnxError, OnnxResult};
use super::graph::{ElementType, NodeAttribute, OnnxGraph, OnnxModel, TensorDim};
use super::head::{OnnxHead, OnnxLinear, OnnxNorm};

/// One layer.
#[derive(Debug, Clone, Copy)]
pub struct BertLayer<'a> {
    /// Query, key and value side by side: hidden to 3·hidden.
    pub query_key_value: OnnxLinear<'a>,
    /// What follows the heads: hidden to hidden.
    pub attention: OnnxLinear<'a>,
    /// After attention and the sum with its input.
    pub attention_norm: OnnxNorm<'a>,
    /// Hidden to intermediate, before GELU.
    pub widen: OnnxLinear<'a>,
    /// Intermediate to hidden.
    pub narrow: OnnxLinear<'a>,
    /// After the feed-forward block and the sum with its input.
    pub norm: OnnxNorm<'a>,
}

/// The encoder.
#[derive(Debug, Clone)]
pub struct OnnxBert<'a> {
    /// [vocabulary, hidden].
    pub words: &'a [f32],
    /// [positions, hidden], the vector of the first segment kind added.
    pub positions: &'a [f32],
    /// After the sum of the two.
    pub norm: OnnxNorm<'a>,
    /// The layers.
    pub layers: Vec<BertLayer<'a>>,
    /// Tokens that have a vector.
    pub vocabulary: usize,
    /// Positions that have one.
    pub longest: usize,
    /// Width of a vector.
    pub hidden: usize,
    /// Attention heads, a divisor of the width.
    pub heads: usize,
    /// True if the mean over the tokens is scaled to length 1.
    pub unit_length: bool,
}

impl OnnxBert<'_> {
    /// From `input_ids` and `attention_mask`, both [batch, time], to `features` and, with a
    /// head, `scores`.
    pub fn model(&self, head: Option<&OnnxHead<'_>>) -> OnnxResult<OnnxModel> {
        if self.heads == 0 || !self.hidden.is_multiple_of(self.heads) {
            let range = format!("a divisor of the width, {}", self.hidden);
            return Err(OnnxError::Count {
                name: "heads".into(),
                found: self.heads,
                range,
            });
        }
        let mut graph = OnnxGraph::new("bert");
        let g = &mut graph;
        g.input(
            "input_ids",
            ElementType::Int64,
            &[TensorDim::Named("batch"), TensorDim::Named("time")],
        )?;
        g.input(
            "attention_mask",
            ElementType::Int64,
            &[TensorDim::Named("batch"), TensorDim::Named("time")],
        )?;
        self.constants(g)?;
        let mut x = self.embed(g)?;
        for (number, layer) in self.layers.iter().enumerate() {
            x = self.layer(g, &format!("layer.{number}"), layer, &x)?;
        }
        self.pool(g, &x)?;
        g.output(
            "features",
            ElementType::Float,
            &[TensorDim::Named("batch"), TensorDim::Fixed(self.hidden)],
        )?;
        if let Some(head) = head {
            head.add(g, self.hidden)?;
        }
        Ok(graph.finish())
    }

    /// Small tensors that every layer uses, and the mask in the two forms that are needed.
    fn constants(&self, g: &mut OnnxGraph) -> OnnxResult<()> {
        let heads = self.heads as i64;
        let width = (self.hidden / self.heads) as i64;
        let hidden = self.hidden as i64;
        g.numbers("zero", &[1], &[0])?;
        g.numbers("axis_1", &[1], &[1])?;
        g.numbers("axis_2", &[1], &[2])?;
        g.numbers("axes_12", &[2], &[1, 2])?;
        g.numbers("by_head", &[4], &[0, 0, heads, width])?;
        g.numbers("all_heads", &[3], &[0, 0, hidden])?;
        g.numbers("three", &[3], &[hidden; 3])?;
        g.weights("one", &[], &[1.0])?;
        g.weights("half", &[], &[0.5])?;
        g.weights("root_two", &[], &[std::f32::consts::SQRT_2])?;
        g.weights("scale", &[], &[1.0 / (width as f32).sqrt()])?;
        g.weights("least", &[], &[f32::MIN])?;
        g.weights("tiny", &[], &[1e-12])?;
        let mask = [("to", NodeAttribute::Int(1))];
        g.named("Cast", &["attention_mask"], &mask, &["mask"])?;
        // Zero where a token is, the least number where none is, so that softmax gives it nothing.
        let absent = g.node("Sub", &["one", "mask"], &[])?;
        let absent = g.node("Mul", &[&absent, "least"], &[])?;
        g.named("Unsqueeze", &[&absent, "axes_12"], &[], &["absent"])
    }

    fn embed(&self, g: &mut OnnxGraph) -> OnnxResult<String> {
        let words = g.weights("words", &[self.vocabulary, self.hidden], self.words)?;
        let positions = g.weights("positions", &[self.longest, self.hidden], self.positions)?;
        let words = g.node(
            "Gather",
            &[&words, "input_ids"],
            &[("axis", NodeAttribute::Int(0))],
        )?;
        let shape = g.node("Shape", &["input_ids"], &[])?;
        let time = g.node(
            "Gather",
            &[&shape, "axis_1"],
            &[("axis", NodeAttribute::Int(0))],
        )?;
        let positions = g.node("Slice", &[&positions, "zero", &time, "zero"], &[])?;
        let x = g.node("Add", &[&words, &positions], &[])?;
        self.norm.add(g, "norm", &x, self.hidden)
    }

    fn layer(
        &self,
        g: &mut OnnxGraph,
        name: &str,
        layer: &BertLayer<'_>,
        x: &str,
    ) -> OnnxResult<String> {
        let hidden = self.hidden;
        if layer.query_key_value.outputs != 3 * hidden {
            let found = layer.query_key_value.outputs;
            let range = format!("three times the width, {}", 3 * hidden);
            return Err(OnnxError::Count {
                name: format!("{name}.query_key_value.outputs"),
                found,
                range,
            });
        }
        for (part, found) in [
            ("attention", layer.attention.outputs),
            ("narrow", layer.narrow.outputs),
        ] {
            if found != hidden {
                let range = format!("the width, {hidden}");
                return Err(OnnxError::Count {
                    name: format!("{name}.{part}.outputs"),
                    found,
                    range,
                });
            }
        }
        let context = self.attend(g, name, &layer.query_key_value, x)?;
        let y = layer
            .attention
            .add(g, &format!("{name}.attention"), &context, hidden)?;
        let y = g.node("Add", &[&y, x], &[])?;
        let y = layer
            .attention_norm
            .add(g, &format!("{name}.attention_norm"), &y, hidden)?;

        let middle = layer.widen.add(g, &format!("{name}.widen"), &y, hidden)?;
        let scaled = g.node("Div", &[&middle, "root_two"], &[])?;
        let erf = g.node("Erf", &[&scaled], &[])?;
        let above = g.node("Add", &[&erf, "one"], &[])?;
        let gelu = g.node("Mul", &[&middle, &above], &[])?;
        let gelu = g.node("Mul", &[&gelu, "half"], &[])?;
        let z = layer
            .narrow
            .add(g, &format!("{name}.narrow"), &gelu, layer.widen.outputs)?;
        let z = g.node("Add", &[&z, &y], &[])?;
        layer.norm.add(g, &format!("{name}.norm"), &z, hidden)
    }

    fn attend(
        &self,
        g: &mut OnnxGraph,
        name: &str,
        three: &OnnxLinear<'_>,
        x: &str,
    ) -> OnnxResult<String> {
        let all = three.add(g, &format!("{name}.query_key_value"), x, self.hidden)?;
        let parts = ["query", "key", "value"].map(|part| format!("{name}.{part}"));
        let names = [parts[0].as_str(), &parts[1], &parts[2]];
        g.named(
            "Split",
            &[&all, "three"],
            &[("axis", NodeAttribute::Int(2))],
            &names,
        )?;
        let mut by_head = |part: &str, order: &[i64]| {
            let split = g.node("Reshape", &[part, "by_head"], &[])?;
            g.node(
                "Transpose",
                &[&split],
                &[("perm", NodeAttribute::Ints(order))],
            )
        };
        let query = by_head(names[0], &[0, 2, 1, 3])?;
        let key = by_head(names[1], &[0, 2, 3, 1])?;
        let value = by_head(names[2], &[0, 2, 1, 3])?;
        let scores = g.node("MatMul", &[&query, &key], &[])?;
        let scores = g.node("Mul", &[&scores, "scale"], &[])?;
        let scores = g.node("Add", &[&scores, "absent"], &[])?;
        let weights = g.node("Softmax", &[&scores], &[("axis", NodeAttribute::Int(-1))])?;
        let read = g.node("MatMul", &[&weights, &value], &[])?;
        let read = g.node(
            "Transpose",
            &[&read],
            &[("perm", NodeAttribute::Ints(&[0, 2, 1, 3]))],
        )?;
        g.node("Reshape", &[&read, "all_heads"], &[])
    }

    /// Adds the mean over the tokens that are there, scaled to length 1 where that is asked for.
    fn pool(&self, g: &mut OnnxGraph, x: &str) -> OnnxResult<()> {
        let apart = [("keepdims", NodeAttribute::Int(0))];
        let mask = g.node("Unsqueeze", &["mask", "axis_2"], &[])?;
        let kept = g.node("Mul", &[x, &mask], &[])?;
        let total = g.node("ReduceSum", &[&kept, "axis_1"], &apart)?;
        let count = g.node(
            "ReduceSum",
            &["mask", "axis_1"],
            &[("keepdims", NodeAttribute::Int(1))],
        )?;
        let count = g.node("Max", &[&count, "one"], &[])?;
        if !self.unit_length {
            return g.named("Div", &[&total, &count], &[], &["features"]);
        }
        let mean = g.node("Div", &[&total, &count], &[])?;
        let axes = [
            ("axes", NodeAttribute::Ints(&[1])),
            ("keepdims", NodeAttribute::Int(1)),
        ];
        let length = g.node("ReduceL2", &[&mean], &axes)?;
        let length = g.node("Max", &[&length, "tiny"], &[])?;
        g.named("Div", &[&mean, &length], &[], &["features"])
    }
}
