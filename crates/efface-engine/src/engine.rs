//! An open model file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use efface::Method;
use efface::features::Encoder;
use efface_io::Source;
use efface_receipt::{Audit, Bundle, ConsistencyProof, Hash, PublicKey, Signed};

use crate::codec::manifest::Manifest;
use crate::codec::model::{self, Live};
use crate::error::{Error, Result};
use crate::file::outputs;
use crate::file::{self, ModelStore};
use crate::operations::audit::{self, AuditReport, AuditRequest};
use crate::operations::change;
use crate::operations::look;
use crate::operations::policy::{self, PolicyChange, ReleasePolicy};
use crate::operations::report::{
    ChangeReport, ExportedModel, ModelSummary, Parameters, Prediction, ReceiptPlace,
};
use crate::operations::request::{ForgetRequest, RowSelection};
use crate::operations::story;
use crate::operations::upkeep::{self, SettleReport};
use crate::operations::verify::{self, FileCheck};
use crate::progress::{Progress, Silent};

/// A model file, open. Several engines may have the same file open; changes wait for each other, five seconds at most
/// unless [`Engine::set_patience`] says otherwise.
pub struct Engine {
    pub(crate) store: ModelStore,
    /// The model as the last change of this engine left it, by the root of the log: nobody else's change has that root.
    last: Mutex<Option<(Hash, Arc<Live>)>>,
    /// Where a pretrained encoder is, if not where it was at the fit.
    encoder: Option<PathBuf>,
}

/// A model as it is inside one transaction.
pub(crate) struct ModelSnapshot {
    pub(crate) manifest: Manifest,
    pub(crate) encoder: Option<Encoder>,
}

impl Engine {
    /// Opens a model in order to change it. Forgotten rows that have waited to be scrubbed for as long as the policy
    /// allows are scrubbed here.
    pub fn open(path: &Path) -> Result<Self> {
        Self::with(path, true)
    }

