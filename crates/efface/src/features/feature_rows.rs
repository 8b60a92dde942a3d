//! Whole tables of raw rows as the features that a model sees.

use crate::error::Result;
use crate::features::Encoder;
use crate::rows::{Csr, Dense, Features, RowRef, Rows};

/// The features of one row, in the form that tables of them have.
#[derive(Debug)]
pub struct FeatureRow {
    form: RowForm,
    entries: Vec<(u32, f64)>,
    columns: Vec<u32>,
    doubles: Vec<f64>,
    singles: Vec<f32>,
}

/// How feature rows are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowForm {
    Dense,
    Sparse,
    /// Counts, which single precision holds exactly.
    Counted,
}

impl Encoder {
    fn form(&self) -> RowForm {
        if !self.is_sparse() {
            RowForm::Dense
        } else if self.is_counted() {
            RowForm::Counted
        } else {
            RowForm::Sparse
        }
    }

    /// Room for the features of one row after another.
    pub fn feature_row(&self) -> FeatureRow {
        FeatureRow {
            form: self.form(),
            entries: Vec::new(),
            columns: Vec::new(),
            doubles: Vec::new(),
            singles: Vec::new(),
        }
    }

    /// The features of raw rows, under their ids and with their targets and weights.
    pub fn feature_rows(&self, raw: &Rows) -> Result<Rows> {
        let width = self.width();
        let mut entries = Vec::new();
        let features: Features = match self.form() {
            RowForm::Dense => {
                let mut values = vec![0.0; raw.iter().count() * width];
                for (row, place) in raw.iter().zip(values.chunks_exact_mut(width)) {
                    self.features_of(&row.features.entries(), &mut entries);
                    entries
                        .iter()
                        .for_each(|&(feature, value)| place[feature as usize] = value);
                }
                Dense::new(values, width)?.into()
            }
            RowForm::Sparse => {
                let mut table = Csr::<f64>::new(width);
                for row in raw.iter() {
                    self.features_of(&row.features.entries(), &mut entries);
                    table.push(&entries)?;
                }
                table.into()
            }
            RowForm::Counted => {
                let mut table = Csr::<f32>::new(width);
                for row in raw.iter() {
                    self.features_of(&row.features.entries(), &mut entries);
                    table.push(&entries)?;
                }
                table.into()
            }
        };
        raw.with_features(features)
    }

    /// What a raw row says, whatever places its names have: the entries of columns without names,
    /// and bytes that tell the names with their columns and values, in the order of the alphabet.
    pub fn content_of(&self, raw: &[(u32, f64)]) -> (Vec<(u32, f64)>, Vec<u8>) {
        let start = raw.partition_point(|(place, _)| *place < self.names.first());
        let mut named: Vec<(u32, &str, f64)> = raw[start..]
            .iter()
            .filter_map(|&(place, value)| {
                Some((self.names.column(place)?, self.names.name(place)?, value))
            })
            .collect();
        named.sort_unstable_by_key(|&(column, name, _)| (column, name));
        let mut bytes = Vec::new();
        for (column, name, value) in named {
            bytes.extend_from_slice(&column.to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        (raw[..start].to_vec(), bytes)
    }
}

impl FeatureRow {
    /// The features of a raw row.
    pub fn of(&mut self, encoder: &Encoder, raw: RowRef<'_>) -> RowRef<'_> {
        encoder.features_of(&raw.entries(), &mut self.entries);
        if self.form == RowForm::Dense {
            self.doubles.clear();
            self.doubles.resize(encoder.width(), 0.0);
            self.entries
                .iter()
                .for_each(|&(feature, value)| self.doubles[feature as usize] = value);
            return RowRef::Dense64(&self.doubles);
        }
        self.columns.clear();
        self.columns
            .extend(self.entries.iter().map(|(feature, _)| *feature));
        if self.form == RowForm::Counted {
            self.singles.clear();
            self.singles
                .extend(self.entries.iter().map(|(_, value)| *value as f32));
            return RowRef::Sparse32(&self.columns, &self.singles);
        }
        self.doubles.clear();
        self.doubles
            .extend(self.entries.iter().map(|(_, value)| *value));
        RowRef::Sparse64(&self.columns, &self.doubles)
    }
}
