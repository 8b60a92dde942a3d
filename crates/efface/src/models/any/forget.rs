//! From the name of a method to a model that has forgotten.

use super::rule::Judged;
use super::{AnyModel, BaseRecipe, Family};
use crate::error::{Error, Result};
use crate::evidence::Outcome;
use crate::methods::table::{self, refusal};
use crate::methods::{
    Auto, Certified, DcKMeans, DeltaGrad, DescentToDelete, Exact, Influence, Newton, ProjectionResidual,
    QKMeans, Retrain, SisaForget, Summation, WarmStart,
};
use crate::models::kmeans::Scheme;
use crate::models::{KMeansModel, LogisticModel, NaiveBayes, RidgeModel, SisaModel};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

/// What a request may ask beyond the name of a method.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// The relative distance bound that `auto` must reach; above 0 and below 1. A model without one keeps its own.
    pub tolerance: Option<f64>,
    /// The steps of `newton` on a logistic or softmax model; 1 to 100.
    pub steps: Option<usize>,
    /// Whether `newton` on a logistic or softmax model reads the retained rows to measure its gradient in any case.
    pub measure: bool,
    /// Whether the weights of columns that no retained row has are set to 0 after an approximate method, which leaves there
    /// what its formula leaves. The evidence tells how many there were, and their norm. The other methods clear them
    /// always.
    pub clear_dead_columns: bool,
}

impl Options {
    fn check(&self, method: &'static str, family: Family) -> Result<()> {
        let unsupported = |reason: &str| Err(Error::Unsupported { method, reason: reason.into() });
        if let Some(tolerance) = self.tolerance {
            if !(tolerance > 0.0 && tolerance < 1.0) {
                let value = tolerance.to_string();
                return Err(Error::Parameter { name: "tolerance", value, range: "above 0 and below 1" });
            }
            if method != "auto" {
                return unsupported(
                    "a tolerance is what auto must reach, and any other method does what it does; use auto, or no \
                     tolerance",
                );
            }
        }
        if let Some(steps) = self.steps
            && !(1..=100).contains(&steps)
        {
            let value = steps.to_string();
            return Err(Error::Parameter { name: "steps", value, range: "1 to 100" });
        }
        if self.clear_dead_columns && !matches!(family, Family::Ridge | Family::Logistic | Family::Softmax) {
            return unsupported(
                "only a ridge, logistic or softmax model has a weight per column; leave out clear_dead_columns",
            );
        }
        if self.steps.is_none() && !self.measure {
            return Ok(());
        }
        match (method, family) {
            ("newton", Family::Logistic | Family::Softmax) => Ok(()),
            ("newton", Family::Ridge) => unsupported(
                "one step is the minimum of a squared loss, and its bound is always measured; leave out steps and measure",
            ),
            _ => {
                unsupported("steps and measure are for newton on a logistic or softmax model; leave them out")
            }
        }
    }
}

