//! Which model the options ask for, and which of them belong to another one.

use efface::models::logistic::{Certifier, Privacy};
use efface::{
    Aggregation, BernoulliNb, ComplementNb, GaussianNb, KMeans, LinearSvm, Logistic, MultinomialNb,
    PoissonRegression, Recipe, Ridge, Softmax,
};
use efface_engine::{ClassWeight, Sharding};

use super::network;

use crate::cli::{
    AggregateName, CertifierName, CurvatureName, FitArguments, GridSize, LikelihoodName,
    ModelArguments, ModelName, NamedWeight, PenaltyValue,
};
use crate::commands::threads;
use crate::failure::{Failure, Result};

/// The side of a lattice cell unless one is given: in the units of the features, so that it depends
/// on no row.
const CELL: f64 = 0.05;

/// The model with its settings: of a network, its head. Of naive Bayes without a likelihood, the
/// second is the one for columns of numbers.
pub(super) fn choose(args: &FitArguments) -> Result<(Recipe, Option<Recipe>)> {
    let settings = &args.settings;
    if let Some(reason) = reason_against(args.model) {
        return Err(not_offered(args.model, reason));
    }
    refuse_strangers(args)?;
    let naive_bayes = args.model == ModelName::NaiveBayes && settings.likelihood.is_none();
    let for_numbers = naive_bayes.then(|| gaussian(settings).into());
    Ok((chosen(args)?, for_numbers))
}

/// Shards are trained side by side; within one there is nothing left to share out.
pub(super) fn workers(settings: &ModelArguments) -> usize {
    if settings.sisa.is_some() {
        1
    } else {
        threads(settings.threads)
    }
}

fn chosen(args: &FitArguments) -> Result<Recipe> {
    let settings = &args.settings;
    let workers = workers(settings);
    match args.model {
        ModelName::Ridge => {
            let mut ridge = Ridge::new(settings.penalty())
                .intercept(!settings.no_intercept)
                .threads(workers);
            ridge.form = settings.curvature.map_or(ridge.form, Into::into);
            ridge.tolerance = settings.tolerance.unwrap_or(ridge.tolerance);
            Ok(ridge.into())
        }
        ModelName::Logistic => {
            let mut logistic = Logistic::new(settings.penalty())
                .intercept(!settings.no_intercept)
                .threads(workers);
            logistic.tolerance = settings.tolerance.unwrap_or(logistic.tolerance);
            logistic.curvature = keeps_hessian(settings)?;
            logistic.privacy = privacy(settings)?;
            Ok(logistic.into())
        }
        ModelName::Softmax => {
            let mut softmax = Softmax::new(settings.penalty())
                .intercept(!settings.no_intercept)
                .threads(workers);
            softmax.tolerance = settings.tolerance.unwrap_or(softmax.tolerance);
            softmax.curvature = keeps_hessian(settings)?;
            Ok(softmax.into())
        }
        ModelName::Svm => {
            let mut svm = LinearSvm::new(settings.penalty()).intercept(!settings.no_intercept);
            svm.tolerance = settings.tolerance.unwrap_or(svm.tolerance);
            Ok(svm.into())
        }
        ModelName::Poisson => {
            let mut poisson =
                PoissonRegression::new(settings.penalty()).intercept(!settings.no_intercept);
            poisson.tolerance = settings.tolerance.unwrap_or(poisson.tolerance);
            Ok(poisson.into())
        }
        ModelName::NaiveBayes => Ok(naive_bayes(settings)),
        ModelName::KMeans => kmeans(settings).map(Into::into),
        ModelName::Bilstm | ModelName::Lstm | ModelName::Minilm => network::head(args),
        ModelName::ElasticNet | ModelName::Quantile => Err(not_offered(
            args.model,
            reason_against(args.model).unwrap_or_default(),
        )),
    }
}

/// Whether a classifier keeps its Hessian, where that pays.
fn keeps_hessian(settings: &ModelArguments) -> Result<bool> {
    match settings.curvature {
        None | Some(CurvatureName::Auto) => Ok(true),
        Some(CurvatureName::Iterative) => Ok(false),
        Some(_) => Err(Failure::usage("--curvature is auto or iterative for logistic and softmax").hint(
            "auto keeps the Hessian where that pays; iterative keeps nothing, and a forget reads the rows",
        )),
    }
}

/// Naive Bayes of the likelihood that was named, or else over counts.
fn naive_bayes(settings: &ModelArguments) -> Recipe {
    let alpha = settings.smoothing.unwrap_or(MultinomialNb::default().alpha);
    match settings.likelihood {
        None | Some(LikelihoodName::Multinomial) => MultinomialNb { alpha }.into(),
        Some(LikelihoodName::Complement) => ComplementNb { alpha }.into(),
        Some(LikelihoodName::Bernoulli) => BernoulliNb {
            alpha,
            ..BernoulliNb::default()
        }
        .into(),
        Some(LikelihoodName::Gaussian) => gaussian(settings).into(),
    }
}

