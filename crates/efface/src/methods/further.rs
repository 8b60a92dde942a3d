//! The settings of the methods that train a whole network further. The numerics core has no
//! networks: how they work, what they cost and when they fail stands beside their implementation,
//! in the crate of networks.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The cross-entropy of rows to forget, in nats, at which a method stops by default: they have a
/// probability of e⁻²⁰ by then.
const LOSS_CAP: f64 = 20.0;

/// The settings of `fine_tune`: the network is trained on, on the retained rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FineTune {
    /// E: passes over the retained rows, at least 1; 5 by default.
    pub epochs: usize,
    /// The rate of AdamW, above 0 and at most 1; None takes that of the fit at its highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
}

impl Default for FineTune {
    fn default() -> Self {
        Self {
            epochs: 5,
            learning_rate: None,
        }
    }
}

impl FineTune {
    /// Refuses a setting outside its range.
    pub fn check(&self) -> Result<()> {
        check_steps(self.epochs, self.learning_rate)
    }
}

/// The settings of `neggrad_plus`: descent on the loss of the retained rows, ascent on that of the
/// rows to forget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NegGradPlus {
    /// α: what the retained rows count for, above 0 and below 1; 0.95 by default.
    pub alpha: f64,
    /// E: passes over the retained rows, at least 1; 5 by default.
    pub epochs: usize,
    /// The rate of AdamW, above 0 and at most 1; None takes a quarter of the fit's at its highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The mean loss of a step's forgotten rows, in nats, that ends the method with an error; above
    /// 0, 20 by default.
    pub loss_cap: f64,
}

impl Default for NegGradPlus {
    fn default() -> Self {
        Self {
            alpha: 0.95,
            epochs: 5,
            learning_rate: None,
            loss_cap: LOSS_CAP,
        }
    }
}

impl NegGradPlus {
    /// Refuses a setting outside its range.
    pub fn check(&self) -> Result<()> {
        check_steps(self.epochs, self.learning_rate)?;
        if !(self.alpha > 0.0 && self.alpha < 1.0) {
            return refuse("alpha", self.alpha, "above 0 and below 1");
        }
        check_cap(self.loss_cap)
    }
}

/// The settings of `scrub`: the network is driven away from its old answers on the rows to forget,
/// and held near them on the retained rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scrub {
    /// E: passes over the retained rows, at least 1; 5 by default.
    pub epochs: usize,
    /// M: the first epochs that also pass over the forgotten rows, 1 to E; 2 by default.
    pub max_epochs: usize,
    /// α: what the divergence counts for on retained rows, finite and 0 or more; 0.5 by default.
    pub alpha: f64,
    /// γ: what the cross-entropy counts for on retained rows, finite and 0 or more; 1 by default.
    pub gamma: f64,
    /// The rate of AdamW, above 0 and at most 1; None takes a quarter of the fit's at its highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The mean loss of a step's forgotten rows, in nats, that ends the method with an error; above
    /// 0, 20 by default.
    pub loss_cap: f64,
}

impl Default for Scrub {
    fn default() -> Self {
        Self {
            epochs: 5,
            max_epochs: 2,
            alpha: 0.5,
            gamma: 1.0,
            learning_rate: None,
            loss_cap: LOSS_CAP,
        }
    }
}

impl Scrub {
    /// Refuses a setting outside its range.
    pub fn check(&self) -> Result<()> {
        check_steps(self.epochs, self.learning_rate)?;
        if self.max_epochs == 0 || self.max_epochs > self.epochs {
            return refuse(
                "max_epochs",
                self.max_epochs,
                "at least 1 and at most the epochs",
            );
        }
        for (name, value) in [("alpha", self.alpha), ("gamma", self.gamma)] {
            if !value.is_finite() || value < 0.0 {
                return refuse(name, value, "finite and 0 or more");
            }
        }
        if self.alpha + self.gamma == 0.0 {
            return refuse(
                "gamma",
                0,
                "above 0 where alpha is 0: nothing would hold the retained rows",
            );
        }
        check_cap(self.loss_cap)
    }
}

fn refuse(name: &'static str, value: impl ToString, range: &'static str) -> Result<()> {
    Err(Error::Parameter {
        name,
        value: value.to_string(),
        range,
    })
}

fn check_steps(epochs: usize, learning_rate: Option<f64>) -> Result<()> {
    if epochs == 0 {
        return refuse("epochs", epochs, "at least 1");
    }
    match learning_rate {
        Some(rate) if !(rate > 0.0 && rate <= 1.0) => {
            refuse("learning_rate", rate, "above 0 and at most 1")
        }
        _ => Ok(()),
    }
}

/// A cap must be a number that a loss can reach.
fn check_cap(cap: f64) -> Result<()> {
    if cap.is_finite() && cap > 0.0 {
        return Ok(());
    }
    refuse("loss_cap", cap, "finite and above 0")
}
