//! A new model file. It is written under another name and moved into place when it is complete, so that a path holds a
//! whole model or what it held before.

use std::path::Path;
use std::time::Instant;

use efface::features::Encoder;
use efface::{AnyModel, AnyRecipe, Fit, Form, Method, RowId, RowStore, Rows};

use crate::codec::blueprint::Blueprint;
use crate::codec::manifest::Manifest;
use crate::codec::model::{self, Live};
use crate::codec::network::{EncoderInfo, NetworkInfo};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::file::outputs::{self, LockedName, PlannedOutput};
use crate::file::{self, FileSalt, ModelStore, OutgoingRow, RowShape, StoredArray};
use crate::ledger::{self, MethodFindings, founding, key};
use crate::operations::choice;
use crate::operations::ingest::{self, ReadPurpose, RowNames};
use crate::operations::network;
use crate::operations::report::{FitReport, ModelSummary};
use crate::operations::request::FitRequest;
use crate::progress::Progress;

/// What a model file is made of.
pub(crate) struct PreparedModel {
    pub(crate) blueprint: Blueprint,
    pub(crate) encoder: Option<Encoder>,
    pub(crate) rows: Rows,
    /// The words behind the rows of a network; empty where none are kept.
    pub(crate) words: Vec<Vec<u32>>,
    pub(crate) names: RowNames,
    pub(crate) recipe: AnyRecipe,
    pub(crate) model: Live,
    pub(crate) network: Option<NetworkInfo>,
    pub(crate) backbone: Option<Vec<u8>>,
    /// Texts of which an encoder reads the beginning only.
    pub(crate) cut: u64,
}

