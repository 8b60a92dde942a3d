//! A ridge model too wide for any d×d matrix: nothing but vectors is kept, and A is applied by
//! passing over the rows.
//!
//! Fit and every change are conjugate gradients, warm-started at the current parameters; they cost
//! a pass over the non-zeros an iteration, so unlike the dense forms they do depend on n. What they
//! leave is found by a pass in twice the precision (`row_pass.rs`) and taken out by conjugate
//! gradients again, until the penalty's distance bound is within the tolerance. Columns far from
//! zero are centred without filling sparse rows: (x − c)ᵀv is xᵀv − cᵀv.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use faer::Mat;

use super::bound::relative_to;
use super::dense::ChangeRequest;
use super::row_pass::{
    HiddenGradient, LongParameters, PassFacts, RowGradient, RowPass, penalised_distance,
};
use super::{Basis, EnergyBound, MEASURED, Ridge, RidgeBody, RidgeModel, RidgePenalty};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::linalg::{
    CgSettings, DoubleWord, UNIT, add_scaled, by_diagonal, column_norm, conjugate_gradients, dot,
    norm,
};
use crate::rows::{RowId, RowRef, RowStore, RowView, Rows};

/// The relative residual at which conjugate gradients stop and the gradient is computed anew.
const STEP_ACCURACY: f64 = 1e-9;
/// Conjugate gradients in ordinary numbers are not asked for less than this.
const LEAST_ACCURACY: f64 = 1e-13;
/// How often the gradient is computed anew.
const MOST_ROUNDS: usize = 8;
/// The share of the tolerance that parameters are good enough with.
const ENOUGH: f64 = 0.25;
/// The share that a round goes on to where it would just miss that,
const FURTHER: f64 = 1.0 / 1024.0;
/// and by how much it may then miss this share: far from zero, bounds follow the gradient only
/// roughly, and a second round makes up for it.
const ROUGHLY: f64 = 8.0;
/// The share of the work that is left which a round is taken for.
const FIRST_ROUND: f64 = 0.75;

#[derive(Debug, Clone)]
pub(crate) struct WideBody {
    bound: EnergyBound,
    pub(crate) iterations: usize,
}

/// The retained rows as an operator.
pub(crate) struct RowOperator<'a> {
    rows: Cow<'a, Rows>,
    gone: HashSet<RowId>,
    /// The places of the rows that are gone among all, ascending.
    gone_at: Vec<usize>,
    new: Option<&'a Rows>,
    basis: &'a Basis,
    penalty: &'a [f64],
    threads: usize,
    /// Passes over the rows so far.
    passes: Cell<u64>,
}

/// What all rows together say about each column.
struct ColumnFacts {
    /// The diagonal of A, with 1 for columns that are zero throughout.
    diagonal: Vec<f64>,
    weight: f64,
    /// Σ w·x in the caller's coordinates.
    sums: Vec<f64>,
    /// √Σwy².
    targets: f64,
}

