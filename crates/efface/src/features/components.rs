//! The directions in which rows differ most: principal components, or right singular vectors where
//! 0 is the origin.
//!
//! They are the eigenvectors of the products of all features, summed over the rows. Each points
//! where its largest entry is positive. The space of the first K directions is that of the rows
//! alone as long as the eigenvalue after the K-th is smaller than it: where the two are equal, the
//! rows do not say which direction is the K-th, and a fit is refused. Directions inside of the
//! space may turn where their eigenvalues are equal; models whose penalty is the same in all
//! directions predict the same whichever way they turn.

use faer::{Accum, Mat, Par};

use super::directions::FeatureComponents;
use super::{Encoder, FeatureError, FeatureExpansion, FeatureMap};
use crate::linalg::{multiply_lower, symmetric_eigen};
use crate::rows::Rows;

/// The most features of columns whose products are summed: 128 MiB of sums.
pub const MOST_PRODUCTS: usize = 4096;

/// The least gap after the last direction, as a share of the largest eigenvalue. Directions are as
/// exact as a rounding over the gap.
const LEAST_GAP: f64 = 1e-8;

/// Entries that differ by less than this share are equally large, and the first of them decides the
/// sign.
const EQUAL_SHARE: f64 = 1e-6;

/// Rows whose products are summed at once.
const BLOCK: usize = 256;

/// What the rows say of the directions.
pub(super) struct DirectionSums {
    pub(super) mean: Vec<f64>,
    /// The products of all features about the origin; the lower triangle.
    pub(super) products: Mat<f64>,
}

/// The first directions.
pub(super) struct FoundDirections {
    pub(super) components: FeatureComponents,
    /// By how much the rows vary less along the next direction than along the last of them.
    pub(super) gap: f64,
}

impl Encoder {
    /// Whether the features that a model sees follow from products of all rows, see
    /// [`with_components`](Self::with_components).
    pub fn has_components(&self) -> bool {
        self.steps.expansion.has_components()
    }

    /// Returns true if the components were worked out of rows that a fit refuses, because they leave
    /// open which direction is the last one. A model of them can be any distance from a new fit.
    pub fn has_open_components(&self) -> bool {
        let components = self.map.components.as_ref();
        components.is_some_and(|components| components.is_open)
    }

    /// The map of these rows: `columns` with the components that the rows have in it, or the
    /// present columns where there are no others. None where nothing is other than it is. Only a
    /// fit is refused where the rows do not tell the last direction from the next one; a change
    /// takes either, which follows from the rows that are there all the same.
    ///
    /// # Errors
    /// There are too many features, too few for so many components, or at a fit no gap after the
    /// last component.
    pub fn with_components(
        &mut self,
        columns: Option<FeatureMap>,
        rows: &Rows,
        at_fit: bool,
    ) -> Result<Option<FeatureMap>, FeatureError> {
        let FeatureExpansion::Components { count, centred } = self.steps.expansion else {
            return Ok(columns);
        };
        let mut map = columns.unwrap_or_else(|| self.map.clone());
        map.components = None;
        let plain = self.in_columns(map.clone())?;
        let width = plain.width();
        if width > MOST_PRODUCTS {
            return Err(FeatureError::TooManyProducts {
                features: width,
                limit: MOST_PRODUCTS,
            });
        }
        let sums = plain.direction_sums(rows, centred);
        map.components = Some(plain.directions(&sums, count, at_fit)?.components);
        self.components_waiting = false;
        Ok((map != self.map).then_some(map))
    }

    /// An encoder of the same columns that ends with their features.
    pub(super) fn in_columns(&self, columns: FeatureMap) -> Result<Self, FeatureError> {
        let mut plain = self.clone();
        plain.steps.expansion = FeatureExpansion::None;
        plain.adopt(FeatureMap {
            components: None,
            ..columns
        })?;
        Ok(plain)
    }

