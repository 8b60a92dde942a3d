//! Table 1 in both readings of its caption: times, and what is left of an injected feature.

use efface_report::{Axis, Cell, Column, Figure, Number, Panel, Section, Series, Style, Table, Text};

use super::{Results, kept, mean, median, printed, trials_text};
use crate::paper;
use crate::part::Study;
use crate::studies::times::{GENERATED, cell, sources};
use crate::studies::{Context, METHODS, review_injection};

/// The paper's unit.
const UNIT: f64 = 1e4;

pub(super) fn section(context: &Context, results: &Results<'_>) -> Section {
    let plan = &context.plan.times;
    let mut section = Section::new("Table 1: how long forgetting takes").add(Text::new(
        "The time of one request as a share of retraining, ×10⁻⁴. The paper's caption speaks of an assessment of feature \
         injection, but its text, and the table of Izzo et al. that it follows, are about time; the next section reads it the \
         other way. All methods here work on the same model, which keeps x·A⁻¹ for every row; PRU needs that for its hat \
         matrix. One thread; the median time of a request by the fastest retraining. A model measures how far it is from retraining \
         whenever the bound that it carries passes 1e-5.",
    ));
    for source in sources(context) {
        let cells = plan.widths.iter().map(|&d| cell(source, d));
        let trials = results.trials(Study::Times, cells);
        if trials.1 > 0 {
            section =
                section.add(table(context, results, source, trials)).add(setup(context, results, source));
        }
    }
    let (faster, cells) = beside_projection(context, results);
    section.add(figure(context, results)).note(
        Text::new(
            "Where the numbers differ. A share depends on both times: the paper's retraining and ours are not the same program, \
             and sparse reviews are summed faster than dense rows. Exact forgetting does the products of PRU without its \
             eigendecomposition; it is the faster of the two in ",
        )
        .number("cells where exact is faster than PRU", Number::count(faster))
        .and(" of ")
        .number("cells", Number::count(cells))
        .and(" cells.")
        .text(not_below(context, results))
        .and(
            " The paper calls PRU linear in d; that holds with the hat matrix at hand, and the second table says what \
             having it at hand costs.",
        ),
    )
}

/// The cells in which exact forgetting is not below what the paper prints, by name.
fn not_below(context: &Context, results: &Results<'_>) -> Text {
    let plan = &context.plan.times;
    let (mut above, mut dense) = (Vec::new(), false);
    for source in sources(context) {
        for (d, k) in plan.widths.iter().flat_map(|&d| plan.deletions.iter().map(move |&k| (d, k))) {
            let get = |name: &str| results.get(Study::Times, &cell(source, d), name);
            let (Some(time), Some(retrain)) = (get(&format!("k={k} exact s")), get("retrain s")) else {
                continue;
            };
            let share = UNIT * time.median / retrain.least;
            if paper::table1(k, d).is_some_and(|p| share >= p.influence.min(p.projection)) {
                above.push(format!("{source}, d = {d}, k = {k}"));
                dense |= source == GENERATED;
            }
        }
    }
    if above.is_empty() {
        return Text::default();
    }
    let text = Text::new(format!(" It is not below both of the paper's numbers in: {}.", above.join("; ")));
    match dense {
        true => text,
        false => text.and(" All of these are reviews."),
    }
}

/// In how many cells exact forgetting is faster than PRU, and of how many.
fn beside_projection(context: &Context, results: &Results<'_>) -> (usize, usize) {
    let plan = &context.plan.times;
    let (mut faster, mut cells) = (0, 0);
    for source in sources(context) {
        for (d, k) in plan.widths.iter().flat_map(|&d| plan.deletions.iter().map(move |&k| (d, k))) {
            let time = |name: &str| results.get(Study::Times, &cell(source, d), &format!("k={k} {name} s"));
            if let (Some(exact), Some(projection)) = (time("exact"), time("PRU")) {
                cells += 1;
                faster += usize::from(exact.median < projection.median);
            }
        }
    }
    (faster, cells)
}

fn id(source: &str) -> String {
    format!("table1 {source}")
}

fn table(context: &Context, results: &Results<'_>, source: &str, trials: (usize, usize)) -> Table {
    let plan = &context.plan.times;
    let caption = Text::new(format!("Time to forget k rows by time to retrain, ×10⁻⁴; {source}; median of "));
    let mut table = Table::new(&id(source), caption.text(trials_text(trials)));
    table.columns([Column::label("k"), Column::label("method")]);
    for d in &plan.widths {
        table.columns(["paper", "here"].map(|title| Column::number(title).group(format!("d = {d}"))));
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for (_, name) in METHODS {
            let mut cells = vec![Cell::from(k.to_string()), name.into()];
            for &d in &plan.widths {
                let print = paper::table1(k, d).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                cells.push(printed(print, Style::Digits(2)));
                let retrain = results.get(Study::Times, &cell(source, d), "retrain s");
                let time = results.get(Study::Times, &cell(source, d), &format!("k={k} {name} s"));
                let scale = retrain.map_or(f64::NAN, |retrain| UNIT / retrain.least);
                cells.push(median(time, scale, Style::Digits(2)));
            }
            table.row(cells);
        }
    }
    table
}

