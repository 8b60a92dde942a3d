//! The linear problem with the covariance that Izzo et al. draw for their tables: scikit-learn's
//! `make_spd_matrix`.
//!
//! That function draws a d×d matrix A and d numbers u, all uniform on [0, 1), takes the singular
//! vectors of AᵀA = USVᵀ and returns Σ = U(11ᵀ + diag u)Vᵀ. The 1 in its `1.0 + diag(u)` is added
//! to every entry and not to the diagonal alone. AᵀA is symmetric and semidefinite, so V = U, and Σ
//! has the eigenvalues of 11ᵀ + diag u: one between d and d + 1, and the others between neighbours
//! of u, so that they spread evenly over [0, 1).
//!
//! Rows are drawn without making Σ: x = U(g·1 + √u ∘ z), with a standard normal number g and vector
//! z, has covariance Σ.

use faer::{Accum, Mat, MatMut, MatRef, get_global_parallelism};
use rand::RngExt;

use super::linear::DataStream;
use super::{LinearProblem, RegressionData};
use crate::error::{Error, Result};
use crate::linalg::{multiply, symmetric_eigen};

/// The size and the seed of a linear problem whose covariance is drawn as scikit-learn's
/// `make_spd_matrix` draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpdLinear {
    /// Rows, n.
    pub rows: usize,
    /// Features, d.
    pub width: usize,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Σ = U(11ᵀ + diag u)Uᵀ in parts.
struct SpdFactors {
    /// U, one orthonormal vector a column.
    directions: Mat<f64>,
    /// u.
    spread: Vec<f64>,
}

impl SpdFactors {
    /// From the uniform numbers: `square` is A, row by row, and `spread` is u. None where the
    /// eigendecomposition of AᵀA does not converge.
    fn new(square: &[f64], spread: Vec<f64>) -> Option<Self> {
        let d = spread.len();
        let par = get_global_parallelism();
        let a = MatRef::from_row_major_slice(square, d, d);
        let mut gram = Mat::zeros(d, d);
        multiply(gram.as_mut(), Accum::Replace, a.transpose(), a, 1.0, par);
        let (_, directions) = symmetric_eigen(gram.as_ref(), par)?;
        Some(Self { directions, spread })
    }
}

impl SpdLinear {
    /// Draws the problem.
    pub fn generate(&self) -> Result<RegressionData> {
        let SpdLinear { rows, width, seed } = *self;
        let base = LinearProblem { rows, width, seed };
        let factors = self.factors()?;
        let shared = base.normals(rows, DataStream::Shared);
        let mut mixed = base.normals(rows * width, DataStream::Rows);
        let roots: Vec<f64> = factors.spread.iter().map(|u| u.sqrt()).collect();
        // The rows before they are turned: g·1 + √u ∘ z.
        for (row, g) in mixed.chunks_exact_mut(width.max(1)).zip(shared) {
            row.iter_mut()
                .zip(&roots)
                .for_each(|(z, root)| *z = g + root * *z);
        }
        let mut x = vec![0.0; rows * width];
        if !x.is_empty() {
            multiply(
                MatMut::from_row_major_slice_mut(&mut x, rows, width),
                Accum::Replace,
                MatRef::from_row_major_slice(&mixed, rows, width),
                factors.directions.transpose(),
                1.0,
                get_global_parallelism(),
            );
        }
        let theta = base.normals(width, DataStream::Theta);
        let mut problem = RegressionData {
            x,
            width,
            y: vec![0.0; rows],
            theta,
        };
        problem.y = base.targets(&problem);
        Ok(problem)
    }

