//! `model.safetensors`: the weights, checked against the sizes of the configuration and laid out
//! for the products.
//!
//! A file stores a linear map as [outputs, inputs]. Here it is turned into [inputs, outputs], so
//! that the matrix product finds its left side in columns; query, key and value are put side by
//! side to make one product of three.

use safetensors::{Dtype, SafeTensors};

use super::config::MiniLmConfig;
use super::error::{MiniLmError, MiniLmResult};
use crate::onnx;

/// The longest list of tensors read. An encoder of a hundred layers needs a fifth of it.
const LARGEST_HEADER: u64 = 1 << 20;

/// x ↦ xW + b.
#[derive(Debug)]
pub(super) struct MiniLmLinear {
    /// [inputs, outputs], row after row.
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// The scale and shift after a normalisation.
#[derive(Debug)]
pub(super) struct MiniLmNorm {
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
}

/// One layer: attention, then a feed-forward block, each added to what came in and normalised.
#[derive(Debug)]
pub(super) struct MiniLmLayer {
    pub(super) query_key_value: MiniLmLinear,
    pub(super) attention: MiniLmLinear,
    pub(super) attention_norm: MiniLmNorm,
    pub(super) widen: MiniLmLinear,
    pub(super) narrow: MiniLmLinear,
    pub(super) norm: MiniLmNorm,
}

/// All weights that encoding needs.
#[derive(Debug)]
pub(super) struct MiniLmWeights {
    /// [vocabulary, hidden].
    pub(super) words: Vec<f32>,
    /// [positions, hidden]; the vector of the first segment kind, which every token gets, is added
    /// already.
    pub(super) positions: Vec<f32>,
    pub(super) norm: MiniLmNorm,
    pub(super) layers: Vec<MiniLmLayer>,
}

impl MiniLmWeights {
    pub(super) fn read(bytes: &[u8], config: &MiniLmConfig) -> MiniLmResult<Self> {
        // The format allows headers of 100 MB, which take many times as much once parsed.
        let header = bytes
            .first_chunk::<8>()
            .map_or(0, |length| u64::from_le_bytes(*length));
        if header > LARGEST_HEADER {
            let reason = format!(
                "its header claims {header} bytes where at most {LARGEST_HEADER} are usual"
            );
            return Err(MiniLmError::Damaged(reason));
        }
        let file = WeightFile(
            SafeTensors::deserialize(bytes).map_err(|e| MiniLmError::Damaged(e.to_string()))?,
        );
        let hidden = config.hidden_size;
        let words = file.tensor(
            "embeddings.word_embeddings.weight",
            &[config.vocab_size, hidden],
        )?;
        let shape = [config.max_position_embeddings, hidden];
        let mut positions = file.tensor("embeddings.position_embeddings.weight", &shape)?;
        let shape = [config.type_vocab_size, hidden];
        let kinds = file.tensor("embeddings.token_type_embeddings.weight", &shape)?;
        for position in positions.chunks_exact_mut(hidden) {
            position
                .iter_mut()
                .zip(&kinds[..hidden])
                .for_each(|(p, k)| *p += k);
        }
        let norm = file.norm("embeddings.LayerNorm", hidden)?;
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            layers.push(file.layer(&format!("encoder.layer.{layer}"), config)?);
        }
        Ok(Self {
            words,
            positions,
            norm,
            layers,
        })
    }

    pub(super) fn to_onnx(&self, config: &MiniLmConfig, unit_length: bool) -> onnx::OnnxBert<'_> {
        let epsilon = config.layer_norm_eps;
        let layers = self.layers.iter().map(|layer| onnx::BertLayer {
            query_key_value: layer.query_key_value.to_onnx(),
            attention: layer.attention.to_onnx(),
            attention_norm: layer.attention_norm.to_onnx(epsilon),
            widen: layer.widen.to_onnx(),
            narrow: layer.narrow.to_onnx(),
            norm: layer.norm.to_onnx(epsilon),
        });
        onnx::OnnxBert {
            words: &self.words,
            positions: &self.positions,
            norm: self.norm.to_onnx(epsilon),
            layers: layers.collect(),
            vocabulary: config.vocab_size,
            longest: config.max_position_embeddings,
            hidden: config.hidden_size,
            heads: config.num_attention_heads,
            unit_length,
        }
    }
}

impl MiniLmLinear {
    fn to_onnx(&self) -> onnx::OnnxLinear<'_> {
        let outputs = self.bias.len();
        let inputs = self.weight.len() / outputs;
        let order = onnx::WeightOrder::InputsOutputs;
        onnx::OnnxLinear {
            weight: &self.weight,
            bias: &self.bias,
            inputs,
            outputs,
            order,
        }
    }
}

impl MiniLmNorm {
    fn to_onnx(&self, epsilon: f32) -> onnx::OnnxNorm<'_> {
        onnx::OnnxNorm {
            scale: &self.scale,
            shift: &self.shift,
            epsilon,
        }
    }
}

struct WeightFile<'a>(SafeTensors<'a>);

impl WeightFile<'_> {
    /// A tensor of exactly this shape.
    fn tensor(&self, name: &str, shape: &[usize]) -> MiniLmResult<Vec<f32>> {
        let view = self
            .0
            .tensor(name)
            .map_err(|_| MiniLmError::MissingTensor { name: name.into() })?;
        if view.dtype() != Dtype::F32 || view.shape() != shape {
            return Err(MiniLmError::Tensor {
                name: name.into(),
                found: format!("{:?} {:?}", view.dtype(), view.shape()),
                expected: format!("F32 {shape:?}"),
            });
        }
        let values: Vec<f32> = view
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(MiniLmError::NotFinite { name: name.into() })
        }
    }

    fn norm(&self, name: &str, width: usize) -> MiniLmResult<MiniLmNorm> {
        Ok(MiniLmNorm {
            scale: self.tensor(&format!("{name}.weight"), &[width])?,
            shift: self.tensor(&format!("{name}.bias"), &[width])?,
        })
    }

    /// Linear maps of the same inputs, side by side.
    fn linear(
        &self,
        names: &[String],
        inputs: usize,
        outputs: usize,
    ) -> MiniLmResult<MiniLmLinear> {
        let all = outputs * names.len();
        let mut weight = vec![0.0; inputs * all];
        let mut bias = Vec::with_capacity(all);
        for (part, name) in names.iter().enumerate() {
            let stored = self.tensor(&format!("{name}.weight"), &[outputs, inputs])?;
            for (output, row) in stored.chunks_exact(inputs).enumerate() {
                for (input, &value) in row.iter().enumerate() {
                    weight[input * all + part * outputs + output] = value;
                }
            }
            bias.extend(self.tensor(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(MiniLmLinear { weight, bias })
    }

    fn layer(&self, name: &str, config: &MiniLmConfig) -> MiniLmResult<MiniLmLayer> {
        let hidden = config.hidden_size;
        let middle = config.intermediate_size;
        let three = ["query", "key", "value"].map(|part| format!("{name}.attention.self.{part}"));
        Ok(MiniLmLayer {
            query_key_value: self.linear(&three, hidden, hidden)?,
            attention: self.linear(&[format!("{name}.attention.output.dense")], hidden, hidden)?,
            attention_norm: self.norm(&format!("{name}.attention.output.LayerNorm"), hidden)?,
            widen: self.linear(&[format!("{name}.intermediate.dense")], hidden, middle)?,
            narrow: self.linear(&[format!("{name}.output.dense")], middle, hidden)?,
            norm: self.norm(&format!("{name}.output.LayerNorm"), hidden)?,
        })
    }
}
