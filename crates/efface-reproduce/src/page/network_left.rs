//! Beside table 2: what whole networks still make of the articles that they forgot.

use efface_report::{Number, ReportTable, RichText, Style, TableCell, TableColumn};

use super::TrialResults;
use crate::part::PaperStudy;
use crate::studies::network_times::{FURTHER, HEADS, RELEARNING_STEPS, cell};

pub(super) fn table(results: &TrialResults<'_>, set: &str) -> ReportTable {
    let mut table = ReportTable::new(
        &format!("network left {set}"),
        format!("What whole networks make of the forgotten articles; {set}"),
    );
    table.columns([
        TableColumn::label("network"),
        TableColumn::number("accuracy on them"),
        TableColumn::number("loss on them"),
        TableColumn::number("steps to relearn them"),
        TableColumn::number("of the retrained"),
    ]);
    let steps = |state: &str| {
        results.get(
            PaperStudy::NetworkTimes,
            &cell(set, state),
            "relearning steps",
        )
    };
    let truth = steps("retrain")
        .map(|found| found.mean)
        .filter(|steps| *steps > 0.0);
    let states = [(HEADS, "before"), ("retrain", "retrain")];
    for (state, name) in states
        .into_iter()
        .chain(FURTHER.map(|method| (method, method)))
    {
        let mean = |value: &str, style: Style| -> TableCell {
            let found = results.get(PaperStudy::NetworkTimes, &cell(set, state), value);
            found.map_or(TableCell::Missing("not run"), |found| {
                Number::new(found.mean, style).into()
            })
        };
        let ratio = match (steps(state), truth) {
            (Some(found), Some(truth)) => Number::new(found.mean / truth, Style::Fixed(2)).into(),
            _ => TableCell::Missing("–"),
        };
        table.row([
            name.into(),
            mean("forgotten accuracy", Style::Percent(1)),
            mean("forgotten loss", Style::Fixed(3)),
            mean("relearning steps", Style::Fixed(1)),
            ratio,
        ]);
    }
    table.note(RichText::new(format!(
        "Means over runs. The loss is the cross-entropy of the head that the encoder was trained with. Relearning trains on the \
         forgotten articles alone, at a tenth of the fit's rate, until their loss is what it was before they were forgotten, for \
         {RELEARNING_STEPS} steps at most. A network that needs fewer steps than the retrained one still holds something of \
         the articles; a new head on the old encoder needs none."
    )));
    table
}
