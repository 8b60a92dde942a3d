//! What a model file says of itself.

use efface::LeftBehind;
use efface::features::Encoder;

use super::naming::{output_names, title};
use super::open_model::{ModelSnapshot, OpenModel};
use super::report::ModelSummary;
use crate::clock;
use crate::codec::blueprint::Blueprint;
use crate::codec::manifest::{Manifest, ModelHead};
use crate::codec::model;
use crate::error::{Error, Result};
use crate::file::{FileFault, RowLayout};
use crate::ledger::copies;

/// What the file holds.
pub(crate) fn summary(model: &OpenModel) -> Result<ModelSummary> {
    let _transaction = model.store.begin(false)?;
    let ModelSnapshot { manifest, encoder } = model.snapshot()?;
    let (subjects, read_off_rows) = model.store.with(|connection| {
        let subjects = match &manifest.blueprint.subject {
            Some(_) => manifest.directory(connection).subjects()?,
            None => 0,
        };
        let read_off_rows = match model::read_off_rows(connection, &manifest) {
            // What the file holds is told without the key of an encrypted one.
            Err(FileFault::Sealed) => Vec::new(),
            found => found?,
        };
        Ok((subjects, read_off_rows))
    })?;
    let exports = model.store.with(|connection| copies::count(connection))?;
    let path = model.store.path();
    let encrypted = model.store.key_check()?.is_some();
    let file_bytes = std::fs::metadata(path)
        .map_err(|cause| Error::io(path, cause))?
        .len();
    let left: LeftBehind = model::left_behind(&manifest, encoder.as_ref(), read_off_rows)
        .into_iter()
        .collect();
    let feature_columns = feature_columns(&manifest.blueprint, encoder.as_ref());
    let feature_expansion = encoder.as_ref().and_then(Encoder::describe_expansion);
    let features = match &feature_expansion {
        Some((_, features)) => *features,
        None => feature_columns.iter().map(|(_, _, width)| width).sum(),
    };
    let layout = manifest.blueprint.layout;
    // Rows of words are as long as their texts, which nobody would call dense.
    let stored_sparse = layout.is_sparse() || layout == RowLayout::WordIds;
    let sparse = encoder.as_ref().map_or(stored_sparse, Encoder::is_sparse);
    let outputs = output_names(&manifest.blueprint, &manifest.model.recipe);
    let Manifest {
        blueprint,
        ledger,
        waiting,
        network,
        model:
            ModelHead {
                recipe,
                state,
                bound,
                relative_bound,
                head_bound,
                certificate,
                ..
            },
        ..
    } = manifest;
    let about = recipe.describe();
    Ok(ModelSummary {
        model: title(network.as_ref(), &recipe),
        version: manifest.version,
        format: crate::FORMAT,
        rows: manifest.rows as usize,
        features,
        outputs,
        classes: blueprint.classes().map(|classes| classes.names().to_vec()),
        lambda: about.lambda,
        intercept: about.intercept,
        form: about.form,
        recipe: recipe.without_secret(),
        network,
        certificate,
        sparse,
        target: blueprint.targets,
        id: blueprint.id,
        subject: blueprint.subject,
        subjects,
        feature_columns,
        feature_expansion,
        forgotten: manifest.forgotten as usize,
        unscrubbed: waiting.as_ref().map_or(0, |waiting| waiting.rows.len()),
        unscrubbed_since: waiting.map(|waiting| clock::stamp(waiting.since)),
        generation: manifest.generation,
        receipts: ledger.size,
        public_key: ledger.key,
        exports,
        bound: bound.unwrap_or(f64::INFINITY),
        relative_bound: relative_bound.unwrap_or(f64::INFINITY),
        head_bound,
        refactorisations: state.refactorisations,
        file_bytes,
        encrypted,
        scores: manifest.scores,
        penalty: manifest.penalty,
        not_covered: left.not_covered,
        kept_beside: left.kept_beside,
        created_at: manifest.created_at,
        changed_at: manifest.changed_at,
    })
}

fn feature_columns(
    blueprint: &Blueprint,
    encoder: Option<&Encoder>,
) -> Vec<(String, String, usize)> {
    match encoder {
        Some(encoder) => encoder.describe_columns(),
        None => match &blueprint.texts {
            Some(texts) => vec![(texts.columns.join(" "), "encoded".into(), blueprint.width)],
            None => vec![("index".into(), "numeric".into(), blueprint.width)],
        },
    }
}
