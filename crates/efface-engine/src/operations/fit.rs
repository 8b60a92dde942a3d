//! A new model file. It is written under another name and moved into place when it is complete, so that a path holds a
//! whole model or what it held before.

use std::path::Path;
use std::time::Instant;

use crate::file::ModelConnection;
use efface::{Method, RowStore, Rows};
use efface_receipt::Hash;

use super::ingest::RowNames;
use super::open_model::OpenModel;
use super::prepare::prepare;
use super::prepared::PreparedModel;
use super::replaced::ReplacedModel;
use super::report::{FitReport, ModelSummary};
use super::request::FitRequest;
use super::scoring;
use super::summary::summary;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::codec::network_info::EncoderInfo;
use crate::error::{Error, Result};
use crate::file::outputs::{self, LockedName, PlannedOutput, ReplacedFile};
use crate::file::{self, FileFault, FileSalt, ModelStore, OutgoingRow, PATIENCE, StoredArray, paths};
use crate::ledger::founding::FirstReceipt;
use crate::ledger::key::KeyFile;
use crate::ledger::{MethodFindings, checkpoint, founding, newest, row_leaf};
use crate::progress::Progress;

/// Fits a model and writes it to a new file. A path that exists is refused unless `overwrite` is set.
pub fn fit(request: &FitRequest, path: &Path, overwrite: bool, progress: &dyn Progress) -> Result<FitReport> {
    let started = Instant::now();
    outputs::check_outputs(&planned_outputs(request, path), &[], overwrite)?;
    let path = &paths::resolve(path).map_err(|cause| Error::io(path, cause))?;
    let replaced = ReplacedModel::at(path, request)?;
    let mut prepared = prepare(&scoring::training_request(request)?, progress)?;
    let mut evidence = prepared.model.evidence();
    let state = model::settle(&mut prepared.model, &mut evidence)?;
    prepared.recipe = prepared.recipe.as_kept_by(&prepared.model);
    let scores = scoring::measure(request, &prepared, path, progress)?;
    let stored = model::state_head(&prepared.model, &state);
    let PreparedModel { blueprint, encoder, rows, words, names, recipe, .. } = prepared;
    let PreparedModel { network, backbone, penalty, remarks, cut, .. } = prepared;
    progress.finish();

    replaced.check(&names)?;
    let mut secrets = founding::draw(&request.access, request.recovery_key.is_some())?;
    if let Some(seed) = replaced.seed(secrets.noise.origin()) {
        secrets.noise = seed;
    }
    let draft = ModelDraft::beside(path)?;
    let data_key = request.encrypt.then(|| secrets.noise.data_key());
    let file = ModelStore::create(draft.path(), state.bytes(), data_key.as_ref())?;
    let transaction = file.begin(true)?;
    progress.start("writing", Some(rows.len() as u64));
    let head = model::head(recipe, stored, &evidence);
    let mut manifest = Manifest::new(FileSalt::draw()?, blueprint, head, secrets.head());
    manifest.network = network;
    manifest.scores = scores;
    manifest.penalty = penalty;
    let rows = NewRows { rows, words, names };
    let note = file.with(|connection| {
        let leaves = rows.write(connection, &mut manifest, progress)?;
        replaced.carry(connection, &mut manifest)?;
        let lasting = backbone.as_ref().map(|bytes| StoredArray::Bytes("backbone", bytes));
        let lasting = lasting.map(|part| file::parts::save_lasting(connection, part)).transpose()?;
        manifest.parts = model::save(connection, &state, encoder.as_ref(), lasting.as_slice())?;
        evidence.set_left_behind(model::left_behind(&manifest, encoder.as_ref(), state.is_scaled()));
        let findings = MethodFindings::new(&evidence, &manifest.model.recipe, &Method::default())
            .with_network(manifest.network.as_ref());
        let first = FirstReceipt { rows: leaves, parameters: manifest.parameters(), findings };
        founding::found(connection, &mut manifest.ledger, &secrets, first)?;
        manifest.seal(connection, &*secrets.signer)?;
        checkpoint(connection)
    })?;
    transaction.commit()?;
    drop(file);
    progress.finish();

    outputs::check_outputs(&planned_outputs(request, path), &[], overwrite)?;
    // Whoever waits to change the old model finds it gone when this is over, and has acknowledged nothing.
    let old = replaced.reopened(path)?;
    let held = old.as_ref().map(|store| store.begin(true)).transpose()?;
    old.as_ref().map_or(Ok(()), |store| replaced.check_unchanged(store))?;
    // The key is in place before the model that needs it, and the key of a model that is replaced goes after it.
    let keys = request.access.file(path);
    if let (Some(path), Some(recovery)) = (&request.recovery_key, &secrets.recovery) {
        // The seed goes along: without it nothing could be forgotten after a recovery.
        KeyFile::at(path).add(Some(recovery), Some(&secrets.noise))?;
    }
    keys.add(secrets.key.as_ref(), Some(&secrets.noise))?;
    // The head of a log that is given up goes first: beside another model, after a crash, it would look like an exchange.
    if replaced.origin.is_some() {
        let _ = std::fs::remove_file(newest::head_path(path));
    }
    draft.publish(path, request.mode)?;
    newest::keep(path, &note);
    drop(held);
    keys.keep_only(secrets.signer.public_key(), replaced.origin.as_deref())?;
    let mut opened = OpenModel::open(path, false, PATIENCE)?;
    opened.set_access(request.access.clone());
    let summary = summary(&opened)?;
    forget_checkpoint(request, &summary);
    Ok(FitReport {
        summary,
        tolerance: evidence.tolerance,
        tolerance_missed: evidence.tolerance_missed(),
        seconds: started.elapsed().as_secs_f64(),
        cut,
        precomputed: evidence.precomputed,
        remarks,
        carried: replaced.carried(),
        dropped: replaced.dropped,
    })
}

