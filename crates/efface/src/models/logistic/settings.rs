//! The recipes of the two classifiers: every setting, its default and its range.

use serde::{Deserialize, Serialize};

use super::Link;
use crate::error::{Error, Result};

/// How to fit a classifier of two classes, with targets −1 and 1.
///
/// | setting | default | range | meaning |
/// |---|---|---|---|
/// | `lambda` | 1 | ≥ 0 | strength of the penalty λ/2 ‖θ‖²; scikit-learn's 1/C |
/// | `intercept` | true | | an unpenalised constant |
/// | `gradient` | 1e-10 | > 0 | training stops at this gradient norm |
/// | `tolerance` | 3e-4 | > 0 | relative distance bound that `auto`, learn and amend must reach; what claims to be exact reaches 1e-6 too |
/// | `threads` | 1 | ≥ 1 | threads for passes over the rows |
/// | `max_iterations` | 200 | ≥ 1 | training steps before giving up |
/// | `curvature` | true | | keep what forgetting without the rows needs; false inside SISA, where shards retrain |
/// | `privacy` | none | | train with noise, so that forgetting is certified |
/// | `as_given` | false | | compute in the units of the features as they are, and not in units read off the rows: for features of like size |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Logistic {
    /// λ.
    pub lambda: f64,
    /// Whether to fit a constant.
    pub intercept: bool,
    /// Training stops at this gradient norm.
    pub gradient: f64,
    /// The relative distance bound that `auto`, learn and amend must reach.
    pub tolerance: f64,
    /// Threads for passes over the rows.
    pub threads: usize,
    /// Training steps before giving up.
    pub max_iterations: usize,
    /// Whether to keep what forgetting without the rows needs.
    pub curvature: bool,
    /// Train with noise, so that forgetting is certified.
    pub privacy: Option<Privacy>,
    /// Whether to compute in the units of the features as they are. Otherwise the units are read
    /// off the rows, which suits columns of any size; no prediction depends on it. As they are,
    /// nothing of a row is in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_given: bool,
}

/// How to fit a classifier of many classes, with targets 1 for the row's own class and 0 for the
/// others. The settings are those of [`Logistic`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Softmax {
    /// λ.
    pub lambda: f64,
    /// Whether to fit a constant per class.
    pub intercept: bool,
    /// Training stops at this gradient norm.
    pub gradient: f64,
    /// The relative distance bound that `auto`, learn and amend must reach.
    pub tolerance: f64,
    /// Threads for passes over the rows.
    pub threads: usize,
    /// Training steps before giving up.
    pub max_iterations: usize,
    /// Whether to keep what forgetting without the rows needs.
    pub curvature: bool,
    /// Whether to compute in the units of the features as they are. Otherwise the units are read
    /// off the rows, which suits columns of any size; no prediction depends on it. As they are,
    /// nothing of a row is in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_given: bool,
}

/// What certified forgetting promises, and how.
///
/// Every row is scaled to a norm of at most 1, the constant included, and every parameter is
/// penalised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// ε, above 0.
    pub epsilon: f64,
    /// δ, between 0 and 1.
    pub delta: f64,
    /// The method that certifies.
    pub certifier: Certifier,
    /// Secret seed of the noise. The noise also depends on the ids of the rows, so that other rows
    /// have other noise. With the seed the noise can be subtracted again: keep it secret.
    pub seed: u64,
}

/// The two ways to certify.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certifier {
    /// Noise in the objective (Guo et al. 2020). Per parameter, its standard deviation.
    Removal {
        /// σ. More noise is a larger budget and a worse model.
        noise: f64,
    },
    /// Noise on what is published (Neel et al. 2021).
    Descent {
        /// The distance to the optimum that gradient descent must reach before publishing; less
        /// needs less noise and more iterations.
        distance: f64,
    },
}

/// The settings of either recipe, in one type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassifierSettings {
    /// Which loss.
    pub link: Link,
    /// Everything else.
    pub logistic: Logistic,
}

impl Default for Logistic {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            intercept: true,
            gradient: 1e-10,
            tolerance: 3e-4,
            threads: 1,
            max_iterations: 200,
            curvature: true,
            privacy: None,
            as_given: false,
        }
    }
}

impl Default for Softmax {
    fn default() -> Self {
        Logistic::default().softmax()
    }
}

impl Logistic {
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

    /// How many threads passes over the rows may use.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The relative distance bound that `auto`, learn and amend must reach.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Whether to keep what forgetting without the rows needs.
    pub fn curvature(self, curvature: bool) -> Self {
        Self { curvature, ..self }
    }

    /// Whether to compute in the units of the features as they are, and not in units read off the
    /// rows.
    pub fn as_given(self, as_given: bool) -> Self {
        Self { as_given, ..self }
    }

