//! A distance bound with the intercepts profiled out: it holds anywhere, however rare a class is.
//!
//! `bound.rs` divides by the least eigenvalue of the Hessian. Intercepts are not penalised, so that
//! a class of few rows makes that eigenvalue collapse (4e-9 with 52 classes of text), and so does
//! every bound. But the coefficients β alone are held by the penalty: h(β) = min_b L(β, b) is as
//! strongly convex as the penalty is, everywhere and not only near the optimum. With Λ the
//! penalties of the columns, b̂ the best intercepts for β, and e the way from β to the optimum,
//!
//! ```text
//! ‖e‖_Λ ≤ ‖∇h(β)‖_{Λ⁻¹},   ∇h(β) = ∂L/∂β at (β, b̂),   ‖e‖ = ‖e‖_Λ/√λ in the caller's coordinates.
//! ```
//!
//! The intercepts follow. As β moves by dβ, a row's scores move by v_i = dβᵀx_i, and db̂ solves Σ
//! w_i J_i(v_i + db̂) = 0. For two classes db̂ is a weighted mean of the −v_i, so that |db̂| ≤
//! max|v_i|. For c classes (J u)_a = Σ_b p_a p_b(u_a − u_b): sum the equations over a set T of
//! classes, and all terms inside T cancel. What is left says that over the pairs from T to the
//! other classes, weighted by Σ_i w_i p_ia p_ib > 0, the mean of db̂_a − db̂_b is the mean of v_ib
//! − v_ia, at most V = max_i(max v_i − min v_i). Let T be the classes above a gap in the sorted
//! db̂: the gap is at most that mean. There are c − 1 gaps, so that max db̂ − min db̂ ≤ (c − 1)V;
//! and the sum of db̂ is 0. With R the largest ‖x_i‖_{Λ⁻¹}, integrated along the way,
//!
//! ```text
//! ‖b̂(β) − b*‖ ≤ κ·R·‖e‖_Λ,   κ = 1 for two classes, (c − 1)·√c/2·√2 for more.
//! ```
//!
//! κ is large where there are many classes, and R where rows are long. The loss itself holds the
//! intercepts better. With u_i the move of a row's scores from (β, b̂) to the optimum, without
//! their mean,
//!
//! ```text
//! Σ w_i⟨p_i − p*_i, u_i⟩ + ‖e‖²_Λ = ∇h(β)ᵀe,   hence   Σ w_i⟨p_i − p*_i, u_i⟩ ≤ ‖∇h(β)‖²_{Λ⁻¹}/4 = D,
//! ```
//!
//! because both gradients by b are 0. J_i is at least a_i = min p_i across moves that sum to 0, and
//! falls by e^{−M‖u‖} at most along u, so that a row's term is at least a_i·‖u_i‖(1 −
//! e^{−M‖u_i‖})/M ≥ 0.77·a_i·H(‖u_i‖), H(r) being r² up to ρ = 1/(2M) and 2ρr − ρ² beyond. H is
//! convex: the mean m of the ‖u_i‖, weighted by w_i a_i, has H(m) ≤ D/(0.77·A), A = Σ w_i a_i. And
//! the same mean of the u_i is b̂ − b* and what e makes of the mean row x̄ of these weights, so
//! that
//!
//! ```text
//! ‖b̂(β) − b*‖ ≤ m + ‖x̄‖_{Λ⁻¹}·‖e‖_Λ.
//! ```
//!
//! This holds anywhere too. Columns have their origin near their mean, so that x̄ is short,
//! whatever R is. For two classes a_i = p(1 − p).
//!
//! Costs one pass over the rows, and O(nc²) for the intercepts.

use faer::{Accum, Mat, Par};

use super::bound::price;
use super::pass::{BLOCK, PassFrame};
use super::reader::PassReader;
use super::sample::{RowLines, RowSample, WeightedRow};
use super::{Link, LogisticModel};
use crate::error::Result;
use crate::linalg::{Cholesky, UNIT, multiply_lower, norm, symmetric_eigen, weighted_square};
use crate::rows::RowRef;

