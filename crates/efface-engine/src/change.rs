//! The only place that replaces a live model. A change reads the model, lets a method work on it, and writes rows,
//! parameters, curvature, words and the list of what was forgotten in one transaction: after a failure or a crash the
//! file is as it was before.

use std::collections::HashSet;
use std::time::Instant;

use efface::features::Encoder;
use efface::methods::table;
use efface::{Amend, AnyModel, Evidence, Options, Outcome, RowId, RowStore, Rows};
use efface_io::Source;

use crate::engine::{Engine, Snapshot};
use crate::error::{Error, Result};
use crate::ingest::{self, Batch, Named, Purpose};
use crate::model::{self, State};
use crate::report::Report;
use crate::request::{Progress, Who};
use crate::store::{self, Directory, Manifest, Outgoing, Store, StoreRows, Transaction};
use crate::time;

pub(crate) fn forget(
    engine: &Engine,
    who: &Who,
    method: &str,
    options: &Options,
    dry_run: bool,
) -> Result<Report> {
    let known = table::method_names();
    if !known.contains(&method) {
        return Err(Error::UnknownMethod { name: method.into(), known });
    }
    let mut change = Change::begin(engine, !dry_run)?;
    let gone = change.resolve(who)?;
    let rows = change.rows();
    let outcome = model::load(change.store, &change.manifest, &rows)
        .and_then(|model| Ok(model.forget(method, options, &rows, &gone)?))
        .map_err(|error| change.name(error))?;
    change.take_out(&gone, true)?;
    change.finish(outcome, None)
}

pub(crate) fn learn(engine: &Engine, source: &Source, progress: &dyn Progress) -> Result<Report> {
    let mut change = Change::begin(engine, true)?;
    let mut batch = change.gather(source, progress)?;
    change.unknown = batch.unknown;
    batch.number(change.manifest.next_position);
    change.check_new(&batch)?;
    let numbers = (change.manifest.next_row..).take(batch.len()).map(RowId).collect();
    let (new, names) = batch.into_rows(numbers, change.manifest.blueprint.outputs())?;
    let rows = change.rows();
    let outcome = model::load(change.store, &change.manifest, &rows)
        .and_then(|model| Ok(model.learn(&rows, &new)?))
        .map_err(|error| change.name(error))?;
    change.put_in(&new);
    change.manifest.next_position += new.len() as u64;
    change.finish(outcome, Some((new, names)))
}

pub(crate) fn amend(engine: &Engine, source: &Source, progress: &dyn Progress) -> Result<Report> {
    let mut change = Change::begin(engine, true)?;
    if change.manifest.blueprint.id.is_none() {
        return Err(Error::NoIds);
    }
    let batch = change.gather(source, progress)?;
    change.unknown = batch.unknown;
    let gone = change.find(&batch.ids)?;
    // An amended row gets a new number in the file. A model that goes by numbers must hear of it.
    let renumbered = model::knows_numbers(&change.manifest.model.recipe);
    let numbers = match renumbered {
        true => (change.manifest.next_row..).take(batch.len()).map(RowId).collect(),
        false => gone.clone(),
    };
    let (new, names) = batch.into_rows(numbers, change.manifest.blueprint.outputs())?;
    let rows = change.rows();
    let outcome = model::load(change.store, &change.manifest, &rows)
        .and_then(|model| match renumbered {
            true => replaced(&model, &rows, &gone, &new),
            false => Ok(model.amend(&rows, &new)?),
        })
        .map_err(|error| change.name(error))?;
    // In this order a word that is in the old and in the new row keeps its name.
    change.put_in(&new);
    change.take_out(&gone, false)?;
    change.finish(outcome, Some((new, names)))
}

/// The model with rows taken out and others put in under numbers of their own.
fn replaced(model: &AnyModel, rows: &dyn RowStore, gone: &[RowId], new: &Rows) -> Result<Outcome<AnyModel>> {
    let out: HashSet<RowId> = gone.iter().copied().collect();
    let retained = rows.all()?.filter(|id| !out.contains(&id));
    if retained.is_empty() {
        // Nothing would be left in between, so that there is nothing to go through.
        return Ok(model.amend(rows, new)?);
    }
    let without = model.forget("auto", &Options::default(), rows, gone)?;
    let mut outcome = without.model.learn(&retained, new)?;
    outcome.evidence.method = "amend".into();
    outcome.evidence.forgotten = gone.len();
    outcome.evidence.rows_read += without.evidence.rows_read;
    Ok(outcome)
}