impl AnyModel {
    /// The model without the rows `gone`, by the method of that name. A method that makes no sense for this family is
    /// refused with the reason and with what to use instead. A result that misses its tolerance is retrained; where that
    /// misses it too, it is refused if the request named the tolerance, and else kept as `approximate`.
    pub fn forget(
        &self,
        method: &str,
        options: &Options,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<Self>> {
        let Some(method) = table::name(method) else {
            let value = method.to_owned();
            return Err(Error::Parameter {
                name: "method",
                value,
                range: "the name of a method in the table",
            });
        };
        let family = self.family();
        if !table::lists(method, family) {
            return Err(Error::Unsupported { method, reason: refusal(method, family) });
        }
        options.check(method, family)?;
        if options.tolerance.is_some() && self.is_certified() {
            let reason =
                "a certified model answers to its budget and not to a distance; leave out the tolerance";
            return Err(Error::Unsupported { method, reason: reason.into() });
        }
        let outcome = match self {
            Self::Ridge(model) => {
                let mut found = named(&ridge(), method, family)?.forget(model, rows, gone)?;
                if options.clear_dead_columns {
                    found.clear_dead_columns()?;
                }
                wrap(Ok(found), |model| Self::Ridge(Box::new(model)))?
            }
            Self::Logistic(model) => {
                let way = classifier(model, method, options)?;
                let mut found = way.forget(model, rows, gone)?;
                if options.clear_dead_columns {
                    found.clear_dead_columns();
                }
                wrap(Ok(found), |model| Self::Logistic(Box::new(model)))?
            }
            Self::MultinomialNb(model) => {
                wrap(named(&bayes(), method, family)?.forget(model, rows, gone), Self::MultinomialNb)?
            }
            Self::GaussianNb(model) => {
                wrap(named(&bayes(), method, family)?.forget(model, rows, gone), Self::GaussianNb)?
            }
            Self::KMeans(model) => {
                let method = match (method, model.settings().scheme) {
                    ("auto", Scheme::Quantised { .. }) => "q_kmeans",
                    ("auto", Scheme::Divided { .. }) => "dc_kmeans",
                    _ => method,
                };
                wrap(named(&kmeans(), method, family)?.forget(model, rows, gone), Self::KMeans)?
            }
            Self::Sisa(model) => wrap(named(&sisa(), method, family)?.forget(model, rows, gone), Self::Sisa)?,
        };
        let mut outcome = explained(outcome, method, family);
        let asked = options.tolerance.is_some();
        outcome.evidence.tolerance = options.tolerance.or(outcome.evidence.tolerance);
        if gone.is_empty() && !asked {
            // A request for nothing changes nothing: the model says where it stands.
            return Ok(outcome);
        }
        Judged { outcome, asked }.repaired(|| self.forget("retrain", &Options::default(), rows, gone))
    }

    /// Whether it was trained with noise.
    fn is_certified(&self) -> bool {
        matches!(self, Self::Logistic(model) if model.settings().logistic.privacy.is_some())
    }
}

/// Says why `auto` took what it took, where the method did not say so itself.
fn explained(mut outcome: Outcome<AnyModel>, method: &str, family: Family) -> Outcome<AnyModel> {
    let evidence = &mut outcome.evidence;
    if method == "auto" && evidence.reason.is_none() {
        evidence.reason = match family {
            Family::MultinomialNb | Family::GaussianNb => {
                Some("the model is its sums, and sums can be subtracted from".into())
            }
            Family::KMeans => Some("the scheme that the model was fitted with decides".into()),
            Family::Sisa => Some("only the shards that saw the rows are trained again".into()),
            Family::Logistic if evidence.certificate.is_some() => {
                Some("the noise that the model was fitted with decides".into())
            }
            Family::Ridge | Family::Logistic | Family::Softmax => None,
        };
    }
    outcome
}

pub(super) fn wrap<M>(outcome: Result<Outcome<M>>, name: fn(M) -> AnyModel) -> Result<Outcome<AnyModel>> {
    let Outcome { model, evidence } = outcome?;
    Ok(Outcome { model: name(model), evidence })
}

/// A method under the name by which it is asked for.
type Named<M> = (&'static str, Box<dyn Forget<M>>);

/// The method of that name in a family's list. The table has said that it is there.
fn named<'a, M>(list: &'a [Named<M>], method: &'static str, family: Family) -> Result<&'a dyn Forget<M>> {
    match list.iter().find(|(name, _)| *name == method) {
        Some((_, found)) => Ok(found.as_ref()),
        None => Err(Error::Unsupported { method, reason: refusal(method, family) }),
    }
}

fn ridge() -> [Named<RidgeModel>; 7] {
    [
        ("retrain", Box::new(Retrain)),
        ("exact", Box::new(Exact)),
        ("newton", Box::new(Newton::default())),
        ("influence", Box::new(Influence)),
        ("projection_residual", Box::new(ProjectionResidual::default())),
        ("summation", Box::new(Summation)),
        ("auto", Box::new(Auto::default())),
    ]
}

fn bayes<R>() -> [Named<NaiveBayes<R>>; 3]
where
    Retrain: Forget<NaiveBayes<R>>,
    Summation: Forget<NaiveBayes<R>>,
{
    [("retrain", Box::new(Retrain)), ("summation", Box::new(Summation)), ("auto", Box::new(Summation))]
}

fn kmeans() -> [Named<KMeansModel>; 3] {
    [("retrain", Box::new(Retrain)), ("q_kmeans", Box::new(QKMeans)), ("dc_kmeans", Box::new(DcKMeans))]
}

fn sisa() -> [Named<SisaModel<BaseRecipe>>; 3] {
    [("retrain", Box::new(Retrain)), ("sisa", Box::new(SisaForget)), ("auto", Box::new(SisaForget))]
}

/// A method with what the request says of it. The certified ones look at the model first.
fn classifier(
    model: &LogisticModel,
    method: &'static str,
    options: &Options,
) -> Result<Box<dyn Forget<LogisticModel>>> {
    let Options { tolerance, steps, measure, .. } = *options;
    Ok(match method {
        "retrain" => Box::new(Retrain),
        "newton" => Box::new(Newton { steps: steps.unwrap_or(1), measure }),
        "influence" => Box::new(Influence),
        "projection_residual" => Box::new(ProjectionResidual::default()),
        "warm_start" => Box::new(WarmStart),
        "delta_grad" => Box::new(DeltaGrad::default()),
        "certified" => Box::new(Certified::of(model)?),
        "descent_to_delete" => Box::new(DescentToDelete::of(model)?),
        _ => Box::new(Auto { tolerance }),
    })
}
