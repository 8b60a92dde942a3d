//! A ridge model as plain arrays, for whoever stores it: what must be kept, and nothing that can be made again.

use std::sync::Arc;

use faer::Mat;

use super::curvature::KeptSource;
use super::gathered::Gathered;
use super::sums::Sums;
use super::{Basis, Body, Bound, DenseBody, Form, MEASURED, Penalty, Ridge, RidgeModel, WideBody};
use crate::error::{Error, Result};
use crate::rows::{RowId, RowStore, Rows};

/// What has to be stored of a settled model. The factor, the inverse and the kept rows are made again from it.
#[derive(Debug, Clone, PartialEq)]
pub struct RidgeState {
    /// The recipe, with the form resolved.
    pub settings: Ridge,
    /// Rows the model stands for.
    pub rows: usize,
    /// Outputs.
    pub outputs: usize,
    /// Features a row has.
    pub features: usize,
    /// The shift of each feature's coordinate; empty when there is none.
    pub origin: Vec<f64>,
    /// The scale of each feature's coordinate; empty when there is none.
    pub inverse_scale: Vec<f64>,
    /// Parameters, column after column.
    pub theta: Vec<f64>,
    /// The lower triangle of A, column after column; empty for the iterative form.
    pub a: Vec<f64>,
    /// b, column after column; empty for the iterative form.
    pub b: Vec<f64>,
    /// Rows per column that are not zero; empty for the iterative form.
    pub support: Vec<u64>,
    /// At most so much rounding is in A.
    pub drift: f64,
    /// At most so much rounding is in b.
    pub b_drift: f64,
    /// Σ w·y².
    pub targets: f64,
    /// Whether the parameters are the minimum (false after an approximate method).
    pub at_optimum: bool,
    /// How often the sums were factored anew.
    pub refactorisations: usize,
}

impl RidgeModel {
    /// The model as arrays. Settle it first: waiting changes are not part of the state.
    pub fn to_state(&self) -> Result<RidgeState> {
        let (origin, inverse_scale) = self.basis.parts();
        let mut state = RidgeState {
            settings: Ridge { form: self.form(), ..self.settings },
            rows: self.rows,
            outputs: self.outputs(),
            features: self.basis.features,
            origin,
            inverse_scale,
            theta: columns(&self.theta),
            a: Vec::new(),
            b: Vec::new(),
            support: Vec::new(),
            drift: 0.0,
            b_drift: 0.0,
            targets: 0.0,
            at_optimum: true,
            refactorisations: self.refactorisations(),
        };
        if let Body::Dense(body) = &self.body {
            if !body.pending.is_empty() {
                return Err(Error::Damaged("changes are waiting; settle the model before storing it".into()));
            }
            let width = self.basis.width();
            state.a = (0..width).flat_map(|j| &body.sums.a.col_as_slice(j)[j..]).copied().collect();
            state.b = columns(&body.sums.b);
            state.support = body.sums.support.clone();
            state.drift = body.sums.drift;
            state.b_drift = body.sums.b_drift;
            state.targets = body.sums.targets;
            state.at_optimum = body.ledger.at_optimum;
        }
        Ok(state)
    }

    /// What a request changes at once: the parameters, column after column, and whether they are the minimum. With it
    /// and the older rest of its state a model can be stored while its rows wait to be folded in, see
    /// [`from_state_without`](Self::from_state_without).
    pub fn quick_state(&self) -> (Vec<f64>, bool) {
        let at_optimum = match &self.body {
            Body::Dense(body) => body.ledger.at_optimum,
            Body::Wide(_) => true,
        };
        (columns(&self.theta), at_optimum)
    }

    /// The model from its arrays. `rows` is read only for the rows form; the factor is made here, O(d³/3).
    pub fn from_state(state: &RidgeState, rows: &dyn RowStore) -> Result<Self> {
        Self::restore(state, rows, None)
    }

    /// The model from arrays whose parameters are of today and whose sums still hold the rows `gone`, which are taken
    /// out of them here, O(kd²). `rows` holds them no more.
    pub fn from_state_without(state: &RidgeState, rows: &dyn RowStore, gone: &Rows) -> Result<Self> {
        Self::restore(state, rows, Some(gone))
    }

