//! The report, from the record of a run. Nothing is measured here, and every number goes to the
//! page as a `Number`.

mod adaptive;
mod distance;
mod findings;
mod head;
mod injection;
mod membership;
mod network;
mod network_left;
mod review_injection;
mod shares;
mod speed;
mod times;

use efface_report::{Number, Page, RichText, Section, Style, TableCell};

use crate::part::PaperStudy;
use crate::plan::StudyPlan;
use crate::run::ReproduceSettings;
use crate::state::TrialRecord;
use crate::statistics::{SampleSummary, summary};
use crate::studies::{StudyContext, review_injection as reviews};

/// The records, to be asked for cells.
pub(crate) struct TrialResults<'a> {
    records: &'a [TrialRecord],
}

impl<'a> TrialResults<'a> {
    pub(crate) fn new(records: &'a [TrialRecord]) -> Self {
        Self { records }
    }

    fn of(&self, study: PaperStudy, cell: &str) -> impl Iterator<Item = &'a TrialRecord> {
        let study = study.name();
        let cell = cell.to_string();
        self.records
            .iter()
            .filter(move |record| record.study == study && record.cell == cell)
    }

    /// A value over the trials of a cell.
    fn get(&self, study: PaperStudy, cell: &str, name: &str) -> Option<SampleSummary> {
        summary(
            self.of(study, cell)
                .filter_map(|record| record.values.get(name).copied()),
        )
    }

    fn has(&self, study: PaperStudy) -> bool {
        self.records
            .iter()
            .any(|record| record.study == study.name())
    }

    /// The trials of the cell that has the fewest, and of the one that has the most.
    fn trials(&self, study: PaperStudy, cells: impl IntoIterator<Item = String>) -> (usize, usize) {
        let counts: Vec<usize> = cells
            .into_iter()
            .map(|cell| self.of(study, &cell).count())
            .collect();
        (
            counts.iter().copied().min().unwrap_or(0),
            counts.iter().copied().max().unwrap_or(0),
        )
    }
}

/// What a progress bar calls a study.
pub(crate) fn title(study: PaperStudy) -> &'static str {
    match study {
        PaperStudy::Times => "table 1",
        PaperStudy::ReviewInjection => "table 1, injection",
        PaperStudy::NetworkTimes => "table 2",
        PaperStudy::HeadInjection => "table 3, figures 1 and 2",
        PaperStudy::Injection => "tables 4 and 5",
        PaperStudy::Distance => "l2",
        PaperStudy::Adaptive => "adaptive",
        PaperStudy::Membership => "membership",
    }
}

/// Where a run is smaller than the paper, and why.
pub(crate) fn reasons(context: &StudyContext, settings: &ReproduceSettings) -> Vec<String> {
    let plan = &context.plan;
    let full = StudyPlan::full();
    let mut reasons = Vec::new();
    if settings.quick {
        reasons.push(format!(
            "quick settings: {} trials in place of {} in table 1, {} in place of {} in tables 4 and 5, which are at d = {} in place \
             of {}, as is l2; short trainings; directions can be compared with the paper, sizes cannot",
            plan.times.trials,
            full.times.trials,
            plan.injection.trials,
            full.injection.trials,
            plan.injection.width,
            full.injection.width
        ));
    } else {
        if let Some(trials) = settings.trials.filter(|trials| *trials < full.times.trials) {
            reasons.push(format!(
                "{trials} trials a cell, as was asked for; the paper has {} in table 1 and {} in tables 4 and 5",
                full.times.trials, full.injection.trials
            ));
        }
        if plan.times.denominators < plan.times.trials {
            reasons.push(format!(
                "table 1: what a request is divided by is timed {} times a cell and not {}, because it is most of the work",
                plan.times.denominators, plan.times.trials
            ));
        }
        if plan.review_injection.trials < plan.times.trials {
            reasons.push(format!(
                "table 1, injection: {} trials a cell and not {}, because each is a fit of its own",
                plan.review_injection.trials, plan.times.trials
            ));
        }
        if plan.network.retrainings < plan.network.runs {
            reasons.push(format!(
                "table 2: {} runs of what trains a whole network and {} of the others, because each training takes minutes; the \
                 paper does not say how many runs its totals are of",
                plan.network.retrainings, plan.network.runs
            ));
        }
    }
    let widths = reviews::widths(context);
    if widths != plan.review_injection.widths {
        let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
        reasons.push(format!(
            "table 1, injection: d = {} alone, because generated reviews have few different words",
            widths.join(", ")
        ));
    }
    reasons
}

/// The page and the findings that open it.
pub(crate) fn build(
    context: &StudyContext,
    records: &[TrialRecord],
    settings: &ReproduceSettings,
) -> (Page, Vec<RichText>) {
    let results = TrialResults::new(records);
    let found = findings::findings(context, &results);
    let mut page = Page::new("The paper's tables, measured again")
        .subtitle(subtitle(context, records, settings));
    for text in &found {
        page = page.opening(text.clone());
    }
    if results.has(PaperStudy::Times) {
        page = page.section(times::section(context, &results));
    }
    if results.has(PaperStudy::ReviewInjection) {
        page = page.section(review_injection::section(context, &results));
    }
    if results.has(PaperStudy::NetworkTimes) {
        page = page.section(network::section(context, &results));
    }
    if results.has(PaperStudy::HeadInjection) {
        page = page.section(head::table(context, &results));
        page = page.section(head::figures(context, &results));
    }
    if results.has(PaperStudy::Injection) {
        page = page.section(injection::left(context, &results));
        page = page.section(injection::before(context, &results));
    }
    if results.has(PaperStudy::Distance) {
        page = page.section(distance::section(context, &results));
    }
    if results.has(PaperStudy::Adaptive) {
        page = page.section(adaptive::section(context, &results));
    }
    if results.has(PaperStudy::Membership) {
        page = page.section(membership::section(context, &results));
    }
    page = page.section(method(context, settings));
    (page.footer(footer(records, settings)), found)
}

