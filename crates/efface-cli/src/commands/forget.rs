//! `efface forget`: take rows, or the rows of a person, out of a model.

use std::io::Write;
use std::path::{Path, PathBuf};

use efface::Options;
use efface_engine::{ChangeReport, Engine, ForgetRequest, ProjectionRounds, RowSelection};

use super::change::{ending, within_tolerance};
use crate::cli::Forget;
use crate::failure::{Failure, Result};
use crate::list;
use crate::output::Output;
use crate::report::{certificate, count};
use crate::terminal::Terminal;

pub(crate) fn run(args: Forget, terminal: &Terminal) -> Result {
    let inputs: Vec<&Path> =
        std::iter::once(&args.model).chain(&args.ids_file).map(PathBuf::as_path).collect();
    let output = |path: &PathBuf| Output::file(path, &inputs, args.force, terminal);
    let receipt = args.receipt.as_ref().map(output).transpose()?;
    let who = who(&args)?;
    let mut engine =
        if args.dry_run { Engine::open_read_only(&args.model)? } else { terminal.change(&args.model)? };
    let rounds = rounds(&args);
    // A tolerance is what ends rounds, where there are some.
    let tolerance = args.tolerance.filter(|_| rounds.is_none());
    let request = ForgetRequest {
        who,
        method: args.method,
        options: Options {
            tolerance,
            steps: args.steps,
            measure: args.measure,
            clear_dead_columns: args.clear_dead_columns,
        },
        rounds,
        tuning: args.tuning.options(),
        id: args.request,
        allow_missing: args.allow_missing,
        requested_at: args.requested_at,
    };
    // Ctrl-C ends the command, and the model stays as it was: the change is written at the end, and as one.
    let bars = terminal.bars();
    let report = engine.request_watched(&request, args.dry_run, &bars)?;
    drop(bars);
    if let (Some(mut out), Some(logged)) = (receipt, &report.receipt) {
        let bundle = engine.bundle(&logged.sequence.to_string())?;
        let bytes = bundle.to_bytes().map_err(efface_engine::Error::from)?;
        out.write_all(&bytes).map_err(|cause| Failure::file(out.name(), "written", &cause))?;
        out.finish()?;
    }
    if terminal.json() {
        terminal.object(&report)?;
        ended(&report)?;
        return within_tolerance(&report);
    }
    if report.replayed {
        terminal.note("this request was answered before; this is that answer");
    }
    if let Err(failure) = ended(&report) {
        tell_receipt(&report, terminal);
        return Err(failure);
    }
    let verb = if report.dry_run { "would forget" } else { "forgot" };
    let whose =
        args.subject.map(|person| format!(" of {}={}", person.column, person.value)).unwrap_or_default();
    let rows = count(report.forgotten, "row");
    terminal.message(&format!("{verb} {rows}{whose} by {}: {}", report.method, ending(&report)));
    if let Some(found) = &report.evidence.certificate {
        terminal.message(&format!("certified: {}", certificate(found)));
    }
    if report.features_dropped > 0 {
        let names = count(report.features_dropped, "feature name");
        let erased = match (report.dry_run, report.scrubbed) {
            (true, _) => "would be erased",
            (false, true) => "erased",
            (false, false) => "out of use, and erased by the next settle",
        };
        terminal.note(&format!("{names} {erased}: no other row has them"));
    }
    for what in report.reason.iter().filter(|_| report.missing > 0) {
        terminal.note(what);
    }
    if report.withdrawn > 0 {
        terminal.note(&format!("{} withdrawn: they still hold the rows", count(report.withdrawn, "export")));
    }
    for what in &report.evidence.not_covered {
        terminal.note(&format!("not covered: {what}"));
    }
    tell_receipt(&report, terminal);
    within_tolerance(&report)
}

fn tell_receipt(report: &ChangeReport, terminal: &Terminal) {
    if let Some(receipt) = &report.receipt {
        terminal.message(&format!("receipt {}, number {} in the log", receipt.id, receipt.sequence));
    }
}

/// A request that took nothing out ends with a code that says so, though the log has its receipt.
fn ended(report: &ChangeReport) -> Result {
    let reason = report.reason.clone().unwrap_or_default();
    match report.outcome.as_str() {
        "not_found" => Err(Failure::not_found(reason)),
        "refused" => Err(Failure::refused(reason)),
        _ => Ok(()),
    }
}

/// The rounds of algorithm 5, where the options ask for some.
fn rounds(args: &Forget) -> Option<ProjectionRounds> {
    let asked = args.rounds.is_some() || args.step.is_some();
    let usual = ProjectionRounds::default();
    asked.then(|| ProjectionRounds {
        rounds: args.rounds.unwrap_or(usual.rounds),
        step: args.step.unwrap_or(usual.step),
        tolerance: args.tolerance.unwrap_or(usual.tolerance),
    })
}

fn who(args: &Forget) -> Result<RowSelection> {
    if let Some(person) = &args.subject {
        return Ok(RowSelection::Subject { column: person.column.clone(), value: person.value.clone() });
    }
    let ids = match &args.ids_file {
        Some(path) => list::read(path)?,
        None => args.ids.clone(),
    };
    if let Some(at) = ids.iter().position(String::is_empty) {
        return Err(
            Failure::usage(format!("id {} of {} is empty", at + 1, ids.len())).hint("check the commas")
        );
    }
    Ok(RowSelection::Ids(ids))
}
