//! SCRUB: a student starts as a copy of the trained network, its teacher, and is driven away from
//! the teacher on the rows to forget and held near it on the retained ones.
//!
//! **What it does.** In each of the first M epochs a pass over the forgotten rows *maximises*
//! KL(teacher‖student); then, and in every later epoch, a pass over the retained rows minimises α ·
//! KL(teacher‖student) + γ · cross-entropy. The teacher's answers are computed once, without
//! dropout.
//!
//! **What it guarantees.** Nothing. How far the forgotten rows end from where a retrained network
//! has them depends on M and E. (The paper's SCRUB+R rewinds to the epoch whose forgotten loss is
//! that of comparable unseen rows. It is not here: an engine has no such rows.)
//!
//! **What it costs.** E/E₀ of a retraining of E₀ epochs, M passes over the forgotten rows and one
//! pass of inference over all.
//!
//! **When it fails.** Without dropout the student *is* the teacher at the first step, where the
//! gradient of the divergence is 0, so that the first pass over the forgotten rows begins with
//! rounding errors. The divergence has no maximum: the method ends with an error, and the old
//! network stays, when the loss of a step's forgotten rows passes `loss_cap` or a number stops
//! being finite.
//!
//! **From.** Kurmanji, Triantafillou, Hayes and Triantafillou (2023), "Towards unbounded machine
//! unlearning". Their code uses M of 2 or 3, E of 3 to 10, γ near 1 and α between 0.001 and 0.5 by
//! the experiment, softens both sides by a temperature, and steps by SGD or Adam. Here M = 2, E =
//! 5, γ = 1, α = 0.5, no temperature (as in the paper's formulas) and AdamW.

use efface::methods::Scrub;

use super::LessonSides;
use crate::backbone::Backbone;
use crate::encoder::EncoderWeights;
use crate::pool::BufferPool;
use crate::texts::TrainingTexts;
use crate::train::{StepDealer, StepGroup, StepObjective, in_chunks};

/// The objective, with the teacher's answers.
pub(super) struct DistillationObjective {
    settings: Scrub,
    sides: LessonSides,
    /// The teacher's probabilities, a row of classes a lesson.
    answers: Vec<f32>,
    classes: usize,
}

impl DistillationObjective {
    pub(super) fn new(
        settings: Scrub,
        sides: LessonSides,
        teacher: &Backbone,
        lessons: &TrainingTexts,
    ) -> Self {
        let weights = EncoderWeights {
            plan: &teacher.plan,
            parameters: &teacher.parameters,
            frozen: teacher.embedding().table(),
        };
        let texts: Vec<&[u32]> = lessons.texts.iter().map(Vec::as_slice).collect();
        let mut pool = BufferPool::default();
        let answer = |texts: &[&[u32]]| weights.probabilities(texts, &mut pool);
        let answers = in_chunks(&texts).into_iter().flat_map(answer).collect();
        Self {
            settings,
            sides,
            answers,
            classes: teacher.classes(),
        }
    }
}

impl StepObjective for DistillationObjective {
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>> {
        let Scrub {
            max_epochs,
            alpha,
            gamma,
            ..
        } = self.settings;
        let mut steps = Vec::new();
        if dealer.epoch() < max_epochs {
            let part = |rows| {
                vec![StepGroup {
                    rows,
                    label: 0.0,
                    teacher: -1.0,
                }]
            };
            steps.extend(
                dealer
                    .batches(&self.sides.forgotten, 2)
                    .into_iter()
                    .map(part),
            );
        }
        let hold = |rows| {
            vec![StepGroup {
                rows,
                label: gamma as f32,
                teacher: alpha as f32,
            }]
        };
        steps.extend(
            dealer
                .batches(&self.sides.retained, 1)
                .into_iter()
                .map(hold),
        );
        steps
    }

    fn taught(&self, row: usize) -> &[f32] {
        &self.answers[row * self.classes..(row + 1) * self.classes]
    }

    fn loss_cap(&self) -> f64 {
        self.settings.loss_cap
    }
}
