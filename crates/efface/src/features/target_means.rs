//! What is kept of the targets behind the levels of columns, so that the mean target of a level can
//! be a feature: (Σy + m·ȳ)/(n + m) for a level of n rows, where ȳ is the mean of all rows and m
//! says how many rows that mean counts for. This is what scikit-learn's `TargetEncoder(smooth=m)`
//! gives for new rows. The sums are exact, so that a row takes along what it had added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::exact_sum::ExactSum;
use crate::linalg::DoubleWord;

/// Columns whose levels become mean targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetEncoding {
    /// The columns.
    pub columns: Vec<String>,
    /// How many rows the mean of all targets counts for beside the rows of a level. 0 or more.
    pub smoothing: f64,
}

/// Sums of targets over all rows, and over those of each level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct TargetSums {
    /// Whether targets are −1 and 1 for two classes. Their means are then the share of the second
    /// class.
    two_classes: bool,
    all: Vec<ExactSum>,
    levels: BTreeMap<u32, Vec<ExactSum>>,
}

impl TargetSums {
    pub(crate) fn new(outputs: usize, two_classes: bool) -> Self {
        Self {
            two_classes,
            all: vec![ExactSum::default(); outputs],
            levels: BTreeMap::new(),
        }
    }

    /// A row with these levels and targets came or went.
    pub(crate) fn count(&mut self, places: impl Iterator<Item = u32>, targets: &[f64], come: bool) {
        let sign = if come { 1.0 } else { -1.0 };
        let add = |sums: &mut [ExactSum]| {
            sums.iter_mut()
                .zip(targets)
                .for_each(|(sum, target)| sum.add(sign * target));
        };
        add(&mut self.all);
        for place in places {
            let fresh = || vec![ExactSum::default(); self.all.len()];
            add(self.levels.entry(place).or_insert_with(fresh));
        }
    }

    /// Drops a level that no row holds any more.
    pub(crate) fn drop_level(&mut self, place: u32) {
        self.levels.remove(&place);
    }

    /// The mean targets of all rows.
    pub(crate) fn means(&self, rows: u64) -> Vec<f64> {
        self.all
            .iter()
            .map(|sum| self.share(sum.value(), 0.0, 0.0, rows))
            .collect()
    }

    /// The mean targets of a level that is in so many rows.
    pub(crate) fn level_means(&self, place: u32, rows: u64, all: u64, smoothing: f64) -> Vec<f64> {
        let Some(sums) = self.levels.get(&place) else {
            return self.means(all);
        };
        let mean = |(sum, total): (&ExactSum, &ExactSum)| {
            let overall = total.value().value() / (all as f64).max(1.0);
            self.share(sum.value(), smoothing, overall, rows)
        };
        sums.iter().zip(&self.all).map(mean).collect()
    }

    /// (sum + smoothing·overall)/(rows + smoothing), as a share of the second class where there are
    /// two.
    fn share(&self, sum: DoubleWord, smoothing: f64, overall: f64, rows: u64) -> f64 {
        let count = rows as f64 + smoothing;
        let mean = if count > 0.0 {
            sum.plus_product(smoothing, overall).value() / count
        } else {
            overall
        };
        if self.two_classes {
            (1.0 + mean) / 2.0
        } else {
            mean
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: scikit-learn 1.9.1, `TargetEncoder(smooth=2.0, target_type="continuous").fit(X,
    /// y).transform(X)` on the levels a, a, b with the targets 1, 2, 6.
    #[test]
    fn means_equal_scikit_learn_and_leave_with_their_rows() {
        let mut sums = TargetSums::new(1, false);
        for (level, target) in [(0, 1.0), (0, 2.0), (1, 6.0), (0, 1e30)] {
            sums.count([level].into_iter(), &[target], true);
        }
        sums.count([0].into_iter(), &[1e30], false);
        assert_eq!(
            [
                sums.level_means(0, 2, 3, 2.0),
                sums.level_means(1, 1, 3, 2.0)
            ],
            [[2.25], [4.0]]
        );
        assert_eq!(sums.level_means(9, 0, 3, 2.0), [3.0]);
        assert_eq!(sums.means(3), [3.0]);
    }

    #[test]
    fn two_classes_have_the_share_of_the_second() {
        let mut sums = TargetSums::new(1, true);
        for target in [1.0, -1.0, -1.0, -1.0] {
            sums.count([0].into_iter(), &[target], true);
        }
        assert_eq!(sums.level_means(0, 4, 4, 0.0), [0.25]);
    }
}
