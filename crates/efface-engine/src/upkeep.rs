//! What is done to a model beside changing its rows: handing out copies, changing keys and policy, settling.

use efface_receipt::{Kind, Label, Outcome};
use serde::Serialize;

use crate::change::Change;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ledger::{self, Entry, copies, key};
use crate::look;
use crate::report::{Exported, Logged};
use crate::store;

/// The most hand-overs of keys in one log: a verifier reads no more.
const MOST_KEYS: usize = 60;

/// Pages of a file that is no trouble to write anew: 256 MiB.
const SMALL: u64 = 1 << 16;

/// When new parameters may be published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReleasePolicy {
    /// Requests that must have come together before an export; 1 for none to wait for.
    pub minimum_batch: u64,
    /// Seconds after which an export waits no longer; 0 for never.
    pub delay_seconds: u64,
    /// The standard deviation of the noise that is added to exported parameters.
    pub noise: Option<f64>,
    /// Requests since the last export.
    pub waiting: u64,
}

/// What a settle did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settled {
    /// Places of forgotten rows that were given back.
    pub husks: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file after.
    pub bytes_after: u64,
    /// The receipt.
    pub receipt: Logged,
}

/// The parameters for other programs. The copy is in the log before it leaves: one that is then not written is listed
/// all the same, one that is written is never missing.
pub(crate) fn export(engine: &Engine, format: &str, destination: Option<&str>) -> Result<Exported> {
    let mut change = Change::begin(engine, true)?;
    let mut parameters = look::parameters_of(&engine.store, &change.manifest, change.encoder())?;
    let now = change.newest();
    let more = change.manifest.policy.held(now);
    if more > 0 {
        return Err(Error::Held { more });
    }
    let warning = change.manifest.policy.warning();
    let stage = change.standing();
    let salt = ledger::salt(&change.manifest);
    let destination = destination.map(|name| salt.commit(Label::RowId, name.as_bytes()));
    let release = change.manifest.policy.release();
    if let Some(deviation) = release.noise {
        parameters.blur(deviation)?;
    }
    change.manifest.policy.released();
    let number = engine
        .store
        .with(|connection| copies::add(connection, format, destination.as_ref(), &stage.after.1, now))?;
    let mut entry = Entry::new(Kind::Export, Outcome::Done, change.received_at());
    entry.release = Some(release);
    let stage = ledger::Stage { copies: engine.store.with(copies::list)?, ..stage };
    let receipt = change.note_down(&stage, entry)?;
    Ok(Exported { parameters, number, warning, receipt })
}

/// Another key signs from here on.
pub(crate) fn rotate(engine: &Engine) -> Result<(String, Logged)> {
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
    key::add(path, &secret)?;
    let mut entry = Entry::new(Kind::KeyRotation, Outcome::Done, change.received_at());
    entry.next_key = Some(public.clone());
    let stage = change.standing();
    let receipt = change.hand_over(&stage, entry, &secret)?;
    // The old key is good for nothing any more. If it cannot be removed now, the next rotation does it.
    let _ = key::keep_only(path, &secret);
    Ok((public, receipt))
}

pub(crate) fn policy(engine: &Engine) -> Result<ReleasePolicy> {
    let _transaction = engine.store.begin(false)?;
    let ledger::Policy { minimum_batch, delay_seconds, noise, waiting, .. } =
        engine.snapshot()?.manifest.policy;
    Ok(ReleasePolicy { minimum_batch, delay_seconds, noise, waiting })
}

pub(crate) fn set_policy(
    engine: &Engine,
    minimum_batch: Option<u64>,
    delay_seconds: Option<u64>,
    noise: Option<f64>,
) -> Result<ReleasePolicy> {
    if minimum_batch == Some(0) {
        return Err(Error::request("a batch of 0 is no batch", "1 lets every export go at once"));
    }
    if noise.is_some_and(|noise| !noise.is_finite() || noise < 0.0) {
        return Err(Error::request(
            "noise is a standard deviation: a finite number, 0 or more",
            "0 means none",
        ));
    }
    let mut change = Change::begin(engine, true)?;
    let policy = &mut change.manifest.policy;
    policy.minimum_batch = minimum_batch.unwrap_or(policy.minimum_batch);
    policy.delay_seconds = delay_seconds.unwrap_or(policy.delay_seconds);
    if let Some(noise) = noise {
        policy.noise = (noise > 0.0).then_some(noise);
    }
    change.save()?;
    self::policy(engine)
}

/// Gives back the places of forgotten rows. Their bytes are zeros already, and nothing waits in the curvature: a change
/// settles before it commits.
pub(crate) fn settle(engine: &Engine) -> Result<Settled> {
    let path = engine.store.path();
    let size = || std::fs::metadata(path).map(|found| found.len()).map_err(|cause| Error::io(path, cause));
    let bytes_before = size()?;
    let mut change = Change::begin(engine, true)?;
    let husks = std::mem::take(&mut change.manifest.husks);
    if husks > 0 {
        engine.store.with(store::compact)?;
    }
    let mut entry = Entry::new(Kind::Settle, Outcome::Done, change.received_at());
    entry.reason = Some(format!("{husks} places of forgotten rows were given back"));
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
    Ok(Settled { husks, bytes_before, bytes_after: size()?, receipt })
}
