//! A⁻¹ in the form that suits the model's size, and how each form follows when rows come or go.
//!
//! | form | kept beside A and b | Z_D = X_D·A⁻¹ | after k rows changed |
//! |---|---|---|---|
//! | factor | Cholesky factor, d² | O(kd²) | rank-k update of the factor, O(kd²) |
//! | inverse | A⁻¹, d² | O(k·nnz·d) | A⁻¹ − Z_Dᵀ M Z_D, O(kd²) |
//! | rows | factor and Z = XA⁻¹, d² + n·d | read, O(kd) | Z − (Z X_Dᵀ) S (X_D A′⁻¹), O(nkd) |
//!
//! Between two such updates, changed rows wait as low-rank blocks (`change.rs`) that each solve
//! takes into account at O(kd) a waiting row, so a request never waits for the curvature to be
//! brought up to date; `fold.rs` does that beside requests.

use std::sync::Arc;

use faer::{Accum, Mat, MatMut, Par};

use super::build::RidgeFrame;
use super::sums::{RidgeSums, SignedRows};
use super::{Basis, Form, RidgePenalty};
use crate::error::{Error, Result};
use crate::gram::GramEngine;
use crate::linalg::{Cholesky, UNIT, mirror_lower, multiply, multiply_lower, warm};
use crate::rows::{RowId, RowIndex, RowStore, Rows};

#[derive(Debug, Clone)]
pub(crate) enum CurvatureSolver {
    Factor(Cholesky),
    Inverse(Mat<f64>),
    Rows { factor: Cholesky, kept: KeptRows },
}

/// Z = XA⁻¹, one column a row.
#[derive(Debug, Clone)]
pub(crate) struct KeptRows {
    index: RowIndex,
    alive: Vec<bool>,
    z: Mat<f64>,
}

