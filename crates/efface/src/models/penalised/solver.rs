//! The minimum of one output's loss, by Newton's method, and how far from it a place can be.
//!
//! ```text
//! L(β, b) = Σ w_i ℓ(βᵀx_i + b, y_i) + λ/2 ‖β‖²        and λ/2 b² where the constant is penalised
//! ```
//!
//! Where every parameter is penalised, L is λ-strongly convex whatever the curvature of ℓ, so that
//! a place with the gradient g is at most ‖g‖/λ from the minimum. A free constant of a Poisson loss
//! is profiled out: for any β the best constant is b̂ = ln(Σwy / Σw e^{βᵀx}), h(β) = L(β, b̂) is
//! λ-strongly convex, and its gradient is that of L at (β, b̂). As β moves by dβ, b̂ moves by a
//! weighted mean of the −dβᵀx_i, so that |b̂(β) − b*| ≤ R‖β − β*‖ with R the largest norm of a row.
//!
//! A Newton step solves with the Hessian of all rows where the parameters stand: O(nd² + d³), or by
//! conjugate gradients where there are more than 2,048 features. Where the squared hinge jumps in
//! curvature any of its second derivatives leads downhill, and a step is halved until the loss
//! falls.

use std::marker::PhantomData;

use faer::{Accum, Mat, MatRef, Par};

use super::loss::PenalisedLoss;
use crate::error::{Error, Result};
use crate::linalg::{
    CgSettings, Cholesky, UNIT, add_scaled, by_diagonal, conjugate_gradients, dot, multiply_lower,
};
use crate::rows::{RowRef, RowStore, RowView, Rows};

/// More features than this have no d×d Hessian.
const WIDEST: usize = 2048;

/// Rows whose sums are made before they join the others: rounding grows with the longest sum.
const BLOCK: usize = 256;

/// About as many bytes as training holds beside the rows: a Hessian and its factor, or vectors
/// where there is no Hessian.
pub(super) fn bytes_of_sums(features: usize) -> u64 {
    let parameters = features as u64 + 1;
    let numbers = if features <= WIDEST {
        parameters * (parameters + BLOCK as u64) * 2
    } else {
        parameters * 16
    };
    numbers * 8
}

/// One row as a problem sees it.
struct ProblemRow<'a> {
    features: RowRef<'a>,
    weight: f64,
    target: f64,
    /// The norm of the features, with the constant's 1 where there is one.
    norm: f64,
}

/// Rows that a model is trained on: in memory, or in a store that is read block by block for every
/// pass.
#[derive(Clone, Copy)]
pub(super) enum TrainingRows<'a> {
    Held(&'a Rows),
    Passed(&'a dyn RowStore),
}

impl<'a> TrainingRows<'a> {
    pub(super) fn store(self) -> &'a dyn RowStore {
        match self {
            Self::Held(rows) => rows,
            Self::Passed(store) => store,
        }
    }

    /// Shows all rows, in one block where they are in memory.
    pub(super) fn each_block(self, see: &mut dyn FnMut(&Rows) -> Result<()>) -> Result<()> {
        match self {
            Self::Held(rows) => see(rows),
            Self::Passed(store) => store.each_block(&mut |block| {
                store.go_on()?;
                see(block)
            }),
        }
    }
}

/// The loss of one output over some rows.
pub(super) struct OutputProblem<'a, L> {
    rows: TrainingRows<'a>,
    /// The rows as the problem sees them, where they are in memory.
    held: Vec<ProblemRow<'a>>,
    output: usize,
    width: usize,
    lambda: f64,
    intercept: bool,
    /// Columns that no row has; their weight is 0.
    empty: Vec<usize>,
    is_sparse: bool,
    /// Σ w and Σ w y.
    weight: f64,
    weighted_targets: f64,
    /// The largest norm of a row.
    reach: f64,
    loss: PhantomData<L>,
}

