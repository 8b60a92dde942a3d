//! What is done to a model beside changing its rows: handing out copies, changing keys, settling, noting
//! what tests found.

use efface_receipt::{Audit, Kind, Label, MAX_LIST, Outcome};
use serde::Serialize;

use crate::clock;
use crate::codec::manifest::Manifest;
use crate::codec::network::{NetworkInfo, open};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::file;
use crate::ledger::{self, ReceiptDraft, copies, founding, key, noise};
use crate::operations::change::{Change, scrub};
use crate::operations::look;
use crate::operations::network;
use crate::operations::report::{ExportedModel, ReceiptPlace};

/// The most hand-overs of keys in one log: a verifier reads no more.
const MOST_KEYS: usize = 60;

/// Pages of a file that is no trouble to write anew: 256 MiB.
const SMALL: u64 = 1 << 16;

/// What a settle did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettleReport {
    /// Forgotten rows that had waited and were overwritten now.
    pub scrubbed: u64,
    /// Places of forgotten rows that were given back.
    pub husks: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file after.
    pub bytes_after: u64,
    /// The receipt.
    pub receipt: ReceiptPlace,
}

/// The parameters for other programs. The copy is in the log before it leaves: one that is then not written is listed
/// all the same, one that is written is never missing.
pub(crate) fn export(engine: &Engine, format: &str, destination: Option<&str>) -> Result<ExportedModel> {
    let mut change = Change::begin(engine, true)?;
    // A word that only forgotten rows held must not leave with the others.
    let mut entries: Vec<ReceiptDraft> = change.scrub()?.into_iter().collect();
    let mut parameters = look::parameters_of(&engine.store, &change.manifest, change.encoder())?;
    let now = change.newest();
    let more = change.manifest.policy.held(now);
    if more > 0 {
        return Err(Error::Held { more });
    }
    let stage = change.standing();
    let salt = ledger::salt(&change.manifest);
    let destination = destination.map(|name| salt.commit(Label::RowId, name.as_bytes()));
    let moved = change.manifest.policy.moved;
    let mut release = change.manifest.policy.export().map_err(|allowed| Error::Moved { moved, allowed })?;
    let ledger = ledger::of(&change.manifest, engine.store.path())?;
    let version = noise::version(&ledger.origin, &stage.after);
    let sequence = ledger.size + entries.len() as u64;
    let now_with = release.noise.unwrap_or(0.0);
    let account = &mut change.manifest.policy.account;
    account
        .charge(&version, sequence, &mut release)
        .map_err(|before| Error::OtherNoise { before, now_with })?;
    let warning = release.warnings.first().cloned();
    let noise = release.noise.filter(|deviation| *deviation > 0.0);
    if let Some(deviation) = noise {
        let seed = founding::noise_seed(&engine.store, &change.manifest)?;
        parameters.blur(deviation, &mut seed.normals(&version, deviation));
    }
    let file = match open(&engine.store, &change.manifest, engine.encoder_folder())? {
        Some(encoder) => {
            let file = network::export(&encoder, &parameters, format)?;
            let trained = change.manifest.network.as_ref().is_some_and(NetworkInfo::holds_rows);
            if file.is_some() && noise.is_some() && trained {
                let reason = format!(
                    "{format} takes the encoder along, which was trained on rows and gets no noise; json and npz hold the \
                     head alone, and a policy without noise publishes both as they are"
                );
                return Err(efface::Error::Unsupported { method: "export", reason }.into());
            }
            file
        }
        None if format == "onnx" => {
            return Err(Error::request(
                "onnx is for networks, whose encoder goes along",
                "use json, safetensors or npz",
            ));
        }
        None => None,
    };
    change.manifest.policy.released(release.noise);
    let number = engine
        .store
        .with(|connection| copies::add(connection, format, destination.as_ref(), &stage.after.1, now))?;
    let mut entry = ReceiptDraft::new(Kind::Export, Outcome::Done, change.received_at());
    entry.release = Some(release);
    let stage = ledger::ModelTransition { copies: engine.store.with(copies::list)?, ..stage };
    entries.push(entry);
    let receipt = change.note_all(&stage, entries)?;
    Ok(ExportedModel { parameters, file, number, warning, receipt })
}

