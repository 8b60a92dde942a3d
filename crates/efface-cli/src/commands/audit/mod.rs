//! `efface audit`: how well a model forgets. The engine measures; this prints it, and writes it
//! down.

mod page;

use std::io::Write;
use std::path::Path;

use efface::eval::{Attack, Exposure};
use efface_engine::files::check_folder;
use efface_engine::{
    AuditReport, AuditRequest, AuditRows, RowSelection, StateReport, named_method,
};
use efface_io::Source;

use super::threads;
use crate::cli::AuditArguments;
use crate::failure::{Failure, Result};
use crate::output::{self, OutputFile};
use crate::report::{count, distance, seconds, table};
use crate::terminal::Terminal;

/// What goes into the folder of `--out` beside the CSV files.
const FILES: [&str; 2] = ["audit.json", "index.html"];

pub(crate) fn run(args: &AuditArguments, terminal: &Terminal) -> Result {
    if let Some(folder) = &args.out {
        prepare(folder, &args.model, args.force)?;
    }
    if let Some(file) = &args.html {
        output::check(file, &[&args.model], args.force)?;
    }
    let request = request(args)?;
    let mut engine = if args.record {
        terminal.change(&args.model)?
    } else {
        terminal.look(&args.model)?
    };
    let report = engine
        .audit(&request, &terminal.bars())
        .map_err(|error| match error {
            // The log, of which the error speaks to those who forget, has no part in an audit.
            error @ efface_engine::Error::UnknownSubject { .. } => {
                Failure::from(error).hint("people who have left already are looked for with --file")
            }
            error => error.into(),
        })?;
    if let Some(folder) = &args.out {
        write(folder, args.force, &report, terminal)?;
    }
    if let Some(file) = &args.html {
        put(file, args.force, &page::page(&report).html(), terminal)?;
    }
    let receipt = args
        .record
        .then(|| engine.record_audit(&report.results()))
        .transpose()?;
    if terminal.json() {
        return terminal.object(&report);
    }
    tell(&report, terminal)?;
    if let Some(folder) = &args.out {
        terminal.message(&format!(
            "written to {}",
            folder.join("index.html").display()
        ));
    }
    if let Some(file) = &args.html {
        terminal.message(&format!("written to {}", file.display()));
    }
    if let Some(receipt) = receipt {
        terminal.message(&format!(
            "receipt {}, number {} in the log",
            receipt.id, receipt.sequence
        ));
    }
    Ok(())
}

fn request(args: &AuditArguments) -> Result<AuditRequest> {
    let rows = if let Some(person) = &args.subject {
        AuditRows::Present(RowSelection::Subject {
            column: person.column.clone(),
            value: person.value.clone(),
        })
    } else if let Some(count) = args.sample {
        AuditRows::Sample(count)
    } else if let Some(file) = &args.file {
        AuditRows::Gone(Source::open(file, None)?.into())
    } else {
        AuditRows::Present(RowSelection::Ids(args.forget.clone()))
    };
    let held_out = args
        .held_out
        .as_ref()
        .map(|file| Source::open(file, None))
        .transpose()?;
    Ok(AuditRequest {
        methods: args
            .method
            .iter()
            .map(|name| named_method(name, &[]))
            .collect::<std::result::Result<_, _>>()?,
        with_twins: args.with_twins,
        held_out: held_out.map(Into::into),
        oracles: args.oracles,
        keep: args.keep,
        seed: args.seed,
        threads: threads(args.threads),
        ..AuditRequest::new(rows)
    })
}

/// The accuracy of every state on the rows to forget, for a network whose encoder was trained on
/// them: what is above that of the network trained anew, the encoder still knows of the rows.
fn recall(report: &AuditReport) -> Option<String> {
    let shares: Vec<String> = report
        .recall()
        .into_iter()
        .map(|(state, accuracy)| format!("{state} {:.1} %", 100.0 * accuracy))
        .collect();
    (!shares.is_empty()).then(|| {
        format!(
            "accuracy on the rows to forget: {}; retrain_network was trained without them, encoder and all, and \
             retrain_head is a new head on the encoder that was trained on them",
            shares.join(", ")
        )
    })
}

/// Accuracy on the rows to forget first, then twins, then how near, then who can tell, then what is not claimed.
fn tell(report: &AuditReport, terminal: &Terminal) -> Result {
    if let Some(line) = recall(report) {
        terminal.message(&line);
    }
    tell_twins(report, terminal);
    terminal.result(&nearness(report))?;
    if let Some(membership) = &report.membership {
        terminal.result(&format!("\n{}", exposures(&membership.exposures)))?;
        let oracles = membership.oracles;
        let retained = membership.retained;
        terminal.message(&format!(
            "{oracles} oracles, {} and {} attacked; 0.5 is a coin, KLoM is that of the 95th in a hundred forgotten rows",
            count(membership.forgotten, "forgotten row"),
            count(retained, "retained row"),
        ));
    }
    for AuditFinding { words, areas } in findings(report) {
        let areas = areas.map(|(own, truth)| format!(" (AUC {own:.3}, retraining {truth:.3})"));
        terminal.message(&format!("{words}{}", areas.unwrap_or_default()));
    }
    for what in &report.left_out {
        terminal.note(&format!("left out: {what}"));
    }
    for what in &report.not_claimed {
        terminal.note(&format!("not claimed: {what}"));
    }
    Ok(())
}

