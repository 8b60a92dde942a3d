//! What a score is right or wrong about: the loss of a row, its margin, and its class.
//!
//! The margin is the one number a row that the attacks and KLoM look at, chosen so that it is near
//! a normal distribution when the model varies:
//!
//! | model | margin |
//! |---|---|
//! | logistic, softmax, naive Bayes | log p_y/(1 − p_y), the log-odds of the row's own class (the logit scaling of Carlini et al. 2022) |
//! | ridge over classes, one output | y·score |
//! | ridge over classes, several outputs | own score less the largest other |
//! | ridge, one output | score − y, with its sign |
//! | ridge, several outputs | −½‖score − y‖² |
//! | k-means | −‖x − c‖², c the centre nearest to the row |
//! | models in shards, mean of scores | that of the family in the shards, of the mean scores |
//! | models in shards, votes | the share of shards that vote for the row's own class, less the largest other share |

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::{Model, Recipe, RecipeTask, ScoreKind};
use crate::rows::{RowId, RowStore, Rows};
use crate::traits::Predict;

/// Log-odds are cut off here. Naive Bayes reaches the limit where a class has no row.
const SURE: f64 = 1e9;

/// What the targets of the rows mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The targets are numbers.
    Regression,
    /// Classes: −1 and 1, or a single 1 among zeros.
    Classes,
    /// No targets: rows are to be near the centres of clusters.
    Clusters,
}

impl Task {
    /// Classifiers have classes, k-means has clusters. Ridge has classes when every target of the
    /// rows is one: a caller who knows better says so.
    pub fn of(recipe: &Recipe, rows: &Rows) -> Self {
        match recipe.describe().task {
            RecipeTask::Clusters => return Self::Clusters,
            task if task.classifies() => return Self::Classes,
            _ => (),
        }
        let expected = rows.outputs();
        let is_class = |targets: &[f64]| match expected {
            1 => matches!(targets, [-1.0] | [1.0]),
            _ => {
                targets.iter().filter(|t| **t == 1.0).count() == 1
                    && targets.iter().all(|t| *t == 0.0 || *t == 1.0)
            }
        };
        if rows.iter().all(|row| is_class(row.targets)) {
            Self::Classes
        } else {
            Self::Regression
        }
    }
}

/// How a model does on one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowJudgement {
    /// The row.
    pub id: RowId,
    /// What the attacks look at; see the head of this page.
    pub margin: f64,
    /// Log-loss of a classifier, squared error of ridge, squared distance to the nearest centre of
    /// k-means, share of the shards that vote for another class.
    pub loss: f64,
    /// Whether the predicted class is the row's own; None for regression and clusters.
    pub correct: Option<bool>,
    /// ‖score − y‖², or ‖x − c‖² for k-means; None for models whose scores are neither targets nor
    /// distances.
    pub squared_error: Option<f64>,
}

/// Judges a model on rows, one line each, in their order.
pub fn judge(model: &Model, task: Task, rows: &Rows) -> Result<Vec<RowJudgement>> {
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    let scores = model.predict(&rows.table())?;
    let kind = MarginKind::of(model, task);
    let mut line = vec![0.0; scores.ncols()];
    let mut found = Vec::with_capacity(rows.len());
    for (slot, row) in rows.iter().enumerate() {
        read(&scores, slot, &mut line);
        let judgement = kind.judge(row.id, &line, row.targets);
        if !judgement.margin.is_finite() || !judgement.loss.is_finite() {
            return Err(Error::Margin {
                row: row.id,
                value: judgement.margin,
            });
        }
        found.push(judgement);
    }
    Ok(found)
}

/// Copies one line of scores.
pub(super) fn read(scores: &Mat<f64>, slot: usize, line: &mut [f64]) {
    line.iter_mut()
        .enumerate()
        .for_each(|(output, value)| *value = scores[(slot, output)]);
}

