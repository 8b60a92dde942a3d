//! How the features of all rows change at once when scales and weights do: by a factor and an
//! offset each. A model that keeps sums of products can follow such a change without its rows.

use super::feature_map::ColumnMap;
use super::number_sums::NumberMap;
use super::schema::FeatureKind;
use super::{ColumnScale, Encoder, FeatureExpansion, FeatureMap};

/// How a feature changes in every row: x becomes factor·x + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureRescale {
    /// Is more than 0.
    pub factor: f64,
    /// Is added after the factor.
    pub offset: f64,
}

/// A map that gives the features of another one in other units.
#[derive(Debug, Clone, PartialEq)]
pub struct RescaledFeatures {
    /// The new map. Names that no row holds any more keep their features, which are 0 in every row.
    pub map: FeatureMap,
    /// What becomes of each feature of the old map.
    pub features: Vec<FeatureRescale>,
}

impl FeatureRescale {
    const NONE: Self = Self {
        factor: 1.0,
        offset: 0.0,
    };

    /// From (x − shift)/scale to the same with another shift and scale.
    fn between(old: (f64, f64), new: (f64, f64)) -> Option<Self> {
        if old == new {
            return Some(Self::NONE);
        }
        // A column without spread has the scale 1. Whether it is 0 everywhere or nearly so cannot
        // be told from its scale.
        if (old.1 == 1.0) != (new.1 == 1.0) {
            return None;
        }
        Some(Self {
            factor: old.1 / new.1,
            offset: (old.0 - new.0) / new.1,
        })
    }
}

impl Encoder {
    /// Returns true if numeric columns are shifted by numbers that follow from the rows, so that
    /// sums may have followed a shift without their rows.
    pub fn shifts_columns(&self) -> bool {
        self.steps.scale != ColumnScale::None
    }

    /// How all features change from those of `before` to those of `map`, which follows from the
    /// rows that are counted now. None where a row must be read to tell: other words are chosen, a
    /// gap is filled with another number, or the features of a text are divided by their norm, or
    /// what a model sees is made of the features of all columns.
    pub fn rescaling(&self, before: &Self, map: &FeatureMap) -> Option<RescaledFeatures> {
        if self.steps.expansion != FeatureExpansion::None {
            return None;
        }
        self.rescaled_columns(&before.map, map, |at| {
            self.has_gaps(at) || before.has_gaps(at)
        })
    }

    /// A map of the same columns whose shifts, scales and weights tell no more than how large
    /// numbers are, in which rows are summed. What would have to be exact for the sums to be of use
    /// stays: they are made anew when it changes.
    pub(super) fn coarse_columns(&self) -> FeatureMap {
        let coarse_weights = |weights: &mut Vec<f64>| {
            if self
                .steps
                .words
                .weighting
                .is_some_and(|weighting| !weighting.normalised)
            {
                weights
                    .iter_mut()
                    .for_each(|weight| *weight = weight.log2().round().exp2());
            }
        };
        let coarse_number = |map: &mut NumberMap, has_gaps: bool| {
            (map.shift, map.scale) = coarse_scale((map.shift, map.scale));
            map.indicator = map.indicator.map(coarse_scale);
            map.fill = if has_gaps { map.fill } else { UNUSED_FILL };
        };
        let mut columns = self.map.columns.clone();
        for (at, column) in columns.iter_mut().enumerate() {
            match column {
                ColumnMap::Number(map) | ColumnMap::Values { map, .. } => {
                    coarse_number(map, self.has_gaps(at))
                }
                ColumnMap::Run { weights, .. } | ColumnMap::Names { weights, .. } => {
                    coarse_weights(weights)
                }
                ColumnMap::Means { .. } => {}
            }
        }
        FeatureMap {
            columns,
            components: None,
        }
    }

    /// The same from the columns of a map that rows are summed in, whatever is made of them all
    /// afterwards. Rows that are gone have left the sums as they came, so that their gaps do not
    /// matter.
    pub(super) fn rescaling_from(
        &self,
        reference: &FeatureMap,
        map: &FeatureMap,
    ) -> Option<RescaledFeatures> {
        let is_fill_stale = |at: usize| match &reference.columns[at] {
            ColumnMap::Number(old) | ColumnMap::Values { map: old, .. } => {
                // The mean that filled gaps of rows that are all gone by now.
                !self.has_gaps(at) && old.fill != UNUSED_FILL
            }
            _ => false,
        };
        if (0..reference.columns.len().min(self.columns.len())).any(is_fill_stale) {
            return None;
        }
        self.rescaled_columns(reference, map, |at| self.has_gaps(at))
    }

    fn rescaled_columns(
        &self,
        before: &FeatureMap,
        map: &FeatureMap,
        has_gaps: impl Fn(usize) -> bool,
    ) -> Option<RescaledFeatures> {
        let mut columns = Vec::with_capacity(map.columns.len());
        let mut features = Vec::new();
        for (at, (old, new)) in before.columns.iter().zip(&map.columns).enumerate() {
            let has_gaps = has_gaps(at);
            columns.push(self.rescaled_column(old, new, has_gaps, &mut features)?);
        }
        Some(RescaledFeatures {
            map: FeatureMap {
                columns,
                components: None,
            },
            features,
        })
    }

