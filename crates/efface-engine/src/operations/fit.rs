//! A new model file. It is written under another name and moved into place when it is complete, so
//! that a path holds a whole model or what it held before.

use std::path::Path;
use std::thread;
use std::time::Instant;

use efface::{Method, RowStore};

use super::fit_contents::contents;
use super::model_draft::NewRows;
use super::open_model::OpenModel;
use super::prepared::PreparedModel;
use super::replaced::ReplacedModel;
use super::report::{ClassShards, FitReport, ModelSummary};
use super::request::FitRequest;
use super::scoring;
use super::streamed::{RowDraft, StreamTarget};
use super::summary::summary;
use crate::codec::manifest::Manifest;
use crate::codec::model;
use crate::codec::network_info::EncoderInfo;
use crate::error::{Error, Result};
use crate::file::outputs::{self, PlannedOutput};
use crate::file::{self, PATIENCE, RepeatedName, StoredArray, TableLoad, paths};
use crate::ledger::founding::FirstReceipt;
use crate::ledger::key::KeyFile;
use crate::ledger::{MethodFindings, checkpoint, founding, newest};
use crate::progress::Progress;

/// Fits a model and writes it to a new file. A path that exists is refused unless `overwrite` is
/// set.
pub fn fit(
    request: &FitRequest,
    path: &Path,
    overwrite: bool,
    progress: &dyn Progress,
) -> Result<FitReport> {
    let started = Instant::now();
    outputs::check_outputs(&planned_outputs(request, path), &[], overwrite)?;
    let path = &paths::resolve(path).map_err(|cause| Error::io(path, cause))?;
    let replaced = ReplacedModel::at(path, request)?;
    let mut secrets = founding::draw(&request.access, request.recovery_key.is_some())?;
    if let Some(seed) = replaced.seed(secrets.noise.origin()) {
        secrets.noise = seed;
    }
    let data_key = request.encrypt.then(|| secrets.noise.data_key());
    let target = StreamTarget {
        path,
        key: data_key.as_ref(),
        replaced: &replaced,
    };
    let (mut prepared, streamed) =
        contents(&scoring::training_request(request)?, &target, progress)?;
    let mut evidence = prepared.model.evidence();
    let state = model::settle(&mut prepared.model, &mut evidence)?;
    prepared.recipe = prepared.recipe.as_kept_by(&prepared.model);
    let scores = scoring::measure(request, &prepared, path, progress)?;
    let sums = prepared.sums();
    let stored = model::state_head(&prepared.model, &state);
    let shards_by_class = ClassShards::of(&prepared.model, prepared.blueprint.classes());
    let PreparedModel {
        blueprint,
        encoder,
        rows,
        words,
        names,
        recipe,
        ..
    } = prepared;
    let PreparedModel {
        network,
        backbone,
        penalty,
        remarks,
        cut,
        ..
    } = prepared;
    progress.finish();

    replaced.check(&names)?;
    let drafted = match streamed {
        Some(streamed) => streamed,
        None => RowDraft::empty(path, state.bytes(), data_key.as_ref())?,
    };
    let RowDraft {
        draft,
        file,
        salt,
        head: mut listed,
        mut load,
        span,
    } = drafted;
    progress.start("writing", Some(rows.len() as u64));
    let head = model::head(recipe, stored, &evidence);
    let mut manifest = Manifest::new(salt, blueprint, head, secrets.head());
    manifest.network = network;
    manifest.scores = scores;
    manifest.penalty = penalty;
    let rows = NewRows {
        rows,
        words,
        names,
        lines: Vec::new(),
    };
    let shape = manifest.blueprint.shape();
    if listed.rows == 0 {
        listed = file.with(|connection| {
            let mut tables = TableLoad::begin(connection, file.path())?;
            rows.write(&mut tables, shape, salt, &mut load, progress)?;
            tables.finish()
        })?;
    }
    // Both are sorted before either is needed, side by side.
    thread::scope(|scope| {
        scope.spawn(|| load.names.arrange());
        load.leaves.arrange();
    });
    let members = file.with(|connection| {
        manifest
            .ledger
            .load_members(connection, file.path(), load.leaves)
    })?;
    let transaction = file.begin(true)?;
    let mut repeated = None;
    let note = file.with(|connection| {
        if let Some(found) = file::build_index(connection, &mut listed, load.names)? {
            repeated = Some((found, file::rows::id_of(connection, shape, found.row)?));
        }
        manifest.enter(listed);
        manifest.next_row = manifest.rows;
        manifest.next_position = span.max(rows.names.span);
        manifest.note_batch(0, manifest.rows);
        replaced.carry(connection, &mut manifest)?;
        let lasting = backbone
            .as_ref()
            .map(|bytes| StoredArray::Bytes("backbone", bytes));
        let lasting = lasting
            .map(|part| file::parts::save_lasting(connection, part))
            .transpose()?;
        manifest.parts = model::save(
            connection,
            &state,
            encoder.as_ref(),
            sums.as_ref(),
            lasting.as_slice(),
        )?;
        evidence.set_left_behind(model::left_behind(
            &manifest,
            encoder.as_ref(),
            state.read_off_rows(),
        ));
        let findings = MethodFindings::new(&evidence, &manifest.model.recipe, &Method::default())
            .with_network(manifest.network.as_ref());
        let first = FirstReceipt {
            rows: members,
            parameters: manifest.parameters(),
            findings,
        };
        founding::found(connection, &mut manifest.ledger, &secrets, first)?;
        manifest.seal(connection, &*secrets.signer)?;
        checkpoint(connection)
    })?;
    if let Some((RepeatedName { first, second, .. }, id)) = repeated {
        return Err(request
            .source
            .located(Error::RepeatedId { id, first, second }));
    }
    transaction.commit()?;
    drop(file);
    progress.finish();

    outputs::check_outputs(&planned_outputs(request, path), &[], overwrite)?;
    // Whoever waits to change the old model finds it gone when this is over, and has acknowledged
    // nothing.
    let old = replaced.reopened(path)?;
    let held = old.as_ref().map(|store| store.begin(true)).transpose()?;
    old.as_ref()
        .map_or(Ok(()), |store| replaced.check_unchanged(store))?;
    // The key is in place before the model that needs it, and the key of a model that is replaced
    // goes after it.
    let keys = request.access.file(path);
    // Two fits of one name that run at once add their keys one after the other.
    let _key_lock = keys.hold()?;
    if let (Some(path), Some(recovery)) = (&request.recovery_key, &secrets.recovery) {
        // The seed goes along: without it nothing could be forgotten after a recovery.
        KeyFile::at(path).add(Some(recovery), Some(&secrets.noise))?;
    }
    keys.add(secrets.key.as_ref(), Some(&secrets.noise))?;
    // The head of a log that is given up goes first: beside another model, after a crash, it would
    // look like an exchange.
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
        shards_by_class,
        carried: replaced.carried(),
        dropped: replaced.dropped,
    })
}

/// A training that is over leaves no checkpoint: no forget would reach it. One that was stopped can
/// go on.
fn forget_checkpoint(request: &FitRequest, summary: &ModelSummary) {
    let stopped = summary
        .network
        .as_ref()
        .is_some_and(|network| match &network.encoder {
            EncoderInfo::Lstm { interrupted, .. } => *interrupted,
            EncoderInfo::MiniLm { .. } => false,
        });
    let checkpoint = request
        .network
        .as_ref()
        .and_then(|network| network.checkpoint.as_ref());
    if let (false, Some(path)) = (stopped, checkpoint) {
        // It may never have been written.
        let _ = std::fs::remove_file(path);
    }
}

/// The files that a fit writes: a model with its key, and the checkpoint of a training.
fn planned_outputs<'a>(request: &'a FitRequest, path: &'a Path) -> Vec<PlannedOutput<'a>> {
    let checkpoint = request
        .network
        .as_ref()
        .and_then(|network| network.checkpoint.as_deref());
    let recovery = request.recovery_key.as_deref().map(PlannedOutput::file);
    std::iter::once(PlannedOutput::model(path))
        .chain(checkpoint.map(PlannedOutput::resumed))
        .chain(recovery)
        .collect()
}
