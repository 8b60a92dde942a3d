//! The recipe of a network, in the core's own contract: rows of word ids in, a network out.
//! [`efface::Sisa`] takes it as it takes any other recipe, and so shards, slices and checkpoints
//! work on whole networks.

use std::collections::HashSet;
use std::sync::Arc;

use efface::random::training_seed;
use efface::{Recipe, RowStore, Rows};
use efface_receipt::canonical;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::backbone::{Backbone, encode, encoded_rows};
use crate::device::NetworkDevice;
use crate::embedding::Embedding;
use crate::encoder::EncoderWeights;
use crate::encoder_state::EncoderState;
use crate::error::{Error, Result};
use crate::head::fit_head;
use crate::network::Network;
use crate::plan::{EncoderPlan, EncoderSettings};
use crate::texts::TrainingTexts;
use crate::train::{StepObjective, TrainSettings, Trainer, TrainingCheckpoint, TrainingProgress};

/// The version of what [`NetworkRecipe::source`] hashes.
const SOURCE_VERSION: u32 = 1;

/// How to make a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkRecipe {
    /// Words and vectors to start from. After a training that changed them, those of the network
    /// are in its parameters.
    #[serde(skip)]
    pub embedding: Arc<Embedding>,
    /// The shape of the encoder.
    pub encoder: EncoderSettings,
    /// How it is trained.
    pub training: TrainSettings,
    /// What the head is fitted with afterwards: a ridge, logistic or softmax model, see
    /// [`head_recipe`](crate::head_recipe).
    pub head: Recipe,
}

/// A network, the features of its rows, and the training it came from.
#[derive(Debug, Clone)]
pub struct TrainedNetwork {
    /// The network.
    pub network: Network,
    /// What the head was fitted from.
    pub encoded: Rows,
    /// The training's last state, with its history.
    pub checkpoint: TrainingCheckpoint,
    /// The device that trained it, by name; None for the processor.
    pub device: Option<String>,
}

impl NetworkRecipe {
    /// Trains on rows of word ids, under the eyes of `progress`, and fits the head.
    pub fn train(
        &self,
        rows: &Rows,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        self.run(rows, None, None, progress)
    }

    /// Goes on from a checkpoint of the same recipe on the same rows; ends as if it had not been
    /// interrupted.
    pub fn continue_from(
        &self,
        checkpoint: TrainingCheckpoint,
        rows: &Rows,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        self.run(rows, None, Some(checkpoint), progress)
    }

    /// Trains, or goes on from a checkpoint, on a device, if it has room; else on the processor.
    /// The last bits of the result depend on the device, and it is told in it. A checkpoint of
    /// another device, or of the processor, is refused.
    pub fn train_on_device(
        &self,
        device: &dyn NetworkDevice,
        checkpoint: Option<TrainingCheckpoint>,
        rows: &Rows,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        self.run(rows, Some(device), checkpoint, progress)
    }

    /// The loss of the first minibatch of a training, and its gradient, by one thread of the
    /// processor or by a device: what a device is held to. None where the device has no room.
    pub fn first_gradient(
        &self,
        rows: &Rows,
        device: Option<&dyn NetworkDevice>,
    ) -> Result<Option<(f64, Vec<f32>)>> {
        let lessons = TrainingTexts::read(rows, &self.embedding)?;
        let plan = self.plan(lessons.class_count)?;
        let settings = TrainSettings {
            threads: 1,
            ..self.training
        };
        let drawn = plan.draw(&self.embedding, training_seed(settings.seed, 0, u64::MAX));
        let frozen = self.embedding.table();
        let mut trainer = Trainer::new(&plan, frozen, &lessons, settings, drawn, String::new())?;
        if let Some(device) = device
            && !trainer.on(device)?
        {
            return Ok(None);
        }
        trainer.first_gradient().map(Some)
    }

    fn run(
        &self,
        rows: &Rows,
        device: Option<&dyn NetworkDevice>,
        from: Option<TrainingCheckpoint>,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        if let Some(state) = &from {
            // A training whose loss overflowed may be resumed at a lower rate, so these two
            // settings may differ.
            let TrainSettings {
                learning_rate,
                clip,
                ..
            } = self.training;
            if (TrainSettings {
                learning_rate,
                clip,
                ..state.settings
            }) != self.training
            {
                return Err(Error::Damaged(
                    "the checkpoint was made with other training settings".into(),
                ));
            }
        }
        let lessons = TrainingTexts::read(rows, &self.embedding)?;
        let plan = self.plan(lessons.class_count)?;
        self.training.check()?;
        let frozen = self.embedding.table();
        let elsewhere = || {
            let what = "the checkpoint was made with other rows, words or settings of the encoder, or on another device";
            Error::Damaged(what.into())
        };
        let resumed = from.is_some();
        let mut source = self.source(&lessons, device.map(NetworkDevice::name).as_deref())?;
        let mut trainer = match from {
            Some(state) if state.source != source => return Err(elsewhere()),
            Some(state) => {
                let state = TrainingCheckpoint {
                    settings: self.training,
                    ..state
                };
                Trainer::from_checkpoint(&plan, frozen, &lessons, state)?
            }
            None => {
                let drawn = plan.draw(
                    &self.embedding,
                    training_seed(self.training.seed, 0, u64::MAX),
                );
                Trainer::new(&plan, frozen, &lessons, self.training, drawn, String::new())?
            }
        };
        let taken = match device {
            Some(device) if trainer.on(device)? => Some(device),
            // A device without room leaves the training to the processor, which cannot go on where
            // a device stopped.
            Some(_) if resumed => return Err(elsewhere()),
            Some(_) => {
                source = self.source(&lessons, None)?;
                None
            }
            None => None,
        };
        let device = taken;
        trainer.belongs_to(source);
        trainer.run(progress)?;
        let checkpoint = trainer.finish();
        let steps = checkpoint.step;
        let parameters = checkpoint.best().to_vec();
        self.close(
            rows,
            plan,
            TrainedParameters {
                parameters,
                steps,
                checkpoint,
                device,
            },
        )
    }

