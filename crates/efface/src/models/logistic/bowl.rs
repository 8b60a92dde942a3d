//! The Hessian of the rows with its factor: of all of them or of a sample, in double precision or
//! in single precision with what that took from it.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::curvature::symmetric_times;
use super::objective::RowObjective;
use super::reader::PassReader;
use super::train::TrainingLimits;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, add_scaled, norm, par};

/// What single precision may take from a Hessian, as a fraction of it.
const MOST_ROUNDED: f64 = 5e-4;
/// Random vectors that find out how much that is. Each has a component of less than 1/100 along the
/// worst direction with a chance of 0.008, and all four with one of 4e-9.
const PROBES: usize = 4;
const PROBE_SAFETY: f64 = 100.0;

/// Passes over the rows that a Hessian in single precision takes: their Gram matrix, their
/// probabilities, the sums and the random vectors.
const SINGLE_PASSES: usize = 3 + PROBES;

/// A sample that has less than this share of a column has too little of it.
const SCARCE: f64 = 0.5;

/// A Hessian's lower triangle and its factor.
pub(crate) struct QuadraticBowl {
    pub(crate) hessian: Mat<f64>,
    pub(crate) factor: Cholesky,
    /// At least the fraction by which it is not the Hessian at the parameters.
    pub(crate) wrong: f64,
    /// Passes over the rows that it took.
    pub(crate) passes: usize,
}

impl RowObjective<'_> {
    /// The bowl at these parameters.
    pub(crate) fn bowl(&self, theta: &Mat<f64>, limits: TrainingLimits) -> Result<QuadraticBowl> {
        if limits.single
            && let Some(bowl) = self.single_bowl(theta, limits)?
        {
            return Ok(bowl);
        }
        let hessian = self.hessian(theta, 1)?;
        let width = theta.nrows();
        match self.factor(&hessian, width, limits) {
            Ok(factor) => {
                let passes = 1 + if limits.single { SINGLE_PASSES } else { 0 };
                Ok(QuadraticBowl {
                    hessian,
                    factor,
                    wrong: 0.0,
                    passes,
                })
            }
            Err(pivot) => Err(Error::Singular {
                pivot: pivot % width,
                width,
            }),
        }
    }

    /// The factor of the Hessian of every `stride`th row, scaled up to stand for all. None where
    /// the sample does not determine what all rows together may.
    pub(super) fn sampled_factor(
        &self,
        theta: &Mat<f64>,
        stride: usize,
        limits: TrainingLimits,
    ) -> Result<Option<Cholesky>> {
        let mut hessian = self.hessian(theta, stride)?;
        self.make_up_for_scarce_columns(&mut hessian, stride)?;
        Ok(self.factor(&hessian, theta.nrows(), limits).ok())
    }

    /// Gives columns of which a sample has too little the curvature that they have in all rows, as
    /// far as other columns tell: with less of it, steps would go much too far along them.
    fn make_up_for_scarce_columns(&self, hessian: &mut Mat<f64>, stride: usize) -> Result<()> {
        let RowObjective {
            sample,
            frame,
            extra,
        } = self;
        let width = frame.basis.width();
        // Σ w x² of every column, over all rows and over the sample.
        let squares = sample.total(frame.threads, (width, 2), |_, members| {
            let mut squares = Mat::zeros(width, 2);
            let mut reader = PassReader::new(*frame);
            for (at, member) in members.iter().enumerate() {
                reader.read(member);
                reader.add_squares(member.weight, squares.col_as_slice_mut(0));
                if at % stride == 0 {
                    reader.add_squares(member.weight * stride as f64, squares.col_as_slice_mut(1));
                }
            }
            squares
        })?;
        let known: f64 = squares.col_as_slice(1).iter().sum();
        for c in 0..frame.outputs {
            let own: f64 = (0..width)
                .map(|j| {
                    hessian[(c * width + j, c * width + j)] - extra.bend_at(j, j, frame.outputs)
                })
                .sum();
            let bend = own / known;
            for j in (0..width).filter(|j| squares[(*j, 1)] < SCARCE * squares[(*j, 0)]) {
                hessian[(c * width + j, c * width + j)] +=
                    bend * (squares[(j, 0)] - squares[(j, 1)]);
            }
        }
        Ok(())
    }

    fn factor(
        &self,
        hessian: &Mat<f64>,
        width: usize,
        limits: TrainingLimits,
    ) -> std::result::Result<Cholesky, usize> {
        let penalty = &self.extra.penalty;
        Cholesky::factor(
            hessian,
            |at| penalty[at % width] == 0.0,
            par(limits.threads),
        )
    }

    /// The same by products in single precision, with what that made wrong, found by random
    /// vectors. None where it is too much.
    fn single_bowl(
        &self,
        theta: &Mat<f64>,
        limits: TrainingLimits,
    ) -> Result<Option<QuadraticBowl>> {
        if !self.sample.is_held() || self.sample.is_thin(self.frame) {
            return Ok(None);
        }
        let Some(hessian) = self.single_hessian(theta)? else {
            return Ok(None);
        };
        let Ok(factor) = self.factor(&hessian, theta.nrows(), limits) else {
            return Ok(None);
        };
        let wrong = self.rounded_away(theta, &hessian, &factor)?;
        Ok((wrong <= MOST_ROUNDED).then_some(QuadraticBowl {
            hessian,
            factor,
            wrong,
            passes: SINGLE_PASSES,
        }))
    }

    /// At least ‖H^-½(Ĥ − H)H^-½‖ for a Hessian Ĥ = LLᵀ that rounding has made: each of some random
    /// vectors v gives ‖L⁻¹(Ĥ − H)L⁻ᵀv‖, with products of H by passes over the rows in double
    /// precision.
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
            largest = if found.is_nan() {
                f64::INFINITY
            } else {
                largest.max(found)
            };
        }
        // From a fraction of Ĥ to one of H.
        let wrong = PROBE_SAFETY * largest;
        Ok(if wrong < 1.0 {
            wrong / (1.0 - wrong)
        } else {
            f64::INFINITY
        })
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

    /// Rows of several classes with columns that depend on each other, nearly (the first eighty) or
    /// altogether (levels, of this unit).
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
            features.extend(
                (0..width - 80).map(|level| f64::from(u8::from(level == k * 31 % 20)) * unit),
            );
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
            operator_norm(total, &[], 5, |v| {
                factor.sandwich(v, |v| *v = &apart * &*v, faer::Par::Seq)
            })
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
        assert!(
            said > 0.0 && said < 3e-3 && found <= said,
            "{found:e} of {said:e}"
        );
        for k in 0..2 {
            let evidence = fitted.forget(&Auto::default(), &[RowId(k * 11)]).unwrap();
            let fresh = recipe.fit_store(fitted.rows()).unwrap();
            let [(a, b), (c, d)] = [fitted.model().parameters(), fresh.parameters()];
            let intercepts: f64 = b.iter().zip(&d).map(|(b, d)| (b - d).powi(2)).sum();
            let found = norm(&(a - c)).hypot(intercepts.sqrt());
            assert!(
                found <= evidence.bound && evidence.relative_bound <= 3e-4,
                "{found:e}"
            );
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
                objective.bowl(&model.theta, limits)
            })
            .unwrap();
        assert_eq!(bowl.wrong, 0.0);
    }
}
