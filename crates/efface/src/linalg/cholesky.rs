//! A = LLᵀ with the verbs that forgetting needs: factor, solve, and a rank-k change in place.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::reborrow::ReborrowMut;
use faer::{Mat, MatMut, MatRef, Par, Spec};

use super::UNIT;
use crate::gram::{DeviceFactor, GramEngine};

/// A lower Cholesky factor. The strict upper triangle holds nothing of use.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    lower: Mat<f64>,
}

impl Cholesky {
    /// Factors the lower triangle of `a`. `free[j]` marks a column that no penalty holds: there a
    /// pivot that is only rounding noise counts as zero. The error is the index of the first pivot
    /// that vanishes.
    pub(crate) fn factor(
        a: &Mat<f64>,
        free: impl Fn(usize) -> bool,
        par: Par,
    ) -> Result<Self, usize> {
        Self::in_place(a.clone(), a, free, par)
    }

    /// The same, into a matrix of the same size.
    pub(crate) fn factor_into(
        mut room: Mat<f64>,
        a: &Mat<f64>,
        free: impl Fn(usize) -> bool,
        par: Par,
    ) -> Result<Self, usize> {
        super::copy_lower(room.as_mut(), a, par);
        Self::in_place(room, a, free, par)
    }

    /// Factors `lower`, which has the lower triangle of `a`.
    fn in_place(
        mut lower: Mat<f64>,
        a: &Mat<f64>,
        free: impl Fn(usize) -> bool,
        par: Par,
    ) -> Result<Self, usize> {
        let n = a.nrows();
        let scratch = llt::factor::cholesky_in_place_scratch::<f64>(n, par, Spec::default());
        let mut buffer = MemBuffer::new(scratch);
        let done = llt::factor::cholesky_in_place(
            lower.as_mut(),
            Default::default(),
            par,
            MemStack::new(&mut buffer),
            Spec::default(),
        );
        if let Err(llt::factor::LltError::NonPositivePivot { index }) = done {
            return Err(index);
        }
        Self { lower }.checked(a, free)
    }

    /// The same by another device; None where the processor is to do it.
    pub(crate) fn factor_by(
        a: &Mat<f64>,
        free: impl Fn(usize) -> bool,
        engine: &dyn GramEngine,
    ) -> crate::Result<Option<Result<Self, usize>>> {
        let mut lower = a.clone();
        let columns = lower
            .col_iter_mut()
            .map(|column| column.try_as_col_major_mut());
        let columns = columns.map(|column| column.map(|column| column.as_slice_mut()));
        let Some(mut columns) = columns.collect::<Option<Vec<&mut [f64]>>>() else {
            return Ok(None);
        };
        Ok(match engine.factor(&mut columns)? {
            DeviceFactor::Factored => Some(Self { lower }.checked(a, free)),
            DeviceFactor::NotPositive(pivot) => Some(Err(pivot)),
            DeviceFactor::Refused => None,
        })
    }

    /// The factor of `a`, unless a pivot of a free column is only rounding noise.
    pub(super) fn checked(self, a: &Mat<f64>, free: impl Fn(usize) -> bool) -> Result<Self, usize> {
        let n = a.nrows();
        let noise = 64.0 * n as f64 * UNIT;
        match (0..n).find(|&j| free(j) && self.lower[(j, j)].powi(2) <= noise * a[(j, j)]) {
            Some(pivot) => Err(pivot),
            None => Ok(self),
        }
    }

    /// What has this lower triangle, unchecked.
    pub(super) fn of_lower(lower: Mat<f64>) -> Self {
        Self { lower }
    }

    /// The factor whose lower triangle this is; None where it cannot be one of a positive definite
    /// matrix.
    pub(crate) fn from_lower(lower: Mat<f64>) -> Option<Self> {
        let n = lower.nrows();
        let sound = (0..n).all(|j| {
            lower[(j, j)] > 0.0 && lower.col_as_slice(j)[j..].iter().all(|x| x.is_finite())
        });
        sound.then_some(Self { lower })
    }

    /// L; what stands above its diagonal means nothing.
    pub(crate) fn lower(&self) -> &Mat<f64> {
        &self.lower
    }

    /// Makes column and row `j` those of a variable that A joins to no other, `diagonal` being its
    /// entry of A.
    pub(crate) fn set_apart(&mut self, j: usize, diagonal: f64) {
        for k in 0..j {
            self.lower[(j, k)] = 0.0;
        }
        self.lower.col_as_slice_mut(j)[j..].fill(0.0);
        self.lower[(j, j)] = diagonal.sqrt();
    }

    pub(crate) fn width(&self) -> usize {
        self.lower.nrows()
    }

    /// L·v.
    pub(crate) fn times(&self, v: &Mat<f64>, par: Par) -> Mat<f64> {
        use faer::linalg::matmul::triangular::{
            self,
            BlockStructure::{Rectangular, TriangularLower},
        };
        let mut product = Mat::zeros(v.nrows(), v.ncols());
        let lower = self.lower.as_ref();
        triangular::matmul(
            product.as_mut(),
            Rectangular,
            faer::Accum::Replace,
            lower,
            TriangularLower,
            v.as_ref(),
            Rectangular,
            1.0,
            par,
        );
        product
    }

