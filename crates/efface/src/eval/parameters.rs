//! A model as one vector of numbers, so that two of them have a distance.

use faer::Mat;

use super::task::refuse;
use crate::error::Result;
use crate::models::AnyModel;

/// The parameters in one line: coefficients output after output, then constants. Naive Bayes gives what its scores are
/// made of: log-probabilities, or means and variances, then the classes' shares.
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
        AnyModel::KMeans(_) => return refuse("clusters may change places without changing the model"),
        AnyModel::Sisa(_) => return refuse("a vote of shards has no parameters of its own"),
    };
    let mut all: Vec<f64> = Vec::new();
    for table in &tables {
        (0..table.ncols()).for_each(|column| all.extend_from_slice(table.col_as_slice(column)));
    }
    all.extend(constants);
    Ok(all)
}
