//! The recipes of penalised models: every setting, its default and its range.

use serde::{Deserialize, Serialize};

use super::loss::{PenalisedLoss, PoissonLoss, SquaredHinge};
use crate::error::{Error, Result};

/// How to fit a model of a convex loss with a penalty.
///
/// | setting | default | range | meaning |
/// |---|---|---|---|
/// | `lambda` | 1 | > 0 | strength of the penalty λ/2 ‖θ‖²: scikit-learn's 1/C for an SVM; its alpha, times the weight of all rows, for Poisson |
/// | `intercept` | true | | a constant; penalised in an SVM, as scikit-learn's is, and free in a Poisson regression |
/// | `tolerance` | 1e-6 | > 0 | relative distance to retraining that a change must reach |
/// | `max_iterations` | 200 | ≥ 1 | Newton steps before giving up |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Penalised<L> {
    /// λ.
    pub lambda: f64,
    /// Whether to fit a constant.
    pub intercept: bool,
    /// The relative distance to retraining that a change must reach.
    pub tolerance: f64,
    /// Newton steps before giving up.
    pub max_iterations: usize,
    #[serde(skip)]
    pub(super) loss: L,
}

/// A linear support vector machine with the squared hinge loss.
pub type LinearSvm = Penalised<SquaredHinge>;

/// Poisson regression.
pub type PoissonRegression = Penalised<PoissonLoss>;

impl<L: PenalisedLoss> Default for Penalised<L> {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            intercept: true,
            tolerance: 1e-6,
            max_iterations: 200,
            loss: L::default(),
        }
    }
}

impl<L: PenalisedLoss> Penalised<L> {
    /// A model of penalty `lambda`, other settings at their defaults.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda,
            ..Self::default()
        }
    }

    /// Whether to fit a constant.
    pub fn intercept(self, intercept: bool) -> Self {
        Self { intercept, ..self }
    }

    /// The relative distance to retraining that a change must reach.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("lambda", self.lambda), ("tolerance", self.tolerance)] {
            if !value.is_finite() || value <= 0.0 {
                // Bounds divide by λ, which is all that holds the parameters in place.
                return Err(Error::Parameter {
                    name,
                    value: value.to_string(),
                    range: "finite and above 0",
                });
            }
        }
        if self.max_iterations == 0 {
            return Err(Error::Parameter {
                name: "max_iterations",
                value: "0".into(),
                range: "at least 1",
            });
        }
        Ok(())
    }
}
