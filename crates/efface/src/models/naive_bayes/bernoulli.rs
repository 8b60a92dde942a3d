//! Bernoulli naive Bayes: whether a feature is above a threshold, and not how often. With F_cj the
//! weight of the rows of class c that have feature j, and p_cj = (F_cj + α)/(W_c + 2α), the score
//! is log p_c + Σ_j log p_cj where a row has the feature and log(1 − p_cj) where it has not: what
//! is missing counts.
//!
//! The parameters are those of scikit-learn's `BernoulliNB(alpha, binarize)`. The sums are over 0
//! and 1, so that without weights a forget is exact to the bit.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::NaiveBayes;
use super::multinomial::{LogShareBound, check_alpha};
use super::rule::Rule;
use super::tally::ClassTally;
use crate::error::{Error, Result};
use crate::models::long_sum::check_size;
use crate::rows::{Features, RowRef, RowView};

/// The recipe of a Bernoulli model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BernoulliNb {
    /// α, added to every count; above 0.
    pub alpha: f64,
    /// A feature is there where its value is above this; 0 or more, so that what a sparse row does
    /// not hold is not there.
    pub threshold: f64,
}

impl Default for BernoulliNb {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            threshold: 0.0,
        }
    }
}

impl NaiveBayes<BernoulliNb> {
    /// log p(feature | class), one line per class.
    pub fn feature_log_prob(&self) -> Mat<f64> {
        tables(&self.recipe, &self.tally).0
    }
}

/// log p and log(1 − p), a line per class.
fn tables(recipe: &BernoulliNb, tally: &ClassTally) -> (Mat<f64>, Mat<f64>) {
    let mut there = Mat::zeros(tally.classes, tally.width);
    let mut missing = Mat::zeros(tally.classes, tally.width);
    for (class, group) in tally.by_class().iter().enumerate() {
        let weight = group.weight.value();
        let total = (weight + 2.0 * recipe.alpha).ln();
        for (j, sum) in group.first.iter().enumerate() {
            there[(class, j)] = (sum.value() + recipe.alpha).ln() - total;
            missing[(class, j)] = (weight - sum.value() + recipe.alpha).ln() - total;
        }
    }
    (there, missing)
}

impl Rule for BernoulliNb {
    const SQUARES: bool = false;

    fn check(&self) -> Result<()> {
        check_alpha(self.alpha)?;
        if self.threshold >= 0.0 && self.threshold.is_finite() {
            return Ok(());
        }
        let value = self.threshold.to_string();
        Err(Error::Parameter {
            name: "threshold",
            value,
            range: "0 or more and finite",
        })
    }

    fn admit(&self, view: &RowView<'_>) -> Result<()> {
        check_size(view)
    }

    fn counted(&self, view: &RowView<'_>, see: &mut dyn FnMut(&RowView<'_>)) {
        let mut columns = Vec::new();
        view.features.each(|j, x| {
            if x > self.threshold {
                columns.push(j as u32);
            }
        });
        let ones = vec![1.0; columns.len()];
        see(&RowView {
            features: RowRef::Sparse64(&columns, &ones),
            ..*view
        });
    }

    fn counts_as_given(&self) -> bool {
        false
    }

    fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64> {
        let (there, missing) = tables(self, tally);
        let base: Vec<f64> = tally
            .prior()
            .into_iter()
            .enumerate()
            .map(|(class, prior)| prior.ln() + missing.row(class).iter().sum::<f64>())
            .collect();
        let mut scores = Mat::from_fn(features.rows(), tally.classes, |_, class| base[class]);
        for slot in 0..features.rows() {
            features.row(slot).each(|j, x| {
                if x > self.threshold {
                    for class in 0..tally.classes {
                        scores[(slot, class)] += there[(class, j)] - missing[(class, j)];
                    }
                }
            });
        }
        scores
    }

    fn bound(&self, tally: &ClassTally) -> (f64, f64) {
        if tally.is_exact() {
            return (0.0, 1.0);
        }
        let (there, _) = tables(self, tally);
        let mut found = LogShareBound::new(tally);
        for (class, group) in tally.by_class().iter().enumerate() {
            let total = group.weight.value() + 2.0 * self.alpha;
            let logs = there.row(class).iter().copied();
            found.add(logs, self.alpha, group.lost[1], (total, group.lost[0]));
        }
        found.finish()
    }
}
