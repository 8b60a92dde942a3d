//! Multinomial naive Bayes over counts: log p(x_j | c) = x_j · log((S_cj + α) / Σ_j (S_cj + α)).
//!
//! Sums of whole numbers lose nothing below 2⁵³, so that a forget is exact to the bit and its bound
//! is 0. The parameters are those of scikit-learn's `MultinomialNB(alpha)`, except that α must be
//! above 0: without it a word that a class has never seen would have probability 0, and a forget
//! can make any word such a word.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::NaiveBayes;
use super::rule::Rule;
use super::tally::ClassTally;
use crate::error::{Error, Result};
use crate::models::long_sum::{LARGEST, LongSum, all, check_size};
use crate::rows::{Features, RowView};

/// The recipe of a multinomial model. Rows carry their class as [`Classes`](crate::Classes) encodes
/// it.
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
        sums.iter()
            .map(|sum| sum.value() + self.alpha)
            .sum::<f64>()
            .ln()
    }

    /// The logarithm of a column's share in the counts of its class.
    fn log_share(&self, sum: &LongSum, log_total: f64) -> f64 {
        (sum.value() + self.alpha).ln() - log_total
    }
}

impl Rule for MultinomialNb {
    const SQUARES: bool = false;

    fn check(&self) -> Result<()> {
        check_alpha(self.alpha)
    }

    fn admit(&self, view: &RowView<'_>) -> Result<()> {
        admit_count(view)
    }

    fn joint(&self, tally: &ClassTally, features: &Features) -> Mat<f64> {
        let mut scores = Mat::zeros(features.rows(), tally.classes);
        let values: usize = (0..features.rows())
            .map(|slot| features.row(slot).stored_values())
            .sum();
        for (class, prior) in tally.prior().into_iter().enumerate() {
            let sums = &tally.by_class()[class].first;
            let total = self.log_total(sums);
            // A few rows of hashed words have few of the million columns: the logarithms of the
            // others are not needed.
            let line: Vec<f64> = if values < tally.width {
                Vec::new()
            } else {
                sums.iter().map(|sum| self.log_share(sum, total)).collect()
            };
            for slot in 0..features.rows() {
                let mut score = 0.0;
                features.row(slot).each(|j, x| {
                    score += x * line
                        .get(j)
                        .copied()
                        .unwrap_or_else(|| self.log_share(&sums[j], total));
                });
                scores[(slot, class)] = score + prior.ln();
            }
        }
        scores
    }

    fn bound(&self, tally: &ClassTally) -> (f64, f64) {
        if tally.is_exact() {
            return (0.0, 1.0);
        }
        let table = table(self, tally);
        let mut found = LogShareBound::new(tally);
        for (class, group) in tally.by_class().iter().enumerate() {
            let total = group.first.iter().map(|sum| sum.value() + self.alpha).sum();
            found.add(
                table.row(class).iter().copied(),
                self.alpha,
                group.lost[1],
                (total, group.lost[1]),
            );
        }
        found.finish()
    }
}

/// Whether a smoothing is one.
pub(super) fn check_alpha(alpha: f64) -> Result<()> {
    if alpha > 0.0 && alpha.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter {
        name: "alpha",
        value: alpha.to_string(),
        range: "above 0 and finite",
    })
}

/// Whether the features of a row can be counts.
pub(super) fn admit_count(view: &RowView<'_>) -> Result<()> {
    // Both questions in one pass; which it was, and where, is asked only if one of them fails.
    if view.weight <= LARGEST && all(&view.features, |x| (0.0..=LARGEST).contains(&x)) {
        return Ok(());
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
            range: "0 or more in a model of counts; use the Gaussian one for signed features",
        });
    }
    check_size(view)
}

/// How far lost bits can have moved logarithms of shares, class by class. A loss of L in the counts
/// of a class moves their logarithms by at most L/(α − L) together, and a loss of M in their total
/// T moves it by M/(T − M) for each of the d features; rounding the logarithms adds a few units in
/// the last place.
pub(super) struct LogShareBound {
    bound: f64,
    square: f64,
    width: f64,
}

impl LogShareBound {
    pub(super) fn new(tally: &ClassTally) -> Self {
        let square = tally.prior().iter().map(|p| p * p).sum::<f64>();
        Self {
            bound: tally.prior_bound(),
            square,
            width: tally.width as f64,
        }
    }

    /// A class: its logarithms, α, the loss of its counts, and its total with the loss of that.
    pub(super) fn add(
        &mut self,
        logs: impl Iterator<Item = f64>,
        alpha: f64,
        lost: f64,
        (total, lost_total): (f64, f64),
    ) {
        let room = |value: f64, lost: f64| (value - lost).max(f64::MIN_POSITIVE);
        self.bound +=
            lost / room(alpha, lost) + self.width.sqrt() * (lost_total / room(total, lost_total));
        for log in logs {
            self.square += log * log;
            self.bound += 4.0 * f64::EPSILON * (log.abs() + 2.0 * total.ln().abs() + self.width);
        }
    }

    /// The bound, and the norm of what it bounds.
    pub(super) fn finish(self) -> (f64, f64) {
        (self.bound.min(f64::MAX), self.square.sqrt())
    }
}
