//! One column of a table, and what is kept of it: a number, levels, or words with or without a
//! vocabulary.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::decimal::number_in;
use super::number_sums::NumberSums;
use super::{Cell, FeatureError, HashedWords, Vocabulary};

/// What did not become features in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncodingGaps {
    /// Cells of one-hot columns whose level the encoder does not know.
    pub unknown_levels: u64,
    /// Words that the encoder does not know, repeats included.
    pub unknown_words: u64,
}

/// The level of a missing cell in a one-hot column. A cell that holds this very text counts as
/// missing too.
pub(crate) const MISSING: &str = "(missing)";

/// A column of the table that became features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureColumn {
    pub(crate) name: String,
    /// Its place in the table that the encoder was built on.
    pub(crate) position: usize,
    pub(crate) kind: FeatureKind,
}

/// What a column is, and what is kept of its rows. Columns without names of their own have raw
/// places from `base` on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FeatureKind {
    /// The number at `base`; where gaps are filled, a 1 at the place after it says that there is
    /// none.
    Number { base: u32, sums: NumberSums },
    /// Levels, whose names have places of their own.
    Levels {
        /// The rows decided that the column is one-hot, not the user.
        inferred: bool,
        /// The feature of a level is the mean of its targets.
        as_means: bool,
    },
    /// Words, whose names have places of their own; so many of them become features.
    Words { most: usize },
    /// Words that were supplied. The rows that hold each are kept where weights need them.
    Supplied {
        base: u32,
        words: Vocabulary,
        documents: Vec<u64>,
    },
    /// Words by their hashes. The rows that hold each bucket are kept where weights need them.
    Hashed {
        base: u32,
        hashed: HashedWords,
        documents: Vec<u64>,
    },
}

/// The number in a cell, if it is one: a number of the file, or text that reads as one once
/// trimmed.
pub(crate) fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(*value),
        Cell::Text(text) => number_in(text),
    }
}

/// The text in a cell, if it holds anything. Numbers of the file are written in their shortest
/// form.
pub(crate) fn text(cell: &Cell) -> Option<Cow<'_, str>> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(Cow::Owned(value.to_string())),
        Cell::Text(text) => Some(Cow::Borrowed(text)),
    }
}

/// The finite number that a level reads as, so that a column of such levels alone would be numeric.
pub(crate) fn level_number(level: &str) -> Option<f64> {
    level
        .trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

impl FeatureColumn {
    /// The column's name in the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `numeric`, `one-hot`, `mean target`, `words` or `hashed words`.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            FeatureKind::Number { .. } => "numeric",
            FeatureKind::Levels { as_means: true, .. } => "mean target",
            FeatureKind::Levels { .. } => "one-hot",
            FeatureKind::Words { .. } | FeatureKind::Supplied { .. } => "words",
            FeatureKind::Hashed { .. } => "hashed words",
        }
    }

    /// Whether its feature is the number in its cell.
    pub fn is_numeric(&self) -> bool {
        matches!(self.kind, FeatureKind::Number { .. })
    }

    /// Whether it holds texts.
    pub(crate) fn is_text(&self) -> bool {
        !matches!(
            self.kind,
            FeatureKind::Number { .. } | FeatureKind::Levels { .. }
        )
    }

    /// Its first raw place and how many it has; None for a column whose names have places of their
    /// own.
    pub(crate) fn run(&self, gaps: bool) -> Option<(u32, u32)> {
        match &self.kind {
            FeatureKind::Number { base, .. } => Some((*base, 1 + u32::from(gaps))),
            FeatureKind::Supplied { base, words, .. } => Some((*base, words.len() as u32)),
            FeatureKind::Hashed { base, hashed, .. } => Some((*base, hashed.buckets())),
            FeatureKind::Levels { .. } | FeatureKind::Words { .. } => None,
        }
    }
}

/// The number that a numeric column must hold; None for a gap where gaps are filled.
pub(crate) fn check_number(
    cell: &Cell,
    line: u64,
    column: &str,
    gaps: bool,
) -> Result<Option<f64>, FeatureError> {
    match cell {
        Cell::Missing if gaps => Ok(None),
        Cell::Missing => Err(FeatureError::MissingNumber {
            line,
            column: column.into(),
        }),
        _ => match number(cell) {
            Some(value) => Ok(Some(value)),
            None => Err(FeatureError::NotANumber {
                line,
                column: column.into(),
            }),
        },
    }
}

/// As [`check_number`], and the number must be finite.
pub(crate) fn finite_number(
    cell: &Cell,
    line: u64,
    column: &str,
    gaps: bool,
) -> Result<Option<f64>, FeatureError> {
    match check_number(cell, line, column, gaps)? {
        Some(value) if !value.is_finite() => Err(FeatureError::NotFinite {
            line,
            column: column.into(),
        }),
        found => Ok(found),
    }
}
