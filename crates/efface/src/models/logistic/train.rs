//! Training: Newton's method to a gradient norm of 1e-10.
//!
//! Why not L-BFGS: the optimum has to be good to ten digits before the theory of forgetting holds, and there the quadratic
//! convergence of Newton's method tells; and the Hessian at the optimum is what forgetting needs anyway, so that its last
//! factor is not thrown away. A Hessian costs as much as dozens of gradients, so a factor is kept as long as it still
//! brings the gradient down by a factor of five, and far from the optimum, where no direction is worth much, a sample of
//! the rows stands for all. A model too wide for any Hessian solves for the same steps by conjugate gradients.

use faer::Mat;

use super::objective::{Objective, Place, flat, shaped};
use crate::error::{Error, Result};
use crate::linalg::{CgSettings, Cholesky, UNIT, add_scaled, conjugate_gradients, dot, norm, par};

/// A factor that brings the gradient down by less than this is made anew.
const WORN: f64 = 0.2;
/// Above this share of the first gradient, a sample of the rows gives the direction.
const FAR: f64 = 1e-3;
/// The sample has so many rows for every parameter.
const SAMPLE: usize = 8;
/// A Hessian is kept for forgetting when it was made so near the optimum, relative to the parameters.
const NEAR: f64 = 1e-5;
/// A loss is known to this relative accuracy.
const NOISE: f64 = 1e-13;
/// Conjugate-gradient steps before giving up.
const CG_LIMIT: usize = 10_000;

/// How to train.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) gradient: f64,
    pub(crate) iterations: usize,
    pub(crate) threads: usize,
    /// Whether a d×d Hessian is affordable.
    pub(crate) dense: bool,
    /// Whether the Hessian at the optimum is wanted.
    pub(crate) keep: bool,
}

/// A Hessian's lower triangle, its factor, and where it was made.
pub(crate) struct Bowl {
    pub(crate) hessian: Mat<f64>,
    pub(crate) factor: Cholesky,
    pub(crate) theta: Mat<f64>,
}

pub(crate) struct Trained {
    pub(crate) place: Place,
    pub(crate) bowl: Option<Bowl>,
    pub(crate) iterations: usize,
    pub(crate) passes: usize,
}

/// The minimum, from the parameters given. `free` says which parameters no penalty holds.
pub(crate) fn train(objective: &Objective<'_>, start: Mat<f64>, limits: Limits) -> Result<Trained> {
    let width = start.nrows();
    let mut place = objective.at(start);
    let mut passes = 1;
    if !place.loss.is_finite() || !norm(&place.gradient).is_finite() {
        return Err(Error::Overflow);
    }
    let first = norm(&place.gradient);
    let floor = objective.floor();
    let mut bowl: Option<Bowl> = None;
    // Whether the factor is that of a sample of the rows, and whether a sample is still good enough.
    let mut sampled = false;
    let mut sample_serves = true;
    let mut worn = false;
    let mut iterations = 0;
    loop {
        let size = norm(&place.gradient);
        if size <= limits.gradient {
            break;
        }
        if objective.extra.least() == 0.0 && place.margin > 0.0 && objective.has_no_penalty() {
            return Err(Error::Separable);
        }
        if iterations == limits.iterations {
            return Err(Error::NotTrained { iterations, gradient: size, tolerance: limits.gradient });
        }
        let step = if limits.dense {
            if bowl.is_none() || worn {
                let stride = objective.stride(sample_serves && size > FAR * first);
                bowl = Some(objective.bowl(&place.theta, stride, limits)?);
                sampled = stride > 1;
                passes += 1;
            }
            let mut step = flat(&place.gradient);
            if let Some(bowl) = &bowl {
                bowl.factor.solve(step.as_mut(), par(limits.threads));
            }
            step
        } else {
            // Far from the optimum a rough direction is enough; near it, as good as the gradient is small.
            let accuracy = (size / first).sqrt().clamp(1e-4, 0.1);
            let (step, products) = objective.solve(&place.theta, &flat(&place.gradient), accuracy)?;
            passes += products;
            step
        };
        let slope = dot(flat(&place.gradient).col_as_slice(0), step.col_as_slice(0));
        let (next, tried) = objective.search(&place, &shaped(&step, width), slope);
        passes += tried;
        iterations += 1;
        let Some(next) = next else {
            // No step helps: rounding is all that is left, or the factor is worn.
            if size <= floor || slope <= NOISE * place.loss.abs().max(1.0) {
                break;
            }
            if (worn && !sampled) || !limits.dense {
                return Err(Error::NotTrained { iterations, gradient: size, tolerance: limits.gradient });
            }
            (worn, sample_serves) = (true, false);
            continue;
        };
        let reached = norm(&next.gradient);
        worn = reached > WORN * size;
        sample_serves &= !sampled || reached < 0.5 * size;
        let stuck = reached > 0.5 * size && reached <= floor;
        place = next;
        if stuck {
            break;
        }
    }
    if limits.keep && limits.dense {
        let near = NEAR * (1.0 + norm(&place.theta));
        let fresh = bowl.as_ref().is_some_and(|bowl| !sampled && norm(&(&bowl.theta - &place.theta)) <= near);
        if !fresh {
            bowl = Some(objective.bowl(&place.theta, 1, limits)?);
            passes += 1;
        }
    } else {
        bowl = None;
    }
    Ok(Trained { place, bowl, iterations, passes })
}

