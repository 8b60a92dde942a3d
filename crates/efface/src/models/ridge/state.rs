//! A ridge model as plain arrays, as it is stored: what must be kept, and nothing that can be made
//! again.

use std::sync::Arc;

use faer::Mat;

use serde::{Deserialize, Serialize};

use super::bound::{GradientAnchor, relative_to};
use super::build::{RidgeFrame, StoredLedger};
use super::gathered::GatheredRows;
use super::sums::RidgeSums;
use super::{
    Basis, EnergyBound, Form, MEASURED, Ridge, RidgeBody, RidgeModel, RidgePenalty, WideBody,
};
use crate::error::{Error, Result};
use crate::family::Family;
use crate::linalg::Cholesky;
use crate::rows::{RowId, RowStore, Rows};
use crate::state::ModelState;

/// What has to be stored of a settled model. The inverse and the kept rows are made again from it,
/// and so is the factor where that costs less than moving it to a disk and back.
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
    /// What the lower triangle of A lacks to the true sums; empty where that is not kept.
    pub a_low: Vec<f64>,
    /// The lower triangle of the Cholesky factor of A, column after column; empty where it is made
    /// anew.
    pub factor: Vec<f64>,
    /// b, column after column; empty for the iterative form.
    pub b: Vec<f64>,
    /// Rows per column that are not zero; empty for the iterative form.
    pub support: Vec<u64>,
    /// The most that the root of each diagonal entry of A ever was since A was summed; empty for
    /// the iterative form.
    pub spread: Vec<f64>,
    /// Parameters at which the gradient is known, column after column; empty for the iterative
    /// form.
    pub anchor: Vec<f64>,
    /// The gradient there; empty for the iterative form.
    pub gradient: Vec<f64>,
    /// The second words of the gradient there; empty for the iterative form.
    pub gradient_low: Vec<f64>,
    /// What is known of the errors in all this.
    pub accuracy: SumsAccuracy,
    /// Whether the parameters are the minimum (false after an approximate method).
    pub at_optimum: bool,
    /// How often the sums were factored anew.
    pub refactorisations: usize,
}

/// The small half of a state.
#[derive(Serialize, Deserialize)]
struct RidgeHead {
    settings: Ridge,
    rows: usize,
    outputs: usize,
    features: usize,
    accuracy: SumsAccuracy,
    at_optimum: bool,
    refactorisations: usize,
}

/// Upper bounds on the rounding errors in a stored model. A bound that is infinite is stored as the
/// largest number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SumsAccuracy {
    /// Every entry of A is wrong by at most this times the spreads of its two factors,
    pub charge: f64,
    /// and every entry of b by this.
    pub b_charge: f64,
    /// The most that √Σwy² ever was since b was summed.
    pub target_spread: f64,
    /// The fraction by which A can be wrong in the energy norm.
    pub sums_error: f64,
    /// The energy norm of what can be wrong with the gradient at the anchor,
    pub anchor_error: f64,
    /// and by how much each entry can be wrong beyond that, as a multiple of its column's spread.
    pub anchor_spread_error: f64,
    /// The distance of the parameters to the minimum in the caller's coordinates, but for the
    /// rounding of handing them out; after an approximate method, that of the minimum as it was
    /// computed.
    pub distance: f64,
    /// What was measured of A; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norms: Option<CurvatureNorms>,
}

/// Upper bounds on norms of A⁻¹, which take two dozen solves to find.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvatureNorms {
    /// In the caller's coordinates.
    pub caller: f64,
    /// In units of the columns' spreads.
    pub spread: f64,
    /// By how much both were carried beyond what was measured.
    pub carried: f64,
}

impl CurvatureNorms {
    fn is_sound(&self) -> bool {
        [self.caller, self.spread]
            .iter()
            .all(|norm| norm.is_finite() && *norm > 0.0)
            && self.carried.is_finite()
            && self.carried >= 1.0
    }
}

impl SumsAccuracy {
    /// Nothing wrong, and nothing known of the parameters.
    fn unknown() -> Self {
        Self {
            charge: 0.0,
            b_charge: 0.0,
            target_spread: 0.0,
            sums_error: 0.0,
            anchor_error: 0.0,
            anchor_spread_error: 0.0,
            distance: f64::MAX,
            norms: None,
        }
    }

    fn is_sound(&self) -> bool {
        let errors = [
            self.charge,
            self.b_charge,
            self.sums_error,
            self.anchor_error,
            self.anchor_spread_error,
        ];
        errors
            .iter()
            .chain(&[self.target_spread, self.distance])
            .all(|bound| *bound >= 0.0)
            && self.norms.is_none_or(|norms| norms.is_sound())
    }
}

