//! A⁻¹ in the form that suits the model's size, and how each form follows when rows come or go.
//!
//! | form | kept beside A and b | Z_D = X_D·A⁻¹ | after k rows changed |
//! |---|---|---|---|
//! | factor | Cholesky factor, d² | O(kd²) | rank-k update of the factor, O(kd²) |
//! | inverse | A⁻¹, d² | O(k·nnz·d) | A⁻¹ − Z_Dᵀ M Z_D, O(kd²) |
//! | rows | factor and Z = XA⁻¹, d² + n·d | read, O(kd) | Z − (Z X_Dᵀ) S (X_D A′⁻¹), O(nkd) |
//!
//! Between two such updates, changed rows wait as low-rank blocks (`change.rs`) that each solve takes into account at
//! O(kd) a waiting row, so a request never waits for the curvature to be brought up to date.

use faer::{Accum, Mat, MatMut, Par};

use super::Basis;
use super::sums::{SignedRows, Sums};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, UNIT, column_norm, mirror_lower, multiply, multiply_lower, norm, warm};
use crate::rows::{Index, RowId, RowStore, Rows};

/// How the curvature of a ridge model is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Chosen by size: `Iterative` when a d×d matrix would pass 2 GiB, else `Factor`.
    #[default]
    Auto,
    /// Cholesky factor of A.
    Factor,
    /// A⁻¹ itself.
    Inverse,
    /// XA⁻¹, one vector a row: the fastest forget, the most memory.
    Rows,
    /// No d×d matrix at all: conjugate gradients over the rows.
    Iterative,
}

/// The widest model for which `Form::Auto` keeps d×d matrices: 2 GiB each.
const WIDEST: usize = 16_384;

