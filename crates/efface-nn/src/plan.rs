//! The shape of a network: its settings, and where each array lies in the one buffer that holds all
//! parameters. One buffer makes the optimiser, clipping, checkpoints and files a matter of one
//! slice.

use std::ops::Range;

use efface::random::seeded;
use rand_distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};

use crate::embedding::{Embedding, FIRST_WORD};
use crate::error::{Error, Result};
use crate::lstm::LstmPlace;

/// How the tokens of a text become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The largest value of each feature.
    Max,
    /// What each direction knows after its last token.
    Last,
}

/// What follows the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Squash {
    /// tanh.
    Tanh,
    /// max(0, x).
    Relu,
}

/// The shape of an encoder.
///
/// | setting | `bilstm` | `stacked` | range | meaning |
/// |---|---|---|---|---|
/// | `hidden` | given | given | ≥ 1 | H, the state of one direction |
/// | `layers` | 1 | given | 1 to 64 | LSTM layers on top of each other |
/// | `bidirectional` | true | false | | a second LSTM a layer, reading from the end |
/// | `residual` | false | true | | layers of equal width add to what they read |
/// | `layer_norm` | false | true | | layers after the first read normalised values |
/// | `pooling` | max | max | | how tokens become one vector |
/// | `width` | none | none | ≥ 1 | project to this width; it is then d, the head's input |
/// | `squash` | tanh | tanh | | what follows the projection |
/// | `dropout` | 0.3 | 0.2 | 0 to below 1 | on word vectors, between layers, and before the head |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EncoderSettings {
    /// H, the state of one direction.
    pub hidden: usize,
    /// LSTM layers on top of each other.
    pub layers: usize,
    /// Whether each layer also reads from the end.
    pub bidirectional: bool,
    /// Whether layers of equal width add to what they read.
    pub residual: bool,
    /// Whether layers after the first read normalised values.
    pub layer_norm: bool,
    /// How tokens become one vector.
    pub pooling: Pooling,
    /// Project to this width.
    pub width: Option<usize>,
    /// What follows the projection.
    pub squash: Squash,
    /// The share of values dropped while training.
    pub dropout: f32,
}

impl EncoderSettings {
    /// One bidirectional layer.
    pub fn bilstm(hidden: usize) -> Self {
        Self {
            hidden,
            layers: 1,
            bidirectional: true,
            residual: false,
            layer_norm: false,
            pooling: Pooling::Max,
            width: None,
            squash: Squash::Tanh,
            dropout: 0.3,
        }
    }

    /// Layers on top of each other, with what such depth needs to train.
    pub fn stacked(hidden: usize, layers: usize) -> Self {
        Self {
            layers,
            bidirectional: false,
            residual: true,
            layer_norm: true,
            dropout: 0.2,
            ..Self::bilstm(hidden)
        }
    }

    /// Another pooling.
    pub fn pooling(self, pooling: Pooling) -> Self {
        Self { pooling, ..self }
    }

    /// Project to this width.
    pub fn width(self, width: usize) -> Self {
        Self {
            width: Some(width),
            ..self
        }
    }

    /// Another share of values dropped.
    pub fn dropout(self, dropout: f32) -> Self {
        Self { dropout, ..self }
    }

    /// d: the width of what the head reads.
    pub fn features(&self) -> usize {
        self.width.unwrap_or(self.lanes())
    }

    /// The width of a layer's output.
    pub fn lanes(&self) -> usize {
        self.hidden * if self.bidirectional { 2 } else { 1 }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let sizes = [
            ("hidden", Some(self.hidden)),
            ("layers", Some(self.layers)),
            ("width", self.width),
        ];
        for (name, value) in sizes {
            let (most, range) = if name == "layers" {
                (64, "1 to 64")
            } else {
                (65_536, "1 to 65536")
            };
            if let Some(value) = value.filter(|value| *value == 0 || *value > most) {
                return Err(Error::Setting {
                    name,
                    value: value.to_string(),
                    range,
                });
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            let value = self.dropout.to_string();
            return Err(Error::Setting {
                name: "dropout",
                value,
                range: "0 or more and below 1",
            });
        }
        Ok(())
    }
}

/// One named array among the parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct ArraySlot {
    /// Its name, as in files.
    pub name: String,
    /// Its shape, slowest dimension first.
    pub shape: Vec<usize>,
    /// Its place.
    pub range: Range<usize>,
}

/// A matrix and a bias among the parameters: out × in, column-major.
#[derive(Debug, Clone)]
pub struct LinearPlace {
    /// The width of what it reads.
    pub input: usize,
    /// The width of what it writes.
    pub output: usize,
    /// The matrix.
    pub weight: Range<usize>,
    /// The bias.
    pub bias: Range<usize>,
}

