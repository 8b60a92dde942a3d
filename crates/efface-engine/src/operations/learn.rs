//! Rows that join the model.

use efface::{Amend, Method, Model, Outcome, RowId, Rows};
use efface_receipt::{RequestKind, RequestOutcome};

use super::change::{OpenedChange, RowChange, change_report, receipt_place};
use super::ingest::RowBatch;
use super::open_model::OpenModel;
use super::report::ChangeReport;
use super::returning;
use super::row_source::RowSource;
use crate::codec::feature_rows::features;
use crate::error::{Error, Result};
use crate::ledger::ReceiptDraft;
use crate::progress::Progress;

/// Adds rows to the model.
pub(crate) fn learn(
    model: &OpenModel,
    source: &RowSource,
    progress: &dyn Progress,
) -> Result<ChangeReport> {
    let mut change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let texts = change.text_encoder()?;
    change.admit_names(source, progress)?;
    let mut batch = change.gather(source, texts.as_ref(), progress)?;
    batch.number(change.manifest.next_position);
    check_new(&change, &batch)?;
    let numbers = (change.manifest.next_row..)
        .take(batch.len())
        .map(RowId)
        .collect();
    let lines = batch.lines.clone();
    let span = batch.span;
    let new = change.encoded(batch, numbers, texts.as_ref(), progress)?;
    returning::check_content(&change, &new, &lines)?;
    let learned = learned(&mut change, &new.rows, progress);
    let outcome = learned.map_err(|error| change.name_rows(error))?;
    change.manifest.next_position += span;
    let planned = change.plan(RowChange {
        outcome,
        gone: Vec::new(),
        forgets: false,
        subjects: Vec::new(),
        new: Some(new),
        renewal: None,
        deferrable: None,
    })?;
    let mut draft = ReceiptDraft::new(
        RequestKind::Learn,
        RequestOutcome::Done,
        planned.opened.received_at,
    );
    draft.findings = Some(planned.findings(&Method::default()));
    let started = planned.opened.started;
    let dropped = planned.dropped;
    let applied = planned.apply(progress)?;
    draft.come = applied.come.clone();
    let evidence = applied.evidence.clone();
    let signed = applied.sign(&*signer, vec![draft])?.commit()?;
    let mut report = change_report(evidence, started.elapsed().as_secs_f64(), false, dropped);
    report.receipt = signed.first().map(receipt_place);
    Ok(report)
}

/// The model with new rows in it, fitted anew where they give it other features.
fn learned(
    change: &mut OpenedChange<'_>,
    new: &Rows,
    progress: &dyn Progress,
) -> Result<Outcome<Model>> {
    if change.follows_rows(&Method::default())
        && let Some(outcome) = change.refitted(&Method::default(), &[], Some(new), progress)?
    {
        return Ok(outcome);
    }
    let new = features(new, change.encoder.as_ref(), &change.manifest.blueprint)?;
    Ok(change
        .current_model()?
        .learn(&change.feature_rows(), &new)?)
}

/// Rows to learn must be new, and must not be rows that had to go.
fn check_new(change: &OpenedChange<'_>, batch: &RowBatch) -> Result<()> {
    let found = change.directory(|directory| directory.find(&batch.ids))?;
    for ((id, row), &line) in batch.ids.iter().zip(found).zip(&batch.lines) {
        if row.is_some() {
            return Err(Error::AlreadyThere {
                id: id.clone(),
                line,
            });
        }
    }
    returning::check_names(change, batch, true)
}