impl CurvatureSolver {
    pub(crate) fn build<'a>(
        form: Form,
        factor: Cholesky,
        rows: &dyn Fn() -> Result<Option<KeptSource<'a>>>,
        par: Par,
    ) -> Result<Self> {
        Ok(match form {
            Form::Inverse => CurvatureSolver::Inverse(factor.inverse(par)),
            Form::Rows => match rows()? {
                Some(source) => {
                    let kept = KeptRows::build(source, &factor, par);
                    CurvatureSolver::Rows { factor, kept }
                }
                None => CurvatureSolver::Factor(factor),
            },
            _ => CurvatureSolver::Factor(factor),
        })
    }

    /// `rhs ← A⁻¹ rhs`.
    pub(crate) fn solve(&self, mut rhs: MatMut<'_, f64>, par: Par) {
        match self {
            Self::Factor(factor) | Self::Rows { factor, .. } => factor.solve(rhs, par),
            Self::Inverse(inverse) => {
                let copy = rhs.as_ref().to_owned();
                multiply(
                    rhs.as_mut(),
                    Accum::Replace,
                    inverse.as_ref(),
                    copy.as_ref(),
                    1.0,
                    par,
                );
            }
        }
    }

    /// Brings what will be asked about these rows closer to the processor.
    pub(crate) fn warm(&self, ids: &[RowId]) {
        if let Self::Rows { kept, .. } = self {
            warm(
                ids.iter()
                    .filter_map(|&id| kept.index.slot(id))
                    .map(|slot| kept.z.col_as_slice(slot)),
            );
        }
    }

    /// Z for rows given by content and, where they are those the solver was built from, by id;
    /// `scaled[k]` is the root of the weight of row k.
    pub(crate) fn rows(
        &self,
        ids: Option<&Vec<RowId>>,
        xt: &Mat<f64>,
        scaled: &[f64],
        par: Par,
    ) -> Mat<f64> {
        match self {
            Self::Rows { factor, kept } => match ids.and_then(|ids| kept.gather(ids, scaled)) {
                Some(found) => found,
                // A row that joined since the last settle has no vector yet.
                None => solve_rows(factor, xt, par),
            },
            Self::Factor(factor) => solve_rows(factor, xt, par),
            Self::Inverse(inverse) => {
                let mut zt = Mat::zeros(xt.nrows(), xt.ncols());
                times_rows(inverse, xt, &mut zt, par);
                zt
            }
        }
    }

    /// Makes this the solver of `after`, which is A plus the change; nothing of it is lost if that
    /// fails. `fresh` asks for a new factorisation instead of an update. Returns whether it had to
    /// factor anew; not when that was merely cheaper.
    pub(crate) fn follow(
        this: &mut Arc<Self>,
        after: &RidgeSums,
        change: &SignedRows,
        moved: &MovedSolutions,
        fresh: bool,
        frame: &RidgeFrame,
    ) -> Result<bool> {
        let width = after.a.nrows();
        let par = crate::linalg::par(frame.settings.threads);
        let refactor = || factor_of(after, &frame.penalty, None, None, par);
        // Beyond a quarter of the width, updating costs more than factoring.
        let cheaper = change.signs.len() * 4 > width;
        let asked = fresh;
        let fresh = fresh || cheaper;
        let follow_factor = |factor: &Cholesky| -> Result<(Cholesky, bool)> {
            let updated = if fresh {
                None
            } else {
                factor.clone().changed(change.xt.as_ref(), &change.signs)
            };
            match updated {
                Some(updated) => Ok((updated, false)),
                None => Ok((refactor()?, true)),
            }
        };
        match this.as_ref() {
            Self::Factor(factor) => {
                let (updated, anew) = follow_factor(factor)?;
                *this = Arc::new(Self::Factor(updated));
                Ok(anew && (asked || !cheaper))
            }
            Self::Inverse(inverse) => {
                let updated = if fresh {
                    None
                } else {
                    updated_inverse(inverse, change, par)
                };
                let updated = match updated {
                    Some(updated) => updated,
                    None => refactor()?.inverse(par),
                };
                *this = Arc::new(Self::Inverse(updated));
                Ok(asked)
            }
            Self::Rows { factor, .. } => {
                let (updated, anew) = follow_factor(factor)?;
                // The kept rows are the largest part, and change in place where nobody else holds
                // them.
                if let Self::Rows { factor, kept } = Arc::make_mut(this) {
                    kept.follow(change, &updated, moved, par);
                    *factor = updated;
                }
                Ok(anew && (asked || !cheaper))
            }
        }
    }

    /// The factor after the change, where nothing else is kept and updating it costs less than
    /// factoring anew. None where it fails.
    pub(crate) fn updated(&self, change: &SignedRows) -> Option<Cholesky> {
        match self {
            Self::Factor(factor) if change.signs.len() * 4 <= factor.width() => {
                factor.clone().changed(change.xt.as_ref(), &change.signs)
            }
            _ => None,
        }
    }

    /// Makes the factor know what the sums do: that these columns have no row any more. An update
    /// leaves rounding noise there, which tells which columns the rows that left had.
    pub(crate) fn set_apart(this: &mut Arc<Self>, columns: &[usize], sums: &RidgeSums) {
        if columns.is_empty() {
            return;
        }
        if let Self::Factor(factor) | Self::Rows { factor, .. } = Arc::make_mut(this) {
            for &j in columns.iter().filter(|&&j| sums.a[(j, j)] > 0.0) {
                factor.set_apart(j, sums.a[(j, j)]);
            }
        }
    }

    pub(crate) fn precomputed(&self, width: usize) -> Vec<(&'static str, usize)> {
        let square = width * width * 8;
        match self {
            Self::Factor(_) => vec![("Cholesky factor of A", square)],
            Self::Inverse(_) => vec![("inverse of A", square)],
            Self::Rows { kept, .. } => {
                vec![
                    ("Cholesky factor of A", square),
                    ("rows of XA⁻¹", kept.bytes()),
                ]
            }
        }
    }

    pub(crate) fn factor(&self) -> Option<&Cholesky> {
        match self {
            Self::Factor(factor) | Self::Rows { factor, .. } => Some(factor),
            Self::Inverse(_) => None,
        }
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Factor(_) => Form::Factor,
            Self::Inverse(_) => Form::Inverse,
            Self::Rows { .. } => Form::Rows,
        }
    }
}

