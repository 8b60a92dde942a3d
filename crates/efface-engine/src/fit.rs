//! A new model file. It is written under another name and moved into place when it is complete, so that a path holds a
//! whole model or what it held before.

use std::path::{Path, PathBuf};
use std::time::Instant;

use efface::{AnyModel, AnyRecipe, Fit, Form, Options, RowId, RowStore};

use crate::blueprint::Blueprint;
use crate::choice;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ingest::{self, Purpose};
use crate::ledger::{self, Findings, founding, key};
use crate::model;
use crate::report::FitReport;
use crate::request::{FitRequest, Progress};
use crate::store::{self, Manifest, Outgoing, Salt, Store};

/// Fits a model and writes it to a new file. A path that exists is refused unless `overwrite` is set.
pub fn fit(request: &FitRequest, path: &Path, overwrite: bool, progress: &dyn Progress) -> Result<FitReport> {
    let started = Instant::now();
    refuse(path, overwrite)?;
    let (mut blueprint, encoder) = ingest::observe(request, progress)?;
    let mut batch = ingest::gather(&request.source, &blueprint, encoder.as_ref(), Purpose::Fit, progress)?;
    batch.number(0);
    let numbers = (0..batch.len() as u64).map(RowId).collect();
    let (rows, names) = batch.into_rows(numbers, blueprint.outputs())?;
    rows.iter().for_each(|row| blueprint.count(row.targets, true));

    progress.start("fitting", None);
    let mut recipe = choice::recipe(request, &blueprint, encoder.as_ref())?;
    let mut fitted = working(&recipe).fit(&rows)?;
    // A request for nothing is how a model tells its bound.
    let mut evidence = fitted.forget("auto", &Options::default(), &rows, &[])?.evidence;
    let state = model::settle(&mut fitted, &mut evidence)?;
    if let (AnyRecipe::Ridge(ridge), AnyModel::Ridge(fitted)) = (&mut recipe, &fitted)
        && ridge.form == Form::Auto
    {
        ridge.form = fitted.form();
    }
    drop(fitted);
    progress.finish();

    let secret = founding::draw()?;
    let draft = Draft::beside(path);
    let file = Store::create(&draft.0)?;
    let transaction = file.begin(true)?;
    progress.start("writing", Some(rows.len() as u64));
    file.with(|connection| {
        let Blueprint { layout, .. } = blueprint;
        let mut manifest = Manifest::new(
            Salt::random(connection)?,
            blueprint,
            model::head(recipe, state.details(), &evidence),
        );
        let total = rows.len() as u64;
        (manifest.next_row, manifest.next_position) = (total, total);
        let mut directory = manifest.directory(connection);
        let salt = ledger::salt(&manifest);
        let mut leaves = Vec::with_capacity(rows.len());
        let mut buffer = Vec::new();
        for (slot, row) in rows.iter().enumerate() {
            let (id, subject) = (names.ids[slot].as_str(), names.subject(slot));
            let row =
                Outgoing { id, subject, weight: row.weight, targets: row.targets, features: row.features };
            let content = store::rows::insert(connection, slot as u64, layout, &row, &mut buffer)?;
            leaves.push(salt.row(id.as_bytes(), &content));
            progress.at(slot as u64);
        }
        for (slot, id) in names.ids.iter().enumerate() {
            directory.insert(slot as u64, id, names.subject(slot))?;
        }
        (manifest.rows, manifest.tally) = (directory.rows, directory.tally);
        manifest.parts = model::save(connection, &state, encoder.as_ref())?;
        evidence.not_covered = model::not_covered(&manifest, encoder.as_ref(), state.scaled());
        let findings = Findings::new(&evidence, &manifest.model.recipe, &Options::default());
        founding::found(connection, &mut manifest, &secret, leaves, Some(findings), None)?;
        manifest.save(connection)
    })?;
    transaction.commit()?;
    drop(file);
    progress.finish();

    refuse(path, overwrite)?;
    // The key is in place before the model that needs it, and the key of a model that is replaced goes after it.
    key::add(path, &secret)?;
    draft.publish(path)?;
    key::keep_only(path, &secret)?;
    let summary = Engine::open_read_only(path)?.summary()?;
    Ok(FitReport { summary, seconds: started.elapsed().as_secs_f64() })
}

/// The recipe in the form that the fit works in; the file holds the same in every form.
fn working(recipe: &AnyRecipe) -> AnyRecipe {
    match recipe {
        AnyRecipe::Ridge(ridge) => AnyRecipe::Ridge(ridge.form(model::working_form(ridge.form))),
        other => other.clone(),
    }
}

fn refuse(path: &Path, overwrite: bool) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::io(path, std::io::ErrorKind::IsADirectory.into())),
        Ok(_) if !overwrite => Err(Error::Exists { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// A file that is removed unless it is published.
struct Draft(PathBuf);

impl Draft {
    fn beside(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |t| t.subsec_nanos());
        name.push(format!(".{}-{nanos}.tmp", std::process::id()));
        Self(name.into())
    }

    fn publish(self, path: &Path) -> Result<()> {
        // The journal of an interrupted change to an older model would be played into the new one.
        match std::fs::remove_file(store::journal(path)) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(path, cause)),
            _ => {}
        }
        std::fs::rename(&self.0, path).map_err(|cause| Error::io(path, cause))?;
        key::sync_folder(path);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Both are gone already when all went well.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(store::journal(&self.0));
    }
}
