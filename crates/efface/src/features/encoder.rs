//! Rows of a table as sparse feature vectors, and what the encoder itself remembers of rows.
//!
//! Each column of the table owns a run of consecutive features, in the order of the table: one for a number, one per
//! level (all of them; a penalised model needs no reference level), one per word or hash bucket. Feature numbers never
//! change once the encoder is built: a name that is erased leaves an unused number behind.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::schema::{EncodingGaps, FeatureKind};
use super::{Cell, FeatureColumn, FeatureError};
use crate::not_covered::NotCovered;

/// Turns rows into features. Built by an [`EncoderBuilder`](super::EncoderBuilder); can be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredEncoder")]
pub struct Encoder {
    columns: Vec<FeatureColumn>,
    table_width: usize,
    /// The first feature of each column, and at the end the number of all features.
    #[serde(skip)]
    offsets: Vec<u32>,
}

#[derive(Deserialize)]
struct StoredEncoder {
    columns: Vec<FeatureColumn>,
    table_width: usize,
}

impl TryFrom<StoredEncoder> for Encoder {
    type Error = FeatureError;

    fn try_from(stored: StoredEncoder) -> Result<Self, FeatureError> {
        if stored.columns.iter().any(|column| column.position >= stored.table_width) {
            return Err(FeatureError::Damaged("a column lies outside the table".into()));
        }
        Self::new(stored.columns, stored.table_width)
    }
}

/// More level columns than this, and rows are stored sparse.
const MANY_LEVELS: usize = 64;

impl Encoder {
    pub(crate) fn new(columns: Vec<FeatureColumn>, table_width: usize) -> Result<Self, FeatureError> {
        let mut offsets = vec![0];
        let mut width = 0u64;
        for column in &columns {
            width += column.width() as u64;
            offsets.push(u32::try_from(width).map_err(|_| FeatureError::TooWide { width })?);
        }
        if width == 0 {
            return Err(FeatureError::NoFeatures);
        }
        Ok(Self { columns, table_width, offsets })
    }

    /// The columns of the table that became features.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// The number of features, erased ones included.
    pub fn width(&self) -> usize {
        self.offsets.last().map_or(0, |&width| width as usize)
    }

    /// The name of a feature: the column for a number, `column=level` for a level, `column:word` for a word and
    /// `column#7` for a hash bucket; `word` and `#7` when the words of one column are all there is. None for an erased
    /// or impossible one.
    pub fn name(&self, feature: u32) -> Option<Cow<'_, str>> {
        let (at, local) = self.locate(feature)?;
        let FeatureColumn { name, kind, .. } = &self.columns[at];
        let alone = self.columns.len() == 1;
        Some(match kind {
            FeatureKind::Numeric => Cow::Borrowed(name),
            FeatureKind::OneHot { levels, .. } => Cow::Owned(format!("{name}={}", levels.name(local)?)),
            FeatureKind::Words(vocabulary) if alone => Cow::Borrowed(vocabulary.word(local)?),
            FeatureKind::Words(vocabulary) => Cow::Owned(format!("{name}:{}", vocabulary.word(local)?)),
            FeatureKind::Hashed(_) if alone => Cow::Owned(format!("#{local}")),
            FeatureKind::Hashed(_) => Cow::Owned(format!("{name}#{local}")),
        })
    }

    /// Whether rows are mostly zeros: there are words, or more than 64 features are levels.
    pub fn is_sparse(&self) -> bool {
        let levels: usize = self
            .columns
            .iter()
            .filter(|c| matches!(c.kind, FeatureKind::OneHot { .. }))
            .map(FeatureColumn::width)
            .sum();
        levels > MANY_LEVELS
            || self.columns.iter().any(|c| matches!(c.kind, FeatureKind::Words(_) | FeatureKind::Hashed(_)))
    }

    /// Replaces `out` by the features of one row: sorted by feature, each once, zeros left out. Cells are in the order
    /// of the table that the encoder was built on; [`bind`](Self::bind) for any other.
    pub fn encode(
        &self,
        cells: &[Cell],
        line: u64,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        self.encode_columns(self.columns.iter().map(|c| c.position), self.table_width, cells, line, out)
    }

    pub(crate) fn encode_at(
        &self,
        positions: &[usize],
        table_width: usize,
        cells: &[Cell],
        line: u64,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        self.encode_columns(positions.iter().copied(), table_width, cells, line, out)
    }

    fn encode_columns(
        &self,
        positions: impl Iterator<Item = usize>,
        table_width: usize,
        cells: &[Cell],
        line: u64,
        out: &mut Vec<(u32, f64)>,
    ) -> Result<EncodingGaps, FeatureError> {
        out.clear();
        if cells.len() != table_width {
            return Err(FeatureError::CellCount { line, found: cells.len(), expected: table_width });
        }
        let mut encoded = EncodingGaps::default();
        for ((column, position), &offset) in self.columns.iter().zip(positions).zip(&self.offsets) {
            column.encode(&cells[position], line, offset, out, &mut encoded)?;
        }
        Ok(encoded)
    }

    /// A row that this encoder made is gone: its levels and words are held by one row fewer, and names that no row
    /// holds any more are erased. Returns the features whose names were erased just now.
    pub fn forget_row(&mut self, row: &[(u32, f64)]) -> Vec<u32> {
        let mut erased = Vec::new();
        for &(feature, _) in row {
            if let Some((at, local)) = self.locate(feature)
                && let Some(names) = self.columns[at].names_mut()
                && names.forget(local)
            {
                erased.push(feature);
            }
        }
        erased
    }

    /// A row that this encoder made is new: its levels and words are held by one row more. Names that were erased
    /// before do not come back.
    pub fn learn_row(&mut self, row: &[(u32, f64)]) {
        for &(feature, _) in row {
            if let Some((at, local)) = self.locate(feature)
                && let Some(names) = self.columns[at].names_mut()
            {
                names.learn(local);
            }
        }
    }

    /// What a forget cannot undo; empty when the encoder owes nothing to rows that are gone.
    pub fn not_covered(&self) -> Vec<NotCovered> {
        let mut found = Vec::new();
        self.columns.iter().for_each(|column| column.not_covered(&mut found));
        found
    }

    /// The column that owns a feature, and the feature's place in it.
    fn locate(&self, feature: u32) -> Option<(usize, u32)> {
        let at = self.offsets.partition_point(|&offset| offset <= feature).checked_sub(1)?;
        (at < self.columns.len()).then(|| (at, feature - self.offsets[at]))
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
