//! ONNX files: their structure always, and their results where there is an onnxruntime.
//!
//! The numbers of the LSTM networks come from torch 2.15.0; those of the BERT from this crate's own
//! forward pass, which `minilm.rs` checks against torch. With EFFACE_PYTHON naming a Python that
//! has onnx and onnxruntime (checked with 1.23.2 and 1.31.1), `onnx_check.py` runs every file;
//! otherwise that part is skipped with a message.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/protobuf.rs"]
mod protobuf;
#[path = "support/tiny_bert.rs"]
#[allow(dead_code, reason = "folders are for other tests")]
mod tiny_bert;

use std::path::Path;
use std::sync::Arc;

use efface::{Features, Fit, Predict, Recipe, Ridge, Rows};
use efface_nn::onnx::{
    LstmLayer, OnnxActivation, OnnxError, OnnxHead, OnnxLinear, OnnxLstm, OnnxModel, OnnxNorm,
    OnnxPooling, OnnxProjection, OnnxSquash, TextLstm, WeightOrder,
};
use efface_nn::{Embedding, EncoderSettings, NetworkRecipe, TrainSettings, text_rows};
use protobuf::{Read, read};
use serde_json::{Value, json};

/// 0.5·sin(0.7k + 1.3i): the weights of tensor i, as the PyTorch script made them.
fn sines(index: usize, count: usize, base: f64) -> Vec<f32> {
    (0..count)
        .map(|k| (base + 0.5 * (0.7 * k as f64 + 1.3 * index as f64).sin()) as f32)
        .collect()
}

fn bytes(model: &OnnxModel) -> Vec<u8> {
    let mut bytes = Vec::new();
    model.write_to(&mut bytes).unwrap();
    bytes
}

/// The tensors of both test networks by number.
struct Sines(Vec<Vec<f32>>);

impl Sines {
    /// Embedding 7×3; forward and backward of width 2; a head of 3.
    fn bidirectional() -> Self {
        let sizes = [21, 24, 16, 8, 8, 24, 16, 8, 8, 12, 3];
        Self(
            sizes
                .iter()
                .enumerate()
                .map(|(i, &size)| sines(i, size, 0.0))
                .collect(),
        )
    }

    /// Embedding 7×4; two layers of width 4: norm, LSTM, norm; a head of 3.
    fn stacked() -> Self {
        let layer = [4, 4, 64, 64, 16, 16, 4, 4];
        let sizes = [&[28][..], &layer, &layer, &[12, 3]].concat();
        let scale = |i: usize| i < 17 && matches!(i % 8, 1 | 7);
        let tensor = |(i, &size): (usize, &usize)| sines(i, size, if scale(i) { 1.0 } else { 0.0 });
        Self(sizes.iter().enumerate().map(tensor).collect())
    }

    fn lstm(&self, at: usize, inputs: usize, hidden: usize) -> OnnxLstm<'_> {
        OnnxLstm {
            inputs,
            hidden,
            input_weight: &self.0[at],
            recurrent_weight: &self.0[at + 1],
            order: WeightOrder::OutputsInputs,
            bias: &self.0[at + 2],
            recurrent_bias: Some(&self.0[at + 3]),
        }
    }

    fn norm(&self, at: usize) -> OnnxNorm<'_> {
        OnnxNorm {
            scale: &self.0[at],
            shift: &self.0[at + 1],
            epsilon: 1e-5,
        }
    }

    fn head(&self, at: usize, activation: OnnxActivation) -> OnnxHead<'_> {
        let order = WeightOrder::OutputsInputs;
        let linear = OnnxLinear {
            weight: &self.0[at],
            bias: &self.0[at + 1],
            inputs: 4,
            outputs: 3,
            order,
        };
        OnnxHead { linear, activation }
    }
}

fn bidirectional(sines: &Sines, pooling: OnnxPooling) -> TextLstm<'_> {
    let layer = LstmLayer {
        norm_before: None,
        forward: sines.lstm(1, 3, 2),
        backward: Some(sines.lstm(5, 3, 2)),
        residual: false,
        norm_after: None,
    };
    TextLstm {
        embedding: &sines.0[0],
        vocabulary: 7,
        width: 3,
        layers: vec![layer],
        pooling,
        projection: None,
        head: Some(sines.head(9, OnnxActivation::Softmax)),
    }
}

