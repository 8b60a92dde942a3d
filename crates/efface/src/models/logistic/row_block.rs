//! Rows many at a time, for passes that multiply each of them with several vectors. A matrix
//! product reads a dense row once for all classes, where inner products would read it once for
//! each; and a non-zero of a sparse row meets the parameters of all classes side by side.

use faer::{Accum, Mat, Par};

use super::pass::{BLOCK, PassFrame};
use super::reader::PassReader;
use super::sample::{RowSample, WeightedRow};
use crate::linalg::{add_few_shares, few_scores, multiply, transposed, widest};
use crate::rows::RowRef;

/// With fewer scores a row, copying it into a block takes longer than a product saves.
const WORTH_COPYING: usize = 3;

/// Up to so many scores, dense rows are better multiplied along themselves, where they lie, than by
/// a matrix product.
const FEW_SCORES: usize = 12;

/// Scores of a sparse row that are summed side by side in registers.
const LANES: usize = 16;
/// The same where fewer are left.
const FEW_LANES: usize = 4;

/// Sums the products of a row's non-zeros with the parameters of `N` scores, from the score `at`
/// on.
#[inline(always)]
fn gather<const N: usize>(
    row: &[(usize, f64)],
    vectors: &Mat<f64>,
    at: usize,
    scores: &mut [f64; N],
) {
    let mut sums = [0.0; N];
    for &(j, x) in row {
        let vector = &vectors.col_as_slice(j)[at..at + N];
        sums.iter_mut()
            .zip(vector)
            .for_each(|(sum, v)| *sum += x * v);
    }
    *scores = sums;
}

/// A block of rows, and their scores.
pub(super) struct RowBlock<'f, 'r> {
    frame: PassFrame<'f>,
    reader: PassReader<'f, 'r>,
    content: BlockContent<'r>,
    /// One column per row, one line per vector that rows are multiplied with.
    pub(super) scores: Mat<f64>,
    /// One column per row, one line per score: what every row adds to a sum, as a multiple of
    /// itself.
    pub(super) shares: Mat<f64>,
    count: usize,
}

enum BlockContent<'r> {
    /// The features of rows where they lie, of which few scores are asked.
    Lying(Vec<&'r [f64]>),
    /// One column per row.
    Dense(Mat<f64>),
    /// The non-zeros of row after row, and where each row ends.
    Sparse {
        entries: Vec<(usize, f64)>,
        ends: Vec<usize>,
    },
}

/// Parameters in the layout of a block: one column per score for dense rows, one per feature for
/// sparse ones. Sums over rows have the same layout.
pub(super) struct BlockTable(Mat<f64>);

impl BlockTable {
    pub(super) fn clear(&mut self) {
        self.0.fill(0.0);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }
}

impl RowSample<'_> {
    /// Whether its rows are better read in blocks.
    pub(super) fn is_for_blocks(&self, frame: PassFrame<'_>) -> bool {
        frame.outputs >= WORTH_COPYING
            && (!self.is_thin(frame) || frame.basis.is_unshifted() && self.shape.is_sparse)
    }
}

fn is_sparse(row: RowRef<'_>) -> bool {
    matches!(row, RowRef::Sparse64(..) | RowRef::Sparse32(..))
}

