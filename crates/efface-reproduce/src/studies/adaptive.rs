//! Forgetting by sums where it is exact, and where it is not (Cao and Yang, "Towards Making Systems
//! Forget with Machine Unlearning", 2015).
//!
//! A model that is made of sums Σ g(x) forgets a row by subtracting its g(x). This is exact as long
//! as g does not depend on other rows, as with the sums XᵀX and XᵀY of ridge. A learner is adaptive
//! when it asks for one sum after the other and the answers decide what is asked next: then a row
//! has also changed what the other rows added, and subtracting its own part does not take that
//! back.
//!
//! The adaptive learner here is gradient descent on the logistic loss from θ = 0. Round t adds
//! −(1/n) Σ ∇ℓ_i(θ_t), so that the parameters are a sum of what each row added over all rounds.
//! What the rows to forget added is recorded and subtracted, and the result compared with the same
//! number of rounds on the other rows alone. After one round, whose gradients are all taken at θ =
//! 0, nothing is adaptive yet.

use efface::eval::parameters;
use efface::synthetic::{LinearProblem, RegressionData};
use efface::{Dense, Fit, RowId, Rows};

use super::{SPEED, StudyContext, StudyJob, StudyMeasure, forget, recipe, without};
use crate::draw::trial_seed;
use crate::error::{Error, Result};
use crate::part::PaperStudy;
use crate::state::Values;
use crate::watch::RunWatch;

pub(super) struct AdaptiveStudy {
    context: StudyContext,
}

pub(crate) fn cell(k: usize) -> String {
    format!("k={k}")
}

/// The distance to retraining before and after a forget, by the length of the retrained parameters.
/// For gradient descent these names follow [`after_rounds`].
pub(crate) const BEFORE: &str = "before";
pub(crate) const AFTER: &str = "after";

pub(crate) fn after_rounds(rounds: usize, what: &str) -> String {
    format!("T={rounds} {what}")
}

/// The name of a value of ridge, which has no rounds.
pub(crate) fn of_ridge(what: &str) -> String {
    format!("ridge {what}")
}

/// Where gradient descent is after some rounds.
struct DescentState {
    parameters: Vec<f64>,
    /// The part of the parameters that the first k rows added.
    of_first: Vec<f64>,
}

/// Rounds of gradient descent over all rows but the first `skipped`. The step is by the number of
/// all rows either way: it is a setting, and must not differ between a model and its retraining.
/// The parts of the first `watched` rows are recorded.
fn descend(
    problem: &RegressionData,
    labels: &[f64],
    skipped: usize,
    watched: usize,
    rounds: &[usize],
) -> Vec<DescentState> {
    let n = problem.rows();
    let d = problem.width;
    let mut parameters = vec![0.0; d];
    let mut of_first = vec![0.0; d];
    let mut states = Vec::new();
    for round in 1..=rounds.last().copied().unwrap_or(0) {
        let mut first = vec![0.0; d];
        let mut others = vec![0.0; d];
        for (i, label) in labels.iter().enumerate().skip(skipped) {
            let row = problem.row(i);
            let score: f64 = row.iter().zip(&parameters).map(|(x, t)| x * t).sum();
            // −∇ℓ = y·σ(−y·θᵀx)·x
            let weight = label / (1.0 + (label * score).exp()) / n as f64;
            let sum = if i < watched { &mut first } else { &mut others };
            sum.iter_mut()
                .zip(row)
                .for_each(|(sum, x)| *sum += weight * x);
        }
        for j in 0..d {
            of_first[j] += first[j];
            parameters[j] += first[j] + others[j];
        }
        if rounds.contains(&round) {
            states.push(DescentState {
                parameters: parameters.clone(),
                of_first: of_first.clone(),
            });
        }
    }
    states
}

/// ±1 by the sign of the signal, of unit size, plus the noise of the regression: classes that
/// overlap.
fn labels(problem: &RegressionData) -> Vec<f64> {
    let root = (problem.width as f64).sqrt();
    let label = |i: usize| {
        let signal: f64 = problem
            .row(i)
            .iter()
            .zip(&problem.theta)
            .map(|(x, t)| x * t)
            .sum();
        let noise = problem.y[i] - signal;
        if signal / root + noise > 0.0 {
            1.0
        } else {
            -1.0
        }
    };
    (0..problem.rows()).map(label).collect()
}

