//! Directions in the space of all features, and where a row lies along them.

use serde::{Deserialize, Serialize};

/// The directions, and where rows lie along each of them that have no feature at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FeatureComponents {
    /// One number for each direction.
    pub(super) origin: Vec<f64>,
    /// One number for each direction, feature after feature.
    pub(super) directions: Vec<f64>,
    /// Whether the rows leave open which direction is the last one, so that a fit to them is
    /// refused. Known where the directions were worked out, and not stored.
    #[serde(skip)]
    pub(super) is_open: bool,
}

impl FeatureComponents {
    /// The number of directions.
    pub(super) fn len(&self) -> usize {
        self.origin.len()
    }

    /// Whether the directions are those of so many features.
    pub(super) fn fits(&self, width: usize) -> bool {
        !self.origin.is_empty() && self.directions.len() == width * self.origin.len()
    }

    /// Replaces the features of a row by where it lies along the directions.
    pub(super) fn expand(&self, row: &mut Vec<(u32, f64)>) {
        let mut along = self.origin.clone();
        for &(feature, value) in row.iter() {
            let first = feature as usize * along.len();
            let direction = &self.directions[first..first + along.len()];
            along
                .iter_mut()
                .zip(direction)
                .for_each(|(sum, part)| *sum += value * part);
        }
        row.clear();
        row.extend((0..).zip(along).filter(|(_, value)| *value != 0.0));
    }
}
