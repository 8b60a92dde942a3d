//! Rows that join the model.

use efface::features::Cell;
use efface::{Amend, Method, Model, Outcome, RowId, Rows};
use efface_io::{SparseRecord, TableRecord};
use efface_receipt::{CommitmentLabel, Hash, RequestKind, RequestOutcome};
use sha2::{Digest, Sha256};

use super::change::{OpenedChange, RowChange, change_report, receipt_place};
use super::forget::{KeptAnswer, RequestName, check_name, replay};
use super::ingest::RowBatch;
use super::open_model::OpenModel;
use super::report::ChangeReport;
use super::returning;
use super::row_source::RowSource;
use crate::codec::feature_rows::features;
use crate::error::{Error, Result};
use crate::ledger::{ReceiptDraft, TrustedTree, requests};
use crate::progress::Progress;

/// Adds rows to the model. A request with a name has one effect, however often it comes.
pub(crate) fn learn(
    model: &OpenModel,
    source: &RowSource,
    name: Option<&str>,
    progress: &dyn Progress,
) -> Result<ChangeReport> {
    let mut change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let name = name
        .map(|name| request_name(&change, name, source))
        .transpose()?;
    let mut answered = TrustedTree::default();
    if let Some((RequestName { commitment, body }, text)) = &name {
        let known = change.store().with(|connection| {
            let ledger = &change.manifest.ledger;
            requests::find(connection, ledger, &[*commitment], &mut answered)
        })?;
        match known.into_iter().next().flatten() {
            Some(known) if known.body == *body => return replay(&change, &known),
            Some(_) => return Err(Error::RequestReused { id: text.clone() }),
            None => {}
        }
    }
    let texts = change.text_encoder()?;
    change.admit_names(source, progress)?;
    let mut batch = change.gather(source, texts.as_ref(), progress)?;
    batch.number(change.manifest.next_position);
    check_new(&change, &batch)?;
    let first = change.manifest.next_row;
    let numbers = (first..).take(batch.len()).map(RowId).collect();
    let lines = batch.lines.clone();
    let span = batch.span;
    let new = change.encoded(batch, numbers, texts.as_ref(), progress)?;
    returning::check_content(&change, &new, &lines)?;
    let remarks = returning::repeated_rows(&change, &new)?;
    change
        .manifest
        .note_batch(first, new.names.ids.len() as u64);
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
    draft.request = name.as_ref().map(|(name, _)| name.commitment);
    draft.findings = Some(planned.findings(&Method::default()));
    let started = planned.opened.started;
    let dropped = planned.dropped;
    let applied = planned.apply(progress)?;
    draft.come = applied.come.clone();
    let evidence = applied.evidence.clone();
    let mut signed = applied.sign(&*signer, vec![draft])?;
    if let (Some((name, _)), Some(receipt)) = (&name, signed.receipts().first()) {
        let answer = KeptAnswer::learned(dropped, evidence.clone()).under(name.body, receipt)?;
        signed.record_answers(&[(name.commitment, answer)], answered)?;
    }
    let receipts = signed.commit()?;
    let mut report = change_report(evidence, started.elapsed().as_secs_f64(), false, dropped);
    report.receipt = receipts.first().map(receipt_place);
    report.remarks = remarks;
    Ok(report)
}

/// The name of a request as the file keeps it, and as it was given.
fn request_name(
    change: &OpenedChange<'_>,
    name: &str,
    source: &RowSource,
) -> Result<(RequestName, String)> {
    let text = check_name(name)?;
    let asked = content_hash(source).map_err(|error| source.located(error))?;
    let names = change.names()?;
    let name = RequestName {
        commitment: names.commit(CommitmentLabel::Request, text.as_bytes()),
        body: names.commit(CommitmentLabel::Request, asked.as_bytes()),
    };
    Ok((name, text.to_owned()))
}

/// Returns a hash of rows as they stand in their source. It depends on no model, so that a request
/// is known again after other changes.
fn content_hash(source: &RowSource) -> Result<Hash> {
    let mut hasher = Sha256::new();
    hasher.update(b"efface learn 1\0");
    if source.is_sparse() {
        let mut rows = source.sparse()?;
        let mut record = SparseRecord::default();
        while rows.read(&mut record)? {
            hasher.update(record.target.to_le_bytes());
            hasher.update((record.entries.len() as u64).to_le_bytes());
            for (index, value) in &record.entries {
                hasher.update(index.to_le_bytes());
                hasher.update(value.to_le_bytes());
            }
        }
        return Ok(Hash(hasher.finalize().into()));
    }
    let text = |hasher: &mut Sha256, text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    let mut rows = source.table()?;
    hasher.update((rows.columns().len() as u64).to_le_bytes());
    rows.columns()
        .iter()
        .for_each(|column| text(&mut hasher, column));
    let mut record = TableRecord::default();
    while rows.read(&mut record)? {
        for cell in &record.cells {
            match cell {
                Cell::Missing => hasher.update([0]),
                Cell::Number(number) => {
                    hasher.update([1]);
                    hasher.update(number.to_le_bytes());
                }
                Cell::Text(words) => {
                    hasher.update([2]);
                    text(&mut hasher, words);
                }
            }
        }
    }
    Ok(Hash(hasher.finalize().into()))
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
