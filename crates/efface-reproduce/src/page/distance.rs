//! Izzo's L2 table, with both comparisons.

use efface_report::{Cell, Column, Number, Section, Style, Table, Text};

use super::{Results, kept, mean, printed, trials_text};
use crate::paper;
use crate::part::Study;
use crate::studies::distance::cell;
use crate::studies::{Context, METHODS};

pub(super) fn section(context: &Context, results: &Results<'_>) -> Section {
    let plan = &context.plan.distance;
    let all = || plan.deletions.iter().flat_map(|&k| plan.scales.iter().map(move |&scale| cell(k, scale)));
    let trials = trials_text(results.trials(Study::Distance, all()));
    let caption = Text::new(format!(
        "Distance to the retrained parameters as a share of the distance before; d = {}; mean of ",
        plan.width
    ));
    let mut table = Table::new("l2", caption.text(trials));
    table.columns([Column::label("k"), Column::label("method")]);
    for scale in &plan.scales {
        let titles = ["Izzo", "here", "one row more"];
        table.columns(titles.map(|title| Column::number(title).group(format!("outliers ×{scale}"))));
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for name in METHODS.iter().map(|(_, name)| *name).chain(["retrain"]) {
            let style = if matches!(name, "INF" | "PRU") { Style::Fixed(2) } else { Style::Digits(1) };
            let mut cells = vec![Cell::from(k.to_string()), name.into()];
            for &scale in &plan.scales {
                let print = paper::l2(k, scale).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                let found = results.get(Study::Distance, &cell(k, scale), name);
                let wrong = results.get(Study::Distance, &cell(k, scale), &format!("{name}, one row more"));
                cells.extend([
                    printed(print, style),
                    mean(found, 1.0, style),
                    mean(wrong, 1.0, Style::Fixed(2)),
                ]);
            }
            table.row(cells);
        }
    }
    if let Some(kept) = kept(results, Study::Distance, all()) {
        table.note(kept);
    }
    let mut note = Text::new(
        "Their scripts compare with a model that misses one row more than was forgotten, so that even true retraining would not \
         come out at 0. “One row more” repeats that comparison; their table can therefore not be matched to the digit by the \
         comparison that is right.",
    );
    if let Some((&k, &scale)) = plan.deletions.first().zip(plan.scales.first()) {
        let get = |name: &str| results.get(Study::Distance, &cell(k, scale), name);
        if let (Some(retrain), Some(right), Some(wrong)) =
            (get("retrain, one row more"), get("INF"), get("INF, one row more"))
        {
            let number = |value: f64| Number::new(value, Style::Fixed(2));
            note = note
                .and(format!(" At k = {k} and ×{scale} it puts retraining itself at "))
                .number("retraining, one row more", number(retrain.mean))
                .and(" and INF at ")
                .number("INF, one row more", number(wrong.mean))
                .and(" in place of ")
                .number("INF", number(right.mean))
                .and(".");
        }
    }
    Section::new("L2: the distance to retraining, on outliers")
        .add(
            "The table of Izzo et al. on which the paper builds. The first k rows and their targets are scaled by 1, 10 or 100. \
             0 is retraining; 1 is not having moved.",
        )
        .add(table)
        .note(note)
}