/// Numbers, with their smoothing.
fn gaussian(settings: &ModelArguments) -> GaussianNb {
    let usual = GaussianNb::default();
    GaussianNb {
        var_smoothing: settings.smoothing.unwrap_or(usual.var_smoothing),
    }
}

/// What rows are to count for by their class.
pub(super) fn class_weight(words: &[NamedWeight]) -> Result<Option<ClassWeight>> {
    let listed: Vec<(String, f64)> = words
        .iter()
        .filter_map(|word| match word {
            NamedWeight::Balanced => None,
            NamedWeight::Class(name, weight) => Some((name.clone(), *weight)),
        })
        .collect();
    match (words.len() - listed.len(), listed.is_empty()) {
        (0, true) => Ok(None),
        (0, false) => Ok(Some(ClassWeight::Listed(listed))),
        (1, true) => Ok(Some(ClassWeight::Balanced)),
        _ => Err(
            Failure::usage("--class-weight is balanced or numbers for classes, and not both")
                .hint("write --class-weight balanced, or --class-weight CLASS=W"),
        ),
    }
}

/// Why a model is not offered; None where it is.
fn reason_against(model: ModelName) -> Option<&'static str> {
    match model {
        ModelName::ElasticNet => Some(
            "where a weight becomes 0 its loss has no curvature, so that nothing bounds how far a forget is from retraining, and \
             which weights are 0 is itself a choice that the rows made",
        ),
        ModelName::Quantile => Some(
            "its loss has no curvature away from its corners, so that there is neither a Newton step nor a bound on what a forget \
             leaves",
        ),
        _ => None,
    }
}

/// A model that can be named and not fitted.
fn not_offered(model: ModelName, reason: &str) -> Failure {
    let failure = Failure::refused(format!("--model {} is not offered: {reason}", model.word()));
    failure.hint(
        "use --model ridge; --lambda auto chooses the penalty, and --ignore leaves columns out",
    )
}

/// The noise of a certified model; its seed is the engine's to draw.
fn privacy(settings: &ModelArguments) -> Result<Option<Privacy>> {
    let (Some(epsilon), Some(delta)) = (settings.epsilon, settings.delta) else {
        return Ok(None);
    };
    let stranger = |option: &str, method: &str| {
        let failure = Failure::usage(format!("{option} has no meaning for --certify {method}"));
        Err(failure
            .hint("leave it out; --noise is for certified, --distance for descent_to_delete"))
    };
    let mut privacy = match settings.certify {
        None | Some(CertifierName::Certified) if settings.distance.is_some() => {
            return stranger("--distance", "certified");
        }
        Some(CertifierName::DescentToDelete) if settings.noise.is_some() => {
            return stranger("--noise", "descent_to_delete");
        }
        None | Some(CertifierName::Certified) => Privacy::removal(epsilon, delta, 0),
        Some(CertifierName::DescentToDelete) => Privacy::descent(epsilon, delta, 0),
    };
    match &mut privacy.certifier {
        Certifier::Removal { noise } => *noise = settings.noise.unwrap_or(*noise),
        Certifier::Descent { distance } => *distance = settings.distance.unwrap_or(*distance),
    }
    Ok(Some(privacy))
}

/// The shards that the options ask for.
pub(super) fn sharding(args: &FitArguments) -> Option<Sharding> {
    let settings = &args.settings;
    let GridSize(shards, slices) = settings.sisa?;
    let aggregation = settings.aggregate.map(|how| match how {
        AggregateName::Vote => Aggregation::Vote,
        AggregateName::Mean => Aggregation::Mean,
    });
    let seed = settings.seed.unwrap_or(0);
    let threads = threads(settings.threads);
    Some(Sharding {
        shards,
        slices,
        seed,
        aggregation,
        threads,
    })
}

fn kmeans(settings: &ModelArguments) -> Result<KMeans> {
    let Some(clusters) = settings.clusters else {
        let failure = Failure::usage("k-means has to be told how many clusters to find");
        return Err(failure.hint("add --clusters K, for example --clusters 8"));
    };
    let recipe = match settings.tree {
        Some(GridSize(height, width)) => KMeans::divided(clusters, height, width),
        None => KMeans::quantised(clusters, settings.cell.unwrap_or(CELL)),
    };
    Ok(recipe.seed(settings.seed.unwrap_or(0)))
}

