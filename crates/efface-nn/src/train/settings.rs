//! The settings of a training, their ranges, and the rate at a step.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How to train.
///
/// | setting | default | range | meaning |
/// |---|---|---|---|
/// | `epochs` | 20 | ≥ 0 | passes over the rows; 0 leaves the encoder as drawn |
/// | `batch` | 64 | ≥ 1 | texts a step |
/// | `learning_rate` | 2e-3 | > 0 | of AdamW, at its highest |
/// | `warmup` | 0.05 | 0 to 1 | share of all steps over which the rate rises |
/// | `final_rate` | 0.05 | 0 to 1 | share of the rate that is left at the end; it falls as a cosine |
/// | `weight_decay` | 0.01 | ≥ 0 | on matrices |
/// | `clip` | 1 | > 0 | largest norm of a gradient |
/// | `validation` | 0.1 | 0 to 0.5 | share of the rows that validate and are not learned from; a class keeps its last row |
/// | `patience` | 5 | ≥ 1 | epochs without a better validation before stopping |
/// | `seed` | 0 | | seed of every random choice |
/// | `threads` | 1 | 1 to 256 | among which a minibatch is dealt out |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrainSettings {
    /// Passes over the rows.
    pub epochs: usize,
    /// Texts in a step.
    pub batch: usize,
    /// The rate at its highest.
    pub learning_rate: f32,
    /// Share of all steps over which the rate rises.
    pub warmup: f32,
    /// Share of the rate that is left at the end.
    pub final_rate: f32,
    /// By how much a step shrinks matrices, as a share of the rate.
    pub weight_decay: f32,
    /// Largest norm of a gradient.
    pub clip: f32,
    /// Share of the rows that validate and are not learned from.
    pub validation: f32,
    /// Epochs without a better validation before stopping.
    pub patience: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// Threads that share a minibatch.
    pub threads: usize,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            epochs: 20,
            batch: 64,
            learning_rate: 2e-3,
            warmup: 0.05,
            final_rate: 0.05,
            weight_decay: 0.01,
            clip: 1.0,
            validation: 0.1,
            patience: 5,
            seed: 0,
            threads: 1,
        }
    }
}

impl TrainSettings {
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |name, value: String, range| Err(Error::Setting { name, value, range });
        for (name, value) in [
            ("batch", self.batch),
            ("patience", self.patience),
            ("threads", self.threads),
        ] {
            if value == 0 || (name == "threads" && value > 256) {
                return refuse(name, value.to_string(), "at least 1 (threads: at most 256)");
            }
        }
        for (name, value) in [("learning_rate", self.learning_rate), ("clip", self.clip)] {
            if !value.is_finite() || value <= 0.0 {
                return refuse(name, value.to_string(), "finite and above 0");
            }
        }
        for (name, value) in [("warmup", self.warmup), ("final_rate", self.final_rate)] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(name, value.to_string(), "0 to 1");
            }
        }
        if !self.weight_decay.is_finite() || self.weight_decay < 0.0 {
            return refuse(
                "weight_decay",
                self.weight_decay.to_string(),
                "finite and 0 or more",
            );
        }
        if !(0.0..=0.5).contains(&self.validation) {
            return refuse("validation", self.validation.to_string(), "0 to 0.5");
        }
        Ok(())
    }

    /// The rate at a step, of `total`.
    pub(super) fn rate(&self, step: u64, total: u64) -> f32 {
        let warmup = (f64::from(self.warmup) * total as f64).max(1.0);
        let rise = ((step + 1) as f64 / warmup).min(1.0);
        let done = (step as f64 / total.max(1) as f64).min(1.0);
        let fall = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
        let last = f64::from(self.final_rate);
        (f64::from(self.learning_rate) * rise * (last + (1.0 - last) * fall)) as f32
    }
}