/// The factor of A. Where a penalty exists but rounding has hidden it, a little is added to the
/// diagonal: what that costs is measured with everything else that the solver misses. The factor
/// comes to lie in `room`, where there is one.
pub(crate) fn factor_of(
    sums: &RidgeSums,
    penalty: &RidgePenalty,
    engine: Option<&dyn GramEngine>,
    room: Option<Mat<f64>>,
    par: Par,
) -> Result<Cholesky> {
    let width = sums.a.nrows();
    let elsewhere = match engine {
        Some(engine) => Cholesky::factor_by(&sums.a, |j| penalty.is_free(j), engine)?,
        None => None,
    };
    let here = || match room {
        Some(room) => Cholesky::factor_into(room, &sums.a, |j| penalty.is_free(j), par),
        None => Cholesky::factor(&sums.a, |j| penalty.is_free(j), par),
    };
    let factored = elsewhere.unwrap_or_else(here);
    let pivot = match factored {
        Ok(factor) => return Ok(factor),
        Err(pivot) => pivot,
    };
    if penalty.lambda == 0.0 {
        return Err(Error::Singular { pivot, width });
    }
    let mut added = 4.0 * width as f64 * UNIT;
    while added < 1e-3 {
        let mut raised = sums.a.clone();
        for j in 0..width {
            // A column that is zero and whose penalty is below all numbers stands alone; any
            // positive number will do.
            let diagonal = raised[(j, j)] * (1.0 + added);
            raised[(j, j)] = if diagonal > 0.0 { diagonal } else { 1.0 };
        }
        if let Ok(factor) = Cholesky::factor(&raised, |_| false, par) {
            return Ok(factor);
        }
        added *= 64.0;
    }
    Err(Error::Singular { pivot, width })
}

fn solve_rows(factor: &Cholesky, xt: &Mat<f64>, par: Par) -> Mat<f64> {
    let mut zt = xt.clone();
    factor.solve(zt.as_mut(), par);
    zt
}

/// A⁻¹ X̂ᵀ; a row with few non-zeros takes only the columns of A⁻¹ that it names.
fn times_rows(inverse: &Mat<f64>, xt: &Mat<f64>, zt: &mut Mat<f64>, par: Par) {
    let width = xt.nrows();
    let non_zeros =
        (0..xt.ncols()).map(|k| xt.col_as_slice(k).iter().filter(|x| **x != 0.0).count());
    if non_zeros.sum::<usize>() * 8 > width * xt.ncols() {
        multiply(
            zt.as_mut(),
            Accum::Replace,
            inverse.as_ref(),
            xt.as_ref(),
            1.0,
            par,
        );
        return;
    }
    for k in 0..xt.ncols() {
        let out = zt.col_as_slice_mut(k);
        for (j, x) in xt
            .col_as_slice(k)
            .iter()
            .enumerate()
            .filter(|(_, x)| **x != 0.0)
        {
            crate::linalg::add_scaled(out, *x, inverse.col_as_slice(j));
        }
    }
}

/// (A + X̂ᵀSX̂)⁻¹ = A⁻¹ − Zᵀ(S + XZᵀ)⁻¹Z. None when the middle matrix is not invertible.
fn updated_inverse(inverse: &Mat<f64>, change: &SignedRows, par: Par) -> Option<Mat<f64>> {
    let width = inverse.nrows();
    let k = change.signs.len();
    let mut zt = Mat::zeros(width, k);
    times_rows(inverse, &change.xt, &mut zt, par);
    let core = super::change::ChangeCore::new(&change.xt, &zt, &change.signs, par)?;
    let scaled = core.times(&zt.transpose().to_owned());
    let mut updated = inverse.clone();
    multiply_lower(
        updated.as_mut(),
        Accum::Add,
        zt.as_ref(),
        scaled.as_ref(),
        -1.0,
        par,
    );
    mirror_lower(updated.as_mut());
    Some(updated)
}

/// The rows that a `Form::Rows` solver is built from.
pub(crate) struct KeptSource<'a> {
    pub(crate) rows: std::borrow::Cow<'a, Rows>,
    pub(crate) basis: &'a Basis,
}

