//! Everything of a network but its head: the recipe, the parameters of the encoder, and how texts
//! become features.

use std::collections::HashSet;
use std::sync::Arc;

use efface::{Dense, Features, Logistic, Model, NotCovered, RowStore, Rows};

use crate::device::{NetworkDevice, NetworkStart};
use crate::embedding::Embedding;
use crate::encoder::EncoderWeights;
use crate::encoder_state::EncoderState;
use crate::error::{Error, Result};
use crate::head::{fit_head, head_parameters};
use crate::network::Network;
use crate::norm;
use crate::onnx;
use crate::plan::{EncoderPlan, LinearPlace, Pooling, Squash};
use crate::pool::BufferPool;
use crate::recipe::NetworkRecipe;
use crate::texts::row_ids;
use crate::train::{in_chunks, on_device};

/// The penalty λ of a head that is fitted to take the place of the head of a training: the default
/// of the models of the core.
const TRAINING_HEAD_PENALTY: f64 = 1.0;

/// An encoder. Clones share its parameters.
#[derive(Debug, Clone)]
pub struct Backbone {
    pub(crate) recipe: NetworkRecipe,
    pub(crate) plan: Arc<EncoderPlan>,
    pub(crate) parameters: Arc<Vec<f32>>,
    /// Training steps that the encoder has behind it.
    pub(crate) steps: u64,
    /// Its relation to the rows of the model.
    pub(crate) state: EncoderState,
    /// The width of a row of ids: longer texts were cut.
    pub(crate) max_tokens: usize,
}

impl Backbone {
    /// The recipe it was made by.
    pub fn recipe(&self) -> &NetworkRecipe {
        &self.recipe
    }

    /// The words it knows.
    pub fn embedding(&self) -> &Embedding {
        &self.recipe.embedding
    }

    /// Training steps that the encoder has behind it; 0 for one that was drawn and never trained.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// d: the width of what the head reads.
    pub fn width(&self) -> usize {
        self.plan.settings.features()
    }

    /// Classes that it was trained to tell.
    pub fn classes(&self) -> usize {
        self.plan.head.output
    }

