//! What the numbers of table 1 were divided by: a Newton step over the retained rows, from a kept
//! inverse of the Hessian of all rows.
//!
//! Izzo et al. call this step exact retraining in their runtime experiment, which table 1 follows:
//! for squared loss it ends where a refit ends, but it reads the k rows to forget alone. It makes
//! the inverse of the retained Hessian by Woodbury's identity,
//!
//! (A − XᵀX)⁻¹ = A⁻¹ + A⁻¹Xᵀ(I − XA⁻¹Xᵀ)⁻¹XA⁻¹, with X the k rows,
//!
//! and multiplies it with the gradient. The products are taken in the order of that experiment: S =
//! (I − XA⁻¹Xᵀ)⁻¹XA⁻¹ first, then XᵀS, and A⁻¹ times that, which is a product of two d×d matrices.
//! The step therefore costs O(d³) for every k; in the order (A⁻¹Xᵀ)S it would cost O(kd²).

use efface::{RowId, RowStore, Rows};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::DenseSolveCore;
use faer::{Accum, Mat, MatRef, Par, Side, Spec};

use crate::error::{Error, Result};

/// A⁻¹ = (XᵀX + λI)⁻¹ over all rows, and the parameters of a fit on them.
pub(crate) struct KeptInverse {
    inverse: Mat<f64>,
    parameters: Vec<f64>,
}

/// Rows that are multiplied at a time while the Hessian is summed.
const BLOCK: usize = 512;

impl KeptInverse {
    /// Sums the Hessian of all rows and inverts it. `parameters` are those of a fit with the
    /// penalty `lambda`.
    pub(crate) fn new(rows: &Rows, mut parameters: Vec<f64>, lambda: f64) -> Result<Self> {
        let d = rows.width();
        // The constant, which is 0 in a model without an intercept, stands behind the coefficients.
        parameters.truncate(d);
        let ids: Vec<RowId> = rows.ids().collect();
        let mut hessian = Mat::from_fn(d, d, |i, j| if i == j { lambda } else { 0.0 });
        for block in ids.chunks(BLOCK) {
            let x = columns(rows, block)?;
            matmul(
                hessian.as_mut(),
                Accum::Add,
                x.as_ref(),
                x.transpose(),
                1.0,
                faer::get_global_parallelism(),
            );
        }
        let factor = hessian
            .llt(Side::Lower)
            .map_err(|fault| singular(fault, d))?;
        Ok(Self {
            inverse: factor.inverse(),
            parameters,
        })
    }

    /// The parameters after the step, on one thread.
    pub(crate) fn without(&self, rows: &Rows, gone: &[RowId]) -> Result<Vec<f64>> {
        let d = rows.width();
        let k = gone.len();
        let removed = columns(rows, gone)?;
        let gradient = self.gradient(rows, gone)?;
        let inverse = self.inverse.as_ref();
        let mut solved = Mat::zeros(d, k);
        multiply(&mut solved, inverse, removed.as_ref());
        // The small matrix I − XA⁻¹Xᵀ, and XA⁻¹ to be solved with it.
        let mut small = Mat::zeros(k, k);
        multiply(&mut small, removed.transpose(), solved.as_ref());
        let small = Mat::from_fn(k, k, |i, j| if i == j { 1.0 } else { 0.0 } - small[(i, j)]);
        let mut answer = Mat::zeros(k, d);
        multiply(&mut answer, removed.transpose(), inverse);
        solve(small, &mut answer)?;
        let mut outer = Mat::zeros(d, d);
        multiply(&mut outer, removed.as_ref(), answer.as_ref());
        let mut retained = self.inverse.clone();
        matmul(
            retained.as_mut(),
            Accum::Add,
            inverse,
            outer.as_ref(),
            1.0,
            Par::Seq,
        );
        let mut step = Mat::zeros(d, 1);
        multiply(
            &mut step,
            retained.as_ref(),
            MatRef::from_column_major_slice(&gradient, d, 1),
        );
        Ok(self
            .parameters
            .iter()
            .enumerate()
            .map(|(j, value)| value + step[(j, 0)])
            .collect())
    }