/// The bound again from how it is stored.
fn unbounded(stored: f64) -> f64 {
    if stored == f64::MAX {
        f64::INFINITY
    } else {
        stored
    }
}

impl RidgeModel {
    /// The model as arrays. Settle it first: waiting changes are not part of the state.
    pub fn to_state(&self) -> Result<RidgeState> {
        let (origin, inverse_scale) = self.basis.parts();
        let mut state = RidgeState {
            settings: Ridge {
                form: self.stored_form(),
                ..self.settings
            },
            rows: self.rows,
            outputs: self.outputs(),
            features: self.basis.features,
            origin,
            inverse_scale,
            theta: columns(&self.theta),
            a: Vec::new(),
            a_low: Vec::new(),
            factor: Vec::new(),
            b: Vec::new(),
            support: Vec::new(),
            spread: Vec::new(),
            anchor: Vec::new(),
            gradient: Vec::new(),
            gradient_low: Vec::new(),
            accuracy: SumsAccuracy::unknown(),
            at_optimum: true,
            refactorisations: self.refactorisations(),
        };
        if let RidgeBody::Wide(body) = &self.body {
            state.accuracy.distance = body.current_bound().absolute.min(f64::MAX);
        }
        if let RidgeBody::Dense(body) = &self.body {
            if !body.pending.is_empty() {
                return Err(Error::Damaged(
                    "changes are waiting; settle the model before storing it".into(),
                ));
            }
            state.a = lower_triangle(&body.sums.a);
            state.a_low = body.sums.low.as_ref().map_or_else(Vec::new, lower_triangle);
            if let Some(factor) = body
                .solver
                .factor()
                .filter(|_| Form::keeps_factor(self.basis.width()))
            {
                state.factor = lower_triangle(factor.lower());
            }
            state.b = columns(&body.sums.b);
            state.support = body.sums.support.clone();
            let ledger = &body.ledger;
            state.spread = body.sums.spread.clone();
            let anchor = body.anchor_near(&self.theta, crate::linalg::par(self.settings.threads));
            state.anchor = columns(&anchor.theta);
            state.gradient = columns(&anchor.gradient);
            state.gradient_low = columns(&anchor.gradient_low);
            state.accuracy = SumsAccuracy {
                charge: body.sums.charge,
                b_charge: body.sums.b_charge,
                target_spread: body.sums.target_spread,
                sums_error: ledger.quality.wrong_sums().min(f64::MAX),
                anchor_error: anchor.error.min(f64::MAX),
                anchor_spread_error: anchor.spread_error.min(f64::MAX),
                distance: ledger.distance_to_energy_minimum().min(f64::MAX),
                norms: ledger.quality.norms().filter(CurvatureNorms::is_sound),
            };
            state.at_optimum = ledger.at_optimum;
        }
        Ok(state)
    }

    /// The form that the model comes back in. A stream of requests may have dropped what the rows
    /// form keeps.
    fn stored_form(&self) -> Form {
        match (self.settings.form, self.form()) {
            (Form::Rows, Form::Factor) => Form::Rows,
            (_, form) => form,
        }
    }

    /// What a request changes at once: the parameters, column after column, and whether they are
    /// the minimum. With it and the older rest of its state a model can be stored while its rows
    /// wait to be folded in, see [`from_state_without`](Self::from_state_without).
    pub fn quick_state(&self) -> (Vec<f64>, bool) {
        let at_optimum = match &self.body {
            RidgeBody::Dense(body) => body.ledger.at_optimum,
            RidgeBody::Wide(_) => true,
        };
        (columns(&self.theta), at_optimum)
    }

    /// The model from its arrays; the factor is made here, O(d³/3), where it is not one of them or
    /// not that of the sums. The rows form keeps rows, which are not in a state: such a model comes
    /// back in the factor form. See [`from_state_with_rows`](Self::from_state_with_rows).
    pub fn from_state(state: &RidgeState) -> Result<Self> {
        Self::restore(state, None, None)
    }

    /// The model from its arrays in any form. `rows` is read for the rows form only.
    pub fn from_state_with_rows(state: &RidgeState, rows: &dyn RowStore) -> Result<Self> {
        Self::restore(state, Some(rows), None)
    }

    /// The model from arrays whose parameters are of today and whose sums still hold the rows
    /// `gone`, which wait to be taken out of them, O(kd²).
    pub fn from_state_without(state: &RidgeState, gone: &Rows) -> Result<Self> {
        Self::restore(state, None, Some(gone))
    }

