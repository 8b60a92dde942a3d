//! Relearning time: how many training steps on the forgotten rows a model needs before it knows
//! them as well as it once did.
//!
//! A model that truly forgot needs as many steps as a model that never saw the rows; one that only
//! looks as if it had forgotten needs fewer, because it has less of the way to go (Golatkar et al.
//! 2020). The ratio of the two is the anamnesis index of Chundawat et al. 2023.
//!
//! [`relearning_time`] is the measure for any model that can be trained: it takes one `step` and
//! one `loss` as closures. [`LinearRelearning`] fixes both for ridge, logistic and softmax models:
//!
//! ```text
//! loss      f(θ) = Σ w_i ℓ(θᵀx_i, y_i) / Σ w_i over the forgotten rows, without a penalty
//! target    f(θ_before), the loss of the model that still knew the rows
//! step      θ ← θ − η·S⁻²∇f(θ), S the root mean squares of the columns over these rows, so that units do not matter
//! η         2⁻ʲ/L with L ≥ ‖S⁻¹∇²f S⁻¹‖, for the least j at which the retrained model needs 64 steps or more
//! ```
//!
//! The rule for η makes the ratio a number with a resolution of 1/64 however little the rows had
//! taught: with steps of 1/L alone, most models would be back after one. The target is never above
//! where retraining starts, because the parameters that minimise the loss of all rows have the
//! lower loss on those that retraining leaves out.

use std::collections::BTreeMap;
use std::convert::Infallible;

use serde::Serialize;

use super::view::ModelView;
use crate::error::{Error, Result};
use crate::models::logistic::Link;
use crate::models::{Model, Recipe, RecipeTask, ScoreKind};
use crate::rows::{RowStore, Rows};

/// Steps after which a model counts as one that does not relearn.
pub const RELEARNING_LIMIT: usize = 10_000;
/// The least number of steps that the retrained model is made to take: one step more or less is
/// then a small part of it.
const LEAST_STEPS: usize = 64;
/// Halvings of the step after which the way back is rounding and no more.
const MOST_HALVINGS: usize = 40;

/// How long one model took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RelearningTime {
    /// Steps until the loss was at most the target; None where it was not within the limit.
    pub steps: Option<usize>,
    /// The most steps that were tried.
    pub limit: usize,
    /// The loss on the forgotten rows before the first step.
    pub start_loss: f64,
    /// The loss to come down to.
    pub target_loss: f64,
}

/// Trains `model` by `step` until its `loss` on the forgotten rows is at most `target_loss`, for
/// `limit` steps at most. The loss is asked for before the first step and after each.
pub fn relearning_time<M, E>(
    model: &mut M,
    target_loss: f64,
    limit: usize,
    mut step: impl FnMut(&mut M) -> std::result::Result<(), E>,
    mut loss: impl FnMut(&M) -> std::result::Result<f64, E>,
) -> std::result::Result<RelearningTime, E> {
    // A loss that is not a number has not come down.
    let is_known = |loss: f64| loss <= target_loss;
    let start_loss = loss(model)?;
    let mut current = start_loss;
    let mut done = 0;
    while !is_known(current) && done < limit {
        step(model)?;
        done += 1;
        current = loss(model)?;
    }
    let steps = is_known(current).then_some(done);
    Ok(RelearningTime {
        steps,
        limit,
        start_loss,
        target_loss,
    })
}

/// The relearning time of an unlearned model beside that of a retrained one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Relearning {
    /// Steps of this model; None where it did not come back within the limit.
    pub steps: Option<usize>,
    /// Steps of the retrained model.
    pub retrained_steps: Option<usize>,
    /// The first over the second: 1 is retraining, 0 is not having forgotten. None where one of
    /// them did not come back, or where the retrained model had nothing to relearn.
    pub ratio: Option<f64>,
    /// The most steps that were tried.
    pub limit: usize,
    /// The loss of this model on the forgotten rows.
    pub start_loss: f64,
    /// The loss of the retrained model on them.
    pub retrained_start_loss: f64,
    /// The loss of the model before anything was forgotten.
    pub target_loss: f64,
}

impl Relearning {
    /// Compares two models that were given the same steps, the same target and the same limit.
    pub fn new(unlearned: RelearningTime, retrained: RelearningTime) -> Self {
        let ratio = match (unlearned.steps, retrained.steps) {
            (Some(own), Some(truth)) if truth > 0 => Some(own as f64 / truth as f64),
            _ => None,
        };
        Self {
            steps: unlearned.steps,
            retrained_steps: retrained.steps,
            ratio,
            limit: unlearned.limit,
            start_loss: unlearned.start_loss,
            retrained_start_loss: retrained.start_loss,
            target_loss: retrained.target_loss,
        }
    }
}

