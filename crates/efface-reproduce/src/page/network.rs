//! Table 2: the times of a network, and its accuracy.

use efface_report::{Number, ReportTable, RichText, Section, Style, TableCell, TableColumn};

use super::{TrialResults, median, network_left, printed};
use crate::paper;
use crate::part::PaperStudy;
use crate::statistics::SampleSummary;
use crate::studies::StudyContext;
use crate::studies::network_times::{FURTHER, HEADS, TRAINED, cell};
use crate::studies::networks::{describe, sets};

/// The rows of the table: the name of the method and how the record calls it among the heads.
const HEAD_ROWS: [(&str, &str); 4] = [
    ("influence", "INF"),
    ("projection_residual", "PRU"),
    ("exact", "exact"),
    ("retrain_head", "retrain head"),
];

struct NetworkFigures {
    seconds: Option<SampleSummary>,
    accuracy: Option<SampleSummary>,
    kept: Option<SampleSummary>,
}

fn find(results: &TrialResults<'_>, set: &str, method: &str) -> NetworkFigures {
    if TRAINED.contains(&method) || FURTHER.contains(&method) {
        let get = |name: &str| results.get(PaperStudy::NetworkTimes, &cell(set, method), name);
        return NetworkFigures {
            seconds: get("s"),
            accuracy: get("accuracy"),
            kept: get("kept bytes"),
        };
    }
    let name = HEAD_ROWS
        .iter()
        .find(|(known, _)| *known == method)
        .map_or(method, |(_, name)| name);
    let get = |suffix: &str| {
        results.get(
            PaperStudy::NetworkTimes,
            &cell(set, HEADS),
            &format!("{name} {suffix}"),
        )
    };
    NetworkFigures {
        seconds: get("s"),
        accuracy: get("accuracy"),
        kept: get("kept bytes"),
    }
}

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.network;
    let mut section = Section::new("Table 2: how long a network takes").add(RichText::new(format!(
        "A run forgets {} articles. Retraining trains the whole network again; “augmented” does so on a set with {} more articles \
         that were made from those that stay by replacing a word, leaving one out or changing their order; SISA trains the touched ones \
         of {} whole networks again. fine_tune, neggrad_plus and scrub train the network further from where it is; nothing bounds \
         what they leave. The other methods work on the head alone: what the encoder learned from the articles stays \
         in it, and their times must not be read as those of forgetting altogether.",
        plan.deletions, plan.augmented, plan.shards
    )));
    for set in sets(context, true) {
        section = section
            .add(table(context, results, set))
            .add(network_left::table(results, set));
    }
    section.note(
        "Where the numbers differ. The paper's INF and PRU take 110 to 170 seconds, little less than its retraining: they \
         must include most of a training. Here an update of the head is an update of the head, and retraining is listed beside it. \
         Its totals are of a number of runs that it does not state, so that they stand beside no number of ours.",
    )
}

/// How many articles the networks were trained on, and how many that were forgotten stay as a twin.
fn articles(results: &TrialResults<'_>, set: &str) -> RichText {
    let rows = |method: &str| results.get(PaperStudy::NetworkTimes, &cell(set, method), "rows");
    let twins = match results.get(PaperStudy::NetworkTimes, &cell(set, HEADS), "twins") {
        None => RichText::default(),
        Some(found) => {
            RichText::new(" Articles of a run with a twin among those that stay: up to ")
                .number(
                    "articles with a twin",
                    Number::new(found.most, Style::Count),
                )
                .and(".")
        }
    };
    let learned = match (rows("retrain"), rows("retrain, augmented")) {
        (Some(plain), Some(augmented)) => RichText::new(" Retraining learned ")
            .number("articles", Number::new(plain.median, Style::Count))
            .and(" articles, and ")
            .number(
                "articles, augmented",
                Number::new(augmented.median, Style::Count),
            )
            .and(" with those that were made."),
        _ => RichText::default(),
    };
    learned.text(twins)
}

fn table(context: &StudyContext, results: &TrialResults<'_>, set: &str) -> ReportTable {
    let plan = &context.plan.network;
    let mut table = ReportTable::new(
        &format!("table2 {set}"),
        format!(
            "Time of a run and accuracy afterwards; {set}; {}, d = {}",
            describe(set, &plan.training),
            plan.width
        ),
    );
    table.columns([
        TableColumn::label("method"),
        TableColumn::number("fastest").group("paper"),
        TableColumn::number("slowest").group("paper"),
        TableColumn::number("total").group("paper"),
        TableColumn::number("runs").group("here"),
        TableColumn::number("fastest").group("here"),
        TableColumn::number("slowest").group("here"),
        TableColumn::number("median").group("here"),
        TableColumn::number("faster").group("here"),
        TableColumn::number("accuracy after").group("here"),
        TableColumn::number("kept").group("here"),
    ]);
    let retrain = find(results, set, "retrain").seconds;
    for method in TRAINED
        .into_iter()
        .chain(FURTHER)
        .chain(HEAD_ROWS.iter().map(|(method, _)| *method))
    {
        if method == FURTHER[0] || method == "influence" {
            table.rule();
        }
        let NetworkFigures {
            seconds,
            accuracy,
            kept,
        } = find(results, set, method);
        let print = paper::table2(method);
        let time = |pick: fn(&SampleSummary) -> f64| {
            seconds.as_ref().map_or(TableCell::Missing("not run"), |s| {
                Number::new(pick(s), Style::Seconds).into()
            })
        };
        let faster = match (&retrain, &seconds) {
            (Some(retrain), Some(seconds)) => {
                Number::new(retrain.median / seconds.median, Style::Times).into()
            }
            _ => TableCell::Missing("–"),
        };
        table.row([
            method.into(),
            printed(print.map(|(fastest, _, _)| fastest), Style::Seconds),
            printed(print.map(|(_, slowest, _)| slowest), Style::Seconds),
            printed(print.map(|(_, _, total)| total), Style::Seconds),
            seconds
                .as_ref()
                .map_or(TableCell::Missing("none"), |s| s.trials.into()),
            time(|s| s.least),
            time(|s| s.most),
            median(seconds, 1.0, Style::Seconds),
            faster,
            accuracy.map_or(TableCell::Missing("–"), |a| {
                Number::new(a.mean, Style::Percent(1)).into()
            }),
            kept.map_or(TableCell::Missing("–"), |kept| {
                Number::new(kept.median, Style::Bytes).into()
            }),
        ]);
    }
    let (before, after) = paper::TABLE2_ACCURACY;
    let here = results.get(
        PaperStudy::NetworkTimes,
        &cell(set, HEADS),
        "accuracy before",
    );
    let mut note = RichText::new("Accuracy before forgetting: ");
    if let Some(here) = here {
        note = note
            .number("accuracy before", Number::new(here.mean, Style::Percent(1)))
            .and(" here, ");
    }
    table.note(
        note.number(
            "accuracy before, paper",
            Number::new(before, Style::Percent(2)),
        )
        .and(" in the paper, and about ")
        .number(
            "accuracy after PRU, paper",
            Number::new(after, Style::Percent(0)),
        )
        .and(" after PRU there. One article in five is kept for testing.")
        .text(articles(results, set)),
    );
    table
}