impl Form {
    /// The form to use for a model of `width` parameters per output.
    pub(crate) fn resolve(self, width: usize) -> Form {
        match self {
            Form::Auto if width > WIDEST => Form::Iterative,
            Form::Auto => Form::Factor,
            chosen => chosen,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Solver {
    Factor(Cholesky),
    /// `residual` bounds ‖A·A⁻¹ − I‖.
    Inverse {
        inverse: Mat<f64>,
        residual: f64,
    },
    Rows {
        factor: Cholesky,
        kept: KeptRows,
    },
}

/// Z = XA⁻¹, one column a row, and how far each misses: ‖A z_i − x_i‖.
#[derive(Debug, Clone)]
pub(crate) struct KeptRows {
    index: Index,
    alive: Vec<bool>,
    z: Mat<f64>,
    missed: Vec<f64>,
}

/// Z for some rows: one column each, scaled like the rows, with the norms of A z − x where they are known.
pub(crate) struct SolvedRows {
    pub(crate) zt: Mat<f64>,
    pub(crate) missed: Option<Vec<f64>>,
}

impl Solver {
    pub(crate) fn build<'a>(
        form: Form,
        sums: &Sums,
        penalty: &[f64],
        rows: &dyn Fn() -> Result<Option<KeptSource<'a>>>,
        par: Par,
    ) -> Result<Self> {
        let width = sums.a.nrows();
        let factor = Cholesky::factor(&sums.a, |j| penalty[j] == 0.0, par)
            .map_err(|pivot| Error::Singular { pivot, width })?;
        Ok(match form {
            Form::Inverse => {
                let inverse = factor.inverse(par);
                let residual = inverse_residual(sums, &inverse, par);
                Solver::Inverse { inverse, residual }
            }
            Form::Rows => match rows()? {
                Some(source) => {
                    let kept = KeptRows::build(source, sums, &factor, par);
                    Solver::Rows { factor, kept }
                }
                None => Solver::Factor(factor),
            },
            _ => Solver::Factor(factor),
        })
    }

    /// `rhs ← A⁻¹ rhs`.
    pub(crate) fn solve(&self, mut rhs: MatMut<'_, f64>, par: Par) {
        match self {
            Self::Factor(factor) | Self::Rows { factor, .. } => factor.solve(rhs, par),
            Self::Inverse { inverse, .. } => {
                let copy = rhs.as_ref().to_owned();
                multiply(rhs.as_mut(), Accum::Replace, inverse.as_ref(), copy.as_ref(), 1.0, par);
            }
        }
    }

    /// Brings what will be asked about these rows closer to the processor.
    pub(crate) fn warm(&self, ids: &[RowId]) {
        if let Self::Rows { kept, .. } = self {
            warm(ids.iter().filter_map(|&id| kept.index.slot(id)).map(|slot| kept.z.col_as_slice(slot)));
        }
    }

    /// Z for rows given by content and, where they are those the solver was built from, by id; `scaled[k]` is the root
    /// of the weight of row k.
    pub(crate) fn rows(
        &self,
        ids: Option<&Vec<RowId>>,
        xt: &Mat<f64>,
        scaled: &[f64],
        par: Par,
    ) -> SolvedRows {
        match self {
            Self::Rows { factor, kept } => match ids.and_then(|ids| kept.gather(ids, scaled)) {
                Some(found) => found,
                // A row that joined since the last settle has no vector yet.
                None => solve_rows(factor, xt, par),
            },
            Self::Factor(factor) => solve_rows(factor, xt, par),
            Self::Inverse { inverse, residual } => {
                let mut zt = Mat::zeros(xt.nrows(), xt.ncols());
                times_rows(inverse, xt, &mut zt, par);
                let missed = (0..xt.ncols()).map(|k| residual * column_norm(xt, k)).collect();
                SolvedRows { zt, missed: Some(missed) }
            }
        }
    }

    /// The solver of `after`, which is A plus the change; nothing of `self` is lost if it fails. `fresh` asks for a new
    /// factorisation instead of an update. Returns whether it had to
    /// factor anew; not when that was merely cheaper.
    pub(crate) fn follow(
        &mut self,
        after: &Sums,
        change: &SignedRows,
        moved: &Moved,
        fresh: bool,
        penalty: &[f64],
        par: Par,
    ) -> Result<bool> {
        let width = after.a.nrows();
        let refactor = || {
            Cholesky::factor(&after.a, |j| penalty[j] == 0.0, par)
                .map_err(|pivot| Error::Singular { pivot, width })
        };
        // Beyond a quarter of the width, updating costs more than factoring.
        let cheaper = change.signs.len() * 4 > width;
        let asked = fresh;
        let fresh = fresh || cheaper;
        let follow_factor = |factor: &Cholesky| -> Result<(Cholesky, bool)> {
            let updated =
                if fresh { None } else { factor.clone().changed(change.xt.as_ref(), &change.signs) };
            match updated {
                Some(updated) => Ok((updated, false)),
                None => Ok((refactor()?, true)),
            }
        };
        match self {
            Self::Factor(factor) => {
                let (updated, anew) = follow_factor(factor)?;
                *factor = updated;
                Ok(anew && (asked || !cheaper))
            }
            Self::Inverse { inverse, residual } => {
                if fresh {
                    *inverse = refactor()?.inverse(par);
                } else {
                    *inverse = updated_inverse(inverse, change, par)
                        .ok_or(())
                        .or_else(|()| refactor().map(|factor| factor.inverse(par)))?;
                }
                *residual = inverse_residual(after, inverse, par);
                Ok(asked)
            }
            Self::Rows { factor, kept } => {
                let (updated, anew) = follow_factor(factor)?;
                kept.follow(change, &updated, moved, after, par);
                *factor = updated;
                Ok(anew && (asked || !cheaper))
            }
        }
    }

    pub(crate) fn precomputed(&self, width: usize) -> Vec<(&'static str, usize)> {
        let square = width * width * 8;
        match self {
            Self::Factor(_) => vec![("Cholesky factor of A", square)],
            Self::Inverse { .. } => vec![("inverse of A", square)],
            Self::Rows { kept, .. } => {
                vec![("Cholesky factor of A", square), ("rows of XA⁻¹", kept.bytes())]
            }
        }
    }

    pub(crate) fn factor(&self) -> Option<&Cholesky> {
        match self {
            Self::Factor(factor) | Self::Rows { factor, .. } => Some(factor),
            Self::Inverse { .. } => None,
        }
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Factor(_) => Form::Factor,
            Self::Inverse { .. } => Form::Inverse,
            Self::Rows { .. } => Form::Rows,
        }
    }
}

fn solve_rows(factor: &Cholesky, xt: &Mat<f64>, par: Par) -> SolvedRows {
    let mut zt = xt.clone();
    factor.solve(zt.as_mut(), par);
    SolvedRows { zt, missed: None }
}

/// A⁻¹ X̂ᵀ; a row with few non-zeros takes only the columns of A⁻¹ that it names.
fn times_rows(inverse: &Mat<f64>, xt: &Mat<f64>, zt: &mut Mat<f64>, par: Par) {
    let width = xt.nrows();
    let non_zeros = (0..xt.ncols()).map(|k| xt.col_as_slice(k).iter().filter(|x| **x != 0.0).count());
    if non_zeros.sum::<usize>() * 8 > width * xt.ncols() {
        multiply(zt.as_mut(), Accum::Replace, inverse.as_ref(), xt.as_ref(), 1.0, par);
        return;
    }
    for k in 0..xt.ncols() {
        let out = zt.col_as_slice_mut(k);
        for (j, x) in xt.col_as_slice(k).iter().enumerate().filter(|(_, x)| **x != 0.0) {
            crate::linalg::add_scaled(out, *x, inverse.col_as_slice(j));
        }
    }
}

/// (A + X̂ᵀSX̂)⁻¹ = A⁻¹ − Zᵀ(S + XZᵀ)⁻¹Z. None when the middle matrix is not invertible.
fn updated_inverse(inverse: &Mat<f64>, change: &SignedRows, par: Par) -> Option<Mat<f64>> {
    let (width, k) = (inverse.nrows(), change.signs.len());
    let mut zt = Mat::zeros(width, k);
    times_rows(inverse, &change.xt, &mut zt, par);
    let core = super::change::Core::new(&change.xt, &zt, &change.signs, par)?;
    let scaled = core.times(&zt.transpose().to_owned());
    let mut updated = inverse.clone();
    multiply_lower(updated.as_mut(), Accum::Add, zt.as_ref(), scaled.as_ref(), -1.0, par);
    mirror_lower(updated.as_mut());
    Some(updated)
}

/// ‖A·A⁻¹ − I‖ from eight random sign vectors: the root mean square of ‖(A·A⁻¹ − I)v‖ estimates the Frobenius norm, which
/// is at least the norm asked for; doubled, since it is an estimate.
fn inverse_residual(sums: &Sums, inverse: &Mat<f64>, par: Par) -> f64 {
    const PROBES: usize = 8;
    let width = inverse.nrows();
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ width as u64;
    let signs = Mat::from_fn(width, PROBES, |_, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 { 1.0 } else { -1.0 }
    });
    let mut half = Mat::zeros(width, PROBES);
    multiply(half.as_mut(), Accum::Replace, inverse.as_ref(), signs.as_ref(), 1.0, par);
    let mut missed = signs;
    multiply(missed.as_mut(), Accum::Add, sums.a.as_ref(), half.as_ref(), -1.0, par);
    2.0 * norm(&missed) / (PROBES as f64).sqrt()
}