/// Relearning of linear models: the forgotten rows, the target, and the step that the retrained
/// model fixed.
#[derive(Debug, Clone)]
pub struct LinearRelearning {
    recipe: Recipe,
    lesson: LessonRows,
    /// The step η as a share of 1/L.
    step_share: f64,
    retrained: RelearningTime,
}

impl LinearRelearning {
    /// Measures the retrained model and chooses the step by it. Refuses models that are not trained
    /// by gradients, and models with noise, which would have to relearn their noise as well.
    pub fn new(
        recipe: &Recipe,
        before: &Model,
        retrained: &Model,
        forgotten: &Rows,
    ) -> Result<Self> {
        Self::of_views(
            recipe,
            ModelView::new(before, forgotten),
            ModelView::new(retrained, forgotten),
        )
    }

    /// The same for models that read features of their own. The rows of each view are the forgotten
    /// ones.
    pub fn of_views(
        recipe: &Recipe,
        before: ModelView<'_>,
        retrained: ModelView<'_>,
    ) -> Result<Self> {
        let known = LessonRows::new(recipe, before.rows)?;
        let target = known.loss(&known.read(before.model)?);
        let lesson = LessonRows::new(recipe, retrained.rows)?;
        let start = lesson.read(retrained.model)?;
        let mut step_share = 1.0;
        let mut time = lesson.time(start.clone(), target, step_share);
        for _ in 0..MOST_HALVINGS {
            if time
                .steps
                .is_none_or(|steps| steps == 0 || steps >= LEAST_STEPS)
            {
                break;
            }
            step_share /= 2.0;
            time = lesson.time(start.clone(), target, step_share);
        }
        Ok(Self {
            recipe: recipe.clone(),
            lesson,
            step_share,
            retrained: time,
        })
    }

    /// The relearning time of a model, beside the retrained one's.
    pub fn measure(&self, model: &Model) -> Result<Relearning> {
        self.measured(&self.lesson, model)
    }

    /// The same for a model that reads features of its own. The rows of the view are the forgotten
    /// ones.
    pub fn measure_view(&self, view: ModelView<'_>) -> Result<Relearning> {
        self.measured(&LessonRows::new(&self.recipe, view.rows)?, view.model)
    }

    fn measured(&self, lesson: &LessonRows, model: &Model) -> Result<Relearning> {
        let start = lesson.read(model)?;
        let own = lesson.time(start, self.retrained.target_loss, self.step_share);
        Ok(Relearning::new(own, self.retrained))
    }
}

/// The forgotten rows, with the columns that they have numbered from 0 and divided by their root
/// mean squares. Other columns have no gradient here. With an intercept, the last column is 1
/// everywhere.
#[derive(Debug, Clone)]
struct LessonRows {
    loss: LessonLoss,
    /// The columns of the rows, in order, and their root mean squares.
    columns: Vec<(usize, f64)>,
    intercept: bool,
    outputs: usize,
    rows: Vec<LessonRow>,
    total_weight: f64,
    /// An upper bound on the curvature of the loss: the sum of the diagonal, which is 1 for every
    /// column.
    steepness: f64,
}

#[derive(Debug, Clone)]
struct LessonRow {
    entries: Vec<(usize, f64)>,
    targets: Vec<f64>,
    class: usize,
    weight: f64,
}

#[derive(Debug, Clone, Copy)]
enum LessonLoss {
    /// ½‖score − y‖².
    Squared,
    Odds(Link),
}

/// Parameters in the units of the lesson, output after output.
type LessonParameters = Vec<f64>;

