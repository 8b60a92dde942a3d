//! Ridge regression: θ = argmin Σ w_i/2 (θᵀx_i − y_i)² + λ/2 ‖θ‖², with any number of outputs, row
//! weights, and an intercept that is not penalised.
//!
//! The loss is scikit-learn's `Ridge(alpha=λ)` halved, so the minimum is the same. Training is one
//! pass for the sums A = XᵀWX + λI and b = XᵀWY, O(nd²), and one Cholesky factorisation, O(d³/3).
//! Models wider than any d×d matrix use conjugate gradients instead (`wide.rs`). Forgetting lives
//! in [`methods`](crate::methods); this room keeps the model, its curvature, and the low-rank
//! machinery by which rows come and go.

mod batches;
mod before;
mod bound;
mod build;
pub(crate) mod change;
mod curvature;
mod dead;
mod dense;
mod device_sums;
mod family;
mod fold;
mod from_statistics;
mod gather;
mod gathered;
mod leave_one_out;
mod long_sums;
mod methods;
mod norms;
mod parts;
mod probes;
mod refine;
mod rescaled;
mod row_pass;
mod settings;
mod settle;
mod state;
#[cfg(test)]
mod state_tests;
pub(crate) mod sums;
mod tiled_sums;
mod waiting;
pub(crate) mod wide;

pub use super::form::Form;
pub use methods::{leave_out_predictions, printed_form};
pub use settings::Ridge;
pub use state::{CurvatureNorms, RidgeState, SumsAccuracy};

use std::sync::Arc;

use faer::Mat;

pub(crate) use super::basis::Basis;
use crate::error::{Error, Result};
use crate::evidence::{BoundSource, Claim, Evidence, Outcome, Precomputed};
use crate::models::request;
use crate::rows::{Features, RowId, RowRef, RowStore, Rows};
use crate::traits::{Amend, Fit, Predict, Settled};
pub(crate) use bound::{EnergyBound, Step, relative_to};
pub(crate) use dense::{ChangeRequest, DenseBody, clear};
pub(crate) use gathered::GatheredRows;
pub(crate) use parts::{GroupSums, MOST_NUMBERS};
pub(crate) use wide::WideBody;

/// A fitted ridge model with what it needs in order to forget.
#[derive(Debug, Clone)]
pub struct RidgeModel {
    pub(crate) settings: Ridge,
    pub(crate) basis: Arc<Basis>,
    pub(crate) penalty: Arc<RidgePenalty>,
    /// Parameters in the coordinates of `basis`, one column per output.
    pub(crate) theta: Mat<f64>,
    pub(crate) rows: usize,
    pub(crate) body: RidgeBody,
}

/// The penalty of every column in the coordinates of the basis.
#[derive(Debug, Clone)]
pub(crate) struct RidgePenalty {
    pub(crate) values: Vec<f64>,
    pub(crate) lambda: f64,
    intercept: bool,
}

impl RidgePenalty {
    pub(crate) fn new(basis: &Basis, lambda: f64) -> Self {
        Self {
            values: basis.penalty(lambda),
            lambda,
            intercept: basis.intercept,
        }
    }

    /// Whether no penalty holds this column. In large units a penalty can be below all numbers and
    /// is one nevertheless.
    pub(crate) fn is_free(&self, column: usize) -> bool {
        self.lambda == 0.0 || (self.intercept && column == 0)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum RidgeBody {
    Dense(DenseBody),
    Wide(WideBody),
}

impl Fit for Ridge {
    type Model = RidgeModel;

    fn fit(&self, rows: &Rows) -> Result<RidgeModel> {
        self.check()?;
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        let features = rows.width();
        if features + self.intercept as usize == 0 {
            return Err(Error::Parameter {
                name: "features",
                value: "0".into(),
                range: "at least 1 in a model without an intercept",
            });
        }
        let form = self.form_for(rows);
        if form == Form::Iterative {
            return wide::fit(self, rows);
        }
        Ok(dense::fit(self, form, rows)?.0)
    }

    fn bytes(&self, model: &RidgeModel) -> usize {
        let parameters = model.theta.nrows() * model.theta.ncols() * size_of::<f64>();
        parameters
            + model
                .precomputed()
                .iter()
                .map(|part| part.bytes)
                .sum::<usize>()
    }
}

impl Predict for RidgeModel {
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        request::check_features(features, self.basis.features)?;
        let (coefficients, intercept) = self.parameters();
        let mut scores = Mat::zeros(features.rows(), intercept.len());
        for slot in 0..features.rows() {
            let row = features.row(slot);
            for (output, b) in intercept.iter().enumerate() {
                scores[(slot, output)] = row.dot(coefficients.col_as_slice(output)) + b;
            }
        }
        Ok(scores)
    }
}

impl RidgeModel {
    /// Coefficients (features × outputs) and one intercept per output.
    pub fn parameters(&self) -> (Mat<f64>, Vec<f64>) {
        self.basis.to_caller(&self.theta)
    }

