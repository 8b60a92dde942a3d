//! Conjugate gradients on a symmetric positive definite operator, guided by something like its
//! inverse. Returns the iterations done, or the residual it was left with.

use super::{add_scaled, dot};
use crate::error::{Error, Result};

/// From this tolerance on, the drift of the running residual is nothing beside the residual that is
/// asked for.
const ROUGH: f64 = 1e-6;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CgSettings {
    /// Relative residual ‖b − Ax‖/‖b‖ that counts as solved.
    pub(crate) tolerance: f64,
    /// Give up after so many products with A.
    pub(crate) max_iterations: usize,
}

/// Solves A·x = b from the x given; `apply(v, out)` writes A·v, `precondition` gives roughly A⁻¹·r.
pub(crate) fn conjugate_gradients(
    mut apply: impl FnMut(&[f64], &mut [f64]),
    precondition: impl Fn(&[f64]) -> Vec<f64>,
    b: &[f64],
    x: &mut [f64],
    settings: CgSettings,
) -> Result<usize> {
    if b.iter().all(|v| *v == 0.0) {
        x.fill(0.0);
        return Ok(0);
    }
    let goal = settings.tolerance * dot(b, b).sqrt();
    let mut product = vec![0.0; b.len()];
    // From 0 there is nothing to multiply.
    if x.iter().any(|x| *x != 0.0) {
        apply(x, &mut product);
    }
    let mut residual: Vec<f64> = b.iter().zip(&product).map(|(b, p)| b - p).collect();
    let mut search = vec![0.0; b.len()];
    let mut previous = 0.0;
    let mut restarts = 0;
    for iteration in 0..=settings.max_iterations {
        let mut length = dot(&residual, &residual).sqrt();
        if length <= goal && settings.tolerance >= ROUGH {
            return Ok(iteration);
        }
        if length <= goal {
            // The running residual drifts from the true one; believe only the true one, and go on
            // from it if need be.
            apply(x, &mut product);
            for ((r, b), p) in residual.iter_mut().zip(b).zip(&product) {
                *r = b - p;
            }
            let truth = dot(&residual, &residual).sqrt();
            if truth <= goal || restarts == 3 {
                return Ok(iteration);
            }
            length = truth;
            restarts += 1;
            previous = 0.0;
        }
        if iteration == settings.max_iterations || !length.is_finite() {
            let scale = dot(b, b).sqrt().max(f64::MIN_POSITIVE);
            return Err(Error::NotConverged {
                iterations: iteration,
                residual: length / scale,
                tolerance: settings.tolerance,
            });
        }
        let preconditioned = precondition(&residual);
        let current = dot(&residual, &preconditioned);
        let mix = if previous == 0.0 {
            0.0
        } else {
            current / previous
        };
        for (s, p) in search.iter_mut().zip(&preconditioned) {
            *s = p + mix * *s;
        }
        previous = current;
        apply(&search, &mut product);
        let step = current / dot(&search, &product);
        add_scaled(x, step, &search);
        add_scaled(&mut residual, -step, &product);
    }
    Ok(settings.max_iterations)
}

/// Division by the diagonal of A.
pub(crate) fn by_diagonal(diagonal: &[f64]) -> impl Fn(&[f64]) -> Vec<f64> {
    move |r| r.iter().zip(diagonal).map(|(r, d)| r / d).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laplacian(v: &[f64], out: &mut [f64]) {
        let n = v.len();
        for i in 0..n {
            let left = if i > 0 { v[i - 1] } else { 0.0 };
            let right = if i + 1 < n { v[i + 1] } else { 0.0 };
            out[i] = 2.1 * v[i] - left - right;
        }
    }

    #[test]
    fn solves_and_reports_failure() {
        let truth: Vec<f64> = (0..50).map(|i| (i as f64).sin()).collect();
        let mut b = vec![0.0; 50];
        laplacian(&truth, &mut b);
        let mut x = vec![0.0; 50];
        let settings = CgSettings {
            tolerance: 1e-13,
            max_iterations: 200,
        };
        conjugate_gradients(laplacian, by_diagonal(&[2.1; 50]), &b, &mut x, settings).unwrap();
        assert!(x.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-11));
        // A warm start at the answer needs no iteration.
        assert_eq!(
            conjugate_gradients(laplacian, by_diagonal(&[2.1; 50]), &b, &mut x, settings).unwrap(),
            0
        );
        let hopeless = CgSettings {
            tolerance: 1e-13,
            max_iterations: 3,
        };
        let error = conjugate_gradients(
            laplacian,
            by_diagonal(&[2.1; 50]),
            &b,
            &mut vec![0.0; 50],
            hopeless,
        );
        assert!(matches!(
            error,
            Err(Error::NotConverged { iterations: 3, .. })
        ));
    }
}
