//! Multinomial naive Bayes over counts: log p(x_j | c) = x_j · log((S_cj + α) / Σ_j (S_cj + α)).
//!
//! Sums of whole numbers lose nothing below 2⁵³, so that a forget is exact to the bit and its bound is 0. The parameters
//! are those of scikit-learn's `MultinomialNB(alpha)`, except that α must be above 0: without it a word that a class
//! has never seen would have probability 0, and a forget can make any word such a word.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::NaiveBayes;
use super::rule::Rule;
use super::tally::ClassTally;
use crate::error::{Error, Result};
use crate::models::long_sum::{LongSum, all, check_size};
use crate::rows::{Features, RowView};

/// The recipe of a multinomial model. Rows carry their class as [`Classes`](crate::Classes) encodes it.
///
/// ```
/// use efface::methods::Summation;
/// use efface::models::MultinomialNb;
/// use efface::{Dense, Fitted, RowId, Rows};
///
/// let counts = Dense::new(vec![2.0, 0.0, 1.0, 1.0, 0.0, 3.0], 2)?;
/// let rows = Rows::new(counts, vec![-1.0, -1.0, 1.0], 1)?;
/// let mut fitted = Fitted::new(&MultinomialNb { alpha: 1.0 }, rows)?;
/// let evidence = fitted.forget(&Summation, &[RowId(1)])?;
/// assert_eq!(evidence.bound, 0.0);
/// # Ok::<(), efface::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MultinomialNb {
    /// α, added to every count; above 0.
    pub alpha: f64,
}

impl Default for MultinomialNb {
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}

impl NaiveBayes<MultinomialNb> {
    /// log p(feature | class), one line per class.
    pub fn feature_log_prob(&self) -> Mat<f64> {
        table(&self.recipe, &self.tally)
    }
}

fn table(recipe: &MultinomialNb, tally: &ClassTally) -> Mat<f64> {
    let mut table = Mat::zeros(tally.classes, tally.width);
    for (class, group) in tally.by_class().iter().enumerate() {
        let total = recipe.log_total(&group.first);
        for (j, sum) in group.first.iter().enumerate() {
            table[(class, j)] = recipe.log_share(sum, total);
        }
    }
    table
}

impl MultinomialNb {
    /// The logarithm of all counts of a class together.
    fn log_total(&self, sums: &[LongSum]) -> f64 {
        sums.iter().map(|sum| sum.value() + self.alpha).sum::<f64>().ln()
    }

    /// The logarithm of a column's share in the counts of its class.
    fn log_share(&self, sum: &LongSum, log_total: f64) -> f64 {
        (sum.value() + self.alpha).ln() - log_total
    }
}

impl Rule for MultinomialNb {
    const SQUARES: bool = false;

    fn check(&self) -> Result<()> {
        if self.alpha > 0.0 && self.alpha.is_finite() {
            return Ok(());
        }
        let value = self.alpha.to_string();
        Err(Error::Parameter { name: "alpha", value, range: "above 0 and finite" })
    }

    fn admit(&self, view: &RowView<'_>) -> Result<()> {
        if all(&view.features, |x| x >= 0.0) {
            return check_size(view);
        }
        let mut negative = None;
        view.features.each(|j, x| {
            if x < 0.0 {
                negative.get_or_insert(j);
            }
        });
        if let Some(column) = negative {
            return Err(Error::Parameter {
                name: "count",
                value: format!("negative (row {}, column {column})", view.id),
                range: "0 or more in a multinomial model; use the Gaussian one for signed features",
            });
        }
        check_size(view)
    }

    fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64> {
        let mut scores = Mat::zeros(features.rows(), tally.classes);
        let values: usize = (0..features.rows()).map(|slot| features.row(slot).stored_values()).sum();
        for (class, prior) in tally.prior().into_iter().enumerate() {
            let sums = &tally.by_class()[class].first;
            let total = self.log_total(sums);
            // A few rows of hashed words have few of the million columns: the logarithms of the others are not needed.
            let line: Vec<f64> = if values < tally.width {
                Vec::new()
            } else {
                sums.iter().map(|sum| self.log_share(sum, total)).collect()
            };
            for slot in 0..features.rows() {
                let mut score = 0.0;
                features.row(slot).each(|j, x| {
                    score += x * line.get(j).copied().unwrap_or_else(|| self.log_share(&sums[j], total));
                });
                scores[(slot, class)] = score + prior.ln();
            }
        }
        scores
    }

    /// A loss of L in the counts of a class moves the logarithms by at most L/(α − L) together, and that of their total
    /// by L/(T − L) for each of the d features; rounding the logarithms adds a few units in the last place.
    fn bound(&self, tally: &ClassTally) -> (f64, f64) {
        if tally.is_exact() {
            return (0.0, 1.0);
        }
        let table = table(self, tally);
        let room = |value: f64, lost: f64| (value - lost).max(f64::MIN_POSITIVE);
        let mut bound = tally.prior_bound();
        let mut square = tally.prior().iter().map(|p| p * p).sum::<f64>();
        for (class, group) in tally.by_class().iter().enumerate() {
            let lost = group.lost[1];
            let total: f64 = group.first.iter().map(|sum| sum.value() + self.alpha).sum();
            let width = tally.width as f64;
            bound += lost / room(self.alpha, lost) + width.sqrt() * (lost / room(total, lost));
            for j in 0..tally.width {
                let log = table[(class, j)];
                square += log * log;
                bound += 4.0 * f64::EPSILON * (log.abs() + 2.0 * total.ln().abs() + width);
            }
        }
        (bound.min(f64::MAX), square.sqrt())
    }
}
