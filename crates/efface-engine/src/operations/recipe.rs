//! From the model that was asked for to the recipe that the file allows.

use efface::features::Encoder;
use efface::models::RecipeTask;
use efface::{Aggregation, Hint, Recipe, Setting, ShardRecipe, Sisa};

use crate::codec::blueprint::Blueprint;
use crate::error::{Error, Result};
use crate::operations::request::{FitRequest, Sharding};
use crate::randomness::random_bytes;

/// The recipe for rows of this shape.
pub(crate) fn recipe(
    request: &FitRequest,
    blueprint: &Blueprint,
    encoder: Option<&Encoder>,
) -> Result<Recipe> {
    let whole = whole(request, blueprint, encoder)?;
    let Some(Sharding {
        shards,
        slices,
        seed,
        aggregation,
        threads,
    }) = request.sharding
    else {
        return Ok(whole);
    };
    let base = ShardRecipe::new(whole)?;
    let natural = if blueprint.classes().is_some() {
        Aggregation::Vote
    } else {
        Aggregation::Mean
    };
    if aggregation == Some(Aggregation::Vote) && natural == Aggregation::Mean {
        return Err(Error::request(
            "shards can vote on classes and not on numbers",
            Hint::new("use {}").set(Setting::Aggregate, "mean"),
        ));
    }
    let aggregation = aggregation.unwrap_or(natural);
    Ok(Sisa {
        recipe: base,
        shards,
        slices,
        seed,
        aggregation,
        threads,
    }
    .into())
}

/// The recipe of a model in one piece.
fn whole(request: &FitRequest, blueprint: &Blueprint, encoder: Option<&Encoder>) -> Result<Recipe> {
    let recipe = match &request.model_for_numbers {
        Some(for_numbers) if has_numbers(encoder) => for_numbers,
        _ => &request.model,
    };
    let about = recipe.describe();
    let classes = blueprint.class_count().unwrap_or(0);
    let wrong = |takes: &str, hint: Hint| {
        let column = blueprint.targets.first().map_or("", String::as_str);
        Err(Error::Classes {
            what: format!("column `{column}` has {classes} classes; {takes}"),
            hint: Some(hint),
        })
    };
    match about.task {
        RecipeTask::TwoClasses if classes != 2 => {
            let hint = Hint::new("use {}, or make two of them with {}");
            return wrong(
                "logistic takes two",
                hint.set(Setting::Model, "softmax").name(Setting::Positive),
            );
        }
        RecipeTask::ManyClasses if classes == 2 => {
            let hint = Hint::new("use {}").set(Setting::Model, "logistic");
            return wrong("softmax takes three or more", hint);
        }
        _ => (),
    }
    if about.is_certified && blueprint.is_balanced() {
        return Err(Error::request(
            "balanced weights of classes follow from the rows, and a certificate of noise speaks of rows with fixed weights",
            "give the weights as numbers, or leave out the noise",
        ));
    }
    if about.is_certified {
        // A seed that nobody can guess: noise that can be made again hides nothing.
        let seed = u64::from_le_bytes(*random_bytes::<8>()?);
        return Ok(recipe.with_secret(seed).unwrap_or_else(|| recipe.clone()));
    }
    Ok(recipe.clone())
}

/// Whether a column holds numbers. Words and levels are counts; values of svmlight are numbers.
fn has_numbers(encoder: Option<&Encoder>) -> bool {
    encoder.is_none_or(|encoder| encoder.columns().iter().any(|column| column.is_numeric()))
}