/// One layer: its normalisation and its one or two directions.
#[derive(Debug, Clone)]
pub struct LayerPlace {
    /// The width of what it reads.
    pub input: usize,
    /// Gain and shift.
    pub norm: Option<(Range<usize>, Range<usize>)>,
    /// One LSTM, or one a direction.
    pub directions: Vec<LstmPlace>,
    /// Whether it adds to what it reads.
    pub residual: bool,
}

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct EncoderPlan {
    /// The shape.
    pub settings: EncoderSettings,
    /// The word vectors, where they are trained.
    pub table: Option<Range<usize>>,
    /// Numbers of a word vector.
    pub word_width: usize,
    /// The layers, from the words up.
    pub layers: Vec<LayerPlace>,
    /// What follows the pooling, if anything does.
    pub projection: Option<LinearPlace>,
    /// The head of the training; the head that forgets is fitted afterwards.
    pub head: LinearPlace,
    slots: Vec<ArraySlot>,
    total: usize,
}

impl EncoderPlan {
    /// The places for an encoder of these settings over an embedding, with a head for `classes`.
    pub fn new(settings: EncoderSettings, embedding: &Embedding, classes: usize) -> Result<Self> {
        settings.check()?;
        let mut plan = Self {
            settings,
            table: None,
            word_width: embedding.width(),
            layers: Vec::new(),
            projection: None,
            head: LinearPlace {
                input: 0,
                output: 0,
                weight: 0..0,
                bias: 0..0,
            },
            slots: Vec::new(),
            total: 0,
        };
        let mut input = embedding.width();
        for at in 0..settings.layers {
            let norm = (settings.layer_norm && at > 0).then(|| {
                let gain = plan.add(format!("layer.{at}.norm.gain"), vec![input]);
                (
                    gain,
                    plan.add(format!("layer.{at}.norm.shift"), vec![input]),
                )
            });
            let ways = if settings.bidirectional {
                &["forward", "reverse"][..]
            } else {
                &["forward"]
            };
            let mut directions = Vec::new();
            for way in ways {
                let lstm = LstmPlace::at(plan.total, input, settings.hidden, *way == "reverse");
                let gates = 4 * settings.hidden;
                plan.add(format!("layer.{at}.{way}.weight_input"), vec![input, gates]);
                plan.add(
                    format!("layer.{at}.{way}.weight_hidden"),
                    vec![settings.hidden, gates],
                );
                plan.add(format!("layer.{at}.{way}.bias"), vec![gates]);
                directions.push(lstm);
            }
            let residual = settings.residual && input == settings.lanes();
            plan.layers.push(LayerPlace {
                input,
                norm,
                directions,
                residual,
            });
            input = settings.lanes();
        }
        if let Some(width) = settings.width {
            plan.projection = Some(plan.linear("projection", input, width));
        }
        plan.head = plan.linear("head", settings.features(), classes);
        if embedding.trained {
            let rows = embedding.words().len() + FIRST_WORD;
            plan.table = Some(plan.add("embedding".into(), vec![rows, embedding.width()]));
        }
        Ok(plan)
    }

    fn add(&mut self, name: String, shape: Vec<usize>) -> Range<usize> {
        let size: usize = shape.iter().product();
        let range = self.total..self.total + size;
        self.total += size;
        self.slots.push(ArraySlot {
            name,
            shape,
            range: range.clone(),
        });
        range
    }

    fn linear(&mut self, name: &str, input: usize, output: usize) -> LinearPlace {
        let weight = self.add(format!("{name}.weight"), vec![input, output]);
        LinearPlace {
            input,
            output,
            weight,
            bias: self.add(format!("{name}.bias"), vec![output]),
        }
    }

    /// How many parameters there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Every array in its place.
    pub fn slots(&self) -> &[ArraySlot] {
        &self.slots
    }

    /// What is shrunk by weight decay: matrices, but not word vectors, which only some steps see.
    pub fn decays(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let matrices = self
            .slots
            .iter()
            .filter(|slot| slot.shape.len() == 2 && slot.name != "embedding");
        matrices.map(|slot| slot.range.clone())
    }

    /// Random parameters: uniform in ±1/√H for LSTM layers, as PyTorch draws them, in ±√(6/(in +
    /// out)) for linear ones; biases 0, but 1 for the forget gate, so that a fresh network
    /// remembers.
    pub fn draw(&self, embedding: &Embedding, seed: u64) -> Vec<f32> {
        let mut random = seeded(seed);
        let mut values = vec![0.0; self.total];
        let mut fill = |range: Range<usize>, limit: f32| {
            if let Ok(uniform) = Uniform::new_inclusive(-limit, limit) {
                values[range]
                    .iter_mut()
                    .for_each(|value| *value = uniform.sample(&mut random));
            }
        };
        for lstm in self.layers.iter().flat_map(|layer| &layer.directions) {
            let limit = 1.0 / (lstm.hidden as f32).sqrt();
            fill(lstm.weight_input.clone(), limit);
            fill(lstm.weight_hidden.clone(), limit);
        }
        for linear in self.projection.iter().chain([&self.head]) {
            fill(
                linear.weight.clone(),
                (6.0 / (linear.input + linear.output) as f32).sqrt(),
            );
        }
        for layer in &self.layers {
            for lstm in &layer.directions {
                values[lstm.bias.clone()][lstm.hidden..2 * lstm.hidden].fill(1.0);
            }
            if let Some((gain, _)) = &layer.norm {
                values[gain.clone()].fill(1.0);
            }
        }
        if let Some(table) = &self.table {
            values[table.clone()].copy_from_slice(embedding.table());
        }
        values
    }
}
