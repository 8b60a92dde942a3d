//! The linear problem of the source papers: rows N(0, Σ) with a random covariance, and targets y =
//! Xθ* + N(0, 1).
//!
//! Σ = MMᵀ/d + 0.01·I with standard normal M of size d×d, so that it is positive definite whatever
//! M is. Rows are drawn as ZMᵀ/√d + 0.1·Z′ with standard normal Z and Z′: one matrix product. θ* is
//! standard normal. Each of these has a random stream of its own.

use faer::{Accum, MatMut, MatRef, get_global_parallelism, linalg::matmul::matmul};
use rand_distr::{Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::random::{SeededRng, seeded_stream};

/// The size and the seed of a linear problem. The papers use ten rows per feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearProblem {
    /// Rows, n.
    pub rows: usize,
    /// Features, d.
    pub width: usize,
    /// Seed of every random choice.
    pub seed: u64,
}

/// A regression problem with its true parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionData {
    /// Features, row by row.
    pub x: Vec<f64>,
    /// Features of each row.
    pub width: usize,
    /// Targets.
    pub y: Vec<f64>,
    /// The parameters θ* that made the targets.
    pub theta: Vec<f64>,
}

/// The diagonal that keeps Σ positive definite is the square of this.
const FLOOR: f64 = 0.1;

/// What each random stream is for. A new use takes a new number, so that older data stays as it
/// was.
#[derive(Clone, Copy)]
pub(super) enum DataStream {
    Covariance = 0,
    Rows = 1,
    Floor = 2,
    Theta = 3,
    Noise = 4,
    Sparsity = 5,
    Spread = 6,
    Shared = 7,
}

impl RegressionData {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.y.len()
    }

    /// The features of one row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.width..(i + 1) * self.width]
    }

    /// The problem with its first rows and their targets multiplied by a factor.
    pub fn scaled(mut self, first: usize, by: f64) -> Result<Self> {
        if first > self.rows() {
            let range = "at most the number of rows";
            return Err(Error::Parameter {
                name: "rows to scale",
                value: first.to_string(),
                range,
            });
        }
        if !by.is_finite() {
            return Err(Error::Parameter {
                name: "scale",
                value: by.to_string(),
                range: "finite",
            });
        }
        self.x[..first * self.width]
            .iter_mut()
            .for_each(|x| *x *= by);
        self.y[..first].iter_mut().for_each(|y| *y *= by);
        Ok(self)
    }

    /// θ*ᵀx_i, the target of a row without its noise.
    pub(super) fn signal(&self, i: usize) -> f64 {
        self.row(i)
            .iter()
            .zip(&self.theta)
            .map(|(x, t)| x * t)
            .sum()
    }
}

impl LinearProblem {
    /// Draws the problem.
    pub fn generate(&self) -> RegressionData {
        let mut problem = self.features();
        problem.y = self.targets(&problem);
        problem
    }

    pub(super) fn stream(&self, stream: DataStream) -> SeededRng {
        seeded_stream(self.seed, stream as u64)
    }

    pub(super) fn normals(&self, count: usize, stream: DataStream) -> Vec<f64> {
        StandardNormal
            .sample_iter(self.stream(stream))
            .take(count)
            .collect()
    }

    /// Features and true parameters; the targets are zero yet.
    pub(super) fn features(&self) -> RegressionData {
        let n = self.rows;
        let d = self.width;
        let m = self.normals(d * d, DataStream::Covariance);
        let z = self.normals(n * d, DataStream::Rows);
        let mut x: Vec<f64> = self
            .normals(n * d, DataStream::Floor)
            .into_iter()
            .map(|z| FLOOR * z)
            .collect();
        if n > 0 && d > 0 {
            // X = 0.1·Z′ + ZMᵀ/√d
            matmul(
                MatMut::from_row_major_slice_mut(&mut x, n, d),
                Accum::Add,
                MatRef::from_row_major_slice(&z, n, d),
                MatRef::from_row_major_slice(&m, d, d).transpose(),
                1.0 / (d as f64).sqrt(),
                get_global_parallelism(),
            );
        }
        RegressionData {
            x,
            width: d,
            y: vec![0.0; n],
            theta: self.normals(d, DataStream::Theta),
        }
    }

    /// y = Xθ* + N(0, 1) for the features as they are now.
    pub(super) fn targets(&self, problem: &RegressionData) -> Vec<f64> {
        let noise = self.normals(self.rows, DataStream::Noise);
        noise
            .into_iter()
            .enumerate()
            .map(|(i, noise)| problem.signal(i) + noise)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_problem_and_shapes_fit() {
        let linear = LinearProblem {
            rows: 30,
            width: 7,
            seed: 1,
        };
        let problem = linear.generate();
        assert_eq!(problem, linear.generate());
        assert_ne!(problem, LinearProblem { seed: 2, ..linear }.generate());
        assert_eq!(
            (
                problem.x.len(),
                problem.rows(),
                problem.theta.len(),
                problem.row(29).len()
            ),
            (210, 30, 7, 7)
        );
        let empty = LinearProblem {
            rows: 0,
            width: 0,
            seed: 1,
        }
        .generate();
        assert!(empty.x.is_empty() && empty.y.is_empty());
    }

    /// Each entry of the sample covariance has a standard error of √((Σ_ii Σ_jj + Σ_ij²)/n); five
    /// of them are allowed.
    #[test]
    fn rows_have_the_stated_covariance() {
        let linear = LinearProblem {
            rows: 20_000,
            width: 5,
            seed: 3,
        };
        let n = linear.rows;
        let d = linear.width;
        let m = linear.normals(d * d, DataStream::Covariance);
        let sigma = |i: usize, j: usize| {
            let mixed: f64 = (0..d).map(|l| m[i * d + l] * m[j * d + l]).sum();
            mixed / d as f64 + if i == j { FLOOR * FLOOR } else { 0.0 }
        };
        let problem = linear.generate();
        for i in 0..d {
            for j in 0..=i {
                let sample = (0..n)
                    .map(|r| problem.row(r)[i] * problem.row(r)[j])
                    .sum::<f64>()
                    / n as f64;
                let error = ((sigma(i, i) * sigma(j, j) + sigma(i, j).powi(2)) / n as f64).sqrt();
                assert!(
                    (sample - sigma(i, j)).abs() < 5.0 * error,
                    "{i},{j}: {sample} is not {}",
                    sigma(i, j)
                );
            }
        }
    }

    #[test]
    fn the_noise_has_unit_variance() {
        let problem = LinearProblem {
            rows: 10_000,
            width: 4,
            seed: 9,
        }
        .generate();
        let noise: Vec<f64> = (0..problem.rows())
            .map(|i| problem.y[i] - problem.signal(i))
            .collect();
        let variance = noise.iter().map(|e| e * e).sum::<f64>() / noise.len() as f64;
        assert!((variance - 1.0).abs() < 0.07, "{variance}");
    }
}
