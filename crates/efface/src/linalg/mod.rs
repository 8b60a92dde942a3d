//! What faer lacks, and thin names over what it has: a Cholesky factor that can be updated,
//! conjugate gradients on an operator, a lower bound for the least eigenvalue, and small dense
//! helpers.
//!
//! A set of k rows of width p is kept as a p×k matrix, one column per row: columns are contiguous
//! in faer, so each row is too, and a solve against k rows is one solve with k right-hand sides.

mod cg;
mod cholesky;
mod compensated;
mod exponential;
mod few_vectors;
mod growing_cholesky;
mod lanczos;
mod lane_products;
mod lane_rows;
mod shared_work;
mod single;
mod single_solve;

pub(crate) use cg::{CgSettings, by_diagonal, conjugate_gradients};
pub(crate) use cholesky::Cholesky;
pub(crate) use compensated::{
    DoubleWord, SHARED_COLUMNS, long_add, long_add_scaled, long_dot, symmetric_product,
    two_product, two_sum,
};
pub(crate) use exponential::{exponentials_in_place, single_exponential};
pub(crate) use few_vectors::{add_few_shares, few_scores};
pub(crate) use growing_cholesky::GrowingCholesky;
pub(crate) use lanczos::{NormSearch, close_operator_norm, operator_norm};
pub(crate) use lane_products::{LaneNumber, SideBySide, lower_products};
pub(crate) use lane_rows::{BLOCK_ROWS, LaneRows, LaneVectors, SINGLE_UNIT};
pub(crate) use shared_work::{
    by_stretches, column_groups, copy_lower, copy_transposed, share_work,
};
pub(crate) use single::SingleSymmetric;

use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Runs a loop with the widest instructions that the processor has. The closure is to be marked
/// `#[inline(always)]`.
#[inline(always)]
pub(crate) fn widest<R>(work: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(WideLoop(work))
}

/// A loop to be compiled once per instruction set. pulp takes bare closures too, but calls them
/// through a shim that the compiler may leave as a function of its own, compiled for the oldest
/// processor.
struct WideLoop<F>(F);

impl<R, F: FnMut() -> R> pulp::WithSimd for WideLoop<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Unit roundoff of f64.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// The next sixteenth of a power of two, upwards. What the largest sums were is kept for the bounds
/// and outlives the rows that made them so: to more digits, it would tell the squares of a row that
/// left to whoever has the others.
pub(crate) fn coarse(size: f64) -> f64 {
    let step = (16.0 * size.log2()).ceil() / 16.0;
    let rounded = step.exp2() * (1.0 + 4.0 * UNIT);
    if size.is_normal() && rounded.is_finite() {
        rounded.max(size)
    } else {
        size
    }
}

/// Threads of a product, at most. faer makes a task for each thread that it is allowed, however
/// small the product.
const MOST_THREADS: usize = 1024;

/// `threads` as faer wants it.
pub(crate) fn par(threads: usize) -> Par {
    if threads <= 1 {
        Par::Seq
    } else {
        Par::rayon(threads.min(MOST_THREADS))
    }
}

/// `out = alpha · a · b` or `out += alpha · a · b`.
pub(crate) fn multiply(
    out: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    matmul(out, accum, a, b, alpha, par);
}

/// The lower triangle of `out += alpha · a · b`, for a product known to be symmetric: half the
/// work.
pub(crate) fn multiply_lower(
    out: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    use triangular::BlockStructure::{Rectangular, TriangularLower};
    triangular::matmul(
        out,
        TriangularLower,
        accum,
        a,
        Rectangular,
        b,
        Rectangular,
        alpha,
        par,
    );
}

/// Eigenvalues, ascending, and eigenvectors, one column each, of the symmetric matrix whose lower
/// triangle is given.
pub(crate) fn symmetric_eigen(a: MatRef<'_, f64>, par: Par) -> Option<(Vec<f64>, Mat<f64>)> {
    use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
    let n = a.nrows();
    let mut values = faer::diag::Diag::<f64>::zeros(n);
    let mut vectors = Mat::zeros(n, n);
    let scratch =
        self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, par, faer::Spec::default());
    let mut buffer = faer::dyn_stack::MemBuffer::new(scratch);
    let stack = faer::dyn_stack::MemStack::new(&mut buffer);
    self_adjoint_evd(
        a,
        values.as_mut(),
        Some(vectors.as_mut()),
        par,
        stack,
        faer::Spec::default(),
    )
    .ok()?;
    Some((values.column_vector().iter().copied().collect(), vectors))
}

