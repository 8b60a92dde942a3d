//! Fits of rows that are too many for memory.

use super::Model;
use crate::error::Result;
use crate::rows::Rows;

/// A fit that sees its rows batch by batch, every batch once. Memory: what the model keeps of all
/// rows, and one batch.
pub trait BatchedFit: Send {
    /// Takes rows in. After an error the fit is of no use.
    fn add(&mut self, rows: &Rows) -> Result<()>;

    /// The model of all rows.
    fn finish(self: Box<Self>) -> Result<Model>;
}
