//! A ridge model too wide for any d×d matrix: nothing but vectors is kept, and A is applied by passing over the rows.
//!
//! Fit and every change are conjugate gradients, warm-started at the current parameters; they cost a pass over the
//! non-zeros an iteration, so unlike the dense forms they do depend on n. The distance bound needs no eigenvalue: with
//! the intercept b eliminated the loss is λ-strongly convex in the coefficients, hence
//! ‖Δθ‖ ≤ ‖g_θ − (s/W) g_b‖/λ and |Δb| ≤ |g_b|/W + ‖s/W‖·‖Δθ‖, where W = Σw and s = Σ w x.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use faer::Mat;

use super::bound::relative_to;
use super::{Basis, Body, Bound, MEASURED, Penalty, Ridge, RidgeModel};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::linalg::{CgSettings, UNIT, conjugate_gradients, norm};
use crate::rows::{RowId, RowStore, RowView, Rows};

#[derive(Debug, Clone)]
pub(crate) struct WideBody {
    bound: Bound,
    pub(crate) iterations: usize,
}

/// The retained rows as an operator.
pub(crate) struct Operator<'a> {
    rows: Cow<'a, Rows>,
    gone: HashSet<RowId>,
    new: Option<&'a Rows>,
    basis: &'a Basis,
    penalty: &'a [f64],
}

impl<'a> Operator<'a> {
    pub(crate) fn new(
        model: &'a RidgeModel,
        rows: &'a dyn RowStore,
        gone: &[RowId],
        new: Option<&'a Rows>,
    ) -> Result<Self> {
        Ok(Self {
            rows: rows.all()?,
            gone: gone.iter().copied().collect(),
            new,
            basis: &model.basis,
            penalty: &model.penalty.values,
        })
    }

