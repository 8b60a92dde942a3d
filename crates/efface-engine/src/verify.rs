//! Whether a model file is what its log says: everything that can be recomputed from what is stored, is.

use std::collections::BTreeSet;

use efface::{AnyModel, Options};
use efface_receipt::{Claim, Hash, KeyRing, LogReplay, PublicKey, Receipt, RequestId, training_set};
use rusqlite::Connection;
use serde::Serialize;

use crate::engine::{Engine, Snapshot};
use crate::error::{Error, Result};
use crate::ledger::{self, Journal, Ledger, requests};
use crate::model;
use crate::store::{self, Fault, Manifest, Shape, StoreRows, damaged, parts};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub check: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// What was found.
    pub found: String,
}

type Found = std::result::Result<String, Fault>;

/// Checks a model file. `key` is the public key that the log began with, as the caller knows it; without one the file's
/// own is taken, which shows that the file agrees with itself and no more.
pub(crate) fn model(engine: &Engine, key: Option<&PublicKey>) -> Result<Vec<Check>> {
    let transaction = engine.store.begin(false)?;
    let Snapshot { manifest, .. } = engine.snapshot()?;
    let ledger = ledger::of(&manifest, engine.store.path())?;
    let mut checks = Vec::new();
    let mut last = None;
    let mut note = |check, found: Found| -> bool {
        let (passed, found) = match found {
            Ok(found) => (true, found),
            Err(Fault::Damaged(what)) => (false, what),
            Err(Fault::Sql(error)) => (false, error.to_string()),
        };
        checks.push(Check { check, passed, found });
        passed
    };
    let whole = |work: &mut dyn FnMut(&Connection) -> Found| engine.store.raw(work);
    note("file", whole(&mut |connection| file(connection)));
    note(
        "log",
        whole(&mut |connection| {
            let (told, receipt) = log(connection, ledger, key)?;
            last = Some(receipt);
            Ok(told)
        }),
    );
    note("parameters", whole(&mut |connection| arrays(connection, &manifest, last.as_ref())));
    note("training set", whole(&mut |connection| set(connection, &manifest, ledger, last.as_ref())));
    note("requests", whole(&mut |connection| asked(connection)));
    note("suppression list", whole(&mut |connection| suppressed(connection, &manifest)));
    let measured = bound(engine, &manifest, last.as_ref());
    note("bound", measured.map_err(|error| Fault::Damaged(error.to_string())));
    drop(transaction);
    Ok(checks)
}

/// SQLite's own look at its pages.
fn file(connection: &Connection) -> Found {
    let told: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if told == "ok" { Ok("pages and tables are whole".into()) } else { damaged(told) }
}

