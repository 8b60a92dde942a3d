//! Sums of weighted outer products: Hessians and the Gram matrix.

use faer::{Accum, Mat, Par};

use super::pass::{BLOCK, PassFrame};
use super::reader::{PassReader, RowPlace};
use crate::linalg::{SideBySide, lower_products, mirror_lower, multiply_lower, widest};

/// Rows that are multiplied at a time, with several classes, take so many bytes at most, and as many when they are weighed: both are to stay
/// in the cache, beside the sums of a pair of classes.
const SIDE_BYTES: usize = 1 << 18;

/// So many times as many rows wait until the sums of a pair join the others, which are far too many for the cache.
const SLICES: usize = 12;

/// Σ v_ab x xᵀ in blocks of outputs × outputs; only blocks on and below the diagonal, and of each its lower triangle, are
/// summed: v_ab x xᵀ is symmetric in itself. With several outputs v_aa = −Σ_b v_ab, as for a softmax, so that blocks on the diagonal follow
/// from the others.
pub(super) struct HessianSums {
    width: usize,
    outputs: usize,
    sums: Mat<f64>,
    dense: DenseRows,
}

/// Dense rows waiting, and their v_ab.
struct DenseRows {
    count: usize,
    /// How many wait at most, and how many of them are multiplied at a time: a slice.
    most: usize,
    slice: usize,
    /// With one output one row after another. With several, one slice after another; in each one feature after another, with the numbers of
    /// all rows of the slice.
    rows: Vec<f64>,
    /// The rows of a slice times v_ab.
    scaled: Vec<f64>,
    /// One pair of outputs after another, each with the numbers of all rows.
    values: Vec<f64>,
}

/// The pairs of outputs that are summed: a below b, or the only one.
fn pairs(outputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let own = usize::from(outputs > 1);
    (0..outputs).flat_map(move |b| (b + own..outputs).map(move |a| (a, b)))
}

impl HessianSums {
    pub(super) fn new(frame: PassFrame<'_>) -> Self {
        let width = frame.basis.width();
        let outputs = frame.outputs;
        let (slice, slices) = match outputs {
            1 => (BLOCK, 1),
            _ => ((SIDE_BYTES / (size_of::<f64>() * width.max(1)) / 32 * 32).clamp(64, 512), SLICES),
        };
        let sums = Mat::zeros(width * outputs, width * outputs);
        let dense = DenseRows {
            count: 0,
            most: slice * slices,
            slice,
            rows: Vec::new(),
            scaled: Vec::new(),
            values: Vec::new(),
        };
        Self { width, outputs, sums, dense }
    }

    pub(super) fn add(&mut self, reader: &PassReader<'_, '_>, value: impl Fn(usize, usize) -> f64) {
        if let RowPlace::Thin = reader.kind {
            for (a, b) in pairs(self.outputs) {
                self.add_thin(&reader.entries, value(a, b), a, b);
            }
            return;
        }
        let DenseRows { count, most, slice, rows, scaled, values } = &mut self.dense;
        if rows.is_empty() {
            *rows = vec![0.0; self.width * *most];
            *scaled = vec![0.0; self.width * *slice];
            *values = vec![0.0; pairs(self.outputs).count() * *most];
        }
        if self.outputs == 1 {
            rows[*count * self.width..(*count + 1) * self.width].copy_from_slice(&reader.buffer);
        } else {
            let rows = &mut rows[*count / *slice * *slice * self.width..];
            let lane = rows.iter_mut().skip(*count % *slice).step_by(*slice);
            lane.zip(&reader.buffer).for_each(|(to, x)| *to = *x);
        }
        let lane = values.iter_mut().skip(*count).step_by(*most);
        lane.zip(pairs(self.outputs)).for_each(|(to, (a, b))| *to = value(a, b));
        *count += 1;
        if count == most {
            self.multiply();
        }
    }

    fn add_thin(&mut self, entries: &[(usize, f64)], value: f64, a: usize, b: usize) {
        for (at, &(j, x)) in entries.iter().enumerate() {
            let scaled = value * x;
            let column = &mut self.sums.col_as_slice_mut(b * self.width + j)[a * self.width..];
            for &(i, other) in &entries[at..] {
                column[i] += scaled * other;
            }
        }
    }

    fn multiply(&mut self) {
        if self.dense.count == 0 {
            return;
        }
        if self.outputs == 1 {
            self.multiply_rows()
        } else {
            self.multiply_features()
        }
        self.dense.count = 0;
    }

    /// One output: wide enough for a product of matrices.
    fn multiply_rows(&mut self) {
        let DenseRows { count, rows, scaled, values, .. } = &mut self.dense;
        let taken = *count * self.width;
        for (at, value) in values.iter().enumerate().take(*count) {
            let row = at * self.width..(at + 1) * self.width;
            scaled[row.clone()].iter_mut().zip(&rows[row]).for_each(|(to, x)| *to = value * x);
        }
        let table = |values| faer::MatRef::from_column_major_slice(values, self.width, *count);
        let (rows, scaled) = (table(&rows[..taken]), table(&scaled[..taken]));
        multiply_lower(self.sums.as_mut(), Accum::Add, scaled, rows.transpose(), 1.0, Par::Seq);
    }

    /// Several outputs, pair by pair.
    fn multiply_features(&mut self) {
        let Self { width, outputs, sums, dense } = self;
        let (width, outputs) = (*width, *outputs);
        let DenseRows { count, most, slice, rows, scaled, values } = dense;
        // Rows that were here before and stand behind the last one are to count for nothing.
        for values in values.chunks_exact_mut(*most) {
            values[*count..].fill(0.0);
        }
        // The lower triangle of a pair, column after column.
        let mut own = vec![0.0; width * (width + 1) / 2];
        let begin = |j: usize| j * width - j * j.saturating_sub(1) / 2;
        for ((a, b), values) in pairs(outputs).zip(values.chunks_exact(*most)) {
            own.fill(0.0);
            let slices = rows.chunks_exact(*slice * width).zip(values.chunks_exact(*slice));
            for (rows, values) in slices.take(count.div_ceil(*slice)) {
                widest(
                    #[inline(always)]
                    || {
                        for (to, from) in scaled.chunks_exact_mut(*slice).zip(rows.chunks_exact(*slice)) {
                            to.iter_mut().zip(from).zip(values).for_each(|((to, x), value)| *to = value * x);
                        }
                    },
                );
                let left = SideBySide { values: scaled, rows: *slice };
                lower_products(left, SideBySide { values: rows, rows: *slice }, |i, j, sum| {
                    own[begin(j) + i - j] += sum;
                });
            }
            for j in 0..width {
                let column = &mut sums.col_as_slice_mut(b * width + j)[a * width + j..(a + 1) * width];
                column.iter_mut().zip(&own[begin(j)..]).for_each(|(sum, own)| *sum += own);
            }
        }
    }

    pub(super) fn finish(mut self) -> Mat<f64> {
        self.multiply();
        let Self { width, outputs, mut sums, .. } = self;
        // A block off the diagonal is needed whole.
        for (a, b) in pairs(outputs).filter(|(a, b)| a != b) {
            mirror_lower(sums.as_mut().submatrix_mut(a * width, b * width, width, width));
            for own in [a, b] {
                for j in 0..width {
                    for i in j..width {
                        sums[(own * width + i, own * width + j)] -= sums[(a * width + i, b * width + j)];
                    }
                }
            }
        }
        sums
    }
}