    fn restore(
        state: &RidgeState,
        rows: Option<&dyn RowStore>,
        gone: Option<&Rows>,
    ) -> Result<Self> {
        let form = match (state.settings.form, rows) {
            (Form::Rows, None) => Form::Factor,
            (form, _) => form,
        };
        let damaged = |what: &str| Error::Damaged(what.to_string());
        state.settings.check()?;
        let (basis, theta) = state.sound_parameters()?;
        let width = basis.width();
        let outputs = state.outputs;
        let penalty = RidgePenalty::new(&basis, state.settings.lambda);
        let frame = |theta, body| RidgeModel {
            settings: state.settings,
            penalty: Arc::new(penalty.clone()),
            basis: Arc::new(basis.clone()),
            theta,
            rows: state.rows,
            body,
        };
        if state.settings.form == Form::Iterative {
            let absolute = unbounded(state.accuracy.distance);
            let bound = EnergyBound {
                gradient: None,
                convexity: state.settings.lambda,
                absolute,
                relative: relative_to(absolute, basis.caller_norm(&theta)),
                source: MEASURED,
            };
            return Ok(frame(theta, RidgeBody::Wide(WideBody::known(bound))));
        }
        if state.a.len() != width * (width + 1) / 2
            || state.b.len() != width * outputs
            || !(state.a_low.is_empty() || state.a_low.len() == state.a.len())
            || state.a_low.iter().any(|v| !v.is_finite())
            || !(state.factor.is_empty() || state.factor.len() == state.a.len())
            || state.support.len() != width
            || state.spread.len() != width
            || state.anchor.len() != width * outputs
            || state.gradient.len() != width * outputs
            || state.gradient_low.len() != width * outputs
            || state.gradient_low.iter().any(|v| !v.is_finite())
            || state.a.iter().chain(&state.b).any(|v| !v.is_finite())
            || state
                .anchor
                .iter()
                .chain(&state.gradient)
                .any(|v| !v.is_finite())
            || state.spread.iter().any(|s| s.is_nan() || *s < 0.0)
            || !state.accuracy.is_sound()
        {
            return Err(damaged(
                "its sums do not have the size of its parameters, or are not finite",
            ));
        }
        let mut sums = RidgeSums {
            a: from_lower_triangle(&state.a, width),
            b: Mat::from_fn(width, outputs, |i, j| state.b[j * width + i]),
            support: state.support.clone(),
            spread: state.spread.clone(),
            charge: state.accuracy.charge,
            b_charge: state.accuracy.b_charge,
            target_spread: state.accuracy.target_spread,
            low: (!state.a_low.is_empty()).then(|| from_lower_triangle(&state.a_low, width)),
            ..RidgeSums::zero(0, 0)
        };
        sums.note();
        let matrix = |values: &[f64]| Mat::from_fn(width, outputs, |i, j| values[j * width + i]);
        let anchor = GradientAnchor {
            theta: matrix(&state.anchor),
            gradient: matrix(&state.gradient),
            gradient_low: matrix(&state.gradient_low),
            error: unbounded(state.accuracy.anchor_error),
            spread_error: unbounded(state.accuracy.anchor_spread_error),
        };
        let left = gone
            .map(|gone| {
                let ids: Vec<RowId> = gone.ids().collect();
                GatheredRows::read(&basis, outputs, gone, &ids, None)
            })
            .transpose()?;
        // What was measured of older parameters says nothing of these.
        let distance = if left.is_some() {
            f64::INFINITY
        } else {
            unbounded(state.accuracy.distance)
        };
        let coordinates = RidgeFrame::new(
            state.settings,
            Arc::new(basis.clone()),
            Arc::new(penalty.clone()),
        );
        let source = || rows.map(|rows| rows.all()).transpose();
        let stored = StoredLedger {
            theta: &theta,
            sums_error: unbounded(state.accuracy.sums_error),
            distance,
            left,
            at_optimum: state.at_optimum,
            refactorisations: state.refactorisations,
            factor: Some(&state.factor)
                .filter(|factor| !factor.is_empty())
                .and_then(|factor| Cholesky::from_lower(triangle_alone(factor, width))),
            norms: state.accuracy.norms,
        };
        let body = coordinates.restore(form, sums, anchor, stored, &source)?;
        Ok(frame(theta, RidgeBody::Dense(body)))
    }
}

impl RidgeState {
    /// The coordinates and the parameters in them, checked.
    fn sound_parameters(&self) -> Result<(Basis, Mat<f64>)> {
        let damaged = |what: &str| Error::Damaged(what.to_string());
        let origin = self.origin.clone();
        let basis = Basis::from_parts(
            self.features,
            self.settings.intercept,
            origin,
            self.inverse_scale.clone(),
        )
        .ok_or_else(|| damaged("its coordinates make no sense"))?;
        let width = basis.width();
        if self.outputs == 0 || Some(self.theta.len()) != width.checked_mul(self.outputs) {
            return Err(damaged(
                "its parameters do not have the size of its coordinates",
            ));
        }
        if self.theta.iter().any(|v| !v.is_finite()) {
            return Err(damaged("a parameter is not finite"));
        }
        let theta = Mat::from_fn(width, self.outputs, |i, j| self.theta[j * width + i]);
        Ok((basis, theta))
    }