impl LessonRows {
    fn new(recipe: &Recipe, forgotten: &Rows) -> Result<Self> {
        let refuse = |reason: &str| {
            Err(Error::Unsupported {
                method: "relearning",
                reason: reason.into(),
            })
        };
        let about = recipe.describe();
        if about.is_certified {
            return refuse("a model trained with noise would have to relearn its noise as well");
        }
        let loss = match (about.scores, about.task) {
            _ if about.knows_row_numbers => None,
            (ScoreKind::Values, _) => Some(LessonLoss::Squared),
            (ScoreKind::LogOdds, RecipeTask::TwoClasses) => Some(LessonLoss::Odds(Link::Logistic)),
            (ScoreKind::LogOdds, _) => Some(LessonLoss::Odds(Link::Softmax)),
            _ => None,
        };
        let (Some(loss), Some(intercept)) = (loss, about.intercept) else {
            return refuse(
                "the model is not trained by gradient steps; look at the distance instead",
            );
        };
        let total_weight: f64 = forgotten.iter().map(|row| row.weight).sum();
        if forgotten.is_empty() || total_weight <= 0.0 {
            return Err(Error::NoWeight);
        }
        let mut squares: BTreeMap<usize, f64> = BTreeMap::new();
        for row in forgotten.iter() {
            row.features.each(|column, value| {
                *squares.entry(column).or_insert(0.0) += row.weight * value * value;
            });
        }
        squares.retain(|_, sum| *sum > 0.0);
        let mut columns = Vec::with_capacity(squares.len());
        let mut places = BTreeMap::new();
        for (column, sum) in squares {
            places.insert(column, columns.len());
            columns.push((column, (sum / total_weight).sqrt()));
        }
        let mut rows = Vec::with_capacity(forgotten.len());
        for row in forgotten.iter() {
            let mut entries = Vec::new();
            row.features.each(|column, value| {
                if let Some(&place) = places.get(&column) {
                    entries.push((place, value / columns[place].1));
                }
            });
            if intercept {
                entries.push((columns.len(), 1.0));
            }
            let class = match loss {
                LessonLoss::Squared => 0,
                LessonLoss::Odds(link) => link.class(row.targets).ok_or(Error::NotAClass {
                    row: row.id,
                    expected: link.expected(),
                })?,
            };
            rows.push(LessonRow {
                entries,
                targets: row.targets.to_vec(),
                class,
                weight: row.weight,
            });
        }
        let curvature = match loss {
            LessonLoss::Squared => 1.0,
            LessonLoss::Odds(link) => link.curvature(),
        };
        let width = columns.len() + usize::from(intercept);
        let steepness = curvature * width.max(1) as f64;
        let outputs = forgotten.outputs();
        Ok(Self {
            loss,
            columns,
            intercept,
            outputs,
            rows,
            total_weight,
            steepness,
        })
    }

    fn width(&self) -> usize {
        self.columns.len() + usize::from(self.intercept)
    }

    /// The parameters of a model on the columns of the lesson.
    fn read(&self, model: &Model) -> Result<LessonParameters> {
        let named = model.parameters().unwrap_or_default();
        let (Some(table), Some(constants)) =
            (named.table("coefficients"), named.vector("intercept"))
        else {
            let reason = "the model is not of the recipe's family".into();
            return Err(Error::Unsupported {
                method: "relearning",
                reason,
            });
        };
        if table.ncols() != self.outputs {
            return Err(Error::Shape {
                what: "outputs",
                found: table.ncols(),
                expected: self.outputs,
            });
        }
        let mut parameters = Vec::with_capacity(self.width() * self.outputs);
        for (output, constant) in constants.iter().enumerate() {
            for &(column, scale) in &self.columns {
                if column >= table.nrows() {
                    return Err(Error::Shape {
                        what: "columns",
                        found: table.nrows(),
                        expected: column + 1,
                    });
                }
                parameters.push(table[(column, output)] * scale);
            }
            if self.intercept {
                parameters.push(*constant);
            }
        }
        Ok(parameters)
    }

    /// Tells `see` of every row, its loss, and the slope of the loss in its scores.
    fn visit(&self, parameters: &[f64], mut see: impl FnMut(&LessonRow, f64, &[f64])) {
        let mut scores = vec![0.0; self.outputs];
        let mut slopes = vec![0.0; self.outputs];
        for row in &self.rows {
            for (score, of_output) in scores
                .iter_mut()
                .zip(parameters.chunks(self.width().max(1)))
            {
                *score = row
                    .entries
                    .iter()
                    .map(|&(place, value)| of_output[place] * value)
                    .sum();
            }
            let loss = match self.loss {
                LessonLoss::Odds(link) => link.judge(&scores, row.class, &mut slopes).0,
                LessonLoss::Squared => {
                    let misses = scores
                        .iter()
                        .zip(&row.targets)
                        .map(|(score, target)| score - target);
                    slopes
                        .iter_mut()
                        .zip(misses)
                        .for_each(|(slope, miss)| *slope = miss);
                    0.5 * slopes.iter().map(|miss| miss * miss).sum::<f64>()
                }
            };
            see(row, loss, &slopes);
        }
    }

    fn loss(&self, parameters: &LessonParameters) -> f64 {
        let mut sum = 0.0;
        self.visit(parameters, |row, loss, _| sum += row.weight * loss);
        sum / self.total_weight
    }

