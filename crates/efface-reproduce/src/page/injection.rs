//! Tables 4 and 5, and table 4 as a figure.

use efface_report::{
    Axis, Figure, Number, Panel, ReportTable, RichText, Section, Series, Style, TableCell,
    TableColumn,
};

use super::{TrialResults, kept, mean, median, printed, trials_text};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::injection::cell;
use crate::studies::{BEFORE_CLEARING, METHODS, StudyContext};

fn trials(context: &StudyContext, results: &TrialResults<'_>) -> RichText {
    trials_text(results.trials(PaperStudy::Injection, cells(context)))
}

fn cells(context: &StudyContext) -> impl Iterator<Item = String> {
    let plan = &context.plan.injection;
    plan.deletions
        .iter()
        .flat_map(|&k| plan.keeps.iter().map(move |&keep| cell(k, keep)))
}

pub(super) fn left(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.injection;
    let caption = RichText::new(format!(
        "What is left of the injected weight, |w after| / |w before|; d = {}; ",
        plan.width
    ));
    let mut table = ReportTable::new("table4", caption.text(trials(context, results)));
    table.columns([TableColumn::label("k"), TableColumn::label("method")]);
    for keep in &plan.keeps {
        let titles = ["paper", "mean", "median"];
        table.columns(titles.map(|title| TableColumn::number(title).group(format!("p = {keep}"))));
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
            let style = if matches!(name, "INF" | "PRU") {
                Style::Fixed(2)
            } else {
                Style::Digits(1)
            };
            let mut cells = vec![TableCell::from(k.to_string()), name.into()];
            for &keep in &plan.keeps {
                let print = paper::table4(k, keep).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                let found = results.get(PaperStudy::Injection, &cell(k, keep), name);
                cells.extend([
                    printed(print, style),
                    mean(found, 1.0, style),
                    median(found, 1.0, style),
                ]);
            }
            table.row(cells);
        }
    }
    if let Some(kept) = kept(results, PaperStudy::Injection, cells(context)) {
        table.note(kept);
    }
    Section::new("Table 4: what is left of an injected feature")
        .add(
            "Rows are drawn as Izzo et al. draw them: ten a feature, the last feature kept on the first k rows alone, where it \
             decides the target; every other column of those rows is zeroed for all of them with probability 1 − p. A retrained \
             model puts no weight on the last feature. PRU can undo only what lies in the span of the removed rows: the sparser \
             they are, the more of the injected weight that is.",
        )
        .add(table)
        .add(figure(context, results))
        .note(note(context, results))
}

fn note(context: &StudyContext, results: &TrialResults<'_>) -> RichText {
    let found = cells(context).filter_map(|cell| results.get(PaperStudy::Injection, &cell, "INF"));
    let (low, high) = found.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), found| {
        (low.min(found.least), high.max(found.most))
    });
    let mut note = RichText::new("Where the numbers differ. ");
    if low <= high {
        note = note
            .and("INF leaves between ")
            .number("least left by INF", Number::new(low, Style::Fixed(2)))
            .and(" and ")
            .number("most left by INF", Number::new(high, Style::Fixed(2)))
            .and(" of the injected weight over all trials here. ");
    }
    note.and(
        "A ratio far beyond 1, like the printed 3.11 at k = 50, p = 0.1, comes out where the weight before happens to be near 0; a \
         mean follows such a trial, a median does not. Where counting finds that no row has a feature any more, exact forgetting sets its weight to 0; the line before \
         clearing shows what its algebra alone leaves.",
    )
}

fn figure(context: &StudyContext, results: &TrialResults<'_>) -> Figure {
    let plan = &context.plan.injection;
    let mut figure = Figure::new(
        "table4 figure",
        "Table 4 as a figure: what is left against the sparsity of the rows",
    )
    .axes(
        Axis::log("p, the share of features kept").ticks(plan.keeps.clone()),
        Axis::linear("share left").include(0.0),
    );
    let get =
        |k: usize, keep: f64, name: &str| results.get(PaperStudy::Injection, &cell(k, keep), name);
    let places = || {
        plan.deletions
            .iter()
            .flat_map(|&k| plan.keeps.iter().map(move |&keep| (k, keep)))
    };
    // Points that lie on each other are one series.
    let alike = places().all(
        |(k, keep)| match (get(k, keep, "exact"), get(k, keep, "retrain")) {
            (Some(exact), Some(retrain)) => (exact.median - retrain.median).abs() <= 1e-9,
            (exact, retrain) => exact.is_none() && retrain.is_none(),
        },
    );
    let title = |name: &'static str| {
        if alike && name == "exact" {
            "exact and retrain"
        } else {
            name
        }
    };
    for &k in &plan.deletions {
        let mut panel = Panel::new(format!("k = {k}"));
        for name in METHODS
            .iter()
            .map(|(_, name)| *name)
            .chain((!alike).then_some("retrain"))
        {
            let mut series = Series::new(title(name));
            for &keep in &plan.keeps {
                if let Some(found) = get(k, keep, name) {
                    series = series.point(keep, found.median, found.median_error);
                }
            }
            panel = panel.series(series);
        }
        for name in ["INF, paper", "PRU, paper"] {
            let mut series = Series::new(name).reference(name.trim_end_matches(", paper"));
            for &keep in &plan.keeps {
                if let Some(found) = paper::table4(k, keep) {
                    let value = if name.starts_with("INF") {
                        found.influence
                    } else {
                        found.projection
                    };
                    series = series.point(keep, value, 0.0);
                }
            }
            panel = panel.series(series);
        }
        figure = figure.panel(panel);
    }
    figure.note("Medians with their standard errors.")
}

pub(super) fn before(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.injection;
    let caption = RichText::new(format!(
        "Median weight of the injected feature before forgetting; d = {}; ",
        plan.width
    ));
    let mut table = ReportTable::new("table5", caption.text(trials(context, results)));
    table.columns([TableColumn::label("k")]);
    for keep in &plan.keeps {
        table.columns(
            ["paper", "here"].map(|title| TableColumn::number(title).group(format!("p = {keep}"))),
        );
    }
    for &k in &plan.deletions {
        let mut cells = vec![TableCell::from(k.to_string())];
        for &keep in &plan.keeps {
            let found = results.get(PaperStudy::Injection, &cell(k, keep), "before");
            cells.extend([
                printed(paper::table5(k, keep), Style::Fixed(2)),
                median(found, 1.0, Style::Fixed(2)),
            ]);
        }
        table.row(cells);
    }
    Section::new("Table 5: the weight before")
        .add("The same trials before anything was forgotten. The true weight is 10: the test has something to find.")
        .add(table)
}