/// More classes than this have intercepts that are too dear to find.
const MOST_CLASSES: usize = 512;
/// Newton steps for the intercepts.
const MOST_STEPS: usize = 60;
/// A step that leaves more than this share of the gradient's square asks for the bend where it led.
const WORN: f64 = 0.01;
/// A bend that was looked up so near stands in for the one at the best intercepts.
const NEARBY: f64 = 0.01;
/// What is no more than this share of a bound is not worth finding out better.
const MINOR: f64 = 0.02;
/// The least of x(1 − e^{−x}) as a share of x², or of x − ¼ where x is above ½.
const LEAST_BENT: f64 = 0.77;

/// The rows' loss as a function of the intercepts alone.
struct InterceptLoss<'a> {
    sample: &'a RowSample<'a>,
    frame: PassFrame<'a>,
    /// The scores of all rows.
    scores: &'a RowLines,
    penalty: &'a [f64],
    link: Link,
    outputs: usize,
}

/// That loss at one place.
struct InterceptPlace {
    loss: f64,
    gradient: Vec<f64>,
    /// Σ w(|p − y| + p(1 − p)): what rounding of the gradient is measured by.
    size: Vec<f64>,
}

/// How that loss bends at one place.
struct InterceptBend {
    /// W = Σ w J, and for a softmax 11ᵀ times the rows' weight, which holds the sum in place. The
    /// lower triangle.
    hessian: Mat<f64>,
    factor: Cholesky,
    /// A = Σ w a, and ‖x̄‖ in the norm of Λ⁻¹.
    held: f64,
    mean_reach: f64,
    /// The place.
    shift: Vec<f64>,
}

/// The best intercepts, and how well they are known.
struct BestIntercepts {
    /// What is to be added to the intercepts at hand.
    shift: Vec<f64>,
    /// At least their distance to the exact ones, in the norm of W and in the plain one.
    local: f64,
    distance: f64,
    /// At most A at the best ones, and the ‖x̄‖ that goes with it.
    held: f64,
    mean_reach: f64,
}

impl BestIntercepts {
    /// At least how far the optimum's are from the exact ones, where the coefficients are within
    /// `way` of it in the norm of Λ.
    fn follow(&self, way: f64, concordance: f64) -> f64 {
        let square = 0.25 * way * way / (LEAST_BENT * self.held);
        let knee = 0.5 / concordance;
        let mean = if square <= knee * knee {
            square.sqrt()
        } else {
            0.5 * (square / knee + knee)
        };
        mean + self.mean_reach * way
    }
}