    /// Words of a text that it reads; longer texts are cut.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Arrays by name, shape and values.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        let slots = self.plan.slots().iter();
        slots.map(|slot| {
            (
                slot.name.as_str(),
                slot.shape.as_slice(),
                &self.parameters[slot.range.clone()],
            )
        })
    }

    /// The vectors of all ids, one after the other: those of the training where it changed them.
    pub fn vectors(&self) -> &[f32] {
        match &self.plan.table {
            Some(table) => &self.parameters[table.clone()],
            None => self.embedding().table(),
        }
    }

    /// The head's rows for rows of word ids.
    pub fn features(&self, texts: &Features) -> Result<Features> {
        if texts.width() > self.max_tokens {
            let found = texts.width();
            let expected = self.max_tokens;
            return Err(efface::Error::Shape {
                what: "word ids a row",
                found,
                expected,
            }
            .into());
        }
        let weights = EncoderWeights {
            plan: &self.plan,
            parameters: &self.parameters,
            frozen: self.embedding().table(),
        };
        encode(weights, self.embedding(), texts, None)
    }

    /// Encodes rows of word ids and keeps their ids, targets and weights: the head is fitted from
    /// these rows and forgets from them. Store the result. A text that is encoded again in another
    /// batch may differ in the last digit, and exact forgetting needs the very numbers that were
    /// learned.
    pub fn encode(&self, rows: &Rows) -> Result<Rows> {
        encoded_rows(rows, self.features(&rows.table())?)
    }

    /// The network of this encoder and a head, which must fit it.
    pub fn with_head(self, head: Model) -> Result<Network> {
        let (found, _) = head_parameters(&head)?;
        // Rows that name each of two classes in a column of its own, as those of a shard do, give
        // the head two outputs.
        let has_outputs = [outputs(self.classes()), self.classes()].contains(&found.ncols());
        if found.nrows() != self.width() || !has_outputs {
            return Err(Error::Damaged("its head does not fit its encoder".into()));
        }
        Ok(Network {
            backbone: self,
            head,
        })
    }

    /// Returns the relation of the encoder to the rows of the model.
    pub fn state(&self) -> EncoderState {
        self.state
    }

    /// Returns the parts of the encoder, its words included, that no forget has covered.
    pub fn not_covered(&self) -> Vec<NotCovered> {
        let words = (!self.embedding().public).then_some(NotCovered::EncoderWords);
        self.state.not_covered().into_iter().chain(words).collect()
    }

    /// Records that rows left, and that no row holds the words `unused` any more: their trained
    /// vectors return to where the training began.
    pub fn remove_rows(&mut self, unused: &HashSet<u32>) {
        self.state.record(self.steps, true, false);
        self.reset_vectors(unused);
    }

    /// Returns the trained vectors of some words to where the training began.
    pub(crate) fn reset_vectors(&mut self, words: &HashSet<u32>) {
        let Some(table) = self.plan.table.clone() else {
            return;
        };
        let width = self.embedding().width();
        let start = self.recipe.embedding.clone();
        let parameters = Arc::make_mut(&mut self.parameters);
        let vectors = parameters[table]
            .chunks_exact_mut(width)
            .zip(start.table().chunks_exact(width));
        for (id, (vector, start)) in vectors.enumerate() {
            if words.contains(&(id as u32)) {
                vector.copy_from_slice(start);
            }
        }
    }

    /// Removes the names of words that no row holds any more, where the words were chosen from the
    /// rows.
    pub fn remove_names(&mut self, unused: &HashSet<u32>) {
        self.recipe.remove_names(unused);
    }

    /// Returns true if the linear head that the encoder was trained with holds nothing of rows that
    /// left. Otherwise no bytes of the encoder hold that head.
    pub(crate) fn keeps_training_head(&self) -> bool {
        !(self.state.trained_on_departed || self.state.trained_further)
    }

    /// Returns the encoder with a linear head for further training: that of its own training, or
    /// one that is fitted on `rows` if the bytes that the encoder was read from held none.
    pub fn with_training_head(&self, rows: &Rows) -> Result<Self> {
        let mut trained = self.clone();
        let place = self.plan.head.clone();
        if self.parameters[place.weight.clone()]
            .iter()
            .any(|weight| *weight != 0.0)
        {
            return Ok(trained);
        }
        let recipe = Logistic::new(TRAINING_HEAD_PENALTY).into();
        let (weights, constants) = head_parameters(&fit_head(&recipe, &self.encode(rows)?)?)?;
        let classes = place.output;
        // A model of two classes has one score s, and the training two: −s/2 and s/2.
        let score = |one: &dyn Fn(usize) -> f64, class: usize| match (weights.ncols(), class) {
            (1, 0) => -0.5 * one(0),
            (1, _) => 0.5 * one(0),
            _ => one(class),
        };
        let parameters = Arc::make_mut(&mut trained.parameters);
        for (slot, value) in parameters[place.weight].iter_mut().enumerate() {
            let (feature, class) = (slot / classes, slot % classes);
            *value = score(&|output| weights[(feature, output)], class) as f32;
        }
        for (class, value) in parameters[place.bias].iter_mut().enumerate() {
            *value = score(&|output| constants[output], class) as f32;
        }
        Ok(trained)
    }

    /// The encoder as the ONNX writer wants it, with a head where one is given.
    pub fn to_onnx<'a>(&'a self, head: Option<onnx::OnnxHead<'a>>) -> onnx::TextLstm<'a> {
        let at = |range: &std::ops::Range<usize>| &self.parameters[range.clone()];
        let linear = |linear: &LinearPlace| onnx::OnnxLinear {
            weight: at(&linear.weight),
            bias: at(&linear.bias),
            inputs: linear.input,
            outputs: linear.output,
            order: onnx::WeightOrder::InputsOutputs,
        };
        let lstm = |lstm: &crate::lstm::LstmPlace| onnx::OnnxLstm {
            inputs: lstm.input,
            hidden: lstm.hidden,
            input_weight: at(&lstm.weight_input),
            recurrent_weight: at(&lstm.weight_hidden),
            order: onnx::WeightOrder::InputsOutputs,
            bias: at(&lstm.bias),
            recurrent_bias: None,
        };
        let layers = self.plan.layers.iter().filter_map(|layer| {
            let norm = layer.norm.as_ref().map(|(gain, shift)| onnx::OnnxNorm {
                scale: at(gain),
                shift: at(shift),
                epsilon: norm::EPSILON,
            });
            Some(onnx::LstmLayer {
                norm_before: norm,
                forward: lstm(layer.directions.first()?),
                backward: layer.directions.get(1).map(lstm),
                residual: layer.residual,
                norm_after: None,
            })
        });
        onnx::TextLstm {
            embedding: self.vectors(),
            vocabulary: self.vectors().len() / self.embedding().width(),
            width: self.embedding().width(),
            layers: layers.collect(),
            pooling: match self.plan.settings.pooling {
                Pooling::Mean => onnx::OnnxPooling::Mean,
                Pooling::Max => onnx::OnnxPooling::Max,
                Pooling::Last => onnx::OnnxPooling::Last,
            },
            projection: self
                .plan
                .projection
                .as_ref()
                .map(|found| onnx::OnnxProjection {
                    linear: linear(found),
                    squash: match self.plan.settings.squash {
                        Squash::Tanh => onnx::OnnxSquash::Tanh,
                        Squash::Relu => onnx::OnnxSquash::Relu,
                    },
                }),
            head,
        }
    }
}

