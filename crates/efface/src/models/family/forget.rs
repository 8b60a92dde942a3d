//! From a method to a model that has forgotten.

use super::Model;
use super::rule::repaired;
use crate::error::{Error, Result};
use crate::evidence::{Claim, ComparedWithNothing, ComparisonBasis, Outcome};
use crate::family::Family;
use crate::linalg::dot;
use crate::methods::table::refusal;
use crate::methods::{Method, Newton, TakesMethods};
use crate::not_covered::NotCovered;
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl Model {
    /// The model without the rows `gone`. A method that makes no sense for this family is refused
    /// with the reason and with what to use instead. A result that misses its tolerance is
    /// retrained; where that misses it too, the nearer of both is kept as `approximate`.
    pub fn forget(
        &self,
        method: &Method,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        self.forget_with(method, MethodOptions::default(), rows, gone)
    }

    /// As [`forget`](Self::forget), with options.
    pub fn forget_with(
        &self,
        method: &Method,
        options: MethodOptions,
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
        let MethodOptions {
            clear_dead_columns,
            allow_worse,
            new_seed,
        } = options;
        if let Some(seed) = new_seed {
            return self.retrain_with_seed(seed, method, rows, gone);
        }
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
        evidence.tolerance = method.tolerance().or(evidence.tolerance);
        if gone.is_empty() {
            // A request for nothing changes nothing: the model says where it stands.
            return Ok(outcome);
        }
        let mut outcome = repaired(outcome, || self.forget(&Method::Retrain, rows, gone))?;
        self.compare(method, &mut outcome, rows, gone)?;
        match outcome.evidence.compared {
            Some(compared) if !compared.is_nearer && !allow_worse => Err(Error::Unsupported {
                method: method.name(),
                reason: format!("{compared}; use auto, or accept a worse model with allow_worse"),
            }),
            _ => Ok(outcome),
        }
    }

    /// Retrains with another seed. The result owes nothing to a request that was chosen after
    /// looking at this model.
    fn retrain_with_seed(
        &self,
        seed: u64,
        method: &Method,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        let unsupported = |reason: &str| Error::Unsupported {
            method: method.name(),
            reason: reason.into(),
        };
        if *method != Method::Retrain {
            return Err(unsupported(
                "a new seed is for retrain; use retrain, or leave it out",
            ));
        }
        let model = self.inner().reseeded(seed).ok_or_else(|| {
            unsupported(
                "a new seed is for k-means and shards, and this model draws nothing; leave it out",
            )
        })?;
        let mut outcome = model.forget(method, rows, gone)?;
        let left = &mut outcome.evidence.not_covered;
        left.retain(|what| *what != NotCovered::AdaptiveRequests);
        Ok(outcome)
    }

    /// Compares the result of an approximate method with this model. Where the bound of the result
    /// does not decide, both are compared with the result of a method that comes nearer to
    /// retraining.
    fn compare(
        &self,
        method: &Method,
        outcome: &mut Outcome<Self>,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<()> {
        let is_approximate = matches!(
            method,
            Method::Newton(_)
                | Method::Influence
                | Method::ProjectionResidual(_)
                | Method::DeltaGrad(_)
        );
        let evidence = &outcome.evidence;
        // The head of a network has compared itself.
        if !is_approximate || evidence.promise != Claim::Approximate || evidence.compared.is_some()
        {
            return Ok(());
        }
        let before = self.parameters()?.numbers();
        let after = outcome.model.parameters()?.numbers();
        let step = distance(&after, &before);
        let mut compared =
            ComparedWithNothing::by_reference(0.0, step, evidence.bound, length(&after));
        // A step is no evidence against itself, and only its bound can speak for it.
        if !compared.is_nearer || compared.basis == ComparisonBasis::Estimate {
            let clears = self.inner().has_column_weights();
            for reference in references(self.family(), method) {
                let Outcome {
                    model,
                    evidence: found,
                } = self.inner().without(reference, clears, rows, gone)?;
                let retrained = model.parameters()?.numbers();
                outcome.evidence.rows_read += found.rows_read;
                compared = ComparedWithNothing::by_reference(
                    distance(&after, &retrained),
                    distance(&before, &retrained),
                    found.bound,
                    length(&retrained),
                );
                if compared.basis == ComparisonBasis::Bound {
                    break;
                }
            }
        }
        outcome.evidence.compared = Some(compared);
        Ok(())
    }
}

/// Returns the methods whose results stand in for retraining in a comparison, the cheapest first.
fn references(family: Family, method: &Method) -> &'static [Method] {
    const NEWTON: Method = Method::Newton(Newton {
        steps: 1,
        measure: false,
    });
    match (family, method) {
        (Family::Ridge, _) => &[Method::Exact],
        (_, Method::Newton(_)) => &[Method::WarmStart],
        _ => &[NEWTON, Method::WarmStart],
    }
}

/// The Euclidean distance of two lists of numbers.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    length(&difference)
}

fn length(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// What a request may ask beside its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodOptions {
    /// Sets the weights of columns that no retained row has to 0 after an approximate method too,
    /// which leaves there what its formula leaves. The evidence tells how many there were, and their
    /// norm. The other methods clear them always.
    pub clear_dead_columns: bool,
    /// Accepts the result of an approximate method that is no nearer to retraining than the model
    /// was. Otherwise such a request is refused.
    pub allow_worse: bool,
    /// Retrains k-means or shards with this seed instead of the seed of the fit.
    pub new_seed: Option<u64>,
}

impl MethodOptions {
    /// Returns the options of an audit or a study, which measures a method whatever it does.
    pub fn measured() -> Self {
        Self {
            allow_worse: true,
            ..Self::default()
        }
    }
}

/// A method on a model of any family, with what a request may ask beside it.
#[derive(Debug, Clone, Copy)]
pub struct MethodOnAny<'a> {
    /// The method.
    pub method: &'a Method,
    /// The options.
    pub options: MethodOptions,
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
        model.forget_with(self.method, self.options, rows, gone)
    }
}

impl TakesMethods for Model {
    fn worker(method: &Method) -> Option<Box<dyn Forget<Self> + '_>> {
        Some(Box::new(MethodOnAny {
            method,
            options: MethodOptions::default(),
        }))
    }
}
