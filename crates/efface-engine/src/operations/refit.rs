//! A new fit in the place of a model: the nightly refit. The model keeps its log, its keys, its
//! policy and the list of what it has forgotten; rows on that list are refused.
//!
//! The fit itself holds nothing, so that forgets go on meanwhile. When it is done, the file is
//! held, the list is asked as it is *then*, and all rows are exchanged in one transaction: a forget
//! that was acknowledged while the fit ran is on the list, and a fit that would bring its row back
//! is refused.

use std::path::Path;
use std::time::Instant;

use efface::Method;
use efface_receipt::{RequestKind, RequestOutcome};

use super::change::{ArrivingRows, OpenedChange, RefittedModel};
use super::open_model::OpenModel;
use super::prepare::prepare_numbered;
use super::prepared::PreparedModel;
use super::report::{ClassShards, FitReport};
use super::request::FitRequest;
use super::summary::summary;
use super::{returning, scoring};
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::error::{Error, Result};
use crate::file::PATIENCE;
use crate::ledger::ReceiptDraft;
use crate::progress::Progress;

/// Fits a model on new rows and puts it in the place of the one at `path`, whose log goes on.
pub fn refit(request: &FitRequest, path: &Path, progress: &dyn Progress) -> Result<FitReport> {
    let started = Instant::now();
    if request.recovery_key.is_some() {
        return Err(Error::request(
            "a recovery key begins a log of its own",
            "fit into a new file, or give up the log of this one",
        ));
    }
    let mut opened = OpenModel::open(path, true, PATIENCE)?;
    opened.access = request.access.clone();
    let first_row = check_before(&opened, request)?;
    let mut prepared = prepare_numbered(&scoring::training_request(request)?, first_row, progress)?;
    let mut evidence = prepared.model.evidence();
    let state = model::settle(&mut prepared.model, &mut evidence)?;
    prepared.recipe = prepared.recipe.as_kept_by(&prepared.model);
    let scores = scoring::measure(request, &prepared, path, progress)?;
    let judging = scoring::judging_names(request, &prepared, path, progress)?;
    let sums = prepared.sums();
    let shards_by_class = ClassShards::of(&prepared.model, prepared.blueprint.classes());
    let PreparedModel {
        blueprint,
        encoder,
        rows,
        words,
        names,
        recipe,
        model,
        ..
    } = prepared;
    let PreparedModel {
        penalty,
        remarks,
        cut,
        network,
        backbone,
        ..
    } = prepared;
    progress.finish();

    let change = OpenedChange::begin(&opened, true)?;
    let signer = change.signing_key()?;
    let rows = ArrivingRows {
        rows,
        names,
        words,
        unknown: 0,
    };
    check_names(&change.manifest, request)?;
    returning::check_row_names(&change, &rows.names)?;
    // Rows that only judge the model are held against the list too: it is a use of them all the
    // same.
    judging.map_or(Ok(()), |names| returning::check_row_names(&change, &names))?;
    if change.manifest.blueprint.shape() == blueprint.shape() {
        returning::check_content(&change, &rows, &[])?;
    }
    let tolerance = evidence.tolerance;
    let precomputed = evidence.precomputed.clone();
    let tolerance_missed = evidence.tolerance_missed();
    let new = RefittedModel {
        blueprint,
        encoder,
        recipe,
        model,
        state,
        evidence,
        rows,
        scores,
        penalty,
        network,
        backbone,
        sums,
        first_row,
    };
    let planned = change.refit(new)?;
    let mut draft = ReceiptDraft::new(
        RequestKind::Refit,
        RequestOutcome::Done,
        planned.opened.received_at,
    );
    draft.gone = planned.departed();
    draft.findings = Some(planned.findings(&Method::default()));
    let carried = planned.opened.manifest.forgotten;
    let applied = planned.apply(progress)?;
    draft.come = applied.come.clone();
    applied.sign(&*signer, vec![draft])?.commit()?;
    let summary = summary(&opened)?;
    let seconds = started.elapsed().as_secs_f64();
    let dropped = None;
    Ok(FitReport {
        summary,
        tolerance,
        tolerance_missed,
        seconds,
        cut,
        precomputed,
        remarks,
        shards_by_class,
        carried,
        dropped,
    })
}

/// What can be known before a long fit: that the key is there, and that names can be compared.
/// Gives the number of the first new row.
fn check_before(opened: &OpenModel, request: &FitRequest) -> Result<u64> {
    let change = OpenedChange::begin(opened, false)?;
    change.signing_key()?;
    check_names(&change.manifest, request)?;
    Ok(change.manifest.next_row)
}

/// Refuses rows that are named by their positions, where the list of what was forgotten names some:
/// it would mean other rows.
fn check_names(manifest: &Manifest, request: &FitRequest) -> Result<()> {
    let by_position = request.id.is_none() || manifest.blueprint.id.is_none();
    if by_position && manifest.ledger.forgotten.set.count > 0 {
        return Err(Error::request(
            "rows without ids of their own are numbered anew, so that the list of what was forgotten would mean other rows",
            "name a column of ids, in the old model and in the new one, or give up the log and the list",
        ));
    }
    Ok(())
}
