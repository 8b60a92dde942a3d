//! What models without a curvature share: the checks before a change, the rows that stay, and the
//! evidence.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::evidence::{BoundSource, CLOSED_FORM_TOLERANCE, Claim, Evidence, Precomputed};
use crate::rows::{Features, RowId, RowStore, Rows};

/// Checks a request to forget before any work: every id distinct and here, and something left
/// afterwards.
pub(crate) fn check_gone(rows: &dyn RowStore, gone: &[RowId], width: usize) -> Result<()> {
    check_width(rows.width(), width)?;
    rows.check(gone)?;
    if gone.len() >= rows.len() {
        return Err(Error::NothingLeft {
            gone: gone.len(),
            rows: rows.len(),
        });
    }
    Ok(())
}

/// Checks rows that come in under new ids.
pub(crate) fn check_new(rows: &dyn RowStore, new: &Rows, width: usize) -> Result<()> {
    check_width(new.width(), width)?;
    for id in new.ids() {
        if rows.contains(id)? {
            return Err(Error::DuplicateRow(id));
        }
    }
    Ok(())
}

/// Checks rows that replace others, and lists their ids.
pub(crate) fn check_corrected(
    rows: &dyn RowStore,
    corrected: &Rows,
    width: usize,
) -> Result<Vec<RowId>> {
    check_width(corrected.width(), width)?;
    let ids: Vec<RowId> = corrected.ids().collect();
    rows.check(&ids)?;
    Ok(ids)
}

/// Checks that rows are numbers: what a model of numbers asks of every row that it is given.
pub(crate) fn check_numbers(rows: &dyn RowStore) -> Result<()> {
    if rows.holds_word_ids() {
        Err(Error::RowsOfWordIds)
    } else {
        Ok(())
    }
}

/// Checks that features are numbers, as many a row as the model has.
pub(crate) fn check_features(features: &Features, expected: usize) -> Result<()> {
    if features.holds_word_ids() {
        return Err(Error::RowsOfWordIds);
    }
    check_width(features.width(), expected)
}

/// Checks that rows are as wide as the model.
pub(crate) fn check_width(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Shape {
            what: "features",
            found,
            expected,
        })
    }
}

/// Checks that rows have as many targets as those of the fit.
pub(crate) fn check_outputs(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Shape {
            what: "outputs",
            found,
            expected,
        })
    }
}

/// Whether a row is not among `gone`.
pub(crate) fn stays(gone: &[RowId]) -> impl Fn(RowId) -> bool + use<> {
    let out: HashSet<RowId> = gone.iter().copied().collect();
    move |id| !out.contains(&id)
}

/// The evidence of a model that was fitted anew, on rows that were all read: nothing kept was of
/// use.
pub(crate) fn from_scratch(evidence: Evidence, forgotten: usize, rows_read: usize) -> Evidence {
    Evidence {
        forgotten,
        rows_read,
        refactored: true,
        precomputed: Vec::new(),
        ..evidence
    }
}

/// Brings bound and memory in an evidence up to date.
pub(crate) fn refresh(evidence: &mut Evidence, now: Evidence) {
    (evidence.bound, evidence.relative_bound) = (now.bound, now.relative_bound);
    evidence.precomputed = now.precomputed;
}

/// The evidence of a model that is a closed form of its rows: there is no gradient and no convexity
/// to speak of.
pub(crate) fn evidence(
    method: &str,
    rows: usize,
    (bound, norm): (f64, f64),
    what: &str,
    bytes: usize,
) -> Evidence {
    Evidence {
        method: method.into(),
        reason: None,
        promise: Claim::Exact,
        tolerance: Some(CLOSED_FORM_TOLERANCE),
        forgotten: 0,
        learned: 0,
        rows,
        rows_read: 0,
        largest_leverage: None,
        condition: None,
        directions_dropped: 0,
        iterations: 0,
        refinements: 0,
        refactored: false,
        resummed: false,
        gradient_norm: None,
        convexity: 0.0,
        bound,
        relative_bound: if bound == 0.0 {
            0.0
        } else {
            bound / norm.max(f64::MIN_POSITIVE)
        },
        bound_source: BoundSource::Carried,
        head_bound: None,
        certificate: None,
        cleared: None,
        compared: None,
        precomputed: vec![Precomputed {
            what: what.into(),
            bytes,
        }],
        not_covered: Vec::new(),
        kept_beside: Vec::new(),
    }
}
