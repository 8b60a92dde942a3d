//! `efface forget --models` and `efface index`: one request to all models of a folder.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use efface::NotCovered;
use efface_engine::{
    FolderAnswer, FolderOptions, FolderOutcome, ForgetOptions, forget_in_folder, index_folder,
};
use efface_receipt::ReceiptBundle;
use serde_json::json;

use super::forget::request;
use crate::cli::{ForgetArguments, IndexArguments};
use crate::failure::{Failure, Result};
use crate::output::{self, OutputFile};
use crate::report::{ChangeWords, count, left_lists, table};
use crate::terminal::Terminal;

pub(crate) fn forget(args: ForgetArguments, terminal: &Terminal) -> Result {
    let Some(folder) = &args.folder.models else {
        return Err(Failure::usage("no model is named"));
    };
    let asked = request(&args)?;
    if let Some(receipts) = &args.folder.receipts {
        std::fs::create_dir_all(receipts)
            .map_err(|cause| Failure::file(receipts, "made", &cause))?;
    }
    let mut receipts = Vec::new();
    let mut keep = |model: &str, bundle: &ReceiptBundle| {
        receipts.push((model.to_owned(), bundle.to_bytes()?));
        Ok(())
    };
    let bars = terminal.bars();
    let mut options = FolderOptions {
        forget: ForgetOptions {
            dry_run: args.dry_run,
            progress: &bars,
            at_most: args.at_most.map(|limit| Duration::from_secs(limit.0)),
        },
        by_index: args.folder.by_index,
        access: terminal.access(),
        patience: terminal.patience(),
        answered: &mut keep,
    };
    let answers = forget_in_folder(folder, &asked, &mut options)?;
    drop(bars);
    if let Some(folder) = &args.folder.receipts {
        for (model, bytes) in &receipts {
            write(&folder.join(format!("{model}.cose")), bytes, terminal)?;
        }
    }
    tell(&args, &answers, terminal)?;
    ended(answers)
}

/// A receipt of the same request that is there already is the same receipt under a newer head: it
/// may be overwritten.
fn write(path: &Path, bytes: &[u8], terminal: &Terminal) -> Result {
    output::check(path, &[], true)?;
    let mut out = OutputFile::file(path, &[], true, terminal)?;
    out.write_all(bytes)
        .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()
}

fn tell(args: &ForgetArguments, answers: &[FolderAnswer], terminal: &Terminal) -> Result {
    let forgotten: usize = answers
        .iter()
        .filter_map(|answer| answer.report.as_ref())
        .map(|report| report.forgotten)
        .sum();
    if terminal.json() {
        return terminal.object(&json!({
            "request": args.request,
            "dry_run": args.dry_run,
            "forgotten": forgotten,
            "models": answers,
        }));
    }
    let lines = answers.iter().map(|answer| {
        let report = answer.report.as_ref();
        let place = report.and_then(|report| report.receipt.as_ref());
        let rows = report.map_or(String::new(), |report| report.forgotten.to_string());
        let receipt = place.map_or(String::new(), |place| {
            format!("{}, number {}", place.id, place.sequence)
        });
        let changed = report.filter(|report| report.forgotten > 0);
        let [method, claim, bound] = ChangeWords::cells(changed.map(ChangeWords::of_report));
        vec![
            answer.model.clone(),
            told(answer, args.dry_run),
            rows,
            method,
            claim,
            bound,
            receipt,
        ]
    });
    let header = [
        "model", "answer", "rows", "method", "claim", "bound", "receipt",
    ];
    terminal.result(&table(&header, lines, &[2]))?;
    let reports = || answers.iter().filter_map(|answer| answer.report.as_ref());
    let not_covered: Vec<NotCovered> = reports()
        .flat_map(|report| report.evidence.not_covered.clone())
        .collect();
    let kept_beside: Vec<NotCovered> = reports()
        .flat_map(|report| report.evidence.kept_beside.clone())
        .collect();
    for (name, what) in left_lists(&not_covered, &kept_beside, args.explain) {
        terminal.note(&format!("{name}: {what}"));
    }
    let elsewhere = answers
        .iter()
        .filter(|answer| matches!(answer.outcome, FolderOutcome::NoSuchColumn))
        .count();
    if elsewhere > 0 {
        terminal.warn(&format!(
            "{} no such column: whether the person is in them is not known",
            of_models(elsewhere, "has", "have")
        ));
    }
    let passed_over = answers
        .iter()
        .filter(|answer| matches!(answer.outcome, FolderOutcome::NotAsked))
        .count();
    if passed_over > 0 {
        terminal.note(&format!(
            "{} not asked, because the index says that the person is not there",
            of_models(passed_over, "was", "were")
        ));
    }
    Ok(())
}

fn of_models(number: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        count(number, "model"),
        if number == 1 { one } else { many }
    )
}

fn told(answer: &FolderAnswer, dry_run: bool) -> String {
    let replayed = answer.report.as_ref().is_some_and(|report| report.replayed);
    match answer.outcome {
        FolderOutcome::Forgotten if dry_run => "would forget".into(),
        FolderOutcome::Forgotten if replayed => "forgotten before".into(),
        FolderOutcome::Forgotten => "forgotten".into(),
        FolderOutcome::NoSuchRows => "no such rows".into(),
        FolderOutcome::NoSuchColumn => "no such column".into(),
        FolderOutcome::NotAsked => "not asked".into(),
        FolderOutcome::Failed => format!("FAILED: {}", answer.problem.clone().unwrap_or_default()),
    }
}

/// What failed decides how the command ends; after that, whether anything was found, and whether
/// every bound is small enough.
fn ended(answers: Vec<FolderAnswer>) -> Result {
    let models = answers.len();
    let failed = answers
        .iter()
        .filter(|answer| matches!(answer.outcome, FolderOutcome::Failed))
        .count();
    let missed = answers
        .iter()
        .filter_map(|answer| answer.report.as_ref())
        .any(|report| report.tolerance_missed);
    let found = answers
        .iter()
        .any(|answer| matches!(answer.outcome, FolderOutcome::Forgotten));
    if failed > 0 {
        let message = format!("{failed} of {models} models failed");
        let mut errors = answers
            .into_iter()
            .filter(|answer| matches!(answer.outcome, FolderOutcome::Failed))
            .filter_map(|answer| answer.error);
        // A request that a model refused for good has an answer and no error.
        let mut failure = errors
            .next()
            .map_or_else(|| Failure::refused(""), Failure::from);
        failure.message = message;
        return Err(failure
            .hint("run the same command again: models that have answered give the same answer"));
    }
    if !found {
        return Err(Failure::not_found(format!(
            "none of {models} models has such rows"
        )));
    }
    if missed {
        return Err(Failure::tolerance_missed(
            "a model changed, and its bound is above the tolerance",
        ));
    }
    Ok(())
}

pub(crate) fn index(args: &IndexArguments, terminal: &Terminal) -> Result {
    let report = index_folder(&args.models)?;
    if terminal.json() {
        return terminal.object(&report);
    }
    terminal.message(&format!(
        "indexed {} of {}",
        count(report.subjects, "person"),
        count(report.models, "model")
    ));
    for name in &report.left_out {
        terminal.note(&format!(
            "{name} names no people, or cannot be read: it is always asked"
        ));
    }
    Ok(())
}
