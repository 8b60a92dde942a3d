//! What a model consists of, by name.

use faer::Mat;

use crate::error::Error;

/// What a model consists of, under the names that exports use. Tables have a line per feature and a
/// column per output, class or cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedParameters {
    /// Lists by name.
    pub vectors: Vec<(&'static str, Vec<f64>)>,
    /// Tables by name.
    pub tables: Vec<(&'static str, Mat<f64>)>,
}

impl NamedParameters {
    /// The parameters of scores that are sums: coefficients, and a constant per output.
    pub fn linear(coefficients: Mat<f64>, intercept: Vec<f64>) -> Self {
        Self {
            vectors: vec![("intercept", intercept)],
            tables: vec![("coefficients", coefficients)],
        }
    }

    /// Returns all numbers as one list: the tables column after column, then the lists.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut all: Vec<f64> = Vec::new();
        for (_, table) in &self.tables {
            (0..table.ncols()).for_each(|column| all.extend_from_slice(table.col_as_slice(column)));
        }
        all.extend(self.vectors.iter().flat_map(|(_, values)| values));
        all
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Mat<f64>> {
        self.tables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, table)| table)
    }

    /// The list of this name.
    pub fn vector(&self, name: &str) -> Option<&[f64]> {
        self.vectors
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, values)| values.as_slice())
    }
}

/// Why a model in shards has no parameters.
pub fn no_parameters(shards: usize) -> Error {
    let reason = format!(
        "a model in {shards} shards has no parameters of its own, only those of every shard; fit without shards to \
         export, or use predict"
    );
    Error::Unsupported {
        method: "export",
        reason,
    }
}