/// The rows that a `Form::Rows` solver is built from.
pub(crate) struct KeptSource<'a> {
    pub(crate) rows: std::borrow::Cow<'a, Rows>,
    pub(crate) basis: &'a Basis,
}

impl KeptRows {
    fn build(source: KeptSource<'_>, sums: &Sums, factor: &Cholesky, par: Par) -> Self {
        let width = sums.a.nrows();
        let n = source.rows.len();
        let mut z = Mat::zeros(width, n);
        let mut missed = vec![0.0; n];
        for (slot, row) in source.rows.iter().enumerate() {
            source.basis.write(row.features, 1.0, z.col_as_slice_mut(slot));
        }
        const BLOCK: usize = 1024;
        for start in (0..n).step_by(BLOCK) {
            let size = BLOCK.min(n - start);
            let mut difference = z.as_ref().subcols(start, size).to_owned();
            let mut block = z.as_mut().subcols_mut(start, size);
            factor.solve(block.as_mut(), par);
            multiply(difference.as_mut(), Accum::Add, sums.a.as_ref(), block.as_ref(), -1.0, par);
            for (k, missed) in missed[start..start + size].iter_mut().enumerate() {
                *missed = column_norm(&difference, k);
            }
        }
        Self { index: Index::of_distinct(source.rows.ids().collect()), alive: vec![true; n], z, missed }
    }

