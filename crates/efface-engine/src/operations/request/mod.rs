//! What a caller asks for.

mod forget;
mod network;

pub use forget::{ForgetOptions, ForgetOrder, ForgetRequest, RowSelection};
pub use network::{EncoderChoice, NetworkRequest, Vectors};

use efface::features::{EncoderOptions, WordSource};
use efface::{Aggregation, KMeans, Logistic, Ridge, Softmax};

use crate::operations::row_source::RowSource;

/// What a fit is asked to do.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The rows: a file, or records in memory.
    pub source: RowSource,
    /// The columns to predict, one or many. Must be empty for svmlight, whose target is in the line, and for k-means.
    pub targets: Vec<String>,
    /// Columns read as words.
    pub text: Vec<String>,
    /// Columns that are one-hot whatever they look like.
    pub categorical: Vec<String>,
    /// Columns that must hold numbers.
    pub numeric: Vec<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
    /// The column that names a row; without one, rows are named by their position 0, 1, 2, ….
    pub id: Option<String>,
    /// The column that names the person a row belongs to.
    pub subject: Option<String>,
    /// The column that holds a row's weight.
    pub weight: Option<String>,
    /// Where the words of text columns come from.
    pub words: WordSource,
    /// The most levels of a column that was inferred to be one-hot.
    pub max_levels: usize,
    /// Whether target values are classes; logistic, softmax and naive Bayes imply it.
    pub classify: bool,
    /// Target values that are the positive class, all others being the negative one; implies `classify`. Equal numbers
    /// are equal however they are written.
    pub positive: Vec<String>,
    /// The model.
    pub model: Choice,
    /// In how many parts to train it, where it is not trained as a whole.
    pub sharding: Option<Sharding>,
    /// A text network in place of the model above.
    pub network: Option<NetworkRequest>,
    /// Who may read the model file, as in `chmod`; its owner alone unless this says otherwise.
    pub mode: u32,
}

impl FitRequest {
    /// A regression on every column of `source` but the target, which is still to be named.
    pub fn new(source: impl Into<RowSource>) -> Self {
        let EncoderOptions { words, max_levels, .. } = EncoderOptions::default();
        Self {
            source: source.into(),
            targets: Vec::new(),
            text: Vec::new(),
            categorical: Vec::new(),
            numeric: Vec::new(),
            ignore: Vec::new(),
            id: None,
            subject: None,
            weight: None,
            words,
            max_levels,
            classify: false,
            positive: Vec::new(),
            model: Choice::default(),
            sharding: None,
            network: None,
            mode: crate::file::outputs::PRIVATE_MODE,
        }
    }
}

/// Which model to fit. What depends on the columns is settled when they are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// Ridge regression, or its classifier face.
    Ridge(Ridge),
    /// Logistic regression, two classes. Its noise, where it has some, is made of a secret seed that the engine draws.
    Logistic(Logistic),
    /// Logistic regression, three classes or more.
    Softmax(Softmax),
    /// Naive Bayes. Without a likelihood, columns decide: Gaussian when one of them holds numbers, else multinomial.
    NaiveBayes(Option<Likelihood>),
    /// k-means.
    KMeans(KMeans),
}

impl Default for Choice {
    fn default() -> Self {
        Self::Ridge(Ridge::default())
    }
}

impl From<Ridge> for Choice {
    fn from(ridge: Ridge) -> Self {
        Self::Ridge(ridge)
    }
}

impl From<Logistic> for Choice {
    fn from(logistic: Logistic) -> Self {
        Self::Logistic(logistic)
    }
}

impl From<Softmax> for Choice {
    fn from(softmax: Softmax) -> Self {
        Self::Softmax(softmax)
    }
}

impl From<KMeans> for Choice {
    fn from(kmeans: KMeans) -> Self {
        Self::KMeans(kmeans)
    }
}

/// A model in shards, each trained by itself (SISA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// S, the shards.
    pub shards: usize,
    /// R, the slices of a shard.
    pub slices: usize,
    /// What the place of a row follows from.
    pub seed: u64,
    /// How the answers of the shards become one; None takes the vote for classes and the mean for numbers.
    pub aggregation: Option<Aggregation>,
    /// How many shards may be trained at a time.
    pub threads: usize,
}

/// How naive Bayes takes features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likelihood {
    /// As counts.
    Multinomial,
    /// As numbers.
    Gaussian,
}
