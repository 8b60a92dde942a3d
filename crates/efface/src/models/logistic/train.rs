//! Training to a gradient norm of 1e-10.
//!
//! The directions are those of L-BFGS, started not from a multiple of the identity but from the
//! inverse of a Hessian (`descent_guide.rs`): that of a sample of the rows, four for every
//! parameter. A good Hessian makes each pass over the rows worth a digit or more, whatever the
//! condition of the data; and a sample makes one for the price of a few passes, where all rows
//! would cost as much as dozens. When progress is slow the Hessian is made anew where the
//! parameters stand, from four times as many rows, in the end from all, and then the method is
//! Newton's. Near the optimum the Hessian of all rows is made once more: forgetting needs it, and
//! it leads the rest of the way. Plain L-BFGS is the cheaper start on columns of like spread and
//! nearly independent; on real tables it takes hundreds of passes to the digits that the theory of
//! forgetting needs.
//!
//! With many classes even a sample makes a Hessian as dear as dozens of passes. Such a model, and
//! one too wide for any Hessian, takes Newton steps by conjugate gradients (`guide.rs`). Where
//! these take long to tell columns apart, a model that can have a factor gets one after all.

use faer::Mat;

use super::bowl::QuadraticBowl;
use super::descent_guide::DescentGuide;
use super::guide::StepAids;
use super::lane_table::TableProducts;
use super::objective::{ObjectivePlace, RowObjective, flat, shaped};
use super::sample::RowLines;
use super::single_rows::SingleRows;
use crate::error::{Error, Result};
use crate::linalg::{CgSettings, Cholesky, add_scaled, conjugate_gradients, dot, norm};

/// What is left of the way, in the norm of the Hessian, is near enough to the optimum to make the
/// Hessian that is kept.
const NEARBY: f64 = 1e-3;
/// A kept Hessian may be wrong by no more than this fraction when it is new.
const MOST_WRONG: f64 = 2e-3;
/// Fewer iterations of conjugate gradients than this are not too many for a step.
const FEW_ITERATIONS: f64 = 30.0;
/// A loss is known to this relative accuracy.
const NOISE: f64 = 1e-13;
/// Steps to fewer digits than this can be found in single precision: it decides how fast a step is
/// found and not how good it is, which is measured over the rows themselves.
const ENOUGH: f64 = 1e-5;
/// Conjugate-gradient steps before giving up.
const CG_LIMIT: usize = 10_000;

/// How to train.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainingLimits {
    pub(crate) gradient: f64,
    /// The gradient norm that rounding alone can leave: at parameters of norm 0, and for every unit
    /// of their norm.
    pub(crate) floor: [f64; 2],
    pub(crate) iterations: usize,
    pub(crate) threads: usize,
    /// Whether a d×d Hessian is affordable.
    pub(crate) dense: bool,
    /// Whether such a Hessian guides the training, and not conjugate gradients over the rows.
    pub(crate) factored: bool,
    /// So many passes over the rows the first one of a sample costs.
    pub(crate) factor_passes: f64,
    /// Whether the Hessian at the optimum is wanted, and whether one from near by will do, as long
    /// as it is known how wrong it is.
    pub(crate) keep: bool,
    pub(crate) nearby: bool,
    /// Whether its products may be of single precision.
    pub(crate) single: bool,
}

pub(crate) struct TrainedParameters {
    pub(crate) place: ObjectivePlace,
    pub(crate) bowl: Option<QuadraticBowl>,
    /// What helped conjugate gradients, where they were used.
    pub(crate) aids: StepAids,
    pub(crate) iterations: usize,
    pub(crate) passes: usize,
}

