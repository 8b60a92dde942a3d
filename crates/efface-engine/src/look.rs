//! What can be asked of a model without changing it.

use efface::features::Encoder;
use efface_io::Source;

use crate::blueprint::Blueprint;
use crate::engine::{Engine, Snapshot};
use crate::error::{Error, Result};
use crate::ingest::{self, Purpose};
use crate::model;
use crate::report::{Parameters, Prediction, Summary};
use crate::request::Silent;
use crate::store::{Manifest, StoreRows, parts};

const MODEL: &str = "ridge";

pub(crate) fn summary(engine: &Engine) -> Result<Summary> {
    let _transaction = engine.store.begin(false)?;
    let Snapshot { manifest, encoder } = engine.snapshot()?;
    let (subjects, forgotten, scaled) = engine.store.with(|connection| {
        let directory = manifest.directory(connection);
        let scaled = !parts::bytes(connection, &manifest.parts, "inverse_scale")?.is_empty();
        Ok((directory.subjects()?, directory.ever_forgotten()?, scaled))
    })?;
    let path = engine.store.path();
    let file_bytes = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?.len();
    let not_covered = model::not_covered(&manifest, encoder.as_ref(), scaled);
    let feature_columns = feature_columns(&manifest.blueprint, encoder.as_ref());
    let Manifest { blueprint, model, .. } = manifest;
    Ok(Summary {
        model: MODEL.into(),
        version: manifest.version,
        format: crate::FORMAT,
        rows: manifest.rows as usize,
        features: blueprint.width.saturating_sub(manifest.erased as usize),
        outputs: blueprint.output_names(),
        classes: blueprint.classes().map(|classes| classes.names().to_vec()),
        lambda: model.settings.lambda,
        intercept: model.settings.intercept,
        form: format!("{:?}", model.settings.form).to_lowercase(),
        sparse: blueprint.layout != crate::blueprint::Layout::Dense64,
        target: blueprint.targets,
        id: blueprint.id,
        subject: blueprint.subject,
        subjects,
        feature_columns,
        forgotten,
        generation: manifest.generation,
        bound: model.bound.unwrap_or(f64::INFINITY),
        relative_bound: model.relative_bound.unwrap_or(f64::INFINITY),
        refactorisations: model.refactorisations,
        file_bytes,
        not_covered,
        created_at: manifest.created_at,
        changed_at: manifest.changed_at,
    })
}

fn feature_columns(blueprint: &Blueprint, encoder: Option<&Encoder>) -> Vec<(String, String, usize)> {
    match encoder {
        Some(encoder) => {
            encoder.columns().iter().map(|c| (c.name().into(), c.kind().into(), c.width())).collect()
        }
        None => vec![("index".into(), "numeric".into(), blueprint.width)],
    }
}

/// The name of a feature; None when it was erased.
fn feature(blueprint: &Blueprint, encoder: Option<&Encoder>, column: usize) -> Option<String> {
    let column = u32::try_from(column).ok()?;
    match encoder {
        Some(encoder) => encoder.name(column).map(Into::into),
        None => Some((u64::from(column) + u64::from(blueprint.first_index.unwrap_or(0))).to_string()),
    }
}

pub(crate) fn parameters(engine: &Engine) -> Result<Parameters> {
    let _transaction = engine.store.begin(false)?;
    let Snapshot { manifest, encoder } = engine.snapshot()?;
    let rows = StoreRows::new(&engine.store, &manifest);
    let (all, intercept) = model::scorer(&engine.store, &manifest, &rows)?.parameters();
    let (mut features, mut coefficients) = (Vec::new(), Vec::new());
    for column in 0..manifest.blueprint.width {
        if let Some(name) = feature(&manifest.blueprint, encoder.as_ref(), column) {
            features.push(name);
            coefficients.push((0..intercept.len()).map(|output| all[(column, output)]).collect());
        }
    }
    Ok(Parameters {
        model: MODEL.into(),
        lambda: manifest.model.settings.lambda,
        rows: manifest.rows as usize,
        outputs: manifest.blueprint.output_names(),
        classes: manifest.blueprint.classes().map(|classes| classes.names().to_vec()),
        intercept,
        features,
        coefficients,
    })
}

pub(crate) fn predict(
    engine: &Engine,
    source: &Source,
    see: &mut dyn FnMut(Prediction) -> Result<()>,
) -> Result<u64> {
    let transaction = engine.store.begin(false)?;
    let Snapshot { manifest, encoder } = engine.snapshot()?;
    let rows = StoreRows::new(&engine.store, &manifest);
    let (coefficients, intercept) = model::scorer(&engine.store, &manifest, &rows)?.parameters();
    // All that a score needs is in memory: let writers go on while the file is read.
    drop(transaction);
    let classes = manifest.blueprint.classes();
    let mut score = |example: ingest::Example<'_>| {
        let mut scores = intercept.clone();
        for (output, score) in scores.iter_mut().enumerate() {
            let column = coefficients.col_as_slice(output);
            *score += example.entries.iter().map(|&(feature, x)| x * column[feature as usize]).sum::<f64>();
        }
        let label = classes.map(|classes| classes.names()[classes.decide(&scores)].clone());
        see(Prediction { id: example.id, line: example.line, scores, label })
    };
    ingest::each(source, &manifest.blueprint, encoder.as_ref(), Purpose::Predict, &Silent, &mut score)
}
