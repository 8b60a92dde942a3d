//! `efface forget`: take rows, or the rows of a person, out of a model.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use efface::Method;
use efface_engine::{ChangeReport, ForgetOptions, ForgetRequest, RowSelection, named_method};
use efface_receipt::RequestOutcome;

use super::change::{ANSWERED_BEFORE, ending, within_tolerance};
use super::{folder, requests};
use crate::cli::ForgetArguments;
use crate::failure::{Failure, Result};
use crate::list;
use crate::output::OutputFile;
use crate::report::{certificate, count, left_behind};
use crate::terminal::Terminal;

pub(crate) fn run(args: ForgetArguments, terminal: &Terminal) -> Result {
    let Some(model) = args.model.clone() else {
        return folder::forget(args, terminal);
    };
    if let Some(file) = args.requests.clone() {
        return requests::run(&model, &file, &args, terminal);
    }
    let inputs: Vec<&Path> = std::iter::once(&model)
        .chain(&args.ids_file)
        .map(PathBuf::as_path)
        .collect();
    let output = |path: &PathBuf| OutputFile::file(path, &inputs, args.force, terminal);
    let receipt = args.receipt.as_ref().map(output).transpose()?;
    let request = request(&args)?;
    let mut engine = if args.dry_run {
        terminal.look(&model)?
    } else {
        terminal.change(&model)?
    };
    // Ctrl-C ends the command, and the model stays as it was: the change is written at the end, and
    // as one.
    let bars = terminal.bars();
    let report = engine.forget(
        &request,
        &ForgetOptions {
            dry_run: args.dry_run,
            progress: &bars,
            at_most: args.at_most.map(|limit| Duration::from_secs(limit.0)),
        },
    )?;
    drop(bars);
    if let (Some(mut out), Some(logged)) = (receipt, &report.receipt) {
        let bundle = engine.bundle(&logged.sequence.to_string())?;
        let bytes = bundle.to_bytes().map_err(efface_engine::Error::from)?;
        out.write_all(&bytes)
            .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
        out.finish()?;
    }
    if terminal.json() {
        terminal.object(&report)?;
        ended(&report)?;
        return within_tolerance(&report);
    }
    if report.replayed {
        terminal.note(ANSWERED_BEFORE);
    }
    if let Err(failure) = ended(&report) {
        tell_receipt(&report, terminal);
        return Err(failure);
    }
    let verb = if report.dry_run {
        "would forget"
    } else {
        "forgot"
    };
    let whose = args
        .subject
        .map(|person| format!(" of {}={}", person.column, person.value))
        .unwrap_or_default();
    let rows = count(report.forgotten, "row");
    terminal.message(&format!(
        "{verb} {rows}{whose} by {}: {}",
        report.method,
        ending(&report)
    ));
    // What auto chose needs no word, unless it had to train.
    let trained = ["retrain", "retrain_head", "warm_start"].contains(&report.method.as_str());
    for reason in report
        .evidence
        .reason
        .iter()
        .filter(|_| trained && args.method == "auto")
    {
        terminal.note(&format!("{}: {reason}", report.method));
    }
    if let Some(compared) = &report.evidence.compared {
        terminal.note(&compared.to_string());
    }
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
        let them = if report.features_dropped == 1 {
            "it"
        } else {
            "them"
        };
        terminal.note(&format!("{names} {erased}: no other row has {them}"));
    }
    for what in report.reason.iter().filter(|_| report.missing > 0) {
        terminal.note(what);
    }
    if report.withdrawn > 0 {
        let hold = if report.withdrawn == 1 {
            "it still holds"
        } else {
            "they still hold"
        };
        let withdrawn = if report.dry_run {
            "would be withdrawn"
        } else {
            "withdrawn"
        };
        terminal.note(&format!(
            "{} {withdrawn}: {hold} the rows",
            count(report.withdrawn, "export")
        ));
    }
    left_behind(&report.evidence, args.explain)
        .iter()
        .for_each(|line| terminal.note(line));
    tell_receipt(&report, terminal);
    within_tolerance(&report)
}

