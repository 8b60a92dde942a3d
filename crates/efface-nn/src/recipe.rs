//! The recipe of a network, in the core's own contract: rows of word ids in, a network out. [`efface::Sisa`] takes it as it
//! takes any other recipe, and so shards, slices and checkpoints work on whole networks.

use std::sync::Arc;

use efface::{Fit, RowStore, Rows};

use crate::embedding::Embedding;
use crate::encoder::Weights;
use crate::error::{Error, Result};
use crate::head::HeadRecipe;
use crate::network::{Network, copy_features, encode, encoded_rows};
use crate::plan::{EncoderSettings, Plan};
use crate::texts::Lessons;
use crate::train::{Checkpoint, Progress, Quiet, TrainSettings, Trainer, mix};

/// How to make a network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRecipe {
    /// Words and vectors to start from. After a training that changed them, those of the network are in its parameters.
    pub embedding: Arc<Embedding>,
    /// The shape of the encoder.
    pub encoder: EncoderSettings,
    /// How it is trained.
    pub training: TrainSettings,
    /// What the head is fitted with afterwards.
    pub head: HeadRecipe,
}

/// A network, the features of its rows, and the training it came from.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The network.
    pub network: Network,
    /// What the head was fitted from.
    pub encoded: Rows,
    /// The training's last state, with its history.
    pub checkpoint: Checkpoint,
}

impl NetworkRecipe {
    /// Trains on rows of word ids, under the eyes of `progress`, and fits the head.
    pub fn train(&self, rows: &Rows, progress: &mut dyn Progress) -> Result<Trained> {
        self.run(rows, None, progress)
    }

    /// Goes on from a checkpoint of the same recipe on the same rows; ends as if it had not been interrupted.
    pub fn continue_from(
        &self,
        checkpoint: Checkpoint,
        rows: &Rows,
        progress: &mut dyn Progress,
    ) -> Result<Trained> {
        if checkpoint.settings != self.training {
            return Err(Error::Damaged("the checkpoint was made with other training settings".into()));
        }
        self.run(rows, Some(checkpoint), progress)
    }

    fn run(&self, rows: &Rows, from: Option<Checkpoint>, progress: &mut dyn Progress) -> Result<Trained> {
        let lessons = Lessons::read(rows, &self.embedding)?;
        let plan = self.plan(lessons.class_count)?;
        self.training.check()?;
        let frozen = self.embedding.table();
        let mut trainer = match from {
            Some(state) => Trainer::from_checkpoint(&plan, frozen, &lessons, state)?,
            None => {
                let drawn = plan.draw(&self.embedding, mix(self.training.seed, 0, u64::MAX));
                Trainer::new(&plan, frozen, &lessons, self.training, drawn)?
            }
        };
        trainer.run(progress)?;
        let checkpoint = trainer.finish();
        let steps = checkpoint.step;
        self.close(rows, plan, checkpoint.best().to_vec(), steps, checkpoint)
    }

    /// Fits the head to its optimum on the features of a trained encoder.
    fn close(
        &self,
        rows: &Rows,
        plan: Plan,
        parameters: Vec<f32>,
        steps: u64,
        checkpoint: Checkpoint,
    ) -> Result<Trained> {
        let weights = Weights { plan: &plan, parameters: &parameters, frozen: self.embedding.table() };
        let features = encode(weights, &self.embedding, &copy_features(rows)?)?;
        let encoded = encoded_rows(rows, features)?;
        let head = self.head.fit(&encoded)?;
        let network = Network {
            recipe: self.clone(),
            plan: Arc::new(plan),
            parameters: Arc::new(parameters),
            steps,
            max_tokens: rows.width(),
            head,
        };
        Ok(Trained { network, encoded, checkpoint })
    }

    pub(crate) fn plan(&self, classes: usize) -> Result<Plan> {
        Plan::new(self.encoder, &self.embedding, classes)
    }

    /// Trains on rows of word ids from the parameters of another network of this shape, with a fresh optimiser.
    pub fn train_from(&self, start: &Network, rows: &Rows, progress: &mut dyn Progress) -> Result<Trained> {
        let lessons = Lessons::read(rows, &self.embedding)?;
        let plan = self.plan(lessons.class_count)?;
        if plan.slots() != start.plan.slots() {
            return Err(Error::Damaged("the network to start from has another shape".into()));
        }
        let parameters = start.parameters.to_vec();
        let mut trainer = Trainer::new(&plan, self.embedding.table(), &lessons, self.training, parameters)?;
        trainer.run(progress)?;
        let checkpoint = trainer.finish();
        let steps = start.steps + checkpoint.step;
        self.close(rows, plan, checkpoint.best().to_vec(), steps, checkpoint)
    }
}

impl Fit for NetworkRecipe {
    type Model = Network;

    fn fit(&self, rows: &Rows) -> efface::Result<Network> {
        Ok(self.train(rows, &mut Quiet)?.network)
    }

    fn resume(&self, start: &Network, rows: &Rows) -> efface::Result<Network> {
        Ok(self.train_from(start, rows, &mut Quiet)?.network)
    }

    fn bytes(&self, model: &Network) -> usize {
        let head = match &model.head {
            crate::Head::Ridge(ridge) => ridge.precomputed().iter().map(|part| part.bytes).sum(),
            crate::Head::Classifier(_) => 0,
        };
        model.parameters.len() * size_of::<f32>() + head
    }
}
