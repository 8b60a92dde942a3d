//! λ by the data: every candidate is fitted and judged on rows that it did not see, by
//! leave-one-out in closed form where the model has it (ridge), else by folds. Whoever forgets a
//! row later has to know that the choice saw it.

use serde::{Deserialize, Serialize};

use super::ScoreTally;
use crate::error::{Error, Result};
use crate::models::{Classes, Model, Recipe};
use crate::random::{DrawPurpose, random_uniform};
use crate::rows::{RowStore, Rows};
use crate::traits::{Fit, Predict};

/// The penalties that are tried.
pub const PENALTY_CANDIDATES: [f64; 8] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4];

/// Folds where there is no leave-one-out.
const FOLDS: usize = 5;

/// A penalty that was chosen from the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PenaltyChoice {
    /// The chosen λ.
    pub lambda: f64,
    /// Folds of the cross-validation; None where rows were left out one by one.
    pub folds: Option<usize>,
    /// What was compared: the mean log-loss of a classifier that has one, else the mean squared
    /// error.
    pub measure: String,
    /// Every λ that was tried with its mean; None where it could not be fitted.
    pub tried: Vec<(f64, Option<f64>)>,
}

impl PenaltyChoice {
    /// Whether the choice is the first or the last candidate, so that a better one may lie beyond.
    pub fn is_at_the_end(&self) -> bool {
        let ends = [self.tried.first(), self.tried.last()];
        ends.into_iter()
            .flatten()
            .any(|(lambda, _)| *lambda == self.lambda)
    }
}

/// The fold of a row, from 0 on. It follows from the seed and the row's own number, so that it
/// stays when other rows go.
pub fn fold_of(seed: u64, row: u64, folds: usize) -> usize {
    let place = random_uniform(seed, DrawPurpose::Fold, row, 0) * folds as f64;
    (place as usize).min(folds.saturating_sub(1))
}

/// The recipe with the best of the [`PENALTY_CANDIDATES`] for these rows.
///
/// # Errors
/// The recipe has no penalty, or no candidate could be fitted.
pub fn choose_penalty(
    recipe: &Recipe,
    rows: &Rows,
    classes: Option<&Classes>,
) -> Result<(Recipe, PenaltyChoice)> {
    let mut tried = Vec::with_capacity(PENALTY_CANDIDATES.len());
    let mut best: Option<(f64, Recipe)> = None;
    let mut folds = None;
    let mut failure = None;
    let mut measure = "squared error";
    for lambda in PENALTY_CANDIDATES {
        let Some(candidate) = recipe.with_penalty(lambda) else {
            let value = "auto".into();
            return Err(Error::Parameter {
                name: "lambda",
                value,
                range: "a model with a penalty",
            });
        };
        rows.go_on()?;
        let judged = judge(&candidate, rows, classes);
        let found = match judged {
            Ok(judged) => judged,
            // A penalty that is too small for rows of dependent columns is one of the answers.
            Err(error @ (Error::Stopped | Error::NoRows)) => return Err(error),
            Err(error) => {
                failure = Some(error);
                tried.push((lambda, None));
                continue;
            }
        };
        folds = found.folds;
        measure = found.measure;
        tried.push((lambda, Some(found.mean)));
        if best.as_ref().is_none_or(|(least, _)| found.mean < *least) {
            best = Some((found.mean, candidate));
        }
    }
    let Some((_, chosen)) = best else {
        return Err(failure.unwrap_or(Error::NoRows));
    };
    let lambda = chosen.describe().lambda.unwrap_or(1.0);
    Ok((
        chosen,
        PenaltyChoice {
            lambda,
            folds,
            measure: measure.into(),
            tried,
        },
    ))
}

/// The mean loss of a candidate on rows that it did not see.
struct JudgedPenalty {
    mean: f64,
    folds: Option<usize>,
    measure: &'static str,
}

fn judge(recipe: &Recipe, rows: &Rows, classes: Option<&Classes>) -> Result<JudgedPenalty> {
    // Leave-one-out needs the curvature of the whole model; only ridge has it, and then it is one
    // fit.
    if recipe.has_leave_one_out()
        && let Some(left_out) = recipe
            .fit(rows)?
            .leave_one_out(rows)
            .filter(|left_out| !left_out.is_empty())
    {
        let mut sum = 0.0;
        for row in &left_out {
            let view = rows.get(row.id).ok_or(Error::UnknownRow(row.id))?;
            sum += row
                .answers
                .iter()
                .zip(view.targets)
                .map(|(a, y)| (a - y).powi(2))
                .sum::<f64>();
        }
        return Ok(JudgedPenalty {
            mean: sum / left_out.len() as f64,
            folds: None,
            measure: "squared error",
        });
    }
    let recipe = recipe.without_curvature();
    let mut sum = 0.0;
    let mut measure = "squared error";
    for fold in 0..FOLDS {
        rows.go_on()?;
        let unseen = rows.filter(|id| fold_of(0, id.0, FOLDS) == fold);
        if unseen.is_empty() {
            continue;
        }
        let model = recipe.fit(&rows.filter(|id| fold_of(0, id.0, FOLDS) != fold))?;
        let (loss, of) = fold_loss(&model, &unseen, classes)?;
        measure = of;
        sum += loss * unseen.len() as f64;
    }
    Ok(JudgedPenalty {
        mean: sum / rows.len() as f64,
        folds: Some(FOLDS),
        measure,
    })
}

fn fold_loss(
    model: &Model,
    unseen: &Rows,
    classes: Option<&Classes>,
) -> Result<(f64, &'static str)> {
    let scores = model.predict(&unseen.table())?;
    let names = vec![String::new(); unseen.outputs()];
    let mut tally = match classes {
        Some(classes) => ScoreTally::classes(model.scores(), classes),
        None => ScoreTally::numbers(model.scores(), &names),
    };
    let mut squares = 0.0;
    for (slot, row) in unseen.iter().enumerate() {
        let line: Vec<f64> = (0..scores.ncols())
            .map(|output| scores[(slot, output)])
            .collect();
        squares += line
            .iter()
            .zip(row.targets)
            .map(|(s, y)| (s - y).powi(2))
            .sum::<f64>();
        tally.push(&line, row.targets);
    }
    let log_loss = tally
        .finish()
        .and_then(|found| found.classes)
        .and_then(|classes| classes.log_loss);
    Ok(match log_loss {
        Some(loss) => (loss, "log-loss"),
        None => (squares / unseen.len() as f64, "squared error"),
    })
}
