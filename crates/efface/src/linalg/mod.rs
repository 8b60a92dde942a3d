//! What faer lacks, and thin names over what it has: a Cholesky factor that can be updated, conjugate gradients on an
//! operator, a lower bound for the least eigenvalue, and small dense helpers.
//!
//! A set of k rows of width p is kept as a p×k matrix, one column per row: columns are contiguous in faer, so each row
//! is too, and a solve against k rows is one solve with k right-hand sides.

mod cg;
mod cholesky;
mod lanczos;

pub(crate) use cg::{CgSettings, conjugate_gradients};
pub(crate) use cholesky::Cholesky;
pub(crate) use lanczos::inverse_norm;

use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Unit roundoff of f64.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// `threads` as faer wants it.
pub(crate) fn par(threads: usize) -> Par {
    if threads <= 1 { Par::Seq } else { Par::rayon(threads) }
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

/// The lower triangle of `out += alpha · a · b`, for a product known to be symmetric: half the work.
pub(crate) fn multiply_lower(
    out: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    use triangular::BlockStructure::{Rectangular, TriangularLower};
    triangular::matmul(out, TriangularLower, accum, a, Rectangular, b, Rectangular, alpha, par);
}

/// Copies the lower triangle onto the upper one, in tiles so that neither side misses the cache all the time.
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

/// The Euclidean norm of all entries.
pub(crate) fn norm(a: MatRef<'_, f64>) -> f64 {
    a.norm_l2()
}

/// The inner product of two slices, in eight lanes so that it vectorises and is the same on every machine.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b[..a.len()].as_chunks::<8>();
    for (x, y) in a8.iter().zip(b8) {
        for lane in 0..8 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    lanes.iter().sum::<f64>() + rest
}

/// `out += scale · a`.
pub(crate) fn add_scaled(out: &mut [f64], scale: f64, a: &[f64]) {
    for (o, x) in out.iter_mut().zip(a) {
        *o += scale * x;
    }
}

/// A contiguous column as a slice.
pub(crate) fn column(a: &Mat<f64>, j: usize) -> &[f64] {
    a.col_as_slice(j)
}

/// A contiguous column as a mutable slice.
pub(crate) fn column_mut(a: &mut Mat<f64>, j: usize) -> &mut [f64] {
    a.col_as_slice_mut(j)
}
