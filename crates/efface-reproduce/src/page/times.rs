//! Table 1: times, by both of what they can be divided by.

use efface_report::{
    Axis, Figure, Number, Panel, ReportTable, RichText, Section, Series, Style, TableCell,
    TableColumn,
};

use super::shares::{SPREAD_LIMIT, TablePlace, TimeDenominator, places, steadiness};
use super::{TrialResults, printed, trials_text, with_error};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::times::{GENERATED, REFIT, cell, sources};
use crate::studies::{METHODS, StudyContext};

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    let plan = &context.plan.times;
    let mut section = Section::new("Table 1: how long forgetting takes").add(RichText::new(
        "The time of one request as a share of retraining, ×10⁻⁴. The paper's caption speaks of an assessment of feature \
         injection, but its text, and the table of Izzo et al. that it follows, are about time; the next section reads it the \
         other way. What those numbers are a share of is not a refit: the runtime script of Izzo et al. divides by a Newton step \
         that makes the inverse of the retained Hessian from a kept inverse by Woodbury's identity, at a cost of d³ and \
         without reading the rows that stay. It ends where a refit ends. Both shares are here, the Newton step in the order of \
         products of that script. All methods work on the same model, which keeps x·A⁻¹ for every row; PRU needs that for its hat \
         matrix. One thread; a median by a median, the times of both sides taken in turns. A model measures how far it is from \
         retraining whenever the bound that it carries passes 1e-5.",
    ));
    for source in sources(context) {
        let cells = plan.widths.iter().map(|&d| cell(source, d));
        let trials = results.trials(PaperStudy::Times, cells);
        if trials.1 > 0 {
            section = section
                .add(table(context, results, source, trials))
                .add(setup(context, results, source));
        }
    }
    let (faster, cells) = beside_projection(context, results);
    section.add(figure(context, results)).note(
        RichText::new(
            "Where the numbers differ. A share depends on both times, and neither program is the paper's; sparse reviews are \
             refitted faster than dense rows, and the Newton step treats them as dense, as the script does. Exact forgetting does the products of PRU without its \
             eigendecomposition; it is the faster of the two in ",
        )
        .number("cells where exact is faster than PRU", Number::count(faster))
        .and(" of ")
        .number("cells", Number::count(cells))
        .and(" cells.")
        .text(not_below(context, results, TimeDenominator::NewtonStep))
        .text(not_below(context, results, TimeDenominator::Refit))
        .text(steady(context, results))
        .and(
            " The paper calls PRU linear in d; that holds with the hat matrix at hand, and the second table says what \
             having it at hand costs.",
        ),
    )
}

/// The cells in which exact forgetting is not below what the paper prints, by name.
fn not_below(context: &StudyContext, results: &TrialResults<'_>, by: TimeDenominator) -> RichText {
    let places = places(context);
    let above: Vec<&TablePlace> = places
        .iter()
        .filter(|place| place.is_below_paper(results, by) == Some(false))
        .collect();
    // The numbers of rows behind one set and width.
    let groups = above
        .chunk_by(|a, b| a.source == b.source && a.d == b.d)
        .map(|group| {
            let rows: Vec<String> = group.iter().map(|place| place.k.to_string()).collect();
            format!(
                "{}, d = {}, k = {}",
                group[0].source,
                group[0].d,
                rows.join(", ")
            )
        });
    let groups: Vec<String> = groups.collect();
    if groups.is_empty() {
        return RichText::default();
    }
    RichText::new(format!(
        " As a share of {} it is not below both of the paper's numbers in: {}.",
        by.name(),
        groups.join("; ")
    ))
}

/// How far apart the trials of a cell are.
fn steady(context: &StudyContext, results: &TrialResults<'_>) -> RichText {
    let found = steadiness(context, results);
    let waited = found.waited.map_or(RichText::default(), |waited| {
        RichText::new(" The thread that was timed waited for a processor at most ")
            .number("time spent waiting", Number::new(waited, Style::Percent(1)))
            .and(" of its time.")
    });
    if found.cells == 0 {
        return waited;
    }
    RichText::new(" The spread of a cell is the distance between the quartiles of its times by their median, or that of what they are \
               divided by, whichever is larger. It is at most ")
        .number("largest spread", Number::new(found.largest, Style::Percent(0)))
        .and(", and above ")
        .number("limit of the spread", Number::new(SPREAD_LIMIT, Style::Percent(0)))
        .and(" in ")
        .number("cells of large spread", Number::count(found.unsteady))
        .and(" of ")
        .number("cells with a spread", Number::count(found.cells))
        .and(" cells; such numbers come from a busy machine and are not to be compared.")
        .text(waited)
}

/// In how many cells exact forgetting is faster than PRU, and of how many.
fn beside_projection(context: &StudyContext, results: &TrialResults<'_>) -> (usize, usize) {
    let mut faster = 0;
    let mut cells = 0;
    for TablePlace { source, d, k } in places(context) {
        let time = |name: &str| {
            results.get(
                PaperStudy::Times,
                &cell(source, d),
                &format!("k={k} {name} s"),
            )
        };
        if let (Some(exact), Some(projection)) = (time("exact"), time("PRU")) {
            cells += 1;
            faster += usize::from(exact.median < projection.median);
        }
    }
    (faster, cells)
}

fn id(source: &str) -> String {
    format!("table1 {source}")
}

