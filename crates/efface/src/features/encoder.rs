//! Rows of a table as raw rows and as feature vectors, and what the encoder itself keeps of rows.
//!
//! A raw row holds everything that a step could ask for: numbers as they are, a mark where one is
//! missing, every level and every word. Its places never change, so that raw rows can be stored.
//! Features are what the present map makes of a raw row: each column of the table owns a run of
//! consecutive features, in the order of the table.

use std::borrow::Cow;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::expansion::PreparedExpansion;
use super::feature_map::ColumnMap;
use super::named_places::{CountedName, NamedPlaces};
use super::schema::{FeatureKind, MISSING};
use super::target_means::TargetSums;
use super::{FeatureColumn, FeatureError, FeatureExpansion, FeatureMap, FeatureSteps};
use crate::random::seeded;

/// Turns rows into features. Built by an [`EncoderBuilder`](super::EncoderBuilder); can be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredEncoder")]
pub struct Encoder {
    pub(super) columns: Vec<FeatureColumn>,
    pub(super) table_width: usize,
    pub(super) steps: FeatureSteps,
    pub(super) fixed_kinds: bool,
    /// The rows that everything is counted over.
    pub(super) rows: u64,
    pub(super) names: NamedPlaces,
    pub(super) map: FeatureMap,
    /// The targets behind levels whose features are means of them; empty where there are none.
    pub(super) target_sums: TargetSums,
    /// Whether rows came or went since the components of all columns were worked out.
    pub(super) components_waiting: bool,
    /// The first feature of each column, and at the end the number of all features.
    #[serde(skip)]
    pub(super) offsets: Vec<u32>,
    /// What becomes of each name, by its place from that of the first name on.
    #[serde(skip)]
    pub(super) targets: Vec<PlaceTarget>,
    /// What makes features of those of all columns.
    #[serde(skip)]
    pub(super) expansion: PreparedExpansion,
}

/// What becomes of a name in a raw row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PlaceTarget {
    Nothing,
    Feature(u32),
    /// The number that stands for the name, in a column whose names are all numbers.
    Value {
        column: usize,
        value: f64,
    },
    /// The number of such a column is missing.
    Gap {
        column: usize,
    },
    /// The level of a column whose features are mean targets, by its place in the list of them.
    Level {
        column: usize,
        at: usize,
    },
}

/// The parts of an encoder, before its names have places.
pub(crate) struct EncoderParts {
    pub(crate) columns: Vec<FeatureColumn>,
    pub(crate) names: Vec<CountedName>,
    pub(crate) table_width: usize,
    pub(crate) steps: FeatureSteps,
    pub(crate) fixed_kinds: bool,
    pub(crate) shuffled: Option<u64>,
    pub(crate) rows: u64,
}

#[derive(Deserialize)]
struct StoredEncoder {
    columns: Vec<FeatureColumn>,
    table_width: usize,
    steps: FeatureSteps,
    fixed_kinds: bool,
    rows: u64,
    names: NamedPlaces,
    map: FeatureMap,
    target_sums: TargetSums,
    components_waiting: bool,
}

impl TryFrom<StoredEncoder> for Encoder {
    type Error = FeatureError;

    fn try_from(stored: StoredEncoder) -> Result<Self, FeatureError> {
        let StoredEncoder {
            columns,
            table_width,
            steps,
            fixed_kinds,
            rows,
            names,
            map,
            target_sums,
            components_waiting,
        } = stored;
        steps.check()?;
        let damaged = |what: &str| Err(FeatureError::Damaged(what.into()));
        if columns.iter().any(|column| column.position >= table_width) {
            return damaged("a column lies outside the table");
        }
        let gaps = steps.missing.is_filled();
        let mut next = 0u64;
        for (column, map) in columns.iter().zip(&map.columns) {
            if let Some((base, width)) = column.run(gaps) {
                if u64::from(base) != next {
                    return damaged("its columns do not follow each other");
                }
                next += u64::from(width);
            }
            if !fits(column, map) {
                return damaged("its features are not those of its columns");
            }
        }
        if columns.len() != map.columns.len() || next != u64::from(names.first()) {
            return damaged("its columns and its features differ in number");
        }
        let mut encoder = Self {
            columns,
            table_width,
            steps,
            fixed_kinds,
            rows,
            names,
            map,
            target_sums,
            components_waiting,
            offsets: Vec::new(),
            targets: Vec::new(),
            expansion: PreparedExpansion::None,
        };
        encoder.index_map()?;
        Ok(encoder)
    }
}

