//! How models, their features and their outputs are called.

use efface::AnyRecipe;
use efface::features::Encoder;
use efface::models::BaseRecipe;

use crate::codec::blueprint::Blueprint;
use crate::codec::manifest::Manifest;
use crate::codec::network_info::NetworkInfo;

/// The name of a feature; None when it was erased.
pub(crate) fn feature(blueprint: &Blueprint, encoder: Option<&Encoder>, column: usize) -> Option<String> {
    let column = u32::try_from(column).ok()?;
    match encoder {
        Some(encoder) => encoder.name(column).map(Into::into),
        None if blueprint.texts.is_some() => Some(format!("feature {column}")),
        None => Some((u64::from(column) + u64::from(blueprint.first_index.unwrap_or(0))).to_string()),
    }
}

/// The names of what a prediction scores.
pub(crate) fn output_names(manifest: &Manifest) -> Vec<String> {
    let blueprint = &manifest.blueprint;
    if let AnyRecipe::KMeans(kmeans) = &manifest.model.recipe {
        return (0..kmeans.k).map(|cluster| cluster.to_string()).collect();
    }
    // Naive Bayes has one score per class, where other models have one for two.
    let bayes = match &manifest.model.recipe {
        AnyRecipe::MultinomialNb(_) | AnyRecipe::GaussianNb(_) => true,
        AnyRecipe::Sisa(sisa) => {
            matches!(sisa.recipe, BaseRecipe::MultinomialNb(_) | BaseRecipe::GaussianNb(_))
        }
        _ => false,
    };
    match blueprint.classes() {
        Some(classes) if bayes => classes.names().to_vec(),
        _ => blueprint.output_names(),
    }
}

/// What to call a network by its encoder and its head, and any other model by its family.
pub(crate) fn title(network: Option<&NetworkInfo>, recipe: &AnyRecipe) -> String {
    let head = family_name(recipe);
    match network {
        Some(network) if network.shards.is_some() => format!("{} with {head} head in shards", network.kind()),
        Some(network) => format!("{} with {head} head", network.kind()),
        None => head,
    }
}

/// What to call a model.
pub(crate) fn family_name(recipe: &AnyRecipe) -> String {
    match recipe {
        AnyRecipe::Sisa(sisa) => format!("{} in shards", family_name(&sisa.recipe.clone().into())),
        recipe => recipe.family().name().into(),
    }
}

/// The penalty of a model, where it has one.
pub(crate) fn lambda(recipe: &AnyRecipe) -> Option<f64> {
    match recipe {
        AnyRecipe::Ridge(ridge) => Some(ridge.lambda),
        AnyRecipe::Logistic(logistic) => Some(logistic.lambda),
        AnyRecipe::Softmax(softmax) => Some(softmax.lambda),
        AnyRecipe::Sisa(sisa) => lambda(&sisa.recipe.clone().into()),
        _ => None,
    }
}
