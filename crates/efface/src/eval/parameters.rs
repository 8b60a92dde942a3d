//! A model as one vector of numbers, so that two of them have a distance.

use std::collections::BTreeMap;

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

/// The parameters of a model, to be compared with those of another.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NamedNumbers {
    /// Of a model that reads the features that the other reads.
    InOrder(Vec<f64>),
    /// Of a model that reads features of its own, by table, feature and output.
    ByName {
        numbers: BTreeMap<(String, String, usize), f64>,
        /// True if a feature that the model does not read has the parameter 0.
        is_linear: bool,
    },
}

/// The parameters of a model under the names of its features, where it has features of its own.
pub(super) fn named_numbers(
    model: &Model,
    names: Option<&[(u32, String)]>,
) -> Result<NamedNumbers> {
    let Some(names) = names else {
        return Ok(NamedNumbers::InOrder(parameters(model)?));
    };
    let named = model.parameters()?;
    let mut numbers = BTreeMap::new();
    for (table_name, table) in &named.tables {
        for (feature, name) in names {
            let feature = *feature as usize;
            if feature >= table.nrows() {
                return Err(Error::Shape {
                    what: "parameters",
                    found: table.nrows(),
                    expected: feature + 1,
                });
            }
            for output in 0..table.ncols() {
                let key = ((*table_name).to_owned(), name.clone(), output);
                numbers.insert(key, table[(feature, output)]);
            }
        }
    }
    for (name, values) in named.vectors {
        for (output, value) in values.into_iter().enumerate() {
            numbers.insert((name.to_owned(), String::new(), output), value);
        }
    }
    Ok(NamedNumbers::ByName {
        numbers,
        is_linear: matches!(
            model.family(),
            Family::Ridge
                | Family::Logistic
                | Family::Softmax
                | Family::LinearSvm
                | Family::Poisson
        ),
    })
}

impl NamedNumbers {
    /// The Euclidean norm.
    pub(super) fn norm(&self) -> f64 {
        let squares: f64 = match self {
            Self::InOrder(values) => values.iter().map(|value| value * value).sum(),
            Self::ByName { numbers, .. } => numbers.values().map(|value| value * value).sum(),
        };
        squares.sqrt()
    }

    /// The Euclidean distance; None where one model has parameters that the other lacks, and a
    /// parameter that is not there does not stand for 0.
    pub(super) fn distance(&self, other: &Self) -> Result<Option<f64>> {
        let squares: f64 = match (self, other) {
            (Self::InOrder(own), Self::InOrder(other)) => {
                if own.len() != other.len() {
                    return Err(Error::Shape {
                        what: "parameters",
                        found: own.len(),
                        expected: other.len(),
                    });
                }
                own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum()
            }
            (
                Self::ByName {
                    numbers: own,
                    is_linear,
                },
                Self::ByName { numbers: other, .. },
            ) => {
                if !is_linear && !own.keys().eq(other.keys()) {
                    return Ok(None);
                }
                let in_own = own
                    .iter()
                    .map(|(key, value)| value - other.get(key).unwrap_or(&0.0));
                let in_other_alone = other
                    .iter()
                    .filter(|(key, _)| !own.contains_key(key))
                    .map(|(_, value)| *value);
                in_own.chain(in_other_alone).map(|gap| gap * gap).sum()
            }
            _ => return Ok(None),
        };
        Ok(Some(squares.sqrt()))
    }
}