/// The minimum, from the parameters given, guided by a factor where one is at hand.
pub(crate) fn train(
    objective: &RowObjective<'_>,
    start: Mat<f64>,
    factor: Option<Cholesky>,
    mut limits: TrainingLimits,
) -> Result<TrainedParameters> {
    let width = start.nrows();
    let mut place = objective.at(start)?;
    let mut passes = 1;
    if !place.loss.is_finite() || !norm(&place.gradient).is_finite() {
        return Err(Error::Overflow);
    }
    let first = norm(&place.gradient);
    let floor = limits.floor;
    let floor_at = |theta: &Mat<f64>| floor[0] + floor[1] * norm(theta);
    let mut guide = match factor {
        Some(factor) => Some(DescentGuide::by(factor, 1, first)),
        None if limits.factored && first > limits.gradient => {
            let guide = DescentGuide::new(objective, &place, &mut limits)?;
            passes += guide.passes;
            Some(guide)
        }
        None => None,
    };
    let mut aids = StepAids::default();
    let concordance = objective.frame.link.concordance();
    // What is left of the way, in the norm of the Hessian, as far as the last step tells.
    let mut left = f64::INFINITY;
    let mut iterations = 0;
    loop {
        let size = norm(&place.gradient);
        if size <= limits.gradient {
            break;
        }
        if let Some(stop) = &objective.sample.stop {
            stop.go_on()?;
            stop.note_training(
                passes,
                first,
                size,
                limits.gradient.max(floor_at(&place.theta)),
            );
        }
        if place.margin > 0.0 && objective.has_no_penalty() {
            return Err(Error::Separable);
        }
        if iterations == limits.iterations {
            return Err(Error::NotTrained {
                iterations,
                gradient: size,
                tolerance: limits.gradient,
            });
        }
        if limits.keep && limits.dense && limits.nearby && concordance * left <= NEARBY {
            // The Hessian that is wanted in the end leads there in a few steps.
            let near = NEARBY / concordance - left;
            if !guide
                .as_ref()
                .is_some_and(|guide| guide.is_whole_within(near))
            {
                let whole = DescentGuide::whole(objective, &place, &mut limits)?;
                passes += whole.passes;
                guide = Some(whole);
            }
        }
        let gradient = flat(&place.gradient);
        let mut products = 0;
        let step = match &guide {
            Some(guide) => guide.direction(&gradient, limits),
            None => {
                // Far from the optimum a rough direction is enough; near it, as good as the
                // gradient is small.
                let accuracy = (size / first).sqrt().clamp(1e-4, 0.1);
                let step;
                (step, products) = objective.solve(&place.theta, &gradient, accuracy, &mut aids)?;
                passes += products;
                step
            }
        };
        let slope = dot(gradient.col_as_slice(0), step.col_as_slice(0));
        let (next, tried) = objective.search(&place, &shaped(&step, width), slope)?;
        passes += tried;
        iterations += 1;
        let Some(next) = next else {
            // No step helps: rounding is all that is left, or the Hessian is no guide any more.
            if size <= floor_at(&place.theta) {
                break;
            }
            let improved = match &mut guide {
                Some(guide) => guide.improve(objective, &place, &mut limits)?,
                None => 0,
            };
            if improved == 0 && slope <= NOISE * place.loss.abs().max(1.0) {
                break;
            }
            if improved == 0 {
                return Err(Error::NotTrained {
                    iterations,
                    gradient: size,
                    tolerance: limits.gradient,
                });
            }
            passes += improved;
            continue;
        };
        let reached = norm(&next.gradient);
        let length = slope.max(0.0).sqrt();
        left = length * reached / size;
        let stuck = reached > 0.5 * size && reached <= floor_at(&next.theta);
        match &mut guide {
            Some(guide) => {
                guide.learn(&place, &next, length);
                if guide.is_slow(reached) {
                    passes += guide.improve(objective, &next, &mut limits)?;
                }
            }
            None if limits.dense && products as f64 > limits.factor_passes.max(FEW_ITERATIONS) => {
                // Columns that conjugate gradients take this long to tell apart are told apart by a
                // factor, where there is one.
                let goes_on = reached > limits.gradient && !stuck;
                guide = match goes_on
                    .then(|| DescentGuide::new(objective, &next, &mut limits))
                    .transpose()
                {
                    Err(Error::Singular { .. }) => None,
                    other => other?,
                };
                passes += guide.as_ref().map_or(0, |guide| guide.passes);
            }
            None => {}
        }
        place = next;
        if stuck {
            break;
        }
    }
    let mut bowl = None;
    if limits.keep
        && limits.nearby
        && let Some((made, way)) = guide.and_then(|guide| guide.into_whole(&place.theta))
    {
        let swing = objective.after(place.theta.clone(), Some(&way))?.1;
        let turned = swing.map_or(f64::INFINITY, |swing| (concordance * swing).exp());
        let wrong = (1.0 + made.wrong) * turned - 1.0;
        bowl = (wrong <= MOST_WRONG).then_some(QuadraticBowl { wrong, ..made });
        passes += 1;
    }
    if limits.keep && limits.dense && bowl.is_none() {
        let made = objective.bowl(&place.theta, limits)?;
        passes += made.passes;
        bowl = Some(made);
    }
    Ok(TrainedParameters {
        place,
        bowl,
        aids,
        iterations,
        passes,
    })
}

