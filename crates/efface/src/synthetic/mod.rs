//! Generators of the data that forgetting is tried on: the linear problems of the source papers and a set of product
//! reviews. A seed fixes the result.

mod injection;
mod linear;
mod reviews;
mod words;

pub use injection::{FeatureInjection, Outliers};
pub use linear::{Linear, Regression};
pub use reviews::{PLANTED_USER, PLANTED_WORD, Review, Reviews};
