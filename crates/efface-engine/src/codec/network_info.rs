//! What a model file tells of its encoder: in the manifest, in summaries and in receipts.

use std::path::PathBuf;

use efface::{Aggregation, NotCovered};
use efface_nn::{EncoderSettings, EpochReport, TrainSettings};
use serde::{Deserialize, Serialize};

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
        /// SHA-256 of its weights and tokenizer.
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

    /// What a forget leaves in the encoder. A training on the retained rows, of all of it or of the
    /// shards that saw the rows, leaves nothing but the choice of words.
    pub(crate) fn not_covered(&self) -> Vec<NotCovered> {
        match &self.encoder {
            // Every shard reads the same words, so that training some or all of them leaves the
            // list as it is.
            EncoderInfo::Lstm { vectors, .. } if self.shards.is_some() => (!vectors.public)
                .then_some(NotCovered::ShardWords)
                .into_iter()
                .collect(),
            EncoderInfo::Lstm { steps, vectors, .. } => {
                efface_nn::not_covered(*steps, vectors.public)
            }
            EncoderInfo::MiniLm { .. } => Vec::new(),
        }
    }

    /// The part of it that is a secret to nobody and a setting of the fit, for receipts.
    pub(crate) fn settings(&self) -> serde_json::Value {
        let mut info = self.clone();
        match &mut info.encoder {
            EncoderInfo::Lstm { history, .. } => history.clear(),
            // A path says more of a machine than of a model; the fingerprint says which encoder it
            // is.
            EncoderInfo::MiniLm { folder, .. } => folder.clear(),
        }
        serde_json::to_value(info).unwrap_or_default()
    }
}
