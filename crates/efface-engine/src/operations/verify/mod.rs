//! Whether a model file is what its log says: everything that can be recomputed from what is
//! stored, is.

mod rows;
mod tables;

use std::collections::BTreeMap;

use crate::file::ModelConnection;
use efface_receipt::{
    Frontier, KeyRing, LogNodes, LogReplay, PublicKey, Receipt, ReceiptClaim, RequestKind,
    SettledRun, leaf_hash,
};
use serde::Serialize;

use crate::clock;
use crate::error::Result;
use crate::file::{FileFault, damaged};
use crate::ledger::{self, LedgerHead, ReceiptLog, founding};
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
pub(crate) struct LogSummary {
    told: String,
    pub(crate) last: Receipt,
    pub(crate) waiting: Option<SettledRun>,
    /// What the last exact claim allows.
    tolerance: Option<f64>,
    /// Rows that were forgotten, by the second in which they were.
    left: BTreeMap<String, u64>,
}

/// Checks a model file. `keys` are public keys of the log, as the caller knows them; without any
/// the file's own are taken, which shows that the file agrees with itself and no more. `rows` says
/// whether the model is computed from its rows again; None does so where that is no trouble.
pub(crate) fn verify(
    model: &OpenModel,
    keys: Option<&KeyRing>,
    rows: Option<bool>,
    since: Option<&str>,
) -> Result<Vec<FileCheck>> {
    let transaction = model.store.begin(false)?;
    let ModelSnapshot { manifest, .. } = model.read_snapshot()?;
    let ledger = &manifest.ledger;
    // Whoever verifies a copy of the file has no secret of it.
    let names = founding::noise_seed(&model.store, ledger, &model.access)
        .ok()
        .map(|seed| seed.names());
    let mut checks = Vec::new();
    let mut left = BTreeMap::new();
    let mut last = None;
    let mut unscrubbed = None;
    let mut tolerance = None;
    let mut note = |check, found: CheckOutcome| {
        let (passed, known, found) = match found {
            Ok(CheckResult::Holds(found)) => (true, true, found),
            Ok(CheckResult::Unknown(why)) => (true, false, why),
            Err(FileFault::Damaged(what) | FileFault::Signing(what)) => (false, true, what),
            Err(FileFault::Sql(error)) => (false, true, error.to_string()),
            Err(FileFault::Beside(cause)) => (true, false, cause.to_string()),
            Err(FileFault::Sealed) => (
                true,
                false,
                "it is encrypted, and its key is not there".into(),
            ),
        };
        checks.push(FileCheck {
            check,
            passed,
            known,
            found,
        });
    };
    let whole = |work: &mut dyn FnMut(&ModelConnection) -> CheckOutcome| model.store.raw(work);
    note("file", whole(&mut |connection| tables::file(connection)));
    note(
        "log",
        whole(&mut |connection| {
            let log = log(connection, ledger, keys)?;
            last = Some(log.last);
            unscrubbed = log.waiting;
            tolerance = log.tolerance;
            left = log.left;
            Ok(CheckResult::Holds(log.told))
        }),
    );
    note(
        "rollback",
        whole(&mut |connection| tables::newest(connection, ledger, model.store.path())),
    );
    if let Some(witnesses) = &manifest.policy.witnesses {
        note(
            "witnesses",
            whole(&mut |connection| tables::witnessed(connection, witnesses)),
        );
    }
    if let Some(since) = since {
        note(
            "since",
            whole(&mut |connection| tables::since(connection, ledger, since)),
        );
    }
    note(
        "parameters",
        whole(&mut |connection| tables::arrays(connection, &manifest, last.as_ref())),
    );
    note(
        "training set",
        whole(&mut |connection| tables::set(connection, &manifest, last.as_ref())),
    );
    note(
        "scrubbing",
        whole(&mut |connection| tables::scrubbing(connection, &manifest, unscrubbed)),
    );
    note(
        "requests",
        whole(&mut |connection| tables::asked(connection, &manifest)),
    );
    note(
        "exports",
        whole(&mut |connection| tables::exported(connection, &manifest)),
    );
    note(
        "suppression list",
        whole(&mut |connection| tables::suppressed(connection, &manifest, names.as_ref(), &left)),
    );
    let tolerance = tolerance.unwrap_or(0.0);
    note("bound", rows::bound(model, &manifest, tolerance));
    note("rows", rows::against(model, &manifest, tolerance, rows));
    drop(transaction);
    Ok(checks)
}

/// Every receipt from the first: signatures, places, hand-overs, and that each starts where the
/// last one ended.
pub(crate) fn log(
    connection: &ModelConnection,
    ledger: &LedgerHead,
    keys: Option<&KeyRing>,
) -> std::result::Result<LogSummary, FileFault> {
    let keys = match keys {
        Some(keys) => keys.clone(),
        None => KeyRing::from(PublicKey::parse(&ledger.first_key)?),
    };
    let mut replay = LogReplay::new(&keys);
    let mut last = None;
    let mut tolerance = None;
    let mut left = BTreeMap::new();
    let log = ReceiptLog(connection);
    let mut frontier = Frontier::default();
    let mut nodes = 0_u64;
    for sequence in 0..ledger.size {
        let bytes = ledger::leaf(connection, sequence)?;
        let receipt = replay.push(&bytes)?.receipt;
        for node in frontier.append(&leaf_hash(&bytes)) {
            nodes += 1;
            if log.node(node.level, node.index)? != node.hash {
                return damaged("its stored nodes are not those of its receipts");
            }
        }
        if receipt.kind == RequestKind::Forget && receipt.rows.removed > 0 {
            let second = clock::stamp(receipt.times.received_at.unix_milliseconds());
            *left.entry(second).or_default() += receipt.rows.removed;
        }
        if let Some(claim) = &receipt.claim {
            tolerance = if let ReceiptClaim::Exact { tolerance } = claim {
                Some(*tolerance)
            } else {
                None
            };
        }
        last = Some(receipt);
    }
    let stored: u64 =
        connection.query_row(r#"SELECT count(*) FROM "receipts""#, [], |row| row.get(0))?;
    if stored != ledger.size {
        return damaged(format!(
            "it holds {stored} receipts where {} belong",
            ledger.size
        ));
    }
    let stored: u64 =
        connection.query_row(r#"SELECT count(*) FROM "nodes""#, [], |row| row.get(0))?;
    if stored != nodes {
        return damaged(format!(
            "it holds {stored} nodes of its log where {nodes} belong"
        ));
    }
    let head = ledger::signed_head(connection)?;
    replay.finish(&head.checkpoint)?;
    head.verify(replay.keys())?;
    let Some(last) = last else {
        return damaged("its log is empty");
    };
    let receipts = counted(ledger.size, "receipt");
    let told = format!("{receipts}, each signed and in its place; the head is signed");
    Ok(LogSummary {
        told,
        last,
        waiting: replay.waiting(),
        tolerance,
        left,
    })
}

/// A number of things, in words.
fn counted(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}
