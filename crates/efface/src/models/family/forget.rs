//! From a method to a model that has forgotten.

use super::Model;
use super::rule::Judged;
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::table::refusal;
use crate::methods::{Method, TakesMethods};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl Model {
    /// The model without the rows `gone`. A method that makes no sense for this family is refused
    /// with the reason and with what to use instead. A result that misses its tolerance is
    /// retrained; where that misses it too, it is refused if the request named the tolerance, and
    /// else kept as `approximate`.
    pub fn forget(
        &self,
        method: &Method,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        self.forget_with(method, false, rows, gone)
    }

    /// As [`forget`](Self::forget), and where `clear_dead_columns` says so, the weights of columns
    /// that no retained row has are set to 0 after an approximate method too, which leaves there
    /// what its formula leaves. The evidence tells how many there were, and their norm. The other
    /// methods clear them always.
    pub fn forget_with(
        &self,
        method: &Method,
        clear_dead_columns: bool,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        let family = self.family();
        let unsupported = |reason: &str| {
            Err(Error::Unsupported {
                method: method.name(),
                reason: reason.into(),
            })
        };
        if !self.inner().takes(method) {
            return unsupported(&refusal(method.name(), family));
        }
        method.check()?;
        if clear_dead_columns && !self.inner().has_column_weights() {
            return unsupported(
                "only a ridge, logistic or softmax model has a weight per column; leave out clear_dead_columns",
            );
        }
        if let Some(reason) = self.inner().refusal(method) {
            return unsupported(reason);
        }
        let mut outcome = self
            .inner()
            .without(method, clear_dead_columns, rows, gone)?;
        let evidence = &mut outcome.evidence;
        if matches!(method, Method::Auto(_)) && evidence.reason.is_none() {
            evidence.reason = self.inner().reason_of_auto().map(Into::into);
        }
        let asked = method.tolerance().is_some();
        evidence.tolerance = method.tolerance().or(evidence.tolerance);
        if gone.is_empty() && !asked {
            // A request for nothing changes nothing: the model says where it stands.
            return Ok(outcome);
        }
        Judged { outcome, asked }.repaired(|| self.forget(&Method::Retrain, rows, gone))
    }
}

/// A method on a model of any family, with what a request may ask beside it.
#[derive(Debug, Clone, Copy)]
pub struct MethodOnAny<'a> {
    /// The method.
    pub method: &'a Method,
    /// Whether the weights of columns that no retained row has are set to 0 after an approximate
    /// method too.
    pub clear_dead_columns: bool,
}

impl Forget<Model> for MethodOnAny<'_> {
    fn name(&self) -> &'static str {
        self.method.name()
    }

    /// What is promised depends on the family, and the evidence says it.
    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(&self, model: &Model, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<Model>> {
        model.forget_with(self.method, self.clear_dead_columns, rows, gone)
    }
}

impl TakesMethods for Model {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(Box::new(MethodOnAny {
            method,
            clear_dead_columns: false,
        }))
    }
}