    /// Train with noise, so that forgetting is certified.
    pub fn privacy(self, privacy: Privacy) -> Self {
        Self {
            privacy: Some(privacy),
            ..self
        }
    }

    /// These settings for more than two classes. Privacy is left out, because certified forgetting
    /// is for two classes.
    pub fn softmax(self) -> Softmax {
        let Self {
            lambda,
            intercept,
            gradient,
            tolerance,
            threads,
            max_iterations,
            curvature,
            as_given,
            ..
        } = self;
        Softmax {
            lambda,
            intercept,
            gradient,
            tolerance,
            threads,
            max_iterations,
            curvature,
            as_given,
        }
    }

    /// What a model fitted with this recipe says of itself.
    pub fn settings(self) -> ClassifierSettings {
        ClassifierSettings {
            link: Link::Logistic,
            logistic: self,
        }
    }
}

impl Softmax {
    /// A model of penalty `lambda`, other settings at their defaults.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda,
            ..Self::default()
        }
    }

    /// Whether to fit a constant per class.
    pub fn intercept(self, intercept: bool) -> Self {
        Self { intercept, ..self }
    }

    /// How many threads passes over the rows may use.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The relative distance bound that `auto`, learn and amend must reach.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Whether to keep what forgetting without the rows needs.
    pub fn curvature(self, curvature: bool) -> Self {
        Self { curvature, ..self }
    }

    /// Whether to compute in the units of the features as they are, and not in units read off the
    /// rows.
    pub fn as_given(self, as_given: bool) -> Self {
        Self { as_given, ..self }
    }

    /// What a model fitted with this recipe says of itself.
    pub fn settings(self) -> ClassifierSettings {
        let Self {
            lambda,
            intercept,
            gradient,
            tolerance,
            threads,
            max_iterations,
            curvature,
            as_given,
        } = self;
        let logistic = Logistic {
            lambda,
            intercept,
            gradient,
            tolerance,
            threads,
            max_iterations,
            curvature,
            privacy: None,
            as_given,
        };
        ClassifierSettings {
            link: Link::Softmax,
            logistic,
        }
    }
}

impl Privacy {
    /// Certified removal at (ε, δ) with noise of standard deviation σ = 1 in the objective, from a
    /// secret seed.
    pub fn removal(epsilon: f64, delta: f64, seed: u64) -> Self {
        Self {
            epsilon,
            delta,
            certifier: Certifier::Removal { noise: 1.0 },
            seed,
        }
    }

    /// Descent to delete at (ε, δ), to a distance of 1e-3 of the optimum, with noise from a secret
    /// seed.
    pub fn descent(epsilon: f64, delta: f64, seed: u64) -> Self {
        Self {
            epsilon,
            delta,
            certifier: Certifier::Descent { distance: 1e-3 },
            seed,
        }
    }

    /// Another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn check(&self, lambda: f64) -> Result<()> {
        let refuse = |name, value: f64, range| {
            Err(Error::Parameter {
                name,
                value: value.to_string(),
                range,
            })
        };
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(self.epsilon) {
            return refuse("epsilon", self.epsilon, "finite and above 0");
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return refuse("delta", self.delta, "above 0 and below 1");
        }
        if !positive(lambda) {
            return refuse(
                "lambda",
                lambda,
                "above 0 for a certified model: the proof rests on it",
            );
        }
        match self.certifier {
            Certifier::Removal { noise } if !positive(noise) => {
                refuse("noise", noise, "finite and above 0")
            }
            Certifier::Descent { distance } if !positive(distance) => {
                refuse("distance", distance, "finite and above 0")
            }
            _ => Ok(()),
        }
    }
}

/// The relative distance bound above which nothing of a classifier is called exact, whatever its
/// tolerance.
const EXACT: f64 = 1e-6;

impl ClassifierSettings {
    /// The relative distance bound of what is called exact.
    pub(crate) fn exact_tolerance(&self) -> f64 {
        self.logistic.tolerance.min(EXACT)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let Logistic {
            lambda,
            gradient,
            tolerance,
            threads,
            max_iterations,
            privacy,
            ..
        } = self.logistic;
        if !lambda.is_finite() || lambda < 0.0 {
            let value = lambda.to_string();
            return Err(Error::Parameter {
                name: "lambda",
                value,
                range: "finite and 0 or more",
            });
        }
        for (name, value) in [("gradient", gradient), ("tolerance", tolerance)] {
            if !value.is_finite() || value <= 0.0 {
                return Err(Error::Parameter {
                    name,
                    value: value.to_string(),
                    range: "finite and above 0",
                });
            }
        }
        for (name, value) in [("threads", threads), ("max_iterations", max_iterations)] {
            if value == 0 {
                return Err(Error::Parameter {
                    name,
                    value: "0".into(),
                    range: "at least 1",
                });
            }
        }
        privacy.map_or(Ok(()), |privacy| privacy.check(lambda))
    }
}
