//! Training to a gradient norm of 1e-10.
//!
//! The directions are those of L-BFGS, started not from a multiple of the identity but from the inverse of a Hessian: that of
//! a sample of the rows, four for every parameter. A good Hessian makes each pass over the rows worth a digit or
//! more, whatever the condition of the data; and a sample makes one for the price of a few passes, where all rows would
//! cost as much as dozens. When progress is slow the Hessian is made anew where the parameters stand, from four times as
//! many rows, in the end from all, and then the method is Newton's. At the optimum the Hessian of all rows is made once, for
//! forgetting needs it. Plain L-BFGS is the cheaper start on columns of like spread and nearly independent; on real
//! tables it takes hundreds of passes to the digits that the theory of forgetting needs.
//!
//! With many classes even a sample makes a Hessian as dear as hundreds of passes. Such a model, and one too wide for any
//! Hessian, takes Newton steps by conjugate gradients (`guide.rs`).

use std::collections::VecDeque;

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::curvature::symmetric_times;
use super::guide::StepAids;
use super::lane_table::TableProducts;
use super::objective::{ObjectivePlace, RowObjective, flat, shaped};
use super::sample::RowLines;
use super::single_rows::SingleRows;
use crate::error::{Error, Result};
use crate::linalg::{CgSettings, Cholesky, add_scaled, conjugate_gradients, dot, norm, par};

/// Rows per parameter in the first sample of the Hessian.
const SAMPLE: usize = 4;
/// Pairs of step and change of gradient that are remembered.
const MEMORY: usize = 12;
/// So many steps may bring the gradient down by a factor of ten before the Hessian is made anew.
const PATIENCE: usize = 8;
/// A gradient of this share of the first one is near enough to the optimum to make the Hessian that is kept.
const NEARBY: f64 = 1e-5;
/// The same where conjugate gradients lead there, whose steps near the optimum are each worth several digits.
const NEARBY_BY_PASSES: f64 = 1e-6;
/// A kept Hessian may be wrong by no more than this fraction when it is new.
const MOST_WRONG: f64 = 2e-3;
/// What single precision may take from a Hessian, as a fraction of it.
const MOST_ROUNDED: f64 = 5e-4;
/// Random vectors that find out how much that is. Each has a component of less than 1/100 along the worst direction with a chance of 0.008,
/// and all four with one of 4e-9.
const PROBES: usize = 4;
const PROBE_SAFETY: f64 = 100.0;
/// A loss is known to this relative accuracy.
const NOISE: f64 = 1e-13;
/// Steps to fewer digits than this can be found in single precision: it decides how fast a step is found and not how good it is, which is
/// measured over the rows themselves.
const ENOUGH: f64 = 1e-5;
/// Conjugate-gradient steps before giving up.
const CG_LIMIT: usize = 10_000;

/// How to train.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainingLimits {
    pub(crate) gradient: f64,
    /// The gradient norm that rounding alone can leave: at parameters of norm 0, and for every unit of their norm.
    pub(crate) floor: [f64; 2],
    pub(crate) iterations: usize,
    pub(crate) threads: usize,
    /// Whether a d×d Hessian is affordable.
    pub(crate) dense: bool,
    /// Whether such a Hessian guides the training, and not conjugate gradients over the rows.
    pub(crate) factored: bool,
    /// Whether the Hessian at the optimum is wanted, and whether one from near by will do, as long as it is known how wrong it is.
    pub(crate) keep: bool,
    pub(crate) nearby: bool,
}

