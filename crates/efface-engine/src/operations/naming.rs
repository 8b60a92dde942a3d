//! How models, their features and their outputs are called.

use efface::Recipe;
use efface::features::Encoder;

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
    let about = manifest.model.recipe.describe();
    if let Some(clusters) = about.clusters {
        return (0..clusters).map(|cluster| cluster.to_string()).collect();
    }
    match blueprint.classes() {
        Some(classes) if about.has_score_per_class => classes.names().to_vec(),
        _ => blueprint.output_names(),
    }
}

/// What to call a network by its encoder and its head, and any other model by its family.
pub(crate) fn title(network: Option<&NetworkInfo>, recipe: &Recipe) -> String {
    let head = recipe.describe().name;
    match network {
        Some(network) if network.shards.is_some() => format!("{} with {head} head in shards", network.kind()),
        Some(network) => format!("{} with {head} head", network.kind()),
        None => head,
    }
}