impl InterceptLoss<'_> {
    /// Calls `see` with every row, and its scores at these intercepts.
    fn each(&self, shift: &[f64], mut see: impl FnMut(&WeightedRow<'_>, &[f64])) -> Result<()> {
        let mut line = vec![0.0; self.outputs];
        self.sample.each_part(|offset, members| {
            let lines = self
                .sample
                .lines_of(self.frame, self.scores, offset, members);
            for (member, scores) in members.iter().zip(lines.chunks_exact(self.outputs)) {
                moved(scores, shift, &mut line);
                see(member, &line);
            }
        })
    }

    fn at(&self, shift: &[f64]) -> Result<InterceptPlace> {
        let outputs = self.outputs;
        let mut place = InterceptPlace {
            loss: 0.0,
            gradient: vec![0.0; outputs],
            size: vec![0.0; outputs],
        };
        let mut residual = vec![0.0; outputs];
        self.each(shift, |member, line| {
            place.loss += member.weight * self.link.judge(line, member.class, &mut residual).0;
            for (a, residual) in residual.iter().enumerate() {
                // Whether |p − y| is p or 1 − p, p(1 − p) is it times 1 less it.
                let wrong = residual.abs();
                place.gradient[a] += member.weight * residual;
                place.size[a] += member.weight * wrong * (2.0 - wrong);
            }
        })?;
        Ok(place)
    }

    /// None where the bend cannot be told from a singular one.
    fn bend(&self, shift: &[f64]) -> Result<Option<InterceptBend>> {
        let outputs = self.outputs;
        let mut hessian = Mat::zeros(outputs, outputs);
        let mut probabilities = Mat::zeros(outputs, BLOCK);
        let mut scaled = Mat::zeros(outputs, BLOCK);
        let mut count = 0;
        let mut weight = 0.0;
        let mut line = vec![0.0; outputs];
        let mut mean = vec![0.0; self.frame.basis.width()];
        // −Σ w ppᵀ, a block of rows at a time.
        let subtract = |hessian: &mut Mat<f64>, p: &Mat<f64>, wp: &Mat<f64>, count: usize| {
            let p = p.as_ref().subcols(0, count).transpose();
            multiply_lower(
                hessian.as_mut(),
                Accum::Add,
                wp.as_ref().subcols(0, count),
                p,
                -1.0,
                Par::Seq,
            );
        };
        self.sample.each_part(|offset, members| {
            let lines = self
                .sample
                .lines_of(self.frame, self.scores, offset, members);
            let mut reader = PassReader::raw(self.frame);
            let mut sum = vec![0.0; mean.len()];
            for (member, scores) in members.iter().zip(lines.chunks_exact(outputs)) {
                moved(scores, shift, &mut line);
                weight += member.weight;
                let p = probabilities.col_as_slice_mut(count);
                self.link.probabilities(&line, p);
                reader.read(member);
                reader.add_to(member.weight * self.link.least_bend(&line, p), &mut sum);
                if self.link == Link::Logistic {
                    hessian[(0, 0)] += member.weight * self.link.bend(&line, p, 0, 0);
                    continue;
                }
                let scaled_line = scaled.col_as_slice_mut(count).iter_mut();
                scaled_line
                    .zip(p)
                    .for_each(|(own, p)| *own = member.weight * *p);
                count += 1;
                if count == BLOCK {
                    subtract(&mut hessian, &probabilities, &scaled, count);
                    count = 0;
                }
            }
            reader.inner(&mut sum);
            mean.iter_mut()
                .zip(sum)
                .for_each(|(mean, sum)| *mean += sum);
        })?;
        if self.link == Link::Softmax {
            subtract(&mut hessian, &probabilities, &scaled, count);
            // The lines of J sum to 0. A sum of p_a·p_b over the other classes loses nothing where
            // p − p² would.
            let others = |a: usize| {
                (0..outputs)
                    .filter(|b| *b != a)
                    .map(|b| hessian[(a.max(b), a.min(b))])
                    .sum()
            };
            let diagonal: Vec<f64> = (0..outputs).map(others).collect();
            for (a, others) in diagonal.iter().enumerate() {
                hessian[(a, a)] = -others;
                (0..=a).for_each(|b| hessian[(a, b)] += weight / outputs as f64);
            }
        }
        let factor = Cholesky::factor(&hessian, |_| false, Par::Seq).ok();
        let shift = shift.to_vec();
        // The constant of a row is 1, so that the first sum is that of the weights.
        let held = mean[0];
        let square = mean[1..]
            .iter()
            .zip(&self.penalty[1..])
            .map(|(sum, penalty)| (sum / held).powi(2) / penalty);
        let mean_reach = square.sum::<f64>().sqrt();
        Ok(factor.map(|factor| InterceptBend {
            hessian,
            factor,
            held,
            mean_reach,
            shift,
        }))
    }

    /// The minimum, by Newton's method; None where it cannot be told from a place on the way to
    /// infinity. `blur` is how much rounding can change a score.
    fn minimum(&self, blur: f64) -> Result<Option<BestIntercepts>> {
        let concordance = self.link.concordance();
        let mut shift = vec![0.0; self.outputs];
        let mut place = self.at(&shift)?;
        let Some(mut bend) = self.bend(&shift)? else {
            return Ok(None);
        };
        for _ in 0..MOST_STEPS {
            let mut step = Mat::from_fn(self.outputs, 1, |c, _| place.gradient[c]);
            bend.factor.solve(step.as_mut(), Par::Seq);
            let slope: f64 = (0..self.outputs)
                .map(|c| step[(c, 0)] * place.gradient[c])
                .sum();
            // A step that is all rounding of the gradient leads nowhere.
            let mut rounded = Mat::from_fn(self.outputs, 1, |c, _| blur * place.size[c]);
            bend.factor.solve(rounded.as_mut(), Par::Seq);
            let hidden: f64 = (0..self.outputs)
                .map(|c| rounded[(c, 0)] * blur * place.size[c])
                .sum();
            if slope <= hidden.max(f64::MIN_POSITIVE) {
                break;
            }
            // Where the loss cannot tell whether a step helps, the gradient can, and a shorter one
            // is no better.
            let most = if slope <= 1e-3 * UNIT * place.loss.abs() {
                1
            } else {
                30
            };
            let mut found = None;
            for halvings in 0..most {
                let length = 0.5f64.powi(halvings);
                let moved: Vec<f64> = (0..self.outputs)
                    .map(|c| shift[c] - length * step[(c, 0)])
                    .collect();
                let next = self.at(&moved)?;
                let falls = next.loss <= place.loss - 0.1 * length * slope;
                let shrinks = square(&next.gradient) < 0.25 * square(&place.gradient);
                if falls || (shrinks && next.loss <= place.loss * (1.0 + 1e-12)) {
                    found = Some((moved, next));
                    break;
                }
            }
            let Some((moved, next)) = found else { break };
            let worn = square(&next.gradient) > WORN * square(&place.gradient);
            shift = moved;
            place = next;
            // A bend that was looked up nearby does as long as the steps are good.
            if worn {
                let Some(here) = self.bend(&shift)? else {
                    return Ok(None);
                };
                bend = here;
            }
        }
        let way = |bend: &InterceptBend| concordance * distance(&bend.shift, &shift);
        if way(&bend) > NEARBY {
            let Some(here) = self.bend(&shift)? else {
                return Ok(None);
            };
            bend = here;
        }
        // Every J is within this factor of the one that was looked up.
        let turned = way(&bend).exp();
        let inverse = bend.factor.inverse(Par::Seq);
        let values = symmetric_eigen(bend.hessian.as_ref(), Par::Seq).map(|(values, _)| values);
        let least = values
            .and_then(|values| values.first().copied())
            .filter(|least| *least > 0.0);
        let Some(least) = least.map(|least| least / turned) else {
            return Ok(None);
        };
        // What is left of the gradient, and what its evaluation can hide, in the norm of W⁻¹.
        let left: Vec<f64> = (0..self.outputs)
            .map(|c| place.gradient[c].abs() + blur * place.size[c])
            .collect();
        let mut local = 0.0;
        for a in 0..self.outputs {
            for b in 0..self.outputs {
                local += turned * left[a] * left[b] * inverse[(a, b)].abs();
            }
        }
        let reached = concordance * (local / least).sqrt();
        if reached.is_nan() || reached >= 1.0 {
            return Ok(None);
        }
        let local = local.sqrt() * price(reached) * reached.exp();
        let distance = local / least.sqrt();
        // A probability changes by a factor of e² at most for every unit that its scores move.
        let held = bend.held * (-2.0 * (way(&bend) / concordance + distance)).exp() * (1.0 - 1e-6);
        let mean_reach = bend.mean_reach * (1.0 + 1e-6);
        Ok(Some(BestIntercepts {
            shift,
            local,
            distance,
            held,
            mean_reach,
        }))
    }
}

