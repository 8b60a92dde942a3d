//! Why a model cannot be written.

/// A part that does not fit the others.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// A tensor has another number of values than its shape calls for.
    #[error("{name} has {found} values, which do not fill the shape {shape:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// How many values it has.
        found: usize,
        /// What they should fill.
        shape: Vec<usize>,
    },
    /// A part takes another width than the one before gives.
    #[error("{name} takes {found} inputs, but {expected} reach it")]
    Width {
        /// The part.
        name: String,
        /// The width it takes.
        found: usize,
        /// The width it gets.
        expected: usize,
    },
    /// A residual connection around a layer that changes the width.
    #[error("{name} adds its input of width {inputs} to an output of width {outputs}")]
    Residual {
        /// The layer.
        name: String,
        /// Width before.
        inputs: usize,
        /// Width after.
        outputs: usize,
    },
    /// A count that must not be zero, or must divide another.
    #[error("{name} is {found}; it must be {range}")]
    Count {
        /// What is counted.
        name: String,
        /// How many there are.
        found: usize,
        /// What is accepted.
        range: String,
    },
    /// A weight is NaN or infinite.
    #[error("value {at} of {name} is not finite")]
    NotFinite {
        /// The tensor.
        name: String,
        /// Which of its values.
        at: usize,
    },
    /// Two parts have one name.
    #[error("two parts are named {0}")]
    Duplicate(String),
    /// A node reads what nothing gives.
    #[error("no part is named {0}")]
    Unknown(String),
    /// The format ends at 2 GiB.
    #[error(
        "the model takes more than 2 GiB, which an ONNX file cannot hold; export safetensors instead"
    )]
    TooLarge,
}

/// A result of this module.
pub type OnnxResult<T> = std::result::Result<T, OnnxError>;
