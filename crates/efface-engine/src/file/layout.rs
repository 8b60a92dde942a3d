//! How the features of a row are kept, and what every row of one model looks like.

use serde::{Deserialize, Serialize};

/// How the features of a row are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowLayout {
    /// Every value, in double precision.
    Dense64,
    /// Index–value pairs in double precision.
    Sparse64,
    /// Index–value pairs in single precision, which holds counts and indicators exactly.
    Sparse32,
    /// What an encoder made of a text, in single precision.
    Dense32,
    /// What an encoder made of a text, beside the ids of the words that it was made from.
    Encoded,
    /// The ids of a text's words, where every shard is a network that reads them by itself.
    WordIds,
}

impl RowLayout {
    pub(crate) fn is_sparse(self) -> bool {
        matches!(self, Self::Sparse64 | Self::Sparse32)
    }
}

/// What a row of one model looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowShape {
    pub(crate) layout: RowLayout,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    /// The most word ids that a row keeps.
    pub(crate) words: usize,
}

impl RowShape {
    /// Bytes at the end of a row that follow from the rest of it and may change without it.
    pub(super) fn derived_bytes(&self) -> usize {
        if self.layout == RowLayout::Encoded {
            self.width * 4
        } else {
            0
        }
    }
}
