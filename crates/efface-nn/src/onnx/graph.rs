//! A graph under construction. Every tensor is checked against its shape and every name against
//! those known, so that what is written can be read.

use std::collections::HashSet;
use std::io::Write;

use super::error::{OnnxError, OnnxResult};
use super::proto::{LARGEST, ProtoMessage};

/// The operator set: the first with layer normalisation.
const OPSET: i64 = 17;
/// The file version that belongs to it.
const IR_VERSION: i64 = 8;
const FLOAT: i64 = 1;
const INT64: i64 = 7;
const STRING: i64 = 8;

/// The fields of the format that are written, by message and name.
mod field {
    pub(super) mod model {
        pub(crate) const IR_VERSION: u32 = 1;
        pub(crate) const PRODUCER: u32 = 2;
        pub(crate) const GRAPH: u32 = 7;
        pub(crate) const OPSET: u32 = 8;
        pub(crate) const METADATA: u32 = 14;
    }
    pub(super) mod graph {
        pub(crate) const NODE: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const INITIALIZER: u32 = 5;
        pub(crate) const INPUT: u32 = 11;
        pub(crate) const OUTPUT: u32 = 12;
    }
    pub(super) mod node {
        pub(crate) const INPUT: u32 = 1;
        pub(crate) const OUTPUT: u32 = 2;
        pub(crate) const NAME: u32 = 3;
        pub(crate) const OP_TYPE: u32 = 4;
        pub(crate) const ATTRIBUTE: u32 = 5;
    }
    pub(super) mod attribute {
        pub(crate) const NAME: u32 = 1;
        pub(crate) const FLOAT: u32 = 2;
        pub(crate) const INT: u32 = 3;
        pub(crate) const STRING: u32 = 4;
        pub(crate) const INTS: u32 = 8;
        pub(crate) const TYPE: u32 = 20;
    }
    pub(super) mod tensor {
        pub(crate) const DIMS: u32 = 1;
        pub(crate) const DATA_TYPE: u32 = 2;
        pub(crate) const STRING_DATA: u32 = 6;
        pub(crate) const NAME: u32 = 8;
        pub(crate) const RAW_DATA: u32 = 9;
    }
}

