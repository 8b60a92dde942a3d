//! What a caller asks for.

mod forget;
mod network;
mod network_options;

pub use forget::{ForgetOptions, ForgetOrder, ForgetRequest, RowSelection};
pub use network::{EncoderChoice, NetworkRequest, Vectors};
pub use network_options::{NetworkName, NetworkOptions};

use std::path::PathBuf;
use std::sync::Arc;

use efface::features::{EncoderOptions, FeatureSteps, WordSource};
use efface::{Aggregation, GaussianNb, GramEngine, MultinomialNb, Recipe, Ridge};
use efface_nn::NetworkDevice;

use crate::codec::class_weights::ClassWeight;
use crate::ledger::signer::KeyAccess;
use crate::operations::row_source::RowSource;

/// What a fit is asked to do.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The rows: a file, or records in memory.
    pub source: RowSource,
    /// The columns to predict, one or many. Must be empty for svmlight, whose target is in the
    /// line, and for k-means.
    pub targets: Vec<String>,
    /// Columns read as words.
    pub text: Vec<String>,
    /// Columns that are one-hot whatever they look like.
    pub categorical: Vec<String>,
    /// Columns that must hold numbers.
    pub numeric: Vec<String>,
    /// Columns of dates, which are read as days since 1970.
    pub dates: Vec<String>,
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
    /// What is done to columns before the model sees them.
    pub steps: FeatureSteps,
    /// Whether target values are classes; logistic, softmax and naive Bayes imply it.
    pub classify: bool,
    /// Target values that are the positive class, all others being the negative one; implies
    /// `classify`. Equal numbers are equal however they are written.
    pub positive: Vec<String>,
    /// What rows count for by their class; without it, all count alike.
    pub class_weight: Option<ClassWeight>,
    /// The model; of a network, its head. Noise, where a recipe has some, is made of a secret seed
    /// that the engine draws.
    pub model: Recipe,
    /// The model in its place where a column holds numbers, as naive Bayes counts words and levels
    /// but not numbers.
    pub model_for_numbers: Option<Recipe>,
    /// How to find out how good the model is. The figures are stored with it until its rows change.
    pub scoring: Option<ScoringPlan>,
    /// Whether λ is chosen from [`efface::scores::PENALTY_CANDIDATES`] by leave-one-out or
    /// cross-validation.
    pub choose_penalty: bool,
    /// In how many parts to train it, where it is not trained as a whole.
    pub sharding: Option<Sharding>,
    /// The encoder of a text network, whose head is the model above.
    pub network: Option<NetworkRequest>,
    /// Who may read the model file, as in `chmod`; its owner alone unless this says otherwise.
    pub mode: u32,
    /// Where the signing key is to be.
    pub access: KeyAccess,
    /// A new file for a recovery key, which hands over where the signing key is lost. It belongs in
    /// another place than the model. Without one, a lost key ends the log.
    pub recovery_key: Option<PathBuf>,
    /// Whether rows and arrays are encrypted, under a key that lies in the key file.
    pub encrypt: bool,
    /// Who multiplies the rows of a ridge model that fits into memory, if not the processor.
    pub gram_engine: Option<Arc<dyn GramEngine>>,
    /// Who trains a network, or encodes the texts of a pretrained encoder, if not the processor.
    pub network_device: Option<Arc<dyn NetworkDevice>>,
    /// Whether the list of what the model that is replaced has forgotten is given up. Otherwise the
    /// new model takes it over, and rows that are on it are refused.
    pub drop_suppressed: bool,
}

impl FitRequest {
    /// A regression on every column of `source` but the target, which is still to be named.
    pub fn new(source: impl Into<RowSource>) -> Self {
        let EncoderOptions {
            words, max_levels, ..
        } = EncoderOptions::default();
        Self {
            source: source.into(),
            targets: Vec::new(),
            text: Vec::new(),
            categorical: Vec::new(),
            numeric: Vec::new(),
            dates: Vec::new(),
            ignore: Vec::new(),
            id: None,
            subject: None,
            weight: None,
            words,
            max_levels,
            steps: FeatureSteps::default(),
            classify: false,
            positive: Vec::new(),
            class_weight: None,
            model: Ridge::default().into(),
            model_for_numbers: None,
            scoring: None,
            choose_penalty: false,
            sharding: None,
            network: None,
            mode: crate::file::outputs::PRIVATE_MODE,
            access: KeyAccess::default(),
            recovery_key: None,
            encrypt: false,
            gram_engine: None,
            network_device: None,
            drop_suppressed: false,
        }
    }
}

impl FitRequest {
    /// Naive Bayes whose likelihood the columns decide: Gaussian where one of them holds numbers,
    /// else multinomial.
    pub fn naive_bayes(mut self) -> Self {
        self.model = MultinomialNb::default().into();
        self.model_for_numbers = Some(GaussianNb::default().into());
        self
    }
}

/// Which rows a new model is judged by.
#[derive(Debug, Clone)]
pub enum ScoringPlan {
    /// Rows of their own, in memory or in a file.
    Test(RowSource),
    /// A share of the rows, above 0 and below 1, which do not become part of the model. A row is
    /// held out by a hash of the seed and its id, so that the choice stays when other rows come and
    /// go.
    HoldOut {
        /// The share.
        share: f64,
        /// What the choice follows from, beside the ids.
        seed: u64,
    },
    /// Every row, by models that are fitted without its fold. The model itself is fitted on all
    /// rows.
    CrossValidation {
        /// How many folds, 2 to 100.
        folds: usize,
        /// What the folds follow from, beside the ids.
        seed: u64,
    },
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
    /// How the answers of the shards become one; None takes the vote for classes and the mean for
    /// numbers.
    pub aggregation: Option<Aggregation>,
    /// How many shards may be trained at a time.
    pub threads: usize,
}
