//! Which network the options ask for.

use efface::{Logistic, Recipe, Ridge};
use efface_engine::{NetworkName, NetworkOptions, NetworkRequest, Pooling};

use super::choice::workers;
use crate::cli::{FitArguments, HeadName, ModelName, PoolingName};
use crate::commands::threads;
use crate::failure::{Failure, Result};

/// The network with its settings; None for a model that is none.
pub(super) fn choose(args: &FitArguments) -> Result<Option<NetworkRequest>> {
    let name = match args.model {
        ModelName::Bilstm => NetworkName::Bilstm,
        ModelName::Lstm => NetworkName::Lstm,
        ModelName::Minilm => NetworkName::Minilm,
        _ => return Ok(None),
    };
    let network = &args.network;
    let settings = &args.settings;
    if args.vocab.is_some() && network.embeddings.is_some() {
        let failure = Failure::usage(
            "--vocab and --embeddings exclude each other: the file says which words",
        );
        return Err(failure.hint("leave out one of them"));
    }
    let options = NetworkOptions {
        max_tokens: network.max_tokens,
        encoder: network.encoder.clone(),
        hidden: network.hidden,
        layers: network.layers,
        pooling: network.pooling.map(|pooling| match pooling {
            PoolingName::Mean => Pooling::Mean,
            PoolingName::Max => Pooling::Max,
            PoolingName::Last => Pooling::Last,
        }),
        head_width: network.head_width,
        embeddings: network.embeddings.clone(),
        embedding_words: network.embedding_words.clone(),
        embedding_width: network.embedding_width,
        freeze_embeddings: network.freeze_embeddings,
        train_embeddings: network.train_embeddings,
        most_words: args.vocab,
        epochs: network.epochs,
        batch: network.batch,
        learning_rate: network.learning_rate,
        dropout: network.dropout,
        validation: network.validation,
        patience: network.patience,
        checkpoint: network.checkpoint.clone(),
        seed: settings.seed.unwrap_or(0),
        threads: threads(settings.threads),
        in_shards: settings.sisa.is_some(),
    };
    Ok(Some(options.request(name)?))
}

/// What scores the texts of a network: cross-entropy is logistic for two classes and softmax for
/// more.
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
