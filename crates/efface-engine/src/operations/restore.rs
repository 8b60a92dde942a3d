//! An older copy takes the place of a model that was lost. What was forgotten since the copy was
//! made is forgotten from it, and its log goes on where the newer one ended, before anybody can ask
//! it for a score.
//!
//! A receipt does not say which rows left: it holds commitments. But the newer log signs the list
//! of the commitments of all rows that are in the model, and the copy still has the rows with the
//! nonces of their commitments. A row of the copy whose commitment is not on the newer list has
//! left since, and goes. A commitment on the newer list whose row is not in the copy is of a row
//! that was learned or corrected since: it is lost, and the receipt of the restore says how many
//! are.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use crate::file::ModelConnection;
use efface::{Evidence, Method, RowId};
use efface_receipt::{
    CopyKind, CopyState, Hash, KeyRing, KnownCopy, LogCheckpoint, PublicKey, RequestKind,
    RequestOutcome, SettledRun,
};
use serde::Serialize;

use super::backup::{self, BackupContent};
use super::change::{OpenedChange, RowChange, settle_draft};
use super::model_draft::ModelDraft;
use super::open_model::OpenModel;
use super::report::ReceiptPlace;
use super::request::{ForgetOptions, ForgetRequest, RowSelection};
use super::{forget, verify};
use crate::clock;
use crate::codec::manifest::Manifest;
use crate::codec::model as stored_model;
use crate::error::{Error, Result};
use crate::file::outputs::{self, PlannedOutput};
use crate::file::{self, FileFault, ModelStore, PATIENCE, damaged, paths};
use crate::ledger::requests::{self, AnsweredRequest};
use crate::ledger::signer::KeyAccess;
use crate::ledger::suppression::{self, SuppressedEntry};
use crate::ledger::{
    self, MethodFindings, ModelTransition, ReceiptDraft, ReceiptLog, SealedTable, SealedTree,
    TrustedTree, checkpoint, copies, newest, row_leaf,
};
use crate::progress::Progress;

/// What is to be restored.
pub struct RestoreRequest<'a> {
    /// The older copy, which is only read.
    pub backup: &'a Path,
    /// A newer file of the same log: the model that is damaged, or a copy of its log. It is only
    /// read.
    pub log: &'a Path,
    /// Where the restored model is written. Nothing may be there; its key file lies beside it.
    pub path: &'a Path,
    /// Who may read it.
    pub mode: u32,
    /// How to come to its keys.
    pub access: &'a KeyAccess,
    /// Told how far it is.
    pub progress: &'a dyn Progress,
}

/// What came of a restore.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RestoreReport {
    /// Rows in the restored model.
    pub rows: u64,
    /// Rows of the copy that had left the model since, and were forgotten from it.
    pub forgotten: u64,
    /// Rows that were learned or corrected since, and are in no file any more.
    pub lost: u64,
    /// Receipts by which the newer log was ahead of the copy.
    pub receipts_since: u64,
    /// The method that took the rows out.
    pub method: String,
    /// How far the parameters are from retraining on the rows, at most.
    pub bound: f64,
    /// The same as a fraction of their norm.
    pub relative_bound: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The receipt.
    pub receipt: ReceiptPlace,
    /// What happened, in numbers.
    pub evidence: Evidence,
}

/// Restores a model from an older copy and a newer log. Neither file is changed, and a failure
/// leaves nothing behind.
pub fn restore(request: &RestoreRequest<'_>) -> Result<RestoreReport> {
    let started = Instant::now();
    let inputs = [request.backup, request.log];
    outputs::check_outputs(&[PlannedOutput::file(request.path)], &inputs, false)?;
    let path = &paths::resolve(request.path).map_err(|cause| Error::io(request.path, cause))?;
    let draft = ModelDraft::beside(path)?;
    backup::copy(
        &OpenModel::open(request.backup, false, PATIENCE)?,
        BackupContent::Model,
        &draft,
    )?;
    let mut model = OpenModel::of(ModelStore::open(draft.path(), true, PATIENCE)?)?;
    model.set_access(KeyAccess {
        beside: Some(path.clone()),
        ..request.access.clone()
    });
    let newer = NewerLog::read(request, path, &model)?;
    let restored = newer.apply(&model, request.progress, started);
    // The change wrote a head beside the draft, which belongs beside the model.
    let _ = std::fs::remove_file(newest::head_path(draft.path()));
    let report = restored?;
    let keys = KeyRing::from(PublicKey::parse(&newer.manifest.ledger.first_key)?);
    let checks = verify::verify(&model, Some(&keys), Some(false), None)?;
    if let Some(failed) = checks.iter().find(|check| !check.passed) {
        let what = format!(
            "after the restore its {} does not hold: {}",
            failed.check, failed.found
        );
        return Err(Error::Damaged {
            path: request.backup.to_owned(),
            what,
        });
    }
    let note = model.store.read(|connection| checkpoint(connection))?;
    drop(model);
    outputs::check_outputs(&[PlannedOutput::file(path)], &inputs, false)?;
    draft.publish(path, request.mode)?;
    newest::keep(path, &note);
    Ok(report)
}