    fn step(&self, parameters: &mut LessonParameters, step_size: f64) {
        let width = self.width().max(1);
        let mut gradient = vec![0.0; parameters.len()];
        self.visit(parameters, |row, _, slopes| {
            for (of_output, slope) in gradient.chunks_mut(width).zip(slopes) {
                let pull = row.weight * slope / self.total_weight;
                row.entries
                    .iter()
                    .for_each(|&(place, value)| of_output[place] += pull * value);
            }
        });
        parameters
            .iter_mut()
            .zip(&gradient)
            .for_each(|(value, slope)| *value -= step_size * slope);
    }

    /// The relearning time with steps of `step_share`/L.
    fn time(&self, mut start: LessonParameters, target: f64, step_share: f64) -> RelearningTime {
        let step_size = step_share / self.steepness;
        let step = |parameters: &mut LessonParameters| -> std::result::Result<(), Infallible> {
            self.step(parameters, step_size);
            Ok(())
        };
        let loss = |parameters: &LessonParameters| Ok(self.loss(parameters));
        let Ok(time) = relearning_time(&mut start, target, RELEARNING_LIMIT, step, loss);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Dense;
    use crate::{Ridge, RowId};

    /// x ← x/2 from 8: the loss x² is 64, 16, 4, 1.
    #[test]
    fn steps_are_counted_until_the_target_is_reached() {
        let time = |target: f64, limit: usize| {
            let step = |x: &mut f64| -> Result<()> {
                *x /= 2.0;
                Ok(())
            };
            relearning_time(&mut 8.0, target, limit, step, |x| Ok(x * x)).unwrap()
        };
        assert_eq!(
            [64.0, 16.0, 5.0, 1.0].map(|target| time(target, 10).steps),
            [0, 1, 2, 3].map(Some)
        );
        assert_eq!(time(1.0, 2).steps, None);
        assert_eq!(time(f64::NAN, 2).steps, None);
        assert_eq!(
            time(4.0, 10),
            RelearningTime {
                start_loss: 64.0,
                target_loss: 4.0,
                limit: 10,
                steps: Some(2)
            }
        );
        let stopped: Result<RelearningTime> =
            relearning_time(&mut 8.0, 1.0, 10, |_| Err(Error::Stopped), |x| Ok(x * x));
        assert_eq!(stopped, Err(Error::Stopped));
        let compared = Relearning::new(time(5.0, 10), time(1.0, 10));
        assert_eq!(
            (compared.steps, compared.retrained_steps, compared.ratio),
            (Some(2), Some(3), Some(2.0 / 3.0))
        );
        assert_eq!(Relearning::new(time(64.0, 10), time(64.0, 10)).ratio, None);
    }

    /// One row x = 2, y = 1 and no intercept: in units of the column, z = 1 and φ = 2θ, so that
    /// every step takes the part η of the miss away. From θ = 0 to θ = ¼, a miss of ½, with η =
    /// 2⁻ʲ: 1 − 2⁻ʲ to the power t is at most ½.
    #[test]
    fn the_steps_of_one_row_have_a_closed_form() {
        let row = Rows::new(Dense::new(vec![2.0], 1).unwrap(), vec![1.0], 1).unwrap();
        let recipe = Recipe::new(Ridge::new(1.0).intercept(false));
        let lesson = LessonRows::new(&recipe, &row).unwrap();
        assert_eq!(
            (lesson.columns.as_slice(), lesson.steepness),
            (&[(0, 2.0)][..], 1.0)
        );
        for halvings in 0..8 {
            let step_size = 0.5f64.powi(halvings);
            // The steepness is 1, so that a share of a step is the step.
            let time = lesson.time(vec![0.0], lesson.loss(&vec![0.5]), step_size);
            let expected = if halvings == 0 {
                1.0
            } else {
                (0.5f64.ln() / (1.0 - step_size).ln()).ceil()
            };
            assert_eq!(time.steps, Some(expected as usize), "{halvings}");
        }
    }

    #[test]
    fn rows_without_weight_teach_nothing() {
        let row = Rows::with_ids(
            vec![RowId(4)],
            Dense::new(vec![2.0], 1).unwrap(),
            vec![1.0],
            1,
        )
        .unwrap();
        let row = row.weighted(vec![0.0]).unwrap();
        assert_eq!(
            LessonRows::new(&Recipe::new(Ridge::new(1.0)), &row).unwrap_err(),
            Error::NoWeight
        );
    }
}