fn setup(context: &Context, results: &Results<'_>, source: &str) -> Table {
    let plan = &context.plan.times;
    let mut table = Table::new(
        &format!("{} setup", id(source)),
        format!("What stands behind the table above: {source}, retraining, and what was made ahead of time"),
    );
    table.columns([
        Column::label("d"),
        Column::number("rows"),
        Column::number("fastest retraining"),
        Column::number("timed"),
        Column::number("preparing"),
        Column::number("kept"),
        Column::number("one row, exact"),
        Column::number("largest relative bound"),
        Column::number("refactored"),
    ]);
    for &d in &plan.widths {
        let get = |name: &str| results.get(Study::Times, &cell(source, d), name);
        let number = |name: &str, style| {
            get(name).map_or(Cell::Missing("not run"), |found| Number::new(found.median, style).into())
        };
        let over = |suffix: &str| {
            let all = plan.deletions.iter().filter_map(|k| get(&format!("k={k} exact {suffix}")));
            all.map(|found| found.most).fold(f64::NAN, f64::max)
        };
        table.row([
            Cell::from(d.to_string()),
            number("rows", Style::Count),
            get("retrain s")
                .map_or(Cell::Missing("not run"), |t| Number::new(t.least, Style::Seconds).into()),
            get("retrain s").map_or(Cell::Missing("none"), |found| found.trials.into()),
            number("prepare s", Style::Seconds),
            number("kept bytes", Style::Bytes),
            number("k=1 exact s", Style::Seconds),
            Number::new(over("bound"), Style::Digits(1)).into(),
            if over("refactored") > 0.0 { "some".into() } else { "none".into() },
        ]);
    }
    table.note(
        "Shares are of the fastest retraining, so that a busy machine does not flatter them. Preparing is the fit that also makes x·A⁻¹ for every row; kept is the memory of that and of the sums. The bound is \
         the largest of all requests that exact forgetting answered: its distance to retraining is at most that share of the \
         parameters' length.",
    );
    table
}

fn figure(context: &Context, results: &Results<'_>) -> Figure {
    let plan = &context.plan.times;
    let source = sources(context).last().copied().unwrap_or(GENERATED);
    let mut figure = Figure::new(
        "table1 figure",
        format!("Table 1 as a figure: time by retraining time, ×10⁻⁴, {source}"),
    )
    .axes(
        Axis::log("rows to forget").ticks(plan.deletions.iter().map(|&k| k as f64)),
        Axis::log("share of retraining, ×10⁻⁴"),
    );
    for &d in &plan.widths {
        let mut panel = Panel::new(format!("d = {d}"));
        let retrain = results.get(Study::Times, &cell(source, d), "retrain s");
        for (_, name) in METHODS {
            let mut series = Series::new(name);
            for &k in &plan.deletions {
                let time = results.get(Study::Times, &cell(source, d), &format!("k={k} {name} s"));
                if let (Some(time), Some(retrain)) = (time, retrain) {
                    let scale = UNIT / retrain.least;
                    series = series.point(k as f64, time.median * scale, time.median_error * scale);
                }
            }
            panel = panel.series(series);
        }
        type Pick = fn(&paper::Printed) -> f64;
        let from_paper: [(&str, Pick); 2] =
            [("INF, paper", |p| p.influence), ("PRU, paper", |p| p.projection)];
        for (name, pick) in from_paper {
            let mut series = Series::new(name).reference(name.trim_end_matches(", paper"));
            for &k in &plan.deletions {
                if let Some(found) = paper::table1(k, d) {
                    series = series.point(k as f64, pick(&found), 0.0);
                }
            }
            panel = panel.series(series);
        }
        figure = figure.panel(panel);
    }
    figure
}

pub(super) fn injection_section(context: &Context, results: &Results<'_>) -> Section {
    let plan = &context.plan.review_injection;
    let widths = review_injection::widths(context);
    let all =
        || widths.iter().flat_map(|&d| plan.deletions.iter().map(move |&k| review_injection::cell(k, d)));
    let trials = trials_text(results.trials(Study::ReviewInjection, all()));
    let mut table = Table::new(
        "table1 injection",
        Text::new("What is left of an injected feature, ×10⁻⁴ of its weight before; reviews; mean of ")
            .text(trials),
    );
    table.columns([Column::label("k"), Column::label("method")]);
    for d in &widths {
        table.columns(["paper", "here"].map(|title| Column::number(title).group(format!("d = {d}"))));
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for name in METHODS.iter().map(|(_, name)| *name).chain(["retrain"]) {
            let mut cells = vec![Cell::from(k.to_string()), name.into()];
            for &d in &widths {
                let print = paper::table1(k, d).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                cells.push(printed(print, Style::Digits(2)));
                let found = results.get(Study::ReviewInjection, &review_injection::cell(k, d), name);
                cells.push(mean(found, UNIT, Style::Digits(3)));
            }
            table.row(cells);
        }
    }
    table.note(Text::new("A trial is ").number("reviews", Number::count(plan.reviews)).and(
        " reviews as counts of their d commonest words, stars 4 and 5 as +1 and the others as −1, with one more column that is \
         the label on the k rows to forget and 0 elsewhere.",
    ));
    if let Some(kept) = kept(results, Study::ReviewInjection, all()) {
        table.note(kept);
    }
    let mut note = Text::new(
        "The paper's numbers fall with d and rise steeply with k, from 4 to 3,492, as times do and as a share that is left of one \
         weight hardly can: another reason to read table 1 as times.",
    );
    let before = all().filter_map(|cell| Some(results.get(Study::ReviewInjection, &cell, "before")?.least));
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
