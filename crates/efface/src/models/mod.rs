//! The models, one file or folder each.

pub(crate) mod basis;
mod classes;
pub mod kmeans;
mod long_sum;
pub mod naive_bayes;
mod request;
pub mod ridge;

pub use classes::Classes;
pub use kmeans::{KMeans, KMeansModel};
pub use naive_bayes::{GaussianNb, MultinomialNb, NaiveBayes};
pub use ridge::{Form, Ridge, RidgeModel, RidgeState};
