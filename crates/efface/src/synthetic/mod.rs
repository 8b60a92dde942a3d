//! Generators of the data that forgetting is tried on: the linear problems of the source papers, a
//! set of product reviews and short news articles. A seed fixes the result.

mod injection;
mod linear;
mod news;
mod reviews;
mod spd;
mod words;

pub use injection::{FeatureInjection, OutlierProblem};
pub use linear::{LinearProblem, RegressionData};
pub use news::{Article, News};
pub use reviews::{PLANTED_USER, PLANTED_WORD, Review, Reviews};
pub use spd::SpdLinear;
