//! Which model the options ask for, and which of them belong to another one.

use efface::models::logistic::{Certifier, Privacy};
use efface::{Aggregation, KMeans, Logistic, Ridge, Softmax};
use efface_engine::{Choice, Likelihood, Sharding};

use crate::cli::{Aggregate, Certify, Fit, Grid, LikelihoodName, Model, Settings};
use crate::commands::threads;
use crate::failure::{Failure, Result};

/// The side of a lattice cell unless one is given: in the units of the features, so that it depends on no row.
const CELL: f64 = 0.05;

/// The model with its settings.
pub(super) fn choose(args: &Fit) -> Result<Choice> {
    let settings = &args.settings;
    refuse_strangers(args)?;
    // Shards are trained side by side; within one there is nothing left to share out.
    let workers = if settings.sisa.is_some() { 1 } else { threads(settings.threads) };
    match args.model {
        Model::Ridge => {
            let mut ridge =
                Ridge::new(settings.lambda.unwrap_or(1.0)).intercept(!settings.no_intercept).threads(workers);
            ridge.form = settings.curvature.map_or(ridge.form, Into::into);
            ridge.tolerance = settings.tolerance.unwrap_or(ridge.tolerance);
            Ok(ridge.into())
        }
        Model::Logistic => {
            let mut logistic = Logistic::new(settings.lambda.unwrap_or(1.0))
                .intercept(!settings.no_intercept)
                .threads(workers);
            logistic.tolerance = settings.tolerance.unwrap_or(logistic.tolerance);
            logistic.privacy = privacy(settings)?;
            Ok(logistic.into())
        }
        Model::Softmax => {
            let mut softmax = Softmax::new(settings.lambda.unwrap_or(1.0))
                .intercept(!settings.no_intercept)
                .threads(workers);
            softmax.tolerance = settings.tolerance.unwrap_or(softmax.tolerance);
            Ok(softmax.into())
        }
        Model::NaiveBayes => Ok(Choice::NaiveBayes(settings.likelihood.map(|name| match name {
            LikelihoodName::Multinomial => Likelihood::Multinomial,
            LikelihoodName::Gaussian => Likelihood::Gaussian,
        }))),
        Model::KMeans => kmeans(settings).map(Choice::KMeans),
        // The model of a network is its head, which stands beside its encoder.
        Model::Bilstm | Model::Lstm | Model::Minilm => Ok(Choice::default()),
    }
}

/// The noise of a certified model; its seed is the engine's to draw.
fn privacy(settings: &Settings) -> Result<Option<Privacy>> {
    let (Some(epsilon), Some(delta)) = (settings.epsilon, settings.delta) else { return Ok(None) };
    let stranger = |option: &str, method: &str| {
        let failure = Failure::usage(format!("{option} has no meaning for --certify {method}"));
        Err(failure.hint("leave it out; --noise is for certified, --distance for descent_to_delete"))
    };
    let mut privacy = match settings.certify {
        None | Some(Certify::Certified) if settings.distance.is_some() => {
            return stranger("--distance", "certified");
        }
        Some(Certify::DescentToDelete) if settings.noise.is_some() => {
            return stranger("--noise", "descent_to_delete");
        }
        None | Some(Certify::Certified) => Privacy::removal(epsilon, delta, 0),
        Some(Certify::DescentToDelete) => Privacy::descent(epsilon, delta, 0),
    };
    match &mut privacy.certifier {
        Certifier::Removal { noise } => *noise = settings.noise.unwrap_or(*noise),
        Certifier::Descent { distance } => *distance = settings.distance.unwrap_or(*distance),
    }
    Ok(Some(privacy))
}

/// The shards that the options ask for.
pub(super) fn sharding(args: &Fit) -> Option<Sharding> {
    let settings = &args.settings;
    let Grid(shards, slices) = settings.sisa?;
    let aggregation = settings.aggregate.map(|how| match how {
        Aggregate::Vote => Aggregation::Vote,
        Aggregate::Mean => Aggregation::Mean,
    });
    let (seed, threads) = (settings.seed.unwrap_or(0), threads(settings.threads));
    Some(Sharding { shards, slices, seed, aggregation, threads })
}

