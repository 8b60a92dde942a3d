//! A device that is the processor in disguise: a training on it must be the training itself, to the
//! last bit.

use std::sync::Arc;

use efface::{Rows, WordIds};

use crate::batch::TextBatch;
use crate::device::{
    AdamStep, DeviceBert, DeviceNetwork, DeviceRun, NetworkDevice, NetworkStart, TextScore,
};
use crate::encoder::EncoderWeights;
use crate::error::{Error, Result};
use crate::onnx::OnnxBert;
use crate::optimiser;
use crate::pool::BufferPool;
use crate::{
    Embedding, EncoderPlan, EncoderSettings, NetworkRecipe, QuietTraining, StepReport,
    TrainSettings, TrainingFlow, TrainingProgress,
};

#[derive(Debug, Clone, Copy)]
struct Disguise {
    has_room: bool,
}

struct DisguisedNetwork {
    plan: EncoderPlan,
    frozen: Vec<f32>,
    state: [Vec<f32>; 4],
    pool: BufferPool,
}

impl NetworkDevice for Disguise {
    fn name(&self) -> String {
        "a disguise".into()
    }

    fn network(
        &self,
        plan: &EncoderPlan,
        start: NetworkStart<'_>,
    ) -> Result<Option<Box<dyn DeviceNetwork>>> {
        let (means, squares) = start.moments.unwrap_or_default();
        let state = [
            start.parameters.to_vec(),
            means.to_vec(),
            squares.to_vec(),
            vec![0.0; plan.total()],
        ];
        let frozen = start.frozen.to_vec();
        let made = DisguisedNetwork {
            plan: plan.clone(),
            frozen,
            state,
            pool: BufferPool::default(),
        };
        Ok(self
            .has_room
            .then(|| Box::new(made) as Box<dyn DeviceNetwork>))
    }

    fn bert(&self, _: &OnnxBert<'_>, _: usize) -> Result<Option<Box<dyn DeviceBert>>> {
        Ok(None)
    }
}

impl DeviceNetwork for DisguisedNetwork {
    fn learn(&mut self, run: &DeviceRun<'_>) -> Result<Vec<TextScore>> {
        let Self {
            plan,
            frozen,
            state: [parameters, _, _, gradient],
            pool,
        } = self;
        Ok(EncoderWeights {
            plan,
            parameters,
            frozen,
        }
        .learn_run(run, gradient, pool))
    }

    fn lengths(&mut self) -> Result<(f64, f32)> {
        let largest = self.state[0]
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        Ok((optimiser::norm(&self.state[3]), largest))
    }

    fn step(&mut self, step: &AdamStep) -> Result<()> {
        let [parameters, means, squares, gradient] = &mut self.state;
        optimiser::step(&self.plan, (parameters, means, squares), gradient, step);
        gradient.fill(0.0);
        Ok(())
    }

    fn features(&mut self, batch: &TextBatch) -> Result<Vec<f32>> {
        let Self {
            plan,
            frozen,
            state: [parameters, ..],
            pool,
        } = self;
        Ok(EncoderWeights {
            plan,
            parameters,
            frozen,
        }
        .features_by_place(batch, pool))
    }

    fn read(
        &mut self,
        parameters: &mut [f32],
        means: &mut [f32],
        squares: &mut [f32],
    ) -> Result<()> {
        for (to, from) in [parameters, means, squares].into_iter().zip(&self.state) {
            to.copy_from_slice(from);
        }
        Ok(())
    }

    fn gradient(&mut self) -> Result<Vec<f32>> {
        Ok(self.state[3].clone())
    }
}

fn rows() -> Rows {
    let mut table = WordIds::new(9);
    let mut targets = Vec::new();
    for row in 0..90usize {
        let length = 1 + row * 7 % 9;
        let ids: Vec<u32> = (0..length)
            .map(|t| (2 + (row * 3 + t * 5 + row % 3) % 20) as u32)
            .collect();
        table.push(&ids).unwrap();
        targets.extend((0..3).map(|class| f64::from(u8::from(row % 3 == class))));
    }
    Rows::new(table, targets, 3).unwrap()
}

