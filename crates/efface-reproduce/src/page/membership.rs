//! Membership inference: can forgotten rows be told from rows that were never there?

use efface_report::{
    Axis, Figure, Number, ReportTable, RichText, Section, Series, Style, TableCell, TableColumn,
};

use super::TrialResults;
use crate::part::PaperStudy;
use crate::studies::StudyContext;
use crate::studies::membership::CELL;

/// The states that are attacked, as the record names them.
pub(super) const STATES: [&str; 5] = ["before", "retrain", "exact", "INF", "PRU"];

/// AUC with its interval.
pub(super) fn auc(results: &TrialResults<'_>, state: &str, which: &str) -> Option<(f64, f64, f64)> {
    let get = |name: &str| {
        Some(
            results
                .get(
                    PaperStudy::Membership,
                    CELL,
                    &format!("{state} {which} {name}"),
                )?
                .median,
        )
    };
    Some((get("auc")?, get("low")?, get("high")?))
}

/// How many of the forgotten rows have an equal among those that stay.
fn twins(results: &TrialResults<'_>) -> RichText {
    match results.get(PaperStudy::Membership, CELL, "twins") {
        None => RichText::new("."),
        Some(found) => RichText::new(", of which ")
            .number("forgotten rows with a twin", Number::new(found.median, Style::Count))
            .and(" have a twin among the rows that stay: nobody can tell whether such a row is gone."),
    }
}

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.membership;
    let mut table = ReportTable::new(
        "membership",
        "U-LiRA: the chance that the attack tells a row that was there from one that never was",
    );
    table.columns([
        TableColumn::label("model"),
        TableColumn::number("AUC").group("forgotten rows"),
        TableColumn::number("found at 1 % false alarms").group("forgotten rows"),
        TableColumn::number("AUC").group("rows that stay"),
    ]);
    for state in STATES {
        let cell = |which: &str| {
            auc(results, state, which).map_or(TableCell::Missing("not run"), |(auc, low, high)| {
                TableCell::WithRange(Number::new(auc, Style::Fixed(3)), low, high)
            })
        };
        let rate = results.get(
            PaperStudy::Membership,
            CELL,
            &format!("{state} forgotten tpr"),
        );
        let rate = rate.map_or(TableCell::Missing("–"), |rate| {
            Number::new(rate.median, Style::Percent(1)).into()
        });
        table.row([state.into(), cell("forgotten"), rate, cell("retained")]);
    }
    table.note("In brackets: 95 % intervals, from resampling. 0.5 is a coin.");
    let mut series = Series::new("AUC on forgotten rows").apart();
    for (at, state) in STATES.iter().enumerate() {
        if let Some((auc, low, high)) = auc(results, state, "forgotten") {
            series = series.range(at as f64, auc, low, high);
        }
    }
    let figure = Figure::new(
        "membership figure",
        "How well the attack does on forgotten rows, with 95 % intervals",
    )
    .axes(
        Axis::names("model", STATES),
        Axis::linear("AUC").include(0.5).include(1.0),
    )
    .series(series);
    Section::new("Membership: can an attacker tell?")
        .add(
            RichText::new("The paper does not ask this; it is the question behind it. The attacker trains ")
                .number("oracles", Number::count(plan.oracles))
                .and(" models of their own on ")
                .number("rows", Number::count(plan.rows))
                .and(" reviews with ")
                .number("words", Number::count(plan.width))
                .and(" words, half of them with a given row, and judges by the row's margin (U-LiRA, Hayes et al. 2024). ")
                .number("forgotten rows", Number::count(plan.forgotten))
                .and(" rows are forgotten")
                .text(twins(results)),
        )
        .add(table)
        .add(figure)
        .note(
            "An AUC near 0.5 for INF or PRU does not mean that they forget: it means that this attack, on these rows, does not see \
             what they leave. What has to be so is that the interval of exact forgetting covers the AUC of retraining. Where the \
             attack is no better than a coin before anything is forgotten, it shows nothing.",
        )
}
