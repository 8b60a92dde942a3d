//! One column of a table as features: a number, one column per level, or one column per word or hash bucket.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Cell, FeatureError, HashedWords, Vocabulary, names::NameIndex};
use crate::not_covered::NotCovered;

/// What did not become features in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncodingGaps {
    /// Cells of one-hot columns whose level the encoder does not know.
    pub unknown_levels: u64,
    /// Words outside the vocabulary, repeats included.
    pub unknown_words: u64,
}

/// The level of a missing cell in a one-hot column. A cell that holds this very text counts as missing too.
pub(crate) const MISSING: &str = "(missing)";

/// A column of the table that became features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureColumn {
    pub(crate) name: String,
    /// Its place in the table that the encoder was built on.
    pub(crate) position: usize,
    pub(crate) kind: FeatureKind,
}

/// What a column became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FeatureKind {
    Numeric,
    OneHot {
        levels: NameIndex,
        /// The rows decided that the column is one-hot, not the user.
        inferred: bool,
    },
    Words(Vocabulary),
    Hashed(HashedWords),
}

/// The number in a cell, if it is one: a number of the file, or text that reads as one once trimmed.
pub(crate) fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(*value),
        Cell::Text(text) => text.trim().parse().ok(),
    }
}

/// The text in a cell, if it holds anything. Numbers of the file are written in their shortest form.
pub(crate) fn text(cell: &Cell) -> Option<Cow<'_, str>> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(Cow::Owned(value.to_string())),
        Cell::Text(text) => Some(Cow::Borrowed(text)),
    }
}

impl FeatureColumn {
    /// The column's name in the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `numeric`, `one-hot`, `words` or `hashed words`.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            FeatureKind::Numeric => "numeric",
            FeatureKind::OneHot { .. } => "one-hot",
            FeatureKind::Words(_) => "words",
            FeatureKind::Hashed(_) => "hashed words",
        }
    }

    /// Whether its one feature is the number in its cell.
    pub fn is_numeric(&self) -> bool {
        matches!(self.kind, FeatureKind::Numeric)
    }

    /// The number of features, erased ones included.
    pub fn width(&self) -> usize {
        match &self.kind {
            FeatureKind::Numeric => 1,
            FeatureKind::OneHot { levels, .. } => levels.len(),
            FeatureKind::Words(vocabulary) => vocabulary.len(),
            FeatureKind::Hashed(hashed) => hashed.buckets() as usize,
        }
    }

    /// Appends the features of one cell, moved up by `offset`.
    pub(crate) fn encode(
        &self,
        cell: &Cell,
        line: u64,
        offset: u32,
        out: &mut Vec<(u32, f64)>,
        encoded: &mut EncodingGaps,
    ) -> Result<(), FeatureError> {
        match &self.kind {
            FeatureKind::Numeric => {
                let value = check_number(cell, line, &self.name)?;
                if !value.is_finite() {
                    return Err(FeatureError::NotFinite { line, column: self.name.clone() });
                }
                if value != 0.0 {
                    out.push((offset, value));
                }
            }
            FeatureKind::OneHot { levels, .. } => {
                match levels.column(&text(cell).unwrap_or(Cow::Borrowed(MISSING))) {
                    Some(level) => out.push((offset + level, 1.0)),
                    None => encoded.unknown_levels += 1,
                }
            }
            FeatureKind::Words(vocabulary) => {
                if let Some(text) = text(cell) {
                    encoded.unknown_words += vocabulary.append_counts(&text, offset, out);
                }
            }
            FeatureKind::Hashed(hashed) => {
                if let Some(text) = text(cell) {
                    hashed.append_counts(&text, offset, out);
                }
            }
        }
        Ok(())
    }

    /// The names that rows gave to this column's features.
    pub(crate) fn names_mut(&mut self) -> Option<&mut NameIndex> {
        match &mut self.kind {
            FeatureKind::Numeric | FeatureKind::Hashed(_) => None,
            FeatureKind::OneHot { levels, .. } => Some(levels),
            FeatureKind::Words(vocabulary) => Some(vocabulary.names_mut()),
        }
    }

    /// What a forget cannot undo in this column.
    pub(crate) fn not_covered(&self, out: &mut Vec<NotCovered>) {
        let column = || self.name.clone();
        let erased = match &self.kind {
            FeatureKind::Numeric | FeatureKind::Hashed(_) => 0,
            FeatureKind::OneHot { levels, inferred } => {
                // One value left that is no number would make the column one-hot again, so that nothing of the
                // rows that are gone shows in the decision.
                let undecided =
                    levels.live().all(|level| level == MISSING || level.trim().parse::<f64>().is_ok());
                if *inferred && undecided {
                    out.push(NotCovered::ColumnKind { column: column() });
                }
                levels.erased()
            }
            FeatureKind::Words(vocabulary) => {
                if vocabulary.is_chosen() {
                    out.push(NotCovered::ChosenWords { column: column(), words: vocabulary.len() });
                }
                vocabulary.erased()
            }
        };
        if erased > 0 {
            out.push(NotCovered::ErasedNames { column: column(), names: erased });
        }
    }
}

/// The number that a numeric column must hold.
pub(crate) fn check_number(cell: &Cell, line: u64, column: &str) -> Result<f64, FeatureError> {
    match cell {
        Cell::Missing => Err(FeatureError::MissingNumber { line, column: column.into() }),
        _ => number(cell).ok_or_else(|| FeatureError::NotANumber { line, column: column.into() }),
    }
}