/// Whether a stored map can be of this column.
fn fits(column: &FeatureColumn, map: &ColumnMap) -> bool {
    let counts = match &column.kind {
        FeatureKind::Supplied {
            words, documents, ..
        } => [0, words.len()].contains(&documents.len()),
        FeatureKind::Hashed {
            hashed, documents, ..
        } => [0, hashed.buckets() as usize].contains(&documents.len()),
        _ => true,
    };
    let weighted = |width: usize, weights: &[f64]| weights.is_empty() || weights.len() == width;
    let sound = match (&column.kind, map) {
        (FeatureKind::Number { .. }, ColumnMap::Number(_)) => true,
        (FeatureKind::Supplied { words, .. }, ColumnMap::Run { width, weights }) => {
            words.len() == *width as usize && weighted(words.len(), weights)
        }
        (FeatureKind::Hashed { hashed, .. }, ColumnMap::Run { width, weights }) => {
            hashed.buckets() == *width && weighted(*width as usize, weights)
        }
        (
            FeatureKind::Levels { .. } | FeatureKind::Words { .. },
            ColumnMap::Names { places, weights },
        ) => places.is_sorted_by(|a, b| a < b) && weighted(places.len(), weights),
        (FeatureKind::Levels { .. }, ColumnMap::Values { places, values, .. }) => {
            places.len() == values.len() && places.is_sorted_by(|a, b| a < b)
        }
        (
            FeatureKind::Levels { as_means: true, .. },
            ColumnMap::Means {
                places,
                means,
                other,
            },
        ) => places.len() == means.len() && means.iter().all(|means| means.len() == other.len()),
        _ => false,
    };
    counts && sound
}

/// More level columns than this, and rows are stored sparse.
const MANY_LEVELS: usize = 64;

impl Encoder {
    /// Gives names their places, and makes the map that follows from all rows. `fixed` is one more
    /// than the last place of columns without names.
    pub(super) fn build(parts: EncoderParts, fixed: u32) -> Result<Self, FeatureError> {
        let EncoderParts {
            columns,
            mut names,
            table_width,
            steps,
            fixed_kinds,
            shuffled,
            rows,
        } = parts;
        names.sort_unstable();
        if let Some(seed) = shuffled {
            let mut random = seeded(seed);
            for last in (1..names.len()).rev() {
                names.swap(last, random.random_range(0..=last));
            }
        }
        let mut encoder = Self {
            columns,
            table_width,
            steps,
            fixed_kinds,
            rows,
            names: NamedPlaces::new(fixed, names)?,
            map: FeatureMap::default(),
            target_sums: TargetSums::default(),
            components_waiting: false,
            offsets: Vec::new(),
            targets: Vec::new(),
            expansion: PreparedExpansion::None,
        };
        encoder.map = encoder.map_now()?;
        encoder.index_map()?;
        Ok(encoder)
    }

    /// Takes a map over that [`follow`](Self::follow) gave.
    pub fn adopt(&mut self, map: FeatureMap) -> Result<(), FeatureError> {
        self.components_waiting = self.components_waiting && map.components.is_none();
        self.map = map;
        self.index_map()
    }

