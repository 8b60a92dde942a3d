//! The only place that replaces a live model. A change reads the model, lets a method work on it, and writes rows,
//! parameters, curvature, words and the list of what was forgotten in one transaction: after a failure or a crash the
//! file is as it was before.

pub(crate) mod forget;
mod network;
pub(crate) mod scrub;
mod told;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use efface::features::Encoder;
use efface::{Amend, Evidence, Method, NotCovered, Outcome, RowId, RowStore, Rows};
use efface_io::Source;
use efface_receipt::{CopyKind, CopyState, Hash, Kind, KnownCopy, SecretKey, Settled, Signed, Time};

use crate::clock;
use crate::codec::manifest::{Manifest, ScrubQueue};
use crate::codec::model::{self, Live, State};
use crate::engine::{Engine, ModelSnapshot};
use crate::error::{Error, Result};
use crate::file::{self, ModelStore, OutgoingRow, RowDirectory, RowShape, StoreRows, StoreTransaction};
use crate::ledger::{self, MemberTree, MethodFindings, ModelTransition, ReceiptDraft, ReceiptLog, copies};
use crate::operations::ingest::{RowBatch, RowNames};
use crate::operations::look;
use crate::operations::network::NetworkRenewal;
use crate::operations::report::{ChangeReport, ReceiptPlace};
use crate::progress::Progress;
use scrub::DeferredModel;
use told::{empty, logged, report};

pub(crate) fn learn(engine: &Engine, source: &Source, progress: &dyn Progress) -> Result<ChangeReport> {
    let mut change = Change::begin(engine, true)?;
    let stage = change.stage()?;
    let mut batch = change.gather(source, stage.as_ref(), progress)?;
    change.unknown = batch.unknown;
    batch.number(change.manifest.next_position);
    change.check_new(&batch)?;
    let numbers = (change.manifest.next_row..).take(batch.len()).map(RowId).collect();
    let (new, names, words) = change.encoded(batch, numbers, stage.as_ref(), progress)?;
    change.words = words;
    let rows = change.rows();
    let outcome =
        change.model().and_then(|model| Ok(model.learn(&rows, &new)?)).map_err(|error| change.name(error))?;
    change.put_in(&new);
    change.manifest.next_position += new.len() as u64;
    change.finish(Kind::Learn, outcome, (new, names))
}

pub(crate) fn amend(engine: &Engine, source: &Source, progress: &dyn Progress) -> Result<ChangeReport> {
    let mut change = Change::begin(engine, true)?;
    if change.manifest.blueprint.id.is_none() {
        return Err(Error::NoIds);
    }
    let stage = change.stage()?;
    let batch = change.gather(source, stage.as_ref(), progress)?;
    change.unknown = batch.unknown;
    let gone = change.find(&batch.ids)?;
    // An amended row gets a new number in the file. A model that goes by numbers must hear of it.
    let renumbered = model::knows_numbers(&change.manifest);
    let numbers = match renumbered {
        true => (change.manifest.next_row..).take(batch.len()).map(RowId).collect(),
        false => gone.clone(),
    };
    let (new, names, words) = change.encoded(batch, numbers, stage.as_ref(), progress)?;
    change.words = words;
    let rows = change.rows();
    let outcome = change
        .model()
        .and_then(|model| match renumbered {
            true => replaced(&model, &rows, &gone, &new),
            false => Ok(model.amend(&rows, &new)?),
        })
        .map_err(|error| change.name(error))?;
    // In this order a word that is in the old and in the new row keeps its name.
    change.put_in(&new);
    change.take_out(&gone, false)?;
    change.finish(Kind::Amend, outcome, (new, names))
}

/// The model with rows taken out and others put in under numbers of their own.
fn replaced(model: &Live, rows: &dyn RowStore, gone: &[RowId], new: &Rows) -> Result<Outcome<Live>> {
    let out: HashSet<RowId> = gone.iter().copied().collect();
    let retained = rows.all()?.filter(|id| !out.contains(&id));
    if retained.is_empty() {
        // Nothing would be left in between, so that there is nothing to go through.
        return Ok(model.amend(rows, new)?);
    }
    let without = model.forget(&Method::default(), rows, gone)?;
    let mut outcome = without.model.learn(&retained, new)?;
    outcome.evidence.method = "amend".into();
    outcome.evidence.forgotten = gone.len();
    outcome.evidence.rows_read += without.evidence.rows_read;
    Ok(outcome)
}