/// The loss at one place.
pub(super) struct ProblemPlace {
    /// Coefficients, and behind them the constant.
    pub(super) theta: Vec<f64>,
    loss: f64,
    gradient: Vec<f64>,
    /// At least the norm of what rounding hides of the gradient.
    hidden: f64,
}

/// How far a place can be from the minimum.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceBound {
    pub(super) gradient: f64,
    pub(super) distance: f64,
}

impl<'a, L: PenalisedLoss> OutputProblem<'a, L> {
    /// The problem of the output numbered `output`; `lambda` is the penalty of the sum of losses.
    pub(super) fn new(
        rows: TrainingRows<'a>,
        output: usize,
        lambda: f64,
        intercept: bool,
        width: usize,
    ) -> Result<Self> {
        let mut problem = Self {
            rows,
            held: Vec::new(),
            output,
            width,
            lambda,
            intercept,
            empty: Vec::new(),
            is_sparse: rows.store().is_sparse(),
            weight: 0.0,
            weighted_targets: 0.0,
            reach: 0.0,
            loss: PhantomData,
        };
        if let TrainingRows::Held(rows) = rows {
            problem.held = rows
                .iter()
                .map(|row| problem.row(row))
                .collect::<Result<_>>()?;
        }
        let mut seen = vec![false; width];
        let [mut weight, mut targets, mut reach] = [0.0, 0.0, 0.0f64];
        problem.each_part(|rows| {
            for row in rows {
                row.features
                    .each(|feature, value| seen[feature] |= value != 0.0 && row.weight > 0.0);
                weight += row.weight;
                targets += row.weight * row.target;
                reach = reach.max(row.norm);
            }
        })?;
        if intercept && !L::PENALISED_CONSTANT && targets <= 0.0 {
            return Err(Error::Unsupported {
                method: "fit",
                reason:
                    "all targets are 0, so that the constant has no finite optimum; fit without a constant"
                        .into(),
            });
        }
        problem.empty = (0..width).filter(|feature| !seen[*feature]).collect();
        (problem.weight, problem.weighted_targets, problem.reach) = (weight, targets, reach);
        Ok(problem)
    }