    /// Fits the head to its optimum on the features of a trained encoder.
    fn close(
        &self,
        rows: &Rows,
        plan: EncoderPlan,
        trained: TrainedParameters<'_>,
    ) -> Result<TrainedNetwork> {
        let TrainedParameters {
            parameters,
            steps,
            checkpoint,
            device,
        } = trained;
        let weights = EncoderWeights {
            plan: &plan,
            parameters: &parameters,
            frozen: self.embedding.table(),
        };
        let features = encode(weights, &self.embedding, &rows.table(), device)?;
        let encoded = encoded_rows(rows, features)?;
        let head = fit_head(&self.head, &encoded)?;
        let backbone = Backbone {
            recipe: self.clone(),
            plan: Arc::new(plan),
            parameters: Arc::new(parameters),
            steps,
            state: EncoderState::default(),
            max_tokens: rows.width(),
        };
        let network = Network { backbone, head };
        Ok(TrainedNetwork {
            network,
            encoded,
            checkpoint,
            device: device.map(NetworkDevice::name),
        })
    }

    /// The settings that a training follows from, as canonical JSON (RFC 8785) with a version: a
    /// checkpoint of another version is one of another training.
    fn source_header(&self, device: Option<&str>) -> Result<Vec<u8>> {
        let mut header = serde_json::json!({
            "version": SOURCE_VERSION,
            "encoder": self.encoder,
            "trains_words": self.embedding.trained,
        });
        if let Some(device) = device {
            // Another device rounds otherwise: what it left is no state of a training by this one.
            header["device"] = device.into();
        }
        canonical::write(&header).map_err(|fault| Error::Damaged(fault.to_string()))
    }

    /// A hash of all that the steps of a training follow from beside its settings.
    fn source(&self, lessons: &TrainingTexts, device: Option<&str>) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(self.source_header(device)?);
        for value in self.embedding.table() {
            hash.update(value.to_le_bytes());
        }
        for ((text, class), weight) in lessons
            .texts
            .iter()
            .zip(&lessons.classes)
            .zip(&lessons.weights)
        {
            for number in [text.len() as u32, *class as u32, weight.to_bits()]
                .iter()
                .chain(text)
            {
                hash.update(number.to_le_bytes());
            }
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    /// Removes the names of words that no row holds any more, where the words were chosen from the
    /// rows.
    pub fn remove_names(&mut self, unused: &HashSet<u32>) {
        if !self.embedding.public && !unused.is_empty() {
            Arc::make_mut(&mut self.embedding).remove_names(unused);
        }
    }

    pub(crate) fn plan(&self, classes: usize) -> Result<EncoderPlan> {
        EncoderPlan::new(self.encoder, &self.embedding, classes)
    }

    /// Trains on rows of word ids from the parameters of another network of this shape, with a
    /// fresh optimiser.
    pub fn train_from(
        &self,
        start: &Network,
        rows: &Rows,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        let lessons = TrainingTexts::read(rows, &self.embedding)?;
        self.train_on(
            &start.backbone,
            rows,
            &lessons,
            self.training,
            None,
            progress,
        )
    }

    /// Trains on from an encoder of this shape, with a fresh optimiser, towards what is given or
    /// else as a fit does, and fits the head on `rows`.
    pub(crate) fn train_on(
        &self,
        start: &Backbone,
        rows: &Rows,
        lessons: &TrainingTexts,
        settings: TrainSettings,
        objective: Option<Box<dyn StepObjective + '_>>,
        progress: &mut dyn TrainingProgress,
    ) -> Result<TrainedNetwork> {
        let plan = self.plan(lessons.class_count)?;
        if plan.slots() != start.plan.slots() {
            return Err(Error::Damaged(
                "the network to start from has another shape".into(),
            ));
        }
        let parameters = start.parameters.to_vec();
        let frozen = self.embedding.table();
        let source = self.source(lessons, None)?;
        let mut trainer = Trainer::new(&plan, frozen, lessons, settings, parameters, source)?;
        if let Some(objective) = objective {
            trainer = trainer.towards(objective);
        }
        trainer.run(progress)?;
        let checkpoint = trainer.finish();
        let steps = start.steps + checkpoint.step;
        let parameters = checkpoint.best().to_vec();
        self.close(
            rows,
            plan,
            TrainedParameters {
                parameters,
                steps,
                checkpoint,
                device: None,
            },
        )
    }
}

/// What a training left, and where.
struct TrainedParameters<'a> {
    parameters: Vec<f32>,
    steps: u64,
    checkpoint: TrainingCheckpoint,
    device: Option<&'a dyn NetworkDevice>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use efface::Ridge;

    /// Checkpoints are recognised by the hash of these bytes.
    #[test]
    fn what_a_training_follows_from_is_pinned() {
        let embedding = Embedding::new(vec!["word".into()], vec![0.5], 1).unwrap();
        let recipe = NetworkRecipe {
            embedding: Arc::new(embedding),
            encoder: EncoderSettings::bilstm(3),
            training: TrainSettings::default(),
            head: Ridge::new(1.0).into(),
        };
        let header = String::from_utf8(recipe.source_header(None).unwrap()).unwrap();
        assert_eq!(
            header,
            r#"{"encoder":{"bidirectional":true,"dropout":0.30000001192092896,"hidden":3,"layer_norm":false,"layers":1,"pooling":"max","residual":false,"squash":"tanh","width":null},"trains_words":false,"version":1}"#
        );
    }
}
