//! What can be wrong with an encoder's folder. Every message names the file and the place in it.

use std::path::PathBuf;

/// Why an encoder was refused, or a text could not be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MiniLmError {
    /// A file is absent or unreadable.
    #[error("cannot read {file} in {}: {source}; an encoder is a folder of model.safetensors, tokenizer.json, config.json, modules.json and 1_Pooling/config.json, as sentence-transformers writes it", folder.display())]
    Read {
        /// The file.
        file: &'static str,
        /// The folder that was named.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is larger than any encoder of this kind.
    #[error("{file} has more than {most} bytes; it is not an encoder of this kind")]
    TooLarge {
        /// The file.
        file: &'static str,
        /// The most that is read.
        most: u64,
    },
    /// A file is not JSON, or a field is absent or of the wrong type.
    #[error("{file}: {source}")]
    Json {
        /// The file.
        file: &'static str,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// A setting that only another architecture has.
    #[error("{file}: {field} is {found}, but only {expected} is supported")]
    Foreign {
        /// The file.
        file: &'static str,
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it must hold.
        expected: String,
    },
    /// The weights file is damaged, or not in this format.
    #[error("model.safetensors: {0}; copy the file again")]
    Damaged(String),
    /// A tensor that the configuration calls for is absent.
    #[error("model.safetensors has no tensor {name}; config.json describes another model")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A tensor has another shape or type than the configuration calls for.
    #[error("model.safetensors: {name} is {found}, but config.json calls for {expected}")]
    Tensor {
        /// Its name.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape that fit.
        expected: String,
    },
    /// A weight is NaN or infinite.
    #[error("model.safetensors: {name} holds a value that is not finite")]
    NotFinite {
        /// The tensor.
        name: String,
    },
    /// The number of tokens read of a text is out of range.
    #[error("a text cannot be cut at {found} tokens; choose from 3 to {most}")]
    MaxTokens {
        /// What was asked for.
        found: usize,
        /// Positions that the encoder knows.
        most: usize,
    },
    /// Tokens that no text of this encoder can have.
    #[error(
        "text {text} (counted from 0) has tokens that are not this encoder's; it knows {known}, and reads 1 to {most} a text"
    )]
    Tokens {
        /// Which text.
        text: usize,
        /// Tokens that the encoder knows.
        known: usize,
        /// The most that it reads.
        most: usize,
    },
    /// The weights are so large that a text's vector is not finite.
    #[error(
        "the vector of text {text} (counted from 0) is not finite; the weights are not those of a trained encoder"
    )]
    Overflow {
        /// Which text.
        text: usize,
    },
    /// The rows could not be made into a table.
    #[error(transparent)]
    Rows(#[from] efface::Error),
}

/// A result of this module.
pub type MiniLmResult<T> = std::result::Result<T, MiniLmError>;
