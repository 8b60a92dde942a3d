//! Forgetting in two steps, where the policy asks for it. The first makes the new parameters durable and takes the rows
//! out of everything that can be asked; the rows' bytes stay in their places, and with the stored sums of before they are
//! the low-rank update that waits. The second, a settle, folds them out of the sums and overwrites them.

use std::sync::Arc;

use efface::{Amend, Evidence};
use efface_receipt::{Kind, Outcome, Settled, Time};

use super::Change;
use crate::clock;
use crate::codec::manifest::{Details, ScrubQueue};
use crate::codec::model::{self, Live};
use crate::error::Result;
use crate::file;
use crate::ledger::ReceiptDraft;

/// What the first step stores of a model.
pub(crate) struct DeferredModel {
    pub(crate) theta: Vec<f64>,
    pub(crate) details: Details,
}

/// The receipt of a settle that scrubs what these receipts left behind.
pub(crate) fn entry(received_at: Time, now: Time, run: Settled) -> ReceiptDraft {
    let mut entry = ReceiptDraft::new(Kind::Settle, Outcome::Done, received_at);
    (entry.scrubbed_at, entry.settles) = (Some(now), Some(run));
    entry
}

impl Change<'_> {
    /// Whether the rows that leave may wait to be scrubbed; notes them if so. `receipts` will tell of them.
    pub(super) fn defer(
        &mut self,
        model: &Live,
        evidence: &mut Evidence,
        receipts: u64,
    ) -> Option<DeferredModel> {
        let newest = self.newest();
        let policy = &self.manifest.policy;
        let (mut rows, since) = match &self.manifest.waiting {
            Some(waiting) => (waiting.rows.clone(), waiting.since),
            None => (Vec::new(), newest),
        };
        rows.extend(self.gone.iter().map(|leaver| leaver.row.0));
        rows.sort_unstable();
        if rows.len() as u64 >= policy.settle_after
            || old(since, clock::milliseconds(), policy.settle_within_seconds)
        {
            return None;
        }
        let (theta, optimum) = model::quick(model, self.gone.len(), evidence)?;
        let mut details = self.manifest.model.details.clone();
        let Details::Sums { at_optimum, .. } = &mut details else { return None };
        *at_optimum = optimum;
        let size = self.manifest.ledger.as_ref()?.size;
        let first = self.manifest.waiting.as_ref().map_or(size, |waiting| waiting.first);
        self.manifest.waiting = Some(ScrubQueue { rows, first, last: size + receipts.max(1) - 1, since });
        // As from the file: what comes first is all that was there before.
        evidence.precomputed.truncate(1);
        Some(DeferredModel { theta, details })
    }

    /// Overwrites rows that waited.
    pub(super) fn overwrite(&mut self, rows: &[u64]) -> Result<()> {
        self.manifest.husks += rows.len() as u64;
        self.store.with(|connection| rows.iter().try_for_each(|row| file::rows::erase(connection, *row)))
    }

    /// Folds the rows that wait out of the stored sums and overwrites them; gives the receipt to be. None when none wait.
    /// The parameters stay as they are, to the bit.
    pub(crate) fn scrub(&mut self) -> Result<Option<ReceiptDraft>> {
        if self.manifest.waiting.is_none() {
            return Ok(None);
        }
        let mut model = Arc::unwrap_or_clone(self.model()?);
        model.settle()?;
        let state = model::state(&model)?;
        let mut evidence = super::forget::idle(self);
        model.update_evidence(&mut evidence);
        let Some(ScrubQueue { rows, first, last, .. }) = self.manifest.waiting.take() else {
            return Ok(None);
        };
        self.overwrite(&rows)?;
        let Self { store, manifest, encoder, .. } = self;
        let head = &mut manifest.model;
        head.details = state.details();
        (head.bound, head.relative_bound) = (finite(evidence.bound), finite(evidence.relative_bound));
        store.with(|connection| {
            if manifest.husks > manifest.rows {
                file::compact(connection)?;
                manifest.husks = 0;
            }
            manifest.parts = model::save(connection, &state, encoder.as_ref(), &manifest.parts)?;
            Ok(())
        })?;
        let now = self.manifest.ledger.as_mut().map_or(self.received_at, |ledger| ledger.now());
        self.settled = Some(model);
        Ok(Some(entry(self.received_at, now, Settled { first, last })))
    }
}

/// Whether rows that wait since then have waited long enough by the clock as it is. The log's own time does not go back
/// with the clock, and would stand still; when the clock says that rows wait since a time to come, nobody knows how long
/// they have, so that they are scrubbed.
pub(crate) fn old(since: i64, clock: i64, within_seconds: u64) -> bool {
    clock < since || clock.saturating_sub(since) as u64 / 1000 >= within_seconds
}

fn finite(bound: f64) -> Option<f64> {
    bound.is_finite().then_some(bound)
}
