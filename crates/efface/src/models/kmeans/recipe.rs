//! The settings of k-means, with their ranges.

use serde::{Deserialize, Serialize};

use super::trace::IterationRules;
use crate::error::{Error, Result};

/// The most leaves of a tree: with more, most leaves would hold no row.
const MOST_LEAVES: usize = 1 << 20;

/// How the rows are clustered, and thereby how they are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Scheme {
    /// Q-k-means: centres on a random lattice.
    Quantised {
        /// ε, the side of a lattice cell, in the units of the features; above 0. Fixed, so that it
        /// does not depend on n.
        epsilon: f64,
        /// γ: a cluster below γ·M/k of the total mass M is pulled back to its previous centre; 0 to
        /// 1.
        gamma: f64,
    },
    /// DC-k-means: a tree of small problems.
    Divided {
        /// h, the levels below the root; at least 1.
        height: usize,
        /// w, the children of a node; at least 2.
        width: usize,
    },
}

/// The recipe of a k-means model. Targets are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KMeans {
    /// The clusters; at least 1, at most the number of distinct points.
    pub k: usize,
    /// T, the most iterations of a run; at least 1. It ends earlier when the loss does not fall.
    pub iterations: usize,
    /// Seed of every random choice; what a row draws also depends on its id.
    pub seed: u64,
    /// How the rows are clustered.
    pub scheme: Scheme,
}

impl KMeans {
    /// Q-k-means with cells of side `epsilon`, γ = 0.2 and ten iterations.
    pub fn quantised(k: usize, epsilon: f64) -> Self {
        Self {
            k,
            iterations: 10,
            seed: 0,
            scheme: Scheme::Quantised {
                epsilon,
                gamma: 0.2,
            },
        }
    }

    /// DC-k-means over `width`^`height` leaves, with ten iterations a node.
    pub fn divided(k: usize, height: usize, width: usize) -> Self {
        Self {
            k,
            iterations: 10,
            seed: 0,
            scheme: Scheme::Divided { height, width },
        }
    }

    /// Another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Another limit on the iterations.
    pub fn iterations(self, iterations: usize) -> Self {
        Self { iterations, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |name, value: String, range| Err(Error::Parameter { name, value, range });
        if self.k == 0 {
            return refuse("clusters", "0".into(), "at least 1");
        }
        if self.iterations == 0 {
            return refuse("iterations", "0".into(), "at least 1");
        }
        match self.scheme {
            Scheme::Quantised { epsilon, .. } if !(epsilon > 0.0 && epsilon.is_finite()) => {
                refuse("epsilon", epsilon.to_string(), "above 0 and finite")
            }
            Scheme::Quantised { gamma, .. } if !(0.0..=1.0).contains(&gamma) => {
                refuse("gamma", gamma.to_string(), "0 to 1")
            }
            Scheme::Divided { height: 0, .. } => refuse("height", "0".into(), "at least 1"),
            Scheme::Divided { width, .. } if width < 2 => {
                refuse("width", width.to_string(), "at least 2")
            }
            Scheme::Divided { height, width } => {
                let leaves = u32::try_from(height)
                    .ok()
                    .and_then(|height| width.checked_pow(height));
                match leaves {
                    Some(leaves) if leaves <= MOST_LEAVES => Ok(()),
                    _ => refuse("leaves", format!("{width}^{height}"), "at most 1048576"),
                }
            }
            Scheme::Quantised { .. } => Ok(()),
        }
    }

    /// The iteration of the quantised scheme.
    pub(super) fn rules(&self) -> IterationRules {
        let (epsilon, gamma) = match self.scheme {
            Scheme::Quantised { epsilon, gamma } => (epsilon, gamma),
            Scheme::Divided { .. } => (0.0, 0.0),
        };
        IterationRules {
            k: self.k,
            iterations: self.iterations,
            seed: self.seed,
            epsilon,
            gamma,
        }
    }

    /// The height and width of the tree.
    pub(super) fn shape(&self) -> (usize, usize) {
        match self.scheme {
            Scheme::Quantised { .. } => (0, 1),
            Scheme::Divided { height, width } => (height, width),
        }
    }
}