/// A Hessian's lower triangle and its factor.
pub(crate) struct QuadraticBowl {
    pub(crate) hessian: Mat<f64>,
    pub(crate) factor: Cholesky,
    /// At least the fraction by which it is not the Hessian at the parameters.
    pub(crate) wrong: f64,
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
    limits: TrainingLimits,
) -> Result<TrainedParameters> {
    let width = start.nrows();
    let mut place = objective.at(start)?;
    let mut passes = 1;
    if !place.loss.is_finite() || !norm(&place.gradient).is_finite() {
        return Err(Error::Overflow);
    }
    let first = norm(&place.gradient);
    let floor_at = |theta: &Mat<f64>| limits.floor[0] + limits.floor[1] * norm(theta);
    let mut guide = match factor {
        Some(factor) => Some(DescentGuide::by(factor, 1, first)),
        None if limits.factored && first > limits.gradient => {
            passes += 1;
            Some(DescentGuide::new(objective, &place, limits)?)
        }
        None => None,
    };
    let nearby = if guide.is_some() { NEARBY } else { NEARBY_BY_PASSES };
    let mut aids = StepAids::default();
    let mut early: Option<(QuadraticBowl, Mat<f64>)> = None;
    let mut iterations = 0;
    loop {
        let size = norm(&place.gradient);
        if size <= limits.gradient {
            break;
        }
        if let Some(stop) = &objective.sample.stop {
            stop.go_on()?;
            stop.note_training(passes, first, size, limits.gradient.max(floor_at(&place.theta)));
        }
        if place.margin > 0.0 && objective.has_no_penalty() {
            return Err(Error::Separable);
        }
        if iterations == limits.iterations {
            return Err(Error::NotTrained { iterations, gradient: size, tolerance: limits.gradient });
        }
        if limits.keep && limits.dense && limits.nearby && early.is_none() && size <= nearby * first {
            // The Hessian that is wanted in the end leads there in a few steps.
            let bowl = objective.bowl(&place.theta, 1, limits)?;
            guide = Some(DescentGuide { fresh: true, ..DescentGuide::by(bowl.factor.clone(), 1, size) });
            early = Some((bowl, place.theta.clone()));
            passes += 1;
        }
        let gradient = flat(&place.gradient);
        let step = match &guide {
            Some(guide) => guide.direction(&gradient, limits),
            None => {
                // Far from the optimum a rough direction is enough; near it, as good as the gradient is small.
                let accuracy = (size / first).sqrt().clamp(1e-4, 0.1);
                let (step, products) = objective.solve(&place.theta, &gradient, accuracy, &mut aids)?;
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
                Some(guide) => guide.improve(objective, &place, limits)?,
                None => false,
            };
            if !improved && slope <= NOISE * place.loss.abs().max(1.0) {
                break;
            }
            if !improved {
                return Err(Error::NotTrained { iterations, gradient: size, tolerance: limits.gradient });
            }
            passes += 1;
            continue;
        };
        let reached = norm(&next.gradient);
        if let Some(guide) = &mut guide {
            guide.learn(&place, &next);
            if guide.is_slow(reached) && guide.improve(objective, &next, limits)? {
                passes += 1;
            }
        }
        let stuck = reached > 0.5 * size && reached <= floor_at(&next.theta);
        place = next;
        if stuck {
            break;
        }
    }
    let mut bowl = None;
    if let Some((made, at)) = early {
        let swing = objective.after(place.theta.clone(), Some(&(&place.theta - at)))?.1;
        let turned = swing.map_or(f64::INFINITY, |swing| (objective.frame.link.concordance() * swing).exp());
        let wrong = (1.0 + made.wrong) * turned - 1.0;
        bowl = (wrong <= MOST_WRONG).then_some(QuadraticBowl { wrong, ..made });
        passes += 1;
    }
    if limits.keep && limits.dense && bowl.is_none() {
        bowl = Some(objective.bowl(&place.theta, 1, limits)?);
        passes += 1;
    }
    Ok(TrainedParameters { place, bowl, aids, iterations, passes })
}

/// The first Hessian is that of one row in so many.
fn sample_stride(rows: usize, parameters: usize) -> usize {
    (rows / (SAMPLE * parameters).max(1)).clamp(1, 16)
}

/// How many rows the first Hessian is made of.
pub(super) fn sampled_rows(rows: usize, parameters: usize) -> usize {
    rows / sample_stride(rows, parameters)
}

/// The next direction: L-BFGS, preconditioned by the factor of the Hessian of some rows.
struct DescentGuide {
    factor: Cholesky,
    stride: usize,
    /// Steps s and the changes y of the gradient along them, oldest first, with sᵀy.
    pairs: VecDeque<(Mat<f64>, Mat<f64>, f64)>,
    /// Steps since the gradient last fell by a factor of ten, and what it was then.
    waited: usize,
    mark: f64,
    /// Whether the Hessian is that of all rows where the parameters stand.
    fresh: bool,
}

