//! What every family tells of itself: its state, its parameters, and how far it can be from its optimum.

use faer::Mat;

use super::{AnyModel, AnyRecipe, Family};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Evidence};
use crate::methods::Method;
use crate::models::kmeans::Scheme;
use crate::models::logistic::Certifier;
use crate::models::{LogisticModel, RidgeModel, RidgeState};
use crate::rows::RowStore;
use crate::state::ModelState;

/// What a model consists of, under the names that exports use. Tables have a line per feature and a column per output, class or
/// cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedParameters {
    /// Lists by name.
    pub vectors: Vec<(&'static str, Vec<f64>)>,
    /// Tables by name.
    pub tables: Vec<(&'static str, Mat<f64>)>,
}

impl NamedParameters {
    pub(super) fn linear((coefficients, intercept): (Mat<f64>, Vec<f64>)) -> Self {
        Self { vectors: vec![("intercept", intercept)], tables: vec![("coefficients", coefficients)] }
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Mat<f64>> {
        self.tables.iter().find(|(known, _)| *known == name).map(|(_, table)| table)
    }
}

/// Why a model in shards has no parameters.
pub fn no_parameters(shards: usize) -> Error {
    let reason = format!(
        "a model in {shards} shards has no parameters of its own, only those of every shard; fit without shards to \
         export, or use predict"
    );
    Error::Unsupported { method: "export", reason }
}

impl AnyModel {
    /// The model as plain data. Settle it first: waiting changes are not part of the state.
    pub fn to_state(&self) -> Result<ModelState> {
        match self {
            Self::Ridge(model) => model.to_state()?.to_model_state(),
            Self::Logistic(model) => model.to_state(),
            Self::MultinomialNb(model) => ModelState::new(Family::MultinomialNb, model),
            Self::GaussianNb(model) => ModelState::new(Family::GaussianNb, model),
            Self::KMeans(model) => ModelState::new(Family::KMeans, model),
            Self::Sisa(model) => ModelState::new(Family::Sisa, model),
        }
    }

    /// The model of a state, without any row. A ridge model in the rows form, which keeps rows, comes back in the factor form.
    pub fn from_state(state: ModelState) -> Result<Self> {
        Self::restored(state, None)
    }

    /// The model of a state in the form that it had. `rows` is read by a ridge model in the rows form only.
    pub fn from_state_with_rows(state: ModelState, rows: &dyn RowStore) -> Result<Self> {
        Self::restored(state, Some(rows))
    }

    fn restored(state: ModelState, rows: Option<&dyn RowStore>) -> Result<Self> {
        Ok(match state.family {
            Family::Ridge => {
                let state = RidgeState::from_model_state(state)?;
                Self::Ridge(Box::new(match rows {
                    Some(rows) => RidgeModel::from_state_with_rows(&state, rows)?,
                    None => RidgeModel::from_state(&state)?,
                }))
            }
            Family::Logistic | Family::Softmax => Self::Logistic(Box::new(LogisticModel::from_state(state)?)),
            Family::MultinomialNb => Self::MultinomialNb(state.head()?),
            Family::GaussianNb => Self::GaussianNb(state.head()?),
            Family::KMeans => Self::KMeans(state.head()?),
            Family::Sisa => Self::Sisa(state.head()?),
            Family::Network => {
                return Err(Error::Damaged("it is the state of a network".into()));
            }
        })
    }

    /// The parameters by name; refused for a model in shards.
    pub fn parameters(&self) -> Result<NamedParameters> {
        Ok(match self {
            Self::Ridge(model) => NamedParameters::linear(model.parameters()),
            Self::Logistic(model) => NamedParameters::linear(model.parameters()),
            Self::MultinomialNb(model) => NamedParameters {
                vectors: vec![("class_prior", model.class_prior())],
                tables: vec![("feature_log_prob", model.feature_log_prob().transpose().to_owned())],
            },
            Self::GaussianNb(model) => NamedParameters {
                vectors: vec![("class_prior", model.class_prior())],
                tables: vec![
                    ("means", model.means().transpose().to_owned()),
                    ("variances", model.variances().transpose().to_owned()),
                ],
            },
            Self::KMeans(model) => NamedParameters {
                vectors: Vec::new(),
                tables: vec![("centers", model.centers().transpose().to_owned())],
            },
            Self::Sisa(model) => return Err(no_parameters(model.settings().shards)),
        })
    }

    /// What is known of the model as it stands: its bound, and what stands behind it. The method is the one that `auto` takes.
    pub fn evidence(&self) -> Evidence {
        match self {
            Self::Ridge(model) => model.evidence(Method::Exact.name(), Claim::Exact),
            Self::Logistic(model) => {
                let settings = model.settings().logistic;
                let Some(privacy) = settings.privacy else {
                    let mut evidence = model.evidence(Method::default().name(), Claim::Approximate);
                    evidence.tolerance = Some(settings.tolerance);
                    return evidence;
                };
                let method = match privacy.certifier {
                    Certifier::Removal { .. } => Method::Certified,
                    Certifier::Descent { .. } => Method::DescentToDelete,
                };
                let claim = Claim::Certified { epsilon: privacy.epsilon, delta: privacy.delta };
                model.evidence(method.name(), claim)
            }
            Self::MultinomialNb(model) => model.evidence(Method::Summation.name()),
            Self::GaussianNb(model) => model.evidence(Method::Summation.name()),
            Self::KMeans(model) => {
                let method = match model.settings().scheme {
                    Scheme::Quantised { .. } => Method::QKMeans,
                    Scheme::Divided { .. } => Method::DcKMeans,
                };
                model.evidence(method.name())
            }
            Self::Sisa(model) => model.evidence(Method::Sisa.name()),
        }
    }

    /// Whether a recipe made this model. The form of a ridge model may be another one: files hold sums, whatever the form.
    pub fn is_of(&self, recipe: &AnyRecipe) -> bool {
        match (recipe, self) {
            (AnyRecipe::Ridge(_), Self::Ridge(_)) => true,
            (AnyRecipe::Logistic(recipe), Self::Logistic(model)) => recipe.settings() == *model.settings(),
            (AnyRecipe::Softmax(recipe), Self::Logistic(model)) => recipe.settings() == *model.settings(),
            (AnyRecipe::MultinomialNb(recipe), Self::MultinomialNb(model)) => recipe == model.settings(),
            (AnyRecipe::GaussianNb(recipe), Self::GaussianNb(model)) => recipe == model.settings(),
            (AnyRecipe::KMeans(recipe), Self::KMeans(model)) => recipe == model.settings(),
            (AnyRecipe::Sisa(recipe), Self::Sisa(model)) => recipe == model.settings(),
            _ => false,
        }
    }

    /// The targets that a row has, or the classes of naive Bayes; None where a model does not know.
    pub fn outputs(&self) -> Option<usize> {
        match self {
            Self::Ridge(model) => Some(model.outputs()),
            Self::Logistic(model) => Some(model.outputs()),
            Self::MultinomialNb(_) | Self::GaussianNb(_) | Self::KMeans(_) => None,
            Self::Sisa(model) => Some(model.outputs()),
        }
    }

    /// How often its curvature was made anew.
    pub fn refactorisations(&self) -> usize {
        match self {
            Self::Ridge(model) => model.refactorisations(),
            Self::Logistic(model) => model.refactorisations,
            _ => 0,
        }
    }

    /// The classes that naive Bayes was fitted for; None for the other families.
    pub fn classes(&self) -> Option<usize> {
        match self {
            Self::MultinomialNb(model) => Some(model.classes()),
            Self::GaussianNb(model) => Some(model.classes()),
            Self::Ridge(_) | Self::Logistic(_) | Self::KMeans(_) | Self::Sisa(_) => None,
        }
    }
}
