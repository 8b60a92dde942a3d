//! From a raw row to the features that a model sees. Which features there are, and their scales and
//! weights, follow from what is kept of the rows; a map is what followed when it was made.

use serde::{Deserialize, Serialize};

use super::directions::FeatureComponents;
use super::number_sums::NumberMap;

/// Which raw places become which features, and how.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FeatureMap {
    pub(crate) columns: Vec<ColumnMap>,
    /// The directions of the features of all columns, where steps ask for them and the rows were
    /// seen as a whole.
    pub(crate) components: Option<FeatureComponents>,
}

/// How one column of the table becomes features, which follow those of the columns before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ColumnMap {
    /// A number is a feature, and so is that it is missing where the map says so.
    Number(NumberMap),
    /// Every raw place of a run is a feature: hash buckets, supplied words. The weights are those
    /// of the words, or empty.
    Run { width: u32, weights: Vec<f64> },
    /// The names at these places are features, in ascending order. The weights are those of the
    /// words, or empty.
    Names { places: Vec<u32>, weights: Vec<f64> },
    /// All values that are left are numbers, so that the column is one feature: the value of each
    /// place.
    Values {
        map: NumberMap,
        places: Vec<u32>,
        values: Vec<f64>,
        missing: Option<u32>,
    },
    /// The mean targets of the levels at these places, a list for each, and those of any other
    /// level.
    Means {
        places: Vec<u32>,
        means: Vec<Vec<f64>>,
        other: Vec<f64>,
    },
}

impl ColumnMap {
    /// The features of the column, erased ones included.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Number(map) | Self::Values { map, .. } => map.width(),
            Self::Run { width, .. } => *width as usize,
            Self::Names { places, .. } => places.len(),
            Self::Means { other, .. } => other.len(),
        }
    }

    /// Shift and scale of each feature: what is fed to the model is (x − shift) / scale.
    pub(crate) fn scales(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Number(map) | Self::Values { map, .. } => std::iter::once((map.shift, map.scale))
                .chain(map.indicator)
                .collect(),
            Self::Run { weights, .. } | Self::Names { weights, .. } if !weights.is_empty() => {
                weights.iter().map(|weight| (0.0, 1.0 / weight)).collect()
            }
            Self::Run { .. } | Self::Names { .. } | Self::Means { .. } => {
                vec![(0.0, 1.0); self.width()]
            }
        }
    }

    /// Whether the features of the column are those that `now` says, apart from names that are
    /// erased.
    fn is_as(&self, now: &Self, is_live: impl Fn(u32) -> bool) -> bool {
        let Self::Names { places, weights } = self else {
            return self == now;
        };
        let Self::Names {
            places: new,
            weights: new_weights,
        } = now
        else {
            return false;
        };
        let kept = (0..places.len()).filter(|at| is_live(places[*at]));
        let same_places = kept.clone().map(|at| places[at]).eq(new.iter().copied());
        let same_weights = weights.len() == places.len() && new_weights.len() == new.len();
        same_places
            && if same_weights {
                kept.map(|at| weights[at]).eq(new_weights.iter().copied())
            } else {
                weights.is_empty() && new_weights.is_empty()
            }
    }

    /// Whether the numbers of the column, and not only which features it has, differ from those of
    /// another map.
    pub(crate) fn has_other_numbers(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Number(a), Self::Number(b)) => a != b,
            (Self::Values { map: a, .. }, Self::Values { map: b, .. }) => a != b,
            (Self::Run { weights: a, .. }, Self::Run { weights: b, .. })
            | (Self::Names { weights: a, .. }, Self::Names { weights: b, .. }) => a != b,
            (Self::Means { .. }, Self::Means { .. }) => self != now,
            _ => false,
        }
    }
}

impl FeatureMap {
    /// Whether the columns of this map give the features that those of `now` give, apart from names
    /// that no row holds.
    pub(crate) fn is_as(&self, now: &Self, is_live: impl Fn(u32) -> bool) -> bool {
        self.columns.len() == now.columns.len()
            && self
                .columns
                .iter()
                .zip(&now.columns)
                .all(|(old, new)| old.is_as(new, &is_live))
    }

    /// The first feature of each column, and at the end the number of all features; None where they
    /// are too many.
    pub(crate) fn offsets(&self) -> Result<Vec<u32>, u64> {
        let mut offsets = vec![0];
        let mut width = 0u64;
        for column in &self.columns {
            width += column.width() as u64;
            offsets.push(u32::try_from(width).unwrap_or(u32::MAX));
        }
        if width < u64::from(u32::MAX) {
            Ok(offsets)
        } else {
            Err(width)
        }
    }
}
