//! The third phase of a change: rows, arrays and training set are in the file, and no receipt says
//! so yet.

use crate::file::ModelConnection;
use efface::{Evidence, Model};
use efface_receipt::{CopyKind, CopyState, Hash, KnownCopy, ReceiptSigner, SettledRun};

use super::opened::{ArrivingRows, OpenedChange};
use super::planned::{PlannedChange, StoredForm};
use super::scrub::{DeferredModel, overwrite_rows, settle_draft};
use super::signed::SignedChange;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::error::Result;
use crate::file::{self, FileFault, OutgoingRow, RowDirectory};
use crate::ledger::{self, ModelState, ModelTransition, ReceiptDraft, copies, suppression};
use crate::operations::parameters;
use crate::progress::Progress;

/// A change that is written and not yet signed.
pub(crate) struct AppliedChange<'a> {
    opened: OpenedChange<'a>,
    model: Model,
    before: ModelState,
    /// Whether rows left, so that what was exported before still holds them.
    rows_left: bool,
    /// Receipts whose rows had waited and are overwritten now.
    settles: Option<SettledRun>,
    pub(crate) evidence: Evidence,
    /// The leaves in the training set of the rows that came.
    pub(crate) come: Vec<Hash>,
    /// Exports that this change withdrew.
    pub(crate) withdrawn: usize,
    /// Whether the rows that left are overwritten.
    pub(crate) scrubbed: bool,
}

impl<'a> AppliedChange<'a> {
    fn new(planned: PlannedChange<'a>, progress: &dyn Progress) -> Result<Self> {
        let PlannedChange {
            mut opened,
            evidence,
            model,
            form,
            gone,
            suppressed,
            new,
            renewal,
            ..
        } = planned;
        let PlannedChange {
            before,
            published,
            scrubbing,
            ..
        } = planned;
        let store = opened.store();
        let manifest = &mut opened.manifest;
        let encoder = opened.encoder.as_ref();
        let sums = opened.sums.as_ref();
        let scrubbed = matches!(form, StoredForm::Settled(_));
        let waited: Vec<u64> = scrubbing
            .iter()
            .flat_map(|queue| queue.rows.keys().copied())
            .collect();
        let mut come = Vec::new();
        let mut withdrawn = 0;
        store.with(|connection| {
            overwrite_rows(connection, manifest, &waited)?;
            let mut directory = manifest.directory(connection);
            // In the order of the file: a page of it is read and written once, however many rows of
            // it leave.
            let mut numbers: Vec<u64> = gone.iter().map(|leaving| leaving.row.0).collect();
            numbers.sort_unstable();
            progress.start("erasing rows", Some(numbers.len() as u64));
            for (done, number) in numbers.iter().enumerate() {
                directory.erase(*number)?;
                progress.at(done as u64);
            }
            let at = manifest.changed_at.clone();
            suppression::remember(connection, &mut manifest.ledger, &suppressed, &at)?;
            if scrubbed {
                overwrite_rows(connection, manifest, &numbers)?;
            }
            if let Some(new) = &new {
                come = put_in(connection, manifest, &mut directory, new)?;
            }
            if let Some(renewal) = renewal {
                renewal.put_down(connection, manifest, &mut directory)?;
            }
            manifest.enter(directory.finish()?);
            progress.start("writing the model and the training set", None);
            match &form {
                StoredForm::Settled(state) => {
                    if manifest.husks > manifest.rows {
                        file::compact(connection)?;
                        manifest.husks = 0;
                    }
                    manifest.parts =
                        model::save(connection, state, encoder, sums, &manifest.parts)?;
                }
                StoredForm::Deferred(deferred) => {
                    let DeferredModel { theta, head } = deferred;
                    model::replace_parameters(connection, &mut manifest.parts, theta, head)?;
                }
            }
            let leaves: Vec<Hash> = gone.iter().map(|leaving| leaving.commitment).collect();
            manifest.ledger.change_members(connection, &leaves, &come)?;
            // What was exported before still holds the rows as they were.
            if !gone.is_empty() {
                let now = manifest.ledger.newest;
                withdrawn = copies::withdraw(connection, &mut manifest.ledger, now)?;
            }
            Ok(())
        })?;
        if let Some(old) = published {
            let new = parameters::numbers(store, manifest)?;
            let distance = old
                .iter()
                .zip(&new)
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f64>()
                .sqrt();
            manifest.policy.travel(if old.len() == new.len() {
                distance
            } else {
                f64::MAX
            });
        }
        progress.finish();
        let settles = scrubbing.map(|queue| SettledRun {
            first: queue.first,
            last: queue.last,
        });
        let rows_left = !gone.is_empty();
        Ok(Self {
            opened,
            model,
            before,
            rows_left,
            settles,
            evidence,
            come,
            withdrawn,
            scrubbed,
        })
    }

