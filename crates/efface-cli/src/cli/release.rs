//! What may leave a model, and when.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DelaySeconds, SuppressionWord, help, parse};

/// Write the parameters for other programs
#[derive(Debug, Args)]
#[command(after_help = help::EXPORT)]
pub(crate) struct ExportArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// How to write them
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::Json)]
    pub(crate) format: ExportFormat,

    /// Folder of the pretrained encoder [default: where it was at the fit]
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,

    /// File to write [default: standard output for json, else next to the model]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite the output file
    #[arg(long)]
    pub(crate) force: bool,

    /// Export although the policy says to wait: whoever holds this copy and the last one can
    /// compute the rows that were forgotten in between
    #[arg(long)]
    pub(crate) expose_forgotten: bool,
}

/// Say when new parameters may be published
#[derive(Debug, Args)]
#[command(after_help = help::POLICY)]
pub(crate) struct PolicyArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// Requests to forget or amend that an export waits for [default: 10; 1 with --epsilon]
    #[arg(long, value_name = "N")]
    pub(crate) min_batch: Option<u64>,

    /// How long an export waits at most, such as 30s, 12h or 7d; 0s for as long as it takes
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) delay: Option<DelaySeconds>,

    /// Said with fewer than 10 requests, or a delay: whoever holds two exports can then compute the
    /// rows that were forgotten between them
    #[arg(long)]
    pub(crate) expose_forgotten: bool,

    /// Standard deviation of noise on exported parameters; 0 for none
    #[arg(long, value_name = "X", conflicts_with_all = ["epsilon", "delta", "sensitivity"])]
    pub(crate) noise: Option<f64>,

    /// Noise as large as it has to be for this ε
    #[arg(long, value_name = "E", requires = "delta")]
    pub(crate) epsilon: Option<f64>,

    /// Noise as large as it has to be for this δ
    #[arg(long, value_name = "D", requires = "epsilon")]
    pub(crate) delta: Option<f64>,

    /// The distance between parameters that the noise hides; without it, as far as they moved
    #[arg(long, value_name = "X", requires = "epsilon")]
    pub(crate) sensitivity: Option<f64>,

    /// Forgotten rows that may wait to be scrubbed; 1 for none
    #[arg(long, value_name = "ROWS")]
    pub(crate) settle_after: Option<u64>,

    /// How long they may wait, such as 30s, 12h or 7d; 0s for not at all
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) settle_within: Option<DelaySeconds>,

    /// What keeps a forgotten row from being learned again
    #[arg(long, value_name = "SCOPE")]
    pub(crate) suppress: Option<SuppressionWord>,

    /// File with the public keys of witnesses, who must have signed the head of the log before
    /// anything is exported
    #[arg(long, value_name = "FILE")]
    pub(crate) witness: Option<PathBuf>,

    /// How many of them are enough [default: all]; 0 without --witness asks for none any more
    #[arg(long, value_name = "N")]
    pub(crate) quorum: Option<usize>,
}

/// How parameters are written for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Json,
    Safetensors,
    Npz,
    /// A network with its encoder, a linear model, or naive Bayes
    Onnx,
}

impl ExportFormat {
    /// The name, which is also the extension.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Safetensors => "safetensors",
            Self::Npz => "npz",
            Self::Onnx => "onnx",
        }
    }
}
