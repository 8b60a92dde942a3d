//! `efface learn` and `efface amend`: rows of a file join a model, or replace rows that it holds.

use efface_engine::Report;

use super::open;
use crate::cli::{Amend, Learn};
use crate::failure::Result;
use crate::report::{count, distance, seconds};
use crate::terminal::Terminal;

pub(crate) fn learn(args: &Learn, terminal: &Terminal) -> Result {
    let source = open(&args.data)?;
    let mut engine = terminal.change(&args.model)?;
    args.encoder.iter().for_each(|folder| engine.set_encoder(folder));
    let report = engine.learn(&source, &terminal.bars())?;
    tell("learned", &report, terminal)
}

pub(crate) fn amend(args: &Amend, terminal: &Terminal) -> Result {
    let source = open(&args.data)?;
    let mut engine = terminal.change(&args.model)?;
    args.encoder.iter().for_each(|folder| engine.set_encoder(folder));
    let report = engine.amend(&source, &terminal.bars())?;
    tell("amended", &report, terminal)
}

fn tell(verb: &str, report: &Report, terminal: &Terminal) -> Result {
    if terminal.json() {
        return terminal.object(report);
    }
    terminal.message(&format!("{verb} {}: {}", count(report.learned, "row"), ending(report)));
    for what in report.evidence.not_covered.iter().filter(|what| what.contains("of the new rows")) {
        terminal.note(&format!("not covered: {what}"));
    }
    if let Some(receipt) = &report.receipt {
        terminal.message(&format!("receipt {}, number {} in the log", receipt.id, receipt.sequence));
    }
    Ok(())
}

/// What is left, how near it is to retraining, and the time.
pub(super) fn ending(report: &Report) -> String {
    let left = match report.dry_run {
        true => format!("{} would be left", count(report.rows, "row")),
        false if report.learned > 0 => format!("{} now", count(report.rows, "row")),
        false => format!("{} left", count(report.rows, "row")),
    };
    format!(
        "{left}; distance to retraining at most {} (relative); {}",
        distance(report.evidence.relative_bound),
        seconds(report.seconds)
    )
}
