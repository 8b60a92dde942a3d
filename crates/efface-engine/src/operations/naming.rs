//! How models, their features and their outputs are called.

use efface::Recipe;
use efface::features::Encoder;

use crate::codec::blueprint::Blueprint;
use crate::codec::network_info::NetworkInfo;

/// The features that have a name, with their places among all features.
pub(crate) fn named_features(
    blueprint: &Blueprint,
    encoder: Option<&Encoder>,
) -> Vec<(usize, String)> {
    let number = |column: usize| column as u64 + u64::from(blueprint.first_index.unwrap_or(0));
    match encoder {
        Some(encoder) => encoder
            .named_features()
            .into_iter()
            .map(|(column, name)| (column as usize, name))
            .collect(),
        None if blueprint.texts.is_some() => (0..blueprint.width)
            .map(|column| (column, format!("feature {column}")))
            .collect(),
        None => (0..blueprint.width)
            .map(|column| (column, number(column).to_string()))
            .collect(),
    }
}

/// The names of what a prediction scores.
pub(crate) fn output_names(blueprint: &Blueprint, recipe: &Recipe) -> Vec<String> {
    let about = recipe.describe();
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
        Some(network) if network.shards.is_some() => {
            format!("{} with {head} head in shards", network.kind())
        }
        Some(network) => format!("{} with {head} head", network.kind()),
        None => head,
    }
}
