//! Beside table 2: what whole networks still make of the articles that they forgot.

use efface_report::{Cell, Column, Number, Style, Table, Text};

use super::TrialResults;
use crate::part::PaperStudy;
use crate::studies::network_times::{FURTHER, HEADS, RELEARNING_STEPS, cell};

pub(super) fn table(results: &TrialResults<'_>, set: &str) -> Table {
    let mut table = Table::new(
        &format!("network left {set}"),
        format!("What whole networks make of the forgotten articles; {set}"),
    );
    table.columns([
        Column::label("network"),
        Column::number("accuracy on them"),
        Column::number("loss on them"),
        Column::number("steps to relearn them"),
        Column::number("of the retrained"),
    ]);
    let steps = |state: &str| results.get(PaperStudy::NetworkTimes, &cell(set, state), "relearning steps");
    let truth = steps("retrain").map(|found| found.mean).filter(|steps| *steps > 0.0);
    let states = [(HEADS, "before"), ("retrain", "retrain")];
    for (state, name) in states.into_iter().chain(FURTHER.map(|method| (method, method))) {
        let mean = |value: &str, style: Style| -> Cell {
            let found = results.get(PaperStudy::NetworkTimes, &cell(set, state), value);
            found.map_or(Cell::Missing("not run"), |found| Number::new(found.mean, style).into())
        };
        let ratio = match (steps(state), truth) {
            (Some(found), Some(truth)) => Number::new(found.mean / truth, Style::Fixed(2)).into(),
            _ => Cell::Missing("–"),
        };
        table.row([
            name.into(),
            mean("forgotten accuracy", Style::Percent(1)),
            mean("forgotten loss", Style::Fixed(3)),
            mean("relearning steps", Style::Fixed(1)),
            ratio,
        ]);
    }
    table.note(Text::new(format!(
        "Means over runs. The loss is the cross-entropy of the head that the encoder was trained with. Relearning trains on the \
         forgotten articles alone, at a tenth of the fit's rate, until their loss is what it was before they were forgotten, for \
         {RELEARNING_STEPS} steps at most. A network that needs fewer steps than the retrained one still holds something of \
         the articles; a new head on the old encoder needs none."
    )));
    table
}