    /// The recipe it was fitted with.
    pub fn settings(&self) -> &Ridge {
        &self.settings
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many features a row has.
    pub fn features(&self) -> usize {
        self.basis.features
    }

    /// How many outputs it predicts.
    pub fn outputs(&self) -> usize {
        self.theta.ncols()
    }

    /// How its curvature is kept.
    pub fn form(&self) -> Form {
        match &self.body {
            RidgeBody::Dense(body) => body.form(),
            RidgeBody::Wide(_) => Form::Iterative,
        }
    }

    /// What is kept beside the parameters and the rows, and its memory.
    pub fn precomputed(&self) -> Vec<Precomputed> {
        let parts = match &self.body {
            RidgeBody::Dense(body) => body.precomputed(),
            RidgeBody::Wide(body) => body.precomputed(),
        };
        parts
            .into_iter()
            .map(|(what, bytes)| Precomputed {
                what: what.into(),
                bytes,
            })
            .collect()
    }

    /// How often a bound, a leverage or a large request made it factor its sums anew.
    pub fn refactorisations(&self) -> usize {
        match &self.body {
            RidgeBody::Dense(body) => body.ledger.refactorisations,
            RidgeBody::Wide(_) => 0,
        }
    }

    /// The scores of one row.
    pub fn score(&self, row: RowRef<'_>) -> Vec<f64> {
        let mut written = vec![0.0; self.basis.width()];
        self.basis.write(row, 1.0, &mut written);
        (0..self.outputs())
            .map(|output| crate::linalg::dot(&written, self.theta.col_as_slice(output)))
            .collect()
    }

    /// Checks a request before any work: every id distinct, and something left afterwards.
    pub(crate) fn check_request(&self, rows: &dyn RowStore, gone: &[RowId]) -> Result<()> {
        request::check_numbers(rows)?;
        request::check_width(rows.width(), self.features())?;
        request::check_outputs(rows.outputs(), self.outputs())?;
        request::check_gone(rows, gone, self.features())
    }

    /// The evidence of a request that needed nothing done, or the start of one that did.
    /// What is known of the model as a fit left it.
    pub fn evidence_at_optimum(&self) -> Evidence {
        self.evidence("exact", Claim::Exact)
    }

    pub(crate) fn evidence(&self, method: &str, claim: Claim) -> Evidence {
        let bound = match &self.body {
            RidgeBody::Dense(body) => body.current_bound(self),
            RidgeBody::Wide(body) => body.current_bound(),
        };
        Evidence {
            method: method.into(),
            reason: None,
            promise: claim,
            tolerance: (claim == Claim::Exact).then_some(self.settings.tolerance),
            forgotten: 0,
            learned: 0,
            rows: self.rows,
            rows_read: 0,
            largest_leverage: None,
            condition: None,
            directions_dropped: 0,
            iterations: 0,
            refinements: 0,
            refactored: false,
            resummed: false,
            gradient_norm: bound.gradient,
            convexity: bound.convexity,
            bound: bound.absolute,
            relative_bound: bound.relative,
            bound_source: bound.source,
            head_bound: None,
            certificate: None,
            cleared: None,
            compared: None,
            precomputed: self.precomputed(),
            not_covered: Vec::new(),
            kept_beside: Vec::new(),
        }
    }

    /// Brings the part of an evidence that speaks of the model as it is now up to date: settling
    /// rounds, too.
    pub(crate) fn update(&self, evidence: &mut Evidence) {
        let now = self.evidence("", evidence.promise);
        evidence.gradient_norm = now.gradient_norm;
        evidence.convexity = now.convexity;
        evidence.bound = now.bound;
        evidence.relative_bound = now.relative_bound;
        evidence.bound_source = now.bound_source;
        evidence.precomputed = now.precomputed;
    }

    /// The exact change for rows that leave and rows that join, with its evidence.
    pub(crate) fn exactly(
        &self,
        method: &str,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Outcome<Self>> {
        let joined = new.map_or(0, |new| new.len());
        let mut outcome = if gone.is_empty() && joined == 0 {
            Outcome {
                model: self.clone(),
                evidence: self.evidence(method, Claim::Exact),
            }
        } else {
            let request = ChangeRequest {
                store: rows,
                gone,
                new,
            };
            match &self.body {
                RidgeBody::Dense(body) => body.exact(self, method, request)?,
                RidgeBody::Wide(body) => body.exact(self, method, request)?,
            }
        };
        outcome.evidence.forgotten = gone.len();
        outcome.evidence.learned = joined;
        Ok(outcome)
    }
}

impl Amend for RidgeModel {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        self.check_new(new)?;
        for id in new.ids() {
            if rows.contains(id)? {
                return Err(Error::DuplicateRow(id));
            }
        }
        self.exactly("learn", rows, &[], Some(new))
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        self.check_new(corrected)?;
        let ids: Vec<RowId> = corrected.ids().collect();
        rows.check(&ids)?;
        self.exactly("amend", rows, &ids, Some(corrected))
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        self.update(evidence);
    }

    fn settle(&mut self) -> Result<Settled> {
        let frame = self.frame();
        match &mut self.body {
            RidgeBody::Dense(body) => body.settle(&frame, &self.theta),
            RidgeBody::Wide(_) => Ok(Settled::default()),
        }
    }

    fn settle_some(&mut self) -> Result<Settled> {
        let frame = self.frame();
        match &mut self.body {
            RidgeBody::Dense(body) => body.settle_some(&frame, &self.theta),
            RidgeBody::Wide(_) => Ok(Settled::default()),
        }
    }

    fn waiting(&self) -> usize {
        match &self.body {
            RidgeBody::Dense(body) => body.waiting(),
            RidgeBody::Wide(_) => 0,
        }
    }

    fn most_waiting(&self) -> usize {
        fold::rows_of_a_fold(self.basis.width())
    }
}

impl RidgeModel {
    fn check_new(&self, new: &Rows) -> Result<()> {
        request::check_numbers(new)?;
        request::check_width(new.width(), self.features())?;
        request::check_outputs(new.outputs(), self.outputs())
    }
}

/// Marks a bound that was computed rather than carried.
pub(crate) const MEASURED: BoundSource = BoundSource::Measured;
