//! Dense rows many at a time, for passes that multiply each of them with several vectors: a matrix product reads a row once
//! for all classes, where inner products would read it once for each.

use faer::{Accum, Mat, Par};

use super::pass::{BLOCK, Frame, Sample, WeightedRow};
use super::reader::PassReader;
use crate::linalg::multiply;

/// With fewer scores a row, copying it into a block takes longer than a product saves.
const WORTH_COPYING: usize = 3;

/// A block of rows, one column each, and their scores.
pub(super) struct RowBlock<'f, 'r> {
    reader: PassReader<'f, 'r>,
    rows: Mat<f64>,
    /// One column per row, one line per score.
    pub(super) scores: Mat<f64>,
    /// The same shape: what every row adds to a sum, as a multiple of itself.
    pub(super) shares: Mat<f64>,
    count: usize,
}

impl Sample<'_> {
    /// Whether its rows are better read in blocks.
    pub(super) fn is_for_blocks(&self, frame: Frame<'_>) -> bool {
        frame.outputs >= WORTH_COPYING && !self.is_thin(frame)
    }
}

impl<'f, 'r> RowBlock<'f, 'r> {
    /// A block of rows in the units of the reader.
    pub(super) fn new(reader: PassReader<'f, 'r>, frame: Frame<'_>) -> Self {
        Self {
            reader,
            rows: Mat::zeros(frame.basis.width(), BLOCK),
            scores: Mat::zeros(frame.outputs, BLOCK),
            shares: Mat::zeros(frame.outputs, BLOCK),
            count: 0,
        }
    }

    /// The parameters in the units of the block, one column per score.
    pub(super) fn against(&self, theta: &Mat<f64>) -> Mat<f64> {
        let mut vectors = Mat::zeros(theta.nrows(), theta.ncols());
        for c in 0..theta.ncols() {
            vectors.col_as_slice_mut(c).copy_from_slice(&self.reader.against(theta.col_as_slice(c)));
        }
        vectors
    }

    /// Reads at most [`BLOCK`] rows and multiplies them with `vectors`.
    pub(super) fn read(&mut self, members: &[WeightedRow<'r>], vectors: &Mat<f64>) {
        self.count = members.len().min(BLOCK);
        for (k, member) in members.iter().take(BLOCK).enumerate() {
            self.reader.write(member, self.rows.col_as_slice_mut(k));
        }
        multiply(
            self.scores.as_mut().subcols_mut(0, self.count),
            Accum::Replace,
            vectors.as_ref().transpose(),
            self.rows.as_ref().subcols(0, self.count),
            1.0,
            Par::Seq,
        );
    }

    /// Adds every row, times its shares, to a sum with one column per score.
    pub(super) fn add_shares(&self, sum: &mut Mat<f64>) {
        multiply(
            sum.as_mut(),
            Accum::Add,
            self.rows.as_ref().subcols(0, self.count),
            self.shares.as_ref().subcols(0, self.count).transpose(),
            1.0,
            Par::Seq,
        );
    }

    /// A sum of rows of the block, in inner coordinates.
    pub(super) fn inner(&self, sum: &mut Mat<f64>) {
        (0..sum.ncols()).for_each(|c| self.reader.inner(sum.col_as_slice_mut(c)));
    }
}
