//! Gaussian naive Bayes: p(x_j | c) is normal with mean S_cj/W_c and variance Q_cj/W_c −
//! (S_cj/W_c)² + ε.
//!
//! ε is `var_smoothing` times the largest variance of a feature over all rows, unweighted, as in
//! scikit-learn's `GaussianNB`: it depends on every row, so the sums of all rows together are kept
//! too and rows leave them alike. The variance is computed as (WQ − S²)/W² in two words; a variance
//! that is no larger than its own rounding is 0, so that a constant feature stays constant.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::NaiveBayes;
use super::rule::Rule;
use super::tally::{ClassSums, ClassTally};
use crate::error::{Error, Result};
use crate::models::long_sum::check_size;
use crate::rows::{Features, RowView};

/// What (WQ − S²)/W² can lose of Q/W in two words, with room to spare.
const LONG_ROUNDING: f64 = 1.0 / (1u128 << 98) as f64;

/// The recipe of a Gaussian model. Rows carry their class as [`Classes`](crate::Classes) encodes
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GaussianNb {
    /// The share of the largest feature variance that is added to every variance; 0 or more. Where
    /// a variance is 0 even so, the density is taken at the smallest positive variance there is.
    pub var_smoothing: f64,
}

impl Default for GaussianNb {
    fn default() -> Self {
        Self {
            var_smoothing: 1e-9,
        }
    }
}

/// A mean or variance, and how far lost bits can have moved it.
#[derive(Clone, Copy, Default)]
struct FeatureMoment {
    value: f64,
    bound: f64,
}

/// The mean and the variance, before smoothing, of one feature.
fn moments(group: &ClassSums, j: usize) -> [FeatureMoment; 2] {
    if group.members == 0 {
        return [FeatureMoment::default(); 2];
    }
    let weight = group.weight;
    let first = group.first[j];
    let second = group.second[j];
    let [lost_weight, lost_first, lost_second] = group.lost;
    let room = (weight.value() - lost_weight).max(f64::MIN_POSITIVE);
    let mean = first.over(weight);
    let shift = (lost_first + mean.abs() * lost_weight) / room;
    let variance = weight
        .times(second)
        .minus(first.times(first))
        .over(weight.times(weight));
    let square = second.value() / weight.value();
    let drift = (lost_second + square * lost_weight) / room + (2.0 * mean.abs() + shift) * shift;
    let noise = drift + LONG_ROUNDING * square;
    let variance = if variance <= noise { 0.0 } else { variance };
    [
        FeatureMoment {
            value: mean,
            bound: shift + 2.0 * f64::EPSILON * mean.abs(),
        },
        FeatureMoment {
            value: variance,
            bound: 2.0 * noise + 4.0 * f64::EPSILON * variance,
        },
    ]
}

impl GaussianNb {
    fn smoothing(&self, tally: &ClassTally) -> FeatureMoment {
        let mut largest = FeatureMoment::default();
        if let Some(group) = tally.together() {
            for j in 0..tally.width {
                let [_, variance] = moments(group, j);
                largest.value = largest.value.max(variance.value);
                largest.bound = largest.bound.max(variance.bound);
            }
        }
        let value = self.var_smoothing * largest.value;
        FeatureMoment {
            value,
            bound: self.var_smoothing * largest.bound + f64::EPSILON * value,
        }
    }

    /// Means and smoothed variances, one line per class.
    fn tables(&self, tally: &ClassTally) -> (Mat<f64>, Mat<f64>) {
        let smoothing = self.smoothing(tally).value;
        let mut means = Mat::zeros(tally.classes, tally.width);
        let mut variances = Mat::zeros(tally.classes, tally.width);
        for (class, group) in tally.by_class().iter().enumerate() {
            for j in 0..tally.width {
                let [mean, variance] = moments(group, j);
                means[(class, j)] = mean.value;
                variances[(class, j)] = variance.value + smoothing;
            }
        }
        (means, variances)
    }
}

impl NaiveBayes<GaussianNb> {
    /// The mean of every feature, one line per class; 0 in a class without rows.
    pub fn means(&self) -> Mat<f64> {
        self.recipe.tables(&self.tally).0
    }

    /// The variance of every feature, smoothing included, one line per class.
    pub fn variances(&self) -> Mat<f64> {
        self.recipe.tables(&self.tally).1
    }

    /// ε, the smoothing in force.
    pub fn smoothing(&self) -> f64 {
        self.recipe.smoothing(&self.tally).value
    }
}

impl Rule for GaussianNb {
    const SQUARES: bool = true;

    fn check(&self) -> Result<()> {
        if self.var_smoothing >= 0.0 && self.var_smoothing.is_finite() {
            return Ok(());
        }
        let value = self.var_smoothing.to_string();
        Err(Error::Parameter {
            name: "var_smoothing",
            value,
            range: "0 or more and finite",
        })
    }

    fn admit(&self, view: &RowView<'_>) -> Result<()> {
        check_size(view)
    }

    fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64> {
        let (means, variances) = self.tables(tally);
        let variance = |class: usize, j: usize| variances[(class, j)].max(f64::MIN_POSITIVE);
        let logs = |class| {
            (0..tally.width)
                .map(|j| (std::f64::consts::TAU * variance(class, j)).ln())
                .sum::<f64>()
        };
        let prior = tally.prior();
        let base: Vec<f64> = (0..tally.classes)
            .map(|class| prior[class].ln() - 0.5 * logs(class))
            .collect();
        let mut scores = Mat::zeros(features.rows(), tally.classes);
        let mut written = vec![0.0; tally.width];
        for slot in 0..features.rows() {
            written.fill(0.0);
            features.row(slot).add_to(1.0, &mut written);
            for (class, base) in base.iter().enumerate() {
                let off =
                    |(j, x): (usize, &f64)| (x - means[(class, j)]).powi(2) / variance(class, j);
                scores[(slot, class)] =
                    base - 0.5 * written.iter().enumerate().map(off).sum::<f64>();
            }
        }
        scores
    }

    fn bound(&self, tally: &ClassTally) -> (f64, f64) {
        if tally.is_exact() {
            return (0.0, 1.0);
        }
        let smoothing = self.smoothing(tally);
        let mut bound = tally.prior_bound();
        let mut square = tally.prior().iter().map(|p| p * p).sum::<f64>();
        for group in tally.by_class() {
            for j in 0..tally.width {
                let [mean, variance] = moments(group, j);
                bound += mean.bound + variance.bound + smoothing.bound;
                square += mean.value.powi(2) + (variance.value + smoothing.value).powi(2);
            }
        }
        (bound.min(f64::MAX), square.sqrt())
    }
}
