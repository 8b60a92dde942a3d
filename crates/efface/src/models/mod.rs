//! The models, one file or folder each.

mod any;
pub(crate) mod basis;
mod block_sum;
mod classes;
pub mod kmeans;
pub mod logistic;
mod long_sum;
pub mod naive_bayes;
mod projection;
pub(crate) mod request;
pub mod ridge;
pub mod sisa;

pub use any::{
    AnyModel, AnyRecipe, BaseModel, BaseRecipe, Family, Linear, NamedParameters, Scorer, no_parameters,
};
pub use classes::Classes;
pub use kmeans::{KMeans, KMeansModel};
pub use logistic::{Logistic, LogisticModel, Softmax};
pub use naive_bayes::{GaussianNb, MultinomialNb, NaiveBayes};
pub use ridge::{Form, Ridge, RidgeModel, RidgeState, SumsAccuracy};
pub use sisa::{Aggregation, Sisa, SisaModel};
