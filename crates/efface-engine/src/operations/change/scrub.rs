//! Forgetting in two steps, where the policy asks for it. The first makes the new parameters
//! durable and takes the rows out of everything that can be asked; the rows' bytes stay in their
//! places, and with the stored sums of before they are the low-rank update that waits. The second,
//! a settle, folds them out of the sums and overwrites them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::file::ModelConnection;
use efface::{Amend, Evidence, Model};
use efface_receipt::{ReceiptSigner, RequestKind, RequestOutcome, SettledRun, Time};

use super::opened::OpenedChange;
use super::report::idle_evidence;
use super::signed::SignedChange;
use crate::clock;
use crate::codec::manifest::{Manifest, ScrubQueue};
use crate::codec::model;
use crate::error::Result;
use crate::file::{self, FileFault, RowDigest};
use crate::ledger::{ModelTransition, ReceiptDraft};

/// What the first step stores of a model.
pub(super) struct DeferredModel {
    pub(super) theta: Vec<f64>,
    /// The head of the stored state, which says whether the parameters are the minimum.
    pub(super) head: Vec<u8>,
}

/// The receipt of a settle that scrubs what these receipts left behind.
pub(crate) fn settle_draft(received_at: Time, now: Time, run: SettledRun) -> ReceiptDraft {
    let mut draft = ReceiptDraft::new(RequestKind::Settle, RequestOutcome::Done, received_at);
    draft.scrubbed_at = Some(now);
    draft.settles = Some(run);
    draft
}

/// A change in which the rows that had waited are folded out of the sums and overwritten.
pub(crate) struct ScrubbedChange<'a> {
    pub(crate) opened: OpenedChange<'a>,
    /// The receipt of the scrubbing; None where no row waited.
    pub(crate) draft: Option<ReceiptDraft>,
    /// The model without the waiting update; None where no row waited.
    model: Option<Model>,
}

impl<'a> ScrubbedChange<'a> {
    /// Receipts for something that leaves the parameters as they are.
    pub(crate) fn sign(
        self,
        signer: &'a dyn ReceiptSigner,
        transition: &ModelTransition,
        drafts: Vec<ReceiptDraft>,
    ) -> Result<SignedChange<'a>> {
        SignedChange::new(self.opened, signer, transition, drafts, self.model)
    }
}

impl<'a> OpenedChange<'a> {
    /// Whether the rows that leave may wait to be scrubbed; queues them if so. `receipts` will tell
    /// of them.
    pub(super) fn defer(
        &mut self,
        gone: &[(u64, RowDigest)],
        model: &Model,
        evidence: &mut Evidence,
        receipts: u64,
    ) -> Option<DeferredModel> {
        let ledger = &self.manifest.ledger;
        let policy = &self.manifest.policy;
        let queue = self.manifest.waiting.as_ref();
        let mut rows = queue.map_or_else(BTreeMap::new, |queue| queue.rows.clone());
        let since = queue.map_or(ledger.newest, |queue| queue.since);
        let first = queue.map_or(ledger.size, |queue| queue.first);
        rows.extend(gone.iter().copied());
        if rows.len() as u64 >= policy.settle_after
            || waited_long_enough(since, clock::milliseconds(), policy.settle_within_seconds)
        {
            return None;
        }
        let (theta, optimum) = model::quick(model, gone.len(), evidence)?;
        let stored = self
            .store()
            .with(|connection| model::head_with_optimum(connection, &self.manifest, optimum));
        // A head that cannot be read is one that a settle replaces.
        let head = stored.ok()?;
        let last = ledger.size + receipts.max(1) - 1;
        self.manifest.waiting = Some(ScrubQueue {
            rows,
            first,
            last,
            since,
        });
        // A model that is read from the file keeps the first precomputed step alone; what is told
        // now agrees with that.
        evidence.precomputed.truncate(1);
        Some(DeferredModel { theta, head })
    }

    /// Leaves the rows that wait where they are.
    pub(crate) fn unscrubbed(self) -> ScrubbedChange<'a> {
        ScrubbedChange {
            opened: self,
            draft: None,
            model: None,
        }
    }

    /// Folds the rows that wait out of the stored sums and overwrites them. The parameters stay as
    /// they are, to the bit.
    pub(crate) fn scrub(mut self) -> Result<ScrubbedChange<'a>> {
        let Some(queue) = self.manifest.waiting.clone() else {
            return Ok(self.unscrubbed());
        };
        let waited: Vec<u64> = queue.rows.keys().copied().collect();
        let mut model = Arc::unwrap_or_clone(self.current_model()?);
        model.settle()?;
        let state = model.to_state()?;
        let mut evidence = idle_evidence(&self.manifest);
        model.update_evidence(&mut evidence);
        model::limit(&self.manifest, &mut evidence);
        let store = self.store();
        let manifest = &mut self.manifest;
        let encoder = self.encoder.as_ref();
        manifest.waiting = None;
        manifest.model.state = model::state_head(&model, &state);
        manifest.model.bound = finite(evidence.bound);
        manifest.model.relative_bound = finite(evidence.relative_bound);
        manifest.model.head_bound = evidence.head_bound;
        store.with(|connection| {
            overwrite_rows(connection, manifest, &waited)?;
            if manifest.husks > manifest.rows {
                file::compact(connection)?;
                manifest.husks = 0;
            }
            // Sums that still hold the rows are not those of the rows that stay.
            manifest.parts = model::save(connection, &state, encoder, None, &manifest.parts)?;
            Ok(())
        })?;
        let run = SettledRun {
            first: queue.first,
            last: queue.last,
        };
        let draft = settle_draft(self.received_at, manifest.ledger.now(), run);
        Ok(ScrubbedChange {
            opened: self,
            draft: Some(draft),
            model: Some(model),
        })
    }
}

/// Overwrites the bytes of rows. They leave husks, which a later compaction gives back.
pub(super) fn overwrite_rows(
    connection: &ModelConnection,
    manifest: &mut Manifest,
    rows: &[u64],
) -> std::result::Result<(), FileFault> {
    manifest.husks += rows.len() as u64;
    rows.iter()
        .try_for_each(|row| file::rows::erase(connection, *row))
}

/// Whether rows that wait since then have waited long enough by the clock. The log's own time never
/// runs backwards and would stand still with a clock that was set back, so that the clock itself is
/// asked. When it says that the rows wait since a time to come, nobody knows how long they have
/// waited, and they are scrubbed.
pub(crate) fn waited_long_enough(since: i64, clock: i64, within_seconds: u64) -> bool {
    clock < since || clock.saturating_sub(since) as u64 / 1000 >= within_seconds
}

fn finite(bound: f64) -> Option<f64> {
    bound.is_finite().then_some(bound)
}
