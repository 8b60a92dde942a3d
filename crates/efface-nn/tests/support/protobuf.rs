//! A reader of just the fields that the ONNX writer writes, made from the format's description
//! rather than the writer.

use std::collections::HashMap;

pub(crate) struct Node {
    pub(crate) op: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    /// Those that are strings.
    pub(crate) settings: HashMap<String, Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct Read {
    pub(crate) ir_version: u64,
    pub(crate) opset: u64,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    /// Shape and, for floats, values.
    pub(crate) tensors: HashMap<String, (Vec<u64>, Vec<f32>)>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        let Self::Number(number) = self else {
            panic!("a number was expected")
        };
        *number
    }

    fn bytes(&self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else {
            panic!("bytes were expected")
        };
        bytes
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0.. {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                fields.push((key >> 3, Value::Number(varint(&mut bytes))));
                continue;
            }
            2 => varint(&mut bytes) as usize,
            5 => 4,
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, Value::Bytes(&bytes[..length])));
        bytes = &bytes[length..];
    }
    fields
}

fn first_text(bytes: &[u8], field: u64) -> String {
    fields(bytes)
        .iter()
        .find(|(number, _)| *number == field)
        .unwrap()
        .1
        .text()
}

pub(crate) fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    for (field, value) in fields(bytes) {
        match field {
            1 => read.ir_version = value.number(),
            7 => graph(value.bytes(), &mut read),
            8 => read.opset = fields(value.bytes())[0].1.number(),
            14 => read
                .notes
                .push((first_text(value.bytes(), 1), first_text(value.bytes(), 2))),
            _ => (),
        }
    }
    read
}

fn graph(bytes: &[u8], read: &mut Read) {
    for (field, value) in fields(bytes) {
        match field {
            1 => read.nodes.push(node(value.bytes())),
            5 => tensor(value.bytes(), read),
            11 => read.inputs.push(first_text(value.bytes(), 1)),
            12 => read.outputs.push(first_text(value.bytes(), 1)),
            _ => (),
        }
    }
}

fn node(bytes: &[u8]) -> Node {
    let mut node = Node {
        op: first_text(bytes, 4),
        inputs: vec![],
        outputs: vec![],
        settings: HashMap::new(),
    };
    for (field, value) in fields(bytes) {
        match field {
            1 => node.inputs.push(value.text()),
            2 => node.outputs.push(value.text()),
            5 => {
                let name = first_text(value.bytes(), 1);
                if let Some((_, text)) = fields(value.bytes())
                    .iter()
                    .find(|(number, _)| *number == 4)
                {
                    node.settings.insert(name, text.bytes().to_vec());
                }
            }
            _ => (),
        }
    }
    node
}

fn tensor(bytes: &[u8], read: &mut Read) {
    let mut shape = Vec::new();
    let mut values = Vec::new();
    let mut kind = 0;
    for (field, value) in fields(bytes) {
        match field {
            1 => shape.push(value.number()),
            2 => kind = value.number(),
            9 => values = value.bytes().to_vec(),
            _ => (),
        }
    }
    let size = if kind == 1 { 4 } else { 8 };
    assert_eq!(shape.iter().product::<u64>() as usize * size, values.len());
    let floats = values
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .filter(|_| kind == 1)
        .collect();
    read.tensors.insert(first_text(bytes, 8), (shape, floats));
}