/// A newer file of the log, all of which was checked.
struct NewerLog {
    store: ModelStore,
    manifest: Manifest,
    /// The commitments of the rows that were in the model.
    members: HashSet<Hash>,
    forgotten: Vec<SuppressedEntry>,
    answers: Vec<(Hash, AnsweredRequest)>,
    /// Receipts whose rows wait to be scrubbed.
    waiting: Option<SettledRun>,
}

impl NewerLog {
    /// Reads the log and the lists that it signs. It must be signed by the keys of the copy, and
    /// continue the copy's log.
    fn read(request: &RestoreRequest<'_>, path: &Path, copy: &OpenModel) -> Result<Self> {
        let store = ModelStore::open(request.log, false, PATIENCE)?;
        let old = copy.store.read(Manifest::load)?.ledger;
        let head = copy.store.read(|connection| checkpoint(connection))?;
        let transaction = store.begin(false)?;
        let read = |connection: &ModelConnection| -> std::result::Result<_, FileFault> {
            let manifest = Manifest::load(connection)?;
            let ledger = &manifest.ledger;
            if let Some(what) =
                newest::break_since(connection, ledger, &LogCheckpoint::parse_unverified(&head)?)?
            {
                return damaged(format!("it does not continue the copy: {what}"));
            }
            // A head that was written down beside the model may be newer than this log: then more
            // was forgotten.
            if let Some(what) = newest::rollback(connection, ledger, path)? {
                return damaged(what);
            }
            let keys = KeyRing::from(PublicKey::parse(&old.first_key)?);
            let log = verify::log(connection, ledger, Some(&keys))?;
            let mut members = HashSet::new();
            SealedTree::new(connection, SealedTable::Members).check(&ledger.members, |entry| {
                members.insert(entry.commitment);
                Ok(())
            })?;
            if log.last.training_set.after != ledger.members.set {
                return damaged("its list of commitments is not that of its last receipt");
            }
            copies::check(connection, ledger)?;
            let forgotten = suppression::checked_list(connection, ledger)?;
            let answers = requests::checked_list(connection, ledger)?;
            Ok((manifest, members, forgotten, answers, log.waiting))
        };
        let (manifest, members, forgotten, answers, waiting) = store.with(read)?;
        drop(transaction);
        Ok(Self {
            store,
            manifest,
            members,
            forgotten,
            answers,
            waiting,
        })
    }

    /// Forgets what left since, takes the log over, and signs a receipt for it.
    fn apply(
        &self,
        model: &OpenModel,
        progress: &dyn Progress,
        started: Instant,
    ) -> Result<RestoreReport> {
        let signer = model
            .access
            .signer(model.store.path(), &self.manifest.ledger.key)?;
        // Rows that waited in the copy are folded out first: the newer log knows what became of
        // them.
        let mut change = OpenedChange::begin(model, true)?.scrub()?.opened;
        let receipts_since = self.manifest.ledger.size - change.manifest.ledger.size;
        let (gone, lost) = self.compare(&change)?;
        let forgotten = gone.len() as u64;
        let mut evidence = change.current_model()?.evidence();
        stored_model::limit(&change.manifest, &mut evidence);
        evidence.set_left_behind(change.left_behind()?);
        let mut findings =
            MethodFindings::new(&evidence, &change.manifest.model.recipe, &Method::default())
                .with_network(change.manifest.network.as_ref());
        if !gone.is_empty() {
            let all = ForgetRequest::new(RowSelection::Ids(Vec::new()));
            let worked = forget::without(
                &mut change,
                &all,
                &gone,
                &ForgetOptions {
                    progress,
                    ..ForgetOptions::default()
                },
            );
            let (outcome, renewal) = worked.map_err(|error| change.name_rows(error))?;
            let planned = change.plan(RowChange {
                outcome,
                gone,
                // The newer log has the names under which they must not come back.
                forgets: false,
                subjects: Vec::new(),
                new: None,
                renewal,
                deferrable: None,
            })?;
            findings = planned.findings(&Method::default());
            evidence = planned.evidence.clone();
            change = planned.apply(progress)?.into_opened();
        }
        self.take_over(&mut change)?;
        let received_at = change.manifest.ledger.now();
        change.manifest.changed_at = clock::stamp(received_at.unix_milliseconds());
        let mut draft = ReceiptDraft::new(RequestKind::Restore, RequestOutcome::Done, received_at);
        draft.findings = Some(findings);
        draft.forgotten_at = (!lost.is_empty()).then_some(received_at);
        draft.scrubbed_at = draft.forgotten_at;
        draft.gone = lost;
        let lost = draft.gone.len() as u64;
        let rows = change.manifest.rows;
        let mut drafts = vec![draft];
        // The rows that the newer file had still to overwrite are in no file of this log any more.
        drafts.extend(
            self.waiting
                .map(|run| settle_draft(received_at, received_at, run)),
        );
        let transition = self.transition(&mut change);
        let signed = change.sign(&*signer, &transition, drafts)?;
        let receipt = signed.receipts().first().map(super::change::receipt_place);
        signed.commit()?;
        let no_receipt = || Error::Damaged {
            path: model.store.path().to_owned(),
            what: "its log took no receipt".into(),
        };
        Ok(RestoreReport {
            rows,
            forgotten,
            lost,
            receipts_since,
            method: evidence.method.clone(),
            bound: evidence.bound,
            relative_bound: evidence.relative_bound,
            seconds: started.elapsed().as_secs_f64(),
            receipt: receipt.ok_or_else(no_receipt)?,
            evidence,
        })
    }

