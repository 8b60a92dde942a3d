//! What a caller says of the network to fit.

use std::path::PathBuf;

use efface_nn::{EncoderSettings, TrainSettings};

/// What reads the texts of a network. What scores them is the model of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRequest {
    /// What reads the texts.
    pub encoder: EncoderChoice,
    /// Words or tokens of a text; what follows is not read. 1 to 1,048,576, and no more than a
    /// pretrained encoder knows. None reads 250 words, or 512 tokens where a pretrained encoder
    /// knows as many.
    pub max_tokens: Option<usize>,
    /// How many threads a pretrained encoder may use. A training has its own number in its
    /// settings.
    pub threads: usize,
    /// Where a training is written after every epoch, and taken up again if the file is there. It
    /// is removed when the training is over: what it holds, no forget would reach.
    pub checkpoint: Option<PathBuf>,
}

/// An encoder.
#[derive(Debug, Clone, PartialEq)]
pub enum EncoderChoice {
    /// LSTM layers, trained here.
    Lstm {
        /// Their shape.
        settings: EncoderSettings,
        /// Their training; 0 epochs leave them as they were drawn.
        training: TrainSettings,
        /// The words that they read.
        vectors: Vectors,
        /// Whether the training changes the words' vectors.
        train_vectors: bool,
    },
    /// A pretrained encoder, which stays as it is.
    MiniLm {
        /// A folder as sentence-transformers writes it; see [`efface_nn::minilm`].
        folder: PathBuf,
    },
}

/// Words and their vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vectors {
    /// The commonest words of the texts, with random vectors.
    Learned {
        /// How many words at most.
        most: usize,
        /// Numbers a word.
        width: usize,
    },
    /// A word and its numbers a line, as GloVe is published.
    Text {
        /// The file.
        path: PathBuf,
    },
    /// Half-precision numbers without a header, and a file with a word a line beside it.
    Half {
        /// The numbers.
        path: PathBuf,
        /// The words.
        words: PathBuf,
        /// Numbers a word.
        width: usize,
    },
}
