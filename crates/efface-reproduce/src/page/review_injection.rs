//! Table 1 read as its caption has it: what is left of an injected feature, on reviews.

use efface_report::{Number, ReportTable, RichText, Section, Style, TableCell, TableColumn};

use super::shares::UNIT;
use super::{TrialResults, kept, mean, printed, trials_text};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::review_injection::{cell, widths};
use crate::studies::{BEFORE_CLEARING, METHODS, StudyContext};

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.review_injection;
    let widths = widths(context);
    let all = || {
        widths
            .iter()
            .flat_map(|&d| plan.deletions.iter().map(move |&k| cell(k, d)))
    };
    let trials = trials_text(results.trials(PaperStudy::ReviewInjection, all()));
    let mut table = ReportTable::new(
        "table1 injection",
        RichText::new(
            "What is left of an injected feature, ×10⁻⁴ of its weight before; reviews; mean of ",
        )
        .text(trials),
    );
    table.columns([TableColumn::label("k"), TableColumn::label("method")]);
    for d in &widths {
        table.columns(
            ["paper", "here"].map(|title| TableColumn::number(title).group(format!("d = {d}"))),
        );
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for name in METHODS
            .iter()
            .map(|(_, name)| *name)
            .chain([BEFORE_CLEARING, "retrain"])
        {
            let mut cells = vec![TableCell::from(k.to_string()), name.into()];
            for &d in &widths {
                let print = paper::table1(k, d).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                cells.push(printed(print, Style::Digits(2)));
                let found = results.get(PaperStudy::ReviewInjection, &cell(k, d), name);
                cells.push(mean(found, UNIT, Style::Digits(3)));
            }
            table.row(cells);
        }
    }
    table.note(RichText::new("A trial is ").number("reviews", Number::count(plan.reviews)).and(
        " reviews as counts of their d commonest words, stars 4 and 5 as +1 and the others as −1, with one more column that is \
         the label on the k rows to forget and 0 elsewhere.",
    ));
    if let Some(kept) = kept(results, PaperStudy::ReviewInjection, all()) {
        table.note(kept);
    }
    let mut note = RichText::new(
        "The paper's numbers fall with d and rise steeply with k, from 4 to 3,492, as times do and as a share that is left of one \
         weight hardly can: another reason to read table 1 as times.",
    );
    let before = all().filter_map(|cell| {
        Some(
            results
                .get(PaperStudy::ReviewInjection, &cell, "before")?
                .least,
        )
    });
    if let Some(least) = before.reduce(f64::min) {
        note = note
            .and(" The least weight before, over all trials, is ")
            .number("least weight before", Number::new(least, Style::Digits(2)))
            .and("; of a weight near 0 the share that is left is large, and a mean follows it.");
    }
    Section::new("Table 1, read as its caption has it")
        .add(
            "If the caption is taken at its word, table 1 shows the feature injection test on reviews. A retrained model has no \
             weight on a feature that nobody has any more; what a method leaves of it is a trace of the rows.",
        )
        .add(table)
        .note(note)
}
