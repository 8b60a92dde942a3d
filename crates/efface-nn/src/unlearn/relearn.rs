//! How soon a network knows forgotten rows again: steps of training on them alone until their loss
//! is what it was before. A network whose encoder still holds something of the rows is back sooner
//! than one that never saw them.

use efface::Rows;
use efface::eval::{RelearningTime, relearning_time};

use super::LessonSides;
use super::fine_tune::RetainedLoss;
use crate::backbone::Backbone;
use crate::error::Result;
use crate::texts::TrainingTexts;
use crate::train::{StepReport, TrainSettings, Trainer, TrainingFlow, TrainingProgress};

/// Ends a run after one step.
struct OneStep;

impl TrainingProgress for OneStep {
    fn step(&mut self, _report: &StepReport) -> TrainingFlow {
        TrainingFlow::Stop
    }
}

impl Backbone {
    /// The mean cross-entropy of some rows by the linear head that the encoder was trained with,
    /// without dropout.
    pub fn training_loss(&self, rows: &Rows) -> Result<f64> {
        Ok(self
            .relearn(
                rows,
                f64::INFINITY,
                1,
                f64::from(self.recipe.training.learning_rate),
            )?
            .start_loss)
    }

    /// Steps of AdamW at a constant rate on `rows` alone, encoder and head, until their mean
    /// cross-entropy is at most `target_loss`, for `limit` steps at most. The encoder itself is not
    /// changed.
    pub fn relearn(
        &self,
        rows: &Rows,
        target_loss: f64,
        limit: usize,
        learning_rate: f64,
    ) -> Result<RelearningTime> {
        let fit = &self.recipe.training;
        let mut lessons = TrainingTexts::empty(self.classes());
        lessons.append(rows, self.embedding())?;
        let all: Vec<usize> = (0..lessons.texts.len()).collect();
        let settings = TrainSettings {
            // A step is at least one of an epoch, so that no limit is cut short.
            epochs: limit,
            learning_rate: learning_rate as f32,
            warmup: 0.0,
            final_rate: 1.0,
            validation: 0.0,
            ..*fit
        };
        let objective = RetainedLoss(LessonSides {
            retained: all.clone(),
            forgotten: Vec::new(),
        });
        let parameters = self.parameters.to_vec();
        let frozen = self.embedding().table();
        let mut trainer = Trainer::new(
            &self.plan,
            frozen,
            &lessons,
            settings,
            parameters,
            String::new(),
        )?
        .towards(Box::new(objective));
        let step = |trainer: &mut Trainer<'_>| trainer.run(&mut OneStep);
        relearning_time(&mut trainer, target_loss, limit, step, |trainer| {
            Ok(trainer.judged(&all)?.0)
        })
    }
}
