//! A model as one vector of numbers, so that two of them have a distance.

use crate::error::{Error, Result};
use crate::family::Family;
use crate::models::Model;

/// The parameters in one line: coefficients output after output, then constants. Naive Bayes gives
/// what its scores are made of: log-probabilities, or means and variances, then the classes'
/// shares. K-means gives its centres, in an order that means nothing. A model in shards is refused.
pub fn parameters(model: &Model) -> Result<Vec<f64>> {
    if model.family() == Family::Sisa {
        let reason =
            "a model in shards has no parameters of its own; compare its predictions".into();
        return Err(Error::Unsupported {
            method: "parameters",
            reason,
        });
    }
    Ok(model.parameters()?.numbers())
}