    /// Coefficients (features × outputs) and one intercept per output, from the parameters alone:
    /// none of the sums is needed.
    pub fn parameters(&self) -> Result<(Mat<f64>, Vec<f64>)> {
        let (basis, theta) = self.sound_parameters()?;
        Ok(basis.to_caller(&theta))
    }

    /// The form in which models are stored.
    pub fn into_model_state(self) -> Result<ModelState> {
        let Self {
            settings,
            rows,
            outputs,
            features,
            accuracy,
            at_optimum,
            refactorisations,
            ..
        } = self;
        let head = RidgeHead {
            settings,
            rows,
            outputs,
            features,
            accuracy,
            at_optimum,
            refactorisations,
        };
        let mut state = ModelState::new(Family::Ridge, &head)?;
        for (name, values) in [
            ("theta", self.theta),
            ("origin", self.origin),
            ("inverse_scale", self.inverse_scale),
            ("a", self.a),
            ("a_low", self.a_low),
            ("factor", self.factor),
            ("b", self.b),
            ("spread", self.spread),
            ("anchor", self.anchor),
            ("gradient", self.gradient),
            ("gradient_low", self.gradient_low),
        ] {
            state.put_numbers(name, values);
        }
        state.put_counts("support", self.support);
        Ok(state)
    }

    /// The arrays of a stored ridge model. An array that is not there is empty, as those are that
    /// scores do without.
    pub fn from_model_state(mut state: ModelState) -> Result<Self> {
        let RidgeHead {
            settings,
            rows,
            outputs,
            features,
            accuracy,
            at_optimum,
            refactorisations,
        } = state.head()?;
        let mut numbers = |name: &str| state.take_numbers(name).unwrap_or_default();
        Ok(Self {
            settings,
            rows,
            outputs,
            features,
            origin: numbers("origin"),
            inverse_scale: numbers("inverse_scale"),
            theta: numbers("theta"),
            a: numbers("a"),
            a_low: numbers("a_low"),
            factor: numbers("factor"),
            b: numbers("b"),
            spread: numbers("spread"),
            anchor: numbers("anchor"),
            gradient: numbers("gradient"),
            gradient_low: numbers("gradient_low"),
            support: state.take_counts("support").unwrap_or_default(),
            accuracy,
            at_optimum,
            refactorisations,
        })
    }

    /// The head of a stored model once its parameters are others, and the minimum or not;
    /// everything else of it stays. The length of the head does not change.
    pub fn head_with_optimum(head: &[u8], at_optimum: bool) -> Result<Vec<u8>> {
        let stored: RidgeHead = crate::state::read_document(head)?;
        crate::state::write_document(&RidgeHead {
            at_optimum,
            ..stored
        })
    }

    /// The same state with its sums made anew from the rows, in the same coordinates, O(nd²): what
    /// a check compares the stored sums with. A model of the iterative form has none and stays as
    /// it is.
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
        let penalty = RidgePenalty::new(&basis, self.settings.lambda);
        let par = crate::linalg::par(self.settings.threads);
        let sums = RidgeSums::gather(&*rows.all()?, &basis, &penalty.values, par)?;
        state.a = lower_triangle(&sums.a);
        state.a_low = Vec::new();
        state.factor = Vec::new();
        state.accuracy.norms = None;
        state.b = columns(&sums.b);
        state.accuracy.charge = sums.charge;
        state.accuracy.b_charge = sums.b_charge;
        state.accuracy.target_spread = sums.target_spread;
        state.spread = sums.spread;
        state.support = sums.support;
        Ok(state)
    }
}

pub(super) fn lower_triangle(a: &Mat<f64>) -> Vec<f64> {
    let width = a.ncols();
    let mut values = Vec::with_capacity(width * (width + 1) / 2);
    for j in 0..width {
        values.extend_from_slice(&a.col_as_slice(j)[j..]);
    }
    values
}

/// The inverse of [`lower_triangle`].
fn from_lower_triangle(values: &[f64], width: usize) -> Mat<f64> {
    let mut a = triangle_alone(values, width);
    crate::linalg::mirror_lower(a.as_mut());
    a
}

/// The same with zeros above the diagonal.
fn triangle_alone(values: &[f64], width: usize) -> Mat<f64> {
    let mut a = Mat::zeros(width, width);
    let mut at = 0;
    for j in 0..width {
        a.col_as_slice_mut(j)[j..].copy_from_slice(&values[at..at + width - j]);
        at += width - j;
    }
    a
}

fn columns(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols())
        .flat_map(|j| a.col_as_slice(j))
        .copied()
        .collect()
}