fn tell_twins(report: &AuditReport, terminal: &Terminal) {
    let twins = &report.twins;
    let forgotten = count(report.forgotten, "row");
    if twins.taken_along > 0 {
        terminal.message(&format!(
            "{} forgotten along: they equal rows named",
            count(twins.taken_along, "twin")
        ));
    }
    if twins.surviving == 0 {
        terminal.message(&format!(
            "twins: none of {forgotten} to forget stays as another row"
        ));
    } else {
        let shown: Vec<&str> = twins.ids.iter().take(10).map(String::as_str).collect();
        let more = if twins.ids.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        terminal.warn(&format!(
            "{} of {forgotten} to forget stay as twins: {}{more}; --with-twins takes them along",
            twins.surviving,
            shown.join(", ")
        ));
    }
    if twins.resembled > 0 {
        terminal.note(&format!(
            "{} to forget leave their features under another target",
            twins.resembled
        ));
    }
}

/// The first table: every state of the model.
fn nearness(report: &AuditReport) -> String {
    let mut header = vec![
        "state",
        "claim",
        "time",
        "distance",
        "way left",
        "scores",
        "relearned",
        "injected",
    ];
    let held_out = report.states.iter().any(|state| state.held_out.is_some());
    let measure = measure(report);
    header.push(measure);
    if held_out {
        header.extend(["held out", "population"]);
    }
    let right: Vec<usize> = (2..header.len()).collect();
    table(
        &header,
        report
            .states
            .iter()
            .map(|state| line(report, state, held_out)),
        &right,
    )
}

/// The one measure of utility that the table has room for.
fn measure(report: &AuditReport) -> &'static str {
    match report
        .states
        .first()
        .and_then(|state| state.retained.accuracy)
    {
        Some(_) => "accuracy",
        None => "RMSE",
    }
}

fn line(report: &AuditReport, state: &StateReport, held_out: bool) -> Vec<String> {
    let far = state.distance.as_ref();
    let useful = |utility: &efface::eval::Utility| match (utility.accuracy, utility.rmse) {
        (Some(accuracy), _) => format!("{:.2} %", 100.0 * accuracy),
        (None, Some(rmse)) => format!("{rmse:.4}"),
        _ => String::new(),
    };
    let claim = match (state.state.as_str(), &state.evidence) {
        ("before" | "model", _) => String::new(),
        (_, Some(evidence)) => evidence.claim().name().into(),
        _ => "exact".into(),
    };
    // A whole network has features of its own, and so no distance between parameters.
    let none = if state.state == report.comparison {
        "0"
    } else {
        ""
    };
    let mut line = vec![
        named(state),
        claim,
        state.seconds.map(seconds).unwrap_or_default(),
        far.map_or(none.into(), |far| far.l2.map(distance).unwrap_or_default()),
        far.and_then(|far| far.fraction)
            .map(share)
            .unwrap_or_default(),
        far.map_or(none.into(), |far| distance(far.largest_prediction_change)),
        relearned(state),
        injected(report, &state.state)
            .map(distance)
            .unwrap_or_default(),
        useful(&state.retained),
    ];
    if held_out {
        line.push(state.held_out.as_ref().map(useful).unwrap_or_default());
        line.push(state.population.as_ref().map(auc).unwrap_or_default());
    }
    line
}

/// A state with what `auto` chose.
fn named(state: &StateReport) -> String {
    match &state.evidence {
        Some(evidence) if evidence.method != state.state => {
            format!("{} ({})", state.state, evidence.method)
        }
        _ => state.state.clone(),
    }
}

/// The relearning time beside that of the retrained model, in percent.
fn relearned(state: &StateReport) -> String {
    match state.relearning {
        None => String::new(),
        Some(found) => match (found.ratio, found.steps) {
            (Some(ratio), _) => format!("{:.0} %", 100.0 * ratio),
            (None, None) => format!("not in {}", found.limit),
            (None, Some(_)) => "–".into(),
        },
    }
}

/// |w| of the injected feature as a share of that before.
fn injected(report: &AuditReport, state: &str) -> Option<f64> {
    let injection = report.injection.as_ref()?;
    match state {
        "before" => Some(1.0),
        name if name == report.comparison => Some(injection.retrained / injection.before),
        _ => injection
            .ways
            .iter()
            .find(|way| way.method == state)
            .map(|way| way.ratio),
    }
}

