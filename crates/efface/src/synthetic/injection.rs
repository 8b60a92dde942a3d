//! Linear problems whose first k rows are the ones to forget: they carry a feature that nobody else
//! has, or they are outliers. After the method of Izzo, Smart, Chaudhuri and Zou, "Approximate Data
//! Deletion from Machine Learning Models" (2021), appendix E.

use rand::RngExt;

use super::{LinearProblem, RegressionData, linear::DataStream};
use crate::error::{Error, Result};

/// The feature injection test's data: the last feature is zero except on the first k rows, where it
/// decides the target.
///
/// The other features are thinned out: on the first k rows a column is kept or zeroed for all of
/// them together, so that these rows span few directions; elsewhere each entry is kept or zeroed by
/// itself. The targets of the other rows are made from their features after thinning. A model
/// fitted on all rows puts a weight near 10 on the last feature; one that never saw the first k
/// rows puts none on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureInjection {
    /// The problem before the injection; its width includes the injected feature.
    pub base: LinearProblem,
    /// k, the rows to forget.
    pub removed: usize,
    /// p, the probability that a feature is kept.
    pub keep: f64,
}

/// The true weight of the injected feature.
const WEIGHT: f64 = 10.0;

impl FeatureInjection {
    /// Draws the problem. The last of the true parameters is 10.
    pub fn generate(&self) -> Result<RegressionData> {
        check_removed(&self.base, self.removed)?;
        if !(0.0..=1.0).contains(&self.keep) {
            return Err(Error::Parameter {
                name: "keep",
                value: self.keep.to_string(),
                range: "between 0 and 1",
            });
        }
        let Some(last) = self.base.width.checked_sub(1) else {
            return Err(Error::Parameter {
                name: "width",
                value: "0".into(),
                range: "at least 1",
            });
        };
        let mut problem = self.base.features();
        let mut rng = self.base.stream(DataStream::Sparsity);
        let together: Vec<bool> = (0..last).map(|_| rng.random_bool(self.keep)).collect();
        for (i, row) in problem.x.chunks_exact_mut(self.base.width).enumerate() {
            let injected = i < self.removed;
            for (value, &kept) in row.iter_mut().zip(&together) {
                if !(if injected {
                    kept
                } else {
                    rng.random_bool(self.keep)
                }) {
                    *value = 0.0;
                }
            }
            if !injected {
                row[last] = 0.0;
            }
        }
        problem.theta[last] = WEIGHT;
        problem.y = self.base.targets(&problem);
        for i in 0..self.removed {
            problem.y[i] = WEIGHT * problem.row(i)[last];
        }
        Ok(problem)
    }
}

/// The outlier variant: the first k rows and their targets are scaled. The papers use 1, 10 and
/// 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierProblem {
    /// The problem before scaling.
    pub base: LinearProblem,
    /// k, the rows to forget.
    pub removed: usize,
    /// By how much they and their targets are multiplied.
    pub scale: f64,
}

impl OutlierProblem {
    /// Draws the problem.
    pub fn generate(&self) -> Result<RegressionData> {
        check_removed(&self.base, self.removed)?;
        self.base.generate().scaled(self.removed, self.scale)
    }
}

fn check_removed(base: &LinearProblem, removed: usize) -> Result<()> {
    if removed > base.rows {
        let range = "at most the number of rows";
        return Err(Error::Parameter {
            name: "removed",
            value: removed.to_string(),
            range,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: LinearProblem = LinearProblem {
        rows: 400,
        width: 40,
        seed: 5,
    };

    #[test]
    fn the_injected_feature_decides_the_targets_of_its_rows_alone() {
        let injection = FeatureInjection {
            base: BASE,
            removed: 10,
            keep: 0.25,
        };
        let problem = injection.generate().unwrap();
        assert_eq!(problem, injection.generate().unwrap());
        for i in 0..problem.rows() {
            let special = problem.row(i)[39];
            assert_eq!(special != 0.0, i < 10);
            if i < 10 {
                assert_eq!(problem.y[i], 10.0 * special);
            } else {
                assert!(
                    (problem.y[i] - problem.signal(i)).abs() < 6.0,
                    "noise of unit variance"
                );
            }
        }
    }

    #[test]
    fn the_first_rows_are_thinned_together_and_the_others_entry_by_entry() {
        let problem = FeatureInjection {
            base: BASE,
            removed: 10,
            keep: 0.25,
        }
        .generate()
        .unwrap();
        let pattern = |i: usize| {
            problem.row(i)[..39]
                .iter()
                .map(|&x| x != 0.0)
                .collect::<Vec<_>>()
        };
        assert!((1..10).all(|i| pattern(i) == pattern(0)));
        let kept = (10..400).flat_map(pattern).filter(|&kept| kept).count() as f64 / (390.0 * 39.0);
        assert!((kept - 0.25).abs() < 0.02, "{kept}");
        assert_ne!(pattern(10), pattern(11));
    }

    #[test]
    fn outliers_are_the_plain_problem_scaled() {
        let plain = BASE.generate();
        let scaled = OutlierProblem {
            base: BASE,
            removed: 3,
            scale: 100.0,
        }
        .generate()
        .unwrap();
        assert_eq!(scaled.row(2)[5], 100.0 * plain.row(2)[5]);
        assert_eq!((scaled.y[2], scaled.y[3]), (100.0 * plain.y[2], plain.y[3]));
        assert_eq!(scaled.row(3), plain.row(3));
    }

    #[test]
    fn settings_have_a_range() {
        let name = |result: Result<RegressionData>| match result {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        let good = FeatureInjection {
            base: BASE,
            removed: 10,
            keep: 0.5,
        };
        assert_eq!(
            name(
                FeatureInjection {
                    removed: 401,
                    ..good
                }
                .generate()
            ),
            "removed"
        );
        assert_eq!(
            name(
                FeatureInjection {
                    keep: f64::NAN,
                    ..good
                }
                .generate()
            ),
            "keep"
        );
        let empty = FeatureInjection {
            base: LinearProblem { width: 0, ..BASE },
            ..good
        };
        assert_eq!(name(empty.generate()), "width");
        assert_eq!(
            name(
                OutlierProblem {
                    base: BASE,
                    removed: 1,
                    scale: f64::INFINITY
                }
                .generate()
            ),
            "scale"
        );
    }
}