impl DescentGuide {
    fn new(objective: &RowObjective<'_>, place: &ObjectivePlace, limits: TrainingLimits) -> Result<Self> {
        let parameters = objective.frame.basis.width() * objective.frame.outputs;
        let stride = sample_stride(objective.sample.shape.members, parameters);
        let factor = objective.bowl(&place.theta, stride, limits)?.factor;
        Ok(Self { fresh: stride == 1, ..Self::by(factor, stride, norm(&place.gradient)) })
    }

    fn by(factor: Cholesky, stride: usize, mark: f64) -> Self {
        Self { factor, stride, pairs: VecDeque::new(), waited: 0, mark, fresh: false }
    }

    /// Approximately H⁻¹·gradient.
    fn direction(&self, gradient: &Mat<f64>, limits: TrainingLimits) -> Mat<f64> {
        let mut direction = gradient.clone();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for (s, y, sy) in self.pairs.iter().rev() {
            let share = dot(s.col_as_slice(0), direction.col_as_slice(0)) / sy;
            add_scaled(direction.col_as_slice_mut(0), -share, y.col_as_slice(0));
            shares.push(share);
        }
        self.factor.solve(direction.as_mut(), par(limits.threads));
        for ((s, y, sy), share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let rest = share - dot(y.col_as_slice(0), direction.col_as_slice(0)) / sy;
            add_scaled(direction.col_as_slice_mut(0), rest, s.col_as_slice(0));
        }
        direction
    }

