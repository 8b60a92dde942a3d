//! Sums of weighted outer products: Hessians and the Gram matrix.

use faer::{Accum, Mat, MatRef, Par};

use super::pass::{BLOCK, PassFrame};
use super::reader::{PassReader, RowPlace};
use crate::linalg::{
    Cholesky, LaneNumber, SideBySide, lower_products, mirror_lower, multiply_lower, transposed,
    widest,
};

/// Rows that are multiplied at a time, with several classes, take so many bytes at most, and as
/// many when they are weighed: both are to stay in the cache, beside the sums of a pair of classes.
/// They are never 1,024: features would lie on the same lines of a cache.
const SIDE_BYTES: usize = 3 << 17;
const MOST_SIDE_BY_SIDE: usize = 992;

/// So many times as many rows wait until the sums of a pair join the others, which are far too many
/// for the cache.
const SLICES: usize = 12;

/// Σ v_ab x xᵀ in blocks of outputs × outputs; only blocks on and below the diagonal, and of each
/// its lower triangle, are summed: v_ab x xᵀ is symmetric in itself. With several outputs v_aa =
/// −Σ_b v_ab, as for a softmax, so that blocks on the diagonal follow from the others.
///
/// With several outputs, products of dense rows are of precision `T`; those of a few hundred rows
/// are summed in it before they join the others.
pub(super) struct HessianSums<'a, T> {
    width: usize,
    outputs: usize,
    sums: Mat<f64>,
    dense: DenseRows<'a, T>,
}

/// Dense rows that wait.
enum DenseRows<'a, T> {
    OneOutput(WeighedRows),
    SeveralOutputs(SideRows<'a, T>),
}

/// One row after another, and each times its v.
struct WeighedRows {
    count: usize,
    rows: Vec<f64>,
    weighed: Vec<f64>,
}

/// Rows side by side, and their v_ab.
struct SideRows<'a, T> {
    /// With L, L⁻¹x takes the place of a row x.
    whitener: Option<&'a Cholesky>,
    count: usize,
    /// How many wait at most, and how many of them are multiplied at a time: a slice.
    most: usize,
    slice: usize,
    /// The rows of the slice that is not full yet, one after another.
    raw: Mat<f64>,
    /// One slice after another; in each one feature after another, with the numbers of all rows of
    /// the slice.
    rows: Vec<T>,
    /// The rows of a slice times v_ab.
    weighed: Vec<T>,
    /// One pair of outputs after another, each with the numbers of all rows.
    values: Vec<T>,
}

/// The pairs of outputs that are summed: a below b, or the only one.
fn pairs(outputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let own = usize::from(outputs > 1);
    (0..outputs).flat_map(move |b| (b + own..outputs).map(move |a| (a, b)))
}

impl<'a, T: LaneNumber> HessianSums<'a, T> {
    pub(super) fn new(frame: PassFrame<'_>) -> Self {
        Self::of_whitened(frame, None)
    }

    /// The sums of rows L⁻¹x, where L is given; rows are dense and outputs several.
    pub(super) fn of_whitened(frame: PassFrame<'_>, whitener: Option<&'a Cholesky>) -> Self {
        let width = frame.basis.width();
        let outputs = frame.outputs;
        let sums = Mat::zeros(width * outputs, width * outputs);
        let dense = match outputs {
            1 => DenseRows::OneOutput(WeighedRows {
                count: 0,
                rows: Vec::new(),
                weighed: Vec::new(),
            }),
            _ => DenseRows::SeveralOutputs(SideRows::new(width, whitener)),
        };
        Self {
            width,
            outputs,
            sums,
            dense,
        }
    }