/// A change under way.
struct Change<'a> {
    store: &'a Store,
    /// None in a dry run, which may read but must not write.
    write: bool,
    transaction: Transaction<'a>,
    started: Instant,
    manifest: Manifest,
    encoder: Option<Encoder>,
    /// Rows to overwrite.
    gone: Vec<Leaver>,
    dropped: usize,
    /// Words and levels of new rows that the model has no feature for.
    unknown: u64,
}

/// A row that goes.
struct Leaver {
    row: RowId,
    id: String,
    subject: Option<String>,
    /// Whether its id must not come back.
    forgotten: bool,
}

impl<'a> Change<'a> {
    fn begin(engine: &'a Engine, write: bool) -> Result<Self> {
        let store = &engine.store;
        let transaction = store.begin(write)?;
        let started = Instant::now();
        let Snapshot { manifest, encoder } = engine.snapshot()?;
        Ok(Self {
            store,
            write,
            transaction,
            started,
            manifest,
            encoder,
            gone: Vec::new(),
            dropped: 0,
            unknown: 0,
        })
    }

    fn rows(&self) -> StoreRows<'a> {
        StoreRows::new(self.store, &self.manifest)
    }

    fn directory<T>(
        &self,
        work: impl FnOnce(&Directory<'_>) -> std::result::Result<T, store::Fault>,
    ) -> Result<T> {
        self.store.with(|connection| work(&self.manifest.directory(connection)))
    }

    fn gather(&self, source: &Source, progress: &dyn Progress) -> Result<Batch> {
        ingest::gather(source, &self.manifest.blueprint, self.encoder.as_ref(), Purpose::Learn, progress)
    }

    /// The rows that a request is about.
    fn resolve(&self, who: &Who) -> Result<Vec<RowId>> {
        match who {
            Who::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(|id| id.trim().to_owned()).collect();
                let mut seen = HashSet::new();
                match ids.iter().find(|id| !seen.insert(id.as_str())) {
                    Some(id) => Err(Error::NamedTwice { id: id.clone() }),
                    None if ids.is_empty() => Err(Error::EmptyRequest),
                    None => self.find(&ids),
                }
            }
            Who::Subject { column, value } => {
                if self.manifest.blueprint.subject.as_ref() != Some(column) {
                    let has = self.manifest.blueprint.subject.clone();
                    return Err(Error::SubjectColumn { asked: column.clone(), has });
                }
                let rows = self.directory(|directory| directory.of_subject(value.trim()))?;
                if rows.is_empty() {
                    return Err(Error::UnknownSubject { column: column.clone(), value: value.clone() });
                }
                Ok(rows.into_iter().map(RowId).collect())
            }
        }
    }

    /// The numbers of these rows, all of which must be here.
    fn find(&self, ids: &[String]) -> Result<Vec<RowId>> {
        let found = self.directory(|directory| directory.find(ids))?;
        let mut rows = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(found) {
            let Some(row) = row else {
                return Err(match self.directory(|directory| directory.forgotten(id))? {
                    Some(at) => Error::WasForgotten { id: id.clone(), on: time::date(&at).into() },
                    None => {
                        let by_position = self.manifest.blueprint.id.is_none();
                        let positions = by_position.then_some(self.manifest.next_position);
                        Error::UnknownRow { id: id.clone(), positions }
                    }
                });
            };
            rows.push(RowId(row));
        }
        Ok(rows)
    }

    /// Rows to learn must be new, and must not be rows that had to go.
    fn check_new(&self, batch: &Batch) -> Result<()> {
        let found = self.directory(|directory| directory.find(&batch.ids))?;
        for ((id, row), &line) in batch.ids.iter().zip(found).zip(&batch.lines) {
            if row.is_some() {
                return Err(Error::AlreadyThere { id: id.clone(), line });
            }
            if let Some(at) = self.directory(|directory| directory.forgotten(id))? {
                return Err(Error::ComesBack { id: id.clone(), on: time::date(&at).into(), line });
            }
        }
        Ok(())
    }

    /// Notes that rows leave: their words, their classes, and where they lie.
    fn take_out(&mut self, gone: &[RowId], forgotten: bool) -> Result<()> {
        let rows = self.rows();
        for &row in gone {
            let stored = rows.read(row.0).map_err(|fault| fault.at(self.store.path()))?;
            let stored = stored.ok_or(efface::Error::UnknownRow(row))?;
            if let Some(encoder) = &mut self.encoder {
                self.dropped += encoder.forget_row(&stored.features.as_ref().entries()).len();
            }
            self.manifest.blueprint.count(&stored.targets, false);
            self.gone.push(Leaver { row, id: stored.id, subject: stored.subject, forgotten });
        }
        Ok(())
    }

    /// Notes that rows come.
    fn put_in(&mut self, new: &Rows) {
        for row in new.iter() {
            if let Some(encoder) = &mut self.encoder {
                encoder.learn_row(&row.features.entries());
            }
            self.manifest.blueprint.count(row.targets, true);
        }
    }

    /// Writes all of it and commits, unless this is a dry run.
    fn finish(mut self, outcome: Outcome<AnyModel>, new: Option<(Rows, Named)>) -> Result<Report> {
        let Outcome { mut model, mut evidence } = outcome;
        let state = model::settle(&mut model, &mut evidence)?;
        let manifest = &mut self.manifest;
        manifest.husks += self.gone.len() as u64;
        manifest.forgotten += self.gone.iter().filter(|leaver| leaver.forgotten).count() as u64;
        manifest.erased += self.dropped as u64;
        manifest.generation += 1;
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.changed_at = time::now();
        // The recipe stays the model's, whatever form this change worked in.
        manifest.model = model::head(manifest.model.recipe.clone(), &state, &evidence);
        evidence.not_covered = model::not_covered(manifest, self.encoder.as_ref(), state.scaled());
        if self.unknown > 0 {
            evidence.not_covered.push(format!(
                "{} words or levels of the new rows: they were not there at fit, so this model has no feature for them, \
                 where a new fit might",
                self.unknown
            ));
        }
        if self.write {
            self.write(&state, new)?;
            #[cfg(test)]
            tests::interrupt(self.store)?;
            self.transaction.commit()?;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        Ok(report(evidence, seconds, !self.write, self.dropped))
    }

    fn write(&mut self, state: &State, new: Option<(Rows, Named)>) -> Result<()> {
        let Self { store, manifest, encoder, gone, .. } = self;
        store.with(|connection| {
            let mut directory = manifest.directory(connection);
            for Leaver { row, id, subject, forgotten } in gone.iter() {
                store::rows::erase(connection, row.0)?;
                directory.erase(row.0, id, subject.as_deref())?;
                if *forgotten {
                    directory.remember(id, &manifest.changed_at)?;
                }
            }
            if let Some((rows, names)) = &new {
                let mut buffer = Vec::new();
                for (slot, row) in rows.iter().enumerate() {
                    let (id, subject) = (names.ids[slot].as_str(), names.subject(slot));
                    let row = Outgoing {
                        id,
                        subject,
                        weight: row.weight,
                        targets: row.targets,
                        features: row.features,
                    };
                    // An amended row gets a new number too: it may have another length, and is never moved in place.
                    let number = manifest.next_row;
                    manifest.next_row += 1;
                    store::rows::insert(connection, number, manifest.blueprint.layout, &row, &mut buffer)?;
                    directory.insert(number, id, subject)?;
                }
            }
            (manifest.rows, manifest.tally) = (directory.rows, directory.tally);
            if manifest.husks > manifest.rows {
                store::compact(connection)?;
                manifest.husks = 0;
            }
            manifest.parts = model::save(connection, state, encoder.as_ref())?;
            manifest.save(connection)
        })
    }

    /// Gives the rows in an error the names that the user knows them by.
    fn name(&self, error: Error) -> Error {
        let id = |row: RowId| match self.rows().read(row.0) {
            Ok(Some(stored)) => stored.id,
            _ => format!("number {row}"),
        };
        match error {
            Error::Core(efface::Error::UnknownRow(row)) => Error::UnknownRow { id: id(row), positions: None },
            Error::Core(efface::Error::DuplicateRow(row)) => Error::NamedTwice { id: id(row) },
            Error::Core(efface::Error::Damaged(what)) => {
                Error::Damaged { path: self.store.path().to_owned(), what }
            }
            other => other,
        }
    }
}

fn report(evidence: Evidence, seconds: f64, dry_run: bool, features_dropped: usize) -> Report {
    Report {
        method: evidence.method.clone(),
        claim: evidence.claim.name().into(),
        forgotten: evidence.forgotten,
        learned: evidence.learned,
        rows: evidence.rows,
        bound: evidence.bound,
        seconds,
        dry_run,
        features_dropped,
        evidence,
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