    /// The rows of the copy that have left since, and the commitments of rows that only the newer
    /// file had.
    fn compare(&self, change: &OpenedChange<'_>) -> Result<(Vec<RowId>, Vec<Hash>)> {
        let mut gone = Vec::new();
        let mut missing = self.members.clone();
        let outline = change.manifest.outline();
        change.store().with(|connection| {
            file::rows::each(connection, &outline, |number, found| {
                if !missing.remove(&row_leaf(&found.row.nonce, &found.row.id, &found.content)) {
                    gone.push(RowId(number));
                }
                Ok(())
            })
        })?;
        let mut lost: Vec<Hash> = missing.into_iter().collect();
        lost.sort();
        Ok((gone, lost))
    }

    /// Puts the newer log, its lists and its policy in the place of the copy's.
    fn take_over(&self, change: &mut OpenedChange<'_>) -> Result<()> {
        let store = change.store();
        let manifest = &mut change.manifest;
        let newer = &self.manifest.ledger;
        let transaction = self.store.begin(false)?;
        self.store
            .raw(|from| {
                store.raw(|connection| {
                    let mut ledger = manifest.ledger.clone();
                    ReceiptLog(connection).follow(&mut ledger, &ReceiptLog(from), newer)?;
                    let known: HashSet<Hash> = suppression::checked_list(connection, &ledger)?
                        .iter()
                        .map(|entry| entry.name.commitment)
                        .collect();
                    let fresh: Vec<SuppressedEntry> = self
                        .forgotten
                        .iter()
                        .filter(|entry| !known.contains(&entry.name.commitment))
                        .cloned()
                        .collect();
                    suppression::carry(connection, &mut ledger, &fresh)?;
                    let answered: BTreeMap<Hash, AnsweredRequest> =
                        requests::checked_list(connection, &ledger)?
                            .into_iter()
                            .collect();
                    let fresh: Vec<&(Hash, AnsweredRequest)> = self
                        .answers
                        .iter()
                        .filter(|(name, _)| !answered.contains_key(name))
                        .collect();
                    requests::record(connection, &mut ledger, fresh, TrustedTree::default())?;
                    if ledger.forgotten.set != newer.forgotten.set
                        || ledger.requests.set != newer.requests.set
                    {
                        return damaged("its lists do not continue those of the copy");
                    }
                    copies::replace(connection, from)?;
                    let members = ledger.members;
                    let forgotten = ledger.forgotten;
                    let requests = ledger.requests;
                    manifest.ledger = ledger::LedgerHead {
                        members,
                        forgotten,
                        requests,
                        ..newer.clone()
                    };
                    copies::check(connection, &manifest.ledger)
                })
            })
            .map_err(|fault| fault.at(self.store.path()))?;
        drop(transaction);
        manifest.policy = self.manifest.policy.clone();
        // Nobody measured how far these parameters are from those that were exported last.
        manifest.policy.travel(f64::MAX);
        manifest.forgotten = self.manifest.forgotten;
        manifest.generation = self.manifest.generation + 1;
        manifest.next_row = manifest.next_row.max(self.manifest.next_row);
        manifest.next_position = manifest.next_position.max(self.manifest.next_position);
        Ok(())
    }

    /// From the state in which the newer log left the model to the one that the restored file is
    /// in.
    fn transition(&self, change: &mut OpenedChange<'_>) -> ModelTransition {
        let before = self.manifest.state();
        let after = change.manifest.state();
        let ledger = &mut change.manifest.ledger;
        let now = ledger::at(ledger.newest);
        let copy = |number, parameters, made_at, withdrawn_at: Option<_>| KnownCopy {
            number,
            kind: CopyKind::Version,
            state: if withdrawn_at.is_some() {
                CopyState::Withdrawn
            } else {
                CopyState::Live
            },
            parameters,
            made_at,
            withdrawn_at,
        };
        let made_at = ledger::at(ledger.version_at);
        ledger.version_at = ledger.newest;
        let copies = vec![
            copy(self.manifest.generation, before.1, made_at, Some(now)),
            copy(self.manifest.generation + 1, after.1, now, None),
        ];
        ModelTransition {
            before: Some(before),
            after,
            copies,
        }
    }
}
