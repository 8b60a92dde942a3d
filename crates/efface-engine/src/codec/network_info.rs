//! What a model file tells of its encoder: in the manifest, in summaries and in receipts.

use std::path::PathBuf;

use efface::{Aggregation, Method, NotCovered};
use efface_nn::{EncoderSettings, EncoderState, EpochReport, TrainSettings};
use serde::{Deserialize, Serialize};

use crate::error::MethodEstimate;

/// The encoder in front of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkInfo {
    /// What it is.
    pub encoder: EncoderInfo,
    /// Words or tokens of a text that it reads.
    pub max_tokens: usize,
    /// When every shard is a network of its own.
    pub shards: Option<ShardInfo>,
    /// The device that trained the encoder, or that encoded the rows of the fit, by name; None for
    /// the processor. The last bits of the numbers are those of that device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The relation of an encoder that was trained here to the rows of the model: the claim of the
    /// whole network follows from it.
    #[serde(default)]
    pub state: EncoderState,
}

/// What reads the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EncoderInfo {
    /// LSTM layers that were trained here.
    Lstm {
        /// Their shape.
        settings: EncoderSettings,
        /// How they were trained.
        training: TrainSettings,
        /// Their words.
        vectors: VectorInfo,
        /// Training steps behind them; 0 when they are as they were drawn.
        steps: u64,
        /// The epochs of the training.
        history: Vec<EpochReport>,
        /// The epoch whose state was kept.
        best_epoch: Option<usize>,
        /// Whether somebody stopped the training.
        interrupted: bool,
    },
    /// A pretrained encoder in a folder.
    MiniLm {
        /// The folder at the fit.
        folder: PathBuf,
        /// SHA-256 of its weights, its tokenizer and its settings.
        fingerprint: String,
        /// Its layers.
        layers: usize,
    },
}

/// Words and vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorInfo {
    /// How many words.
    pub words: usize,
    /// Numbers a word.
    pub width: usize,
    /// Whether the training changed them.
    pub trained: bool,
    /// Whether they come from elsewhere, so that no row is in them.
    pub public: bool,
}

/// Networks in shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardInfo {
    /// S.
    pub shards: usize,
    /// R.
    pub slices: usize,
    /// What a row's place follows from.
    pub seed: u64,
    /// How the shards answer together.
    pub aggregation: Aggregation,
}

impl NetworkInfo {
    /// `bilstm`, `lstm` or `minilm`.
    pub fn kind(&self) -> &'static str {
        match &self.encoder {
            EncoderInfo::Lstm { settings, .. } if settings.bidirectional => "bilstm",
            EncoderInfo::Lstm { .. } => "lstm",
            EncoderInfo::MiniLm { .. } => "minilm",
        }
    }

    /// Whether `retrain` trains an encoder, and not only the head.
    pub(crate) fn is_trained_here(&self) -> bool {
        matches!(self.encoder, EncoderInfo::Lstm { .. }) && self.shards.is_none()
    }

    /// Whether rows of the model went into the numbers of its encoder.
    pub(crate) fn holds_rows(&self) -> bool {
        matches!(self.encoder, EncoderInfo::Lstm { steps: 1.., .. })
    }

    /// Records a change of rows that left the encoder as it was. Figures of the training that rows
    /// had a part in which leave are dropped.
    pub(crate) fn record(&mut self, rows_left: bool, rows_joined: bool) {
        if self.shards.is_some() {
            // Every shard that such a row belongs to is trained anew.
            return;
        }
        if let EncoderInfo::Lstm {
            steps,
            history,
            best_epoch,
            ..
        } = &mut self.encoder
        {
            self.state.record(*steps, rows_left, rows_joined);
            if rows_left {
                history.clear();
                *best_epoch = None;
            }
        }
    }

    /// Returns true if names or vectors of words follow from the rows of the model.
    pub(crate) fn keeps_words_of_rows(&self) -> bool {
        matches!(
            &self.encoder,
            EncoderInfo::Lstm { vectors, .. } if vectors.trained || !vectors.public
        )
    }

    /// Returns the parts of the encoder, its words included, that no forget has covered.
    pub(crate) fn not_covered(&self) -> Vec<NotCovered> {
        let words = match &self.encoder {
            // Every shard reads the same words, so that training some or all of them leaves the
            // list as it is.
            EncoderInfo::Lstm { vectors, .. } if !vectors.public => {
                Some(match self.shards.is_some() {
                    true => NotCovered::ShardWords,
                    false => NotCovered::EncoderWords,
                })
            }
            _ => None,
        };
        self.state.not_covered().into_iter().chain(words).collect()
    }

    /// Returns what the methods cost and leave, where training anew takes so many seconds and
    /// forgetting from the head so many.
    pub(crate) fn estimates(&self, anew: f64, head: f64) -> Vec<MethodEstimate> {
        let EncoderInfo::Lstm { training, .. } = &self.encoder else {
            return Vec::new();
        };
        let epoch = anew / training.epochs.max(1) as f64;
        let mut estimates = vec![
            MethodEstimate {
                method: Method::Retrain.name(),
                seconds: anew,
                effect: "exact",
            },
            MethodEstimate {
                method: Method::default().name(),
                seconds: head,
                effect: "approximate; only the head forgets, and the encoder keeps what it learned of the rows",
            },
        ];
        let further = Method::all()
            .into_iter()
            .filter(Method::trains_further)
            .map(|method| {
                // A step of neggrad_plus also reads a minibatch of the rows to forget.
                let passes = match method {
                    Method::NegGradPlus(_) => 2.0,
                    _ => 1.0,
                };
                MethodEstimate {
                    method: method.name(),
                    seconds: epoch * passes * efface_nn::further_epochs(&method) as f64,
                    effect: "approximate; nothing bounds what is left of the rows",
                }
            });
        estimates.extend(further);
        estimates
    }

    /// The part of it that is a secret to nobody and a setting of the fit, for receipts.
    pub(crate) fn settings(&self) -> serde_json::Value {
        let mut info = self.clone();
        match &mut info.encoder {
            EncoderInfo::Lstm {
                history,
                best_epoch,
                ..
            } => {
                history.clear();
                *best_epoch = None;
            }
            // A path says more of a machine than of a model; the fingerprint says which encoder it
            // is.
            EncoderInfo::MiniLm { folder, .. } => folder.clear(),
        }
        serde_json::to_value(info).unwrap_or_default()
    }
}