fn subtitle(
    context: &StudyContext,
    records: &[TrialRecord],
    settings: &ReproduceSettings,
) -> RichText {
    let sort = match (settings.quick, settings.trials) {
        (true, _) => "Quick settings",
        (false, None) => "The paper's settings",
        (false, Some(_)) => "The paper's sizes, with as many trials as were asked for",
    };
    let data = if context.data.is_real() {
        "BBC news, AG News, product reviews and generated rows"
    } else {
        "generated data only"
    };
    RichText::new(format!("{sort}; {data}; "))
        .number("trials", Number::count(records.len()))
        .and(" trials; ")
        .number("threads", Number::count(settings.threads))
        .and(if settings.threads == 1 {
            " thread; seed "
        } else {
            " threads; seed "
        })
        .number("seed", Number::new(settings.seed as f64, Style::Fixed(0)))
        .and(".")
}

fn footer(records: &[TrialRecord], settings: &ReproduceSettings) -> RichText {
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    let quick = if settings.quick { " --quick" } else { "" };
    let data = if settings.data.is_some() {
        " --data DIR"
    } else {
        ""
    };
    let trials = settings
        .trials
        .map_or(String::new(), |trials| format!(" --trials {trials}"));
    RichText::new("Made by ")
        .code(format!("efface reproduce{quick}{data}{trials} --seed {} --threads {} --out DIR", settings.seed, settings.threads))
        .and(", version ")
        .and(env!("CARGO_PKG_VERSION"))
        .and(", in ")
        .number("seconds of all trials", Number::new(seconds, Style::Seconds))
        .and(" of measuring. Every number on this page is in the CSV files beside it, with all its digits; those of the text \
              are in ")
        .code("text.csv")
        .and(".")
}

/// How the page is to be read.
fn method(context: &StudyContext, settings: &ReproduceSettings) -> Section {
    let mut lines = vec![
        RichText::new("")
            .strong("INF")
            .and(" is the influence update (one step with the Hessian of all rows), ")
            .strong("PRU")
            .and(" the projection residual update with the printed errors put right, ")
            .strong("exact")
            .and(" the closed form that equals retraining, ")
            .strong("retrain")
            .and(" a fit from scratch on the rows that are left."),
        RichText::new(
            "A number after ± is the standard error over the trials of that cell: of the mean, or, for times and where it says \
             so, of the median.",
        ),
        RichText::new(
            "Squared loss, λ = 1e-4, no intercept in the linear tables, as in the paper; the heads of networks have λ = 1 and an \
             intercept, and the models under attack λ = 1e-4 and an intercept.",
        ),
        RichText::new(
            "“Kept” is the memory of everything that was made ahead of time and that a forget profits from. It holds traces of \
             rows until it has been brought up to date, which efface's engine does before it commits.",
        ),
    ];
    lines.extend(
        reasons(context, settings)
            .into_iter()
            .map(|reason| RichText::new(sentence(&reason))),
    );
    Section::new("How to read this page").list(lines)
}

/// The words with a capital and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// The mean with its error.
fn mean(found: Option<SampleSummary>, scale: f64, style: Style) -> TableCell {
    match found {
        None => TableCell::Missing("not run"),
        Some(found) => with_error(found.mean * scale, found.error * scale, style),
    }
}

/// The median with its error.
fn median(found: Option<SampleSummary>, scale: f64, style: Style) -> TableCell {
    match found {
        None => TableCell::Missing("not run"),
        Some(found) => with_error(found.median * scale, found.median_error * scale, style),
    }
}

fn with_error(value: f64, error: f64, style: Style) -> TableCell {
    // One trial has no error, and neither has what came out as nothing every time.
    if error.is_nan() || (error == 0.0 && value == 0.0) {
        TableCell::Number(Number::new(value, style))
    } else {
        TableCell::WithError(Number::new(value, style), error)
    }
}

/// What the fits of some cells kept for requests to come, as a note below a table.
fn kept(
    results: &TrialResults<'_>,
    study: PaperStudy,
    cells: impl IntoIterator<Item = String>,
) -> Option<RichText> {
    let found = cells
        .into_iter()
        .filter_map(|cell| Some(results.get(study, &cell, "kept bytes")?.most));
    let most = found.reduce(f64::max)?;
    let text = RichText::new("Made ahead of time: what a fit keeps for requests to come, up to ");
    Some(
        text.number("kept", Number::new(most, Style::Bytes))
            .and("."),
    )
}

/// A number of the paper, which may have none here.
fn printed(value: Option<f64>, style: Style) -> TableCell {
    value.map_or(TableCell::Missing("–"), |value| {
        TableCell::Number(Number::new(value, style))
    })
}

/// `37` or `between 36 and 37` trials.
fn trials_text((least, most): (usize, usize)) -> RichText {
    if least == most {
        RichText::default()
            .number("trials", Number::count(most))
            .and(if most == 1 { " trial" } else { " trials" })
    } else {
        RichText::new("between ")
            .number("fewest trials", Number::count(least))
            .and(" and ")
            .number("most trials", Number::count(most))
            .and(" trials")
    }
}
