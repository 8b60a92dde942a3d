//! From a request to a model that is not in a file yet.

use efface::scores::choose_penalty;
use efface::{RowId, Stop};

use super::ingest::{self, ObservedColumns, ReadPurpose, RowBatch, RowReader};
use super::network;
use super::prepared::PreparedModel;
use super::recipe;
use super::request::FitRequest;
use super::watched_fit;
use crate::codec::feature_rows::features;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// The rows of a file and a model of them: a network, or any other.
pub(crate) fn prepare(request: &FitRequest, progress: &dyn Progress) -> Result<PreparedModel> {
    prepare_numbered(request, 0, progress)
}

/// The same, with rows that are numbered on from `first_row`.
pub(crate) fn prepare_numbered(
    request: &FitRequest,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    match &request.network {
        Some(_) if request.choose_penalty => Err(Error::request(
            "every penalty that is tried would train a network anew",
            "give a number",
        )),
        Some(_) if request.class_weight.is_some() => Err(Error::request(
            "the training of a network does not know weights of classes",
            "leave them out, or give a column of weights",
        )),
        Some(network) => network::prepare(request, network, first_row, progress),
        None => {
            let observed = ingest::observe(request, progress)?;
            let reader = RowReader::new(None, observed.encoder.as_ref());
            let limit = request.source.limits().memory;
            let purpose = ReadPurpose::Fit;
            let batch = ingest::gather(
                &request.source,
                &observed.blueprint,
                reader,
                purpose,
                limit,
                progress,
            )?;
            request.source.check_unchanged()?;
            model_of(request, observed, batch, first_row, progress)
        }
    }
}

/// A model of rows in memory.
pub(crate) fn model_of(
    request: &FitRequest,
    observed: ObservedColumns,
    mut batch: RowBatch,
    first_row: u64,
    progress: &dyn Progress,
) -> Result<PreparedModel> {
    let ObservedColumns {
        mut blueprint,
        mut encoder,
        remarks,
    } = observed;
    batch.number(0);
    let numbers = (first_row..).take(batch.len()).map(RowId).collect();
    let (rows, names) = batch.into_rows(numbers, blueprint.outputs())?;
    let mut rows = rows.watched(&Stop::default());
    if let Some(engine) = &request.gram_engine {
        rows = rows.multiplied_by(engine);
    }
    rows.iter()
        .for_each(|row| blueprint.count(row.targets, true));
    blueprint.weigh_classes(request.class_weight.as_ref())?;

    progress.start("fitting", None);
    if let Some(encoder) = &mut encoder {
        encoder.complete(&rows, blueprint.class_count() == Some(2))?;
        blueprint.follow(encoder);
    }
    let seen = features(&rows, encoder.as_ref(), &blueprint)?;
    let mut recipe = recipe::recipe(request, &blueprint, encoder.as_ref())?;
    let mut penalty = None;
    if request.choose_penalty {
        let (chosen, choice) = choose_penalty(&recipe, &seen, blueprint.classes())?;
        recipe = chosen;
        penalty = Some(choice);
    }
    let for_file = recipe.for_file_of(&seen).for_single_change();
    let model = watched_fit::fit(&for_file, seen.as_ref(), None, "fitting", progress)?;
    drop(seen);
    Ok(PreparedModel {
        blueprint,
        encoder,
        rows,
        words: Vec::new(),
        names,
        recipe,
        model,
        network: None,
        backbone: None,
        penalty,
        remarks,
        cut: 0,
    })
}