    /// Makes what follows from the map.
    pub(super) fn index_map(&mut self) -> Result<(), FeatureError> {
        self.offsets = self
            .map
            .offsets()
            .map_err(|width| FeatureError::TooWide { width })?;
        let first = self.names.first();
        let mut targets = vec![PlaceTarget::Nothing; (self.names.end() - first) as usize];
        let mut set = |place: u32, target| match place
            .checked_sub(first)
            .map(|at| targets.get_mut(at as usize))
        {
            Some(Some(old)) => {
                *old = target;
                Ok(())
            }
            _ => Err(FeatureError::Damaged(
                "a feature has no place in its rows".into(),
            )),
        };
        for (column, map) in self.map.columns.iter().enumerate() {
            match map {
                ColumnMap::Names { places, .. } => {
                    for (feature, place) in (self.offsets[column]..).zip(places) {
                        set(*place, PlaceTarget::Feature(feature))?;
                    }
                }
                ColumnMap::Values {
                    places,
                    values,
                    missing,
                    ..
                } => {
                    for (place, &value) in places.iter().zip(values) {
                        set(*place, PlaceTarget::Value { column, value })?;
                    }
                    if let Some(place) = missing {
                        set(*place, PlaceTarget::Gap { column })?;
                    }
                }
                ColumnMap::Means { places, .. } => {
                    for (at, place) in places.iter().enumerate() {
                        set(*place, PlaceTarget::Level { column, at })?;
                    }
                }
                ColumnMap::Number(_) | ColumnMap::Run { .. } => {}
            }
        }
        self.targets = targets;
        self.expansion = self.prepare_expansion()?;
        Ok(())
    }

    /// Whether a map that was stored apart can be of these columns.
    pub(super) fn takes(&self, map: &FeatureMap) -> bool {
        self.columns.len() == map.columns.len()
            && self
                .columns
                .iter()
                .zip(&map.columns)
                .all(|(column, map)| fits(column, map))
    }

    /// The columns of the table that became features.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// The columns as they are now: their names, kinds, and how many features each has, without
    /// erased ones.
    pub fn describe_columns(&self) -> Vec<(String, String, usize)> {
        let describe = |(column, map): (&FeatureColumn, &ColumnMap)| {
            let (kind, width) = match map {
                ColumnMap::Values { map, .. } => ("numeric", map.width()),
                ColumnMap::Names { places, .. } => (
                    column.kind(),
                    places
                        .iter()
                        .filter(|place| self.names.rows(**place) > 0)
                        .count(),
                ),
                _ => (column.kind(), map.width()),
            };
            (column.name.clone(), kind.to_owned(), width)
        };
        self.columns
            .iter()
            .zip(&self.map.columns)
            .map(describe)
            .collect()
    }

    /// The number of places in a raw row.
    pub fn raw_width(&self) -> usize {
        self.names.end() as usize
    }

    /// Whether features are raw rows as they are.
    pub fn is_identity(&self) -> bool {
        !self.steps.missing.is_filled()
            && self.steps.expansion == FeatureExpansion::None
            && self.map.columns.iter().all(|map| match map {
                ColumnMap::Number(map) => map.is_identity(),
                ColumnMap::Run { .. } => self.steps.words.weighting.is_none(),
                ColumnMap::Names { .. } | ColumnMap::Values { .. } | ColumnMap::Means { .. } => {
                    false
                }
            })
    }

    /// Whether every raw row is as long as every other, and mostly not zero.
    pub fn has_dense_raw_rows(&self) -> bool {
        self.columns.iter().all(FeatureColumn::is_numeric)
    }

    /// Whether raw rows hold counts and marks alone, which single precision holds exactly.
    pub fn has_counted_raw_rows(&self) -> bool {
        !self.columns.iter().any(FeatureColumn::is_numeric)
    }

    /// Whether features are counts and marks alone, which single precision holds exactly.
    pub fn is_counted(&self) -> bool {
        self.has_counted_raw_rows()
            && self.steps.words.weighting.is_none()
            && self.steps.expansion == FeatureExpansion::None
            && !self
                .map
                .columns
                .iter()
                .any(|map| matches!(map, ColumnMap::Values { .. } | ColumnMap::Means { .. }))
    }

