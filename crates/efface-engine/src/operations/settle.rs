//! Forgotten rows that wait are scrubbed, and the places of forgotten rows are given back.

use efface_receipt::{RequestKind, RequestOutcome};
use serde::Serialize;

use super::change::{OpenedChange, waited_long_enough};
use super::open_model::OpenModel;
use super::report::ReceiptPlace;
use crate::clock;
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::file;
use crate::ledger::ReceiptDraft;

/// What a settle did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettleReport {
    /// Forgotten rows that had waited and were overwritten now.
    pub scrubbed: u64,
    /// Places of forgotten rows that were given back.
    pub husks: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file after.
    pub bytes_after: u64,
    /// The receipt.
    pub receipt: ReceiptPlace,
}

/// Whether rows that wait to be scrubbed are too many or too old.
pub(crate) fn is_due(manifest: &Manifest) -> bool {
    let Some(waiting) = &manifest.waiting else {
        return false;
    };
    let policy = &manifest.policy;
    waiting.rows.len() as u64 >= policy.settle_after
        || waited_long_enough(
            waiting.since,
            clock::milliseconds(),
            policy.settle_within_seconds,
        )
}

/// Scrubs the rows that wait for it, if they are as many or as old as the policy allows; None when
/// they are not.
pub(crate) fn settle_if_due(model: &OpenModel) -> Result<Option<ReceiptPlace>> {
    if !is_due(&model.store.read(Manifest::load)?) {
        return Ok(None);
    }
    let change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let mut change = change.scrub()?;
    let Some(draft) = change.draft.take() else {
        return Ok(None);
    };
    let unchanged = change.opened.unchanged();
    change
        .sign(&*signer, &unchanged, vec![draft])?
        .commit_last()
        .map(Some)
}

/// Scrubs the rows that wait for it, and gives back the places of forgotten rows.
pub(crate) fn settle(model: &OpenModel) -> Result<SettleReport> {
    let path = model.store.path();
    let size = || {
        std::fs::metadata(path)
            .map(|found| found.len())
            .map_err(|cause| Error::io(path, cause))
    };
    let bytes_before = size()?;
    let change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let scrubbed = change
        .manifest
        .waiting
        .as_ref()
        .map_or(0, |waiting| waiting.rows.len() as u64);
    let husks = change.manifest.husks + scrubbed;
    let mut change = change.scrub()?;
    if std::mem::take(&mut change.opened.manifest.husks) > 0 {
        model.store.with(|connection| file::compact(connection))?;
    }
    let received_at = change.opened.received_at;
    let draft = change.draft.take();
    let mut draft = draft.unwrap_or_else(|| {
        ReceiptDraft::new(RequestKind::Settle, RequestOutcome::Done, received_at)
    });
    draft.reason = Some(format!("{husks} places of forgotten rows were given back"));
    let unchanged = change.opened.unchanged();
    let receipt = change
        .sign(&*signer, &unchanged, vec![draft])?
        .commit_last()?;
    model.store.with(|connection| file::give_back(connection))?;
    // Writing the file anew put all of it into the journal, rows that may be forgotten next too.
    model.store.begin(true)?.commit()?.clear_journal()?;
    Ok(SettleReport {
        scrubbed,
        husks,
        bytes_before,
        bytes_after: size()?,
        receipt,
    })
}
