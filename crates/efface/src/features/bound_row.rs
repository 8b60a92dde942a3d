//! A row of a table as an encoder sees it.

use super::{Cell, FeatureError};

/// A name that an encoder has no place for yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnknownName {
    pub(crate) column: u32,
    pub(crate) name: String,
}

/// The cells of a row, and where an encoder finds its columns among them.
#[derive(Clone, Copy)]
pub(crate) struct BoundRow<'a> {
    pub(crate) cells: &'a [Cell],
    pub(crate) positions: &'a [usize],
    pub(crate) table_width: usize,
    pub(crate) line: u64,
}

impl BoundRow<'_> {
    pub(crate) fn check_width(&self) -> Result<(), FeatureError> {
        if self.cells.len() == self.table_width {
            return Ok(());
        }
        Err(FeatureError::CellCount {
            line: self.line,
            found: self.cells.len(),
            expected: self.table_width,
        })
    }
}
