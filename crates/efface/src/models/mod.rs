//! The models, one file or folder each.

pub(crate) mod basis;
mod block_sum;
mod classes;
pub mod family;
mod form;
pub mod kmeans;
pub mod logistic;
mod long_sum;
pub mod naive_bayes;
pub mod penalised;
mod projection;
pub(crate) mod request;
pub mod ridge;
pub mod sisa;
pub(crate) mod words;

pub use classes::Classes;
pub use family::{
    ClassReweighting, FamilyModel, FamilyRecipe, LeftOutRow, LinearScorer, MethodOnAny,
    MethodOptions, Model, ModelScorer, NamedParameters, Recipe, RecipeDescription, RecipeTask,
    RowsBeside, ScoreKind,
};
pub use form::Form;
pub use kmeans::{KMeans, KMeansModel};
pub use logistic::{Logistic, LogisticModel, Softmax};
pub use naive_bayes::{BernoulliNb, ComplementNb, GaussianNb, MultinomialNb, NaiveBayes};
pub use penalised::{LinearSvm, PenalisedModel, PoissonRegression};
pub use ridge::{CurvatureNorms, Ridge, RidgeModel, RidgeState, SumsAccuracy};
pub use sisa::{Aggregation, ShardRecipe, ShardedModel, ShardedRecipe, Sisa, SisaModel};

use family::RegisteredFamily;

use crate::family::Family;

/// The families whose recipes can be read from their settings alone, a line each. A network's
/// recipe holds its words as well and is read by its own crate.
const REGISTRY: [RegisteredFamily; 11] = [
    RegisteredFamily::of::<Ridge>(Family::Ridge),
    RegisteredFamily::of::<Logistic>(Family::Logistic),
    RegisteredFamily::of::<Softmax>(Family::Softmax),
    RegisteredFamily::of::<LinearSvm>(Family::LinearSvm),
    RegisteredFamily::of::<PoissonRegression>(Family::Poisson),
    RegisteredFamily::of::<MultinomialNb>(Family::MultinomialNb),
    RegisteredFamily::of::<ComplementNb>(Family::ComplementNb),
    RegisteredFamily::of::<BernoulliNb>(Family::BernoulliNb),
    RegisteredFamily::of::<GaussianNb>(Family::GaussianNb),
    RegisteredFamily::of::<KMeans>(Family::KMeans),
    RegisteredFamily::of::<ShardedRecipe>(Family::Sisa),
];
