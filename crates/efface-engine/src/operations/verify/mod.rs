//! Whether a model file is what its log says: everything that can be recomputed from what is stored, is.

mod rows;

use std::collections::{BTreeMap, BTreeSet};

use efface_receipt::{
    Hash, KeyRing, LogReplay, PublicKey, Receipt, ReceiptClaim, RequestId, RequestKind, SettledRun,
    training_set,
};
use rusqlite::Connection;
use serde::Serialize;

use crate::clock;
use crate::codec::manifest::Manifest;
use crate::error::Result;
use crate::file::{self, FileFault, damaged, parts};
use crate::ledger::{self, LedgerHead, ReceiptLog, requests};
use crate::operations::open_model::{ModelSnapshot, OpenModel};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileCheck {
    /// What.
    pub check: &'static str,
    /// Whether it holds, as far as it could be looked at.
    pub passed: bool,
    /// Whether it could be looked at; where not, `found` says why.
    pub known: bool,
    /// What was found.
    pub found: String,
}

/// What a look found.
pub(crate) enum CheckResult {
    Holds(String),
    /// Nothing can be said, which is not the same as that it holds.
    Unknown(String),
}

type CheckOutcome = std::result::Result<CheckResult, FileFault>;

fn holds(found: impl Into<String>) -> CheckOutcome {
    Ok(CheckResult::Holds(found.into()))
}

/// What the log says, as far as later checks want to know.
struct LogSummary {
    told: String,
    last: Receipt,
    waiting: Option<SettledRun>,
    /// What the last exact claim allows.
    tolerance: Option<f64>,
    /// Rows that were forgotten, by the second in which they were.
    left: BTreeMap<String, u64>,
}

/// Checks a model file. `key` is the public key that the log began with, as the caller knows it; without one the file's
/// own is taken, which shows that the file agrees with itself and no more. `rows` says whether the model is computed from
/// its rows again; None does so where that is no trouble.
pub(crate) fn verify(
    model: &OpenModel,
    key: Option<&PublicKey>,
    rows: Option<bool>,
) -> Result<Vec<FileCheck>> {
    let transaction = model.store.begin(false)?;
    let ModelSnapshot { manifest, .. } = model.snapshot()?;
    let ledger = &manifest.ledger;
    let mut checks = Vec::new();
    let mut left = BTreeMap::new();
    let mut last = None;
    let mut unscrubbed = None;
    let mut tolerance = None;
    let mut note = |check, found: CheckOutcome| {
        let (passed, known, found) = match found {
            Ok(CheckResult::Holds(found)) => (true, true, found),
            Ok(CheckResult::Unknown(why)) => (true, false, why),
            Err(FileFault::Damaged(what)) => (false, true, what),
            Err(FileFault::Sql(error)) => (false, true, error.to_string()),
        };
        checks.push(FileCheck { check, passed, known, found });
    };
    let whole = |work: &mut dyn FnMut(&Connection) -> CheckOutcome| model.store.raw(work);
    note("file", whole(&mut |connection| file(connection)));
    note(
        "log",
        whole(&mut |connection| {
            let log = log(connection, ledger, key)?;
            last = Some(log.last);
            unscrubbed = log.waiting;
            tolerance = log.tolerance;
            left = log.left;
            Ok(CheckResult::Holds(log.told))
        }),
    );
    note("parameters", whole(&mut |connection| arrays(connection, &manifest, last.as_ref())));
    note("training set", whole(&mut |connection| set(connection, &manifest, ledger, last.as_ref())));
    note("scrubbing", whole(&mut |connection| scrubbing(connection, &manifest, unscrubbed)));
    note("requests", whole(&mut |connection| asked(connection)));
    note("suppression list", whole(&mut |connection| suppressed(connection, &manifest, &left)));
    let tolerance = tolerance.unwrap_or(0.0);
    note("bound", rows::bound(model, &manifest, tolerance));
    note("rows", rows::against(model, &manifest, tolerance, rows));
    drop(transaction);
    Ok(checks)
}

/// SQLite's own look at its pages.
fn file(connection: &Connection) -> CheckOutcome {
    let told: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if told == "ok" { holds("pages and tables are whole") } else { damaged(told) }
}

