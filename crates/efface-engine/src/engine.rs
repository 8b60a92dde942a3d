//! The doors to a model file: one method for each thing that can be asked.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use efface_receipt::{
    AuditEntry, ConsistencyProof, KeyRing, PackDigests, ReceiptBundle, SignedReceipt, TrustedKey,
    WitnessQuorum,
};

use crate::error::{Error, Result};
use crate::file::PATIENCE;
use crate::ledger::passphrase::Passphrase;
use crate::ledger::signer::KeyAccess;
use crate::operations::audit::{self, AuditReport, AuditRequest};
use crate::operations::backup::{self, BackupContent, BackupReport};
use crate::operations::export::ExportAsked;
use crate::operations::open_model::OpenModel;
use crate::operations::policy::{self, PolicyChange, ReleasePolicy};
use crate::operations::receipts::ReceiptQuery;
use crate::operations::report::{
    ChangeReport, ExportedModel, ModelSummary, Parameters, Prediction, ReceiptPlace, RowsPreview,
    ScoredRows,
};
use crate::operations::request::{ForgetOptions, ForgetOrder, ForgetRequest};
use crate::operations::row_source::RowSource;
use crate::operations::scorer::Scorer;
use crate::operations::settle::{self, SettleReport};
use crate::operations::signing_keys::KeyRotation;
use crate::operations::verify::{self, FileCheck};
use crate::operations::{
    amend, export, forget, learn, parameters, receipts, signing_keys, summary,
};
use crate::progress::Progress;

/// A model file, open. Several engines may have the same file open; changes wait for each other,
/// five seconds at most unless [`Engine::set_patience`] says otherwise.
pub struct Engine {
    model: OpenModel,
}

