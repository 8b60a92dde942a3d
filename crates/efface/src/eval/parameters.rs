//! A model as one vector of numbers, so that two of them have a distance.

use faer::Mat;

use super::centres::centres_in_order;
use crate::error::{Error, Result};
use crate::models::AnyModel;

/// The parameters in one line: coefficients output after output, then constants. Naive Bayes gives what its scores are
/// made of: log-probabilities, or means and variances, then the classes' shares. K-means gives its centres, in an order that means
/// nothing. A model in shards is refused.
pub fn parameters(model: &AnyModel) -> Result<Vec<f64>> {
    let (tables, constants): (Vec<Mat<f64>>, Vec<f64>) = match model {
        AnyModel::Ridge(model) => {
            let (table, constants) = model.parameters();
            (vec![table], constants)
        }
        AnyModel::Logistic(model) => {
            let (table, constants) = model.parameters();
            (vec![table], constants)
        }
        AnyModel::MultinomialNb(model) => (vec![model.feature_log_prob()], model.class_prior()),
        AnyModel::GaussianNb(model) => (vec![model.means(), model.variances()], model.class_prior()),
        AnyModel::KMeans(model) => {
            let order: Vec<usize> = (0..model.settings().k).collect();
            return Ok(centres_in_order(model, &order));
        }
        AnyModel::Sisa(_) => {
            let reason = "a model in shards has no parameters of its own; compare its predictions".into();
            return Err(Error::Unsupported { method: "parameters", reason });
        }
    };
    let mut all: Vec<f64> = Vec::new();
    for table in &tables {
        (0..table.ncols()).for_each(|column| all.extend_from_slice(table.col_as_slice(column)));
    }
    all.extend(constants);
    Ok(all)
}
