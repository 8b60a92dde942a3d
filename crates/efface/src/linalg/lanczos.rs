//! An upper bound on ‖A⁻¹‖, that is, on 1/μ with μ the least eigenvalue of A.
//!
//! A few Lanczos steps on A⁻¹ from a random start give a value θ ≤ ‖A⁻¹‖. By Kuczyński and Woźniakowski (SIAM J. Matrix
//! Anal. Appl. 13, 1992, theorem 4.1), the chance over the start that θ < (1 − ε)‖A⁻¹‖ after m steps on width p is at
//! most 1.648·√p·exp(−√ε·(2m − 1)). With m = 12 and ε = 3/4 this is below 4e-7 for p = 10,000, so 4θ is a bound
//! that one in two million models would see fail, and then only by being too small by the fraction missed.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::{column, column_mut, dot};

/// At least ‖A⁻¹‖ with the probability stated above; `solve` applies A⁻¹ to one column in place. Columns `apart` are
/// coupled to no other and are left out.
pub(crate) fn inverse_norm(
    width: usize,
    apart: &[usize],
    seed: u64,
    solve: impl FnMut(&mut Mat<f64>),
) -> f64 {
    norm_bound(width, apart, seed, (12, 4.0), solve)
}

/// At least the norm of any positive semidefinite operator, and at most a third above it. It takes twice the steps of
/// [`inverse_norm`]: with m = 24 and ε = 1/4 the chance of failing is below 1e-8 for p = 10,000.
pub(crate) fn operator_norm(
    width: usize,
    apart: &[usize],
    seed: u64,
    apply: impl FnMut(&mut Mat<f64>),
) -> f64 {
    norm_bound(width, apart, seed, (24, 4.0 / 3.0), apply)
}

fn norm_bound(
    width: usize,
    apart: &[usize],
    seed: u64,
    (steps, safety): (usize, f64),
    mut solve: impl FnMut(&mut Mat<f64>),
) -> f64 {
    let mut rng = crate::random::seeded(seed);
    let steps = steps.min(width);
    let mut basis: Vec<Mat<f64>> = Vec::with_capacity(steps);
    let mut tridiagonal = Mat::<f64>::zeros(steps, steps);
    let mut next = Mat::from_fn(width, 1, |_, _| StandardNormal.sample(&mut rng));
    apart.iter().for_each(|&j| next[(j, 0)] = 0.0);
    let mut used = 0;
    for step in 0..steps {
        let length = next.norm_l2();
        if step > 0 {
            tridiagonal[(step, step - 1)] = length;
        }
        // The Krylov space is exhausted: what has been found is exact.
        if length <= f64::MIN_POSITIVE || (step > 0 && length <= 1e-14 * tridiagonal[(0, 0)]) {
            break;
        }
        let unit = Mat::from_fn(width, 1, |i, _| next[(i, 0)] / length);
        next = unit.clone();
        solve(&mut next);
        apart.iter().for_each(|&j| next[(j, 0)] = 0.0);
        tridiagonal[(step, step)] = dot(column(&unit, 0), column(&next, 0));
        basis.push(unit);
        used += 1;
        // Full reorthogonalisation, twice: a dozen vectors cost nothing beside the solves.
        for _ in 0..2 {
            for old in &basis {
                let along = dot(column(old, 0), column(&next, 0));
                super::add_scaled(column_mut(&mut next, 0), -along, column(old, 0));
            }
        }
    }
    let small = tridiagonal.as_ref().submatrix(0, 0, used, used);
    let largest = match small.self_adjoint_eigenvalues(faer::Side::Lower) {
        Ok(values) => values.last().copied().unwrap_or(f64::INFINITY),
        Err(_) => f64::INFINITY,
    };
    if used == width - apart.len().min(width) { largest * 1.01 } else { largest * safety }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_below_the_truth_and_never_far_above() {
        for width in [1, 2, 5, 30, 200] {
            for seed in 0..20 {
                // Eigenvalues of A⁻¹: 1/(1 + j), so the norm is 1.
                let bound = inverse_norm(width, &[], seed, |v| {
                    for j in 0..width {
                        v[(j, 0)] /= 1.0 + j as f64;
                    }
                });
                assert!((1.0..=4.01).contains(&bound), "width {width} seed {seed}: {bound}");
                let tight = operator_norm(width, &[], seed, |v| {
                    for j in 0..width {
                        v[(j, 0)] /= 1.0 + j as f64;
                    }
                });
                assert!((1.0..=1.34).contains(&tight), "width {width} seed {seed}: {tight}");
            }
        }
    }
}