impl<'a> RowOperator<'a> {
    pub(crate) fn new(
        model: &'a RidgeModel,
        rows: &'a dyn RowStore,
        gone: &[RowId],
        new: Option<&'a Rows>,
    ) -> Result<Self> {
        let gone: HashSet<RowId> = gone.iter().copied().collect();
        let rows = rows.all()?;
        let places = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| gone.contains(&row.id));
        let gone_at = places.map(|(at, _)| at).collect();
        Ok(Self {
            rows,
            gone,
            gone_at,
            new,
            basis: &model.basis,
            penalty: &model.penalty.values,
            threads: model.settings.threads,
            passes: Cell::new(0),
        })
    }

    fn retained(&self) -> impl Iterator<Item = RowView<'_>> {
        // Places are looked up instead of ids: a pass would hash as many ids as there are rows.
        let old = self.rows.iter().enumerate();
        let old = old
            .filter(|(at, _)| self.gone_at.binary_search(at).is_err())
            .map(|(_, row)| row);
        old.chain(self.new.into_iter().flat_map(|new| new.iter()))
    }

    fn pass(&self) -> RowPass<'_> {
        RowPass {
            kept: &self.rows,
            gone: &self.gone,
            new: self.new,
            basis: self.basis,
            penalty: self.penalty,
            threads: self.threads,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.pass().count()
    }

    /// `out = Av`.
    fn apply(&self, v: &[f64], out: &mut [f64]) {
        let first = self.basis.intercept as usize;
        let features = self.basis.features;
        let scaled: Vec<f64> = (0..features)
            .map(|j| v[first + j] * self.basis.inverse_scale(j))
            .collect();
        let shift: f64 = (0..features)
            .map(|j| v[first + j] * self.basis.scaled_origin(j))
            .sum();
        let constant = if first == 1 { v[0] - shift } else { 0.0 };
        let mut sums = vec![0.0; features];
        let mut total = 0.0;
        for row in self.retained() {
            let score = row.weight * (row_product(row.features, &scaled) + constant);
            match row.features {
                RowRef::Dense64(x) => add_scaled(&mut sums, score, x),
                features => features.add_to(score, &mut sums),
            }
            total += score;
        }
        if first == 1 {
            out[0] = total;
        }
        for j in 0..features {
            let centred =
                sums[j] * self.basis.inverse_scale(j) - total * self.basis.scaled_origin(j);
            out[first + j] = centred + v[first + j] * self.penalty[first + j];
        }
    }

    fn column_facts(&self) -> Result<ColumnFacts> {
        let first = self.basis.intercept as usize;
        let (weight, sums) = self.pass().weight_and_sums()?;
        let mut diagonal = self.penalty.to_vec();
        let mut present = vec![0.0; self.basis.features];
        let mut targets = 0.0;
        for row in self.retained() {
            row.features.each(|j, x| {
                let inner = x * self.basis.inverse_scale(j) - self.basis.scaled_origin(j);
                diagonal[first + j] += row.weight * inner * inner;
                present[j] += row.weight;
            });
            targets += row.weight * row.targets.iter().map(|y| y * y).sum::<f64>();
        }
        for (j, present) in present.iter().enumerate() {
            // Rows that a sparse column does not mention are at zero, which may be far from its
            // origin.
            diagonal[first + j] +=
                (weight - present).max(0.0) * self.basis.scaled_origin(j).powi(2);
        }
        if first == 1 {
            diagonal[0] += weight;
        }
        // Rows of weight 0 only: any positive number will do where nothing is penalised.
        diagonal
            .iter_mut()
            .filter(|d| **d <= 0.0)
            .for_each(|d| *d = 1.0);
        if !targets.is_finite() || diagonal.iter().any(|d| !d.is_finite()) {
            return Err(Error::Overflow);
        }
        Ok(ColumnFacts {
            diagonal,
            weight,
            sums,
            targets: targets.sqrt(),
        })
    }

    /// Another pass is over, and so much of the work with it.
    fn count_pass(&self, share: f64) {
        self.passes.set(self.passes.get() + 1);
        if let Some(stop) = self.rows.stop() {
            stop.note_passes(self.passes.get(), share);
        }
    }

    /// A⁻¹·rhs column by column. Returns the iterations, and the error of a column that was not
    /// finished, which is as far as it came. What is told of the work goes through the shares
    /// given.
    fn solve(
        &self,
        rhs: &Mat<f64>,
        diagonal: &[f64],
        accuracy: f64,
        ridge: &Ridge,
        shares: Range<f64>,
    ) -> Result<(Mat<f64>, usize, Option<Error>)> {
        let settings = CgSettings {
            tolerance: accuracy,
            max_iterations: ridge.max_iterations,
        };
        let mut solved = Mat::zeros(rhs.nrows(), rhs.ncols());
        let mut iterations = 0;
        let mut unfinished = None;
        for column in 0..rhs.ncols() {
            self.rows.go_on()?;
            let first = column_norm(rhs, column);
            let by_diagonal = by_diagonal(diagonal);
            // Digits come at a steady rate, so that their share is a fair share of the time.
            let guide = |residual: &[f64]| {
                let digits = (first / dot(residual, residual).sqrt()).ln() / -accuracy.ln();
                let done = (column as f64 + digits.clamp(0.0, 1.0)) / rhs.ncols() as f64;
                self.count_pass(shares.start + done * (shares.end - shares.start));
                by_diagonal(residual)
            };
            let done = conjugate_gradients(
                |v, out| self.apply(v, out),
                guide,
                rhs.col_as_slice(column),
                solved.col_as_slice_mut(column),
                settings,
            );
            match done {
                Ok(steps) => iterations += steps,
                Err(error @ Error::NotConverged { .. }) => {
                    iterations += ridge.max_iterations;
                    unfinished = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((solved, iterations, unfinished))
    }

    /// The minimum over the retained rows, from the parameters given, with its bound.
    pub(crate) fn minimise(&self, theta: &Mat<f64>, ridge: &Ridge) -> Result<(Mat<f64>, WideBody)> {
        let facts = self.column_facts()?;
        let mut high = theta.clone();
        let mut low = Mat::<f64>::zeros(theta.nrows(), theta.ncols());
        let mut best = (high.clone(), f64::INFINITY, WideBody::unknown(ridge.lambda));
        let mut iterations = 0;
        let mut unfinished = None;
        let mut done = 0.0;
        let mut enough = ENOUGH;
        for _ in 0..MOST_ROUNDS {
            let (gradient, bound) = self.bound(&high, Some(&low), &facts, ridge.lambda)?;
            self.count_pass(done);
            let pays = bound.absolute <= 0.5 * best.1;
            if bound.absolute < best.1 || best.1.is_infinite() {
                best = (high.clone(), bound.absolute, WideBody { bound, iterations });
            }
            if bound.relative <= enough * ridge.tolerance || !pays && best.1.is_finite() {
                break;
            }
            // Most fits are done after the first round; nobody knows how many follow.
            let next = done + FIRST_ROUND * (1.0 - done);
            let away = bound.absolute / self.basis.caller_norm(&high);
            let accuracy = round_accuracy(away, ridge.tolerance);
            enough = if accuracy < STEP_ACCURACY {
                FURTHER * ROUGHLY
            } else {
                ENOUGH
            };
            let (step, taken, left) =
                self.solve(&gradient, &facts.diagonal, accuracy, ridge, done..next)?;
            done = next;
            iterations += taken;
            unfinished = left;
            subtract(&mut high, &mut low, &step);
        }
        let (theta, _, mut body) = best;
        body.iterations = iterations;
        match unfinished {
            // A model of which not one digit is certain is of no use: report the error instead.
            Some(error) if !body.bound.relative.is_finite() => Err(error),
            _ => Ok((theta, body)),
        }
    }

    /// The distance bound at any parameters.
    pub(crate) fn bound_at(&self, theta: &Mat<f64>, lambda: f64) -> Result<WideBody> {
        let facts = self.column_facts()?;
        let (_, bound) = self.bound(theta, None, &facts, lambda)?;
        Ok(WideBody {
            bound,
            iterations: 0,
        })
    }

    /// The gradient, and the bound that follows from it. Parameters are handed out without their
    /// second words.
    fn bound(
        &self,
        high: &Mat<f64>,
        low: Option<&Mat<f64>>,
        facts: &ColumnFacts,
        lambda: f64,
    ) -> Result<(Mat<f64>, EnergyBound)> {
        let pass = self.pass();
        let RowGradient {
            values: gradient,
            residual,
        } = pass.gradient(LongParameters { high, low }, true)?;
        let spread: Vec<f64> = facts.diagonal.iter().map(|d| d.sqrt()).collect();
        let pass_facts = PassFacts {
            spread: &spread,
            weight: facts.weight,
            targets: facts.targets,
            residual,
        };
        let charge = pass.charge(high, &pass_facts);
        let hidden = HiddenGradient {
            charge,
            spread: &spread,
        };
        let away = penalised_distance(
            self.basis,
            &gradient,
            &hidden,
            lambda,
            (facts.weight, &facts.sums),
        );
        let absolute = away + UNIT * self.basis.stored_size(high);
        let bound = EnergyBound {
            gradient: Some(norm(&gradient)),
            convexity: lambda,
            absolute,
            relative: relative_to(absolute, self.basis.caller_norm(high)),
            source: MEASURED,
        };
        Ok((gradient, bound))
    }

    /// Z = X̂A⁻¹ for k rows, one conjugate-gradient solve each.
    pub(crate) fn solve_rows(&self, xt: &Mat<f64>, ridge: &Ridge) -> Result<(Mat<f64>, usize)> {
        let facts = self.column_facts()?;
        let accuracy = (ridge.tolerance * 1e-3).max(1e-14);
        match self.solve(xt, &facts.diagonal, accuracy, ridge, 0.0..1.0)? {
            (_, _, Some(error)) => Err(error),
            (zt, iterations, None) => Ok((zt, iterations)),
        }
    }
}

/// The relative residual that a round goes to, from parameters that are so far from the minimum as
/// a share of their norm.
///
/// A round leaves about the same share of that distance as of the gradient. A fit begins nowhere
/// and takes two rounds or more. A request begins near its end, and where the digits of one round
/// would only just miss the tolerance, a second one would bring as many again that nobody asked
/// for: then the first goes on instead, to a thousandth of the tolerance.
fn round_accuracy(away: f64, tolerance: f64) -> f64 {
    let is_enough = away * STEP_ACCURACY <= 0.8 * ENOUGH * tolerance;
    let further = FURTHER * tolerance / away;
    if is_enough || !(LEAST_ACCURACY..STEP_ACCURACY).contains(&further) {
        STEP_ACCURACY
    } else {
        further
    }
}

/// A row times a vector, in several lanes: one sum of all terms would wait for every addition
/// before the next.
fn row_product(row: RowRef<'_>, v: &[f64]) -> f64 {
    const LANES: usize = 4;
    match row {
        RowRef::Dense64(x) => dot(x, v),
        RowRef::Sparse64(columns, values) => {
            let (columns, last_columns) = columns.as_chunks::<LANES>();
            let (values, last_values) = values.as_chunks::<LANES>();
            let mut lanes = [0.0; LANES];
            for (columns, values) in columns.iter().zip(values) {
                for lane in 0..LANES {
                    lanes[lane] += values[lane] * v[columns[lane] as usize];
                }
            }
            let rest: f64 = last_columns
                .iter()
                .zip(last_values)
                .map(|(&j, x)| x * v[j as usize])
                .sum();
            lanes.iter().sum::<f64>() + rest
        }
        other => other.dot(v),
    }
}

/// `high + low −= step`.
pub(super) fn subtract(high: &mut Mat<f64>, low: &mut Mat<f64>, step: &Mat<f64>) {
    for output in 0..step.ncols() {
        let high = high.col_as_slice_mut(output);
        let low = low.col_as_slice_mut(output);
        for ((high, low), step) in high.iter_mut().zip(low).zip(step.col_as_slice(output)) {
            let moved = DoubleWord {
                high: *high,
                low: *low,
            }
            .plus(DoubleWord::new(-step));
            *high = moved.high;
            *low = moved.low;
        }
    }
}

pub(crate) fn fit(settings: &Ridge, rows: &Rows) -> Result<RidgeModel> {
    if settings.lambda <= 0.0 {
        return Err(Error::Parameter {
            name: "lambda",
            value: settings.lambda.to_string(),
            range: "above 0 for a model this wide: it has no d×d factor that could stand in for a penalty",
        });
    }
    let basis = settings.wide_basis(rows);
    let penalty = RidgePenalty::new(&basis, settings.lambda);
    let zero = Mat::zeros(basis.width(), rows.outputs());
    let operator = RowOperator {
        rows: Cow::Borrowed(rows),
        gone: HashSet::new(),
        gone_at: Vec::new(),
        new: None,
        basis: &basis,
        penalty: &penalty.values,
        threads: settings.threads,
        passes: Cell::new(0),
    };
    let (theta, body) = operator.minimise(&zero, settings)?;
    Ok(RidgeModel {
        settings: *settings,
        basis: Arc::new(basis),
        penalty: Arc::new(penalty),
        theta,
        rows: rows.len(),
        body: RidgeBody::Wide(body),
    })
}

impl WideBody {
    /// A body of whose parameters nothing is known.
    pub(crate) fn unknown(lambda: f64) -> Self {
        let bound = EnergyBound {
            gradient: None,
            convexity: lambda,
            absolute: f64::INFINITY,
            relative: f64::INFINITY,
            source: MEASURED,
        };
        Self {
            bound,
            iterations: 0,
        }
    }

    /// A body whose bound was stored.
    pub(crate) fn known(bound: EnergyBound) -> Self {
        Self {
            bound,
            iterations: 0,
        }
    }

    pub(crate) fn exact(
        &self,
        model: &RidgeModel,
        method: &str,
        request: ChangeRequest<'_>,
    ) -> Result<Outcome<RidgeModel>> {
        let ChangeRequest { store, gone, new } = request;
        let operator = RowOperator::new(model, store, gone, new)?;
        let (theta, body) = operator.minimise(&model.theta, &model.settings)?;
        let count = operator.count();
        let iterations = body.iterations;
        let mut next = model.with(theta, count, RidgeBody::Wide(body));
        if self.reached(&next) > model.settings.tolerance {
            // Coordinates that suited a huge row may suit nothing that is left.
            next = fit(&model.settings, &request.retained()?)?;
        }
        let mut evidence = next.evidence(method, Claim::Exact);
        evidence.rows_read = store.len() + new.map_or(0, |new| new.len());
        evidence.iterations = iterations;
        Ok(Outcome {
            model: next,
            evidence,
        })
    }

    fn reached(&self, next: &RidgeModel) -> f64 {
        match &next.body {
            RidgeBody::Wide(body) => body.bound.relative,
            RidgeBody::Dense(_) => f64::INFINITY,
        }
    }

    pub(crate) fn current_bound(&self) -> EnergyBound {
        self.bound
    }

    pub(crate) fn precomputed(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_goes_on_where_it_would_just_miss_the_tolerance() {
        // A fit from nowhere, and its second round.
        assert_eq!(round_accuracy(f64::INFINITY, 1e-9), STEP_ACCURACY);
        assert_eq!(round_accuracy(f64::NAN, 1e-9), STEP_ACCURACY);
        assert_eq!(round_accuracy(6e-6, 1e-9), STEP_ACCURACY);
        // A request that one round is enough for, one that it is not, and one that is too far away
        // for either.
        assert_eq!(round_accuracy(0.05, 1e-9), STEP_ACCURACY);
        assert!((round_accuracy(1.5, 1e-9) - 1e-9 / 1536.0).abs() < 1e-20);
        assert_eq!(round_accuracy(50.0, 1e-9), STEP_ACCURACY);
    }
}