impl Objective<'_> {
    /// The gradient norm that rounding alone can leave.
    fn floor(&self) -> f64 {
        let sum: f64 = self.sample.members.iter().map(|member| member.weight).sum();
        64.0 * UNIT * sum.max(1.0) * (self.frame.basis.width() as f64).sqrt()
    }

    fn has_no_penalty(&self) -> bool {
        self.extra.penalty.iter().all(|penalty| *penalty == 0.0)
    }

    fn stride(&self, far: bool) -> usize {
        let wanted = SAMPLE * self.frame.basis.width() * self.frame.outputs;
        if far { (self.sample.members.len() / wanted.max(1)).clamp(1, 16) } else { 1 }
    }

    pub(crate) fn bowl(&self, theta: &Mat<f64>, stride: usize, limits: Limits) -> Result<Bowl> {
        let hessian = self.hessian(theta, stride);
        let width = theta.nrows();
        let penalty = &self.extra.penalty;
        let factor = Cholesky::factor(&hessian, |at| penalty[at % width] == 0.0, par(limits.threads));
        match factor {
            Ok(factor) => Ok(Bowl { hessian, factor, theta: theta.clone() }),
            // A sample may miss a column that all rows together determine.
            Err(_) if stride > 1 => self.bowl(theta, 1, limits),
            Err(pivot) => Err(Error::Singular { pivot: pivot % width, width }),
        }
    }

    /// H⁻¹·rhs by conjugate gradients, and the products with H that it took.
    pub(crate) fn solve(&self, theta: &Mat<f64>, rhs: &Mat<f64>, accuracy: f64) -> Result<(Mat<f64>, usize)> {
        let (apply, diagonal) = self.operator(theta);
        let mut solution = Mat::zeros(rhs.nrows(), 1);
        let settings = CgSettings { tolerance: accuracy, max_iterations: CG_LIMIT };
        let iterations = conjugate_gradients(
            apply,
            &diagonal,
            rhs.col_as_slice(0),
            solution.col_as_slice_mut(0),
            settings,
        )?;
        Ok((solution, iterations + 1))
    }

    /// Goes down along `step`, halving it until the loss or, where the loss is all rounding, the gradient falls.
    fn search(&self, place: &Place, step: &Mat<f64>, slope: f64) -> (Option<Place>, usize) {
        let size = norm(&place.gradient);
        let noise = NOISE * place.loss.abs().max(1.0);
        let mut length = 1.0;
        for tried in 1..=40 {
            let mut theta = place.theta.clone();
            for c in 0..theta.ncols() {
                add_scaled(theta.col_as_slice_mut(c), -length, step.col_as_slice(c));
            }
            let next = self.at(theta);
            let falls = next.loss <= place.loss - 0.1 * length * slope;
            let flat = slope.abs() <= 1e3 * noise && next.loss <= place.loss + noise;
            if next.loss.is_finite() && (falls || (flat && norm(&next.gradient) < 0.9 * size)) {
                return (Some(next), tried);
            }
            if slope <= noise && tried > 2 {
                return (None, tried);
            }
            length *= 0.5;
        }
        (None, 40)
    }
}
