//! Rows of the model that are replaced by corrected ones.

use efface::{Amend, ChangedRows, Method, Model, Outcome, RowId, RowStore, Rows};
use efface_receipt::RequestKind;

use super::change::{OpenedChange, RowChange, change_report, receipt_place};
use super::open_model::OpenModel;
use super::report::ChangeReport;
use super::returning;
use super::row_source::RowSource;
use crate::codec::feature_rows::features;
use crate::codec::model;
use crate::error::{Error, Result};
use crate::ledger::ReceiptDraft;
use crate::progress::Progress;

/// Replaces rows of the model by the rows of the same ids.
pub(crate) fn amend(
    model: &OpenModel,
    source: &RowSource,
    progress: &dyn Progress,
) -> Result<ChangeReport> {
    let mut change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    if change.manifest.blueprint.id.is_none() {
        return Err(Error::NoIds);
    }
    let texts = change.text_encoder()?;
    change.admit_names(source, progress)?;
    let batch = change.gather(source, texts.as_ref(), progress)?;
    let gone = change.find(&batch.ids)?;
    // The ids are here; the person whom a row now names may be one who asked to be forgotten.
    returning::check_names(&change, &batch, false)?;
    // An amended row gets a new number in the file. A model that goes by numbers must hear of it.
    let renumbered = model::knows_numbers(&change.manifest);
    let mut numbers = gone.clone();
    if renumbered {
        numbers = (change.manifest.next_row..)
            .take(batch.len())
            .map(RowId)
            .collect();
    }
    let lines = batch.lines.clone();
    let new = change.encoded(batch, numbers, texts.as_ref(), progress)?;
    returning::check_content(&change, &new, &lines)?;
    let amended = amended(&mut change, &gone, &new.rows, progress);
    let outcome = amended.map_err(|error| change.name_rows(error))?;
    let mut planned = change.plan(RowChange {
        outcome,
        gone,
        forgets: false,
        subjects: Vec::new(),
        new: Some(new),
        renewal: None,
        deferrable: None,
    })?;
    let mut draft = ReceiptDraft::new(
        RequestKind::Amend,
        efface_receipt::RequestOutcome::Done,
        planned.opened.received_at,
    );
    draft.gone = planned.departed();
    draft.findings = Some(planned.findings(&Method::default()));
    let started = planned.opened.started;
    let dropped = planned.dropped;
    // What a row said before can be read off two versions like a row that left.
    let newest = planned.opened.manifest.ledger.newest;
    planned.opened.manifest.policy.count(1, newest);
    draft.release = Some(planned.opened.manifest.policy.release());
    let applied = planned.apply(progress)?;
    draft.come = applied.come.clone();
    let evidence = applied.evidence.clone();
    let withdrawn = applied.withdrawn;
    let signed = applied.sign(&*signer, vec![draft])?.commit()?;
    let mut report = change_report(evidence, started.elapsed().as_secs_f64(), false, dropped);
    report.withdrawn = withdrawn;
    report.receipt = signed.first().map(receipt_place);
    Ok(report)
}

/// The model with rows in the place of others, fitted anew where they give it other features.
fn amended(
    change: &mut OpenedChange<'_>,
    gone: &[RowId],
    new: &Rows,
    progress: &dyn Progress,
) -> Result<Outcome<Model>> {
    if change.follows_rows(&Method::default())
        && let Some(mut outcome) = change.refitted(&Method::default(), gone, Some(new), progress)?
    {
        outcome.evidence.method = "amend".into();
        return Ok(outcome);
    }
    let new = features(new, change.encoder.as_ref(), &change.manifest.blueprint)?;
    let rows = change.feature_rows();
    let model = change.current_model()?;
    if model::knows_numbers(&change.manifest) {
        replaced(&model, &rows, gone, &new)
    } else {
        Ok(model.amend(&rows, &new)?)
    }
}

/// The model with rows taken out and others put in under numbers of their own.
fn replaced(
    model: &Model,
    rows: &dyn RowStore,
    gone: &[RowId],
    new: &Rows,
) -> Result<Outcome<Model>> {
    let retained = ChangedRows::new(rows, gone, None);
    let held = if rows.is_beyond_memory() {
        None
    } else {
        Some(retained.all()?)
    };
    if retained.is_empty() {
        // Without these rows the model would have none, and no model can be made of none: it is
        // amended in one step.
        return Ok(model.amend(rows, new)?);
    }
    let without = model.forget(&Method::default(), rows, gone)?;
    let retained: &dyn RowStore = held.as_deref().map_or(&retained, |held| held);
    let mut outcome = without.model.learn(retained, new)?;
    outcome.evidence.method = "amend".into();
    outcome.evidence.forgotten = gone.len();
    outcome.evidence.rows_read += without.evidence.rows_read;
    Ok(outcome)
}
