//! Table 3 and figures 1 and 2: feature injection in the head of a network.

use efface_report::{
    Axis, Figure, Panel, ReportTable, RichText, Section, Series, Style, TableCell, TableColumn,
};

use super::{TrialResults, kept, mean, printed, trials_text};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::head_injection::cell;
use crate::studies::networks::{describe, sets};
use crate::studies::{BEFORE_CLEARING, StudyContext};

/// The paper's unit.
const UNIT: f64 = 1e4;
/// All methods of the table, in its order.
const NAMES: [&str; 6] = ["INF", "PRU", "SISA", "exact", BEFORE_CLEARING, "retrain"];

fn trials(context: &StudyContext, results: &TrialResults<'_>) -> RichText {
    trials_text(results.trials(PaperStudy::HeadInjection, cells(context)))
}

fn cells(context: &StudyContext) -> impl Iterator<Item = String> {
    let plan = &context.plan.head;
    plan.widths
        .iter()
        .flat_map(|&d| plan.deletions.iter().map(move |&k| cell(k, d)))
}

fn print(k: usize, d: usize, name: &str) -> Option<f64> {
    let found = paper::table3(k, d)?;
    match name {
        "INF" => Some(found.influence),
        "PRU" => Some(found.projection),
        _ => None,
    }
}

pub(super) fn table(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.head;
    let set = sets(context, false)[0];
    let caption = RichText::new(format!(
        "What is left of an injected feature in the head, ×10⁻⁴; {set}; mean of "
    ));
    let mut table = ReportTable::new("table3", caption.text(trials(context, results)));
    table.columns([TableColumn::label("d"), TableColumn::label("method")]);
    for k in &plan.deletions {
        table.columns(
            ["paper", "here"].map(|title| TableColumn::number(title).group(format!("k = {k}"))),
        );
    }
    for (at, &d) in plan.widths.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for name in NAMES {
            let mut cells = vec![TableCell::from(d.to_string()), name.into()];
            for &k in &plan.deletions {
                let found = results.get(PaperStudy::HeadInjection, &cell(k, d), name);
                cells.extend([
                    printed(print(k, d, name), Style::Digits(2)),
                    mean(found, UNIT, Style::Digits(3)),
                ]);
            }
            table.row(cells);
        }
    }
    table.note(format!(
        "{}, with a projection to d numbers that a linear head of squared loss reads. The injected feature is appended to those \
         numbers; the encoder is trained once a width and stays.",
        super::sentence(&describe(set, &plan.training)).trim_end_matches('.')
    ));
    if let Some(kept) = kept(results, PaperStudy::HeadInjection, cells(context)) {
        table.note(kept);
    }
    Section::new("Table 3: an injected feature in a network's head")
        .add(
            "The feature injection test in the last layer of a text classifier. What the encoder learned from the forgotten \
             articles is not touched by any of these methods, and not measured by this test; retraining and SISA over whole \
             networks (table 2) are what removes it.",
        )
        .add(table)
        .note(
            "Where the numbers differ. The paper does not say how its head is penalised, nor what correlates with one of five \
             labels; here the feature is the one-hot label on the rows to forget, and the weight is the length of its block. The \
             printed numbers rise with k and fall with d in every line, as those of table 1 do, which are times; a share that is \
             left of one weight has no reason to. \
             SISA trains the touched shards again without those rows, so that it leaves nothing, like retraining; a SISA that \
             leaves something, as in the paper's figure 1, has not retrained every shard that held the row.",
        )
}

pub(super) fn figures(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.head;
    let point = |series: Series, x: f64, k: usize, d: usize, name: &str| match results.get(
        PaperStudy::HeadInjection,
        &cell(k, d),
        name,
    ) {
        None => series,
        Some(found) => {
            let error = if found.error.is_nan() {
                0.0
            } else {
                found.error
            };
            series.point(x, found.mean * UNIT, error * UNIT)
        }
    };
    let y = || Axis::log("weight left, ×10⁻⁴");
    let series = ["INF", "PRU", "SISA", "exact"];
    let mut first = Figure::new(
        "figure1",
        RichText::new("Feature injection against the number of rows forgotten; mean of ")
            .text(trials(context, results)),
    )
    .axes(
        Axis::log("rows forgotten").ticks(plan.deletions.iter().map(|&k| k as f64)),
        y(),
    );
    for &d in &plan.widths {
        let mut panel = Panel::new(format!("d = {d}"));
        for name in series {
            panel = panel.series(
                plan.deletions
                    .iter()
                    .fold(Series::new(name), |s, &k| point(s, k as f64, k, d, name)),
            );
        }
        for name in ["INF", "PRU"] {
            let known = plan
                .deletions
                .iter()
                .filter_map(|&k| Some((k, print(k, d, name)?)));
            let from_paper = Series::new(format!("{name}, paper")).reference(name);
            panel =
                panel.series(known.fold(from_paper, |s, (k, value)| s.point(k as f64, value, 0.0)));
        }
        first = first.panel(panel);
    }
    let mut second = Figure::new(
        "figure2",
        RichText::new("Feature injection against the width of the head; mean of ")
            .text(trials(context, results)),
    )
    .axes(
        Axis::linear("d, what the head reads").ticks(plan.widths.iter().map(|&d| d as f64)),
        y(),
    );
    for &k in &plan.deletions {
        let mut panel = Panel::new(if k == 1 {
            "1 row forgotten".into()
        } else {
            format!("{k} rows forgotten")
        });
        for name in series {
            panel = panel.series(
                plan.widths
                    .iter()
                    .fold(Series::new(name), |s, &d| point(s, d as f64, k, d, name)),
            );
        }
        for name in ["INF", "PRU"] {
            let known = plan
                .widths
                .iter()
                .filter_map(|&d| Some((d, print(k, d, name)?)));
            let from_paper = Series::new(format!("{name}, paper")).reference(name);
            panel =
                panel.series(known.fold(from_paper, |s, (d, value)| s.point(d as f64, value, 0.0)));
        }
        second = second.panel(panel);
    }
    Section::new("Figures 1 and 2: the same against deletions and width")
        .add(
            "Error bars are one standard error to each side. A weight of exactly 0 has no place on a logarithmic axis and is \
             drawn on the shelf below it.",
        )
        .add(first)
        .add(second)
}