/// The rows of a new file.
struct NewRows {
    rows: Rows,
    words: Vec<Vec<u32>>,
    names: RowNames,
}

impl NewRows {
    /// Writes all rows and their list; gives their leaves in the training set.
    fn write(
        &self,
        connection: &ModelConnection,
        manifest: &mut Manifest,
        progress: &dyn Progress,
    ) -> std::result::Result<Vec<Hash>, FileFault> {
        let shape = manifest.blueprint.shape();
        let mut directory = manifest.directory(connection);
        let mut leaves = Vec::with_capacity(self.rows.len());
        let mut digests = Vec::with_capacity(self.rows.len());
        let mut buffer = Vec::new();
        for (slot, row) in self.rows.iter().enumerate() {
            let id = self.names.ids[slot].as_str();
            let row = OutgoingRow {
                id,
                subject: self.names.subject(slot),
                weight: row.weight,
                targets: row.targets,
                words: self.words.get(slot).map_or(&[][..], Vec::as_slice),
                features: row.features,
            };
            let written = file::rows::insert(connection, slot as u64, shape, &row, &mut buffer)?;
            leaves.push(row_leaf(&written.nonce, id, &written.content));
            digests.push(written.digest);
            progress.at(slot as u64);
        }
        // All entries of one table after all of the other: each table lies in one piece.
        for (slot, id) in self.names.ids.iter().enumerate() {
            directory.insert(slot as u64, id, self.names.subject(slot), &digests[slot])?;
        }
        manifest.enter(directory.finish()?);
        manifest.next_row = manifest.rows;
        manifest.next_position = self.names.span;
        Ok(leaves)
    }
}

/// A training that is over leaves no checkpoint: no forget would reach it. One that was stopped can go on.
fn forget_checkpoint(request: &FitRequest, summary: &ModelSummary) {
    let stopped = summary.network.as_ref().is_some_and(|network| match &network.encoder {
        EncoderInfo::Lstm { interrupted, .. } => *interrupted,
        EncoderInfo::MiniLm { .. } => false,
    });
    let checkpoint = request.network.as_ref().and_then(|network| network.checkpoint.as_ref());
    if let (false, Some(path)) = (stopped, checkpoint) {
        // It may never have been written.
        let _ = std::fs::remove_file(path);
    }
}

/// The files that a fit writes: a model with its key, and the checkpoint of a training.
fn planned_outputs<'a>(request: &'a FitRequest, path: &'a Path) -> Vec<PlannedOutput<'a>> {
    let checkpoint = request.network.as_ref().and_then(|network| network.checkpoint.as_deref());
    let recovery = request.recovery_key.as_deref().map(PlannedOutput::file);
    std::iter::once(PlannedOutput::model(path))
        .chain(checkpoint.map(PlannedOutput::resumed))
        .chain(recovery)
        .collect()
}

/// A model under a temporary name, removed unless it is published. SQLite needs a name; the lock on it tells others that
/// its process is alive.
pub(super) struct ModelDraft {
    name: LockedName,
    published: bool,
}

impl ModelDraft {
    pub(super) fn beside(path: &Path) -> Result<Self> {
        let name = LockedName::beside(path).map_err(|cause| Error::io(path, cause))?;
        Ok(Self { name, published: false })
    }

    /// Where it lies until it is published.
    pub(super) fn path(&self) -> &Path {
        &self.name.path
    }

    pub(super) fn publish(mut self, path: &Path, mode: u32) -> Result<()> {
        let io = |cause| Error::io(path, cause);
        // The journal of an interrupted change to an older model would be played into the new one.
        file::remove_journal(path).map_err(io)?;
        // A draft that was changed has one of its own.
        file::remove_journal(&self.name.path).map_err(io)?;
        outputs::set_mode(&self.name.file, mode).map_err(io)?;
        let replaced = ReplacedFile::keep(path);
        std::fs::rename(&self.name.path, path).map_err(io)?;
        if let Some(replaced) = replaced {
            replaced.discard();
        }
        self.published = true;
        outputs::sync_folder(path);
        Ok(())
    }
}

impl Drop for ModelDraft {
    fn drop(&mut self) {
        if !self.published {
            // The rows of a fit that failed.
            self.name.discard();
            let _ = file::remove_journal(&self.name.path);
        }
    }
}
