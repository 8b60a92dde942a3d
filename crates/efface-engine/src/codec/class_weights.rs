//! What rows count for by their class, beside weights of their own. Balanced weights follow from
//! how many rows each class has, so that they are others for all rows when one leaves.

use efface::{Classes, Rows};
use serde::{Deserialize, Serialize};

/// What the rows of a class are to count for.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeight {
    /// All classes alike: n/(k·n_c) for a row of a class that has n_c of n rows, where k classes
    /// have some. As scikit-learn's `class_weight="balanced"`.
    Balanced,
    /// A number for each named class, 1 for the others.
    Listed(Vec<(String, f64)>),
}

/// The weights of the classes as a model has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppliedClassWeights {
    /// Whether they follow from the rows.
    pub(crate) balanced: bool,
    /// One for each class, in the order of their names.
    pub(crate) weights: Vec<f64>,
}

/// The weight of a row by its targets.
#[derive(Debug, Clone)]
pub(crate) struct RowWeights {
    names: Classes,
    weights: Vec<f64>,
}

impl RowWeights {
    pub(crate) fn new(names: &Classes, weights: &[f64]) -> Self {
        Self {
            names: names.clone(),
            weights: weights.to_vec(),
        }
    }

    /// What a row with these targets counts for, beside its own weight.
    pub(crate) fn of(&self, targets: &[f64]) -> f64 {
        self.weights
            .get(self.names.decide(targets))
            .copied()
            .unwrap_or(1.0)
    }

    /// Rows that count for what their classes do.
    pub(crate) fn weigh(&self, rows: Rows) -> efface::Result<Rows> {
        rows.weighted_by(|targets| self.of(targets))
    }
}

/// Balanced weights of classes with so many rows each. A class without rows has the weight 1, which
/// nothing is multiplied with.
pub(crate) fn balanced(rows: &[u64]) -> Vec<f64> {
    let all: u64 = rows.iter().sum();
    let classes = rows.iter().filter(|rows| **rows > 0).count();
    let weight = |rows: &u64| match rows {
        0 => 1.0,
        rows => all as f64 / (classes as f64 * *rows as f64),
    };
    rows.iter().map(weight).collect()
}