impl KeptRows {
    fn build(source: KeptSource<'_>, factor: &Cholesky, par: Par) -> Self {
        let n = source.rows.len();
        let mut z = Mat::zeros(source.basis.width(), n);
        for (slot, row) in source.rows.iter().enumerate() {
            source
                .basis
                .write(row.features, 1.0, z.col_as_slice_mut(slot));
        }
        const BLOCK: usize = 1024;
        for start in (0..n).step_by(BLOCK) {
            let size = BLOCK.min(n - start);
            factor.solve(z.as_mut().subcols_mut(start, size), par);
        }
        Self {
            index: RowIndex::of_distinct(source.rows.ids().collect()),
            alive: vec![true; n],
            z,
        }
    }

    fn gather(&self, ids: &[RowId], scaled: &[f64]) -> Option<Mat<f64>> {
        let slot = |&id: &RowId| self.index.slot(id).filter(|&slot| self.alive[slot]);
        let slots: Vec<usize> = ids.iter().map(slot).collect::<Option<_>>()?;
        let mut zt = Mat::zeros(self.z.nrows(), ids.len());
        for (k, (&slot, &root)) in slots.iter().zip(scaled).enumerate() {
            let from = self.z.col_as_slice(slot);
            let to = zt.col_as_slice_mut(k);
            if root == 1.0 {
                to.copy_from_slice(from);
            } else {
                to.iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = from * root);
            }
        }
        Some(zt)
    }

    /// Brings every row's vector to the new A: Z − (Z X̂ᵀ) S (X̂ A′⁻¹), and drops or adds the rows
    /// that left or joined.
    fn follow(&mut self, change: &SignedRows, factor: &Cholesky, moved: &MovedSolutions, par: Par) {
        let k = change.signs.len();
        // X̂A′⁻¹ with the new factor.
        let mut solved = change.xt.clone();
        factor.solve(solved.as_mut(), par);
        let n = self.z.ncols();
        let mut along = Mat::zeros(k, n);
        let signed = change.signed();
        multiply(
            along.as_mut(),
            Accum::Replace,
            signed.as_ref().transpose(),
            self.z.as_ref(),
            1.0,
            par,
        );
        multiply(
            self.z.as_mut(),
            Accum::Add,
            solved.as_ref(),
            along.as_ref(),
            -1.0,
            par,
        );
        for slot in moved.left.iter().filter_map(|&id| self.index.slot(id)) {
            self.z.col_as_slice_mut(slot).fill(0.0);
            self.alive[slot] = false;
        }
        let live = self.alive.iter().filter(|alive| **alive).count();
        // Slots of rows that left are reclaimed together: when half are idle, or when rows arrive.
        if !moved.arrived.is_empty() || live * 2 < n {
            self.reclaim(live, &solved, &moved.arrived);
        }
    }

    fn reclaim(&mut self, live: usize, solved: &Mat<f64>, arrived: &[(RowId, usize, f64)]) {
        let mut z = Mat::zeros(self.z.nrows(), live + arrived.len());
        let mut ids = Vec::with_capacity(z.ncols());
        for slot in (0..self.alive.len()).filter(|&slot| self.alive[slot]) {
            z.col_as_slice_mut(ids.len())
                .copy_from_slice(self.z.col_as_slice(slot));
            ids.push(self.index.id(slot));
        }
        for &(id, k, root) in arrived {
            let to = z.col_as_slice_mut(ids.len());
            to.iter_mut()
                .zip(solved.col_as_slice(k))
                .for_each(|(to, from)| *to = from / root);
            ids.push(id);
        }
        let alive = vec![true; ids.len()];
        *self = Self {
            index: RowIndex::of_distinct(ids),
            alive,
            z,
        };
    }

    pub(crate) fn bytes(&self) -> usize {
        self.z.ncols() * (self.z.nrows() + 2) * 8
    }
}

/// Which rows a change takes out for good and which it brings in: (id, its place in the change,
/// root of its weight).
#[derive(Debug, Default)]
pub(crate) struct MovedSolutions {
    pub(crate) left: Vec<RowId>,
    pub(crate) arrived: Vec<(RowId, usize, f64)>,
}