    /// The name of a feature of a column: the column for a number, `column=level` for a level,
    /// `mean(column)` for mean targets, `column:word` for a word and `column#7` for a hash bucket;
    /// `word` and `#7` when the words of one column are all there is. None for an erased or
    /// impossible one.
    pub(super) fn column_feature_name(&self, feature: u32) -> Option<Cow<'_, str>> {
        let at = self
            .offsets
            .partition_point(|&offset| offset <= feature)
            .checked_sub(1)?;
        let map = self.map.columns.get(at)?;
        let local = feature - self.offsets[at];
        let FeatureColumn { name, kind, .. } = &self.columns[at];
        let alone = self.columns.len() == 1;
        let word = |word| {
            if alone {
                Cow::Borrowed(word)
            } else {
                Cow::Owned(format!("{name}:{word}"))
            }
        };
        Some(match (kind, map) {
            (_, ColumnMap::Number(_) | ColumnMap::Values { .. }) if local > 0 => {
                Cow::Owned(format!("{name}={MISSING}"))
            }
            (_, ColumnMap::Number(_) | ColumnMap::Values { .. }) => Cow::Borrowed(name),
            (_, ColumnMap::Means { other, .. }) if other.len() == 1 => {
                Cow::Owned(format!("mean({name})"))
            }
            (_, ColumnMap::Means { .. }) => Cow::Owned(format!("mean({name}){}", local + 1)),
            (FeatureKind::Levels { .. }, ColumnMap::Names { places, .. }) => Cow::Owned(format!(
                "{name}={}",
                self.names.name(places[local as usize])?
            )),
            (_, ColumnMap::Names { places, .. }) => word(self.names.name(places[local as usize])?),
            (FeatureKind::Supplied { words, .. }, _) => word(words.word(local)?),
            (_, ColumnMap::Run { .. }) if alone => Cow::Owned(format!("#{local}")),
            (_, ColumnMap::Run { .. }) => Cow::Owned(format!("{name}#{local}")),
        })
    }

    /// The features that have a name, in the order of the table and within a column in that of the
    /// alphabet.
    pub fn named_features(&self) -> Vec<(u32, String)> {
        let mut named = Vec::with_capacity(self.column_width());
        for (map, offsets) in self.map.columns.iter().zip(self.offsets.windows(2)) {
            let start = named.len();
            let features = offsets[0]..offsets[1];
            named.extend(features.filter_map(|feature| {
                Some((feature, self.column_feature_name(feature)?.into_owned()))
            }));
            if matches!(map, ColumnMap::Names { .. }) {
                named[start..].sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
            }
        }
        self.expanded_names(named)
    }

    /// Shift and scale of each feature, erased ones included: what a model sees is (x − shift) /
    /// scale. A weight of a word is a scale of its own; that a text is then given the norm 1 is not
    /// part of it. None where every feature is as it is, and where what a model sees is made of the
    /// features of all columns, which then have no scale of their own.
    pub fn scales(&self) -> Option<Vec<(f64, f64)>> {
        if self.steps.expansion != FeatureExpansion::None {
            return None;
        }
        let scales: Vec<(f64, f64)> = self
            .map
            .columns
            .iter()
            .flat_map(ColumnMap::scales)
            .collect();
        scales
            .iter()
            .any(|scale| *scale != (0.0, 1.0))
            .then_some(scales)
    }

    /// Whether feature rows are mostly zeros: there are words, or more than 64 features are levels.
    pub fn is_sparse(&self) -> bool {
        !self.expansion.is_dense() && self.has_sparse_columns()
    }

    /// Whether the features of the columns themselves are mostly zeros, whatever is made of them
    /// all.
    pub fn has_sparse_columns(&self) -> bool {
        let is_names = |map: &&ColumnMap| matches!(map, ColumnMap::Names { .. });
        let levels: usize = self
            .map
            .columns
            .iter()
            .filter(is_names)
            .map(ColumnMap::width)
            .sum();
        levels > MANY_LEVELS || self.columns.iter().any(FeatureColumn::is_text)
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