    /// Whether a number is missing in some row of a column.
    fn has_gaps(&self, at: usize) -> bool {
        match (&self.columns[at].kind, &self.map.columns[at]) {
            (FeatureKind::Number { sums, .. }, _) => sums.has_gaps(),
            (_, ColumnMap::Values { missing, .. }) => missing.is_some(),
            _ => false,
        }
    }

    fn rescaled_column(
        &self,
        old: &ColumnMap,
        new: &ColumnMap,
        has_gaps: bool,
        features: &mut Vec<FeatureRescale>,
    ) -> Option<ColumnMap> {
        match (old, new) {
            (ColumnMap::Number(a), ColumnMap::Number(b)) => {
                features.extend(rescaled_number(a, b, has_gaps)?);
                Some(new.clone())
            }
            (
                ColumnMap::Values {
                    map: a,
                    places,
                    values,
                    missing,
                },
                ColumnMap::Values {
                    map: b,
                    places: new_places,
                    values: new_values,
                    missing: new_missing,
                },
            ) if places == new_places && values == new_values && missing == new_missing => {
                features.extend(rescaled_number(a, b, has_gaps)?);
                Some(new.clone())
            }
            (
                ColumnMap::Run { weights, .. },
                ColumnMap::Run {
                    weights: new_weights,
                    ..
                },
            ) if old.width() == new.width() && weights.len() == new_weights.len() => {
                self.rescale_words(old.width(), weights, new_weights, features)?;
                Some(new.clone())
            }
            (
                ColumnMap::Names { places, weights },
                ColumnMap::Names {
                    places: new_places,
                    weights: new_weights,
                },
            ) if weights.is_empty() == new_weights.is_empty() => {
                let mut kept = weights.clone();
                let mut next = 0;
                for (at, place) in places.iter().enumerate() {
                    if new_places.get(next) == Some(place) {
                        if let Some(weight) = new_weights.get(next) {
                            kept[at] = *weight;
                        }
                        next += 1;
                    } else if self.names.rows(*place) > 0 {
                        return None;
                    }
                }
                if next < new_places.len() {
                    return None;
                }
                self.rescale_words(places.len(), weights, &kept, features)?;
                Some(ColumnMap::Names {
                    places: places.clone(),
                    weights: kept,
                })
            }
            _ => None,
        }
    }

    /// Words whose weights change. Where texts are divided by their norm afterwards, all of their
    /// features change differently.
    fn rescale_words(
        &self,
        width: usize,
        old: &[f64],
        new: &[f64],
        features: &mut Vec<FeatureRescale>,
    ) -> Option<()> {
        if old == new {
            features.extend(std::iter::repeat_n(FeatureRescale::NONE, width));
            return Some(());
        }
        if self
            .steps
            .words
            .weighting
            .is_none_or(|weighting| weighting.normalised)
        {
            return None;
        }
        features.extend(old.iter().zip(new).map(|(old, new)| FeatureRescale {
            factor: new / old,
            offset: 0.0,
        }));
        Some(())
    }
}

/// What fills the gaps of a column without gaps.
const UNUSED_FILL: f64 = 0.0;

/// A power of two about as large as the scale, and the shift as a multiple of it. The scale 1 says
/// that a column has no spread.
fn coarse_scale((shift, scale): (f64, f64)) -> (f64, f64) {
    if scale == 1.0 {
        return (shift, scale);
    }
    let unit = match scale.log2().ceil().clamp(-1000.0, 1000.0).exp2() {
        1.0 => 2.0,
        unit => unit,
    };
    let multiple = (shift / unit).round() * unit;
    (if multiple.is_finite() { multiple } else { 0.0 }, unit)
}

/// The one or two features of a numeric column.
fn rescaled_number(
    old: &NumberMap,
    new: &NumberMap,
    has_gaps: bool,
) -> Option<Vec<FeatureRescale>> {
    if (has_gaps && old.fill != new.fill) || old.indicator.is_some() != new.indicator.is_some() {
        return None;
    }
    let mut features = vec![FeatureRescale::between(
        (old.shift, old.scale),
        (new.shift, new.scale),
    )?];
    if let (Some(old), Some(new)) = (old.indicator, new.indicator) {
        features.push(FeatureRescale::between(old, new)?);
    }
    Some(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_scale_tells_how_large_numbers_are_and_no_more() {
        assert_eq!(coarse_scale((1987.344, 11.3)), (1984.0, 16.0));
        assert_eq!(coarse_scale((-0.37, 0.004)), (-0.3671875, 0.0078125));
        // 1 would say that the column has no spread.
        assert_eq!(coarse_scale((0.61, 0.8)), (0.0, 2.0));
        assert_eq!(coarse_scale((0.1, 1.0)), (0.1, 1.0));
        assert_eq!(coarse_scale((1e300, 1e-300)).0, 0.0);
    }
}
