//! The settings that only networks have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Settings of networks; one that is given for another model is refused.
#[derive(Debug, Args)]
pub(crate) struct NetworkArguments {
    /// What scores the encoder's features [default: ridge]
    #[arg(long, value_enum, value_name = "HEAD", help_heading = "Networks")]
    pub(crate) head: Option<HeadName>,

    /// Words or tokens of a text to read [default: 250 for bilstm, 100 for lstm, 512 for minilm]
    #[arg(long, value_name = "N", help_heading = "Networks")]
    pub(crate) max_tokens: Option<usize>,

    /// Folder of a pretrained encoder, as sentence-transformers writes it
    #[arg(long, value_name = "DIR", help_heading = "Networks")]
    pub(crate) encoder: Option<PathBuf>,

    /// Size of an LSTM's state in one direction [default: 96 for bilstm, 64 for lstm]
    #[arg(long, value_name = "N", help_heading = "Networks")]
    pub(crate) hidden: Option<usize>,

    /// LSTM layers on top of each other [default: 1 for bilstm, 6 for lstm]
    #[arg(long, value_name = "N", help_heading = "Networks")]
    pub(crate) layers: Option<usize>,

    /// How the words of a text become one vector [default: max]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Networks")]
    pub(crate) pooling: Option<PoolingName>,

    /// Project that vector to N features [default: as wide as the layers make it]
    #[arg(long, value_name = "N", help_heading = "Networks")]
    pub(crate) head_width: Option<usize>,

    /// Word vectors: GloVe text, or half-precision numbers in a .bin file with the words beside it
    /// [default: random ones for the words of --vocab, 20000 at most]
    #[arg(long, value_name = "FILE", help_heading = "Networks")]
    pub(crate) embeddings: Option<PathBuf>,

    /// The words of a .bin file, one a line [default: its name with .vocab.txt for .bin or
    /// .f16le.bin]
    #[arg(
        long,
        value_name = "FILE",
        requires = "embeddings",
        help_heading = "Networks"
    )]
    pub(crate) embedding_words: Option<PathBuf>,

    /// Numbers a word [default: what the files hold; 100 for random vectors]
    #[arg(long, value_name = "N", help_heading = "Networks")]
    pub(crate) embedding_width: Option<usize>,

    /// Leave word vectors as they are, as those from a file are anyway
    #[arg(long, conflicts_with = "train_embeddings", help_heading = "Networks")]
    pub(crate) freeze_embeddings: bool,

    /// Train word vectors too, as random ones are anyway
    #[arg(long, help_heading = "Networks")]
    pub(crate) train_embeddings: bool,

    /// Passes over the rows; 0 leaves the encoder as it was drawn [default: 12]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) epochs: Option<usize>,

    /// Texts a step [default: 64]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) batch: Option<usize>,

    /// Of AdamW, at its highest [default: 0.002]
    #[arg(
        long,
        value_name = "X",
        allow_hyphen_values = true,
        help_heading = "Training"
    )]
    pub(crate) learning_rate: Option<f32>,

    /// Share of values dropped while training [default: 0.3 for bilstm, 0.2 for lstm]
    #[arg(
        long,
        value_name = "P",
        allow_hyphen_values = true,
        help_heading = "Training"
    )]
    pub(crate) dropout: Option<f32>,

    /// Share of the rows that judge epochs and do not teach the encoder [default: 0.1]
    #[arg(
        long,
        value_name = "P",
        allow_hyphen_values = true,
        help_heading = "Training"
    )]
    pub(crate) validation: Option<f32>,

    /// Epochs without a better validation before stopping [default: 4]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) patience: Option<usize>,

    /// Written after every epoch, and taken up again if it is there; removed when the training is
    /// over
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    pub(crate) checkpoint: Option<PathBuf>,
}

/// Settings of methods that train a whole network further; one that a method has no use for is
/// refused.
#[derive(Debug, Args)]
pub(crate) struct TuningArguments {
    /// Passes over the rows that stay, 1 or more [default: 5]
    #[arg(long, value_name = "N", help_heading = "Training a network further")]
    pub(crate) epochs: Option<usize>,

    /// Of AdamW, above 0 and at most 1 [default: the fit's for fine_tune, a quarter of it for the
    /// others]
    #[arg(
        long,
        value_name = "X",
        allow_hyphen_values = true,
        help_heading = "Training a network further"
    )]
    pub(crate) learning_rate: Option<f64>,

    /// neggrad_plus: what the rows that stay count for, above 0 and below 1 [default: 0.95]; scrub:
    /// what nearness to the old network counts for on them, 0 or more [default: 0.5]
    #[arg(
        long,
        value_name = "α",
        allow_hyphen_values = true,
        help_heading = "Training a network further"
    )]
    pub(crate) alpha: Option<f64>,

    /// scrub: what the loss of the rows that stay counts for, 0 or more [default: 1]
    #[arg(
        long,
        value_name = "γ",
        allow_hyphen_values = true,
        help_heading = "Training a network further"
    )]
    pub(crate) gamma: Option<f64>,

    /// scrub: first epochs that also pass over the rows to forget, 1 to all [default: 2]
    #[arg(long, value_name = "N", help_heading = "Training a network further")]
    pub(crate) max_epochs: Option<usize>,

    /// neggrad_plus and scrub: give up, and change nothing, when the rows to forget have a loss
    /// above this [default: 20]
    #[arg(
        long,
        value_name = "X",
        allow_hyphen_values = true,
        help_heading = "Training a network further"
    )]
    pub(crate) loss_cap: Option<f64>,
}

impl TuningArguments {
    /// The settings that were given, by the names that methods know them by.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let Self {
            epochs,
            learning_rate,
            alpha,
            gamma,
            max_epochs,
            loss_cap,
        } = self;
        let whole = [("epochs", epochs), ("max_epochs", max_epochs)];
        let numbers = [
            ("learning_rate", learning_rate),
            ("alpha", alpha),
            ("gamma", gamma),
            ("loss_cap", loss_cap),
        ];
        let whole = whole
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?.to_string())));
        let numbers = numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?.to_string())));
        whole.chain(numbers).collect()
    }
}

/// The heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeadName {
    Ridge,
    Softmax,
}

/// How words become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolingName {
    Mean,
    Max,
    Last,
}
