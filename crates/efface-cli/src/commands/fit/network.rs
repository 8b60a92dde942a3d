//! Which network the options ask for.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use efface::{Logistic, Recipe, Ridge};
use efface_engine::{EncoderChoice, EncoderSettings, NetworkRequest, Pooling, TrainSettings, Vectors};

use super::choice::workers;
use crate::cli::{FitArguments, HeadName, ModelName, PoolingName};
use crate::commands::threads;
use crate::failure::{Failure, Result};

/// Words that get random vectors unless more or fewer are asked for.
const WORDS: usize = 20_000;
/// Numbers of a random vector unless told otherwise.
const WIDTH: usize = 100;

/// The network with its settings; None for a model that is none.
pub(super) fn choose(args: &FitArguments) -> Result<Option<NetworkRequest>> {
    let network = &args.network;
    let settings = &args.settings;
    let encoder = match args.model {
        ModelName::Bilstm | ModelName::Lstm => lstm(args)?,
        ModelName::Minilm => {
            let Some(folder) = network.encoder.clone() else {
                let failure = Failure::usage("minilm is read from a folder, and none is named");
                return Err(failure.hint(
                    "name it with --encoder DIR; it holds model.safetensors, tokenizer.json and config.json",
                ));
            };
            EncoderChoice::MiniLm { folder }
        }
        _ => return Ok(None),
    };
    let max_tokens = network.max_tokens.or(match args.model {
        ModelName::Bilstm => Some(250),
        ModelName::Lstm => Some(100),
        _ => None,
    });
    let checkpoint = network.checkpoint.clone();
    Ok(Some(NetworkRequest { encoder, max_tokens, threads: threads(settings.threads), checkpoint }))
}

/// What scores the texts of a network: cross-entropy is logistic for two classes and softmax for more.
pub(super) fn head(args: &FitArguments) -> Result<Recipe> {
    let settings = &args.settings;
    let lambda = settings.penalty();
    let intercept = !settings.no_intercept;
    let workers = workers(settings);
    match args.network.head.unwrap_or(HeadName::Ridge) {
        HeadName::Ridge => {
            let mut ridge = Ridge::new(lambda).intercept(intercept).threads(workers);
            ridge.tolerance = settings.tolerance.unwrap_or(ridge.tolerance);
            ridge.form = settings.curvature.map_or(ridge.form, Into::into);
            Ok(ridge.into())
        }
        HeadName::Softmax if settings.curvature.is_some() => {
            let failure = Failure::usage("--curvature has no meaning for --head softmax");
            Err(failure.hint("leave it out; it is for --head ridge"))
        }
        HeadName::Softmax => {
            let mut logistic = Logistic::new(lambda).intercept(intercept).threads(workers);
            logistic.tolerance = settings.tolerance.unwrap_or(logistic.tolerance);
            Ok(logistic.into())
        }
    }
}

fn lstm(args: &FitArguments) -> Result<EncoderChoice> {
    let network = &args.network;
    let settings = &args.settings;
    let mut shape = match args.model {
        ModelName::Lstm => {
            EncoderSettings::stacked(network.hidden.unwrap_or(64), network.layers.unwrap_or(6))
        }
        _ => {
            let layers = network.layers.unwrap_or(1);
            // What depth needs to train, from the second layer on.
            let deep = layers > 1;
            let one = EncoderSettings::bilstm(network.hidden.unwrap_or(96));
            EncoderSettings { layers, residual: deep, layer_norm: deep, ..one }
        }
    };
    shape.pooling = match network.pooling {
        Some(PoolingName::Mean) => Pooling::Mean,
        Some(PoolingName::Last) => Pooling::Last,
        Some(PoolingName::Max) | None => Pooling::Max,
    };
    shape.width = network.head_width;
    shape.dropout = network.dropout.unwrap_or(shape.dropout);
    let usual = TrainSettings::default();
    let training = TrainSettings {
        epochs: network.epochs.unwrap_or(12),
        batch: network.batch.unwrap_or(usual.batch),
        learning_rate: network.learning_rate.unwrap_or(usual.learning_rate),
        validation: network.validation.unwrap_or(usual.validation),
        patience: network.patience.unwrap_or(4),
        seed: settings.seed.unwrap_or(0),
        // Shards are trained side by side; within one there is nothing left to share out.
        threads: if settings.sisa.is_some() { 1 } else { threads(settings.threads) },
        ..usual
    };
    let vectors = vectors(args)?;
    let learned = matches!(vectors, Vectors::Learned { .. });
    let train_vectors = (learned && !network.freeze_embeddings) || network.train_embeddings;
    Ok(EncoderChoice::Lstm { settings: shape, training, vectors, train_vectors })
}

fn vectors(args: &FitArguments) -> Result<Vectors> {
    let network = &args.network;
    let Some(path) = network.embeddings.clone() else {
        let most = args.vocab.unwrap_or(WORDS);
        let width = network.embedding_width.unwrap_or(WIDTH);
        return Ok(Vectors::Learned { most, width });
    };
    if args.vocab.is_some() {
        let failure =
            Failure::usage("--vocab and --embeddings exclude each other: the file says which words");
        return Err(failure.hint("leave out one of them"));
    }
    if path.extension().is_none_or(|extension| extension != "bin") {
        if network.embedding_width.is_some() || network.embedding_words.is_some() {
            let failure =
                Failure::usage("a file of text says by itself how wide its vectors are, and its words");
            return Err(
                failure.hint("leave out --embedding-width and --embedding-words; they are for .bin files")
            );
        }
        return Ok(Vectors::Text { path });
    }
    let words = network.embedding_words.clone().unwrap_or_else(|| beside(&path));
    let width = match network.embedding_width {
        Some(width) => width,
        None => width(&path, &words)?,
    };
    Ok(Vectors::Half { path, words, width })
}

/// `glove.f16le.bin` has its words in `glove.vocab.txt`.
fn beside(path: &Path) -> PathBuf {
    let stem = path.with_extension("");
    let stem =
        if stem.extension().is_some_and(|end| end == "f16le") { stem.with_extension("") } else { stem };
    let mut name = stem.into_os_string();
    name.push(".vocab.txt");
    name.into()
}

/// How many numbers a word has, from the sizes of the two files.
fn width(path: &Path, words: &Path) -> Result<usize> {
    let failed = |path: &Path, cause| Failure::file(path, "read", &cause);
    let bytes = std::fs::metadata(path).map_err(|cause| failed(path, cause))?.len();
    let mut lines = BufReader::new(File::open(words).map_err(|cause| failed(words, cause))?);
    let mut count = 0u64;
    let mut ended = true;
    loop {
        let buffer = lines.fill_buf().map_err(|cause| failed(words, cause))?;
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
            let failure = Failure::data(format!(
                "{} has {bytes} bytes, which is no whole number of half-precision numbers for each of the {count} words of {}",
                path.display(),
                words.display()
            ));
            Err(failure.hint("name the right words with --embedding-words"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_beside_their_vectors() {
        for (numbers, words) in [("a/g.f16le.bin", "a/g.vocab.txt"), ("g-1.5.bin", "g-1.5.vocab.txt")] {
            assert_eq!(beside(Path::new(numbers)), Path::new(words));
        }
    }
}