/// The class that scores stand for: one score is decided at 0, several by the largest, the first of
/// equals.
pub(super) fn decided(scores: &[f64]) -> usize {
    if let [score] = scores {
        return usize::from(*score > 0.0);
    }
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

/// Whether a model's losses are log-losses.
pub(super) fn has_log_loss(model: &Model, task: Task) -> bool {
    matches!(MarginKind::of(model, task), MarginKind::Odds)
}

#[derive(Clone, Copy)]
enum MarginKind {
    Near,
    SquaredClasses,
    Odds,
    NearestCentre,
    Votes,
}

impl MarginKind {
    fn of(model: &Model, task: Task) -> Self {
        let squared = match task {
            Task::Classes => Self::SquaredClasses,
            _ => Self::Near,
        };
        match model.scores() {
            ScoreKind::LogOdds | ScoreKind::LogLikelihoods => Self::Odds,
            ScoreKind::Distances => Self::NearestCentre,
            ScoreKind::Votes if task == Task::Classes => Self::Votes,
            ScoreKind::Values | ScoreKind::Votes => squared,
        }
    }

    fn judge(self, id: RowId, scores: &[f64], targets: &[f64]) -> RowJudgement {
        let class = decided(targets);
        let squares: f64 = scores
            .iter()
            .zip(targets)
            .map(|(s, y)| (s - y).powi(2))
            .sum();
        match self {
            Self::Near => RowJudgement {
                id,
                margin: if let ([s], [y]) = (scores, targets) {
                    s - y
                } else {
                    -0.5 * squares
                },
                loss: squares,
                correct: None,
                squared_error: Some(squares),
            },
            Self::NearestCentre => {
                let nearest = scores.iter().copied().fold(f64::INFINITY, f64::min);
                let square = nearest * nearest;
                RowJudgement {
                    id,
                    margin: -square,
                    loss: square,
                    correct: None,
                    squared_error: Some(square),
                }
            }
            Self::Votes => {
                // One column is the mean of −1 and 1, several are shares.
                let margin = match scores {
                    [score] => {
                        if class == 1 {
                            *score
                        } else {
                            -score
                        }
                    }
                    _ => scores[class] - others(scores, class).fold(f64::NEG_INFINITY, f64::max),
                };
                let own_share = match scores {
                    [_] => (1.0 + margin) / 2.0,
                    _ => scores[class],
                };
                let correct = Some(decided(scores) == class);
                RowJudgement {
                    id,
                    margin,
                    loss: 1.0 - own_share,
                    correct,
                    squared_error: None,
                }
            }
            Self::SquaredClasses => RowJudgement {
                id,
                margin: if let ([s], [y]) = (scores, targets) {
                    s * y
                } else {
                    scores[class] - others(scores, class).fold(f64::NEG_INFINITY, f64::max)
                },
                loss: squares,
                correct: Some(decided(scores) == class),
                squared_error: Some(squares),
            },
            Self::Odds => {
                let margin = log_odds(scores, class).clamp(-SURE, SURE);
                // ln(1 + e^{−m}) without overflow.
                let loss = (-margin.abs()).exp().ln_1p() + (-margin).max(0.0);
                RowJudgement {
                    id,
                    margin,
                    loss,
                    correct: Some(decided(scores) == class),
                    squared_error: None,
                }
            }
        }
    }
}

fn others(scores: &[f64], class: usize) -> impl Iterator<Item = f64> + '_ {
    scores
        .iter()
        .enumerate()
        .filter(move |(other, _)| *other != class)
        .map(|(_, score)| *score)
}

/// log p_y/(1 − p_y) = s_y − log Σ_{c≠y} e^{s_c}; for one score, the score itself.
fn log_odds(scores: &[f64], class: usize) -> f64 {
    if let [score] = scores {
        return if class == 1 { *score } else { -score };
    }
    let largest = others(scores, class).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = others(scores, class)
        .map(|score| (score - largest).exp())
        .sum();
    scores[class] - largest - sum.ln()
}

/// Refuses recipes whose models have no weights on features, before any work.
pub(super) fn check_family(recipe: &Recipe) -> Result<()> {
    let refuse = |reason: &str| {
        let reason = format!("{reason}; look at the distance and the attacks instead");
        Err(Error::Unsupported {
            method: "feature_injection",
            reason,
        })
    };
    match recipe.family() {
        Family::KMeans => refuse("clusters put no weight on a feature"),
        Family::Sisa => refuse("a model in shards has no weight of its own on a feature"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;
    use crate::{Fit, Logistic, Ridge, Softmax};

    fn rows(targets: Vec<f64>, outputs: usize) -> Rows {
        let n = targets.len() / outputs;
        let x: Vec<f64> = (0..2 * n)
            .map(|i| ((i * 7 + 3) % 11) as f64 / 5.0 - 1.0)
            .collect();
        Rows::new(Dense::new(x, 2).unwrap(), targets, outputs).unwrap()
    }

    #[test]
    fn the_task_follows_from_the_targets_of_ridge_and_from_the_family_of_others() {
        let ridge = Recipe::new(Ridge::new(1.0));
        assert_eq!(
            Task::of(&ridge, &rows(vec![1.0, -1.0, 1.0], 1)),
            Task::Classes
        );
        assert_eq!(
            Task::of(&ridge, &rows(vec![1.0, -1.5, 1.0], 1)),
            Task::Regression
        );
        assert_eq!(
            Task::of(&ridge, &rows(vec![1.0, 0.0, 0.0, 1.0], 2)),
            Task::Classes
        );
        assert_eq!(
            Task::of(&ridge, &rows(vec![1.0, 1.0, 0.0, 1.0], 2)),
            Task::Regression
        );
        assert_eq!(
            Task::of(&Recipe::new(Logistic::new(1.0)), &rows(vec![0.0], 1)),
            Task::Classes
        );
    }

    /// The loss is that of the model's own probabilities, and the margin their log-odds.
    #[test]
    fn log_loss_and_log_odds_are_those_of_the_probabilities() {
        let two = rows(vec![1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0], 1);
        let model = Logistic::new(0.5).fit(&two).unwrap();
        let probabilities = model.probabilities(&two.table()).unwrap();
        let judged = judge(&Model::new(model), Task::Classes, &two).unwrap();
        for (slot, row) in two.iter().enumerate() {
            let p = probabilities[(slot, usize::from(row.targets[0] > 0.0))];
            assert!((judged[slot].loss + p.ln()).abs() < 1e-12);
            assert!((judged[slot].margin - (p / (1.0 - p)).ln()).abs() < 1e-12);
            assert_eq!(judged[slot].correct, Some(p > 0.5));
        }
        let three: Vec<f64> = (0..9)
            .flat_map(|i| [0, 1, 2].map(|c| f64::from(u8::from(i % 3 == c))))
            .collect();
        let three = rows(three, 3);
        let model = Softmax::new(0.5).fit(&three).unwrap();
        let probabilities = model.probabilities(&three.table()).unwrap();
        let judged = judge(&Model::new(model), Task::Classes, &three).unwrap();
        for slot in 0..9 {
            let p = probabilities[(slot, slot % 3)];
            assert!((judged[slot].loss + p.ln()).abs() < 1e-12);
            assert!((judged[slot].margin - (p / (1.0 - p)).ln()).abs() < 1e-12);
        }
    }
}
