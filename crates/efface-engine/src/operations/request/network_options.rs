//! A network as callers ask for it: few settings by name, and everything else as it usually is.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use efface::{Hint, Setting};
use efface_nn::{EncoderSettings, Pooling, TrainSettings};

use super::network::{EncoderChoice, NetworkRequest, Vectors};
use crate::error::{Error, Result};

/// Words that get random vectors unless more or fewer are asked for.
const WORDS: usize = 20_000;
/// Numbers of a random vector unless told otherwise.
const WIDTH: usize = 100;

/// The networks that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkName {
    /// One bidirectional LSTM layer, or several.
    Bilstm,
    /// LSTM layers on top of each other.
    Lstm,
    /// A pretrained encoder that stays as it is.
    Minilm,
}

/// What is asked of a network; None is what the network usually has.
#[derive(Debug, Clone, Default)]
pub struct NetworkOptions {
    /// Words or tokens of a text to read.
    pub max_tokens: Option<usize>,
    /// The folder of a pretrained encoder.
    pub encoder: Option<PathBuf>,
    /// Size of an LSTM's state in one direction.
    pub hidden: Option<usize>,
    /// LSTM layers on top of each other.
    pub layers: Option<usize>,
    /// How the words of a text become one vector.
    pub pooling: Option<Pooling>,
    /// Features that this vector is projected to.
    pub head_width: Option<usize>,
    /// Word vectors: GloVe text, or half-precision numbers in a .bin file.
    pub embeddings: Option<PathBuf>,
    /// The words of a .bin file.
    pub embedding_words: Option<PathBuf>,
    /// Numbers a word.
    pub embedding_width: Option<usize>,
    /// Leaves word vectors as they are.
    pub freeze_embeddings: bool,
    /// Trains word vectors too.
    pub train_embeddings: bool,
    /// Random vectors are for so many words at most.
    pub most_words: Option<usize>,
    /// Passes over the rows.
    pub epochs: Option<usize>,
    /// Texts a step.
    pub batch: Option<usize>,
    /// Of AdamW, at its highest.
    pub learning_rate: Option<f32>,
    /// Share of values dropped while training.
    pub dropout: Option<f32>,
    /// Share of the rows that judge epochs.
    pub validation: Option<f32>,
    /// Epochs without a better validation before stopping.
    pub patience: Option<usize>,
    /// Where a training is written after every epoch.
    pub checkpoint: Option<PathBuf>,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Threads that share the work.
    pub threads: usize,
    /// Whether shards are trained side by side; within one there is nothing left to share out then.
    pub in_shards: bool,
}

impl NetworkOptions {
    /// The network of this name with these options.
    ///
    /// # Errors
    /// A folder or a file is missing, or files of word vectors do not go together.
    pub fn request(self, name: NetworkName) -> Result<NetworkRequest> {
        let encoder = match name {
            NetworkName::Bilstm | NetworkName::Lstm => self.lstm(name)?,
            NetworkName::Minilm => {
                let folder = self.encoder.clone().ok_or_else(|| {
                    Error::request(
                        "minilm is read from a folder, and none is named",
                        Hint::new(
                            "name it with {}; it holds model.safetensors, tokenizer.json and config.json",
                        )
                        .name(Setting::Encoder),
                    )
                })?;
                EncoderChoice::MiniLm { folder }
            }
        };
        let max_tokens = self.max_tokens.or(match name {
            NetworkName::Bilstm => Some(250),
            NetworkName::Lstm => Some(100),
            NetworkName::Minilm => None,
        });
        Ok(NetworkRequest {
            encoder,
            max_tokens,
            threads: self.threads.max(1),
            checkpoint: self.checkpoint,
        })
    }