/// Another key signs from here on.
pub(crate) fn rotate(engine: &Engine) -> Result<(String, ReceiptPlace)> {
    let change = Change::begin(engine, true)?;
    let path = engine.store.path();
    let ledger = ledger::of(&change.manifest, path)?;
    if ledger.rotations.len() >= MOST_KEYS {
        let hint = "fit the model again to start a new log";
        return Err(Error::request(format!("the key of this log was replaced {MOST_KEYS} times"), hint));
    }
    let secret = key::draw(&ledger.origin)?;
    let public = secret.public().to_string();
    // On disk before the model asks for it.
    key::add(path, &secret, None)?;
    let mut entry = ReceiptDraft::new(Kind::KeyRotation, Outcome::Done, change.received_at());
    entry.next_key = Some(public.clone());
    let stage = change.standing();
    let receipt = change.hand_over(&stage, entry, &secret)?;
    // The old key is good for nothing any more. If it cannot be removed now, the next rotation does it.
    let _ = key::keep_only(path, &secret, None);
    Ok((public, receipt))
}

/// What tests of the model found, as a receipt of its own.
pub(crate) fn record_audit(engine: &Engine, results: &[Audit]) -> Result<ReceiptPlace> {
    if results.is_empty() || results.len() > MAX_LIST {
        return Err(Error::request(format!("an audit has 1 to {MAX_LIST} results"), "record each test once"));
    }
    let named = |name: &str| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/'))
    };
    if !results.iter().all(|result| named(&result.test)) {
        return Err(Error::request(
            "the name of a test has 1 to 64 letters, digits, `_`, `-`, `.` or `/`",
            "a receipt holds names and numbers of tests, and nothing of the rows they were run on",
        ));
    }
    if results.iter().flat_map(|r| [r.value, r.threshold]).flatten().any(|number| !number.is_finite()) {
        let hint = "leave out a value that could not be measured";
        return Err(Error::request("a result of a test is a finite number", hint));
    }
    let change = Change::begin(engine, true)?;
    let mut entry = ReceiptDraft::new(Kind::Audit, Outcome::Done, change.received_at());
    entry.audit = results.to_vec();
    let stage = change.standing();
    change.note_down(&stage, entry)
}

/// Whether rows that wait to be scrubbed are too many or too old.
pub(crate) fn due(manifest: &Manifest) -> bool {
    let Some(waiting) = &manifest.waiting else { return false };
    let policy = &manifest.policy;
    waiting.rows.len() as u64 >= policy.settle_after
        || scrub::old(waiting.since, clock::milliseconds(), policy.settle_within_seconds)
}

/// Scrubs the rows that wait for it, and no more; None when there are none.
pub(crate) fn settle_waiting(engine: &Engine) -> Result<Option<ReceiptPlace>> {
    let mut change = Change::begin(engine, true)?;
    let Some(entry) = change.scrub()? else { return Ok(None) };
    let stage = change.standing();
    change.note_down(&stage, entry).map(Some)
}

/// Scrubs the rows that wait for it, and gives back the places of forgotten rows.
pub(crate) fn settle(engine: &Engine) -> Result<SettleReport> {
    let path = engine.store.path();
    let size = || std::fs::metadata(path).map(|found| found.len()).map_err(|cause| Error::io(path, cause));
    let bytes_before = size()?;
    let mut change = Change::begin(engine, true)?;
    let scrubbed = change.manifest.waiting.as_ref().map_or(0, |waiting| waiting.rows.len() as u64);
    let before = change.manifest.husks + scrubbed;
    let entry = change.scrub()?;
    if std::mem::take(&mut change.manifest.husks) > 0 {
        engine.store.with(file::compact)?;
    }
    let mut entry =
        entry.unwrap_or_else(|| ReceiptDraft::new(Kind::Settle, Outcome::Done, change.received_at()));
    entry.reason = Some(format!("{before} places of forgotten rows were given back"));
    let stage = change.standing();
    let receipt = change.note_down(&stage, entry)?;
    // Pages that are free are cleared already. Giving them back writes the file anew by way of memory, so that nothing
    // lies in a temporary file; a large file is only worth it where much of it is free.
    engine.store.with(|connection| {
        let pragma =
            |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u64>(0));
        let (free, pages) = (pragma("freelist_count")?, pragma("page_count")?);
        if free > 0 && (pages < SMALL || free > pages / 4) {
            connection.execute_batch("VACUUM")?;
        }
        Ok(())
    })?;
    Ok(SettleReport { scrubbed, husks: before, bytes_before, bytes_after: size()?, receipt })
}
