//! NegGrad+: descent on the loss of the retained rows and ascent on that of the rows to forget, in
//! the same step.
//!
//! **What it does.** Every step minimises α · L(retained batch) − (1 − α) · L(forgotten batch). An
//! epoch is a pass over the retained rows; the forgotten ones come round as often as it takes, one
//! minibatch a step.
//!
//! **What it guarantees.** Nothing. The loss of the forgotten rows ends where the steps leave it,
//! which may be far above that of a retrained network: an attacker tells such rows by how *badly*
//! they are known.
//!
//! **What it costs.** E/E₀ of a retraining of E₀ epochs, and up to twice that, because each step
//! reads a forgotten minibatch too.
//!
//! **When it fails.** The cross-entropy that is ascended has no maximum. With many epochs, a high
//! rate or a small α it grows without end and takes the retained rows along; when that of a step
//! passes `loss_cap`, or a number stops being finite, the method ends with an error and the old
//! network stays.
//!
//! **From.** Kurmanji, Triantafillou, Hayes and Triantafillou (2023), "Towards unbounded machine
//! unlearning". Their code uses α = 0.95 or 0.9999, by the experiment; the default here is 0.95.
//! They step by SGD, this crate by AdamW.

use efface::methods::NegGradPlus;

use super::LessonSides;
use crate::train::{StepDealer, StepGroup, StepObjective};

/// α · L(retained) − (1 − α) · L(forgotten).
pub(super) struct SignedLoss {
    pub(super) settings: NegGradPlus,
    pub(super) sides: LessonSides,
}

impl StepObjective for SignedLoss {
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>> {
        let alpha = self.settings.alpha as f32;
        let forgotten = dealer.batches(&self.sides.forgotten, 2);
        let retained = dealer.batches(&self.sides.retained, 1).into_iter();
        let step = |(at, rows): (usize, Vec<usize>)| {
            let mut groups = vec![StepGroup {
                rows,
                label: alpha,
                teacher: 0.0,
            }];
            if !forgotten.is_empty() {
                let rows = forgotten[at % forgotten.len()].clone();
                groups.push(StepGroup {
                    rows,
                    label: alpha - 1.0,
                    teacher: 0.0,
                });
            }
            groups
        };
        retained.enumerate().map(step).collect()
    }

    fn loss_cap(&self) -> f64 {
        self.settings.loss_cap
    }
}