    /// What was written, where a receipt of another kind is to tell of it.
    pub(crate) fn into_opened(self) -> OpenedChange<'a> {
        self.opened
    }

    /// Signs receipts for what was done. A receipt for rows that had waited to be scrubbed follows
    /// them.
    pub(crate) fn sign(
        mut self,
        signer: &'a dyn ReceiptSigner,
        mut drafts: Vec<ReceiptDraft>,
    ) -> Result<SignedChange<'a>> {
        let manifest = &mut self.opened.manifest;
        let after = manifest.parameters();
        let now = manifest.ledger.now();
        for draft in &mut drafts {
            draft.forgotten_at = (!draft.gone.is_empty()).then_some(now);
            draft.scrubbed_at = draft.forgotten_at.filter(|_| self.scrubbed);
        }
        drafts.extend(
            self.settles
                .map(|run| settle_draft(self.opened.received_at, now, run)),
        );
        let made_at = ledger::at(manifest.ledger.version_at);
        manifest.ledger.version_at = manifest.ledger.newest;
        let withdrawn = KnownCopy {
            number: manifest.generation - 1,
            kind: CopyKind::Version,
            state: CopyState::Withdrawn,
            parameters: self.before.1,
            made_at,
            withdrawn_at: Some(now),
        };
        let live = KnownCopy {
            number: manifest.generation,
            kind: CopyKind::Version,
            state: CopyState::Live,
            parameters: after,
            made_at: now,
            withdrawn_at: None,
        };
        let after = (manifest.ledger.members.set, after);
        let mut copies = Vec::new();
        if self.rows_left {
            let ledger = &self.opened.manifest.ledger;
            copies = self
                .opened
                .store()
                .with(|connection| copies::list(connection, ledger))?;
        }
        copies.extend([withdrawn, live]);
        let transition = ModelTransition {
            before: Some(self.before),
            after,
            copies,
        };
        SignedChange::new(self.opened, signer, &transition, drafts, Some(self.model))
    }
}

impl<'a> PlannedChange<'a> {
    /// Writes rows, arrays and training set.
    pub(crate) fn apply(self, progress: &dyn Progress) -> Result<AppliedChange<'a>> {
        AppliedChange::new(self, progress)
    }
}

/// Appends rows; gives their leaves in the training set.
fn put_in(
    connection: &ModelConnection,
    manifest: &mut Manifest,
    directory: &mut RowDirectory<'_>,
    new: &ArrivingRows,
) -> std::result::Result<Vec<Hash>, FileFault> {
    let shape = manifest.blueprint.shape();
    let mut leaves = Vec::with_capacity(new.names.ids.len());
    let mut buffer = Vec::new();
    for (slot, row) in new.rows.iter().enumerate() {
        let id = new.names.ids[slot].as_str();
        let subject = new.names.subject(slot);
        let row = OutgoingRow {
            id,
            subject,
            weight: row.weight,
            targets: row.targets,
            words: new.words.get(slot).map_or(&[][..], Vec::as_slice),
            features: row.features,
        };
        // An amended row gets a new number too: it may have another length, and is never moved in
        // place.
        let number = manifest.next_row;
        manifest.next_row += 1;
        let written = file::rows::insert(connection, number, shape, &row, &mut buffer)?;
        leaves.push(ledger::row_leaf(&written.nonce, id, &written.content));
        directory.insert(number, id, subject, &written.digest)?;
    }
    Ok(leaves)
}
