//! Rows that come in a new file and must not: those that were forgotten, and those of people who
//! asked to be.

use efface::{Hint, RowRef, Setting};

use super::change::{ArrivingRows, OpenedChange};
use super::ingest::{RowBatch, RowNames};
use super::report::Remark;
use crate::clock;
use crate::codec::feature_rows::substance;
use crate::error::{Error, Result, SuppressionKind};
use crate::file::{FileFault, OutgoingRow};
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
        let words = new.words.get(slot).map_or(&[][..], Vec::as_slice);
        let row = content_row(row.weight, row.targets, words, row.features);
        let substance = substance(change.encoder.as_ref(), shape, &row);
        asked.push((slot, SuppressedName::content(names, &substance)));
    }
    ask(change, &asked, &new.names.ids, lines)
}

/// The most rows of a batch that are compared with an earlier one.
const MOST_COMPARED: usize = 64;

/// Returns a remark if the rows have the same content, in the same order, as those of the fit or of
/// an earlier learn. Up to 64 rows at even distances are compared.
pub(super) fn repeated_rows(change: &OpenedChange<'_>, new: &ArrivingRows) -> Result<Vec<Remark>> {
    let count = new.names.ids.len();
    let encoder = change.encoder.as_ref();
    let shape = change.manifest.blueprint.shape();
    let step = count.div_ceil(MOST_COMPARED).max(1);
    let stored = change.rows();
    let fault = |fault: FileFault| fault.at(change.store().path());
    for batch in change.manifest.batches.iter().rev() {
        if batch.count != count as u64 {
            continue;
        }
        let mut is_same = true;
        let mut still_here = 0;
        let mut compared = 0;
        for (slot, row) in new.rows.iter().enumerate().step_by(step) {
            compared += 1;
            let Some(old) = stored.read(batch.first + slot as u64).map_err(fault)? else {
                continue;
            };
            still_here += 1;
            let words = new.words.get(slot).map_or(&[][..], Vec::as_slice);
            let row = content_row(row.weight, row.targets, words, row.features);
            let old = content_row(old.weight, &old.targets, &old.words, old.features.as_ref());
            is_same = substance(encoder, shape, &row) == substance(encoder, shape, &old);
            if !is_same {
                break;
            }
        }
        if is_same && still_here > 0 {
            let left = if still_here < compared {
                ", and some that were forgotten since are back"
            } else {
                ""
            };
            let what = format!(
                "rows of the same content were learned before: these {count} rows now count twice{left}"
            );
            let hint = Hint::new("a name for the request ({}), or a model with a column of ids ({}), keeps rows from being learned twice")
                .name(Setting::Request)
                .name(Setting::Id);
            return Ok(vec![Remark::with_hint(what, hint)]);
        }
    }
    Ok(Vec::new())
}

/// A row without its id and its subject.
fn content_row<'a>(
    weight: f64,
    targets: &'a [f64],
    words: &'a [u32],
    features: RowRef<'a>,
) -> OutgoingRow<'a> {
    OutgoingRow {
        id: "",
        subject: None,
        weight,
        targets,
        words,
        features,
    }
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