    fn learn(&mut self, from: &ObjectivePlace, to: &ObjectivePlace) {
        self.fresh = false;
        let s = flat(&(&to.theta - &from.theta));
        let y = flat(&(&to.gradient - &from.gradient));
        let sy = dot(s.col_as_slice(0), y.col_as_slice(0));
        // Convexity makes this product positive, but rounding can make it negative: then the pair is of no use.
        if sy > 1e-14 * norm(&s) * norm(&y) {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y, sy));
        }
    }

    fn is_slow(&mut self, gradient: f64) -> bool {
        self.waited += 1;
        if gradient <= 0.1 * self.mark {
            (self.waited, self.mark) = (0, gradient);
        }
        self.waited >= PATIENCE
    }

    /// Makes the Hessian anew, from more rows. False when it could not be better.
    fn improve(
        &mut self,
        objective: &RowObjective<'_>,
        place: &ObjectivePlace,
        limits: TrainingLimits,
    ) -> Result<bool> {
        if self.fresh {
            return Ok(false);
        }
        self.stride = self.stride.div_ceil(4);
        self.factor = objective.bowl(&place.theta, self.stride, limits)?.factor;
        self.pairs.clear();
        (self.waited, self.mark) = (0, norm(&place.gradient));
        self.fresh = self.stride == 1;
        Ok(true)
    }
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

    pub(crate) fn bowl(
        &self,
        theta: &Mat<f64>,
        stride: usize,
        limits: TrainingLimits,
    ) -> Result<QuadraticBowl> {
        let pays = limits.nearby && stride == 1 && self.frame.outputs > 1;
        if pays
            && self.sample.is_held()
            && !self.sample.is_thin(self.frame)
            && let Some(bowl) = self.single_bowl(theta, limits)?
        {
            return Ok(bowl);
        }
        let hessian = self.hessian(theta, stride)?;
        let width = theta.nrows();
        match self.factor(&hessian, width, limits) {
            Ok(factor) => Ok(QuadraticBowl { hessian, factor, wrong: 0.0 }),
            // A sample may miss a column that all rows together determine.
            Err(_) if stride > 1 => self.bowl(theta, 1, limits),
            Err(pivot) => Err(Error::Singular { pivot: pivot % width, width }),
        }
    }

    fn factor(
        &self,
        hessian: &Mat<f64>,
        width: usize,
        limits: TrainingLimits,
    ) -> std::result::Result<Cholesky, usize> {
        let penalty = &self.extra.penalty;
        Cholesky::factor(hessian, |at| penalty[at % width] == 0.0, par(limits.threads))
    }

    /// The same by products in single precision, with what that made wrong, found by random vectors. None where it is too much.
    fn single_bowl(&self, theta: &Mat<f64>, limits: TrainingLimits) -> Result<Option<QuadraticBowl>> {
        let Some(hessian) = self.single_hessian(theta)? else { return Ok(None) };
        let Ok(factor) = self.factor(&hessian, theta.nrows(), limits) else { return Ok(None) };
        let wrong = self.rounded_away(theta, &hessian, &factor)?;
        Ok((wrong <= MOST_ROUNDED).then_some(QuadraticBowl { hessian, factor, wrong }))
    }

    /// At least ‖H^-½(Ĥ − H)H^-½‖ for a Hessian Ĥ = LLᵀ that rounding has made: each of some random vectors v gives ‖L⁻¹(Ĥ − H)L⁻ᵀv‖,
    /// with products of H by passes over the rows in double precision.
    fn rounded_away(&self, theta: &Mat<f64>, hessian: &Mat<f64>, factor: &Cholesky) -> Result<f64> {
        let total = hessian.nrows();
        let bends = self.sample.bends(self.frame, theta)?;
        let mut random = crate::random::seeded(total as u64 ^ 0x5eed);
        let mut product = vec![0.0; total];
        let mut largest = 0.0f64;
        for _ in 0..PROBES {
            let mut vector = Mat::from_fn(total, 1, |_, _| StandardNormal.sample(&mut random));
            let mut done = Ok(());
            factor.sandwich(
                &mut vector,
                |v| {
                    done = self.times(&bends, v.col_as_slice(0), &mut product);
                    *v = symmetric_times(hessian, v);
                    add_scaled(v.col_as_slice_mut(0), -1.0, &product);
                },
                par(self.frame.threads),
            );
            done?;
            let found = norm(&vector);
            largest = if found.is_nan() { f64::INFINITY } else { largest.max(found) };
        }
        // From a fraction of Ĥ to one of H.
        let wrong = PROBE_SAFETY * largest;
        Ok(if wrong < 1.0 { wrong / (1.0 - wrong) } else { f64::INFINITY })
    }

    /// H⁻¹·rhs by conjugate gradients, and the passes over the rows that it took. Aids are made where there are none.
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
        let settings = CgSettings { tolerance: accuracy, max_iterations: CG_LIMIT };
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

    /// How the Hessian at these parameters is multiplied with: in single precision where the step may be rough. And how much every class
    /// bends, as the guide wants to know.
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
        let thin = if rough { SingleRows::new(self, &lines)? } else { None };
        Ok((thin.map_or(HessianProducts::Rows(lines), HessianProducts::Thin), bends))
    }

    /// Goes down along `step`, halving it until the loss or, where the loss is all rounding, the gradient falls.
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
            let row: Vec<f64> = (0..width).map(|_| random.sample(rand_distr::StandardNormal)).collect();
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
            .over_all_rows(fitted.rows(), |sample| model.objective(sample).hessian(&model.theta, 1))
            .unwrap();
        let apart = Mat::from_fn(width + 1, width + 1, |i, j| {
            let at = (i.max(j), i.min(j));
            truth[at] - base.hessian[at]
        });
        let found = operator_norm(width + 1, &[], 5, |v| {
            base.factor.sandwich(v, |v| *v = &apart * &*v, faer::Par::Seq);
        });
        assert!(found <= said * (1.0 + said) && found > 1e-3 * said, "{found:e} of {said:e}");
        assert!(norm(&apart) <= model.ledger.drift);
        for k in 0..3 {
            let evidence = fitted.forget(&Auto::default(), &[RowId(k * 11)]).unwrap();
            let fresh = recipe.fit_store(fitted.rows()).unwrap();
            let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
            let found = norm(&(a - c)).hypot(b[0] - d[0]);
            assert!(found <= evidence.bound && evidence.relative_bound <= 3e-4, "{found:e}");
        }
    }

    /// Rows of several classes with columns that depend on each other, nearly (the first eighty) or altogether (levels, of this unit).
    fn tangled(count: usize, classes: usize, unit: f64) -> Rows {
        let width = 100;
        let mut random = crate::random::seeded(7);
        let mut normal = || -> f64 { random.sample(rand_distr::StandardNormal) };
        let mix: Vec<f64> = (0..8 * 80).map(|_| normal()).collect();
        let (mut targets, mut features) = (Vec::new(), Vec::new());
        for k in 0..count {
            let hidden: Vec<f64> = (0..8).map(|_| normal()).collect();
            for column in mix.chunks_exact(8) {
                features.push(crate::linalg::dot(column, &hidden) + 0.01 * normal());
            }
            features.extend((0..width - 80).map(|level| f64::from(u8::from(level == k * 31 % 20)) * unit));
            // The later a class, the rarer.
            let class = ((hidden[0] + normal()).abs() * 1.5) as usize;
            targets.extend((0..classes).map(|c| f64::from(u8::from(c == class.min(classes - 1)))));
        }
        Rows::new(Dense::new(features, width).unwrap(), targets, classes).unwrap()
    }

    #[test]
    fn a_hessian_in_single_precision_is_no_more_wrong_than_it_says() {
        let recipe = Logistic::new(1.0).softmax();
        let mut fitted = Fitted::new(&recipe, tangled(11_500, 6, 1.0)).unwrap();
        let model = fitted.model();
        let base = &model.standing.as_ref().unwrap().base;
        let total = base.hessian.nrows();
        let fraction = |found: &Mat<f64>, truth: &Mat<f64>, factor: &Cholesky| {
            let apart = Mat::from_fn(total, total, |i, j| {
                let at = (i.max(j), i.min(j));
                truth[at] - found[at]
            });
            operator_norm(total, &[], 5, |v| factor.sandwich(v, |v| *v = &apart * &*v, faer::Par::Seq))
        };
        let (rough, truth) = model
            .over_all_rows(fitted.rows(), |sample| {
                let objective = model.objective(sample);
                let rough = objective.single_bowl(&model.theta, model.limits(&model.facts))?;
                Ok((rough.unwrap(), objective.hessian(&model.theta, 1)?))
            })
            .unwrap();
        // Rounding shows, and stays within what is said of it, with room to spare.
        let found = fraction(&rough.hessian, &truth, &rough.factor);
        assert!(
            found > 1e-9 && found <= rough.wrong && rough.wrong <= MOST_ROUNDED,
            "{found:e} of {:e}",
            rough.wrong
        );
        let said = model.ledger.warp;
        let found = fraction(&base.hessian, &truth, &base.factor);
        assert!(said > 0.0 && said <= MOST_WRONG && found <= said, "{found:e} of {said:e}");
        for k in 0..2 {
            let evidence = fitted.forget(&Auto::default(), &[RowId(k * 11)]).unwrap();
            let fresh = recipe.fit_store(fitted.rows()).unwrap();
            let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
            let intercepts: f64 = b.iter().zip(&d).map(|(b, d)| (b - d).powi(2)).sum();
            let found = norm(&(a - c)).hypot(intercepts.sqrt());
            assert!(found <= evidence.bound && evidence.relative_bound <= 3e-4, "{found:e}");
        }
    }

    /// Where single precision would take too much, the Hessian is that of double precision.
    #[test]
    fn a_hessian_that_single_precision_spoils_is_made_in_double_precision() {
        let rows = tangled(11_500, 6, 1e3);
        let recipe = Logistic::new(1e-5).softmax();
        let model = recipe.fit(&rows).unwrap();
        let limits = model.limits(&model.facts);
        let bowl = model
            .over_all_rows(&rows, |sample| {
                let objective = model.objective(sample);
                let spoiled = objective.single_bowl(&model.theta, limits)?;
                assert!(spoiled.is_none());
                objective.bowl(&model.theta, 1, limits)
            })
            .unwrap();
        assert_eq!(bowl.wrong, 0.0);
    }
}