    fn lstm(&self, name: NetworkName) -> Result<EncoderChoice> {
        let mut shape = match name {
            NetworkName::Lstm => {
                EncoderSettings::stacked(self.hidden.unwrap_or(64), self.layers.unwrap_or(6))
            }
            _ => {
                let layers = self.layers.unwrap_or(1);
                // What depth needs to train, from the second layer on.
                let deep = layers > 1;
                let one = EncoderSettings::bilstm(self.hidden.unwrap_or(96));
                EncoderSettings {
                    layers,
                    residual: deep,
                    layer_norm: deep,
                    ..one
                }
            }
        };
        shape.pooling = self.pooling.unwrap_or(Pooling::Max);
        shape.width = self.head_width;
        shape.dropout = self.dropout.unwrap_or(shape.dropout);
        let usual = TrainSettings::default();
        let training = TrainSettings {
            epochs: self.epochs.unwrap_or(12),
            batch: self.batch.unwrap_or(usual.batch),
            learning_rate: self.learning_rate.unwrap_or(usual.learning_rate),
            validation: self.validation.unwrap_or(usual.validation),
            patience: self.patience.unwrap_or(4),
            seed: self.seed,
            threads: if self.in_shards {
                1
            } else {
                self.threads.max(1)
            },
            ..usual
        };
        let vectors = self.vectors()?;
        let learned = matches!(vectors, Vectors::Learned { .. });
        let train_vectors = (learned && !self.freeze_embeddings) || self.train_embeddings;
        Ok(EncoderChoice::Lstm {
            settings: shape,
            training,
            vectors,
            train_vectors,
        })
    }

    fn vectors(&self) -> Result<Vectors> {
        let Some(path) = self.embeddings.clone() else {
            let most = self.most_words.unwrap_or(WORDS);
            let width = self.embedding_width.unwrap_or(WIDTH);
            return Ok(Vectors::Learned { most, width });
        };
        if self.most_words.is_some() {
            return Err(Error::request(
                "a number of words and a file of word vectors exclude each other: the file says which words",
                "leave out one of them",
            ));
        }
        if path.extension().is_none_or(|extension| extension != "bin") {
            if self.embedding_width.is_some() || self.embedding_words.is_some() {
                return Err(Error::request(
                    "a file of text says by itself how wide its vectors are, and its words",
                    "leave out the width and the words; they are for .bin files",
                ));
            }
            return Ok(Vectors::Text { path });
        }
        let words = self
            .embedding_words
            .clone()
            .unwrap_or_else(|| beside(&path));
        let width = match self.embedding_width {
            Some(width) => width,
            None => width(&path, &words)?,
        };
        Ok(Vectors::Half { path, words, width })
    }
}

/// `glove.f16le.bin` has its words in `glove.vocab.txt`.
fn beside(path: &Path) -> PathBuf {
    let stem = path.with_extension("");
    let stem = if stem.extension().is_some_and(|end| end == "f16le") {
        stem.with_extension("")
    } else {
        stem
    };
    let mut name = stem.into_os_string();
    name.push(".vocab.txt");
    name.into()
}

/// How many numbers a word has, from the sizes of the two files.
fn width(path: &Path, words: &Path) -> Result<usize> {
    let bytes = std::fs::metadata(path)
        .map_err(|cause| Error::io(path, cause))?
        .len();
    let mut lines = BufReader::new(File::open(words).map_err(|cause| Error::io(words, cause))?);
    let mut count = 0u64;
    let mut ended = true;
    loop {
        let buffer = lines.fill_buf().map_err(|cause| Error::io(words, cause))?;
        if buffer.is_empty() {
            break;
        }
        count += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
        ended = buffer.last() == Some(&b'\n');
        let read = buffer.len();
        lines.consume(read);
    }
    count += u64::from(!ended);
    match bytes.checked_div(2 * count) {
        Some(width) if width > 0 && width * 2 * count == bytes => Ok(width as usize),
        _ => {
            let reason = format!(
                "it has {bytes} bytes, which is no whole number of half-precision numbers for each of the {count} words of {}; name the \
                 right file of words",
                words.display()
            );
            Err(efface_nn::Error::Vectors {
                place: path.display().to_string(),
                reason,
            }
            .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_beside_their_vectors() {
        for (numbers, words) in [
            ("a/g.f16le.bin", "a/g.vocab.txt"),
            ("g-1.5.bin", "g-1.5.vocab.txt"),
        ] {
            assert_eq!(beside(Path::new(numbers)), Path::new(words));
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let fault = |options: NetworkOptions, name| options.request(name).unwrap_err().to_string();
        let missing = fault(NetworkOptions::default(), NetworkName::Minilm);
        assert!(missing.contains("folder"), "{missing}");
        let file = Some(PathBuf::from("vectors.txt"));
        let both = NetworkOptions {
            embeddings: file.clone(),
            most_words: Some(9),
            ..NetworkOptions::default()
        };
        assert!(fault(both, NetworkName::Bilstm).contains("exclude"));
        let wide = NetworkOptions {
            embeddings: file,
            embedding_width: Some(9),
            ..NetworkOptions::default()
        };
        assert!(fault(wide, NetworkName::Lstm).contains("by itself"));
    }
}
