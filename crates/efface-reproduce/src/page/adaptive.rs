//! Sums on an adaptive learner: the distance to retraining against the rounds of training.

use efface_report::{
    Axis, Figure, Number, Panel, ReportTable, RichText, Section, Series, Style, TableCell,
    TableColumn,
};

use super::{TrialResults, mean, trials_text};
use crate::part::PaperStudy;
use crate::statistics::SampleSummary;
use crate::studies::StudyContext;
use crate::studies::adaptive::{AFTER, BEFORE, after_rounds, cell, of_ridge};

fn get(results: &TrialResults<'_>, k: usize, name: &str) -> Option<SampleSummary> {
    results.get(PaperStudy::Adaptive, &cell(k), name)
}

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.adaptive;
    Section::new("Sums: where subtracting forgets, and where it does not")
        .add(
            "Cao and Yang (2015) keep a model as sums over its rows and forget a row by subtracting its part. The paper says that \
             this does badly on adaptive learners, and shows no number. Here the rows are learned twice. Ridge is a function of \
             two sums that no parameter enters. Gradient descent on the logistic loss is adaptive: its parameters are the sum \
             of what each row added in each round, but what a row adds depends on all rows in the rounds before. Subtracting what \
             the forgotten rows added, as it was recorded, leaves what they changed in the others.",
        )
        .add(table(context, results))
        .add(figure(context, results))
        .note(format!(
            "{} generated rows of {} features with labels ±1. After one round, whose gradients are all taken at θ = 0, subtracting \
             is exact for gradient descent too. After many, the recorded part of a row goes on growing with every round, because \
             its gradient does not vanish at the minimum, whereas the parameters settle. Cao and Yang do not \
             stop at subtracting for such learners: they go on iterating from there until it converges. That is a training \
             on the rows that stay, from a nearer start, which is what `warm_start` does; `summation` is refused for \
             models that are not made of fixed sums.",
            plan.rows, plan.width
        ))
}

fn table(context: &StudyContext, results: &TrialResults<'_>) -> ReportTable {
    let plan = &context.plan.adaptive;
    let trials = trials_text(results.trials(
        PaperStudy::Adaptive,
        plan.deletions.iter().map(|&k| cell(k)),
    ));
    let caption = RichText::new(
        "Distance to the retrained parameters by their length, before and after subtracting; mean of ",
    );
    let mut table = ReportTable::new("adaptive", caption.text(trials));
    table.columns([TableColumn::label("learner"), TableColumn::label("rounds")]);
    for k in &plan.deletions {
        let titles = ["before", "after", "after by before"];
        table.columns(titles.map(|title| TableColumn::number(title).group(format!("k = {k}"))));
    }
    let row = |learner: &str, rounds: String, name: &dyn Fn(&str) -> String| {
        let mut cells = vec![TableCell::from(learner.to_string()), rounds.into()];
        for &k in &plan.deletions {
            let before = get(results, k, &name(BEFORE));
            let after = get(results, k, &name(AFTER));
            let share = before
                .as_ref()
                .zip(after.as_ref())
                .map(|(before, after)| after.mean / before.mean);
            cells.push(mean(before, 1.0, Style::Digits(2)));
            cells.push(mean(after, 1.0, Style::Digits(2)));
            cells.push(share.map_or(TableCell::Missing("not run"), |share| {
                Number::new(share, Style::Digits(2)).into()
            }));
        }
        cells
    };
    for &rounds in &plan.rounds {
        table.row(row("gradient descent", rounds.to_string(), &|what| {
            after_rounds(rounds, what)
        }));
    }
    table.rule();
    table.row(row("ridge", "–".into(), &of_ridge));
    table
}

fn figure(context: &StudyContext, results: &TrialResults<'_>) -> Figure {
    let plan = &context.plan.adaptive;
    let mut figure = Figure::new(
        "adaptive figure",
        "Distance to retraining against the rounds of gradient descent, with the sums of ridge beside it",
    )
    .axes(
        Axis::log("rounds of training").ticks(plan.rounds.iter().map(|&rounds| rounds as f64)),
        Axis::log("distance by length"),
    );
    for &k in &plan.deletions {
        let rows = if k == 1 {
            "1 row forgotten".into()
        } else {
            format!("{k} rows forgotten")
        };
        let mut panel = Panel::new(rows);
        for (title, what) in [("nothing subtracted", BEFORE), ("subtracted", AFTER)] {
            let points = plan
                .rounds
                .iter()
                .map(|&rounds| (rounds, get(results, k, &after_rounds(rounds, what))));
            panel = panel.series(line(title, points));
        }
        let ridge = get(results, k, &of_ridge(AFTER));
        panel = panel.series(line(
            "ridge, subtracted",
            plan.rounds.iter().map(|&rounds| (rounds, ridge)),
        ));
        figure = figure.panel(panel);
    }
    figure
}

fn line(title: &str, points: impl Iterator<Item = (usize, Option<SampleSummary>)>) -> Series {
    let mut series = Series::new(title);
    for (rounds, found) in points {
        // A logarithmic axis has no place for 0.
        if let Some(found) = found.filter(|found| found.mean > 0.0) {
            series = series.point(rounds as f64, found.mean, found.error);
        }
    }
    series
}

/// What was found, for the opening of the page.
pub(super) fn finding(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let plan = &context.plan.adaptive;
    let first = *plan.rounds.first()?;
    let last = *plan.rounds.last()?;
    let k = *plan.deletions.last()?;
    let fixed = get(results, k, &after_rounds(first, AFTER))?;
    let adaptive = get(results, k, &after_rounds(last, AFTER))?;
    let before = get(results, k, &after_rounds(last, BEFORE))?;
    let ridge = plan
        .deletions
        .iter()
        .filter_map(|&k| Some(get(results, k, &of_ridge(AFTER))?.most));
    let ridge = ridge.reduce(f64::max)?;
    let verdict = match (adaptive.mean > before.mean, adaptive.mean > fixed.mean) {
        (true, _) => {
            "Subtracting sums fails on an adaptive learner, and is worse there than forgetting nothing"
        }
        (false, true) => "Subtracting sums fails on an adaptive learner",
        (false, false) => {
            "Subtracting sums does not get worse with adaptive rounds here, against what the paper says"
        }
    };
    let number = |value: f64| Number::new(value, Style::Digits(2));
    let text = RichText::new(verdict)
        .and(": with ")
        .number("rows subtracted", Number::count(k))
        .and(" rows forgotten from gradient descent, the distance to retraining is ")
        .number("distance after the fewest rounds", number(fixed.mean))
        .and(" of the parameters' length after ")
        .number("fewest rounds", Number::count(first))
        .and(if first == 1 {
            " round and "
        } else {
            " rounds and "
        })
        .number("distance after the most rounds", number(adaptive.mean))
        .and(" after ")
        .number("most rounds", Number::count(last))
        .and(", where it was ")
        .number("distance before", number(before.mean))
        .and(" before; on ridge, whose sums are fixed, it is at most ")
        .number("distance of ridge", number(ridge))
        .and(".");
    Some(text)
}