    /// Opens a model in order to look at it; the file needs no write permission.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::with(path, false)
    }

    fn with(path: &Path, write: bool) -> Result<Self> {
        // Drafts that a killed process left hold rows and keys, which no forget reaches.
        if let Ok(path) = outputs::resolve(path) {
            outputs::sweep(&outputs::folder_of(&path));
        }
        let engine = Self { store: ModelStore::open(path, write)?, last: Mutex::new(None), encoder: None };
        // A file that cannot be read is better found out now than in the middle of a change.
        let manifest = engine.store.with(Manifest::load)?;
        if write && upkeep::due(&manifest) {
            match upkeep::settle_waiting(&engine) {
                // Somebody else is at it, or nothing can be signed: the next change says so, and settles if it can.
                Ok(_) | Err(Error::Locked { .. } | Error::Key { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(engine)
    }

    /// How long to wait for another process that changes the file: five seconds unless said otherwise, and not at all
    /// with zero. Then the change is refused.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        self.store.patience(patience)
    }

    /// Where the pretrained encoder of a network is now. Without this, it is looked for where it was at the fit.
    pub fn set_encoder(&mut self, folder: &Path) {
        self.encoder = Some(folder.to_owned());
    }

    pub(crate) fn encoder_folder(&self) -> Option<&Path> {
        self.encoder.as_deref()
    }

    pub(crate) fn remembered(&self, root: &Hash) -> Option<Arc<Live>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(of, _)| of == root).map(|(_, model)| model.clone())
    }

    pub(crate) fn remember(&self, root: Hash, model: Live) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((root, Arc::new(model)));
    }

    /// The log grew and the model stayed.
    pub(crate) fn rename(&self, root: Hash) {
        if let Some((of, _)) = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *of = root;
        }
    }

    pub(crate) fn snapshot(&self) -> Result<ModelSnapshot> {
        self.store.with(|connection| {
            let manifest = Manifest::load(connection)?;
            let mut encoder = model::encoder(connection, &manifest)?;
            if let (Some(encoder), Some(_)) = (&mut encoder, &manifest.waiting) {
                for (_, row) in file::rows::waiting(connection, &manifest)? {
                    encoder.forget_row(&row.features.as_ref().entries());
                }
            }
            Ok(ModelSnapshot { encoder, manifest })
        })
    }

    /// What the file holds.
    pub fn summary(&self) -> Result<ModelSummary> {
        look::summary(self)
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> Result<Parameters> {
        look::parameters(self)
    }

    /// Calls `see` with the scores of every row of the file, in order; returns how many rows there were.
    pub fn predict(&self, source: &Source, see: &mut dyn FnMut(Prediction) -> Result<()>) -> Result<u64> {
        look::predict(self, source, see)
    }

    /// Takes rows out of the model and out of the file. With `dry_run` everything is computed and nothing is written.
    /// A method that makes no sense for the model is refused; [`efface::methods::table`] lists what goes together.
    pub fn forget(&mut self, who: &RowSelection, method: &Method, dry_run: bool) -> Result<ChangeReport> {
        let request = ForgetRequest { method: *method, ..ForgetRequest::new(who.clone()) };
        self.request(&request, dry_run)
    }

    /// Answers one request to forget. A request with an id has one effect, however often it comes: the same request gets
    /// its first answer again, another one under the same id is refused.
    pub fn request(&mut self, request: &ForgetRequest, dry_run: bool) -> Result<ChangeReport> {
        self.request_watched(request, dry_run, &Silent)
    }

    /// The same for a request that may take long, such as the training of a network. If `progress` asks to stop it, nothing
    /// has changed, and the same request may come again.
    pub fn request_watched(
        &mut self,
        request: &ForgetRequest,
        dry_run: bool,
        progress: &dyn Progress,
    ) -> Result<ChangeReport> {
        let mut answers = change::forget::group(self, std::slice::from_ref(request), dry_run, progress)?;
        answers.pop().unwrap_or(Err(crate::Error::EmptyRequest))
    }

    /// Answers requests that wait together: neighbours that ask for the same method are applied as one change, in one
    /// transaction, with a receipt each. The answers are in the order of the requests.
    pub fn forget_many(&mut self, requests: &[ForgetRequest]) -> Vec<Result<ChangeReport>> {
        let like = |a: &ForgetRequest, b: &ForgetRequest| {
            a.method == b.method && a.clear_dead_columns == b.clear_dead_columns
        };
        let mut answers = Vec::with_capacity(requests.len());
        for together in requests.chunk_by(like) {
            match change::forget::group(self, together, false, &Silent) {
                Ok(group) => answers.extend(group),
                // One of them spoils it for all: each has to stand for itself.
                Err(Error::Core(_)) if together.len() > 1 => {
                    answers.extend(together.iter().map(|request| self.request(request, false)));
                }
                // The file cannot be changed, whoever asks; trying again for each would only take as many times as long.
                Err(error) => {
                    answers.extend(together[1..].iter().map(|_| Err(error.again())));
                    answers.push(Err(error));
                }
            }
        }
        answers
    }

    /// Measures how well the model forgets, against a model that is truly retrained; `docs/audit.md` defines every number.
    /// The file is only read. [`Engine::record_audit`] puts the result on record.
    pub fn audit(&self, request: &AuditRequest, progress: &(dyn Progress + Sync)) -> Result<AuditReport> {
        audit::audit(self, request, progress)
    }

    /// Adds the rows of a file.
    pub fn learn(&mut self, source: &Source, progress: &dyn Progress) -> Result<ChangeReport> {
        change::learn(self, source, progress)
    }

    /// Replaces rows of the model by the rows of the same id in a file.
    pub fn amend(&mut self, source: &Source, progress: &dyn Progress) -> Result<ChangeReport> {
        change::amend(self, source, progress)
    }

    /// The parameters for other programs. The log records the copy; a later forget marks it as withdrawn. Only the
    /// current version can be had, because the engine keeps no other. The release policy may say to wait.
    pub fn export(&mut self, format: &str, destination: Option<&str>) -> Result<ExportedModel> {
        upkeep::export(self, format, destination)
    }

    /// Scrubs the rows that wait for it, if they are as many or as old as the policy allows; None when they are not. Opening
    /// a model in order to change it does the same, and so does every change. This is for callers that stay open.
    pub fn settle_if_due(&mut self) -> Result<Option<ReceiptPlace>> {
        match upkeep::due(&self.store.with(Manifest::load)?) {
            true => upkeep::settle_waiting(self),
            false => Ok(None),
        }
    }

    /// Scrubs all forgotten rows that wait for it, and gives back their places.
    pub fn settle(&mut self) -> Result<SettleReport> {
        upkeep::settle(self)
    }

    /// Replaces the signing key; gives the public half of the new one and the receipt of the hand-over.
    pub fn rotate_key(&mut self) -> Result<(String, ReceiptPlace)> {
        upkeep::rotate(self)
    }

    /// The public keys: the one that the log began with, and the one that signs now.
    pub fn public_keys(&self) -> Result<(String, String)> {
        story::keys(self)
    }

    /// When new parameters may be published.
    pub fn policy(&self) -> Result<ReleasePolicy> {
        policy::policy(self)
    }

    /// Changes the policy. The log records it.
    pub fn set_policy(&mut self, change: &PolicyChange) -> Result<ReleasePolicy> {
        policy::set(self, change)
    }

    /// Records what tests of the model found, as a receipt of its own: names of tests and numbers, nothing else.
    pub fn record_audit(&mut self, results: &[Audit]) -> Result<ReceiptPlace> {
        upkeep::record_audit(self, results)
    }

    /// Shows every receipt, oldest first, with its bytes in the log.
    pub fn receipts(&self, see: &mut dyn FnMut(&Signed, &[u8]) -> Result<()>) -> Result<()> {
        story::each(self, see)
    }

    /// The receipt of this number or id, with all that is needed to check it.
    pub fn bundle(&self, receipt: &str) -> Result<Bundle> {
        story::bundle(self, receipt)
    }

    /// The signed head of the log.
    pub fn checkpoint(&self) -> Result<String> {
        story::checkpoint(self)
    }

    /// Proof that the log continues the one of its first `old` receipts.
    pub fn consistency(&self, old: u64) -> Result<ConsistencyProof> {
        story::consistency(self, old)
    }

    /// Recomputes commitments, hashes, log and bound from what is stored. `key` is the public key that the log began
    /// with, as the caller knows it; without one, the file's own is believed.
    pub fn verify(&self, key: Option<&PublicKey>) -> Result<Vec<FileCheck>> {
        verify::model(self, key, None)
    }

    /// The same, with a choice whether sums, parameters and bound are also computed from the rows again. Without a choice
    /// that is done for models that are small.
    pub fn verify_rows(&self, key: Option<&PublicKey>, rows: bool) -> Result<Vec<FileCheck>> {
        verify::model(self, key, Some(rows))
    }
}
