//! An upper bound on ‖A⁻¹‖, that is, on 1/μ with μ the least eigenvalue of A.
//!
//! A few Lanczos steps on A⁻¹ from a random start give a value θ ≤ ‖A⁻¹‖. By Kuczyński and
//! Woźniakowski (SIAM J. Matrix Anal. Appl. 13, 1992, theorem 4.1), the chance over the start that
//! θ < (1 − ε)‖A⁻¹‖ after m steps on width p is at most 1.648·√p·exp(−√ε·(2m − 1)). With m = 12 and
//! ε = 3/4 this is below 4e-7 for p = 10,000, so 4θ is a bound that one in two million models would
//! see fail, and then only by being too small by the fraction missed.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::{column, column_mut, dot};

/// Steps, and by how much what they find may be too small.
const INVERSE_NORM: (usize, f64) = (12, 4.0);

/// At least the norm of any positive semidefinite operator, and at most a third above it. It takes
/// twice the steps of
/// [`NormSearch::of_inverse`]: with m = 24 and ε = 1/4 the chance of failing is below 1e-8 for p = 10,000.
pub(crate) fn operator_norm(
    width: usize,
    apart: &[usize],
    seed: u64,
    mut apply: impl FnMut(&mut Mat<f64>),
) -> f64 {
    let mut search = NormSearch::new(width, apart.to_vec(), seed, (24, 4.0 / 3.0));
    while search.step(&mut apply) {}
    search.bound()
}

/// The same, and at most a sixteenth above it, by twice as many steps again: with m = 48 and ε =
/// 1/17 the chance of failing is below 2e-8 for p = 10,000.
pub(crate) fn close_operator_norm(
    width: usize,
    apart: &[usize],
    seed: u64,
    mut apply: impl FnMut(&mut Mat<f64>),
) -> f64 {
    let mut search = NormSearch::new(width, apart.to_vec(), seed, (48, 17.0 / 16.0));
    while search.step(&mut apply) {}
    search.bound()
}

/// The search for a norm, step by step, so that whoever has other work can do that in between.
#[derive(Debug, Clone)]
pub(crate) struct NormSearch {
    apart: Vec<usize>,
    steps: usize,
    safety: f64,
    basis: Vec<Mat<f64>>,
    tridiagonal: Mat<f64>,
    next: Mat<f64>,
}

impl NormSearch {
    fn new(width: usize, apart: Vec<usize>, seed: u64, (steps, safety): (usize, f64)) -> Self {
        let mut rng = crate::random::seeded(seed);
        let steps = steps.min(width);
        let mut next = Mat::from_fn(width, 1, |_, _| StandardNormal.sample(&mut rng));
        apart.iter().for_each(|&j| next[(j, 0)] = 0.0);
        let tridiagonal = Mat::zeros(steps, steps);
        Self {
            apart,
            steps,
            safety,
            basis: Vec::with_capacity(steps),
            tridiagonal,
            next,
        }
    }

    /// A search for at least ‖A⁻¹‖ with the probability stated above, the operator being A⁻¹.
    /// Columns `apart` are coupled to no other and are left out.
    pub(crate) fn of_inverse(width: usize, apart: Vec<usize>, seed: u64) -> Self {
        Self::new(width, apart, seed, INVERSE_NORM)
    }

    /// One more step, which takes one product; false when there is none to take.
    pub(crate) fn step(&mut self, mut apply: impl FnMut(&mut Mat<f64>)) -> bool {
        let step = self.basis.len();
        if step >= self.steps {
            return false;
        }
        let length = self.next.norm_l2();
        if step > 0 {
            self.tridiagonal[(step, step - 1)] = length;
        }
        // The Krylov space is exhausted: what has been found is exact.
        if length <= f64::MIN_POSITIVE || (step > 0 && length <= 1e-14 * self.tridiagonal[(0, 0)]) {
            self.steps = step;
            return false;
        }
        let unit = Mat::from_fn(self.next.nrows(), 1, |i, _| self.next[(i, 0)] / length);
        self.next = unit.clone();
        apply(&mut self.next);
        self.apart.iter().for_each(|&j| self.next[(j, 0)] = 0.0);
        self.tridiagonal[(step, step)] = dot(column(&unit, 0), column(&self.next, 0));
        self.basis.push(unit);
        // Full reorthogonalisation, twice: a dozen vectors cost nothing beside the solves.
        for _ in 0..2 {
            for old in &self.basis {
                let along = dot(column(old, 0), column(&self.next, 0));
                super::add_scaled(column_mut(&mut self.next, 0), -along, column(old, 0));
            }
        }
        true
    }

    /// The norm, when no step is left.
    pub(crate) fn bound(&self) -> f64 {
        let used = self.basis.len();
        let width = self.next.nrows();
        let small = self.tridiagonal.as_ref().submatrix(0, 0, used, used);
        let largest = match small.self_adjoint_eigenvalues(faer::Side::Lower) {
            Ok(values) => values.last().copied().unwrap_or(f64::INFINITY),
            Err(_) => f64::INFINITY,
        };
        if used == width - self.apart.len().min(width) {
            largest * 1.01
        } else {
            largest * self.safety
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_below_the_truth_and_never_far_above() {
        for width in [1, 2, 5, 30, 200] {
            for seed in 0..20 {
                // Eigenvalues of A⁻¹: 1/(1 + j), so the norm is 1.
                let mut search = NormSearch::of_inverse(width, Vec::new(), seed);
                while search.step(|v| (0..width).for_each(|j| v[(j, 0)] /= 1.0 + j as f64)) {}
                let bound = search.bound();
                assert!(
                    (1.0..=4.01).contains(&bound),
                    "width {width} seed {seed}: {bound}"
                );
                let tight = operator_norm(width, &[], seed, |v| {
                    for j in 0..width {
                        v[(j, 0)] /= 1.0 + j as f64;
                    }
                });
                assert!(
                    (1.0..=1.34).contains(&tight),
                    "width {width} seed {seed}: {tight}"
                );
                let close = close_operator_norm(width, &[], seed, |v| {
                    for j in 0..width {
                        v[(j, 0)] /= 1.0 + j as f64;
                    }
                });
                assert!(
                    (1.0..=1.07).contains(&close),
                    "width {width} seed {seed}: {close}"
                );
            }
        }
    }
}