    fn factors(&self) -> Result<SpdFactors> {
        let base = LinearProblem {
            rows: self.rows,
            width: self.width,
            seed: self.seed,
        };
        let mut random = base.stream(DataStream::Covariance);
        let square: Vec<f64> = (0..self.width * self.width)
            .map(|_| random.random())
            .collect();
        let mut random = base.stream(DataStream::Spread);
        let spread = (0..self.width).map(|_| random.random()).collect();
        SpdFactors::new(&square, spread).ok_or_else(|| Error::Parameter {
            name: "seed",
            value: self.seed.to_string(),
            range: "one whose random matrix has an eigendecomposition; take another",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SpdFactors {
        fn covariance(&self) -> Mat<f64> {
            let d = self.spread.len();
            let middle = Mat::from_fn(d, d, |i, j| 1.0 + if i == j { self.spread[i] } else { 0.0 });
            &self.directions * middle * self.directions.transpose()
        }
    }

    /// The example in the documentation of scikit-learn 1.6, `make_spd_matrix(n_dim=2,
    /// random_state=42)`, which prints [[2.09..., 0.34...], [0.34..., 0.21...]]. The six numbers
    /// are the first six of numpy's `RandomState(42).uniform`. A sign of a singular vector is free,
    /// and changes the sign of what 1 adds off the diagonal of U(…)Uᵀ; the eigenvalues do not
    /// depend on it.
    #[test]
    fn the_documented_example_has_these_eigenvalues() {
        let square = [0.374_540_12, 0.950_714_31, 0.731_993_94, 0.598_658_48];
        let factors = SpdFactors::new(&square, vec![0.156_018_64, 0.155_994_52]).unwrap();
        let (values, _) = symmetric_eigen(factors.covariance().as_ref(), faer::Par::Seq).unwrap();
        // Trace 2.093 + 0.218 and determinant 2.093·0.218 − 0.346² of the printed matrix.
        assert!((values[0] + values[1] - 2.311).abs() < 2e-3, "{values:?}");
        assert!((values[0] * values[1] - 0.3366).abs() < 2e-3, "{values:?}");
    }

    #[test]
    fn one_eigenvalue_is_near_the_width_and_the_others_lie_between_the_drawn_numbers() {
        let d = 60;
        let factors = SpdLinear {
            rows: 0,
            width: d,
            seed: 4,
        }
        .factors()
        .unwrap();
        let (values, _) = symmetric_eigen(factors.covariance().as_ref(), faer::Par::Seq).unwrap();
        let mut spread = factors.spread.clone();
        spread.sort_by(f64::total_cmp);
        assert!(spread[0] > 0.0 && spread[d - 1] < 1.0);
        for j in 0..d - 1 {
            assert!(
                values[j] > spread[j] - 1e-9 && values[j] < spread[j + 1] + 1e-9,
                "eigenvalue {j}"
            );
        }
        assert!(
            values[d - 1] > d as f64 && values[d - 1] < d as f64 + 1.0,
            "{}",
            values[d - 1]
        );
        // Evenly spread over [0, 1): a quarter of them in each quarter, within five standard errors
        // of a binomial.
        let low = values.iter().filter(|value| **value < 0.25).count() as f64;
        assert!(
            (low - 15.0).abs() < 5.0 * (60.0 * 0.25 * 0.75f64).sqrt(),
            "{low}"
        );
    }

    /// Each entry of the sample covariance has a standard error of √((Σ_ii Σ_jj + Σ_ij²)/n); five
    /// of them are allowed.
    #[test]
    fn rows_have_that_covariance() {
        let linear = SpdLinear {
            rows: 20_000,
            width: 5,
            seed: 3,
        };
        let sigma = linear.factors().unwrap().covariance();
        let problem = linear.generate().unwrap();
        assert_eq!(problem, linear.generate().unwrap());
        let n = linear.rows as f64;
        for i in 0..5 {
            for j in 0..=i {
                let products = (0..linear.rows).map(|r| problem.row(r)[i] * problem.row(r)[j]);
                let sample = products.sum::<f64>() / n;
                let error = ((sigma[(i, i)] * sigma[(j, j)] + sigma[(i, j)].powi(2)) / n).sqrt();
                assert!(
                    (sample - sigma[(i, j)]).abs() < 5.0 * error,
                    "{i},{j}: {sample} is not {}",
                    sigma[(i, j)]
                );
            }
        }
        let noise: Vec<f64> = (0..problem.rows())
            .map(|i| problem.y[i] - problem.signal(i))
            .collect();
        let variance = noise.iter().map(|e| e * e).sum::<f64>() / n;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