impl<'f, 'r> RowBlock<'f, 'r> {
    /// A block for rows like these.
    pub(super) fn new(frame: PassFrame<'f>, members: &[WeightedRow<'_>]) -> Self {
        Self::with_lines(frame, members, frame.outputs)
    }

    /// The same for products with more than one vector a score.
    pub(super) fn with_lines(
        frame: PassFrame<'f>,
        members: &[WeightedRow<'_>],
        lines: usize,
    ) -> Self {
        let sparse =
            frame.basis.is_unshifted() && members.iter().all(|member| is_sparse(member.features));
        let content = if sparse {
            BlockContent::Sparse {
                entries: Vec::new(),
                ends: Vec::new(),
            }
        } else if lines <= FEW_SCORES && members.iter().all(|member| frame.lies_ready(member)) {
            BlockContent::Lying(Vec::with_capacity(BLOCK))
        } else {
            BlockContent::Dense(Mat::zeros(frame.basis.width(), BLOCK))
        };
        Self {
            frame,
            reader: PassReader::raw(frame),
            content,
            scores: Mat::zeros(lines, BLOCK),
            shares: Mat::zeros(frame.outputs, BLOCK),
            count: 0,
        }
    }

    /// The parameters in the units and the layout of the block.
    pub(super) fn against(&self, theta: &Mat<f64>) -> BlockTable {
        let mut vectors = Mat::zeros(theta.nrows(), theta.ncols());
        for c in 0..theta.ncols() {
            vectors
                .col_as_slice_mut(c)
                .copy_from_slice(&self.reader.against(theta.col_as_slice(c)));
        }
        match self.content {
            BlockContent::Lying(_) | BlockContent::Dense(_) => BlockTable(vectors),
            BlockContent::Sparse { .. } => BlockTable(transposed(&vectors)),
        }
    }

    /// A sum of no rows.
    pub(super) fn nothing(&self) -> BlockTable {
        let width = self.frame.basis.width();
        match self.content {
            BlockContent::Lying(_) | BlockContent::Dense(_) => {
                BlockTable(Mat::zeros(width, self.frame.outputs))
            }
            BlockContent::Sparse { .. } => BlockTable(Mat::zeros(self.frame.outputs, width)),
        }
    }

    /// Reads at most [`BLOCK`] rows.
    pub(super) fn load(&mut self, members: &[WeightedRow<'r>]) {
        self.count = members.len().min(BLOCK);
        let members = &members[..self.count];
        match &mut self.content {
            BlockContent::Lying(rows) => {
                rows.clear();
                rows.extend(members.iter().filter_map(|member| match member.features {
                    RowRef::Dense64(x) => Some(x),
                    _ => None,
                }));
            }
            BlockContent::Dense(rows) => {
                for (k, member) in members.iter().enumerate() {
                    self.reader.write(member, rows.col_as_slice_mut(k));
                }
            }
            BlockContent::Sparse { entries, ends } => {
                entries.clear();
                ends.clear();
                for member in members {
                    self.frame.entries_raw(member, entries);
                    ends.push(entries.len());
                }
            }
        }
    }

    /// Reads at most [`BLOCK`] rows and multiplies them with `vectors`.
    pub(super) fn read(&mut self, members: &[WeightedRow<'r>], vectors: &BlockTable) {
        self.load(members);
        self.multiply(vectors);
    }

    /// Multiplies the rows that were read with `vectors`.
    pub(super) fn multiply(&mut self, vectors: &BlockTable) {
        match &self.content {
            BlockContent::Lying(rows) => few_scores(rows, &vectors.0, &mut self.scores),
            BlockContent::Dense(rows) => {
                multiply(
                    self.scores.as_mut().subcols_mut(0, self.count),
                    Accum::Replace,
                    vectors.0.as_ref().transpose(),
                    rows.as_ref().subcols(0, self.count),
                    1.0,
                    Par::Seq,
                );
            }
            BlockContent::Sparse { entries, ends } => {
                let scores = &mut self.scores;
                widest(
                    #[inline(always)]
                    || {
                        let mut begin = 0;
                        for (k, end) in ends.iter().enumerate() {
                            let line = scores.col_as_slice_mut(k);
                            let (wide, rest) = line.as_chunks_mut::<LANES>();
                            let (narrow, single) = rest.as_chunks_mut::<FEW_LANES>();
                            let row = &entries[begin..*end];
                            let mut at = 0;
                            for lanes in wide {
                                gather(row, &vectors.0, at, lanes);
                                at += LANES;
                            }
                            for lanes in narrow {
                                gather(row, &vectors.0, at, lanes);
                                at += FEW_LANES;
                            }
                            for lane in single {
                                gather(row, &vectors.0, at, std::array::from_mut(lane));
                                at += 1;
                            }
                            begin = *end;
                        }
                    },
                );
            }
        }
    }

    /// Adds every row, times its shares, to a sum.
    pub(super) fn add_shares(&self, sum: &mut BlockTable) {
        match &self.content {
            BlockContent::Lying(rows) => add_few_shares(rows, &self.shares, &mut sum.0),
            BlockContent::Dense(rows) => multiply(
                sum.0.as_mut(),
                Accum::Add,
                rows.as_ref().subcols(0, self.count),
                self.shares.as_ref().subcols(0, self.count).transpose(),
                1.0,
                Par::Seq,
            ),
            BlockContent::Sparse { entries, ends } => widest(
                #[inline(always)]
                || {
                    let mut begin = 0;
                    for (k, end) in ends.iter().enumerate() {
                        let line = self.shares.col_as_slice(k);
                        for &(j, x) in &entries[begin..*end] {
                            let out = sum.0.col_as_slice_mut(j);
                            out.iter_mut()
                                .zip(line)
                                .for_each(|(out, share)| *out += x * share);
                        }
                        begin = *end;
                    }
                },
            ),
        }
    }

    /// A sum of rows in inner coordinates, one column per score.
    pub(super) fn inner(&self, sum: BlockTable) -> Mat<f64> {
        let mut sum = match self.content {
            BlockContent::Lying(_) | BlockContent::Dense(_) => sum.0,
            BlockContent::Sparse { .. } => transposed(&sum.0),
        };
        (0..sum.ncols()).for_each(|c| self.reader.inner(sum.col_as_slice_mut(c)));
        sum
    }
}
