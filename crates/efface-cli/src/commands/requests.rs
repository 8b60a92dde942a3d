//! `efface forget --requests FILE`: many requests in one commit, with a receipt each.

use std::path::Path;
use std::time::Duration;

use efface_engine::{ChangeReport, ForgetOptions, ForgetRequest, RowSelection};
use efface_receipt::Time;
use serde::Deserialize;
use serde_json::{Map, json};

use super::change::within_tolerance;
use super::forget::{ended, request};
use crate::cli::{ForgetArguments, requested_time, subject_value};
use crate::failure::{Failure, Result};
use crate::list;
use crate::report::{ChangeWords, count};
use crate::terminal::Terminal;

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    /// The caller's name for the request.
    request: Option<String>,
    /// Rows, by id.
    #[serde(default)]
    ids: Vec<String>,
    /// A person, as COLUMN=VALUE.
    subject: Option<String>,
    /// When the person asked.
    requested_at: Option<String>,
    /// Whether rows that are not there are passed over.
    #[serde(default)]
    allow_missing: bool,
}

pub(super) fn run(
    model: &Path,
    file: &Path,
    args: &ForgetArguments,
    terminal: &Terminal,
) -> Result {
    let requests = read(file, args)?;
    let mut engine = if args.dry_run {
        terminal.look(model)?
    } else {
        terminal.change(model)?
    };
    let bars = terminal.bars();
    let answers = engine.forget(
        &requests,
        &ForgetOptions {
            dry_run: args.dry_run,
            progress: &bars,
            at_most: args.at_most.map(|limit| Duration::from_secs(limit.0)),
        },
    );
    drop(bars);
    let mut rows = 0;
    let mut answered = 0;
    let mut failures = 0;
    let mut first = None;
    for (at, answer) in answers.into_iter().enumerate() {
        let name = requests[at]
            .id
            .clone()
            .unwrap_or_else(|| format!("line {}", at + 1));
        let (report, failure) = match answer {
            Ok(report) => {
                let failure = ended(&report)
                    .and_then(|()| within_tolerance(&report))
                    .err();
                (Some(report), failure)
            }
            Err(error) => (None, Some(Failure::from(error))),
        };
        let forgotten = report.as_ref().map_or(0, |report| report.forgotten);
        rows += forgotten;
        answered += usize::from(forgotten > 0);
        failures += usize::from(failure.is_some());
        tell(&name, report.as_ref(), failure.as_ref(), terminal)?;
        first = first.or(failure);
    }
    let verb = if args.dry_run {
        "would forget"
    } else {
        "forgot"
    };
    terminal.message(&format!(
        "{verb} {} for {}",
        count(rows, "row"),
        count(answered, "request")
    ));
    match first {
        // The code is that of the first that failed; all others are done.
        Some(first) => {
            let what = format!(
                "{failures} of {} failed; the first: {}",
                count(requests.len(), "request"),
                first.message
            );
            Err(first.with_message(what))
        }
        None => Ok(()),
    }
}

/// What came of a request: with --json an object, which may hold both a report and what is wrong
/// with it.
fn tell(
    name: &str,
    report: Option<&ChangeReport>,
    failure: Option<&Failure>,
    terminal: &Terminal,
) -> Result {
    if terminal.json() {
        let mut object = Map::from_iter([("request".to_owned(), json!(name))]);
        object.extend(report.map(|report| ("report".to_owned(), json!(report))));
        object.extend(failure.map(|failure| ("error".to_owned(), json!(failure.message))));
        return terminal.object(&object);
    }
    if let Some(report) = report {
        let receipt = report.receipt.as_ref();
        let receipt =
            receipt.map(|receipt| format!("; receipt {}, number {}", receipt.id, receipt.sequence));
        let before = if report.replayed {
            " (answered before)"
        } else {
            ""
        };
        let rows = count(report.forgotten, "row");
        let outcome = report.outcome.name();
        let how = if report.forgotten > 0 {
            let ChangeWords {
                method,
                claim,
                bound,
            } = ChangeWords::of_report(report);
            format!(" by {method}; claim {claim}; distance to retraining {bound}")
        } else {
            String::new()
        };
        terminal.message(&format!(
            "{name}: {outcome}, {rows}{before}{how}{}",
            receipt.unwrap_or_default()
        ));
    }
    if let Some(failure) = failure {
        terminal.warn(&format!("{name}: {}", failure.message));
    }
    Ok(())
}

/// The requests of a file, a JSON object a line. All ask for the method of the command line, so
/// that they are one change.
fn read(file: &Path, args: &ForgetArguments) -> Result<Vec<ForgetRequest>> {
    let shared = request(args)?;
    let mut found = Vec::new();
    for (at, text) in list::read(file)?.iter().enumerate() {
        let wrong = |what: String| {
            let failure = Failure::usage(format!("{}: request {}: {what}", file.display(), at + 1));
            failure.hint(r#"write {"ids": ["r1", "r2"]} or {"subject": "user_id=u7"}, and perhaps "request", "requested_at", "allow_missing""#)
        };
        // The message of the parser would repeat what the line holds.
        let line: RequestLine = serde_json::from_str(text)
            .map_err(|error| wrong(format!("no request at column {}", error.column())))?;
        let who = match (line.ids.is_empty(), &line.subject) {
            (false, None) => RowSelection::Ids(line.ids),
            (true, Some(subject)) => {
                let person = subject_value(subject).map_err(wrong)?;
                RowSelection::Subject {
                    column: person.column,
                    value: person.value,
                }
            }
            _ => return Err(wrong("it names rows or a person, and not both".into())),
        };
        let requested_at: Option<Time> = line
            .requested_at
            .as_deref()
            .map(requested_time)
            .transpose()
            .map_err(wrong)?;
        let allow_missing = line.allow_missing || shared.allow_missing;
        found.push(ForgetRequest {
            who,
            id: line.request,
            requested_at,
            allow_missing,
            ..shared.clone()
        });
    }
    if found.is_empty() {
        return Err(
            Failure::usage(format!("{} holds no request", file.display())).hint("write one a line"),
        );
    }
    Ok(found)
}
