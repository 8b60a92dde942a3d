//! From a method to a model that has forgotten.

use super::rule::Judged;
use super::{AnyModel, BaseRecipe, Family};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::table::refusal;
use crate::methods::{
    Certified, DcKMeans, DescentToDelete, Exact, Influence, Method, Newton, QKMeans, Retrain, SisaForget,
    Summation, TakesMethods, WarmStart,
};
use crate::models::kmeans::Scheme;
use crate::models::{KMeansModel, LogisticModel, NaiveBayes, RidgeModel, SisaModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

impl AnyModel {
    /// The model without the rows `gone`. A method that makes no sense for this family is refused with the reason and with
    /// what to use instead. A result that misses its tolerance is retrained; where that misses it too, it is refused if the
    /// request named the tolerance, and else kept as `approximate`.
    pub fn forget(&self, method: &Method, rows: &dyn RowStore, gone: &[RowId]) -> Result<Outcome<Self>> {
        self.forget_with(method, false, rows, gone)
    }

    /// As [`forget`](Self::forget), and the weights of columns that no retained row has are set to 0 after an approximate
    /// method too, which leaves there what its formula leaves. The evidence tells how many there were, and their norm. The
    /// other methods clear them always.
    pub fn forget_and_clear(
        &self,
        method: &Method,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        self.forget_with(method, true, rows, gone)
    }

    fn forget_with(
        &self,
        method: &Method,
        clear_dead_columns: bool,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        let family = self.family();
        let unsupported =
            |reason: &str| Err(Error::Unsupported { method: method.name(), reason: reason.into() });
        if !method.is_for(family) {
            return unsupported(&refusal(method.name(), family));
        }
        method.check()?;
        let linear = matches!(family, Family::Ridge | Family::Logistic | Family::Softmax);
        if clear_dead_columns && !linear {
            return unsupported(
                "only a ridge, logistic or softmax model has a weight per column; leave out clear_dead_columns",
            );
        }
        if family == Family::Ridge && matches!(method, Method::Newton(set) if *set != Newton::default()) {
            return unsupported(
                "one step is the minimum of a squared loss, and its bound is always measured; leave out steps and measure",
            );
        }
        if method.tolerance().is_some() && self.is_certified() {
            return unsupported(
                "a certified model answers to its budget and not to a distance; leave out the tolerance",
            );
        }
        let outcome = match self {
            Self::Ridge(model) => {
                let mut found = Forget::<RidgeModel>::forget(method, model, rows, gone)?;
                if clear_dead_columns {
                    found.clear_dead_columns()?;
                }
                wrap(Ok(found), |model| Self::Ridge(Box::new(model)))?
            }
            Self::Logistic(model) => {
                let mut found = Forget::<LogisticModel>::forget(method, model, rows, gone)?;
                if clear_dead_columns {
                    found.clear_dead_columns();
                }
                wrap(Ok(found), |model| Self::Logistic(Box::new(model)))?
            }
            Self::MultinomialNb(model) => wrap(method.forget(model, rows, gone), Self::MultinomialNb)?,
            Self::GaussianNb(model) => wrap(method.forget(model, rows, gone), Self::GaussianNb)?,
            Self::KMeans(model) => wrap(method.forget(model, rows, gone), Self::KMeans)?,
            Self::Sisa(model) => wrap(method.forget(model, rows, gone), Self::Sisa)?,
        };
        let mut outcome = explained(outcome, method, family);
        let asked = method.tolerance().is_some();
        outcome.evidence.tolerance = method.tolerance().or(outcome.evidence.tolerance);
        if gone.is_empty() && !asked {
            // A request for nothing changes nothing: the model says where it stands.
            return Ok(outcome);
        }
        Judged { outcome, asked }.repaired(|| self.forget(&Method::Retrain, rows, gone))
    }

    /// Whether it was trained with noise.
    fn is_certified(&self) -> bool {
        matches!(self, Self::Logistic(model) if model.settings().logistic.privacy.is_some())
    }
}

/// Says why `auto` took what it took, where the method did not say so itself.
fn explained(mut outcome: Outcome<AnyModel>, method: &Method, family: Family) -> Outcome<AnyModel> {
    let evidence = &mut outcome.evidence;
    if matches!(method, Method::Auto(_)) && evidence.reason.is_none() {
        evidence.reason = match family {
            Family::MultinomialNb | Family::GaussianNb => {
                Some("the model is its sums, and sums can be subtracted from".into())
            }
            Family::KMeans => Some("the scheme that the model was fitted with decides".into()),
            Family::Sisa => Some("only the shards that saw the rows are trained again".into()),
            Family::Logistic if evidence.certificate.is_some() => {
                Some("the noise that the model was fitted with decides".into())
            }
            Family::Ridge | Family::Logistic | Family::Softmax | Family::Network => None,
        };
    }
    outcome
}

pub(super) fn wrap<M>(outcome: Result<Outcome<M>>, name: fn(M) -> AnyModel) -> Result<Outcome<AnyModel>> {
    let Outcome { model, evidence } = outcome?;
    Ok(Outcome { model: name(model), evidence })
}

impl TakesMethods for RidgeModel {
    fn worker(method: &Method) -> Option<&dyn Forget<Self>> {
        Some(match method {
            Method::Retrain => &Retrain,
            Method::Exact => &Exact,
            Method::Newton(newton) => newton,
            Method::Influence => &Influence,
            Method::ProjectionResidual(projection) => projection,
            Method::Summation => &Summation,
            Method::Auto(auto) => auto,
            _ => return None,
        })
    }
}

impl TakesMethods for LogisticModel {
    fn worker(method: &Method) -> Option<&dyn Forget<Self>> {
        Some(match method {
            Method::Retrain => &Retrain,
            Method::Newton(newton) => newton,
            Method::Influence => &Influence,
            Method::ProjectionResidual(projection) => projection,
            Method::WarmStart => &WarmStart,
            Method::DeltaGrad(replay) => replay,
            Method::Certified => &BudgetOfModel,
            Method::DescentToDelete => &NoiseOfModel,
            Method::Auto(auto) => auto,
            _ => return None,
        })
    }
}

impl<R: 'static> TakesMethods for NaiveBayes<R>
where
    Retrain: Forget<Self>,
    Summation: Forget<Self>,
{
    fn worker(method: &Method) -> Option<&dyn Forget<Self>> {
        Some(match method {
            Method::Retrain => &Retrain,
            Method::Summation | Method::Auto(_) => &Summation,
            _ => return None,
        })
    }
}

impl TakesMethods for KMeansModel {
    fn worker(method: &Method) -> Option<&dyn Forget<Self>> {
        Some(match method {
            Method::Retrain => &Retrain,
            Method::QKMeans => &QKMeans,
            Method::DcKMeans => &DcKMeans,
            Method::Auto(_) => &SchemeOfModel,
            _ => return None,
        })
    }
}

impl TakesMethods for SisaModel<BaseRecipe> {
    fn worker(method: &Method) -> Option<&dyn Forget<Self>> {
        Some(match method {
            Method::Retrain => &Retrain,
            Method::Sisa | Method::Auto(_) => &SisaForget,
            _ => return None,
        })
    }
}

/// `certified` with the ε and δ that a model was fitted with.
struct BudgetOfModel;

impl Forget<LogisticModel> for BudgetOfModel {
    fn name(&self) -> &'static str {
        Method::Certified.name()
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        Certified::of(model)?.forget(model, rows, gone)
    }
}

/// `descent_to_delete` with the ε and δ that a model was fitted with.
struct NoiseOfModel;

impl Forget<LogisticModel> for NoiseOfModel {
    fn name(&self) -> &'static str {
        Method::DescentToDelete.name()
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &LogisticModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<LogisticModel>> {
        DescentToDelete::of(model)?.forget(model, rows, gone)
    }
}

/// The method of the scheme that a model of clusters was fitted with.
struct SchemeOfModel;

impl Forget<KMeansModel> for SchemeOfModel {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &KMeansModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<KMeansModel>> {
        match model.settings().scheme {
            Scheme::Quantised { .. } => QKMeans.forget(model, rows, gone),
            Scheme::Divided { .. } => DcKMeans.forget(model, rows, gone),
        }
    }
}