impl Engine {
    /// Opens a model in order to change it. Forgotten rows that have waited to be scrubbed for as
    /// long as the policy allows are scrubbed here.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, PATIENCE)
    }

    /// Like [`Engine::open`], with another patience for processes that hold the file: now, and from
    /// here on.
    pub fn open_within(path: &Path, patience: Duration) -> Result<Self> {
        let model = OpenModel::open(path, true, patience)?;
        match settle::settle_if_due(&model) {
            // Another process holds the file, or the key is missing: the next change reports that,
            // and settles if it can.
            Ok(_) | Err(Error::Locked { .. } | Error::Key { .. }) => Ok(Self { model }),
            Err(error) => Err(error),
        }
    }

    /// Opens a model in order to look at it; the file needs no write permission.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_read_only_within(path, PATIENCE)
    }

    /// Like [`Engine::open_read_only`], with another patience for processes that hold the file:
    /// now, and from here on.
    pub fn open_read_only_within(path: &Path, patience: Duration) -> Result<Self> {
        Ok(Self {
            model: OpenModel::open(path, false, patience)?,
        })
    }

    /// How long to wait for another process that changes the file: five seconds unless said
    /// otherwise, and not at all with zero. Then the change is refused.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        self.model.store.patience(patience)
    }

    /// How many bytes of rows may be in memory at once: 4 GiB unless said otherwise. Where the rows
    /// of a model are more and a change has to read all of them, it reads them block by block for
    /// every pass, or is refused where its mathematics needs them all at once.
    pub fn set_memory(&self, bytes: u64) {
        self.model.store.set_memory(bytes);
    }

    /// Where the pretrained encoder of a network is now. Without this, it is looked for where it
    /// was at the fit.
    pub fn set_encoder(&mut self, folder: &Path) {
        self.model.set_encoder_folder(folder);
    }

    /// What the file holds.
    pub fn summary(&self) -> Result<ModelSummary> {
        summary::summary(&self.model)
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> Result<Parameters> {
        parameters::parameters(&self.model)
    }

    /// Loads the model for scoring: once for any number of rows and threads.
    pub fn scorer(&self) -> Result<Scorer> {
        Scorer::load(&self.model)
    }

    /// Calls `see` with the scores of every row, in order; returns how many rows there were and,
    /// where they have targets, how good the scores are. For more than one call, [`Engine::scorer`]
    /// loads the model once.
    pub fn predict(
        &self,
        rows: impl Into<RowSource>,
        see: &mut dyn FnMut(Prediction) -> Result<()>,
    ) -> Result<ScoredRows> {
        self.scorer()?.predict(rows, see)
    }

    /// How good the model is on rows with targets.
    pub fn evaluate(
        &self,
        rows: impl Into<RowSource>,
        progress: &dyn Progress,
    ) -> Result<ScoredRows> {
        self.scorer()?.evaluate(rows, progress)
    }

    /// Returns which rows a request to forget names now. Nothing is computed and nothing is changed;
    /// a dry run of [`forget`](Self::forget) also tells what would come of it.
    ///
    /// # Errors
    /// The request names rows that are not in the model, or the file cannot be read.
    pub fn preview_rows(&self, request: &ForgetRequest) -> Result<RowsPreview> {
        forget::preview_rows(&self.model, request)
    }

    /// Takes rows out of the model and out of the file, as a
    /// [`ForgetRequest`](crate::ForgetRequest) asks, or a slice of requests that wait together:
    /// neighbours that ask for the same method are applied as one change, in one transaction, with
    /// a receipt each. A method that makes no sense for the model is refused;
    /// [`efface::methods::table`] lists what goes together.
    ///
    /// A request with an id has one effect, however often it comes: the same request gets its first
    /// answer again, another one under the same id is refused.
    pub fn forget<Order: ForgetOrder + ?Sized>(
        &mut self,
        order: &Order,
        options: &ForgetOptions<'_>,
    ) -> Order::Answer {
        Order::answer(forget::forget(&self.model, order.requests(), options))
    }

    /// Measures how well the model forgets, against a model that is truly retrained;
    /// `docs/audit.md` defines every number. The file is only read. [`Engine::record_audit`] puts
    /// the result on record.
    pub fn audit(
        &self,
        request: &AuditRequest,
        progress: &(dyn Progress + Sync),
    ) -> Result<AuditReport> {
        audit::audit(&self.model, request, progress)
    }

    /// Adds rows: those of a file, or records in memory.
    pub fn learn(
        &mut self,
        rows: impl Into<RowSource>,
        progress: &dyn Progress,
    ) -> Result<ChangeReport> {
        learn::learn(&self.model, &rows.into(), None, progress)
    }

    /// Adds rows under the caller's name for the request. It has one effect, however often it
    /// comes: the same rows under the same name get the first answer again, and other rows are
    /// refused.
    pub fn learn_request(
        &mut self,
        rows: impl Into<RowSource>,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<ChangeReport> {
        learn::learn(&self.model, &rows.into(), Some(name), progress)
    }

    /// Replaces rows of the model by rows of the same ids: those of a file, or records in memory.
    pub fn amend(
        &mut self,
        rows: impl Into<RowSource>,
        progress: &dyn Progress,
    ) -> Result<ChangeReport> {
        amend::amend(&self.model, &rows.into(), progress)
    }

    /// The parameters for other programs. The log records the copy; a later forget marks it as
    /// withdrawn. Only the current version can be had, because the engine keeps no other. The
    /// release policy may say to wait.
    pub fn export(&mut self, format: &str, destination: Option<&str>) -> Result<ExportedModel> {
        self.export_as_asked(format, destination, false)
    }

    /// The same also where the policy says to wait. Whoever holds this copy and the last one can
    /// compute the rows that were forgotten in between; the receipt says so.
    pub fn export_exposing_forgotten(
        &mut self,
        format: &str,
        destination: Option<&str>,
    ) -> Result<ExportedModel> {
        self.export_as_asked(format, destination, true)
    }

    fn export_as_asked(
        &self,
        format: &str,
        destination: Option<&str>,
        expose_forgotten: bool,
    ) -> Result<ExportedModel> {
        export::export(
            &self.model,
            &ExportAsked {
                format,
                destination,
                expose_forgotten,
            },
        )
    }

    /// Scrubs the rows that wait for it, if they are as many or as old as the policy allows; None
    /// when they are not. Opening a model in order to change it does the same, and so does every
    /// change. This is for callers that stay open.
    pub fn settle_if_due(&mut self) -> Result<Option<ReceiptPlace>> {
        settle::settle_if_due(&self.model)
    }

    /// Scrubs all forgotten rows that wait for it, and gives back their places.
    pub fn settle(&mut self) -> Result<SettleReport> {
        settle::settle(&self.model)
    }

    /// How to come to the keys: where the signing key is, and the passphrase of the key file.
    /// Without this, the key lies in the key file beside the model, which is not encrypted.
    pub fn set_key_access(&mut self, access: KeyAccess) {
        self.model.set_access(access);
    }

    /// Replaces the signing key; gives the public half of the new one and the receipt of the
    /// hand-over.
    pub fn rotate_key(&mut self, rotation: &KeyRotation) -> Result<(String, ReceiptPlace)> {
        signing_keys::rotate(&self.model, rotation)
    }

    /// Encrypts the key file with another passphrase, or with none.
    pub fn change_passphrase(&mut self, passphrase: Option<Passphrase>) -> Result<()> {
        signing_keys::change_passphrase(&self.model, passphrase)
    }

    /// Destroys the key of an encrypted model's rows and arrays, in its key file. Nothing opens
    /// them any more, wherever copies of them lie: the strongest way to scrub. The log stays, and
    /// its last receipt says so.
    pub fn destroy(&mut self) -> Result<ReceiptPlace> {
        signing_keys::destroy(&self.model)
    }

    /// The public keys of the log, oldest first, each with the receipts that it signs. Any of them
    /// verifies the receipts of its time and before; the last one verifies all.
    pub fn public_keys(&self) -> Result<Vec<TrustedKey>> {
        signing_keys::public_keys(&self.model)
    }

    /// When new parameters may be published.
    pub fn policy(&self) -> Result<ReleasePolicy> {
        policy::policy(&self.model)
    }

    /// Changes the policy. The log records it.
    pub fn set_policy(&mut self, change: &PolicyChange) -> Result<ReleasePolicy> {
        policy::set(&self.model, change)
    }

    /// Records what tests of the model found, as a receipt of its own: names of tests and numbers,
    /// nothing else.
    pub fn record_audit(&mut self, results: &[AuditEntry]) -> Result<ReceiptPlace> {
        audit::record_audit(&self.model, results)
    }

    /// Shows every receipt, oldest first, with its bytes in the log.
    pub fn receipts(&self, see: &mut dyn FnMut(&SignedReceipt, &[u8]) -> Result<()>) -> Result<()> {
        receipts::each(&self.model, 0..u64::MAX, see).map(|_| ())
    }

    /// Shows the receipts of these numbers, as far as the log has them; gives how many it has.
    pub fn receipts_between(
        &self,
        numbers: Range<u64>,
        see: &mut dyn FnMut(&SignedReceipt, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        receipts::each(&self.model, numbers, see)
    }

    /// The receipt of this number or id, with all that is needed to check it.
    pub fn bundle(&self, receipt: &str) -> Result<ReceiptBundle> {
        receipts::bundle(&self.model, receipt)
    }

    /// The numbers of the receipts about a request or a person, oldest first.
    pub fn find_receipts(&self, query: &ReceiptQuery) -> Result<Vec<u64>> {
        receipts::find(&self.model, query)
    }

    /// The signed head of the log.
    pub fn checkpoint(&self) -> Result<String> {
        receipts::checkpoint(&self.model)
    }

    /// Signs the list of the files of an evidence pack with the key of the log.
    pub fn sign_pack(&self, digests: &PackDigests) -> Result<String> {
        receipts::sign_pack(&self.model, digests)
    }

    /// Proof that the log continues the one of its first `old` receipts.
    pub fn consistency(&self, old: u64) -> Result<ConsistencyProof> {
        receipts::consistency(&self.model, old)
    }

    /// Recomputes commitments, hashes, log and bound from what is stored. `keys` are public keys of
    /// the log, as the caller knows them; without any, the file's own are believed.
    pub fn verify(&self, keys: Option<&KeyRing>) -> Result<Vec<FileCheck>> {
        verify::verify(&self.model, keys, None, None)
    }

    /// Like [`Engine::verify`], with a choice whether sums, parameters and bound are also computed
    /// from the rows again. [`Engine::verify`] does so for models that are small.
    pub fn verify_rows(&self, keys: Option<&KeyRing>, rows: bool) -> Result<Vec<FileCheck>> {
        verify::verify(&self.model, keys, Some(rows), None)
    }

    /// Like [`Engine::verify`], and whether the log continues the one whose head the caller kept: a
    /// checkpoint that [`Engine::checkpoint`] gave earlier.
    pub fn verify_since(&self, keys: Option<&KeyRing>, checkpoint: &str) -> Result<Vec<FileCheck>> {
        verify::verify(&self.model, keys, None, Some(checkpoint))
    }

    /// What is wrong with a file that was put back from an older copy, or belongs to another log
    /// than the head beside it says; None where nothing is. Such a file is not changed, and gives
    /// no scores.
    pub fn rollback(&self) -> Result<Option<String>> {
        backup::rollback(&self.model)
    }

    /// Keeps the cosignatures of these witnesses with the head of the log, so that receipts carry
    /// them from now on, until the next change makes another head. Lines that are not by one of
    /// them, or not of this head, are passed over; it is an error if none is left.
    pub fn add_cosignatures(&mut self, witnesses: &WitnessQuorum, lines: &str) -> Result<()> {
        receipts::add_cosignatures(&self.model, witnesses, lines)
    }

    /// Writes a copy of the file, or of its log, to a path where nothing is yet. No forget reaches
    /// the copy.
    pub fn backup(&self, content: BackupContent, path: &Path, mode: u32) -> Result<BackupReport> {
        backup::backup(&self.model, content, path, mode)
    }
}