/// Refuses settings of other models: they would be ignored, and the user would not know.
fn refuse_strangers(args: &FitArguments) -> Result {
    let model = args.model;
    let settings = &args.settings;
    let network = &args.network;
    let all = [
        ModelName::Ridge,
        ModelName::Logistic,
        ModelName::Softmax,
        ModelName::Bilstm,
        ModelName::Lstm,
        ModelName::Minilm,
    ];
    let on_threads = all.as_slice();
    let lstm = &all[3..5];
    let networks = &all[3..];
    let linear: Vec<ModelName> = all
        .iter()
        .copied()
        .chain([ModelName::Svm, ModelName::Poisson])
        .collect();
    let linear = linear.as_slice();
    let shards = [
        ModelName::Ridge,
        ModelName::Logistic,
        ModelName::Softmax,
        ModelName::Svm,
        ModelName::Poisson,
        ModelName::NaiveBayes,
        ModelName::Bilstm,
        ModelName::Lstm,
    ]
    .as_slice();
    let sharded = settings.sisa.is_some();
    let ridge = [
        ModelName::Ridge,
        ModelName::Bilstm,
        ModelName::Lstm,
        ModelName::Minilm,
    ]
    .as_slice();
    let curved = [ridge, &[ModelName::Logistic, ModelName::Softmax]].concat();
    let clusters = [ModelName::KMeans].as_slice();
    let draws = args.scoring.draws() || args.features.fourier.is_some();
    let seeded = [ModelName::KMeans, ModelName::Bilstm, ModelName::Lstm].as_slice();
    let bags = [
        ModelName::Ridge,
        ModelName::Logistic,
        ModelName::Softmax,
        ModelName::Svm,
        ModelName::Poisson,
        ModelName::NaiveBayes,
        ModelName::KMeans,
    ]
    .as_slice();
    let judged = args.scoring.draws() || args.scoring.test.is_some();
    let all_but_clusters: Vec<ModelName> = linear
        .iter()
        .copied()
        .chain([ModelName::NaiveBayes])
        .collect();
    let list = [
        ("--lambda", settings.lambda.is_some(), linear),
        ("--no-intercept", settings.no_intercept, linear),
        ("--curvature", settings.curvature.is_some(), &curved[..]),
        ("--tolerance", settings.tolerance.is_some(), linear),
        (
            "--threads",
            settings.threads.is_some() && !sharded,
            on_threads,
        ),
        ("--device", settings.device.is_some(), ridge),
        (
            "--epsilon",
            settings.epsilon.is_some(),
            [ModelName::Logistic].as_slice(),
        ),
        ("--sisa", sharded, shards),
        (
            "--likelihood",
            settings.likelihood.is_some(),
            [ModelName::NaiveBayes].as_slice(),
        ),
        (
            "--smoothing",
            settings.smoothing.is_some(),
            [ModelName::NaiveBayes].as_slice(),
        ),
        ("--clusters", settings.clusters.is_some(), clusters),
        ("--cell", settings.cell.is_some(), clusters),
        ("--tree", settings.tree.is_some(), clusters),
        (
            "--seed",
            settings.seed.is_some() && !sharded && !draws,
            seeded,
        ),
        ("--head", network.head.is_some(), networks),
        ("--max-tokens", network.max_tokens.is_some(), networks),
        (
            "--encoder",
            network.encoder.is_some(),
            [ModelName::Minilm].as_slice(),
        ),
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
        ("--test, --holdout or --cv", judged, &all_but_clusters),
        (
            "--class-weight",
            !args.class_weight.is_empty(),
            &all_but_clusters[..],
        ),
        ("--hash", args.hash.is_some(), bags),
        ("--dates", !args.dates.is_empty(), bags),
        ("--vocab-file", args.vocab_file.is_some(), bags),
    ];
    if sharded && model == ModelName::KMeans {
        let failure = Failure::usage(
            "k-means cannot be fitted in shards: their clusters would have no common names",
        );
        return Err(
            failure.hint("leave out --sisa; k-means forgets without reading most rows anyway")
        );
    }
    if sharded && settings.epsilon.is_some() {
        let failure = Failure::usage(
            "--epsilon and --sisa exclude each other: a certificate speaks of one model",
        );
        return Err(failure.hint("leave out one of them; shards forget exactly, without noise"));
    }
    if settings.lambda == Some(PenaltyValue::Auto)
        && (sharded || networks.contains(&model) || settings.epsilon.is_some())
    {
        let failure = Failure::usage(
            "--lambda auto is for a model in one piece, without an encoder and without noise",
        );
        return Err(
            failure.hint("give a number: every penalty that is tried would be a whole training")
        );
    }
    match list
        .into_iter()
        .find(|(_, given, models)| *given && !models.contains(&model))
    {
        Some((option, _, models)) => {
            let words: Vec<String> = models
                .iter()
                .map(|model| format!("--model {}", model.word()))
                .collect();
            let failure = Failure::usage(format!(
                "{option} has no meaning for --model {}",
                model.word()
            ));
            Err(failure.hint(format!("leave it out; it is for {}", words.join(", "))))
        }
        None => Ok(()),
    }
}