    pub(super) fn add(&mut self, reader: &PassReader<'_, '_>, value: impl Fn(usize, usize) -> f64) {
        if let RowPlace::Thin = reader.kind {
            for (a, b) in pairs(self.outputs) {
                self.add_thin(&reader.entries, value(a, b), a, b);
            }
            return;
        }
        match &mut self.dense {
            DenseRows::OneOutput(waiting) => {
                waiting.add(&reader.buffer, value(0, 0), &mut self.sums)
            }
            DenseRows::SeveralOutputs(waiting) => {
                waiting.add(&reader.buffer, self.outputs, value, &mut self.sums);
            }
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

    pub(super) fn finish(self) -> Mat<f64> {
        let Self {
            width,
            outputs,
            mut sums,
            dense,
        } = self;
        match dense {
            DenseRows::OneOutput(mut waiting) => waiting.multiply(&mut sums),
            DenseRows::SeveralOutputs(mut waiting) => waiting.multiply(outputs, &mut sums),
        }
        // A block off the diagonal is needed whole.
        for (a, b) in pairs(outputs).filter(|(a, b)| a != b) {
            mirror_lower(
                sums.as_mut()
                    .submatrix_mut(a * width, b * width, width, width),
            );
            for own in [a, b] {
                for j in 0..width {
                    for i in j..width {
                        sums[(own * width + i, own * width + j)] -=
                            sums[(a * width + i, b * width + j)];
                    }
                }
            }
        }
        sums
    }
}

impl WeighedRows {
    fn add(&mut self, row: &[f64], value: f64, sums: &mut Mat<f64>) {
        self.rows.extend_from_slice(row);
        self.weighed.extend(row.iter().map(|x| value * x));
        self.count += 1;
        if self.count == BLOCK {
            self.multiply(sums);
        }
    }

    /// Wide enough for a product of matrices.
    fn multiply(&mut self, sums: &mut Mat<f64>) {
        let [rows, weighed] = [&self.rows, &self.weighed]
            .map(|values| MatRef::from_column_major_slice(values, sums.nrows(), self.count));
        multiply_lower(
            sums.as_mut(),
            Accum::Add,
            weighed,
            rows.transpose(),
            1.0,
            Par::Seq,
        );
        self.rows.clear();
        self.weighed.clear();
        self.count = 0;
    }
}

impl<'a, T: LaneNumber> SideRows<'a, T> {
    fn new(width: usize, whitener: Option<&'a Cholesky>) -> Self {
        let slice = SIDE_BYTES / (size_of::<T>() * width.max(1)) / 32 * 32;
        let slice = slice.clamp(64, MOST_SIDE_BY_SIDE);
        let [rows, weighed, values] = [const { Vec::new() }; 3];
        Self {
            whitener,
            count: 0,
            most: slice * SLICES,
            slice,
            raw: Mat::new(),
            rows,
            weighed,
            values,
        }
    }

    fn add(
        &mut self,
        row: &[f64],
        outputs: usize,
        value: impl Fn(usize, usize) -> f64,
        sums: &mut Mat<f64>,
    ) {
        let Self {
            count,
            most,
            slice,
            raw,
            rows,
            weighed,
            values,
            ..
        } = self;
        if rows.is_empty() {
            *raw = Mat::zeros(row.len(), *slice);
            *rows = vec![T::default(); row.len() * *most];
            *weighed = vec![T::default(); row.len() * *slice];
            *values = vec![T::default(); pairs(outputs).count() * *most];
        }
        raw.col_as_slice_mut(*count % *slice).copy_from_slice(row);
        let lane = values.iter_mut().skip(*count).step_by(*most);
        lane.zip(pairs(outputs))
            .for_each(|(to, (a, b))| *to = T::of(value(a, b)));
        *count += 1;
        if (*count).is_multiple_of(*slice) {
            self.lay(self.slice);
        }
        if self.count == self.most {
            self.multiply(outputs, sums);
        }
    }

    /// Lays the last rows, so many of them, side by side.
    fn lay(&mut self, count: usize) {
        let Self {
            whitener,
            slice,
            raw,
            rows,
            ..
        } = self;
        if let Some(factor) = whitener {
            factor.half_solve(raw.as_mut().subcols_mut(0, count));
        }
        let rows = &mut rows[(self.count - count) * raw.nrows()..];
        for k in 0..count {
            let lane = rows.iter_mut().skip(k).step_by(*slice);
            lane.zip(raw.col_as_slice(k))
                .for_each(|(to, x)| *to = T::of(*x));
        }
    }

    /// Pair by pair.
    fn multiply(&mut self, outputs: usize, sums: &mut Mat<f64>) {
        if self.count == 0 {
            return;
        }
        self.lay(self.count % self.slice);
        let Self {
            count,
            most,
            slice,
            rows,
            weighed,
            values,
            ..
        } = self;
        let width = sums.nrows() / outputs;
        // Rows that were here before and stand behind the last one are to count for nothing.
        for values in values.chunks_exact_mut(*most) {
            values[*count..].fill(T::default());
        }
        // The lower triangle of a pair, column after column.
        let mut own = vec![0.0; width * (width + 1) / 2];
        let begin = |j: usize| j * width - j * j.saturating_sub(1) / 2;
        for ((a, b), values) in pairs(outputs).zip(values.chunks_exact(*most)) {
            own.fill(0.0);
            let slices = rows
                .chunks_exact(*slice * width)
                .zip(values.chunks_exact(*slice));
            for (rows, values) in slices.take(count.div_ceil(*slice)) {
                widest(
                    #[inline(always)]
                    || {
                        for (to, from) in weighed
                            .chunks_exact_mut(*slice)
                            .zip(rows.chunks_exact(*slice))
                        {
                            to.iter_mut()
                                .zip(from)
                                .zip(values)
                                .for_each(|((to, x), value)| *to = *value * *x);
                        }
                    },
                );
                let left = SideBySide {
                    values: weighed.as_slice(),
                    rows: *slice,
                };
                lower_products(
                    left,
                    SideBySide {
                        values: rows,
                        rows: *slice,
                    },
                    |i, j, sum| {
                        own[begin(j) + i - j] += sum;
                    },
                );
            }
            for j in 0..width {
                let column =
                    &mut sums.col_as_slice_mut(b * width + j)[a * width + j..(a + 1) * width];
                column
                    .iter_mut()
                    .zip(&own[begin(j)..])
                    .for_each(|(sum, own)| *sum += own);
            }
        }
        *count = 0;
    }
}

/// From the sums of rows L⁻¹x to those of the rows: L·B·Lᵀ of every block, of which the lower
/// triangles count.
pub(super) fn unwhiten(sums: &mut Mat<f64>, factor: &Cholesky, par: Par) {
    let width = factor.width();
    let total = sums.nrows();
    for a in (0..total).step_by(width) {
        mirror_lower(sums.as_mut().submatrix_mut(a, a, width, width));
        let mut line = sums.as_mut().submatrix_mut(a, 0, width, a + width);
        let product = factor.times(&line.to_owned(), par);
        line.copy_from(product);
    }
    for b in (0..total).step_by(width) {
        let mut column = sums.as_mut().submatrix_mut(b, b, total - b, width);
        let product = factor.times(&transposed(&column.to_owned()), par);
        column.copy_from(transposed(&product));
    }
}