fn stacked(sines: &Sines) -> TextLstm<'_> {
    let layer = |at: usize, last: bool| LstmLayer {
        norm_before: Some(sines.norm(at)),
        forward: sines.lstm(at + 2, 4, 4),
        backward: None,
        residual: true,
        norm_after: last.then(|| sines.norm(at + 6)),
    };
    TextLstm {
        embedding: &sines.0[0],
        vocabulary: 7,
        width: 4,
        layers: vec![layer(1, false), layer(9, true)],
        pooling: OnnxPooling::Last,
        projection: None,
        head: Some(sines.head(17, OnnxActivation::Sigmoid)),
    }
}

/// Features of the texts [1, 2, 3, 4], [5, 6] and the empty one.
const MEAN: [f64; 12] = [
    0.1649022, 0.1552884, 0.0265373, 0.1158685, 0.1141052, 0.1572811, -0.0449758, 0.1038819, 0.0,
    0.0, 0.0, 0.0,
];
const MAX: [f64; 12] = [
    0.2145934, 0.2044721, 0.0784686, 0.1714967, 0.1417801, 0.1747463, -0.0387389, 0.1618400, 0.0,
    0.0, 0.0, 0.0,
];
const LAST: [f64; 12] = [
    0.2145934, 0.1835826, 0.0784686, 0.1409384, 0.1417801, 0.1398159, -0.0387389, 0.1618400, 0.0,
    0.0, 0.0, 0.0,
];
const MEAN_SCORES: [f64; 9] = [
    0.2798037, 0.3870170, 0.3331793, 0.2776062, 0.3812551, 0.3411387, 0.2786680, 0.3552831,
    0.3660488,
];
const STACK: [f64; 12] = [
    -1.3024461, -0.3386633, 0.4367318, 1.2343448, -0.9987767, -0.5800073, 0.0613348, 1.4595568,
    0.0, 0.0, 0.0, 0.0,
];
const STACK_SCORES: [f64; 9] = [
    0.2662183, 0.6072219, 0.2187560, 0.3002312, 0.5698761, 0.2405163, 0.3790793, 0.3942807,
    0.4592611,
];

fn floats(shape: [usize; 2], values: &[f64]) -> Value {
    json!({"type": "float32", "shape": shape, "values": values})
}

fn put(folder: &Path, name: &str, model: &OnnxModel, inputs: Value, outputs: Value) {
    std::fs::write(folder.join(name).with_extension("onnx"), bytes(model)).unwrap();
    // A fitted head multiplies what the features differ by.
    let tolerance = if name.starts_with("trained") {
        1e-5
    } else {
        1e-6
    };
    let case = json!({"inputs": inputs, "outputs": outputs, "tolerance": tolerance});
    std::fs::write(folder.join(name).with_extension("json"), case.to_string()).unwrap();
}

fn put_lstms(folder: &Path) {
    let inputs = || {
        json!({
            "tokens": {"type": "int64", "shape": [3, 4], "values": [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]},
            "lengths": {"type": "int64", "shape": [3], "values": [4, 2, 0]},
        })
    };
    let sines = Sines::bidirectional();
    for (name, pooling, features) in [
        ("mean", OnnxPooling::Mean, MEAN),
        ("max", OnnxPooling::Max, MAX),
        ("last", OnnxPooling::Last, LAST),
    ] {
        let mut outputs = json!({"features": floats([3, 4], &features)});
        if pooling == OnnxPooling::Mean {
            outputs["scores"] = floats([3, 3], &MEAN_SCORES);
        }
        put(
            folder,
            name,
            &bidirectional(&sines, pooling).model().unwrap(),
            inputs(),
            outputs,
        );
    }
    for (name, squash) in [("tanh", OnnxSquash::Tanh), ("relu", OnnxSquash::Relu)] {
        let (linear, features) = projected(&sines, squash);
        let mut network = bidirectional(&sines, OnnxPooling::Mean);
        (network.projection, network.head) = (Some(OnnxProjection { linear, squash }), None);
        let outputs = json!({"features": floats([3, 3], &features)});
        put(folder, name, &network.model().unwrap(), inputs(), outputs);
    }
    let outputs =
        json!({"features": floats([3, 4], &STACK), "scores": floats([3, 3], &STACK_SCORES)});
    put(
        folder,
        "stack",
        &stacked(&Sines::stacked()).model().unwrap(),
        inputs(),
        outputs,
    );
}