/// What the options ask for.
pub(super) fn request(args: &ForgetArguments) -> Result<ForgetRequest> {
    Ok(ForgetRequest {
        method: method(args)?,
        clear_dead_columns: args.clear_dead_columns,
        allow_worse: args.allow_worse,
        new_seed: args.new_seed,
        id: args.request.clone(),
        allow_missing: args.allow_missing,
        requested_at: args.requested_at,
        ..ForgetRequest::new(who(args)?)
    })
}

fn tell_receipt(report: &ChangeReport, terminal: &Terminal) {
    if let Some(receipt) = &report.receipt {
        terminal.message(&format!(
            "receipt {}, number {} in the log",
            receipt.id, receipt.sequence
        ));
    }
}

/// A request that took nothing out ends with a code that says so, though the log has its receipt.
pub(super) fn ended(report: &ChangeReport) -> Result {
    let reason = report.reason.clone().unwrap_or_default();
    match report.outcome {
        RequestOutcome::NotFound => Err(Failure::not_found(reason)),
        RequestOutcome::Refused => Err(Failure::refused(reason)),
        RequestOutcome::Erased | RequestOutcome::Partial | RequestOutcome::Done => Ok(()),
    }
}

/// Those of these options that were given, so that a hint names no other.
fn given(args: &ForgetArguments, options: &[&str]) -> String {
    let is_given = |option: &&&str| match **option {
        "--steps" => args.steps.is_some(),
        "--measure" => args.measure,
        "--clear-dead-columns" => args.clear_dead_columns,
        "--tolerance" => args.tolerance.is_some(),
        _ => false,
    };
    options
        .iter()
        .filter(is_given)
        .copied()
        .collect::<Vec<_>>()
        .join(" and ")
}

/// The method that the options ask for.
fn method(args: &ForgetArguments) -> Result<Method> {
    let rounds = args.rounds.is_some() || args.step.is_some();
    let tuning = args.tuning.given();
    let options = args.steps.is_some() || args.measure || args.clear_dead_columns;
    let trains_further = Method::named(&args.method).is_ok_and(|method| method.trains_further());
    if rounds && (args.method != "projection_residual" || options) {
        let failure = Failure::usage("rounds and a step size are for projection_residual");
        let others = given(args, &["--steps", "--measure", "--clear-dead-columns"]);
        let mut steps = Vec::new();
        if args.method != "projection_residual" {
            steps.push("add --method projection_residual".to_owned());
        }
        if !others.is_empty() {
            steps.push(format!("leave out {others}"));
        }
        return Err(failure.hint(steps.join(", and ")));
    }
    if !tuning.is_empty() && !trains_further {
        let failure = Failure::usage(
            "epochs, a rate and the like are for methods that train a network further",
        );
        return Err(failure.hint("add --method fine_tune, neggrad_plus or scrub"));
    }
    if trains_further && (options || args.tolerance.is_some()) {
        let failure = Failure::usage(format!("{} bounds nothing", args.method));
        let others = given(
            args,
            &[
                "--tolerance",
                "--steps",
                "--measure",
                "--clear-dead-columns",
            ],
        );
        return Err(failure.hint(format!("leave out {others}")));
    }
    let mut settings = tuning;
    settings.extend(args.tolerance.map(|value| ("tolerance", value.to_string())));
    settings.extend(args.steps.map(|value| ("steps", value.to_string())));
    settings.extend(args.measure.then(|| ("measure", true.to_string())));
    settings.extend(args.rounds.map(|value| ("rounds", value.to_string())));
    settings.extend(args.step.map(|value| ("step", value.to_string())));
    named_method(&args.method, &settings).map_err(|error| match error {
        // A network is trained further with some settings, and this is one of another method.
        efface_engine::Error::Core(efface::Error::Unsupported { reason, .. }) if trains_further => {
            Failure::usage(reason).hint("add a --method that has this setting")
        }
        error => error.into(),
    })
}

fn who(args: &ForgetArguments) -> Result<RowSelection> {
    if let Some(person) = &args.subject {
        return Ok(RowSelection::Subject {
            column: person.column.clone(),
            value: person.value.clone(),
        });
    }
    let ids = match &args.ids_file {
        Some(path) => list::read(path)?,
        None => args.ids.clone(),
    };
    if let Some(at) = ids.iter().position(String::is_empty) {
        return Err(
            Failure::usage(format!("id {} of {} is empty", at + 1, ids.len()))
                .hint("check the commas"),
        );
    }
    Ok(RowSelection::Ids(ids))
}
