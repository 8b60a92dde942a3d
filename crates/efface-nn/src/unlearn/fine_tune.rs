//! Fine-tuning: the network is trained on, on the retained rows alone.
//!
//! **What it does.** E epochs of the fit's own steps over the retained rows, from the trained
//! parameters.
//!
//! **What it guarantees.** Nothing. Nothing pushes the forgotten rows out; the hope is that what
//! was memorised of them alone fades while the network is busy with the others (catastrophic
//! forgetting).
//!
//! **What it costs.** E/E₀ of a retraining of E₀ epochs. It reads the retained rows and not the
//! forgotten ones.
//!
//! **When it fails.** A network whose retained loss is near 0 has gradients near 0, so that it
//! hardly moves, and the forgotten rows stay as well known as they were.
//!
//! **From.** The baseline of Golatkar, Achille and Soatto (2020), "Eternal sunshine of the spotless
//! net", and of most papers since.

use super::LessonSides;
use crate::train::{StepDealer, StepGroup, StepObjective};

/// The loss of the retained rows.
pub(super) struct RetainedLoss(pub(super) LessonSides);

impl StepObjective for RetainedLoss {
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>> {
        let learn = |rows| {
            vec![StepGroup {
                rows,
                label: 1.0,
                teacher: 0.0,
            }]
        };
        dealer
            .batches(&self.0.retained, 1)
            .into_iter()
            .map(learn)
            .collect()
    }
}
