//! Random vectors, with which the errors of solves and of sums are measured.

use faer::{Accum, Mat, Par};
use rand_distr::{Distribution, StandardNormal};

use super::DenseBody;
use super::change::{RidgeChange, apply_signs};
use super::dense::clear;
use super::row_pass::RowPass;
use super::sums::RidgeSums;
use crate::error::Result;
use crate::linalg::{Cholesky, column_norm, dot, multiply};
use crate::random;

/// Random vectors with which the error of solves is measured. Each has a component of less than 1/9
/// along the worst direction with a chance of 0.089, all eight with one of 4e-9.
pub(super) const PROBES: usize = 8;
const PROBE_SAFETY: f64 = 9.0;

/// Those for a single request, and for the error of the sums, where each takes products with all
/// rows. A component of each is less than 1/100 with a chance of 0.008, and those of all four with
/// one of 4e-9.
const FEW_PROBES: usize = 4;
const FEW_SAFETY: f64 = 100.0;

/// Vectors x = Lv with v random: in the energy norm they point everywhere alike.
#[derive(Debug, Clone)]
pub(crate) struct ErrorProbes {
    vectors: Mat<f64>,
    safety: f64,
}

impl ErrorProbes {
    pub(crate) fn new(factor: &Cholesky, par: Par) -> Self {
        Self::of(factor, PROBES, PROBE_SAFETY, par)
    }

    /// Fewer of them, which say less: for who needs to know it for one request.
    pub(crate) fn few(factor: &Cholesky, par: Par) -> Self {
        Self::of(factor, FEW_PROBES, FEW_SAFETY, par)
    }

    fn of(factor: &Cholesky, count: usize, safety: f64, par: Par) -> Self {
        let width = factor.width();
        let mut rng = random::seeded(width as u64 ^ 0x5eed);
        let random = Mat::from_fn(width, count, |_, _| StandardNormal.sample(&mut rng));
        Self {
            vectors: factor.times(&random, par),
            safety,
        }
    }

    /// At least the fraction by which solves with Â miss; see [`CurvatureQuality::solver_error`].
    pub(crate) fn solver_error(&self, body: &DenseBody, factor: &Cholesky, par: Par) -> f64 {
        let mut solved = self.vectors.clone();
        body.solver.solve(solved.as_mut(), par);
        let missed = body.sums.times(&solved, par) - &self.vectors;
        self.safety * Self::energy(missed, factor, par)
    }

    /// What one of the vectors tells of it: the largest of all is at least that fraction.
    pub(super) fn one_solver_error(
        &self,
        probe: usize,
        sums: &RidgeSums,
        factor: &Cholesky,
        par: Par,
    ) -> f64 {
        let vector = self.vectors.as_ref().subcols(probe, 1);
        let mut solved = vector.to_owned();
        factor.solve(solved.as_mut(), par);
        self.safety * Self::energy(sums.times(&solved, par) - vector, factor, par)
    }

    /// At least the fraction by which the sums are wrong, found by a pass over the rows.
    pub(super) fn sums_error(
        &self,
        body: &DenseBody,
        factor: &Cholesky,
        pass: &RowPass<'_>,
        par: Par,
    ) -> Result<f64> {
        let mut solved = self.vectors.as_ref().subcols(0, FEW_PROBES).to_owned();
        body.solver.solve(solved.as_mut(), par);
        let missed = pass.gradient(&solved, false)?.values - body.sums.times(&solved, par);
        Ok(FEW_SAFETY * Self::energy(missed, factor, par))
    }

    /// The largest energy norm among vectors.
    fn energy(mut missed: Mat<f64>, factor: &Cholesky, par: Par) -> f64 {
        factor.half_solve_by(missed.as_mut(), par);
        let largest = (0..missed.ncols())
            .map(|k| column_norm(&missed, k))
            .fold(0.0, f64::max);
        if missed.has_nan() {
            f64::INFINITY
        } else {
            largest
        }
    }
}

impl DenseBody {
    /// At least the fraction by which solves through this change miss, A being that of the sums.
    /// None where no factor is kept. The random vectors are those of A before the change, which in
    /// every direction are no smaller than those of A after it.
    pub(super) fn solver_error_through(&self, change: &RidgeChange, par: Par) -> Option<f64> {
        let mut vectors = ErrorProbes::new(self.solver.factor()?, par).vectors;
        let apart = self.unsupported(Some(&change.rows));
        clear(&mut vectors, &apart);
        let mut solved = self.solve(&vectors, Some(change), par);
        clear(&mut solved, &apart);
        let mut missed = self.sums.times(&solved, par) - &vectors;
        for rows in self
            .pending
            .iter()
            .map(|waiting| &waiting.rows)
            .chain(std::iter::once(&change.rows))
        {
            let mut along = Mat::zeros(rows.signs.len(), PROBES);
            multiply(
                along.as_mut(),
                Accum::Replace,
                rows.xt.as_ref().transpose(),
                solved.as_ref(),
                1.0,
                par,
            );
            apply_signs(&mut along, &rows.signs);
            multiply(
                missed.as_mut(),
                Accum::Add,
                rows.xt.as_ref(),
                along.as_ref(),
                1.0,
                par,
            );
        }
        clear(&mut missed, &apart);
        let again = self.solve(&missed, Some(change), par);
        let energy = |k: usize| {
            dot(missed.col_as_slice(k), again.col_as_slice(k))
                .abs()
                .sqrt()
        };
        let largest = (0..PROBES).map(energy).fold(0.0, f64::max);
        largest.is_finite().then_some(2.0 * PROBE_SAFETY * largest)
    }
}