fn kmeans(settings: &Settings) -> Result<KMeans> {
    let Some(clusters) = settings.clusters else {
        let failure = Failure::usage("k-means has to be told how many clusters to find");
        return Err(failure.hint("add --clusters K, for example --clusters 8"));
    };
    let recipe = match settings.tree {
        Some(Grid(height, width)) => KMeans::divided(clusters, height, width),
        None => KMeans::quantised(clusters, settings.cell.unwrap_or(CELL)),
    };
    Ok(recipe.seed(settings.seed.unwrap_or(0)))
}

/// A setting of another model would be ignored, and whoever gave it would not know.
fn refuse_strangers(args: &Fit) -> Result {
    let (model, settings, network) = (args.model, &args.settings, &args.network);
    let all = [Model::Ridge, Model::Logistic, Model::Softmax, Model::Bilstm, Model::Lstm, Model::Minilm];
    let linear = all.as_slice();
    let lstm = &all[3..5];
    let networks = &all[3..];
    let shards =
        [Model::Ridge, Model::Logistic, Model::Softmax, Model::NaiveBayes, Model::Bilstm, Model::Lstm]
            .as_slice();
    let sharded = settings.sisa.is_some();
    let ridge = [Model::Ridge, Model::Bilstm, Model::Lstm, Model::Minilm].as_slice();
    let clusters = [Model::KMeans].as_slice();
    let seeded = [Model::KMeans, Model::Bilstm, Model::Lstm].as_slice();
    let bags = [Model::Ridge, Model::Logistic, Model::Softmax, Model::NaiveBayes, Model::KMeans].as_slice();
    let list = [
        ("--lambda", settings.lambda.is_some(), linear),
        ("--no-intercept", settings.no_intercept, linear),
        ("--curvature", settings.curvature.is_some(), ridge),
        ("--tolerance", settings.tolerance.is_some(), linear),
        ("--threads", settings.threads.is_some() && !sharded, linear),
        ("--epsilon", settings.epsilon.is_some(), [Model::Logistic].as_slice()),
        ("--sisa", sharded, shards),
        ("--likelihood", settings.likelihood.is_some(), [Model::NaiveBayes].as_slice()),
        ("--clusters", settings.clusters.is_some(), clusters),
        ("--cell", settings.cell.is_some(), clusters),
        ("--tree", settings.tree.is_some(), clusters),
        ("--seed", settings.seed.is_some() && !sharded, seeded),
        ("--head", network.head.is_some(), networks),
        ("--max-tokens", network.max_tokens.is_some(), networks),
        ("--encoder", network.encoder.is_some(), [Model::Minilm].as_slice()),
        ("--hidden", network.hidden.is_some(), lstm),
        ("--layers", network.layers.is_some(), lstm),
        ("--pooling", network.pooling.is_some(), lstm),
        ("--head-width", network.head_width.is_some(), lstm),
        ("--embeddings", network.embeddings.is_some(), lstm),
        ("--embedding-width", network.embedding_width.is_some(), lstm),
        ("--freeze-embeddings", network.freeze_embeddings, lstm),
        ("--train-embeddings", network.train_embeddings, lstm),
        ("--epochs", network.epochs.is_some(), lstm),
        ("--batch", network.batch.is_some(), lstm),
        ("--learning-rate", network.learning_rate.is_some(), lstm),
        ("--dropout", network.dropout.is_some(), lstm),
        ("--validation", network.validation.is_some(), lstm),
        ("--patience", network.patience.is_some(), lstm),
        ("--checkpoint", network.checkpoint.is_some(), lstm),
        ("--hash", args.hash.is_some(), bags),
        ("--vocab-file", args.vocab_file.is_some(), bags),
    ];
    if sharded && model == Model::KMeans {
        let failure =
            Failure::usage("k-means cannot be fitted in shards: their clusters would have no common names");
        return Err(failure.hint("leave out --sisa; k-means forgets without reading most rows anyway"));
    }
    if sharded && settings.epsilon.is_some() {
        let failure =
            Failure::usage("--epsilon and --sisa exclude each other: a certificate speaks of one model");
        return Err(failure.hint("leave out one of them; shards forget exactly, without noise"));
    }
    match list.into_iter().find(|(_, given, models)| *given && !models.contains(&model)) {
        Some((option, _, models)) => {
            let words: Vec<String> = models.iter().map(|model| format!("--model {}", model.word())).collect();
            let failure = Failure::usage(format!("{option} has no meaning for --model {}", model.word()));
            Err(failure.hint(format!("leave it out; it is for {}", words.join(", "))))
        }
        None => Ok(()),
    }
}