/// The squares of rows, without their constants, in the norm of Λ⁻¹.
struct PenalisedSquares<'a> {
    frame: PassFrame<'a>,
    penalty: &'a [f64],
    /// For every feature that keeps its origin, what brings it to inner units, and what its square
    /// counts for there.
    scales: Vec<f64>,
    shares: Vec<f64>,
}

impl<'a> PenalisedSquares<'a> {
    fn new(frame: PassFrame<'a>, penalty: &'a [f64]) -> Self {
        let first = frame.basis.intercept as usize;
        let features = if frame.basis.is_unshifted() {
            penalty.len() - first
        } else {
            0
        };
        let scales = (0..features)
            .map(|j| frame.basis.inverse_scale(j))
            .collect();
        let shares = penalty[first..first + features]
            .iter()
            .map(|penalty| 1.0 / penalty)
            .collect();
        Self {
            frame,
            penalty,
            scales,
            shares,
        }
    }

    fn of(&self, member: &WeightedRow<'_>) -> f64 {
        if self.frame.lies_ready(member)
            && let RowRef::Dense64(x) = member.features
        {
            return weighted_square(x, &self.scales, &self.shares);
        }
        let first = self.frame.basis.intercept as usize;
        let mut sum = 0.0;
        let mut add = |j: usize, x: f64| sum += (x * member.scale).powi(2) / self.penalty[j];
        if self.frame.basis.is_unshifted() {
            member
                .features
                .each(|j, x| add(first + j, x * self.scales[j]));
        } else {
            let mut reader = PassReader::new(self.frame);
            reader.read(member);
            reader.each(|j, x| {
                if j >= first {
                    add(j, x);
                }
            });
        }
        sum
    }
}