/// Every receipt from the first: signatures, places, hand-overs, and that each starts where the last one ended.
fn log(
    connection: &Connection,
    ledger: &Ledger,
    key: Option<&PublicKey>,
) -> std::result::Result<(String, Receipt), Fault> {
    let first = match key {
        Some(key) => key.clone(),
        None => PublicKey::parse(&ledger.first_key)?,
    };
    let mut replay = LogReplay::new(&KeyRing::from(first));
    let mut last = None;
    for sequence in 0..ledger.size {
        last = Some(replay.push(&ledger::leaf(connection, sequence)?)?.receipt);
    }
    let stored: u64 = connection.query_row(r#"SELECT count(*) FROM "receipts""#, [], |row| row.get(0))?;
    if stored != ledger.size {
        return damaged(format!("it holds {stored} receipts where {} belong", ledger.size));
    }
    replay.finish(&ledger::checkpoint(connection)?)?;
    if *replay.frontier() != Journal(connection).frontier(ledger)? {
        return damaged("its stored nodes are not those of its receipts");
    }
    let Some(last) = last else { return damaged("its log is empty") };
    Ok((format!("{} receipts, each signed and in its place; the head is signed", ledger.size), last))
}

/// Arrays match their checksums, and those of the parameters the last receipt.
fn arrays(connection: &Connection, manifest: &Manifest, last: Option<&Receipt>) -> Found {
    for part in &manifest.parts {
        parts::check(connection, &manifest.parts, part.name())?;
    }
    let hash = ledger::parameters(&manifest.parts);
    match last {
        Some(last) if last.parameters.after == hash => Ok(format!("{hash}, as the last receipt says")),
        Some(_) => damaged("they are not those of the last receipt"),
        None => damaged("there is no receipt to compare them with"),
    }
}

/// Every row is read, its commitment made anew, and the tree over all of them built from nothing.
fn set(connection: &Connection, manifest: &Manifest, ledger: &Ledger, last: Option<&Receipt>) -> Found {
    let salt = ledger::salt(manifest);
    let mut leaves: Vec<Hash> = Vec::new();
    store::rows::each(connection, Shape::of(&manifest.blueprint), |_, row, content| {
        leaves.push(salt.row(row.id.as_bytes(), &content));
        Ok(())
    })?;
    leaves.sort();
    let mut statement = connection.prepare(r#"SELECT commitment FROM "members" ORDER BY commitment"#)?;
    let mut stored = statement.query([])?;
    let mut at = 0;
    while let Some(entry) = stored.next()? {
        if leaves.get(at) != Some(&Hash(entry.get(0)?)) {
            return damaged("its list of commitments is not that of its rows");
        }
        at += 1;
    }
    let state = training_set::state_of(&leaves)?;
    let listed = manifest.directory(connection).look_up(&[], &[]);
    listed?;
    match last {
        Some(last) if last.training_set.after == state && ledger.set == state && at == leaves.len() => {
            Ok(format!("{} rows under root {}, as the last receipt says", state.count, state.root))
        }
        _ => damaged("its rows are not those of the last receipt"),
    }
}

/// Every request that was answered has a receipt of its own.
fn asked(connection: &Connection) -> Found {
    let mut statement = connection.prepare(r#"SELECT commitment, sequence FROM "requests""#)?;
    let entries = statement.query_map([], |row| Ok((Hash(row.get(0)?), row.get::<_, u64>(1)?)))?;
    let mut seen = BTreeSet::new();
    for entry in entries {
        let (name, sequence) = entry?;
        let signed = efface_receipt::Signed::parse(&ledger::leaf(connection, sequence)?)?;
        let answered = signed.receipt.request_id == Some(RequestId::Committed(name));
        if !answered || !seen.insert(sequence) || requests::find(connection, &name)?.is_none() {
            return damaged(format!("a request points at receipt {sequence}, which answers another"));
        }
    }
    Ok(format!("{} answered, one receipt each", seen.len()))
}

fn suppressed(connection: &Connection, manifest: &Manifest) -> Found {
    let listed = manifest.directory(connection).ever_forgotten()? as u64;
    if listed != manifest.forgotten {
        return damaged(format!("it lists {listed} rows where {} were forgotten", manifest.forgotten));
    }
    Ok(format!("{listed} rows that must not come back"))
}

/// The distance bound, told anew by the stored model.
fn bound(engine: &Engine, manifest: &Manifest, last: Option<&Receipt>) -> Result<String> {
    let rows = StoreRows::new(&engine.store, manifest);
    let found: AnyModel = model::load(&engine.store, manifest, &rows)?;
    let evidence = found.forget("auto", &Options::default(), &rows, &[])?.evidence;
    let told = evidence.relative_bound;
    let recorded = manifest.model.relative_bound.unwrap_or(f64::INFINITY);
    let allowed = match last.and_then(|last| last.claim.as_ref()) {
        Some(Claim::Exact { tolerance }) => recorded.max(*tolerance),
        _ => recorded,
    };
    // A bound that is measured in another order rounds otherwise.
    if told <= allowed * (1.0 + 1e-6) || told <= 1e-12 || allowed.is_infinite() {
        return Ok(format!("{told:.1e} relative to retraining; recorded {recorded:.1e}"));
    }
    let what = format!("the bound is {told:.1e}, and {allowed:.1e} was recorded");
    Err(Error::Damaged { path: engine.store.path().to_owned(), what })
}
