//! NegGrad+: descent on the loss of the retained rows and ascent on that of the rows to forget, in the same step.
//!
//! **What it does.** Every step minimises α · L(retained batch) − (1 − α) · L(forgotten batch). An epoch is a pass over the
//! retained rows; the forgotten ones come round as often as it takes, one minibatch a step.
//!
//! **What it guarantees.** Nothing. The loss of the forgotten rows ends where the steps leave it, which may be far above that of
//! a retrained network: an attacker tells such rows by how *badly* they are known.
//!
//! **What it costs.** E/E₀ of a retraining of E₀ epochs, and up to twice that, because each step reads a forgotten minibatch too.
//!
//! **When it fails.** The cross-entropy that is ascended has no maximum. With many epochs, a high rate or a small α it grows
//! without end and takes the retained rows along; when that of a step passes `loss_cap`, or a number stops being finite, the
//! method ends with an error and the old network stays.
//!
//! **From.** Kurmanji, Triantafillou, Hayes and Triantafillou (2023), "Towards unbounded machine unlearning". Their code uses
//! α = 0.95 or 0.9999, by the experiment; the default here is 0.95. They step by SGD, this crate by AdamW.

use super::{LOSS_CAP, Sides};
use crate::error::{Error, Result};
use crate::train::{Objective, StepDealer, StepGroup};

/// The settings of `neggrad_plus`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NegGradPlus {
    /// α: what the retained rows count for, above 0 and below 1; 0.95 by default.
    pub alpha: f64,
    /// E: passes over the retained rows, at least 1; 5 by default.
    pub epochs: usize,
    /// The rate of AdamW, above 0 and at most 1; None takes a quarter of the fit's at its highest.
    pub learning_rate: Option<f64>,
    /// The mean loss of a step's forgotten rows, in nats, that ends the method with an error; above 0, 20 by default.
    pub loss_cap: f64,
}

impl Default for NegGradPlus {
    fn default() -> Self {
        Self { alpha: 0.95, epochs: 5, learning_rate: None, loss_cap: LOSS_CAP }
    }
}

impl NegGradPlus {
    pub(super) fn check(&self) -> Result<()> {
        if !(self.alpha > 0.0 && self.alpha < 1.0) {
            let value = self.alpha.to_string();
            return Err(Error::Setting { name: "alpha", value, range: "above 0 and below 1" });
        }
        check_cap(self.loss_cap)
    }
}

/// A cap that can be reached, and by a loss that says something.
pub(super) fn check_cap(cap: f64) -> Result<()> {
    if cap.is_finite() && cap > 0.0 {
        return Ok(());
    }
    Err(Error::Setting { name: "loss_cap", value: cap.to_string(), range: "finite and above 0" })
}

/// α · L(retained) − (1 − α) · L(forgotten).
pub(super) struct SignedLoss {
    pub(super) settings: NegGradPlus,
    pub(super) sides: Sides,
}

impl Objective for SignedLoss {
    fn steps(&self, dealer: &StepDealer<'_>) -> Vec<Vec<StepGroup>> {
        let alpha = self.settings.alpha as f32;
        let forgotten = dealer.batches(&self.sides.forgotten, 2);
        let retained = dealer.batches(&self.sides.retained, 1).into_iter();
        let step = |(at, rows): (usize, Vec<usize>)| {
            let mut groups = vec![StepGroup { rows, label: alpha, teacher: 0.0 }];
            if !forgotten.is_empty() {
                let rows = forgotten[at % forgotten.len()].clone();
                groups.push(StepGroup { rows, label: alpha - 1.0, teacher: 0.0 });
            }
            groups
        };
        retained.enumerate().map(step).collect()
    }

    fn loss_cap(&self) -> f64 {
        self.settings.loss_cap
    }
}
