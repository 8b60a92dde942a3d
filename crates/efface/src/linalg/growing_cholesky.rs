//! A Cholesky factor made some columns at a time, for who has other work to do in between.
//!
//! The next columns of L follow from those of A and from the columns of L to the left of them: one
//! matrix product, a small factorisation and a triangular solve. All columns together cost what a
//! factorisation in one piece does.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, Mat, MatRef, Par, Spec};

use super::{Cholesky, multiply};

/// The first columns of a lower Cholesky factor.
#[derive(Debug, Clone)]
pub(crate) struct GrowingCholesky {
    lower: Mat<f64>,
}

impl GrowingCholesky {
    /// Memory for all columns is taken here, and touched as they are made.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            lower: Mat::with_capacity(width, width),
        }
    }

    /// How many columns there are.
    pub(crate) fn done(&self) -> usize {
        self.lower.ncols()
    }

    /// Takes the next columns of A from the diagonal down: the first line of `columns` is that of
    /// the first of them. The error is the index of the first pivot that vanishes.
    pub(crate) fn extend(&mut self, columns: MatRef<'_, f64>, par: Par) -> Result<(), usize> {
        let at = self.done();
        let own = columns.ncols();
        self.lower
            .resize_with(at + columns.nrows(), at + own, |_, _| 0.0);
        let (left, mut right) = self.lower.as_mut().split_at_col_mut(at);
        let left = left.as_ref().subrows(at, columns.nrows());
        let mut next = right.as_mut().submatrix_mut(at, 0, columns.nrows(), own);
        next.copy_from(columns);
        if at > 0 {
            multiply(
                next.as_mut(),
                Accum::Add,
                left,
                left.subrows(0, own).transpose(),
                -1.0,
                par,
            );
        }
        let (mut corner, below) = next.split_at_row_mut(own);
        let scratch = llt::factor::cholesky_in_place_scratch::<f64>(own, Par::Seq, Spec::default());
        llt::factor::cholesky_in_place(
            corner.as_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Spec::default(),
        )
        .map_err(|llt::factor::LltError::NonPositivePivot { index }| at + index)?;
        solve_lower_triangular_in_place(corner.as_ref(), below.transpose_mut(), par);
        Ok(())
    }

    /// The factor of `a`, all of whose columns were taken; `free` and the error are those of
    /// [`Cholesky::factor`].
    pub(crate) fn finish(
        self,
        a: &Mat<f64>,
        free: impl Fn(usize) -> bool,
    ) -> Result<Cholesky, usize> {
        Cholesky::of_lower(self.lower).checked(a, free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{mirror_lower, multiply_lower};

    #[test]
    fn columns_one_after_another_make_the_factor_in_one_piece() {
        for (n, together) in [(1, 1), (5, 2), (40, 16), (67, 7)] {
            let x = Mat::from_fn(n, 2 * n + 3, |i, j| {
                ((i * 31 + j * 17) % 23) as f64 / 11.0 - 1.0
            });
            let mut a = Mat::<f64>::identity(n, n);
            multiply_lower(
                a.as_mut(),
                Accum::Add,
                x.as_ref(),
                x.as_ref().transpose(),
                1.0,
                Par::Seq,
            );
            mirror_lower(a.as_mut());
            let whole = Cholesky::factor(&a, |_| false, Par::Seq).unwrap();
            let mut growing = GrowingCholesky::new(n);
            while growing.done() < n {
                let at = growing.done();
                let own = together.min(n - at);
                growing
                    .extend(a.as_ref().submatrix(at, at, n - at, own), Par::Seq)
                    .unwrap();
            }
            let pieces = growing.finish(&a, |_| false).unwrap();
            for j in 0..n {
                for i in j..n {
                    assert!(
                        (whole.lower()[(i, j)] - pieces.lower()[(i, j)]).abs() < 1e-12,
                        "{n}: {i} {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_pivot_that_vanishes_is_named() {
        let a = Mat::from_fn(4, 4, |i, j| if i == j && i != 2 { 1.0 } else { 0.0 });
        let mut growing = GrowingCholesky::new(4);
        growing
            .extend(a.as_ref().submatrix(0, 0, 4, 1), Par::Seq)
            .unwrap();
        assert_eq!(
            growing.extend(a.as_ref().submatrix(1, 1, 3, 3), Par::Seq),
            Err(2)
        );
    }
}