    /// The gradient of the loss of the rows to forget: Σ (θᵀx − y) x.
    fn gradient(&self, rows: &Rows, gone: &[RowId]) -> Result<Vec<f64>> {
        let mut gradient = vec![0.0; rows.width()];
        rows.visit(gone, &mut |_, row| {
            let target = row.targets.first().copied().unwrap_or(0.0);
            row.features
                .add_to(row.features.dot(&self.parameters) - target, &mut gradient);
        })?;
        Ok(gradient)
    }
}

/// Some rows as a d×k matrix, one column a row.
fn columns(rows: &Rows, ids: &[RowId]) -> Result<Mat<f64>> {
    let mut out = Mat::zeros(rows.width(), ids.len());
    rows.visit(ids, &mut |at, row| {
        row.features.each(|j, value| out[(j, at)] = value)
    })?;
    Ok(out)
}

fn multiply(out: &mut Mat<f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
}

/// `rhs ← A⁻¹ rhs` for a small symmetric A. faer's short forms would take as many threads as there
/// are cores.
fn solve(mut a: Mat<f64>, rhs: &mut Mat<f64>) -> Result<()> {
    let k = a.nrows();
    let scratch = llt::factor::cholesky_in_place_scratch::<f64>(k, Par::Seq, Spec::default());
    let mut buffer = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut buffer);
    llt::factor::cholesky_in_place(
        a.as_mut(),
        Default::default(),
        Par::Seq,
        stack,
        Spec::default(),
    )
    .map_err(|fault| singular(fault, k))?;
    let mut buffer = MemBuffer::new(llt::solve::solve_in_place_scratch::<f64>(
        k,
        rhs.ncols(),
        Par::Seq,
    ));
    llt::solve::solve_in_place(
        a.as_ref(),
        rhs.as_mut(),
        Par::Seq,
        MemStack::new(&mut buffer),
    );
    Ok(())
}

fn singular(fault: llt::factor::LltError, width: usize) -> Error {
    let llt::factor::LltError::NonPositivePivot { index } = fault;
    efface::Error::Singular {
        pivot: index,
        width,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use efface::eval::parameters;
    use efface::synthetic::LinearProblem;
    use efface::{Csr, Dense, Fit};

    use super::*;
    use crate::plan::LAMBDA;
    use crate::studies::{recipe, without};

    fn check(rows: &Rows, k: usize) {
        let fitted = parameters(&recipe(1).fit(rows).unwrap()).unwrap();
        let kept = KeptInverse::new(rows, fitted, LAMBDA).unwrap();
        let gone: Vec<RowId> = rows.ids().step_by(7).take(k).collect();
        let found = kept.without(rows, &gone).unwrap();
        let retrained = parameters(&recipe(1).fit(&without(rows, &gone)).unwrap()).unwrap();
        let apart: f64 = found
            .iter()
            .zip(&retrained)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt();
        let length = retrained.iter().map(|b| b * b).sum::<f64>().sqrt();
        assert!(apart <= 1e-9 * length, "k = {k}: {apart} of {length}");
    }

    #[test]
    fn the_step_ends_where_a_refit_ends() {
        let made = LinearProblem {
            rows: 700,
            width: 30,
            seed: 2,
        }
        .generate();
        let mut sparse = Csr::<f32>::new(30);
        for i in 0..700 {
            // Every third value, so that a row has ten entries.
            let entries = (0..30u32).filter(|j| (*j as usize + i).is_multiple_of(3));
            let entries: Vec<_> = entries.map(|j| (j, made.row(i)[j as usize])).collect();
            sparse.push(&entries).unwrap();
        }
        let sparse = Rows::new(sparse, made.y.clone(), 1).unwrap();
        let dense = Rows::new(Dense::new(made.x, 30).unwrap(), made.y, 1).unwrap();
        for k in [1, 5, 40] {
            check(&dense, k);
            check(&sparse, k);
        }
    }

    #[test]
    fn a_matrix_without_an_inverse_is_refused() {
        let rows = Rows::new(Dense::new(vec![0.0; 8], 2).unwrap(), vec![1.0; 4], 1).unwrap();
        let refused = KeptInverse::new(&rows, vec![0.0; 2], 0.0);
        assert!(matches!(
            refused,
            Err(Error::Core(efface::Error::Singular { pivot: 0, width: 2 }))
        ));
    }
}