/// Every receipt from the first: signatures, places, hand-overs, and that each starts where the last one ended.
fn log(
    connection: &Connection,
    ledger: &LedgerHead,
    key: Option<&PublicKey>,
) -> std::result::Result<LogSummary, FileFault> {
    let first = match key {
        Some(key) => key.clone(),
        None => PublicKey::parse(&ledger.first_key)?,
    };
    let mut replay = LogReplay::new(&KeyRing::from(first));
    let mut last = None;
    let mut tolerance = None;
    let mut left = BTreeMap::new();
    for sequence in 0..ledger.size {
        let receipt = replay.push(&ledger::leaf(connection, sequence)?)?.receipt;
        if receipt.kind == RequestKind::Forget && receipt.rows.removed > 0 {
            let second = clock::stamp(receipt.times.received_at.unix_milliseconds());
            *left.entry(second).or_default() += receipt.rows.removed;
        }
        if let Some(claim) = &receipt.claim {
            tolerance = if let ReceiptClaim::Exact { tolerance } = claim { Some(*tolerance) } else { None };
        }
        last = Some(receipt);
    }
    let stored: u64 = connection.query_row(r#"SELECT count(*) FROM "receipts""#, [], |row| row.get(0))?;
    if stored != ledger.size {
        return damaged(format!("it holds {stored} receipts where {} belong", ledger.size));
    }
    replay.finish(&ledger::checkpoint(connection)?)?;
    if *replay.frontier() != ReceiptLog(connection).frontier(ledger)? {
        return damaged("its stored nodes are not those of its receipts");
    }
    let Some(last) = last else { return damaged("its log is empty") };
    let told = format!("{} receipts, each signed and in its place; the head is signed", ledger.size);
    Ok(LogSummary { told, last, waiting: replay.waiting(), tolerance, left })
}

/// Arrays match their checksums, and those of the parameters the last receipt.
fn arrays(connection: &Connection, manifest: &Manifest, last: Option<&Receipt>) -> CheckOutcome {
    for part in &manifest.parts {
        parts::check(connection, &manifest.parts, part.name())?;
    }
    let hash = manifest.parameters();
    match last {
        Some(last) if last.parameters.after == hash => holds(format!("{hash}, as the last receipt says")),
        Some(_) => damaged("they are not those of the last receipt"),
        None => damaged("there is no receipt to compare them with"),
    }
}

/// Every row is read, its commitment made anew, and the tree over all of them built from nothing.
fn set(
    connection: &Connection,
    manifest: &Manifest,
    ledger: &LedgerHead,
    last: Option<&Receipt>,
) -> CheckOutcome {
    let salt = manifest.commitments();
    let mut leaves: Vec<Hash> = Vec::new();
    file::rows::each(connection, &manifest.outline(), |_, row, content| {
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
            holds(format!("{} rows under root {}, as the last receipt says", state.count, state.root))
        }
        _ => damaged("its rows are not those of the last receipt"),
    }
}

/// The rows that wait to be scrubbed are those that the log says wait, and all others that left are zeros.
fn scrubbing(connection: &Connection, manifest: &Manifest, told: Option<SettledRun>) -> CheckOutcome {
    let listed =
        manifest.waiting.as_ref().map(|waiting| SettledRun { first: waiting.first, last: waiting.last });
    if listed != told {
        return damaged("the rows that wait to be scrubbed are not those of its log");
    }
    if let Some(waiting) = &manifest.waiting {
        let times =
            efface_receipt::SignedReceipt::parse(&ledger::leaf(connection, waiting.first)?)?.receipt.times;
        let [from, to] = [times.received_at, times.forgotten_at.unwrap_or(times.received_at)];
        // A later time in the manifest would put the scrubbing off.
        if !(from.unix_milliseconds()..=to.unix_milliseconds()).contains(&waiting.since) {
            return damaged("the rows that wait to be scrubbed do so since another time than its log says");
        }
    }
    let outline = manifest.outline();
    file::rows::waiting(connection, &outline)?;
    let hidden = outline.hidden;
    let sql = r#"SELECT rows.row FROM "rows" JOIN "keys" ON keys.row = rows.row
                 WHERE keys.key = zeroblob(32) AND rows.payload <> zeroblob(length(rows.payload)) ORDER BY rows.row"#;
    let mut statement = connection.prepare(sql)?;
    let left: Vec<u64> = statement.query_map([], |row| row.get(0))?.collect::<std::result::Result<_, _>>()?;
    if left != hidden {
        return damaged(format!(
            "{} rows that left are not overwritten, and {} wait",
            left.len(),
            hidden.len()
        ));
    }
    holds(match hidden.len() {
        0 => "every row that left is overwritten".to_owned(),
        count => format!("{count} rows that left wait for the next settle; every other is overwritten"),
    })
}

/// Every request that was answered has a receipt of its own.
fn asked(connection: &Connection) -> CheckOutcome {
    let mut statement = connection.prepare(r#"SELECT commitment, sequence FROM "requests""#)?;
    let entries = statement.query_map([], |row| Ok((Hash(row.get(0)?), row.get::<_, u64>(1)?)))?;
    let mut seen = BTreeSet::new();
    for entry in entries {
        let (name, sequence) = entry?;
        let signed = efface_receipt::SignedReceipt::parse(&ledger::leaf(connection, sequence)?)?;
        let answered = signed.receipt.request_id == Some(RequestId::Committed(name));
        if !answered || !seen.insert(sequence) || requests::find(connection, &name)?.is_none() {
            return damaged(format!("a request points at receipt {sequence}, which answers another"));
        }
    }
    holds(format!("{} answered, one receipt each", seen.len()))
}

/// The list of what must not come back: as many entries as rows were forgotten, in the seconds in which the log says so,
/// each as it was entered, and none of a row that is here.
fn suppressed(connection: &Connection, manifest: &Manifest, left: &BTreeMap<String, u64>) -> CheckOutcome {
    let directory = manifest.directory(connection);
    let entries = directory.suppressed()?;
    let listed = entries.len() as u64;
    if listed != manifest.forgotten {
        return damaged(format!("it lists {listed} rows where {} were forgotten", manifest.forgotten));
    }
    if directory.any_present(&entries)? {
        return damaged("a row that was forgotten is in the model");
    }
    let mut dates: BTreeMap<&str, u64> = BTreeMap::new();
    entries.iter().for_each(|(_, at)| *dates.entry(at).or_default() += 1);
    // Rows that went before the log began are in no receipt of it.
    if left.iter().any(|(second, rows)| dates.get(second.as_str()).is_none_or(|listed| listed < rows)) {
        return damaged("rows that the log says were forgotten are not on the list, or under another time");
    }
    let told: u64 = left.values().sum();
    if !directory.is_sealed(&entries) {
        return damaged("an entry is not the one that was made");
    }
    holds(format!("{listed} rows that must not come back, {told} of them in this log"))
}
