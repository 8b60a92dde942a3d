//! Who multiplies blocks of rows with themselves where the processor does not: a graphics card,
//! say.
//!
//! This crate touches no device. Whoever has one hands in a [`GramEngine`] with the rows
//! ([`Rows::multiplied_by`](crate::Rows::multiplied_by)), and the fits that need XᵀX ask it.

use std::fmt::Debug;

use crate::error::Result;

/// Something that multiplies blocks of rows with themselves.
pub trait GramEngine: Debug + Send + Sync {
    /// Begins a sum of XᵀX over rows of this many numbers. None where it cannot be held there: then
    /// the processor does the work, and whoever handed the engine in can ask it why.
    ///
    /// # Errors
    /// The device fails.
    fn begin(&self, width: usize) -> Result<Option<Box<dyn GramSum>>>;

    /// Replaces the lower triangle of a symmetric matrix, given by its columns, by that of its
    /// Cholesky factor.
    ///
    /// # Errors
    /// The device fails.
    fn factor(&self, columns: &mut [&mut [f64]]) -> Result<DeviceFactor>;
}

/// What became of a matrix that was to be factored elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceFactor {
    /// The matrix is its factor now.
    Factored,
    /// The matrix has no factor: this pivot is not positive. The columns are as they were.
    NotPositive(usize),
    /// The processor does it sooner, or nothing else can. The columns are as they were.
    Refused,
}

/// A sum of XᵀX under way.
pub trait GramSum: Send {
    /// How many rows a block has, at most.
    fn block(&self) -> usize;

    /// Where the next block is to be written, row after row. It is to be written and not read: it
    /// may be memory that is slow to read. It holds what it held before.
    ///
    /// # Errors
    /// The device fails.
    fn buffer(&mut self) -> Result<&mut [f64]>;

    /// Adds the products of the first rows of the buffer. The work may go on after this returns.
    ///
    /// # Errors
    /// The device fails.
    fn add(&mut self, rows: usize) -> Result<()>;

    /// The sum, once everything is done.
    ///
    /// # Errors
    /// The device fails.
    fn finish(self: Box<Self>) -> Result<SummedGram>;
}

/// XᵀX as a device gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct SummedGram {
    /// Column after column; the lower triangle counts.
    pub values: Vec<f64>,
    /// The most roundings that an entry has seen: as many as there are rows in a product, and one
    /// for every sum that the product went into.
    pub terms: usize,
}
