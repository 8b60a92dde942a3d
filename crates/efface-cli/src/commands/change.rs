//! `efface learn` and `efface amend`: rows of a file join a model, or replace rows that it holds.

use efface::NotCovered;
use efface_engine::ChangeReport;

use super::open;
use crate::cli::{AmendArguments, LearnArguments};
use crate::failure::{Failure, Result};
use crate::flags::flag;
use crate::report::{ChangeWords, count, distance, seconds};
use crate::terminal::Terminal;

/// The note on an answer that was given before.
pub(super) const ANSWERED_BEFORE: &str = "this request was answered before; this is that answer";

pub(crate) fn learn(args: &LearnArguments, terminal: &Terminal) -> Result {
    let source = open(&args.data)?;
    let mut engine = terminal.change(&args.model)?;
    args.encoder
        .iter()
        .for_each(|folder| engine.set_encoder(folder));
    let report = match &args.request {
        Some(name) => engine.learn_request(source, name, &terminal.bars())?,
        None => engine.learn(source, &terminal.bars())?,
    };
    tell("learned", &report, terminal)
}

pub(crate) fn amend(args: &AmendArguments, terminal: &Terminal) -> Result {
    let source = open(&args.data)?;
    let mut engine = terminal.change(&args.model)?;
    args.encoder
        .iter()
        .for_each(|folder| engine.set_encoder(folder));
    let report = engine.amend(source, &terminal.bars())?;
    tell("amended", &report, terminal)
}

fn tell(verb: &str, report: &ChangeReport, terminal: &Terminal) -> Result {
    for remark in &report.remarks {
        terminal.warn(&remark.worded(flag));
    }
    if terminal.json() {
        terminal.object(report)?;
        return within_tolerance(report);
    }
    if report.replayed {
        terminal.note(ANSWERED_BEFORE);
    }
    terminal.message(&format!(
        "{verb} {}: {}",
        count(report.learned, "row"),
        ending(report)
    ));
    let unknown = |what: &&NotCovered| matches!(what, NotCovered::UnknownNames { .. });
    for what in report.evidence.not_covered.iter().filter(unknown) {
        terminal.note(&format!("not covered: {what}"));
    }
    if let Some(receipt) = &report.receipt {
        terminal.message(&format!(
            "receipt {}, number {} in the log",
            receipt.id, receipt.sequence
        ));
    }
    within_tolerance(report)
}

/// A change that missed its tolerance is made, and ends with a code that says so.
pub(super) fn within_tolerance(report: &ChangeReport) -> Result {
    match report.tolerance {
        Some(tolerance) if report.tolerance_missed => Err(Failure::tolerance_missed(missed(
            report.evidence.relative_bound,
            tolerance,
        ))),
        _ => Ok(()),
    }
}

/// How far a result is from its tolerance.
pub(super) fn missed(relative_bound: f64, tolerance: f64) -> String {
    let bound = if relative_bound.is_finite() {
        format!(
            "the distance to retraining is at most {} (relative), above",
            distance(relative_bound)
        )
    } else {
        "the distance to retraining is not known to be within".to_owned()
    };
    format!(
        "{bound} the tolerance of {}; the result is approximate",
        distance(tolerance)
    )
}

/// What is left, how near it is to retraining, and the time.
pub(super) fn ending(report: &ChangeReport) -> String {
    let rows = count(report.rows, "row");
    let left = if report.dry_run {
        format!("{rows} would be left")
    } else if report.learned > 0 {
        format!("{rows} now")
    } else {
        format!("{rows} left")
    };
    let ChangeWords { claim, bound, .. } = ChangeWords::of_report(report);
    format!(
        "{left}; claim {claim}; distance to retraining {bound}; {}",
        seconds(report.seconds)
    )
}