fn recipe(encoder: EncoderSettings, trains_words: bool) -> NetworkRecipe {
    let words = (0..20).map(|at| format!("w{at}")).collect();
    let embedding = Embedding::random(words, 5, 3)
        .unwrap()
        .trained(trains_words);
    let training = TrainSettings {
        epochs: 3,
        batch: 16,
        learning_rate: 0.02,
        ..TrainSettings::default()
    };
    NetworkRecipe {
        embedding: Arc::new(embedding),
        encoder,
        training,
        head: efface::Ridge::new(1.0).into(),
    }
}

#[test]
fn a_training_on_a_device_is_the_training() {
    let rows = rows();
    for (encoder, trains_words) in [
        (EncoderSettings::bilstm(4), false),
        (EncoderSettings::stacked(4, 3).width(3), true),
    ] {
        let recipe = recipe(encoder, trains_words);
        let here = recipe.train(&rows, &mut QuietTraining).unwrap();
        let device = Disguise { has_room: true };
        let there = recipe
            .train_on_device(&device, None, &rows, &mut QuietTraining)
            .unwrap();
        assert_eq!(
            (&here.device, there.device.as_deref()),
            (&None, Some("a disguise"))
        );
        assert_eq!(here.checkpoint.history, there.checkpoint.history);
        assert_eq!(here.checkpoint.best(), there.checkpoint.best());
        let arrays = |checkpoint: &crate::TrainingCheckpoint| {
            let crate::TrainingCheckpoint {
                parameters,
                means,
                squares,
                ..
            } = checkpoint.clone();
            [parameters, means, squares]
        };
        assert_eq!(arrays(&here.checkpoint), arrays(&there.checkpoint));
        let (mut a, mut b) = (here.encoded.iter(), there.encoded.iter());
        assert!(
            a.by_ref()
                .zip(b.by_ref())
                .all(|(a, b)| a.features.entries() == b.features.entries())
        );
        let first = |device| recipe.first_gradient(&rows, device).unwrap().unwrap();
        assert_eq!(first(None), first(Some(&device)));
    }
}

struct StopAt(u64);

impl TrainingProgress for StopAt {
    fn step(&mut self, report: &StepReport) -> TrainingFlow {
        if report.step == self.0 {
            TrainingFlow::Stop
        } else {
            TrainingFlow::Continue
        }
    }
}

#[test]
fn a_checkpoint_goes_on_where_it_was_made_and_nowhere_else() {
    let rows = rows();
    let recipe = recipe(EncoderSettings::bilstm(4), false);
    let device = Disguise { has_room: true };
    let whole = recipe
        .train_on_device(&device, None, &rows, &mut QuietTraining)
        .unwrap();
    let stopped = recipe
        .train_on_device(&device, None, &rows, &mut StopAt(7))
        .unwrap()
        .checkpoint;
    let resumed = recipe
        .train_on_device(&device, Some(stopped.clone()), &rows, &mut QuietTraining)
        .unwrap();
    assert_eq!(whole.checkpoint, resumed.checkpoint);
    for refused in [
        recipe.continue_from(stopped.clone(), &rows, &mut QuietTraining),
        recipe.train_on_device(
            &Disguise { has_room: false },
            Some(stopped),
            &rows,
            &mut QuietTraining,
        ),
    ] {
        let Err(Error::Damaged(what)) = refused else {
            panic!("a checkpoint of a device was taken up")
        };
        assert!(what.contains("another device"), "{what}");
    }
}

#[test]
fn a_device_without_room_leaves_the_training_to_the_processor() {
    let rows = rows();
    let recipe = recipe(EncoderSettings::bilstm(4), false);
    let here = recipe.train(&rows, &mut QuietTraining).unwrap();
    let device = Disguise { has_room: false };
    let there = recipe
        .train_on_device(&device, None, &rows, &mut QuietTraining)
        .unwrap();
    assert_eq!((here.checkpoint, there.device), (there.checkpoint, None));
    assert!(
        recipe
            .first_gradient(&rows, Some(&device))
            .unwrap()
            .is_none()
    );
}