/// Copies the lower triangle onto the upper one, in tiles so that neither side misses the cache all
/// the time.
pub(crate) fn mirror_lower(mut a: MatMut<'_, f64>) {
    const TILE: usize = 32;
    let n = a.nrows();
    for j0 in (0..n).step_by(TILE) {
        for i0 in (j0..n).step_by(TILE) {
            for j in j0..(j0 + TILE).min(n) {
                for i in i0.max(j + 1)..(i0 + TILE).min(n) {
                    a[(j, i)] = a[(i, j)];
                }
            }
        }
    }
}

/// The transpose, eight columns at a time, so that what is written lies together.
pub(crate) fn transposed(a: &Mat<f64>) -> Mat<f64> {
    const TOGETHER: usize = 8;
    let rows = a.nrows();
    let columns = a.ncols();
    let mut turned = Mat::zeros(columns, rows);
    let whole = columns / TOGETHER * TOGETHER;
    for j in (0..whole).step_by(TOGETHER) {
        let from: [&[f64]; TOGETHER] = std::array::from_fn(|at| a.col_as_slice(j + at));
        for i in 0..rows {
            turned.col_as_slice_mut(i)[j..j + TOGETHER]
                .copy_from_slice(&from.map(|column| column[i]));
        }
    }
    for j in whole..columns {
        for (i, value) in a.col_as_slice(j).iter().enumerate() {
            turned[(j, i)] = *value;
        }
    }
    turned
}

/// The Euclidean norm of all entries. Values here are scaled to be near 1, so plain squares neither
/// overflow nor vanish.
pub(crate) fn norm(a: &Mat<f64>) -> f64 {
    (0..a.ncols())
        .map(|j| dot(a.col_as_slice(j), a.col_as_slice(j)))
        .sum::<f64>()
        .sqrt()
}

/// The norm of one column.
pub(crate) fn column_norm(a: &Mat<f64>, j: usize) -> f64 {
    dot(a.col_as_slice(j), a.col_as_slice(j)).sqrt()
}

/// The inner product of two slices, in sixteen lanes whatever the processor, so that every machine
/// adds in the same order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    widest(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; 16];
            let (a16, a_rest) = a.as_chunks::<16>();
            let (b16, b_rest) = b[..a.len()].as_chunks::<16>();
            for (x, y) in a16.iter().zip(b16) {
                for lane in 0..16 {
                    lanes[lane] += x[lane] * y[lane];
                }
            }
            let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
            lanes.iter().sum::<f64>() + rest
        },
    )
}

/// Σ (scale·x)²·share.
pub(crate) fn weighted_square(x: &[f64], scales: &[f64], shares: &[f64]) -> f64 {
    widest(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; 16];
            let (wide, rest) = x.as_chunks::<16>();
            let (scales, scales_rest) = scales[..x.len()].as_chunks::<16>();
            let (shares, shares_rest) = shares[..x.len()].as_chunks::<16>();
            for ((x, scales), shares) in wide.iter().zip(scales).zip(shares) {
                for lane in 0..16 {
                    let scaled = x[lane] * scales[lane];
                    lanes[lane] += scaled * scaled * shares[lane];
                }
            }
            let rest = rest.iter().zip(scales_rest).zip(shares_rest);
            lanes.iter().sum::<f64>()
                + rest
                    .map(|((x, scale), share)| (x * scale).powi(2) * share)
                    .sum::<f64>()
        },
    )
}

/// `out += scale · a`.
pub(crate) fn add_scaled(out: &mut [f64], scale: f64, a: &[f64]) {
    widest(
        #[inline(always)]
        || {
            for (o, x) in out.iter_mut().zip(a) {
                *o += scale * x;
            }
        },
    )
}

/// Reads one number of every page of some slices. Rows asked for at random are in no cache. These
/// reads do not depend on each other, so the processor waits for all of them at once; copying the
/// rows afterwards does not wait again for each page.
pub(crate) fn warm<'a, T: Copy + Into<f64> + 'a>(slices: impl Iterator<Item = &'a [T]>) {
    const PAGE: usize = 4096;
    let mut sum = 0.0;
    for slice in slices {
        let step = PAGE / size_of::<T>();
        slice.iter().step_by(step).for_each(|x| sum += (*x).into());
        slice.last().into_iter().for_each(|x| sum += (*x).into());
    }
    std::hint::black_box(sum);
}

/// A contiguous column as a slice.
pub(crate) fn column(a: &Mat<f64>, j: usize) -> &[f64] {
    a.col_as_slice(j)
}

/// A contiguous column as a mutable slice.
pub(crate) fn column_mut(a: &mut Mat<f64>, j: usize) -> &mut [f64] {
    a.col_as_slice_mut(j)
}