/// What a method's algebra left of the injected weight before the column was cleared, as a share of
/// that before; None where nothing was cleared.
fn injected_and_cleared(report: &AuditReport, state: &str) -> Option<f64> {
    let injection = report.injection.as_ref()?;
    let way = injection.ways.iter().find(|way| way.method == state)?;
    way.cleared.map(|norm| norm / injection.before)
}

/// The second table: what attackers found.
fn exposures(exposures: &[Exposure]) -> String {
    let header = [
        "state",
        "forgotten: U-LiRA",
        "TPR at 1 %",
        "0.1 %",
        "retained: LiRA",
        "threshold",
        "paired KLoM",
        "unpaired",
    ];
    let rate = |attack: &Attack, at: usize| match attack.rates.get(at) {
        Some(rate) if rate.resolved => format!("{:.1} %", 100.0 * rate.tpr),
        _ => "–".into(),
    };
    let line = |exposure: &Exposure| {
        vec![
            exposure.state.clone(),
            auc(&exposure.forgotten),
            rate(&exposure.forgotten, 0),
            rate(&exposure.forgotten, 1),
            format!("{:.3}", exposure.retained.auc),
            format!("{:.3}", exposure.population_forgotten.auc),
            small(exposure.paired_klom.forgotten.p95),
            small(exposure.unpaired_klom.forgotten.p95),
        ]
    };
    table(&header, exposures.iter().map(line), &[2, 3, 4, 5, 6, 7])
}

fn auc(attack: &Attack) -> String {
    let interval = attack.auc_interval;
    format!(
        "{:.3} ({:.3} to {:.3})",
        attack.auc, interval.low, interval.high
    )
}

/// A share of the way to retraining that is still to go.
fn share(value: f64) -> String {
    if value >= 1e-3 {
        format!("{:.1} %", 100.0 * value)
    } else {
        format!("{} %", distance(100.0 * value))
    }
}

fn small(value: f64) -> String {
    if value == 0.0 || value >= 1e-3 {
        format!("{value:.3}")
    } else {
        distance(value)
    }
}

/// One result in plain words, and the areas under the curve that it rests on: the method's and
/// retraining's.
pub(super) struct AuditFinding {
    pub(super) words: String,
    pub(super) areas: Option<(f64, f64)>,
}

/// What the attacks say, one sentence a method.
pub(super) fn findings(report: &AuditReport) -> Vec<AuditFinding> {
    let Some(membership) = &report.membership else {
        return Vec::new();
    };
    let truth = membership.of(report.comparison);
    let (Some(before), Some(truth)) = (membership.of("before"), truth) else {
        return Vec::new();
    };
    let retraining = match report.comparison {
        "retrain_head" => "a new head on the same encoder",
        _ => "retraining",
    };
    let mut said = Vec::new();
    if before.forgotten.auc_interval.low <= 0.5 {
        let words = "before any forgetting the attack is no better than a coin: on these rows it shows nothing either way";
        said.push(AuditFinding {
            words: words.into(),
            areas: None,
        });
    }
    for exposure in membership
        .exposures
        .iter()
        .filter(|e| report.is_compared(&e.state))
    {
        let found = &exposure.forgotten;
        let says = match truth.forgotten.auc {
            truth if truth < found.auc_interval.low => {
                format!("finds more in it than in {retraining}")
            }
            truth if truth > found.auc_interval.high => {
                format!("finds less in it than in {retraining}, by chance or otherwise")
            }
            _ => format!("cannot tell it from {retraining} here"),
        };
        let words = format!("{}: U-LiRA {says}", exposure.state);
        said.push(AuditFinding {
            words,
            areas: Some((found.auc, truth.forgotten.auc)),
        });
    }
    said
}

/// Makes the folder, and refuses to lose what is in it.
fn prepare(folder: &Path, model: &Path, force: bool) -> Result {
    std::fs::create_dir_all(folder).map_err(|cause| Failure::file(folder, "made", &cause))?;
    for name in FILES {
        output::check(&folder.join(name), &[model], force).map_err(|failure| {
            failure.hint("choose another folder, or overwrite it with --force")
        })?;
    }
    // The tables that are written beside them have names that the results decide.
    Ok(check_folder(folder, &["csv"], &[model])?)
}

fn write(folder: &Path, force: bool, report: &AuditReport, terminal: &Terminal) -> Result {
    let json = serde_json::to_string_pretty(report)
        .map_err(|cause| Failure::internal(format!("a result is no JSON: {cause}")))?;
    let page = page::page(report);
    put(&folder.join("audit.json"), force, &json, terminal)?;
    put(&folder.join("index.html"), force, &page.html(), terminal)?;
    for file in page.csv() {
        put(&folder.join(&file.name), force, &file.text, terminal)?;
    }
    Ok(())
}

fn put(path: &Path, force: bool, text: &str, terminal: &Terminal) -> Result {
    let mut out = OutputFile::file(path, &[], force, terminal)?;
    out.write_all(text.as_bytes())
        .map_err(|cause| Failure::file(path, "written", &cause))?;
    out.finish()
}
