//! The names of the families of models.

use serde::{Deserialize, Serialize};

/// The families of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Squared loss.
    Ridge,
    /// Logistic loss, two classes.
    Logistic,
    /// Logistic loss, three classes or more.
    Softmax,
    /// Squared hinge loss: a linear support vector machine.
    LinearSvm,
    /// Poisson loss with a logarithmic link.
    Poisson,
    /// Naive Bayes over counts.
    MultinomialNb,
    /// Naive Bayes over the counts of all other classes.
    ComplementNb,
    /// Naive Bayes over what is there and what is not.
    BernoulliNb,
    /// Naive Bayes over numbers.
    GaussianNb,
    /// Clusters.
    KMeans,
    /// A model in shards.
    Sisa,
    /// An encoder of texts and a head.
    Network,
}

impl Family {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 12] = [
        Self::Ridge,
        Self::Logistic,
        Self::Softmax,
        Self::LinearSvm,
        Self::Poisson,
        Self::MultinomialNb,
        Self::ComplementNb,
        Self::BernoulliNb,
        Self::GaussianNb,
        Self::KMeans,
        Self::Sisa,
        Self::Network,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ridge => "ridge",
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
            Self::LinearSvm => "linear SVM",
            Self::Poisson => "Poisson regression",
            Self::MultinomialNb => "multinomial naive Bayes",
            Self::ComplementNb => "complement naive Bayes",
            Self::BernoulliNb => "Bernoulli naive Bayes",
            Self::GaussianNb => "Gaussian naive Bayes",
            Self::KMeans => "k-means",
            Self::Sisa => "sisa",
            Self::Network => "network",
        }
    }
}