    fn restore(state: &RidgeState, rows: &dyn RowStore, gone: Option<&Rows>) -> Result<Self> {
        let damaged = |what: &str| Error::Damaged(what.to_string());
        state.settings.check()?;
        let basis = Basis::from_parts(
            state.features,
            state.settings.intercept,
            state.origin.clone(),
            state.inverse_scale.clone(),
        )
        .ok_or_else(|| damaged("its coordinates make no sense"))?;
        let width = basis.width();
        let outputs = state.outputs;
        if outputs == 0 || state.theta.len() != width * outputs {
            return Err(damaged("its parameters do not have the size of its coordinates"));
        }
        if state.theta.iter().any(|v| !v.is_finite()) {
            return Err(damaged("a parameter is not finite"));
        }
        let penalty = Penalty::new(&basis, state.settings.lambda);
        let theta = Mat::from_fn(width, outputs, |i, j| state.theta[j * width + i]);
        let frame = |theta, body| RidgeModel {
            settings: state.settings,
            penalty: Arc::new(penalty.clone()),
            basis: Arc::new(basis.clone()),
            theta,
            rows: state.rows,
            body,
        };
        if state.settings.form == Form::Iterative {
            let unknown = Bound {
                gradient: None,
                convexity: state.settings.lambda,
                absolute: f64::INFINITY,
                relative: f64::INFINITY,
                source: MEASURED,
            };
            return Ok(frame(theta, Body::Wide(WideBody::new(unknown))));
        }
        if state.a.len() != width * (width + 1) / 2
            || state.b.len() != width * outputs
            || state.support.len() != width
            || state.a.iter().chain(&state.b).any(|v| !v.is_finite())
        {
            return Err(damaged("its sums do not have the size of its parameters, or are not finite"));
        }
        let mut sums = Sums::zero(width, outputs);
        sums.b = Mat::from_fn(width, outputs, |i, j| state.b[j * width + i]);
        sums.support = state.support.clone();
        sums.drift = state.drift;
        sums.b_drift = state.b_drift;
        sums.targets = state.targets;
        let mut at = 0;
        for j in 0..width {
            sums.a.col_as_slice_mut(j)[j..].copy_from_slice(&state.a[at..at + width - j]);
            at += width - j;
        }
        crate::linalg::mirror_lower(sums.a.as_mut());
        sums.note();
        if let Some(gone) = gone {
            let ids: Vec<RowId> = gone.ids().collect();
            let gathered = Gathered::read(&basis, outputs, gone, &ids, None)?;
            sums.apply(&gathered.rows, &penalty.values, crate::linalg::par(state.settings.threads));
        }
        let source = || Ok(Some(KeptSource { rows: rows.all()?, basis: &basis }));
        let (mut body, minimum) =
            DenseBody::build(&state.settings, state.settings.form, sums, &penalty, &source)?;
        body.ledger.at_optimum = state.at_optimum;
        body.ledger.refactorisations = state.refactorisations;
        if state.at_optimum {
            let gradient = body.gradient(&theta, None, crate::linalg::par(state.settings.threads));
            body.ledger.gradient = crate::linalg::norm(&gradient);
        } else {
            body.ledger.distance = basis.caller_norm(&(&theta - &minimum));
        }
        Ok(frame(theta, Body::Dense(body)))
    }
}

impl RidgeState {
    /// The same state with its sums made anew from the rows, in the same coordinates, O(nd²): what a check compares the
    /// stored sums with. A model of the iterative form has none and stays as it is.
    pub fn resummed(&self, rows: &dyn RowStore) -> Result<Self> {
        let Some(basis) = Basis::from_parts(
            self.features,
            self.settings.intercept,
            self.origin.clone(),
            self.inverse_scale.clone(),
        ) else {
            return Err(Error::Damaged("its coordinates make no sense".into()));
        };
        let mut state = self.clone();
        if self.settings.form == Form::Iterative {
            return Ok(state);
        }
        let penalty = Penalty::new(&basis, self.settings.lambda);
        let par = crate::linalg::par(self.settings.threads);
        let sums = Sums::gather(&*rows.all()?, &basis, &penalty.values, par)?;
        state.a = (0..basis.width()).flat_map(|j| &sums.a.col_as_slice(j)[j..]).copied().collect();
        state.b = columns(&sums.b);
        (state.drift, state.b_drift, state.targets) = (sums.drift, sums.b_drift, sums.targets);
        state.support = sums.support;
        Ok(state)
    }
}

fn columns(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| a.col_as_slice(j)).copied().collect()
}