    /// `rhs ← A⁻¹ rhs`.
    pub(crate) fn solve(&self, mut rhs: MatMut<'_, f64>, par: Par) {
        if rhs.ncols() == 1
            && let Some(rhs) = rhs.rb_mut().col_mut(0).try_as_col_major_mut()
        {
            return super::single_solve::solve(&self.lower, rhs.as_slice_mut());
        }
        let scratch =
            llt::solve::solve_in_place_scratch::<f64>(self.lower.nrows(), rhs.ncols(), par);
        let mut buffer = MemBuffer::new(scratch);
        llt::solve::solve_in_place(self.lower.as_ref(), rhs, par, MemStack::new(&mut buffer));
    }

    /// `rhs ← L⁻¹ rhs`: half of a solve, after which ‖rhs‖² is xᵀA⁻¹x.
    pub(crate) fn half_solve(&self, rhs: MatMut<'_, f64>) {
        self.half_solve_by(rhs, Par::Seq);
    }

    /// The same by several threads.
    pub(crate) fn half_solve_by(&self, rhs: MatMut<'_, f64>, par: Par) {
        faer::linalg::triangular_solve::solve_lower_triangular_in_place(
            self.lower.as_ref(),
            rhs,
            par,
        );
    }

    /// `rhs ← L⁻¹ M L⁻ᵀ rhs` for a symmetric M that `apply` multiplies one column with: similar to
    /// A⁻¹M, and symmetric.
    pub(crate) fn sandwich(&self, rhs: &mut Mat<f64>, apply: impl FnOnce(&mut Mat<f64>), par: Par) {
        use faer::linalg::triangular_solve::{
            solve_lower_triangular_in_place, solve_upper_triangular_in_place,
        };
        solve_upper_triangular_in_place(self.lower.as_ref().transpose(), rhs.as_mut(), par);
        apply(rhs);
        solve_lower_triangular_in_place(self.lower.as_ref(), rhs.as_mut(), par);
    }

    /// The factor of `A + Σ signs_j w_j w_jᵀ`, w_j the columns of `w`; None when that is not
    /// positive definite.
    pub(crate) fn changed(mut self, w: MatRef<'_, f64>, signs: &[f64]) -> Option<Self> {
        let mut w = w.to_owned();
        let mut alpha = faer::diag::Diag::<f64>::zeros(signs.len());
        for (j, &sign) in signs.iter().enumerate() {
            alpha[j] = sign;
        }
        llt::update::rank_r_update_clobber(self.lower.as_mut(), w.as_mut(), alpha.as_mut()).ok()?;
        Some(self)
    }

    /// A⁻¹, both triangles.
    pub(crate) fn inverse(&self, par: Par) -> Mat<f64> {
        let n = self.lower.nrows();
        let mut out = Mat::zeros(n, n);
        let mut buffer = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, par));
        llt::inverse::inverse(
            out.as_mut(),
            self.lower.as_ref(),
            par,
            MemStack::new(&mut buffer),
        );
        super::mirror_lower(out.as_mut());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{mirror_lower, multiply_lower};
    use faer::Accum;

    fn spd(n: usize, seed: usize) -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(n, 2 * n + 3, |i, j| {
            ((i * 31 + j * 17 + seed * 7) % 23) as f64 / 11.0 - 1.0
        });
        let mut a = Mat::identity(n, n);
        multiply_lower(
            a.as_mut(),
            Accum::Add,
            x.as_ref(),
            x.as_ref().transpose(),
            1.0,
            Par::Seq,
        );
        mirror_lower(a.as_mut());
        (x, a)
    }

    #[test]
    fn a_changed_factor_equals_a_new_one() {
        for (n, seed) in [(1, 0), (3, 1), (17, 2), (40, 3)] {
            let (x, mut a) = spd(n, seed);
            let factor = Cholesky::factor(&a, |_| false, Par::Seq).unwrap();
            let gone = x.as_ref().subcols(0, 2);
            let changed = factor.changed(gone, &[-1.0, -1.0]).unwrap();
            multiply_lower(
                a.as_mut(),
                Accum::Add,
                gone,
                gone.transpose(),
                -1.0,
                Par::Seq,
            );
            let fresh = Cholesky::factor(&a, |_| false, Par::Seq).unwrap();
            for j in 0..n {
                for i in j..n {
                    assert!((changed.lower[(i, j)] - fresh.lower[(i, j)]).abs() < 1e-10);
                }
            }
        }
    }

    #[test]
    fn a_free_direction_is_found() {
        let a = Mat::from_fn(3, 3, |i, j| {
            if i < 2 && j < 2 {
                1.0
            } else {
                (i == j) as u8 as f64
            }
        });
        assert!(Cholesky::factor(&a, |_| true, Par::Seq).is_err());
    }

    #[test]
    fn inverse_and_solve_agree() {
        let (_, a) = spd(20, 5);
        let factor = Cholesky::factor(&a, |_| false, Par::Seq).unwrap();
        let mut unit = Mat::identity(20, 20);
        factor.solve(unit.as_mut(), Par::Seq);
        assert!((unit - factor.inverse(Par::Seq)).norm_max() < 1e-12);
    }
}