    fn gather(&self, ids: &[RowId], scaled: &[f64]) -> Option<SolvedRows> {
        let slot = |&id: &RowId| self.index.slot(id).filter(|&slot| self.alive[slot]);
        let slots: Vec<usize> = ids.iter().map(slot).collect::<Option<_>>()?;
        let mut zt = Mat::zeros(self.z.nrows(), ids.len());
        let mut missed = Vec::with_capacity(ids.len());
        for (k, (&slot, &root)) in slots.iter().zip(scaled).enumerate() {
            let (from, to) = (self.z.col_as_slice(slot), zt.col_as_slice_mut(k));
            if root == 1.0 {
                to.copy_from_slice(from);
            } else {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from * root);
            }
            missed.push(self.missed[slot] * root);
        }
        Some(SolvedRows { zt, missed: Some(missed) })
    }

    /// Brings every row's vector to the new A: Z − (Z X̂ᵀ) S (X̂ A′⁻¹), and drops or adds the rows that left or joined.
    fn follow(&mut self, change: &SignedRows, factor: &Cholesky, moved: &Moved, after: &Sums, par: Par) {
        let k = change.signs.len();
        // X̂A′⁻¹ with the new factor, and how far each of these misses.
        let mut solved = change.xt.clone();
        factor.solve(solved.as_mut(), par);
        let mut missed = change.xt.clone();
        multiply(missed.as_mut(), Accum::Add, after.a.as_ref(), solved.as_ref(), -1.0, par);
        let missed: Vec<f64> = (0..k).map(|j| column_norm(&missed, j)).collect();
        let scale = 4.0 * UNIT * after.size;

        let n = self.z.ncols();
        let mut along = Mat::zeros(k, n);
        let signed = change.signed();
        multiply(along.as_mut(), Accum::Replace, signed.as_ref().transpose(), self.z.as_ref(), 1.0, par);
        multiply(self.z.as_mut(), Accum::Add, solved.as_ref(), along.as_ref(), -1.0, par);
        for (slot, old) in self.missed.iter_mut().enumerate() {
            let from_change = dot_abs(along.col_as_slice(slot), &missed);
            *old += from_change + scale * column_norm(&self.z, slot);
        }
        for slot in moved.left.iter().filter_map(|&id| self.index.slot(id)) {
            self.z.col_as_slice_mut(slot).fill(0.0);
            self.alive[slot] = false;
        }
        let live = self.alive.iter().filter(|alive| **alive).count();
        // Slots of rows that left are reclaimed together: when half are idle, or when rows arrive.
        if !moved.arrived.is_empty() || live * 2 < n {
            self.reclaim(live, &solved, &missed, &moved.arrived);
        }
    }

    fn reclaim(&mut self, live: usize, solved: &Mat<f64>, missed: &[f64], arrived: &[(RowId, usize, f64)]) {
        let mut z = Mat::zeros(self.z.nrows(), live + arrived.len());
        let mut all_missed = Vec::with_capacity(z.ncols());
        let mut ids = Vec::with_capacity(z.ncols());
        for slot in (0..self.alive.len()).filter(|&slot| self.alive[slot]) {
            z.col_as_slice_mut(ids.len()).copy_from_slice(self.z.col_as_slice(slot));
            all_missed.push(self.missed[slot]);
            ids.push(self.index.id(slot));
        }
        for &(id, k, root) in arrived {
            let to = z.col_as_slice_mut(ids.len());
            to.iter_mut().zip(solved.col_as_slice(k)).for_each(|(to, from)| *to = from / root);
            all_missed.push(missed[k] / root);
            ids.push(id);
        }
        let alive = vec![true; ids.len()];
        *self = Self { index: Index::of_distinct(ids), alive, z, missed: all_missed };
    }

    pub(crate) fn bytes(&self) -> usize {
        self.z.ncols() * (self.z.nrows() + 2) * 8
    }
}

/// Which rows a change takes out for good and which it brings in: (id, its place in the change, root of its weight).
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) left: Vec<RowId>,
    pub(crate) arrived: Vec<(RowId, usize, f64)>,
}

fn dot_abs(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.abs() * b).sum()
}