/// The head's map used as a projection of `MEAN`, and what it comes to.
fn projected(sines: &Sines, squash: OnnxSquash) -> (OnnxLinear<'_>, Vec<f64>) {
    let linear = sines.head(9, OnnxActivation::None).linear;
    let mut features = Vec::new();
    for x in MEAN.chunks_exact(4) {
        for (weight, &bias) in linear.weight.chunks_exact(4).zip(linear.bias) {
            let sum = x
                .iter()
                .zip(weight)
                .fold(f64::from(bias), |sum, (x, &w)| sum + x * f64::from(w));
            features.push(if squash == OnnxSquash::Tanh {
                sum.tanh()
            } else {
                sum.max(0.0)
            });
        }
    }
    (linear, features)
}

fn put_bert(folder: &Path) {
    let encoder = tiny_bert::model();
    let mut ids = Vec::new();
    let mut mask = Vec::new();
    for text in tiny_bert::TEXTS {
        let tokens = encoder.tokenize(text);
        // The padding is not zero, to see that it has no part.
        ids.extend((0..12).map(|k| tokens.get(k).copied().unwrap_or(9)));
        mask.extend((0..12).map(|k| i64::from(k < tokens.len())));
    }
    let inputs = json!({
        "input_ids": {"type": "int64", "shape": [3, 12], "values": ids},
        "attention_mask": {"type": "int64", "shape": [3, 12], "values": mask},
    });
    let rows = Features::from(encoder.encode(&tiny_bert::TEXTS, &|_| ()).unwrap());
    let weight = sines(3, 32, 0.0);
    let bias = sines(4, 2, 0.0);
    let mut features = Vec::new();
    let mut scores = Vec::new();
    for slot in 0..3 {
        let mut score: Vec<f64> = bias.iter().map(|&b| f64::from(b)).collect();
        rows.row(slot).each(|j, x| {
            features.push(x);
            score
                .iter_mut()
                .enumerate()
                .for_each(|(c, s)| *s += x * f64::from(weight[j * 2 + c]));
        });
        scores.extend(score);
    }
    let linear = OnnxLinear {
        weight: &weight,
        bias: &bias,
        inputs: 16,
        outputs: 2,
        order: WeightOrder::InputsOutputs,
    };
    let head = OnnxHead {
        linear,
        activation: OnnxActivation::None,
    };
    let outputs =
        json!({"features": floats([3, 16], &features), "scores": floats([3, 2], &scores)});
    put(
        folder,
        "bert",
        &encoder.to_onnx().model(Some(&head)).unwrap(),
        inputs,
        outputs,
    );
    let inputs = json!({"features": floats([3, 16], &features)});
    put(
        folder,
        "head",
        &head.model().unwrap(),
        inputs,
        json!({"scores": floats([3, 2], &scores)}),
    );
}