/// A setting of a node.
pub(super) enum NodeAttribute<'a> {
    Float(f32),
    Int(i64),
    Ints(&'a [i64]),
    Text(&'a str),
}

/// A size of an input or output: fixed, or named because it varies.
pub(super) enum TensorDim {
    Fixed(usize),
    Named(&'static str),
}

/// What an input or output holds.
#[derive(Clone, Copy)]
pub(super) enum ElementType {
    Float,
    Int64,
    Text,
}

impl ElementType {
    /// The number that the format has for it.
    pub(super) fn code(self) -> i64 {
        match self {
            Self::Float => FLOAT,
            Self::Int64 => INT64,
            Self::Text => STRING,
        }
    }
}

/// The graph so far.
#[derive(Default)]
pub(super) struct OnnxGraph {
    message: ProtoMessage,
    names: HashSet<String>,
    count: usize,
}

impl OnnxGraph {
    pub(super) fn new(name: &str) -> Self {
        let mut graph = Self::default();
        graph.message.text(field::graph::NAME, name);
        graph
    }

    fn declare(&mut self, name: &str) -> OnnxResult<()> {
        if self.names.insert(name.to_owned()) {
            Ok(())
        } else {
            Err(OnnxError::Duplicate(name.to_owned()))
        }
    }

    /// Adds weights and gives back their name.
    pub(super) fn weights(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[f32],
    ) -> OnnxResult<String> {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(OnnxError::NotFinite {
                name: name.to_owned(),
                at,
            });
        }
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.tensor(name, shape, FLOAT, values.len(), 4, bytes)
    }

    /// Adds whole numbers and gives back their name. An empty shape makes a scalar.
    pub(super) fn numbers(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[i64],
    ) -> OnnxResult<String> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.tensor(name, shape, INT64, values.len(), 8, bytes)
    }

    /// Adds a list of texts and gives back its name.
    pub(super) fn texts(&mut self, name: &str, values: &[String]) -> OnnxResult<String> {
        self.declare(name)?;
        let mut tensor = ProtoMessage::default();
        tensor.int(field::tensor::DIMS, values.len() as i64);
        tensor.int(field::tensor::DATA_TYPE, STRING);
        values
            .iter()
            .for_each(|value| tensor.text(field::tensor::STRING_DATA, value));
        tensor.text(field::tensor::NAME, name);
        self.message.message(field::graph::INITIALIZER, &tensor);
        Ok(name.to_owned())
    }

    fn tensor(
        &mut self,
        name: &str,
        shape: &[usize],
        kind: i64,
        count: usize,
        size: usize,
        bytes: impl Iterator<Item = u8>,
    ) -> OnnxResult<String> {
        let expected = shape
            .iter()
            .try_fold(1usize, |product, &size| product.checked_mul(size));
        if expected != Some(count) {
            return Err(OnnxError::Shape {
                name: name.to_owned(),
                found: count,
                shape: shape.to_vec(),
            });
        }
        if count * size + self.message.bytes().len() > LARGEST {
            return Err(OnnxError::TooLarge);
        }
        self.declare(name)?;
        let mut head = ProtoMessage::default();
        for &size in shape {
            head.int(field::tensor::DIMS, size as i64);
        }
        head.int(field::tensor::DATA_TYPE, kind);
        head.text(field::tensor::NAME, name);
        head.length(field::tensor::RAW_DATA, count * size);
        // The bytes go straight into the graph: weights are the bulk of a file, and one copy of
        // them is enough.
        self.message
            .length(field::graph::INITIALIZER, head.bytes().len() + count * size);
        self.message.append(head.bytes().iter().copied());
        self.message.append(bytes);
        Ok(name.to_owned())
    }

    /// Adds a node with one output and gives back the output's name.
    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        settings: &[(&str, NodeAttribute<'_>)],
    ) -> OnnxResult<String> {
        self.count += 1;
        let output = format!("{op}_{}", self.count);
        self.named(op, inputs, settings, &[&output])?;
        Ok(output)
    }

    /// Adds a node whose outputs have these names. An input named "" is one left out.
    pub(super) fn named(
        &mut self,
        op: &str,
        inputs: &[&str],
        settings: &[(&str, NodeAttribute<'_>)],
        outputs: &[&str],
    ) -> OnnxResult<()> {
        let mut node = ProtoMessage::default();
        for &input in inputs {
            if !input.is_empty() && !self.names.contains(input) {
                return Err(OnnxError::Unknown(input.to_owned()));
            }
            node.text(field::node::INPUT, input);
        }
        for output in outputs {
            self.declare(output)?;
            node.text(field::node::OUTPUT, output);
        }
        node.text(field::node::NAME, outputs[0]);
        node.text(field::node::OP_TYPE, op);
        for (name, value) in settings {
            node.message(field::node::ATTRIBUTE, &attribute(name, value));
        }
        self.message.message(field::graph::NODE, &node);
        Ok(())
    }

    pub(super) fn input(
        &mut self,
        name: &str,
        element: ElementType,
        shape: &[TensorDim],
    ) -> OnnxResult<()> {
        self.declare(name)?;
        self.message
            .message(field::graph::INPUT, &value_info(name, element, shape));
        Ok(())
    }

    pub(super) fn output(
        &mut self,
        name: &str,
        element: ElementType,
        shape: &[TensorDim],
    ) -> OnnxResult<()> {
        if !self.names.contains(name) {
            return Err(OnnxError::Unknown(name.to_owned()));
        }
        self.message
            .message(field::graph::OUTPUT, &value_info(name, element, shape));
        Ok(())
    }

    pub(super) fn finish(self) -> OnnxModel {
        OnnxModel {
            graph: self.message,
            notes: Vec::new(),
        }
    }
}

fn attribute(name: &str, value: &NodeAttribute<'_>) -> ProtoMessage {
    use field::attribute as a;
    let mut message = ProtoMessage::default();
    message.text(a::NAME, name);
    let kind = match *value {
        NodeAttribute::Float(value) => {
            message.float(a::FLOAT, value);
            1
        }
        NodeAttribute::Int(value) => {
            message.int(a::INT, value);
            2
        }
        NodeAttribute::Text(value) => {
            message.text(a::STRING, value);
            3
        }
        NodeAttribute::Ints(values) => {
            values.iter().for_each(|&value| message.int(a::INTS, value));
            7
        }
    };
    message.int(a::TYPE, kind);
    message
}

/// name and type {tensor {element, shape {dim {value or name}}}}.
fn value_info(name: &str, element: ElementType, dims: &[TensorDim]) -> ProtoMessage {
    let mut shape = ProtoMessage::default();
    for dim in dims {
        let mut message = ProtoMessage::default();
        match dim {
            TensorDim::Fixed(size) => message.int(1, *size as i64),
            TensorDim::Named(name) => message.text(2, name),
        }
        shape.message(1, &message);
    }
    let mut tensor = ProtoMessage::default();
    tensor.int(1, element.code());
    tensor.message(2, &shape);
    let mut kind = ProtoMessage::default();
    kind.message(1, &tensor);
    let mut info = ProtoMessage::default();
    info.text(1, name);
    info.message(2, &kind);
    info
}

/// A finished model, ready to be written.
#[derive(Debug, Clone)]
pub struct OnnxModel {
    graph: ProtoMessage,
    notes: Vec<(String, String)>,
}

impl OnnxModel {
    /// Adds a note that readers show as metadata, such as the names of the classes.
    #[must_use]
    pub fn with_note(mut self, key: &str, value: &str) -> Self {
        self.notes.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Writes the file.
    pub fn write_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut head = ProtoMessage::default();
        head.int(field::model::IR_VERSION, IR_VERSION);
        head.text(field::model::PRODUCER, "efface");
        let mut opset = ProtoMessage::default();
        opset.int(2, OPSET);
        head.message(field::model::OPSET, &opset);
        for (key, value) in &self.notes {
            let mut note = ProtoMessage::default();
            note.text(1, key);
            note.text(2, value);
            head.message(field::model::METADATA, &note);
        }
        head.length(field::model::GRAPH, self.graph.bytes().len());
        out.write_all(head.bytes())?;
        out.write_all(self.graph.bytes())
    }
}
