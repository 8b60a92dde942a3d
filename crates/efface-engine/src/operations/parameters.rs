//! The parameters of a model, by name and as a list of numbers.

use efface::AnyModel;
use efface::features::Encoder;
use faer::Mat;

use super::naming::{feature, lambda, output_names, title};
use super::open_model::{ModelSnapshot, OpenModel};
use super::report::Parameters;
use crate::codec::manifest::Manifest;
use crate::codec::model::{self, Live};
use crate::error::Result;
use crate::file::{ModelStore, StoreRows};

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
    let rows = StoreRows::new(store, manifest.outline());
    let mut vectors = Vec::new();
    // Every table is features × outputs.
    let mut tables = Vec::new();
    let in_shards = |shards: usize| {
        let reason = format!(
            "a model in {shards} shards has no parameters of its own, only those of every shard; fit without shards to \
             export, or use predict"
        );
        Err(efface::Error::Unsupported { method: "export", reason }.into())
    };
    let found = match model::scorer(store, manifest, &rows)? {
        Live::Plain(model) => model,
        Live::Shards(model) => return in_shards(model.settings().shards),
    };
    match found {
        AnyModel::Ridge(model) => {
            let (coefficients, intercept) = model.parameters();
            vectors.push(("intercept", intercept));
            tables.push(("coefficients", coefficients));
        }
        AnyModel::MultinomialNb(model) => {
            vectors.push(("class_prior", model.class_prior()));
            tables.push(("feature_log_prob", model.feature_log_prob().transpose().to_owned()));
        }
        AnyModel::GaussianNb(model) => {
            vectors.push(("class_prior", model.class_prior()));
            tables.push(("means", model.means().transpose().to_owned()));
            tables.push(("variances", model.variances().transpose().to_owned()));
        }
        AnyModel::Logistic(model) => {
            let (coefficients, intercept) = model.parameters();
            vectors.push(("intercept", intercept));
            tables.push(("coefficients", coefficients));
        }
        AnyModel::Sisa(model) => return in_shards(model.settings().shards),
        AnyModel::KMeans(model) => tables.push(("centers", model.centers().transpose().to_owned())),
    }
    let named: Vec<(usize, String)> = (0..manifest.blueprint.width)
        .filter_map(|column| Some((column, feature(&manifest.blueprint, encoder, column)?)))
        .collect();
    let lines = |table: &Mat<f64>| {
        let line =
            |(column, _): &(usize, String)| (0..table.ncols()).map(|at| table[(*column, at)]).collect();
        named.iter().map(line).collect()
    };
    Ok(Parameters {
        model: title(manifest.network.as_ref(), &manifest.model.recipe),
        lambda: lambda(&manifest.model.recipe),
        rows: manifest.rows as usize,
        outputs: output_names(manifest),
        classes: manifest.blueprint.classes().map(|classes| classes.names().to_vec()),
        vectors,
        tables: tables.iter().map(|(name, table)| (*name, lines(table))).collect(),
        features: named.into_iter().map(|(_, name)| name).collect(),
    })
}

/// Every number that an export could hold, in an order that stays the same; empty for a model that cannot be exported.
pub(crate) fn numbers(store: &ModelStore, manifest: &Manifest) -> Result<Vec<f64>> {
    let rows = StoreRows::new(store, manifest.outline());
    Ok(match model::scorer(store, manifest, &rows)? {
        Live::Plain(model) => numbers_of(&model),
        Live::Shards(_) => Vec::new(),
    })
}

/// Every number that an export of a model in memory could hold, in the same order.
pub(crate) fn numbers_of(model: &AnyModel) -> Vec<f64> {
    let flat = |table: &Mat<f64>| {
        (0..table.ncols()).flat_map(|j| table.col_as_slice(j).to_vec()).collect::<Vec<_>>()
    };
    let pair = |(coefficients, intercept): (Mat<f64>, Vec<f64>)| [flat(&coefficients), intercept].concat();
    match model {
        AnyModel::Ridge(model) => pair(model.parameters()),
        AnyModel::Logistic(model) => pair(model.parameters()),
        AnyModel::MultinomialNb(model) => [model.class_prior(), flat(&model.feature_log_prob())].concat(),
        AnyModel::GaussianNb(model) => {
            let tables = [flat(&model.means()), flat(&model.variances())].concat();
            [model.class_prior(), tables].concat()
        }
        AnyModel::KMeans(model) => flat(&model.centers()),
        AnyModel::Sisa(_) => Vec::new(),
    }
}
