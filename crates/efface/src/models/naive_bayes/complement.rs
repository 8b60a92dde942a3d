//! Complement naive Bayes over counts: a class is judged by what is *not* in it. With C_cj = α +
//! Σ_{k≠c} S_kj and T_c = Σ_j C_cj, the score of a class is −Σ_j x_j · log(C_cj / T_c), without a
//! prior.
//!
//! Rennie et al. 2003 propose it for classes of very different size. The parameters are those of
//! scikit-learn's `ComplementNB(alpha)`, and the sums are those of the multinomial model, so that a
//! forget is the same subtraction.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::NaiveBayes;
use super::multinomial::{LogShareBound, admit_count, check_alpha};
use super::rule::Rule;
use super::tally::ClassTally;
use crate::error::Result;
use crate::rows::{Features, RowView};

/// The recipe of a complement model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComplementNb {
    /// α, added to every count; above 0.
    pub alpha: f64,
}

impl Default for ComplementNb {
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}

impl NaiveBayes<ComplementNb> {
    /// −log of each feature's share in the rows of all other classes, one line per class.
    pub fn feature_log_prob(&self) -> Mat<f64> {
        table(&self.recipe, &self.tally)
    }
}

/// What every class lacks, with the smoothing, a line per class.
fn complements(recipe: &ComplementNb, tally: &ClassTally) -> Mat<f64> {
    let mut counts = Mat::zeros(tally.classes, tally.width);
    for j in 0..tally.width {
        for class in 0..tally.classes {
            // Summed over the others, and not subtracted from all: a class alone then leaves α and
            // no rounding.
            let others = tally
                .by_class()
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != class);
            counts[(class, j)] =
                recipe.alpha + others.map(|(_, group)| group.first[j].value()).sum::<f64>();
        }
    }
    counts
}

fn table(recipe: &ComplementNb, tally: &ClassTally) -> Mat<f64> {
    let counts = complements(recipe, tally);
    let totals: Vec<f64> = (0..tally.classes)
        .map(|class| counts.row(class).iter().sum())
        .collect();
    Mat::from_fn(tally.classes, tally.width, |class, j| {
        -(counts[(class, j)] / totals[class]).ln()
    })
}

impl Rule for ComplementNb {
    const SQUARES: bool = false;

    fn check(&self) -> Result<()> {
        check_alpha(self.alpha)
    }

    fn admit(&self, view: &RowView<'_>) -> Result<()> {
        admit_count(view)
    }

    fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64> {
        let table = table(self, tally);
        let mut scores = Mat::zeros(features.rows(), tally.classes);
        for slot in 0..features.rows() {
            features.row(slot).each(|j, x| {
                for class in 0..tally.classes {
                    scores[(slot, class)] += x * table[(class, j)];
                }
            });
        }
        scores
    }

    /// The losses of all classes together are what a complement can have lost.
    fn bound(&self, tally: &ClassTally) -> (f64, f64) {
        if tally.is_exact() {
            return (0.0, 1.0);
        }
        let lost: f64 = tally.by_class().iter().map(|group| group.lost[1]).sum();
        let counts = complements(self, tally);
        let mut found = LogShareBound::new(tally);
        for class in 0..tally.classes {
            let total: f64 = counts.row(class).iter().sum();
            let logs = counts.row(class).iter().map(|count| (count / total).ln());
            found.add(logs, self.alpha, lost, (total, lost));
        }
        found.finish()
    }
}
