//! The one error of this crate. Every message names the value, the accepted range and what to do
//! next.

use crate::train::TrainingCheckpoint;

/// What can go wrong while reading vectors, training, forgetting or loading.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A problem of the linear core.
    #[error(transparent)]
    Core(#[from] efface::Error),
    /// A setting lies outside its range.
    #[error("{name} = {value} is out of range; it must be {range}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is accepted.
        range: &'static str,
    },
    /// Word vectors that cannot be used.
    #[error("word vectors, {place}: {reason}")]
    Vectors {
        /// `line 12`, `the numbers`, `the words`.
        place: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Nothing in the texts means anything to the embedding.
    #[error(
        "none of the {texts} texts holds a word that the embedding knows; use vectors of the texts' language, or learn the \
         words from the texts"
    )]
    NoKnownWord {
        /// How many texts there were.
        texts: usize,
    },
    /// The loss or a gradient stopped being a number.
    #[error(
        "training left the numbers at step {step} (epoch {epoch}): the {what} is {value:.1e}; lower the learning rate or the \
         clipping norm"
    )]
    Diverged {
        /// The step, from 1.
        step: u64,
        /// The epoch, from 1.
        epoch: usize,
        /// `loss`, `loss of the rows to forget`, `gradient norm` or `largest parameter`.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The state before the step, from which training can go on.
        last_good: Box<TrainingCheckpoint>,
    },
    /// A forget that trains a network further left the range in which it means something.
    #[error(
        "forgetting went too far at step {step} (epoch {epoch}): the {what} is {value:.1e}, and {cap:.1e} is the most; the \
         network is as it was: lower the learning rate or the epochs"
    )]
    Overshot {
        /// The step, from 1.
        step: u64,
        /// The epoch, from 1.
        epoch: usize,
        /// `loss of the rows to forget`, or what else stopped being a number.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The most that was allowed.
        cap: f64,
    },
    /// A checkpoint or network that does not belong here.
    #[error("the stored network is damaged or foreign: {0}")]
    Damaged(String),
    /// A request that this network cannot answer.
    #[error("{0}")]
    Unsupported(String),
}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for efface::Error {
    /// For recipes that the core calls, as inside SISA.
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => error,
            Error::Setting { name, value, range } => Self::Parameter { name, value, range },
            Error::Damaged(what) => Self::Damaged(what),
            other => Self::Unsupported {
                method: "training a network",
                reason: other.to_string(),
            },
        }
    }
}