/// Scores with other intercepts.
fn moved(scores: &[f64], shift: &[f64], line: &mut [f64]) {
    line.iter_mut()
        .zip(scores.iter().zip(shift))
        .for_each(|(z, (score, shift))| *z = score + shift);
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>()
        .sqrt()
}

/// Parameters with the best intercepts for their coefficients.
pub(crate) struct ProfiledPlace {
    pub(crate) theta: Mat<f64>,
    /// The gradient there.
    pub(crate) gradient: Mat<f64>,
    /// At least the distance from there to the optimum, in the caller's coordinates, columns that
    /// no row has left out.
    pub(crate) bound: f64,
    /// The same for the parameters that were asked about.
    bound_before: f64,
}

impl LogisticModel {
    /// At least the distance to the optimum of these rows in the caller's coordinates, columns that
    /// no row has left out; infinite where this way of bounding it says nothing.
    pub(crate) fn profiled_bound(&self, sample: &RowSample<'_>) -> Result<f64> {
        Ok(self
            .profiled(sample)?
            .map_or(f64::INFINITY, |place| place.bound_before))
    }

    /// The largest ‖x‖ in the norm of Λ⁻¹, constants left out.
    fn penalised_reach(&self, sample: &RowSample<'_>) -> Result<f64> {
        let squares = PenalisedSquares::new(self.frame(), &self.extra.penalty);
        let mut reach = 0.0f64;
        sample.each_part(|_, members| {
            reach = members
                .iter()
                .map(|member| squares.of(member))
                .fold(reach, f64::max);
        })?;
        Ok(reach.sqrt())
    }