/// Fits a model and writes it to a new file. A path that exists is refused unless `overwrite` is set.
pub fn fit(request: &FitRequest, path: &Path, overwrite: bool, progress: &dyn Progress) -> Result<FitReport> {
    let started = Instant::now();
    outputs::check_outputs(&outputs(request, path), &[], overwrite)?;
    let path = &outputs::resolve(path).map_err(|cause| Error::io(path, cause))?;
    let prepared = match &request.network {
        Some(network) => network::prepare(request, network, progress)?,
        None => prepare(request, progress)?,
    };
    let PreparedModel { blueprint, encoder, rows, words, names, mut recipe, .. } = prepared;
    let PreparedModel { model: mut fitted, network, backbone, cut, .. } = prepared;
    // A request for nothing is how a model tells its bound.
    let mut evidence = fitted.forget(&Method::default(), &rows, &[])?.evidence;
    let state = model::settle(&mut fitted, &mut evidence)?;
    if let (AnyRecipe::Ridge(ridge), Live::Plain(AnyModel::Ridge(fitted))) = (&mut recipe, &fitted)
        && ridge.form == Form::Auto
    {
        ridge.form = fitted.form();
    }
    drop(fitted);
    progress.finish();

    let secrets = founding::draw()?;
    let draft = ModelDraft::beside(path)?;
    let file = ModelStore::create(&draft.0.path)?;
    let transaction = file.begin(true)?;
    progress.start("writing", Some(rows.len() as u64));
    file.with(|connection| {
        let shape = RowShape::of(&blueprint);
        let mut manifest = Manifest::new(
            FileSalt::random(connection)?,
            blueprint,
            model::head(recipe, state.details(), &evidence),
        );
        manifest.network = network;
        let total = rows.len() as u64;
        (manifest.next_row, manifest.next_position) = (total, total);
        let mut directory = manifest.directory(connection);
        let salt = ledger::salt(&manifest);
        let mut leaves = Vec::with_capacity(rows.len());
        let mut buffer = Vec::new();
        for (slot, row) in rows.iter().enumerate() {
            let (id, subject) = (names.ids[slot].as_str(), names.subject(slot));
            let words = words.get(slot).map_or(&[][..], Vec::as_slice);
            let row = OutgoingRow {
                id,
                subject,
                weight: row.weight,
                targets: row.targets,
                words,
                features: row.features,
            };
            let content = file::rows::insert(connection, slot as u64, shape, &row, &mut buffer)?;
            leaves.push(salt.row(id.as_bytes(), &content));
            progress.at(slot as u64);
        }
        for (slot, id) in names.ids.iter().enumerate() {
            directory.insert(slot as u64, id, names.subject(slot))?;
        }
        (manifest.rows, manifest.tally) = (directory.rows, directory.tally);
        let lasting = backbone.as_ref().map(|bytes| StoredArray::Bytes("backbone", bytes));
        let lasting = lasting.map(|part| file::parts::save_lasting(connection, part)).transpose()?;
        manifest.parts = model::save(connection, &state, encoder.as_ref(), lasting.as_slice())?;
        evidence.not_covered = model::not_covered(&manifest, encoder.as_ref(), state.scaled());
        let findings = MethodFindings::new(&evidence, &manifest.model.recipe, &Method::default())
            .with_network(manifest.network.as_ref());
        founding::found(connection, &mut manifest, &secrets, leaves, Some(findings), None)?;
        manifest.save(connection)
    })?;
    transaction.commit()?;
    drop(file);
    progress.finish();

    outputs::check_outputs(&outputs(request, path), &[], overwrite)?;
    let replaced = origin(path);
    // The key is in place before the model that needs it, and the key of a model that is replaced goes after it.
    key::add(path, &secrets.key, Some(&secrets.noise))?;
    draft.publish(path, request.mode)?;
    key::keep_only(path, &secrets.key, replaced.as_deref())?;
    let summary = Engine::open_read_only(path)?.summary()?;
    forget_checkpoint(request, &summary);
    Ok(FitReport {
        summary,
        tolerance: evidence.tolerance,
        tolerance_missed: evidence.tolerance_missed(),
        seconds: started.elapsed().as_secs_f64(),
        cut,
    })
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

/// The rows of a file and a model of them.
fn prepare(request: &FitRequest, progress: &dyn Progress) -> Result<PreparedModel> {
    let (mut blueprint, encoder) = ingest::observe(request, progress)?;
    let reader = encoder.as_ref().into();
    let mut batch = ingest::gather(&request.source, &blueprint, reader, ReadPurpose::Fit, progress)?;
    batch.number(0);
    let numbers = (0..batch.len() as u64).map(RowId).collect();
    let (rows, names) = batch.into_rows(numbers, blueprint.outputs())?;
    rows.iter().for_each(|row| blueprint.count(row.targets, true));

    progress.start("fitting", None);
    let recipe = choice::recipe(request, &blueprint, encoder.as_ref())?;
    let model = Live::Plain(working(&recipe).fit(&rows)?);
    let (words, network, backbone) = (Vec::new(), None, None);
    Ok(PreparedModel { blueprint, encoder, rows, words, names, recipe, model, network, backbone, cut: 0 })
}

/// The recipe in the form that the fit works in; the file holds the same in every form.
pub(crate) fn working(recipe: &AnyRecipe) -> AnyRecipe {
    match recipe {
        AnyRecipe::Ridge(ridge) => AnyRecipe::Ridge(ridge.form(model::working_form(ridge.form))),
        other => other.clone(),
    }
}

/// The files that a fit writes: a model with its key, and the checkpoint of a training.
fn outputs<'a>(request: &'a FitRequest, path: &'a Path) -> Vec<PlannedOutput<'a>> {
    let checkpoint = request.network.as_ref().and_then(|network| network.checkpoint.as_deref());
    std::iter::once(PlannedOutput::model(path)).chain(checkpoint.map(PlannedOutput::resumed)).collect()
}

/// The log of the model that is about to be replaced; None where there is none, or none that can be read.
fn origin(path: &Path) -> Option<String> {
    let manifest = ModelStore::open(path, false).ok()?.with(Manifest::load).ok()?;
    manifest.ledger.map(|ledger| ledger.origin)
}

/// A model under a temporary name, removed unless it is published. SQLite needs a name; the lock on it tells others that
/// its process is alive.
struct ModelDraft(LockedName);

impl ModelDraft {
    fn beside(path: &Path) -> Result<Self> {
        Ok(Self(LockedName::beside(path).map_err(|cause| Error::io(path, cause))?))
    }

    fn publish(self, path: &Path, mode: u32) -> Result<()> {
        let io = |cause| Error::io(path, cause);
        // The journal of an interrupted change to an older model would be played into the new one.
        match std::fs::remove_file(file::journal(path)) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(io(cause)),
            _ => {}
        }
        outputs::set_mode(&self.0.file, mode).map_err(io)?;
        std::fs::rename(&self.0.path, path).map_err(io)?;
        key::sync_folder(path);
        Ok(())
    }
}

impl Drop for ModelDraft {
    fn drop(&mut self) {
        // Both are gone already when all went well.
        let _ = std::fs::remove_file(&self.0.path);
        let _ = std::fs::remove_file(file::journal(&self.0.path));
    }
}
