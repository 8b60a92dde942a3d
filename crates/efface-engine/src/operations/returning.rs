//! Rows that come in a new file and must not: those that were forgotten, and those of people who
//! asked to be.

use super::change::{ArrivingRows, OpenedChange};
use super::ingest::{RowBatch, RowNames};
use crate::clock;
use crate::codec::feature_rows::substance;
use crate::error::{Error, Result, SuppressionKind};
use crate::file::OutgoingRow;
use crate::ledger::suppression::{SuppressedName, SuppressionList, SuppressionScope};

/// Refuses rows whose id, or an id that looks like it, was forgotten, and rows of a person who was,
/// as far as the policy says so. Rows that are amended are here already: `new_ids` is false for
/// them.
pub(super) fn check_names(
    change: &OpenedChange<'_>,
    batch: &RowBatch,
    new_ids: bool,
) -> Result<()> {
    check_listed(
        change,
        RowsToCheck {
            ids: &batch.ids,
            subjects: &batch.subjects,
            lines: &batch.lines,
            new_ids,
        },
    )
}

/// The same for all rows of a new fit, whose lines are no longer known.
pub(super) fn check_row_names(change: &OpenedChange<'_>, names: &RowNames) -> Result<()> {
    check_listed(
        change,
        RowsToCheck {
            ids: &names.ids,
            subjects: &names.subjects,
            lines: &[],
            new_ids: true,
        },
    )
}

/// Names that are compared with the list.
struct RowsToCheck<'a> {
    ids: &'a [String],
    subjects: &'a [Option<String>],
    lines: &'a [u64],
    new_ids: bool,
}

fn check_listed(change: &OpenedChange<'_>, rows: RowsToCheck<'_>) -> Result<()> {
    let names = change.names()?;
    let by_subject = change.manifest.policy.suppress >= SuppressionScope::Subjects;
    let mut asked = Vec::new();
    for (slot, id) in rows.ids.iter().enumerate() {
        if rows.new_ids {
            asked.push((slot, SuppressedName::id(names, id)));
            asked.push((slot, SuppressedName::alike_id(names, id)));
        }
        if let Some(Some(subject)) = rows.subjects.get(slot).filter(|_| by_subject) {
            asked.push((slot, SuppressedName::subject(names, subject)));
        }
    }
    ask(change, &asked, rows.ids, rows.lines)
}

/// Refuses rows whose content was forgotten, where the policy asks for that.
pub(super) fn check_content(
    change: &OpenedChange<'_>,
    new: &ArrivingRows,
    lines: &[u64],
) -> Result<()> {
    if change.manifest.policy.suppress != SuppressionScope::Content {
        return Ok(());
    }
    let names = change.names()?;
    let shape = change.manifest.blueprint.shape();
    let mut asked = Vec::with_capacity(new.names.ids.len());
    for (slot, row) in new.rows.iter().enumerate() {
        let row = OutgoingRow {
            id: "",
            subject: None,
            weight: row.weight,
            targets: row.targets,
            words: new.words.get(slot).map_or(&[][..], Vec::as_slice),
            features: row.features,
        };
        let substance = substance(change.encoder.as_ref(), shape, &row);
        asked.push((slot, SuppressedName::content(names, &substance)));
    }
    ask(change, &asked, &new.names.ids, lines)
}

fn ask(
    change: &OpenedChange<'_>,
    asked: &[(usize, SuppressedName)],
    ids: &[String],
    lines: &[u64],
) -> Result<()> {
    let found = change.store().with(|connection| {
        let names = asked.iter().map(|(_, name)| name);
        let list = SuppressionList::look_up(connection, &change.manifest.ledger, names)?;
        for (slot, name) in asked {
            if let Some(since) = list.since(name)? {
                return Ok(Some((*slot, name.kind, since)));
            }
        }
        Ok(None)
    })?;
    match found {
        Some((slot, by, since)) => Err(comes_back(ids, lines, slot, by, &since)),
        None => Ok(()),
    }
}

/// The error that says which row must not come back, and why.
pub(super) fn comes_back(
    ids: &[String],
    lines: &[u64],
    slot: usize,
    by: SuppressionKind,
    since: &str,
) -> Error {
    Error::ComesBack {
        id: ids.get(slot).cloned().unwrap_or_default(),
        on: clock::date(since).into(),
        line: lines.get(slot).copied().unwrap_or_default(),
        by,
    }
}