    /// The best intercepts for the coefficients at hand, the gradient there, and the bound that
    /// follows. None where this way of bounding says nothing.
    pub(crate) fn profiled(&self, sample: &RowSample<'_>) -> Result<Option<ProfiledPlace>> {
        let lambda = self.settings.logistic.lambda;
        let outputs = self.outputs();
        if lambda <= 0.0 || self.settings.is_private() || outputs > MOST_CLASSES {
            return Ok(None);
        }
        let frame = self.frame();
        let first = self.basis.intercept as usize;
        let penalty = &self.extra.penalty;
        let mut theta = self.theta.clone();
        let mut scores = sample.scores(frame, &theta)?;
        let mut intercepts = BestIntercepts {
            shift: vec![0.0; outputs],
            local: 0.0,
            distance: 0.0,
            held: 0.0,
            mean_reach: 0.0,
        };
        if first == 1 {
            let length = 8.0 + (theta.nrows() as f64).sqrt() + (sample.shape.members as f64).sqrt();
            let blur = UNIT * length * (1.0 + self.facts.reach * norm(&theta));
            let link = self.settings.link;
            let loss = InterceptLoss {
                sample,
                frame,
                scores: &scores,
                penalty,
                link,
                outputs,
            };
            let Some(found) = loss.minimum(blur)? else {
                return Ok(None);
            };
            intercepts = found;
            if link == Link::Softmax {
                // The intercepts of the optimum sum to 0; the loss does not see their sum.
                let sum: f64 = (0..outputs)
                    .map(|c| theta[(0, c)] + intercepts.shift[c])
                    .sum();
                intercepts
                    .shift
                    .iter_mut()
                    .for_each(|shift| *shift -= sum / outputs as f64);
            }
            (0..outputs).for_each(|c| theta[(0, c)] += intercepts.shift[c]);
            match &mut scores {
                RowLines::Kept(lines) => lines.chunks_exact_mut(outputs).for_each(|line| {
                    line.iter_mut()
                        .zip(&intercepts.shift)
                        .for_each(|(score, shift)| *score += shift);
                }),
                _ => scores = RowLines::Scores(theta.clone()),
            }
        }
        // Adding the shift to a score rounds once more than a product does.
        let hidden = 2.0 * self.hidden(&self.facts, &theta);
        let mut gradient = sample.gradient_at(frame, &scores)?;
        self.extra.slope(&theta, &mut gradient);
        let dead = self.dead_columns();
        let mut pull = 0.0;
        for j in (first..penalty.len()).filter(|j| dead.binary_search(j).is_err()) {
            pull += (0..outputs).map(|c| gradient[(j, c)].powi(2)).sum::<f64>() / penalty[j];
        }
        let least = penalty[first..]
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let known = pull.sqrt() + hidden / least.sqrt();
        // With exact intercepts the gradient would differ by Σ w x ⊗ Jδ, and ‖Jδ‖ ≤ √‖J‖·√(δᵀJδ).
        let inexact =
            (self.settings.link.curvature() * self.facts.weight).sqrt() * intercepts.local;
        let near = |way: f64| intercepts.follow(way, self.settings.link.concordance());
        // How far rows reach is known roughly; more is found out where it would say more.
        let mut reach = self.facts.reach / least.sqrt();
        let way = known + reach * inexact;
        if reach * inexact > MINOR * known || first == 1 && near(way) > MINOR * way / lambda.sqrt()
        {
            reach = self.penalised_reach(sample)?;
        }
        let way = known + reach * inexact;
        let coefficients = way / lambda.sqrt();
        let classes = outputs as f64;
        let follows = match self.settings.link {
            Link::Logistic => 1.0,
            Link::Softmax => (classes - 1.0) * (0.5 * classes).sqrt(),
        };
        // An intercept of the caller's takes up what shifting the columns left in ours.
        let origin = square(&self.basis.parts().0).sqrt();
        let constants = match first {
            0 => 0.0,
            _ => intercepts.distance + near(way).min(follows * reach * way) + origin * coefficients,
        };
        let shift = square(&intercepts.shift).sqrt();
        let rounding = 4.0 * UNIT * self.basis.caller_norm(&theta);
        let rounded = |bound: f64| {
            if bound.is_nan() {
                f64::INFINITY
            } else {
                bound + rounding
            }
        };
        Ok(Some(ProfiledPlace {
            theta,
            gradient,
            bound: rounded(coefficients.hypot(constants)),
            bound_before: rounded(coefficients.hypot(shift + constants)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::models::logistic::{Logistic, Softmax};
    use crate::rows::{Dense, Rows};
    use crate::traits::Fit;

    /// Rows of unlike columns, some far from 0, and of classes some of which are rare.
    fn problem(random: &mut ChaCha8Rng, classes: usize, width: usize) -> Rows {
        let count = random.random_range(20 * classes..60 * classes);
        let far = if random.random_bool(0.5) {
            random.random_range(-20.0..20.0)
        } else {
            0.0
        };
        let scale = 10f64.powf(random.random_range(-1.0..1.0));
        let mut features = Vec::new();
        let mut targets = Vec::new();
        for row in 0..count {
            let rare = random.random_range(0.0..1.0f64).powi(3);
            let class = if row < 2 * classes {
                row % classes
            } else {
                (rare * classes as f64) as usize
            };
            for column in 0..width {
                let own = if column % classes == class { 1.0 } else { 0.0 };
                features.push(far + scale * (own + random.random_range(-1.0..1.0)));
            }
            match classes {
                2 => targets.push(if class == 1 { 1.0 } else { -1.0 }),
                _ => targets.extend((0..classes).map(|c| (c == class) as u8 as f64)),
            }
        }
        let outputs = if classes == 2 { 1 } else { classes };
        Rows::new(Dense::new(features, width).unwrap(), targets, outputs).unwrap()
    }

    #[test]
    fn no_bound_is_exceeded_near_the_optimum_or_far_from_it() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut tightest = f64::INFINITY;
        for _ in 0..150 {
            let classes = random.random_range(2..7);
            let width = random.random_range(1..9);
            let lambda = 10f64.powf(random.random_range(-2.0..1.5));
            let rows = problem(&mut random, classes, width);
            let optimum = match classes {
                2 => Logistic::new(lambda).fit(&rows).unwrap(),
                _ => Softmax::new(lambda).fit(&rows).unwrap(),
            };
            let known = optimum.current_bound().absolute;
            for size in [1e-7, 1e-3, 0.1, 1.0, 10.0] {
                let mut moved = optimum.clone();
                // Moves of one column alone make the intercepts follow; others do not.
                let only = random
                    .random_bool(0.5)
                    .then(|| random.random_range(0..moved.theta.nrows()));
                for c in 0..moved.theta.ncols() {
                    for j in 0..moved.theta.nrows() {
                        let step = size * random.random_range(-1.0..1.0);
                        moved.theta[(j, c)] += if only.is_none_or(|only| only == j) {
                            step
                        } else {
                            0.0
                        };
                    }
                }
                let place = moved
                    .over_all_rows(&rows, |sample| moved.profiled(sample))
                    .unwrap();
                let Some(place) = place else { continue };
                let apart = |theta: &Mat<f64>| moved.basis.caller_norm(&(theta - &optimum.theta));
                let truth = apart(&place.theta);
                assert!(
                    place.bound + known >= truth,
                    "{} below {truth}",
                    place.bound
                );
                assert!(place.bound_before + known >= apart(&moved.theta));
                if size >= 1e-3 {
                    tightest = tightest.min(place.bound / truth);
                }
            }
        }
        // A bound that nothing comes near would be no use, and no test of it either.
        assert!(tightest < 1.5, "{tightest}");
    }

    #[test]
    fn long_rows_about_their_mean_do_not_loosen_the_intercepts() {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let (count, width, classes) = (300, 120, 4);
        let features = (0..count * width)
            .map(|_| random.random_range(-1.7..1.7))
            .collect();
        let targets =
            (0..count).flat_map(|row| (0..classes).map(move |c| (c == row % classes) as u8 as f64));
        let rows = Rows::new(
            Dense::new(features, width).unwrap(),
            targets.collect(),
            classes,
        )
        .unwrap();
        let mut moved = Softmax::new(1.0).fit(&rows).unwrap();
        moved.theta[(3, 1)] += 1e-3;
        let place = moved
            .over_all_rows(&rows, |sample| moved.profiled(sample))
            .unwrap()
            .unwrap();
        let gradient = (1..moved.theta.nrows())
            .flat_map(|j| (0..classes).map(move |c| (j, c)))
            .map(|at| place.gradient[at].powi(2))
            .sum::<f64>()
            .sqrt();
        // The coefficients are within ‖∇h‖/λ; the intercepts add a small share of that, where ‖x‖
        // is 11.
        assert!(place.bound < 3.0 * gradient, "{} {gradient}", place.bound);
    }

    #[test]
    fn a_rows_term_is_at_least_its_convex_minorant() {
        for step in 1..40_000 {
            let x = f64::from(step) * 1e-3;
            let minorant = if x <= 0.5 { x * x } else { x - 0.25 };
            assert!(x * -(-x).exp_m1() >= LEAST_BENT * minorant, "{x}");
        }
    }
}