/// Scores of a head for so many classes.
pub(crate) fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}

/// The features of all rows, similar lengths together; made by a device, where one is given and has
/// room.
pub(crate) fn encode(
    weights: EncoderWeights<'_>,
    embedding: &Embedding,
    texts: &Features,
    device: Option<&dyn NetworkDevice>,
) -> Result<Features> {
    let known = embedding.id_count();
    let ids: Vec<&[u32]> = (0..texts.rows())
        .map(|slot| row_ids(texts.row(slot), known))
        .collect::<Result<_>>()?;
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&slot| ids[slot].len());
    let sorted: Vec<&[u32]> = order.iter().map(|&slot| ids[slot]).collect();
    let d = weights.plan.settings.features();
    let mut values = vec![0.0f32; d * ids.len()];
    let mut start = 0;
    let mut pool = BufferPool::default();
    let chunks = in_chunks(&sorted);
    let largest =
        |size: fn(&[&[u32]]) -> usize| chunks.iter().map(|chunk| size(chunk)).max().unwrap_or(1);
    let start_there = NetworkStart {
        parameters: weights.parameters,
        moments: None,
        frozen: weights.frozen,
        largest: (
            largest(|chunk| chunk.len()),
            largest(|chunk| chunk.iter().map(|text| text.len()).sum()),
        ),
    };
    let mut there = device
        .map(|device| device.network(weights.plan, start_there))
        .transpose()?
        .flatten();
    for chunk in chunks {
        let rows = match &mut there {
            Some(there) => on_device::features(there.as_mut(), d, chunk)?,
            None => weights.features(chunk, &mut pool),
        };
        for (&slot, row) in order[start..].iter().zip(rows.chunks_exact(d)) {
            values[slot * d..(slot + 1) * d].copy_from_slice(row);
        }
        start += chunk.len();
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(Error::Damaged(
            "its encoder gives numbers that are not finite".into(),
        ));
    }
    Ok(Dense::new(values, d)?.into())
}

/// Features under the ids, targets and weights of other rows.
pub fn encoded_rows(rows: &Rows, features: Features) -> Result<Rows> {
    let mut targets = Vec::new();
    let mut weights = Vec::new();
    for view in rows.iter() {
        targets.extend_from_slice(view.targets);
        weights.push(view.weight);
    }
    let encoded = Rows::with_ids(rows.ids().collect(), features, targets, rows.outputs())?;
    Ok(if weights.iter().all(|weight| *weight == 1.0) {
        encoded
    } else {
        encoded.weighted(weights)?
    })
}