/// A change under way.
pub(crate) struct Change<'a> {
    engine: &'a Engine,
    store: &'a ModelStore,
    transaction: StoreTransaction<'a>,
    started: Instant,
    received_at: Time,
    pub(crate) manifest: Manifest,
    encoder: Option<Encoder>,
    /// The key that signs; None in a dry run, which may read but must not write.
    secret: Option<SecretKey>,
    /// Rows to overwrite.
    gone: Vec<LeavingRow>,
    dropped: usize,
    /// Words and levels of new rows that the model has no feature for.
    unknown: u64,
    /// The model as a scrub left it, for the next change.
    settled: Option<Live>,
    /// The words of new rows, where they are kept beside their features.
    words: Vec<Vec<u32>>,
    /// A whole network that was trained anew or further.
    renewal: Option<NetworkRenewal>,
}

/// A row that goes.
struct LeavingRow {
    row: RowId,
    id: String,
    subject: Option<String>,
    /// Whether its id must not come back.
    forgotten: bool,
    /// Its leaf in the training set.
    commitment: Hash,
}

/// What a change did to the model, before anybody signed for it.
struct Worked {
    evidence: Evidence,
    model: Live,
    /// The rows that came, as leaves of the training set.
    come: Vec<Hash>,
    before: (efface_receipt::SetState, Hash),
    withdrawn: usize,
    /// Whether the rows that left were overwritten.
    scrubbed: bool,
    /// Receipts whose rows had waited and are overwritten now.
    settles: Option<Settled>,
}

impl<'a> Change<'a> {
    pub(crate) fn begin(engine: &'a Engine, write: bool) -> Result<Self> {
        let store = &engine.store;
        let transaction = store.begin(write)?;
        let started = Instant::now();
        let ModelSnapshot { mut manifest, encoder } = engine.snapshot()?;
        let secret = if write { Some(ledger::founding::signer(store, &mut manifest)?) } else { None };
        let received_at = match &mut manifest.ledger {
            Some(ledger) => ledger.now(),
            None => ledger::at(clock::milliseconds()),
        };
        Ok(Self {
            engine,
            store,
            transaction,
            started,
            received_at,
            manifest,
            encoder,
            secret,
            gone: Vec::new(),
            dropped: 0,
            unknown: 0,
            settled: None,
            words: Vec::new(),
            renewal: None,
        })
    }

    fn write(&self) -> bool {
        self.secret.is_some()
    }

    /// The model, ready to change: the one that the last change of this engine left, or else from the file.
    pub(crate) fn model(&self) -> Result<Arc<Live>> {
        if let Some(ledger) = &self.manifest.ledger
            && let Some(model) = self.engine.remembered(&ledger.root)
        {
            return Ok(model);
        }
        Ok(Arc::new(model::load(self.store, &self.manifest, &self.rows())?))
    }

