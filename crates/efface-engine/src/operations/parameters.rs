//! The parameters of a model, by name and as a list of numbers.

use efface::features::Encoder;
use efface::models::NamedParameters;
use faer::Mat;

use super::naming::{named_features, output_names, title};
use super::open_model::{ModelSnapshot, OpenModel};
use super::report::Parameters;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::error::Result;
use crate::file::ModelStore;

/// The parameters of the model, by name.
pub(crate) fn parameters(model: &OpenModel) -> Result<Parameters> {
    let _transaction = model.store.begin(false)?;
    let ModelSnapshot { manifest, encoder } = model.snapshot()?;
    parameters_of(&model.store, &manifest, encoder.as_ref())
}

/// The parameters of the model of this manifest, inside a transaction that the caller holds.
pub(crate) fn parameters_of(
    store: &ModelStore,
    manifest: &Manifest,
    encoder: Option<&Encoder>,
) -> Result<Parameters> {
    // Every table is features × outputs.
    let NamedParameters {
        mut vectors,
        tables,
    } = model::scorer(store, manifest)?.parameters()?;
    let named = named_features(&manifest.blueprint, encoder);
    // Coefficients of scaled features mean nothing without the scales.
    if let Some(scales) = encoder.and_then(Encoder::scales) {
        let of_named =
            |part: fn(&(f64, f64)) -> f64| named.iter().map(|(at, _)| part(&scales[*at])).collect();
        vectors.push(("feature_shift", of_named(|scale| scale.0)));
        vectors.push(("feature_scale", of_named(|scale| scale.1)));
    }
    let lines = |table: &Mat<f64>| {
        let line = |(column, _): &(usize, String)| {
            (0..table.ncols()).map(|at| table[(*column, at)]).collect()
        };
        named.iter().map(line).collect()
    };
    Ok(Parameters {
        model: title(manifest.network.as_ref(), &manifest.model.recipe),
        lambda: manifest.model.recipe.describe().lambda,
        rows: manifest.rows as usize,
        outputs: output_names(&manifest.blueprint, &manifest.model.recipe),
        classes: manifest
            .blueprint
            .classes()
            .map(|classes| classes.names().to_vec()),
        vectors,
        tables: tables
            .iter()
            .map(|(name, table)| (*name, lines(table)))
            .collect(),
        features: named.into_iter().map(|(_, name)| name).collect(),
    })
}

/// Every number that an export could hold, in an order that stays the same; empty for a model that
/// cannot be exported.
pub(crate) fn numbers(store: &ModelStore, manifest: &Manifest) -> Result<Vec<f64>> {
    Ok(match model::scorer(store, manifest)?.parameters() {
        Ok(parameters) => numbers_of(&parameters),
        // A model in shards has no parameters of its own, and is not exported either.
        Err(_) => Vec::new(),
    })
}

/// All numbers of these parameters in one list.
pub(crate) fn numbers_of(parameters: &NamedParameters) -> Vec<f64> {
    let lists = parameters
        .vectors
        .iter()
        .flat_map(|(_, values)| values.clone());
    let tables = parameters.tables.iter().flat_map(|(_, table)| {
        (0..table.ncols())
            .flat_map(|column| table.col_as_slice(column).to_vec())
            .collect::<Vec<f64>>()
    });
    lists.chain(tables).collect()
}