/// The rows that a Hessian is multiplied with.
enum HessianProducts<'a> {
    /// Dense rows in single precision.
    Lanes(TableProducts<'a>),
    /// Sparse rows in single precision.
    Thin(SingleRows<'a>),
    /// The rows themselves, which bend so.
    Rows(RowLines),
}

impl RowObjective<'_> {
    fn has_no_penalty(&self) -> bool {
        self.extra.penalty.iter().all(|penalty| *penalty == 0.0)
    }

    /// H⁻¹·rhs by conjugate gradients, and the passes over the rows that it took. Aids are made
    /// where there are none.
    pub(crate) fn solve(
        &self,
        theta: &Mat<f64>,
        rhs: &Mat<f64>,
        accuracy: f64,
        aids: &mut StepAids,
    ) -> Result<(Mat<f64>, usize)> {
        let (products, bends) = self.products(theta, accuracy >= ENOUGH, aids)?;
        let (aimed, read) = self.guided(bends, aids.guide.take())?;
        let mut solution = Mat::zeros(rhs.nrows(), 1);
        let settings = CgSettings {
            tolerance: accuracy,
            max_iterations: CG_LIMIT,
        };
        let mut failed = None;
        let done = conjugate_gradients(
            |v: &[f64], out: &mut [f64]| match &products {
                HessianProducts::Lanes(rows) => rows.times(v, out),
                HessianProducts::Thin(rows) => rows.times(v, out),
                HessianProducts::Rows(bends) => {
                    if let Err(error) = self.times(bends, v, out) {
                        // What is no number ends the iteration.
                        out.fill(f64::NAN);
                        failed = Some(error);
                    }
                }
            },
            |residual: &[f64]| aimed.apply(self.extra, residual),
            rhs.col_as_slice(0),
            solution.col_as_slice_mut(0),
            settings,
        );
        if let Some(error) = failed {
            return Err(error);
        }
        let iterations = done?;
        aids.guide = Some(aimed);
        Ok((solution, iterations + 1 + read as usize))
    }

    /// How the Hessian at these parameters is multiplied with: in single precision where the step
    /// may be rough. And how much every class bends, as the guide wants to know.
    fn products(
        &self,
        theta: &Mat<f64>,
        rough: bool,
        aids: &mut StepAids,
    ) -> Result<(HessianProducts<'_>, (Vec<f64>, f64))> {
        if rough && let Some(lanes) = TableProducts::new(self, theta, &mut aids.table)? {
            let bends = lanes.bends();
            return Ok((HessianProducts::Lanes(lanes), bends));
        }
        let lines = self.sample.bends(self.frame, theta)?;
        let bends = self.bend_sums(&lines)?;
        let thin = if rough {
            SingleRows::new(self, &lines)?
        } else {
            None
        };
        Ok((
            thin.map_or(HessianProducts::Rows(lines), HessianProducts::Thin),
            bends,
        ))
    }

    /// Goes down along `step`, halving it until the loss or, where the loss is all rounding, the
    /// gradient falls.
    fn search(
        &self,
        place: &ObjectivePlace,
        step: &Mat<f64>,
        slope: f64,
    ) -> Result<(Option<ObjectivePlace>, usize)> {
        let size = norm(&place.gradient);
        let noise = NOISE * place.loss.abs().max(1.0);
        let mut length = 1.0;
        for tried in 1..=40 {
            let mut theta = place.theta.clone();
            for c in 0..theta.ncols() {
                add_scaled(theta.col_as_slice_mut(c), -length, step.col_as_slice(c));
            }
            let next = self.at(theta)?;
            let falls = next.loss <= place.loss - 0.1 * length * slope;
            let flat = slope.abs() <= 1e3 * noise && next.loss <= place.loss + noise;
            if next.loss.is_finite() && (falls || (flat && norm(&next.gradient) < 0.9 * size)) {
                return Ok((Some(next), tried));
            }
            if slope <= noise && tried > 2 {
                return Ok((None, tried));
            }
            length *= 0.5;
        }
        Ok((None, 40))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Fitted;
    use crate::linalg::operator_norm;
    use crate::methods::Auto;
    use crate::models::logistic::Logistic;
    use crate::rows::{Dense, RowId, Rows};
    use crate::traits::Fit;

    #[test]
    fn a_hessian_from_near_by_is_no_more_wrong_than_it_says() {
        let (count, width) = (7_000, 760);
        let mut random = crate::random::seeded(3);
        let mut targets = Vec::new();
        let mut features = Vec::new();
        for _ in 0..count {
            let row: Vec<f64> = (0..width)
                .map(|_| random.sample(rand_distr::StandardNormal))
                .collect();
            let score: f64 = row[..40].iter().sum::<f64>() / 4.0 + random.random_range(-2.0..2.0);
            targets.push(if score > 0.0 { 1.0 } else { -1.0 });
            features.extend(row);
        }
        let rows = Rows::new(Dense::new(features, width).unwrap(), targets, 1).unwrap();
        let recipe = Logistic::new(1.0);
        let mut fitted = Fitted::new(&recipe, rows).unwrap();
        let model = fitted.model();
        let said = model.ledger.warp;
        assert!(said > 0.0 && said <= MOST_WRONG, "{said:e}");
        let base = &model.standing.as_ref().unwrap().base;
        let truth = model
            .over_all_rows(fitted.rows(), |sample| {
                model.objective(sample).hessian(&model.theta, 1)
            })
            .unwrap();
        let apart = Mat::from_fn(width + 1, width + 1, |i, j| {
            let at = (i.max(j), i.min(j));
            truth[at] - base.hessian[at]
        });
        let found = operator_norm(width + 1, &[], 5, |v| {
            base.factor
                .sandwich(v, |v| *v = &apart * &*v, faer::Par::Seq);
        });
        assert!(
            found <= said * (1.0 + said) && found > 1e-3 * said,
            "{found:e} of {said:e}"
        );
        assert!(norm(&apart) <= model.ledger.drift);
        for k in 0..3 {
            let evidence = fitted.forget(&Auto::default(), &[RowId(k * 11)]).unwrap();
            let fresh = recipe.fit_store(fitted.rows()).unwrap();
            let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
            let found = norm(&(a - c)).hypot(b[0] - d[0]);
            assert!(
                found <= evidence.bound && evidence.relative_bound <= 3e-4,
                "{found:e}"
            );
        }
    }
}