    pub(crate) fn rows(&self) -> StoreRows<'a> {
        StoreRows::new(self.store, &self.manifest)
    }

    fn directory<T>(
        &self,
        work: impl FnOnce(&RowDirectory<'_>) -> std::result::Result<T, file::FileFault>,
    ) -> Result<T> {
        self.store.with(|connection| work(&self.manifest.directory(connection)))
    }

    /// For each id, whether a row of it is here.
    pub(crate) fn are_here(&self, ids: &[String]) -> Result<Vec<bool>> {
        let found = self.directory(|directory| directory.find(ids))?;
        Ok(found.iter().map(Option::is_some).collect())
    }

    /// The id of a row; None when it is not in the file.
    pub(crate) fn id_of(&self, row: RowId) -> Result<Option<String>> {
        let stored = self.rows().read(row.0).map_err(|fault| fault.at(self.store.path()))?;
        Ok(stored.map(|stored| stored.id))
    }

    /// What a forget cannot take out of the model as it is.
    pub(crate) fn not_covered(&self) -> Result<Vec<NotCovered>> {
        let scaled = self.store.with(|connection| model::scaled(connection, &self.manifest))?;
        Ok(model::not_covered(&self.manifest, self.encoder.as_ref(), scaled))
    }

    /// The numbers of these rows, all of which must be here.
    fn find(&self, ids: &[String]) -> Result<Vec<RowId>> {
        let found = self.directory(|directory| directory.find(ids))?;
        let mut rows = Vec::with_capacity(ids.len());
        for (id, row) in ids.iter().zip(found) {
            let Some(row) = row else { return Err(self.absent(id)?) };
            rows.push(RowId(row));
        }
        Ok(rows)
    }

    /// Why a row is not here.
    fn absent(&self, id: &str) -> Result<Error> {
        let id = id.to_owned();
        Ok(match self.directory(|directory| directory.forgotten(&id))? {
            Some(at) => Error::WasForgotten { id, on: clock::date(&at).into() },
            None => {
                let by_position = self.manifest.blueprint.id.is_none();
                Error::UnknownRow { id, positions: by_position.then_some(self.manifest.next_position) }
            }
        })
    }

    /// Rows to learn must be new, and must not be rows that had to go.
    fn check_new(&self, batch: &RowBatch) -> Result<()> {
        let found = self.directory(|directory| directory.find(&batch.ids))?;
        for ((id, row), &line) in batch.ids.iter().zip(found).zip(&batch.lines) {
            if row.is_some() {
                return Err(Error::AlreadyThere { id: id.clone(), line });
            }
            if let Some(at) = self.directory(|directory| directory.forgotten(id))? {
                return Err(Error::ComesBack { id: id.clone(), on: clock::date(&at).into(), line });
            }
        }
        Ok(())
    }

    /// Notes that rows leave: their words, their classes, and where they lie.
    fn take_out(&mut self, gone: &[RowId], forgotten: bool) -> Result<()> {
        let rows = self.rows();
        let salt = ledger::salt(&self.manifest);
        for &row in gone {
            let stored = rows.read_hashed(row.0).map_err(|fault| fault.at(self.store.path()))?;
            let (stored, content) = stored.ok_or(efface::Error::UnknownRow(row))?;
            let commitment = salt.row(stored.id.as_bytes(), &content);
            if let Some(encoder) = &mut self.encoder {
                self.dropped += encoder.forget_row(&stored.features.as_ref().entries()).len();
            }
            self.manifest.blueprint.count(&stored.targets, false);
            self.gone.push(LeavingRow { row, id: stored.id, subject: stored.subject, forgotten, commitment });
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

    /// Writes all of it with a receipt, and commits.
    fn finish(mut self, kind: Kind, outcome: Outcome<Live>, new: (Rows, RowNames)) -> Result<ChangeReport> {
        let worked = self.work(outcome, Some(new), None)?;
        let mut entry = ReceiptDraft::new(kind, efface_receipt::Outcome::Done, self.received_at);
        entry.gone = self.gone.iter().map(|leaver| leaver.commitment).collect();
        entry.come = worked.come.clone();
        entry.findings = Some(self.findings(&worked.evidence, &Method::default()));
        // What a row said before can be read off two versions like a row that left.
        if kind == Kind::Amend
            && let Some(ledger) = &self.manifest.ledger
        {
            let newest = ledger.newest;
            self.manifest.policy.count(1, newest);
            entry.release = Some(self.manifest.policy.release());
        }
        let kept = (worked.evidence.clone(), self.dropped, worked.withdrawn);
        let signed = self.sign(&worked, vec![entry])?;
        let started = self.started;
        self.commit(worked.model)?;
        let mut report = report(kept.0, started.elapsed().as_secs_f64(), false, kept.1);
        report.withdrawn = kept.2;
        report.receipt = signed.first().map(logged);
        Ok(report)
    }

    fn findings(&self, evidence: &Evidence, method: &Method) -> MethodFindings {
        MethodFindings::new(evidence, &self.manifest.model.recipe, method)
            .with_network(self.manifest.network.as_ref())
    }

    /// Settles the model and, unless this is a dry run, writes it and the rows. With `later`, the number of receipts to
    /// come, the model is stored with its old sums and the rows are left to be scrubbed, where policy and model allow it.
    fn work(
        &mut self,
        outcome: Outcome<Live>,
        new: Option<(Rows, RowNames)>,
        later: Option<u64>,
    ) -> Result<Worked> {
        let Outcome { mut model, mut evidence } = outcome;
        let quick = later.and_then(|receipts| self.defer(&model, &mut evidence, receipts));
        let state = match &quick {
            Some(_) => None,
            None => Some(model::settle(&mut model, &mut evidence)?),
        };
        if let Some(renewal) = &self.renewal {
            renewal.limit(&mut evidence);
        }
        let published = self.write() && self.manifest.policy.published;
        let old = if published { look::numbers(self.store, &self.manifest)? } else { Vec::new() };
        let manifest = &mut self.manifest;
        let old_set = manifest.ledger.as_ref().map(|ledger| ledger.set);
        let before = (old_set.unwrap_or_else(empty), ledger::parameters(&manifest.parts));
        manifest.forgotten += self.gone.iter().filter(|leaver| leaver.forgotten).count() as u64;
        manifest.erased += self.dropped as u64;
        manifest.generation += 1;
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.changed_at = clock::stamp(self.received_at.unix_milliseconds());
        // The recipe stays the model's, whatever form this change worked in.
        let details = match (&state, &quick) {
            (Some(state), _) => state.details(),
            (None, quick) => {
                quick.as_ref().map_or_else(|| manifest.model.details.clone(), |quick| quick.details.clone())
            }
        };
        manifest.model = model::head(manifest.model.recipe.clone(), details, &evidence);
        let scaled = match &state {
            Some(state) => state.scaled(),
            None => self.store.with(|connection| model::scaled(connection, manifest))?,
        };
        let scrubbing = if quick.is_some() { None } else { manifest.waiting.take() };
        evidence.not_covered = model::not_covered(manifest, self.encoder.as_ref(), scaled);
        if self.renewal.is_some() || self.gone.is_empty() {
            // The encoder owes these rows nothing: it was trained without them, or before they came. A method that trained it
            // further says what it left in words of its own.
            evidence.not_covered.retain(|what| *what != NotCovered::EncoderTraining);
        }
        if self.unknown > 0 {
            evidence.not_covered.push(NotCovered::UnknownNames { names: self.unknown as usize });
        }
        let (mut come, mut withdrawn) = (Vec::new(), 0);
        if self.write() {
            if let Some(waiting) = &scrubbing {
                self.overwrite(&waiting.rows)?;
            }
            (come, withdrawn) = self.put_down(state.as_ref(), quick.as_ref(), new)?;
        }
        if published {
            let new = look::numbers(self.store, &self.manifest)?;
            let distance = old.iter().zip(&new).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            self.manifest.policy.travel(if old.len() == new.len() { distance } else { f64::MAX });
        }
        let settles = scrubbing.map(|ScrubQueue { first, last, .. }| Settled { first, last });
        Ok(Worked { evidence, model, come, before, withdrawn, scrubbed: quick.is_none(), settles })
    }

    /// Rows, model and training set go into the file; gives the leaves of the new rows and how many exports are
    /// withdrawn.
    fn put_down(
        &mut self,
        state: Option<&State>,
        quick: Option<&DeferredModel>,
        new: Option<(Rows, RowNames)>,
    ) -> Result<(Vec<Hash>, usize)> {
        let salt = ledger::salt(&self.manifest);
        let renewal = self.renewal.take();
        let Self { store, manifest, encoder, gone, words, .. } = self;
        store.with(|connection| {
            let mut directory = manifest.directory(connection);
            for LeavingRow { row, id, subject, forgotten, .. } in gone.iter() {
                if state.is_some() {
                    file::rows::erase(connection, row.0)?;
                    manifest.husks += 1;
                }
                directory.erase(row.0, id, subject.as_deref())?;
                if *forgotten {
                    directory.remember(id, &manifest.changed_at)?;
                }
            }
            let mut come = Vec::new();
            if let Some((rows, names)) = &new {
                let mut buffer = Vec::new();
                for (slot, row) in rows.iter().enumerate() {
                    let (id, subject) = (names.ids[slot].as_str(), names.subject(slot));
                    let row = OutgoingRow {
                        id,
                        subject,
                        weight: row.weight,
                        targets: row.targets,
                        words: words.get(slot).map_or(&[][..], Vec::as_slice),
                        features: row.features,
                    };
                    // An amended row gets a new number too: it may have another length, and is never moved in place.
                    let number = manifest.next_row;
                    manifest.next_row += 1;
                    let shape = RowShape::of(&manifest.blueprint);
                    let content = file::rows::insert(connection, number, shape, &row, &mut buffer)?;
                    come.push(salt.row(id.as_bytes(), &content));
                    directory.insert(number, id, subject)?;
                }
            }
            (manifest.rows, manifest.tally, manifest.seal) =
                (directory.rows, directory.tally, directory.seal);
            match (state, quick) {
                (Some(state), _) => {
                    if manifest.husks > manifest.rows {
                        file::compact(connection)?;
                        manifest.husks = 0;
                    }
                    if let Some(renewal) = renewal {
                        renewal.put_down(connection, manifest)?;
                    }
                    manifest.parts = model::save(connection, state, encoder.as_ref(), &manifest.parts)?;
                }
                (None, Some(quick)) => {
                    file::parts::replace(connection, &mut manifest.parts, "theta", &quick.theta)?;
                }
                (None, None) => {}
            }
            let Some(ledger) = &mut manifest.ledger else { return file::damaged("it has no log") };
            let leaves: Vec<Hash> = gone.iter().map(|leaver| leaver.commitment).collect();
            MemberTree(connection).change(ledger, &leaves, &come)?;
            // What was exported before still holds the rows as they were.
            let withdrawn = if gone.is_empty() { 0 } else { copies::withdraw(connection, ledger.newest)? };
            Ok((come, withdrawn))
        })
    }

    /// Signs receipts for what was done, and puts down the manifest, which holds the head of the log.
    fn sign(&mut self, worked: &Worked, mut entries: Vec<ReceiptDraft>) -> Result<Vec<Signed>> {
        let gone = !self.gone.is_empty();
        let generation = self.manifest.generation;
        let after = ledger::parameters(&self.manifest.parts);
        let Some(ledger) = &mut self.manifest.ledger else { return Ok(Vec::new()) };
        let now = ledger.now();
        for entry in &mut entries {
            entry.forgotten_at = (!entry.gone.is_empty()).then_some(now);
            entry.scrubbed_at = entry.forgotten_at.filter(|_| worked.scrubbed);
        }
        entries.extend(worked.settles.map(|run| scrub::entry(self.received_at, now, run)));
        let made = ledger::at(std::mem::replace(&mut ledger.version_at, ledger.newest));
        let versions = [(generation - 1, worked.before.1, made, Some(now)), (generation, after, now, None)];
        let versions = versions.map(|(number, parameters, made_at, withdrawn_at)| KnownCopy {
            number,
            kind: CopyKind::Version,
            state: if withdrawn_at.is_some() { CopyState::Withdrawn } else { CopyState::Live },
            parameters,
            made_at,
            withdrawn_at,
        });
        let mut stage =
            ModelTransition { before: Some(worked.before), after: (ledger.set, after), copies: Vec::new() };
        let copies = self.store.with(copies::list)?;
        stage.copies = if gone { copies } else { Vec::new() };
        stage.copies.extend(versions);
        self.append(&stage, entries)
    }

    /// Appends receipts, and puts down the manifest.
    pub(crate) fn append(
        &mut self,
        stage: &ModelTransition,
        entries: Vec<ReceiptDraft>,
    ) -> Result<Vec<Signed>> {
        let Self { store, manifest, secret, .. } = self;
        let (Some(ledger), Some(secret)) = (&mut manifest.ledger, secret) else { return Ok(Vec::new()) };
        let signed =
            store.with(|connection| ReceiptLog(connection).append(ledger, secret, stage, entries))?;
        store.with(|connection| manifest.save(connection))?;
        Ok(signed)
    }

    /// A stage for receipts that change nothing.
    pub(crate) fn standing(&self) -> ModelTransition {
        let set = self.manifest.ledger.as_ref().map_or_else(empty, |ledger| ledger.set);
        let now = (set, ledger::parameters(&self.manifest.parts));
        ModelTransition { before: Some(now), after: now, copies: Vec::new() }
    }

    pub(crate) fn encoder(&self) -> Option<&Encoder> {
        self.encoder.as_ref()
    }

    pub(crate) fn received_at(&self) -> Time {
        self.received_at
    }

    /// The newest time in the log, which is about now.
    pub(crate) fn newest(&self) -> i64 {
        self.manifest.ledger.as_ref().map_or_else(clock::milliseconds, |ledger| ledger.newest)
    }

    /// Writes one receipt for something that leaves the model as it is.
    pub(crate) fn note_down(self, stage: &ModelTransition, entry: ReceiptDraft) -> Result<ReceiptPlace> {
        self.note_all(stage, vec![entry])
    }

    /// Writes receipts for what leaves the model as it is; gives the last.
    pub(crate) fn note_all(
        mut self,
        stage: &ModelTransition,
        entries: Vec<ReceiptDraft>,
    ) -> Result<ReceiptPlace> {
        let signed = self.append(stage, entries)?;
        self.last(&signed)
    }

    /// Writes the receipt of a new key, and has that key sign the head.
    pub(crate) fn hand_over(
        mut self,
        stage: &ModelTransition,
        entry: ReceiptDraft,
        next: &SecretKey,
    ) -> Result<ReceiptPlace> {
        let signed = self.append(stage, vec![entry])?;
        let Self { store, manifest, .. } = &mut self;
        if let (Some(ledger), [signed]) = (&mut manifest.ledger, signed.as_slice()) {
            ledger.rotations.push(signed.receipt.sequence);
            ledger.key = next.public().to_string();
            store.with(|connection| ReceiptLog(connection).seal(ledger, next))?;
        }
        store.with(|connection| manifest.save(connection))?;
        self.last(&signed)
    }

    /// Commits; the model is the same, but the log has another root.
    fn last(self, signed: &[Signed]) -> Result<ReceiptPlace> {
        #[cfg(test)]
        tests::interrupt(self.store)?;
        self.transaction.commit()?;
        if let Some(ledger) = &self.manifest.ledger {
            match self.settled {
                Some(model) => self.engine.remember(ledger.root, model),
                None => self.engine.rename(ledger.root),
            }
        }
        let lost = || Error::Damaged { path: self.store.path().to_owned(), what: "it has no log".into() };
        signed.last().map(logged).ok_or_else(lost)
    }

    /// Makes it all last, and keeps the model for the next change.
    fn commit(self, model: Live) -> Result<()> {
        #[cfg(test)]
        tests::interrupt(self.store)?;
        self.transaction.commit()?;
        if let Some(ledger) = &self.manifest.ledger {
            self.engine.remember(ledger.root, model);
        }
        Ok(())
    }

    /// Gives the rows in an error the names that the user knows them by.
    fn name(&self, error: Error) -> Error {
        let id = |row: RowId| match self.rows().read(row.0) {
            Ok(Some(stored)) => stored.id,
            _ => format!("number {row}"),
        };
        match error {
            // It is on the list of rows: that is where its number comes from.
            Error::Core(efface::Error::UnknownRow(row)) if matches!(self.rows().read(row.0), Ok(None)) => {
                Error::Damaged {
                    path: self.store.path().to_owned(),
                    what: format!("row number {row} is missing"),
                }
            }
            Error::Core(efface::Error::UnknownRow(row)) => Error::UnknownRow { id: id(row), positions: None },
            Error::Core(efface::Error::DuplicateRow(row)) => Error::NamedTwice { id: id(row) },
            Error::Core(efface::Error::Damaged(what)) => {
                Error::Damaged { path: self.store.path().to_owned(), what }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