fn table(
    context: &StudyContext,
    results: &TrialResults<'_>,
    source: &'static str,
    trials: (usize, usize),
) -> ReportTable {
    let plan = &context.plan.times;
    let caption = RichText::new(format!(
        "Time to forget k rows by that of a Newton step from a kept inverse, and by that of a refit, ×10⁻⁴; {source}; median of "
    ));
    let mut table = ReportTable::new(&id(source), caption.text(trials_text(trials)));
    table.columns([TableColumn::label("k"), TableColumn::label("method")]);
    for d in &plan.widths {
        let titles = ["paper", "by Newton step", "by refit", "spread"];
        table.columns(titles.map(|title| TableColumn::number(title).group(format!("d = {d}"))));
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        if at > 0 {
            table.rule();
        }
        for (_, name) in METHODS {
            let mut cells = vec![TableCell::from(k.to_string()), name.into()];
            for &d in &plan.widths {
                let print = paper::table1(k, d).and_then(|p| match name {
                    "INF" => Some(p.influence),
                    "PRU" => Some(p.projection),
                    _ => None,
                });
                cells.push(printed(print, Style::Digits(2)));
                let place = TablePlace { source, d, k };
                for by in TimeDenominator::ALL {
                    let share = place.share(results, name, by);
                    let missing = TableCell::Missing("not run");
                    cells.push(
                        share.map_or(missing, |s| with_error(s.value, s.error, Style::Digits(2))),
                    );
                }
                cells.push(match place.spread(results, name) {
                    None => TableCell::Missing("not run"),
                    Some(spread) if spread.is_nan() => TableCell::Missing("one trial"),
                    Some(spread) => Number::new(spread, Style::Percent(0)).into(),
                });
            }
            table.row(cells);
        }
    }
    table
}

fn setup(context: &StudyContext, results: &TrialResults<'_>, source: &str) -> ReportTable {
    let plan = &context.plan.times;
    let mut table = ReportTable::new(
        &format!("{} setup", id(source)),
        format!(
            "What stands behind the table above: {source}, retraining, and what was made ahead of time"
        ),
    );
    table.columns([
        TableColumn::label("d"),
        TableColumn::number("rows"),
        TableColumn::number("refit"),
        TableColumn::number("Newton step"),
        TableColumn::number("refit by Newton step"),
        TableColumn::number("timed"),
        TableColumn::number("preparing"),
        TableColumn::number("kept"),
        TableColumn::number("one row, exact"),
        TableColumn::number("largest relative bound"),
        TableColumn::number("refactored"),
    ]);
    // The step takes nearly as long for every k, because a product of two d×d matrices is most of
    // it.
    let middle = plan
        .deletions
        .get(plan.deletions.len() / 2)
        .copied()
        .unwrap_or(1);
    let newton = TimeDenominator::NewtonStep.value(middle);
    for &d in &plan.widths {
        let get = |name: &str| results.get(PaperStudy::Times, &cell(source, d), name);
        let number = |name: &str, style| {
            get(name).map_or(TableCell::Missing("not run"), |found| {
                Number::new(found.median, style).into()
            })
        };
        let over = |suffix: &str| {
            let all = plan
                .deletions
                .iter()
                .filter_map(|k| get(&format!("k={k} exact {suffix}")));
            all.map(|found| found.most).fold(f64::NAN, f64::max)
        };
        table.row([
            TableCell::from(d.to_string()),
            number("rows", Style::Count),
            number(REFIT, Style::Seconds),
            number(&newton, Style::Seconds),
            get(REFIT)
                .zip(get(&newton))
                .map_or(TableCell::Missing("–"), |(a, b)| {
                    Number::new(a.median / b.median, Style::Digits(2)).into()
                }),
            get(REFIT).map_or(TableCell::Missing("none"), |found| found.trials.into()),
            number("prepare s", Style::Seconds),
            number("kept bytes", Style::Bytes),
            number("k=1 exact s", Style::Seconds),
            Number::new(over("bound"), Style::Digits(1)).into(),
            if over("refactored") > 0.0 {
                "some".into()
            } else {
                "none".into()
            },
        ]);
    }
    table.note(format!(
        "Refit and Newton step are medians of so many times, in trials spread evenly over all, the Newton step for k = {middle}. Preparing \
         is the fit that also makes x·A⁻¹ for every row; kept is the memory of that and of the sums. The inverse that the Newton \
         step starts from is kept beside it. The bound is the largest of all requests that exact forgetting answered: its \
         distance to retraining is at most that share of the parameters' length.",
    ));
    table
}

fn figure(context: &StudyContext, results: &TrialResults<'_>) -> Figure {
    let plan = &context.plan.times;
    let source = sources(context).last().copied().unwrap_or(GENERATED);
    let mut figure = Figure::new(
        "table1 figure",
        format!("Table 1 as a figure: time by that of a Newton step from a kept inverse, ×10⁻⁴, {source}"),
    )
    .axes(
        Axis::log("rows to forget").ticks(plan.deletions.iter().map(|&k| k as f64)),
        Axis::log("share of the Newton step, ×10⁻⁴"),
    );
    for &d in &plan.widths {
        let mut panel = Panel::new(format!("d = {d}"));
        for (_, name) in METHODS {
            let mut series = Series::new(name);
            for &k in &plan.deletions {
                let place = TablePlace { source, d, k };
                if let Some(share) = place.share(results, name, TimeDenominator::NewtonStep) {
                    series = series.point(k as f64, share.value, share.error);
                }
            }
            panel = panel.series(series);
        }
        type Pick = fn(&paper::PrintedFigures) -> f64;
        let from_paper: [(&str, Pick); 2] = [
            ("INF, paper", |p| p.influence),
            ("PRU, paper", |p| p.projection),
        ];
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