/// ‖a − b‖/‖b‖.
fn relative(a: &[f64], b: &[f64]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    (apart / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

impl AdaptiveStudy {
    pub(super) fn new(context: StudyContext) -> Self {
        Self { context }
    }

    /// Gradient descent on the rows, before and after its sums are subtracted.
    fn descent(&self, problem: &RegressionData, labels: &[f64], k: usize, values: &mut Values) {
        let rounds = &self.context.plan.adaptive.rounds;
        let full = descend(problem, labels, 0, k, rounds);
        let retrained = descend(problem, labels, k, 0, rounds);
        for ((full, retrained), &rounds) in full.iter().zip(&retrained).zip(rounds) {
            let parts = full.parameters.iter().zip(&full.of_first);
            let subtracted: Vec<f64> = parts.map(|(whole, part)| whole - part).collect();
            let target = &retrained.parameters;
            values.insert(
                after_rounds(rounds, BEFORE),
                relative(&full.parameters, target),
            );
            values.insert(after_rounds(rounds, AFTER), relative(&subtracted, target));
        }
    }
}

impl StudyMeasure for AdaptiveStudy {
    fn jobs(&self) -> Vec<StudyJob> {
        let plan = &self.context.plan.adaptive;
        let most = plan.rounds.last().copied().unwrap_or(0);
        // Two runs of two products a row and round, in plain loops, which are some fifty times
        // slower than large products.
        let cost = 200.0 * (plan.rows * plan.width * most) as f64 / SPEED;
        let mut jobs = Vec::new();
        for trial in 0..plan.trials {
            for &k in &plan.deletions {
                jobs.push(StudyJob {
                    study: PaperStudy::Adaptive,
                    cell: cell(k),
                    trial,
                    cost,
                });
            }
        }
        jobs
    }

    fn run(&mut self, job: &StudyJob, _watch: &mut dyn RunWatch) -> Result<Values> {
        let plan = &self.context.plan.adaptive;
        let Some(&k) = plan.deletions.iter().find(|k| cell(**k) == job.cell) else {
            return Ok(Values::new());
        };
        if k >= plan.rows {
            let why = format!("forgetting {k} of them");
            return Err(Error::TooFewRows {
                name: "adaptive".into(),
                found: plan.rows,
                needed: k + 1,
                why,
            });
        }
        // Every k uses the same rows, so that only the number of deletions differs.
        let seed = trial_seed(self.context.seed, 40, job.trial as u64);
        let problem = LinearProblem {
            rows: plan.rows,
            width: plan.width,
            seed,
        }
        .generate();
        let labels = labels(&problem);
        let mut values = Values::new();
        self.descent(&problem, &labels, k, &mut values);
        let rows = Rows::new(Dense::new(problem.x, plan.width)?, labels, 1)?;
        let gone: Vec<RowId> = (0..k as u64).map(RowId).collect();
        let model = recipe(1).fit(&rows)?;
        let forgot = parameters(&forget("summation", &model, &rows, &gone)?.model)?;
        let retrained = parameters(&recipe(1).fit(&without(&rows, &gone))?)?;
        values.insert(of_ridge(BEFORE), relative(&parameters(&model)?, &retrained));
        values.insert(of_ridge(AFTER), relative(&forgot, &retrained));
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(rounds: &[usize], k: usize) -> Vec<(f64, f64)> {
        let problem = LinearProblem {
            rows: 300,
            width: 8,
            seed: 3,
        }
        .generate();
        let labels = labels(&problem);
        let full = descend(&problem, &labels, 0, k, rounds);
        let retrained = descend(&problem, &labels, k, 0, rounds);
        let pairs = full.iter().zip(&retrained).map(|(full, retrained)| {
            let parts = full.parameters.iter().zip(&full.of_first);
            let subtracted: Vec<f64> = parts.map(|(whole, part)| whole - part).collect();
            let before = relative(&full.parameters, &retrained.parameters);
            (before, relative(&subtracted, &retrained.parameters))
        });
        pairs.collect()
    }

    #[test]
    fn the_parameters_are_the_sum_of_what_every_row_added() {
        let problem = LinearProblem {
            rows: 50,
            width: 4,
            seed: 1,
        }
        .generate();
        let labels = labels(&problem);
        assert!(labels.contains(&1.0) && labels.contains(&-1.0));
        let state = descend(&problem, &labels, 0, 50, &[7]).remove(0);
        assert_eq!(state.parameters, state.of_first);
        assert!(state.parameters.iter().any(|value| *value != 0.0));
    }

    #[test]
    fn subtracting_is_exact_after_one_round_and_worse_with_every_further_one() {
        for k in [1, 20] {
            let found = distances(&[1, 2, 5, 20, 100], k);
            assert!(
                found[0].0 > 1e-4 && found[0].1 < 1e-13,
                "one round: {:?}",
                found[0]
            );
            assert!(
                found.windows(2).all(|pair| pair[1].1 > 1.5 * pair[0].1),
                "{found:?}"
            );
            let (before, after) = found[4];
            assert!(after > 5.0 * before, "worse than doing nothing: {found:?}");
        }
        assert!(
            distances(&[100], 20)[0].1 > 2.0 * distances(&[100], 1)[0].1,
            "more rows, more harm"
        );
    }
}