    /// The sums over the rows, in whichever way is cheaper for rows like these.
    fn direction_sums(&self, rows: &Rows, centred: bool) -> DirectionSums {
        let width = self.width();
        let count = rows.iter().count() as f64;
        let mut entries = Vec::new();
        let mut mean = vec![0.0; width];
        if centred {
            for row in rows.iter() {
                self.features_of(&row.features.entries(), &mut entries);
                entries
                    .iter()
                    .for_each(|&(feature, value)| mean[feature as usize] += value / count);
            }
        }
        let mut products = Mat::zeros(width, width);
        if self.is_sparse() {
            for row in rows.iter() {
                self.features_of(&row.features.entries(), &mut entries);
                for (at, &(feature, value)) in entries.iter().enumerate() {
                    for &(other, factor) in &entries[at..] {
                        products[(other as usize, feature as usize)] += value * factor;
                    }
                }
            }
            // Counts and marks are near their means, so that little cancels.
            for feature in 0..width {
                for other in feature..width {
                    products[(other, feature)] -= count * mean[feature] * mean[other];
                }
            }
            return DirectionSums { mean, products };
        }
        let mut block = Mat::<f64>::zeros(width, BLOCK);
        let mut filled = 0;
        for row in rows.iter() {
            self.features_of(&row.features.entries(), &mut entries);
            let column = block.col_as_slice_mut(filled);
            column
                .iter_mut()
                .zip(&mean)
                .for_each(|(value, mean)| *value = -mean);
            entries
                .iter()
                .for_each(|&(feature, value)| column[feature as usize] += value);
            filled += 1;
            if filled == BLOCK {
                add_products(&mut products, &block, filled);
                filled = 0;
            }
        }
        add_products(&mut products, &block, filled);
        DirectionSums { mean, products }
    }

    pub(super) fn directions(
        &self,
        sums: &DirectionSums,
        count: usize,
        at_fit: bool,
    ) -> Result<FoundDirections, FeatureError> {
        let width = self.width();
        let Some((values, vectors)) = symmetric_eigen(sums.products.as_ref(), Par::Seq) else {
            return Err(FeatureError::NoDirections);
        };
        // Eigenvalues ascend, so that the directions are the last columns.
        let value = |rank: usize| {
            width
                .checked_sub(rank + 1)
                .map_or(0.0, |at| values[at].max(0.0))
        };
        let largest = value(0);
        let distinct = (0..width)
            .filter(|rank| value(*rank) > LEAST_GAP * largest)
            .count();
        if count > width || (at_fit && count > distinct) {
            return Err(FeatureError::TooManyComponents {
                count,
                distinct: distinct.min(width),
            });
        }
        let has_no_gap = value(count - 1) - value(count) <= LEAST_GAP * largest;
        if at_fit && has_no_gap {
            return Err(FeatureError::NoGap { count });
        }
        // Places of names are drawn at random; their order in the table and the alphabet is not.
        let named = self.named_features();
        let mut found = FeatureComponents {
            origin: vec![0.0; count],
            directions: vec![0.0; width * count],
            is_open: has_no_gap || count > distinct,
        };
        for rank in 0..count {
            let direction = vectors.col_as_slice(width - 1 - rank);
            let most = direction
                .iter()
                .fold(0.0f64, |most, value| most.max(value.abs()));
            let is_large = |value: f64| value.abs() >= (1.0 - EQUAL_SHARE) * most;
            let deciding = named
                .iter()
                .map(|(feature, _)| direction[*feature as usize])
                .find(|value| is_large(*value));
            let sign = if deciding.is_some_and(|value| value < 0.0) {
                -1.0
            } else {
                1.0
            };
            for (feature, value) in direction.iter().enumerate() {
                found.directions[feature * count + rank] = sign * value;
                found.origin[rank] -= sign * value * sums.mean[feature];
            }
        }
        Ok(FoundDirections {
            components: found,
            gap: value(count - 1) - value(count),
        })
    }
}

/// Adds the products of the first `filled` columns.
fn add_products(products: &mut Mat<f64>, block: &Mat<f64>, filled: usize) {
    let rows = block.as_ref().subcols(0, filled);
    multiply_lower(
        products.as_mut(),
        Accum::Add,
        rows,
        rows.transpose(),
        1.0,
        Par::Seq,
    );
}