    fn retained(&self) -> impl Iterator<Item = RowView<'_>> {
        let old = self.rows.iter().filter(|row| !self.gone.contains(&row.id));
        old.chain(self.new.into_iter().flat_map(|new| new.iter()))
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.len() - self.gone.len() + self.new.map_or(0, |new| new.len())
    }

    /// `out = Av`.
    fn apply(&self, v: &[f64], out: &mut [f64]) {
        for ((out, v), penalty) in out.iter_mut().zip(v).zip(self.penalty) {
            *out = v * penalty;
        }
        let first = self.basis.intercept as usize;
        for row in self.retained() {
            let constant = if first == 1 { v[0] } else { 0.0 };
            let score = row.weight * (row.features.dot(&v[first..]) + constant);
            row.features.add_to(score, &mut out[first..]);
            if first == 1 {
                out[0] += score;
            }
        }
    }

    /// b = XᵀWY and the diagonal of A.
    fn sums(&self, outputs: usize) -> (Mat<f64>, Vec<f64>) {
        let first = self.basis.intercept as usize;
        let mut b = Mat::zeros(self.basis.width(), outputs);
        let mut diagonal = self.penalty.to_vec();
        for row in self.retained() {
            row.features.each(|j, x| diagonal[first + j] += row.weight * x * x);
            if first == 1 {
                diagonal[0] += row.weight;
            }
            for (output, target) in row.targets.iter().enumerate() {
                let scaled = row.weight * target;
                let column = b.col_as_slice_mut(output);
                row.features.add_to(scaled, &mut column[first..]);
                if first == 1 {
                    column[0] += scaled;
                }
            }
        }
        // Rows of weight 0 only: any positive number will do where nothing is penalised.
        diagonal.iter_mut().filter(|d| **d <= 0.0).for_each(|d| *d = 1.0);
        (b, diagonal)
    }

    /// A⁻¹·rhs column by column, starting from `start`. Returns the iterations.
    fn solve(
        &self,
        rhs: &Mat<f64>,
        diagonal: &[f64],
        start: &mut Mat<f64>,
        tolerance: f64,
        ridge: &Ridge,
    ) -> Result<usize> {
        let settings = CgSettings { tolerance, max_iterations: ridge.max_iterations };
        let mut iterations = 0;
        for column in 0..rhs.ncols() {
            iterations += conjugate_gradients(
                |v, out| self.apply(v, out),
                diagonal,
                rhs.col_as_slice(column),
                start.col_as_slice_mut(column),
                settings,
            )?;
        }
        Ok(iterations)
    }

    /// The minimum over the retained rows, from the parameters given, with its bound.
    pub(crate) fn minimise(&self, theta: &Mat<f64>, ridge: &Ridge) -> Result<(Mat<f64>, WideBody)> {
        let (b, diagonal) = self.sums(theta.ncols());
        if !norm(&b).is_finite() || diagonal.iter().any(|d| !d.is_finite()) {
            return Err(Error::Overflow);
        }
        let mut theta = theta.clone();
        // The bound is ‖g‖/λ, so the residual has to be that much smaller than the distance wanted: how much depends on
        // the data, so ask for more until the bound is met or rounding is all there is.
        let mut tolerance = ridge.tolerance * 1e-3;
        let mut iterations = 0;
        loop {
            iterations += self.solve(&b, &diagonal, &mut theta, tolerance.max(1e-14), ridge)?;
            let bound = self.bound(&theta, &b, &diagonal, ridge.lambda);
            if bound.relative <= ridge.tolerance || tolerance <= 1e-14 {
                return Ok((theta, WideBody { bound, iterations }));
            }
            tolerance *= 1e-2;
        }
    }

    /// The distance bound at any parameters.
    pub(crate) fn bound_at(&self, theta: &Mat<f64>, lambda: f64) -> WideBody {
        let (b, diagonal) = self.sums(theta.ncols());
        WideBody { bound: self.bound(theta, &b, &diagonal, lambda), iterations: 0 }
    }

    fn bound(&self, theta: &Mat<f64>, b: &Mat<f64>, diagonal: &[f64], lambda: f64) -> Bound {
        let width = self.basis.width();
        let first = self.basis.intercept as usize;
        let mut gradient = Mat::zeros(width, theta.ncols());
        for output in 0..theta.ncols() {
            self.apply(theta.col_as_slice(output), gradient.col_as_slice_mut(output));
        }
        gradient -= b;
        let mut square = 0.0;
        let mut sums = vec![0.0; width];
        if first == 1 {
            let mut unit = vec![0.0; width];
            unit[0] = 1.0;
            self.apply(&unit, &mut sums);
        }
        for output in 0..theta.ncols() {
            let g = gradient.col_as_slice(output);
            if first == 0 {
                square += g.iter().map(|g| g * g).sum::<f64>() / (lambda * lambda);
                continue;
            }
            let total = sums[0].max(f64::MIN_POSITIVE);
            let mean: Vec<f64> = sums[1..].iter().map(|s| s / total).collect();
            let reduced: f64 = g[1..].iter().zip(&mean).map(|(g_j, m)| (g_j - m * g[0]).powi(2)).sum();
            let coefficients = reduced.sqrt() / lambda;
            let mean_norm = mean.iter().map(|m| m * m).sum::<f64>().sqrt();
            let intercept = g[0].abs() / total + mean_norm * coefficients;
            square += coefficients.powi(2) + intercept.powi(2);
        }
        let size = norm(theta);
        // What evaluating the gradient can hide by rounding, by the same road: ‖A‖ is at most its trace.
        let trace: f64 = diagonal.iter().sum();
        let shift =
            sums.iter().skip(1).map(|s| (s / sums[0].max(f64::MIN_POSITIVE)).powi(2)).sum::<f64>().sqrt();
        let hidden = 4.0 * UNIT * (trace * size + norm(b)) / lambda * (1.0 + shift);
        let absolute = square.sqrt() + hidden;
        Bound {
            gradient: Some(norm(&gradient)),
            convexity: lambda,
            absolute,
            relative: relative_to(absolute, size),
            source: MEASURED,
        }
    }

    /// Z = X̂A⁻¹ for k rows, one conjugate-gradient solve each.
    pub(crate) fn solve_rows(&self, xt: &Mat<f64>, ridge: &Ridge) -> Result<(Mat<f64>, usize)> {
        let (_, diagonal) = self.sums(self.rows.outputs());
        let mut zt = Mat::zeros(xt.nrows(), xt.ncols());
        let iterations = self.solve(xt, &diagonal, &mut zt, (ridge.tolerance * 1e-3).max(1e-14), ridge)?;
        Ok((zt, iterations))
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
    let basis = Basis::plain(rows.width(), settings.intercept);
    let penalty = Penalty::new(&basis, settings.lambda);
    let zero = Mat::zeros(basis.width(), rows.outputs());
    let operator = Operator {
        rows: Cow::Borrowed(rows),
        gone: HashSet::new(),
        new: None,
        basis: &basis,
        penalty: &penalty.values,
    };
    let (theta, body) = operator.minimise(&zero, settings)?;
    Ok(RidgeModel {
        settings: *settings,
        basis: Arc::new(basis),
        penalty: Arc::new(penalty),
        theta,
        rows: rows.len(),
        body: Body::Wide(body),
    })
}

impl WideBody {
    pub(crate) fn new(bound: Bound) -> Self {
        Self { bound, iterations: 0 }
    }

    pub(crate) fn exact(
        &self,
        model: &RidgeModel,
        method: &str,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Outcome<RidgeModel>> {
        let operator = Operator::new(model, rows, gone, new)?;
        let (theta, body) = operator.minimise(&model.theta, &model.settings)?;
        let count = operator.count();
        let iterations = body.iterations;
        let next = model.with(theta, count, Body::Wide(body));
        let mut evidence = next.evidence(method, Claim::Exact);
        evidence.rows_read = rows.len() + new.map_or(0, |new| new.len());
        evidence.iterations = iterations;
        Ok(Outcome { model: next, evidence })
    }

    pub(crate) fn current_bound(&self) -> Bound {
        self.bound
    }

    pub(crate) fn precomputed(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }
}
