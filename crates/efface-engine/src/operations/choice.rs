//! From the model that was asked for to the recipe that the file allows.

use efface::features::Encoder;
use efface::models::BaseRecipe;
use efface::{Aggregation, AnyRecipe, GaussianNb, Hint, MultinomialNb, Setting, Sisa};

use crate::codec::blueprint::Blueprint;
use crate::error::{Error, Result};
use crate::operations::request::{Choice, FitRequest, Likelihood, Sharding};
use crate::randomness::random_bytes;

impl Choice {
    /// Whether target values can only be classes.
    pub(crate) fn classifies(&self) -> bool {
        matches!(self, Self::Logistic(_) | Self::Softmax(_) | Self::NaiveBayes(_))
    }

    /// Whether there is nothing to predict.
    pub(crate) fn unsupervised(&self) -> bool {
        matches!(self, Self::KMeans(_))
    }

    fn recipe(&self, blueprint: &Blueprint, encoder: Option<&Encoder>) -> Result<AnyRecipe> {
        let classes = blueprint.class_count().unwrap_or(0);
        let wrong = |takes: &str, hint: Hint| {
            let column = blueprint.targets.first().map_or("", String::as_str);
            Err(Error::Classes {
                what: format!("column `{column}` has {classes} classes; {takes}"),
                hint: Some(hint),
            })
        };
        Ok(match self {
            Self::Ridge(ridge) => AnyRecipe::Ridge(*ridge),
            Self::Logistic(_) if classes != 2 => {
                return wrong(
                    "logistic takes two",
                    Hint::new("use {}, or make two of them with {}")
                        .set(Setting::Model, "softmax")
                        .name(Setting::Positive),
                );
            }
            Self::Softmax(_) if classes == 2 => {
                return wrong(
                    "softmax takes three or more",
                    Hint::new("use {}").set(Setting::Model, "logistic"),
                );
            }
            Self::Logistic(logistic) => match logistic.privacy {
                Some(privacy) => AnyRecipe::Logistic(logistic.privacy(privacy.seed(secret()?))),
                None => AnyRecipe::Logistic(*logistic),
            },
            Self::Softmax(softmax) => AnyRecipe::Softmax(*softmax),
            Self::NaiveBayes(likelihood) => match likelihood.unwrap_or_else(|| natural(encoder)) {
                Likelihood::Multinomial => AnyRecipe::MultinomialNb(MultinomialNb::default()),
                Likelihood::Gaussian => AnyRecipe::GaussianNb(GaussianNb::default()),
            },
            Self::KMeans(kmeans) => AnyRecipe::KMeans(*kmeans),
        })
    }
}

/// The recipe for rows of this shape.
pub(crate) fn recipe(
    request: &FitRequest,
    blueprint: &Blueprint,
    encoder: Option<&Encoder>,
) -> Result<AnyRecipe> {
    let whole = request.model.recipe(blueprint, encoder)?;
    let Some(Sharding { shards, slices, seed, aggregation, threads }) = request.sharding else {
        return Ok(whole);
    };
    let base = BaseRecipe::try_from(whole)?;
    let natural = if blueprint.classes().is_some() { Aggregation::Vote } else { Aggregation::Mean };
    if aggregation == Some(Aggregation::Vote) && natural == Aggregation::Mean {
        return Err(Error::request(
            "shards can vote on classes and not on numbers",
            Hint::new("use {}").set(Setting::Aggregate, "mean"),
        ));
    }
    let aggregation = aggregation.unwrap_or(natural);
    Ok(AnyRecipe::Sisa(Sisa { recipe: base, shards, slices, seed, aggregation, threads }))
}

/// Words and levels are counts; a single column of numbers makes counting pointless. Values of svmlight are numbers.
fn natural(encoder: Option<&Encoder>) -> Likelihood {
    match encoder {
        Some(encoder) if encoder.columns().iter().all(|column| !column.is_numeric()) => {
            Likelihood::Multinomial
        }
        _ => Likelihood::Gaussian,
    }
}

/// A seed that nobody can guess: noise that can be made again hides nothing.
fn secret() -> Result<u64> {
    Ok(u64::from_le_bytes(*random_bytes::<8>()?))
}