/// Networks as this crate trains them: what they score must be what the file scores.
fn put_trained(folder: &Path) {
    let words: Vec<String> = (0..12).map(|at| format!("w{at}")).collect();
    let texts: Vec<String> = (0..24)
        .map(|i| {
            (0..3 + i % 4)
                .map(|t| words[(i * 5 + t * 3) % 12].as_str())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let embedding = Arc::new(Embedding::random(words, 5, 1).unwrap());
    let ids = text_rows(&embedding, texts.iter().map(String::as_str), 6)
        .unwrap()
        .features;
    let targets = (0..24)
        .flat_map(|i| (0..3).map(move |c| f64::from(c == i % 3)))
        .collect();
    let rows = Rows::new(ids.clone(), targets, 3).unwrap();
    let stack = EncoderSettings::stacked(4, 3);
    for (name, encoder) in [
        ("trained-max", EncoderSettings::bilstm(4)),
        (
            "trained-stack",
            stack.pooling(efface_nn::Pooling::Last).width(5),
        ),
    ] {
        let training = TrainSettings {
            epochs: 1,
            batch: 8,
            ..TrainSettings::default()
        };
        let head = Recipe::new(Ridge::new(0.1));
        let network = NetworkRecipe {
            embedding: embedding.clone(),
            encoder,
            training,
            head,
        }
        .fit(&rows)
        .unwrap()
        .network()
        .clone();
        let named = network.head().parameters().unwrap();
        let coefficients = named.table("coefficients").unwrap();
        let intercept = named.vector("intercept").unwrap();
        let weight: Vec<f32> = (0..coefficients.nrows())
            .flat_map(|j| (0..3).map(move |c| (j, c)))
            .map(|at| coefficients[at] as f32)
            .collect();
        let bias: Vec<f32> = intercept.iter().map(|b| *b as f32).collect();
        let inputs = coefficients.nrows();
        let order = WeightOrder::InputsOutputs;
        let linear = OnnxLinear {
            weight: &weight,
            bias: &bias,
            inputs,
            outputs: 3,
            order,
        };
        let model = network
            .backbone()
            .to_onnx(Some(OnnxHead {
                linear,
                activation: OnnxActivation::None,
            }))
            .model()
            .unwrap();
        let scores = network.predict(&ids).unwrap();
        let expected: Vec<f64> = (0..24)
            .flat_map(|i| (0..3).map(move |c| (i, c)))
            .map(|at| scores[at])
            .collect();
        let mut tokens = Vec::new();
        let mut lengths = Vec::new();
        for slot in 0..24 {
            let row = ids.row(slot).entries();
            lengths.push(row.len());
            tokens.extend((0..6).map(|t| row.get(t).map_or(0, |(_, id)| *id as i64)));
        }
        let inputs = json!({
            "tokens": {"type": "int64", "shape": [24, 6], "values": tokens},
            "lengths": {"type": "int64", "shape": [24], "values": lengths},
        });
        put(
            folder,
            name,
            &model,
            inputs,
            json!({"scores": floats([24, 3], &expected)}),
        );
    }
}

#[test]
fn onnxruntime_gives_what_torch_gives() {
    let Some(python) = std::env::var_os("EFFACE_PYTHON") else {
        eprintln!("skipped: name a Python with onnx and onnxruntime in EFFACE_PYTHON");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    put_lstms(folder.path());
    put_bert(folder.path());
    put_trained(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx_check.py");
    let done = std::process::Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    println!("{said}");
    assert!(done.status.success(), "{said}{complained}");
    assert_eq!(said.lines().count(), 10);
}

/// What a file must have to be read at all: every name made before it is used, and used names made
/// once.
fn sound(file: &Read) {
    let mut known: Vec<&str> = file.inputs.iter().map(String::as_str).collect();
    known.extend(file.tensors.keys().map(String::as_str));
    for node in &file.nodes {
        for input in &node.inputs {
            assert!(known.contains(&input.as_str()), "{} reads {input}", node.op);
        }
        for output in &node.outputs {
            assert!(!known.contains(&output.as_str()), "{output} is made twice");
            known.push(output);
        }
    }
    assert!(
        file.outputs
            .iter()
            .all(|output| known.contains(&output.as_str()))
    );
    assert_eq!((file.ir_version, file.opset), (8, 17));
}

#[test]
fn weights_come_back_from_the_file_with_gates_in_their_new_order() {
    let sines = Sines::bidirectional();
    let model = bidirectional(&sines, OnnxPooling::Last)
        .model()
        .unwrap()
        .with_note("classes", "a,b,c");
    let file = read(&bytes(&model));
    sound(&file);
    assert_eq!(file.notes, [("classes".to_owned(), "a,b,c".to_owned())]);
    assert_eq!(file.inputs, ["tokens", "lengths"]);
    assert_eq!(file.outputs, ["features", "scores"]);
    assert_eq!(file.tensors["embedding"], (vec![7, 3], sines.0[0].clone()));
    let (shape, values) = &file.tensors["layer.0.input_weight"];
    assert_eq!(shape, &[2, 8, 3]);
    // Gates i, f, g, o of two rows of three become i, o, f, g.
    for (direction, source) in [&sines.0[1], &sines.0[5]].into_iter().enumerate() {
        for (place, gate) in [0, 3, 1, 2].into_iter().enumerate() {
            assert_eq!(
                values[direction * 24 + place * 6..][..6],
                source[gate * 6..][..6]
            );
        }
    }
    let (shape, values) = &file.tensors["layer.0.bias"];
    assert_eq!(shape, &[2, 16]);
    assert_eq!(
        values[8..10],
        sines.0[4][..2],
        "the recurrent bias follows the other"
    );
    let (shape, values) = &file.tensors["head.weight"];
    assert_eq!(shape, &[4, 3]);
    assert_eq!(values[1], sines.0[9][4], "[outputs, inputs] is turned");
    let lstm = file.nodes.iter().find(|node| node.op == "LSTM").unwrap();
    assert_eq!(lstm.settings["direction"], b"bidirectional");
}

#[test]
fn turned_weights_make_the_same_file() {
    let sines = Sines::bidirectional();
    let turn = |values: &[f32], rows: usize| -> Vec<f32> {
        let columns = values.len() / rows;
        (0..values.len())
            .map(|k| values[k % rows * columns + k / rows])
            .collect()
    };
    let input = turn(&sines.0[1], 8);
    let recurrent = turn(&sines.0[2], 8);
    let mut network = bidirectional(&sines, OnnxPooling::Mean);
    let straight = bytes(&network.model().unwrap());
    let forward = &mut network.layers[0].forward;
    (forward.input_weight, forward.recurrent_weight) = (&input, &recurrent);
    assert_ne!(straight, bytes(&network.model().unwrap()));
    network.layers[0].forward.order = WeightOrder::InputsOutputs;
    assert_eq!(straight, bytes(&network.model().unwrap()));
}

#[test]
fn every_graph_is_sound() {
    let sines = Sines::bidirectional();
    for pooling in [OnnxPooling::Mean, OnnxPooling::Max, OnnxPooling::Last] {
        sound(&read(&bytes(
            &bidirectional(&sines, pooling).model().unwrap(),
        )));
    }
    let file = read(&bytes(&stacked(&Sines::stacked()).model().unwrap()));
    sound(&file);
    assert_eq!(
        file.nodes
            .iter()
            .filter(|node| node.op == "LayerNormalization")
            .count(),
        3
    );
    let encoder = tiny_bert::model();
    let file = read(&bytes(&encoder.to_onnx().model(None).unwrap()));
    sound(&file);
    assert_eq!(
        file.nodes
            .iter()
            .filter(|node| node.op == "Softmax")
            .count(),
        2
    );
    assert_eq!(file.outputs, ["features"]);
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let sines = Sines::bidirectional();
    let good = bidirectional(&sines, OnnxPooling::Mean);
    let refuse = |change: &dyn Fn(&mut TextLstm<'_>)| {
        let mut network = good.clone();
        change(&mut network);
        network.model().expect_err("refused").to_string()
    };
    assert_eq!(
        refuse(&|n| n.vocabulary = 8),
        "embedding has 21 values, which do not fill the shape [8, 3]"
    );
    assert_eq!(
        refuse(&|n| n.layers.clear()),
        "layers is 0; it must be at least 1"
    );
    assert_eq!(
        refuse(&|n| n.layers[0].forward.inputs = 5),
        "layer.0.forward takes 5 inputs, but 3 reach it"
    );
    assert!(
        refuse(&|n| n.layers[0].backward.as_mut().unwrap().hidden = 3)
            .contains("layer.0.backward.hidden is 3")
    );
    assert_eq!(
        refuse(&|n| n.layers[0].forward.bias = &[0.0; 7]),
        "layer.0.forward.bias has 7 values, which do not fill the shape [8]"
    );
    assert_eq!(
        refuse(&|n| n.layers[0].residual = true),
        "layer.0 adds its input of width 3 to an output of width 4"
    );
    assert_eq!(
        refuse(&|n| n.layers.push(n.layers[0])),
        "layer.1.forward takes 3 inputs, but 4 reach it"
    );
    assert_eq!(
        refuse(&|n| n.head.as_mut().unwrap().linear.inputs = 5),
        "head takes 5 inputs, but 4 reach it"
    );
    let linear = OnnxLinear {
        inputs: 7,
        ..sines.head(9, OnnxActivation::None).linear
    };
    let mut network = good.clone();
    network.projection = Some(OnnxProjection {
        linear,
        squash: OnnxSquash::Relu,
    });
    let error = network.model().expect_err("refused").to_string();
    assert_eq!(error, "projection takes 7 inputs, but 4 reach it");
    let mut head = sines.head(9, OnnxActivation::None);
    head.linear.bias = &[0.0, f32::NAN, 0.0];
    assert_eq!(
        head.model().err(),
        Some(OnnxError::NotFinite {
            name: "head.bias".into(),
            at: 1
        })
    );
    let encoder = tiny_bert::model();
    let mut bert = encoder.to_onnx();
    bert.heads = 3;
    assert!(
        bert.model(None)
            .expect_err("refused")
            .to_string()
            .contains("a divisor of the width, 16")
    );
    let mut bert = encoder.to_onnx();
    bert.layers[1].narrow.inputs = 31;
    assert!(
        bert.model(None)
            .expect_err("refused")
            .to_string()
            .contains("layer.1.narrow takes 31 inputs")
    );
}
