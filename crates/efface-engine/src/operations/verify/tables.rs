//! The tables of a file against the roots that its signed manifest holds, and against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::file::ModelConnection;
use efface_receipt::{
    CommitmentSalt, LogCheckpoint, Receipt, ReceiptFault, RequestId, SettledRun, SignedReceipt,
};

use super::{CheckOutcome, CheckResult, counted, holds};
use crate::codec::manifest::Manifest;
use crate::error::SuppressionKind;
use crate::file::{self, SecretSum, damaged, parts};
use crate::ledger::suppression::{self, SuppressedName};
use crate::ledger::{
    self, LedgerHead, SealedTable, SealedTree, WitnessTerms, copies, newest, requests, row_leaf,
};

/// SQLite's own look at its pages, and that the file holds no values of which nothing is known.
pub(super) fn file(connection: &ModelConnection) -> CheckOutcome {
    let told: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if told != "ok" {
        return damaged(told);
    }
    let named: u64 =
        connection.query_row(r#"SELECT count(*) FROM "meta""#, [], |row| row.get(0))?;
    // The manifest, the signed head in its two forms, and the name of the key of an encrypted file.
    let known = if connection.is_encrypted() { 4 } else { 3 };
    if named == known {
        holds("pages and tables are whole")
    } else {
        damaged("it holds values of no meaning")
    }
}

/// The log continues the newest head that was written down beside the key. Whether those have
/// signed the head of the log whom the policy asks for. Every change makes a new head, which they
/// have not seen yet: that is no damage.
pub(super) fn witnessed(connection: &ModelConnection, witnesses: &WitnessTerms) -> CheckOutcome {
    let note = ledger::checkpoint(connection)?;
    match witnesses.quorum()?.verify(&note) {
        Ok(seen) => {
            let names: Vec<&str> = seen.iter().map(|head| head.witness.as_str()).collect();
            holds(format!("the head is signed by {}", names.join(", ")))
        }
        Err(fault @ ReceiptFault::Quorum { .. }) => Ok(CheckResult::Unknown(fault.to_string())),
        Err(fault) => damaged(fault.to_string()),
    }
}

pub(super) fn newest(
    connection: &ModelConnection,
    ledger: &LedgerHead,
    model: &Path,
) -> CheckOutcome {
    match newest::rollback(connection, ledger, model)? {
        Some(what) => damaged(what),
        None if newest::head_path(model).exists() => {
            holds("no newer state of it was written down here")
        }
        None => Ok(CheckResult::Unknown(
            "no head of its log lies beside it to compare it with".into(),
        )),
    }
}

/// The log continues the one of a head that the caller kept.
pub(super) fn since(connection: &ModelConnection, ledger: &LedgerHead, note: &str) -> CheckOutcome {
    let head = LogCheckpoint::parse_unverified(note)?;
    if let Some(what) = newest::break_since(connection, ledger, &head)? {
        return damaged(what);
    }
    holds(format!("its log continues that of {} receipts", head.size))
}

/// Arrays match their checksums, and those of the parameters the last receipt.
pub(super) fn arrays(
    connection: &ModelConnection,
    manifest: &Manifest,
    last: Option<&Receipt>,
) -> CheckOutcome {
    for part in &manifest.parts {
        parts::check(connection, &manifest.parts, part.name())?;
    }
    parts::check_count(connection, &manifest.parts)?;
    let hash = manifest.parameters();
    match last {
        Some(last) if last.parameters.after == hash => {
            holds(format!("{hash}, as the last receipt says"))
        }
        Some(_) => damaged("they are not those of the last receipt"),
        None => damaged("there is no receipt to compare them with"),
    }
}

/// Every row is read, its commitment and its entry in the list of rows are made anew, and the tree
/// over all of them is built from nothing.
pub(super) fn set(
    connection: &ModelConnection,
    manifest: &Manifest,
    last: Option<&Receipt>,
) -> CheckOutcome {
    let salt = manifest.salt();
    // Two large sets are compared at a time, by sums: neither of them is ever in memory.
    let mut leaves = SecretSum::draw()?;
    let mut members = leaves.again();
    let mut held = leaves.again();
    let mut listed = leaves.again();
    file::rows::each(connection, &manifest.outline(), |number, found| {
        leaves.add(row_leaf(&found.row.nonce, &found.row.id, &found.content).as_bytes());
        let entry = salt.entry(&found.row.id, found.row.subject.as_deref(), &found.digest);
        held.add(&[number.to_be_bytes().as_slice(), &entry].concat());
        Ok(())
    })?;
    let directory = manifest.directory(connection);
    directory.scan(|row, entry| {
        listed.add(&[row.to_be_bytes().as_slice(), entry].concat());
        Ok(())
    })?;
    if held != listed {
        return damaged("its list of rows does not name the rows that it holds");
    }
    directory.check_index()?;
    let state = manifest.ledger.members.set;
    SealedTree::new(connection, SealedTable::Members).check(&manifest.ledger.members, |entry| {
        members.add(entry.commitment.as_bytes());
        Ok(())
    })?;
    if members != leaves {
        return damaged("its list of commitments is not that of its rows");
    }
    match last {
        Some(last) if last.training_set.after == state => {
            let rows = counted(state.count, "row");
            holds(format!(
                "{rows} under root {}, as the last receipt says",
                state.root
            ))
        }
        _ => damaged("its rows are not those of the last receipt"),
    }
}

/// The rows that wait to be scrubbed are those that the log says wait, and all others that left are
/// zeros.
pub(super) fn scrubbing(
    connection: &ModelConnection,
    manifest: &Manifest,
    told: Option<SettledRun>,
) -> CheckOutcome {
    let listed = manifest.waiting.as_ref().map(|waiting| SettledRun {
        first: waiting.first,
        last: waiting.last,
    });
    if listed != told {
        return damaged("the rows that wait to be scrubbed are not those of its log");
    }
    if let Some(waiting) = &manifest.waiting {
        let times = SignedReceipt::parse(&ledger::leaf(connection, waiting.first)?)?
            .receipt
            .times;
        let [from, to] = [
            times.received_at,
            times.forgotten_at.unwrap_or(times.received_at),
        ];
        // A later time in the manifest would put the scrubbing off.
        if !(from.unix_milliseconds()..=to.unix_milliseconds()).contains(&waiting.since) {
            return damaged(
                "the rows that wait to be scrubbed do so since another time than its log says",
            );
        }
    }
    let outline = manifest.outline();
    let places = manifest.rows + manifest.husks + outline.hidden.len() as u64;
    for table in ["rows", "keys"] {
        let sql = format!(r#"SELECT count(*) FROM "{table}""#);
        let stored: u64 = connection.query_row(&sql, [], |row| row.get(0))?;
        if stored != places {
            return damaged(format!(
                "its table `{table}` has {stored} places where {places} belong"
            ));
        }
    }
    let sql = r#"SELECT count(*) FROM "rows" JOIN "keys" ON keys.row = rows.row"#;
    let both: u64 = connection.query_row(sql, [], |row| row.get(0))?;
    if both != places {
        return damaged("the places of its rows are not those on its list");
    }
    file::rows::waiting(connection, &outline)?;
    let hidden: Vec<u64> = outline.hidden.into_keys().collect();
    let sql = r#"SELECT rows.row FROM "rows" JOIN "keys" ON keys.row = rows.row
                 WHERE keys.key = zeroblob(48) AND rows.payload <> zeroblob(length(rows.payload)) ORDER BY rows.row"#;
    let mut statement = connection.prepare(sql)?;
    let left: Vec<u64> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if left != hidden {
        return damaged(format!(
            "{} rows that left are not overwritten, and {} wait",
            left.len(),
            hidden.len()
        ));
    }
    holds(match hidden.len() {
        0 => "every row that left is overwritten".to_owned(),
        1 => "1 row that left waits for the next settle; every other is overwritten".to_owned(),
        count => {
            format!("{count} rows that left wait for the next settle; every other is overwritten")
        }
    })
}

/// Every request that was answered has a receipt of its own.
pub(super) fn asked(connection: &ModelConnection, manifest: &Manifest) -> CheckOutcome {
    let mut seen = BTreeSet::new();
    requests::check_each(connection, &manifest.ledger, |name, answer| {
        let sequence = answer.sequence;
        let signed = SignedReceipt::parse(&ledger::leaf(connection, sequence)?)?;
        let answered = signed.receipt.request_id == Some(RequestId::Committed(name));
        if !answered || !seen.insert(sequence) {
            return damaged(format!(
                "a request points at receipt {sequence}, which answers another"
            ));
        }
        Ok(())
    })?;
    holds(format!("{} answered, one receipt each", seen.len()))
}

/// The list of exports is the one that was signed.
pub(super) fn exported(connection: &ModelConnection, manifest: &Manifest) -> CheckOutcome {
    copies::check(connection, &manifest.ledger)?;
    let (live, withdrawn) = copies::count(connection)?;
    holds(format!("{live} in use, {withdrawn} withdrawn"))
}

/// The list of what must not come back: as many entries as rows were forgotten, in the seconds in
/// which the log says so, each as it was entered, and none of a row that is here.
pub(super) fn suppressed(
    connection: &ModelConnection,
    manifest: &Manifest,
    names: Option<&CommitmentSalt>,
    left: &BTreeMap<String, u64>,
) -> CheckOutcome {
    let mut listed = 0_u64;
    let mut dates: BTreeMap<String, u64> = BTreeMap::new();
    suppression::check_each(connection, &manifest.ledger, |entry| {
        if entry.name.kind == SuppressionKind::Id {
            listed += 1;
            *dates.entry(entry.since).or_default() += 1;
        }
        Ok(())
    })?;
    if listed != manifest.forgotten {
        return damaged(format!(
            "it lists {listed} rows where {} were forgotten",
            manifest.forgotten
        ));
    }
    if let Some(names) = names.filter(|_| listed > 0) {
        file::rows::each(connection, &manifest.outline(), |_, found| {
            if suppression::holds(connection, &SuppressedName::id(names, &found.row.id))? {
                return damaged("a row that was forgotten is in the model");
            }
            Ok(())
        })?;
    }
    // Rows that went before the log began are in no receipt of it.
    if left.iter().any(|(second, rows)| {
        dates
            .get(second.as_str())
            .is_none_or(|listed| listed < rows)
    }) {
        return damaged(
            "rows that the log says were forgotten are not on the list, or under another time",
        );
    }
    let told: u64 = left.values().sum();
    let rows = counted(listed, "row");
    let found = format!("{rows} that must not come back, {told} of them in this log");
    if names.is_none() && listed > 0 {
        return holds(format!(
            "{found}; which rows they are only the file beside the model can tell"
        ));
    }
    holds(found)
}