    /// A row as the problem sees it.
    fn row<'r>(&self, row: RowView<'r>) -> Result<ProblemRow<'r>> {
        let target =
            L::target(row.targets[self.output], row.targets.len()).ok_or(Error::NotAClass {
                row: row.id,
                expected: L::EXPECTED,
            })?;
        let mut square = f64::from(u8::from(self.intercept));
        row.features.each(|_, value| square += value * value);
        Ok(ProblemRow {
            features: row.features,
            weight: row.weight,
            target,
            norm: square.sqrt(),
        })
    }

    /// Shows all rows, in as many parts as they are read in.
    fn each_part(&self, mut see: impl FnMut(&[ProblemRow<'_>])) -> Result<()> {
        if let TrainingRows::Held(_) = self.rows {
            see(&self.held);
            return Ok(());
        }
        self.rows.each_block(&mut |block| {
            let rows: Vec<ProblemRow<'_>> = block
                .iter()
                .map(|row| self.row(row))
                .collect::<Result<_>>()?;
            see(&rows);
            Ok(())
        })
    }

    /// Where training begins that knows nothing.
    pub(super) fn start(&self) -> Vec<f64> {
        let mut theta = vec![0.0; self.width + 1];
        if self.intercept && !L::PENALISED_CONSTANT {
            theta[self.width] = (self.weighted_targets / self.weight).ln();
        }
        theta
    }

    /// How the loss of a row bends, times its weight.
    fn bend(&self, row: &ProblemRow<'_>, theta: &[f64]) -> f64 {
        row.weight * L::at(self.score(row, theta), row.target).bend
    }

    /// The penalty of a parameter.
    fn penalty(&self, parameter: usize) -> f64 {
        if parameter < self.width || L::PENALISED_CONSTANT {
            self.lambda
        } else {
            0.0
        }
    }

    fn score(&self, row: &ProblemRow<'_>, theta: &[f64]) -> f64 {
        row.features.dot(&theta[..self.width]) + theta[self.width]
    }

    /// Loss and gradient, in one pass.
    pub(super) fn at(&self, theta: Vec<f64>) -> Result<ProblemPlace> {
        let mut gradient = vec![0.0; self.width + 1];
        let mut part = vec![0.0; self.width + 1];
        let mut loss = 0.0;
        let mut slopes = 0.0;
        let mut bends = 0.0;
        let mut blocks = 0;
        self.each_part(|rows| {
            for block in rows.chunks(BLOCK) {
                let mut block_loss = 0.0;
                for row in block {
                    let point = L::at(self.score(row, &theta), row.target);
                    block_loss += row.weight * point.loss;
                    let slope = row.weight * point.slope;
                    row.features.add_to(slope, &mut part[..self.width]);
                    part[self.width] += slope;
                    slopes += slope.abs() * row.norm;
                    bends += row.weight * point.bend * row.norm * row.norm;
                }
                loss += block_loss;
                add_scaled(&mut gradient, 1.0, &part);
                part.fill(0.0);
                blocks += 1;
            }
        })?;
        if !self.intercept {
            gradient[self.width] = 0.0;
        }
        for (parameter, (slope, value)) in gradient.iter_mut().zip(&theta).enumerate() {
            let penalty = self.penalty(parameter);
            *slope += penalty * value;
            loss += 0.5 * penalty * value * value;
        }
        let size = dot(&theta, &theta).sqrt();
        let longest = (BLOCK + blocks) as f64;
        // Sums over rows, the roundings of a score, and what these make of the slope at it.
        let hidden = UNIT
            * ((longest + 8.0) * slopes
                + (self.width as f64 + 4.0) * bends * size
                + 4.0 * self.lambda * size);
        Ok(ProblemPlace {
            theta,
            loss,
            gradient,
            hidden,
        })
    }

    /// The minimum from a start, or where `most` steps lead. Returns the steps that were taken.
    pub(super) fn minimised(&self, start: Vec<f64>, most: usize) -> Result<(ProblemPlace, usize)> {
        let mut start = start;
        self.empty.iter().for_each(|feature| start[*feature] = 0.0);
        let mut place = self.at(start)?;
        if !place.loss.is_finite() || !place.hidden.is_finite() {
            // Parameters that suited other rows may be far too large for these.
            place = self.at(self.start())?;
        }
        if !place.loss.is_finite() || !place.hidden.is_finite() {
            return Err(Error::Overflow);
        }
        let first = norm(&place.gradient);
        let mut steps = 0;
        while steps < most && norm(&place.gradient) > 0.0 {
            if let Some(stop) = self.rows.store().stop() {
                stop.go_on()?;
                // A step is a pass for the curvature and one for the gradient where it leads.
                stop.note_training(1 + 2 * steps, first, norm(&place.gradient), place.hidden);
            }
            let direction = self.direction(&place)?;
            let Some(next) = self.downhill(&place, &direction)? else {
                break;
            };
            steps += 1;
            // Once the gradient is of the size of its own rounding, it falls no further.
            let is_done = norm(&next.gradient) > 0.5 * norm(&place.gradient)
                && norm(&place.gradient) <= place.hidden;
            place = next;
            if is_done {
                break;
            }
        }
        Ok((self.with_best_constant(place)?, steps))
    }

    /// H⁻¹·gradient.
    fn direction(&self, place: &ProblemPlace) -> Result<Vec<f64>> {
        let mut direction = if self.width <= WIDEST {
            let hessian = self.hessian(&place.theta)?;
            let is_free = |parameter: usize| self.penalty(parameter) == 0.0;
            let factor =
                Cholesky::factor(&hessian, is_free, Par::Seq).map_err(|pivot| Error::Singular {
                    pivot,
                    width: self.width,
                })?;
            let mut solved = Mat::from_fn(self.width + 1, 1, |at, _| place.gradient[at]);
            factor.solve(solved.as_mut(), Par::Seq);
            solved.col_as_slice(0).to_vec()
        } else {
            self.solved_by_passes(place)?
        };
        self.empty
            .iter()
            .for_each(|feature| direction[*feature] = 0.0);
        if !self.intercept {
            direction[self.width] = 0.0;
        }
        Ok(direction)
    }

    /// The lower triangle of the Hessian. A constant that is not there has 1 on the diagonal, which
    /// is nothing's business.
    fn hessian(&self, theta: &[f64]) -> Result<Mat<f64>> {
        let all = self.width + 1;
        let mut hessian = Mat::<f64>::zeros(all, all);
        let constant = f64::from(u8::from(self.intercept));
        if self.is_sparse {
            self.each_part(|rows| {
                for (row, bend) in self.bent(rows, theta) {
                    let mut entries = row.features.entries();
                    entries.push((self.width as u32, constant));
                    for (at, &(feature, value)) in entries.iter().enumerate() {
                        for &(other, factor) in &entries[at..] {
                            hessian[(other as usize, feature as usize)] += bend * value * factor;
                        }
                    }
                }
            })?;
        } else {
            let mut block = Mat::<f64>::zeros(all, BLOCK);
            let mut filled = 0;
            let add = |hessian: &mut Mat<f64>, some: MatRef<'_, f64>| {
                multiply_lower(
                    hessian.as_mut(),
                    Accum::Add,
                    some,
                    some.transpose(),
                    1.0,
                    Par::Seq,
                );
            };
            self.each_part(|rows| {
                for (row, bend) in self.bent(rows, theta) {
                    let column = block.col_as_slice_mut(filled);
                    column.fill(0.0);
                    row.features.add_to(bend.sqrt(), &mut column[..self.width]);
                    column[self.width] = constant * bend.sqrt();
                    filled += 1;
                    if filled == BLOCK {
                        add(&mut hessian, block.as_ref());
                        filled = 0;
                    }
                }
            })?;
            add(&mut hessian, block.as_ref().subcols(0, filled));
        }
        (0..all).for_each(|parameter| hessian[(parameter, parameter)] += self.penalty(parameter));
        if !self.intercept {
            hessian[(self.width, self.width)] += 1.0;
        }
        Ok(hessian)
    }

    /// The rows whose loss bends, and how much.
    fn bent<'s, 'r>(
        &'s self,
        rows: &'s [ProblemRow<'r>],
        theta: &'s [f64],
    ) -> impl Iterator<Item = (&'s ProblemRow<'r>, f64)> {
        rows.iter()
            .map(|row| (row, self.bend(row, theta)))
            .filter(|(_, bend)| *bend > 0.0)
    }

    /// H⁻¹·gradient by conjugate gradients, a pass over the rows each.
    fn solved_by_passes(&self, place: &ProblemPlace) -> Result<Vec<f64>> {
        let constant = f64::from(u8::from(self.intercept));
        let mut diagonal: Vec<f64> = (0..=self.width)
            .map(|parameter| self.penalty(parameter))
            .collect();
        self.each_part(|rows| {
            for (row, bend) in self.bent(rows, &place.theta) {
                row.features
                    .each(|feature, value| diagonal[feature] += bend * value * value);
                diagonal[self.width] += constant * bend;
            }
        })?;
        if !self.intercept {
            diagonal[self.width] = 1.0;
        }
        // Rows in memory have their bends looked up once; of others they are computed anew in every
        // product.
        let known: Vec<f64> = self
            .held
            .iter()
            .map(|row| self.bend(row, &place.theta))
            .collect();
        let mut failed = None;
        let times = |v: &[f64], out: &mut [f64]| {
            out.iter_mut()
                .enumerate()
                .for_each(|(at, out)| *out = self.penalty(at) * v[at]);
            let mut add = |row: &ProblemRow<'_>, bend: f64| {
                let along = bend * (row.features.dot(&v[..self.width]) + constant * v[self.width]);
                row.features.add_to(along, &mut out[..self.width]);
                out[self.width] += constant * along;
            };
            let done = match self.rows {
                TrainingRows::Held(_) => {
                    let bent = self
                        .held
                        .iter()
                        .zip(&known)
                        .filter(|(_, bend)| **bend > 0.0);
                    bent.for_each(|(row, bend)| add(row, *bend));
                    Ok(())
                }
                TrainingRows::Passed(_) => self.each_part(|rows| {
                    self.bent(rows, &place.theta)
                        .for_each(|(row, bend)| add(row, bend));
                }),
            };
            if let Err(error) = done {
                // What is no number ends the iteration.
                out.fill(f64::NAN);
                failed = Some(error);
            }
            if !self.intercept {
                out[self.width] = v[self.width];
            }
        };
        let mut solved = vec![0.0; place.gradient.len()];
        let settings = CgSettings {
            tolerance: 1e-6,
            max_iterations: 10_000,
        };
        let done = conjugate_gradients(
            times,
            by_diagonal(&diagonal),
            &place.gradient,
            &mut solved,
            settings,
        );
        match failed {
            Some(error) => Err(error),
            None => done.map(|_| solved),
        }
    }

    /// The first place along a direction, halved again and again, where the loss is lower; where it
    /// is all rounding, where the gradient is smaller.
    fn downhill(&self, place: &ProblemPlace, direction: &[f64]) -> Result<Option<ProblemPlace>> {
        let slope = dot(direction, &place.gradient);
        let noise = 1e-13 * place.loss.abs().max(1.0);
        let mut length = 1.0;
        for _ in 0..40 {
            let mut theta = place.theta.clone();
            add_scaled(&mut theta, -length, direction);
            let next = self.at(theta)?;
            let falls = next.loss <= place.loss - 0.1 * length * slope;
            let is_flat = slope.abs() <= 1e3 * noise && next.loss <= place.loss + noise;
            if next.loss.is_finite()
                && (falls || (is_flat && norm(&next.gradient) < 0.9 * norm(&place.gradient)))
            {
                return Ok(Some(next));
            }
            length *= 0.5;
        }
        Ok(None)
    }

    /// The place with the best constant for its coefficients, where the constant is free.
    fn with_best_constant(&self, place: ProblemPlace) -> Result<ProblemPlace> {
        if !self.intercept || L::PENALISED_CONSTANT {
            return Ok(place);
        }
        let targets = self.weighted_targets;
        // The gradient in the constant is Σw(e^z − y).
        let means = place.gradient[self.width] + targets;
        let mut theta = place.theta.clone();
        theta[self.width] += (targets / means).ln();
        if theta[self.width].is_finite() {
            self.at(theta)
        } else {
            Ok(place)
        }
    }

    /// How far a place with the best constant can be from the minimum.
    pub(super) fn bound(&self, place: &ProblemPlace) -> PlaceBound {
        if !self.intercept || L::PENALISED_CONSTANT {
            let gradient = norm(&place.gradient) + place.hidden;
            return PlaceBound {
                gradient,
                distance: gradient / self.lambda,
            };
        }
        let reach = self.reach;
        let targets = self.weighted_targets;
        // What is left of the slope in the constant is as far from the best constant, to first
        // order; twice covers the rest.
        let apart = 2.0 * (place.gradient[self.width].abs() + place.hidden) / targets;
        let gradient = norm(&place.gradient[..self.width]) + place.hidden + reach * targets * apart;
        let way = gradient / self.lambda;
        PlaceBound {
            gradient,
            distance: way.hypot(reach * way + apart),
        }
    }
}

fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}
