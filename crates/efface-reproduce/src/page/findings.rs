//! The opening of the page: what was found, in sentences made from the numbers.

use efface_report::{Number, Style, Text};

use super::Results;
use super::membership::auc;
use crate::paper;
use crate::part::Study;
use crate::studies::network_times::{self, HEADS};
use crate::studies::networks::sets;
use crate::studies::times::sources;
use crate::studies::{Context, distance, head_injection, injection, review_injection, times};

/// All that can be said so far.
pub(super) fn findings(context: &Context, results: &Results<'_>) -> Vec<Text> {
    let all = [
        forgets(context, results),
        speed(context, results),
        paper_methods(context, results),
        networks(context, results),
        attack(results),
    ];
    let found: Vec<Text> = all.into_iter().flatten().collect();
    match found.is_empty() {
        true => vec![Text::new("Nothing has been measured yet.")],
        false => found,
    }
}

/// Does it forget? The largest trace over every cell of every injection table.
fn forgets(context: &Context, results: &Results<'_>) -> Option<Text> {
    let plan = &context.plan;
    let mut cells: Vec<(Study, String)> = Vec::new();
    for &k in &plan.injection.deletions {
        cells.extend(plan.injection.keeps.iter().map(|&keep| (Study::Injection, injection::cell(k, keep))));
    }
    for &k in &plan.head.deletions {
        cells.extend(plan.head.widths.iter().map(|&d| (Study::HeadInjection, head_injection::cell(k, d))));
    }
    for &k in &plan.review_injection.deletions {
        let widths = review_injection::widths(context);
        cells.extend(widths.into_iter().map(|d| (Study::ReviewInjection, review_injection::cell(k, d))));
    }
    let worst = |name: &str| {
        let found: Vec<f64> =
            cells.iter().filter_map(|(study, cell)| Some(results.get(*study, cell, name)?.most)).collect();
        (found.len(), found.into_iter().fold(0.0, f64::max))
    };
    let ((measured, exact), (_, retrain)) = (worst("exact"), worst("retrain"));
    let ((_, projection), (_, influence)) = (worst("PRU"), worst("INF"));
    if measured == 0 {
        return None;
    }
    let text = Text::new("Exact forgetting forgets: over all ")
        .number("injection cells", Number::count(measured))
        .and(" cells of the injection tests it leaves ")
        .text(share("largest share left by exact", exact))
        .and(" of the planted weight, and retraining leaves ")
        .text(share("largest share left by retraining", retrain))
        .and("; the projection residual update leaves up to ")
        .number("largest share left by PRU", Number::new(projection, Style::Digits(2)))
        .and(", the influence update up to ")
        .number("largest share left by INF", Number::new(influence, Style::Digits(2)))
        .and(" of it");
    let furthest = plan.distance.deletions.iter().flat_map(|&k| {
        plan.distance.scales.iter().filter_map(move |&scale| {
            Some(results.get(Study::Distance, &distance::cell(k, scale), "exact")?.most)
        })
    });
    let furthest: Vec<f64> = furthest.collect();
    Some(match furthest.is_empty() {
        true => text.and("."),
        false => text
            .and(". Its parameters end within ")
            .number(
                "largest distance of exact",
                Number::new(furthest.into_iter().fold(0.0, f64::max), Style::Digits(1)),
            )
            .and(" of the way that forgetting moves the retrained ones."),
    })
}

/// Nothing, where it is nothing.
fn share(name: &str, value: f64) -> Text {
    match value == 0.0 {
        true => Text::new("nothing (").number(name, Number::new(value, Style::Digits(1))).and(")"),
        false => Text::new("at most ").number(name, Number::new(value, Style::Digits(1))),
    }
}

/// How fast, and against the paper.
fn speed(context: &Context, results: &Results<'_>) -> Option<Text> {
    let plan = &context.plan.times;
    let (mut shares, mut cells, mut below) = (Vec::new(), 0usize, 0usize);
    for source in sources(context) {
        for &d in &plan.widths {
            let cell = times::cell(source, d);
            let Some(retrain) = results.get(Study::Times, &cell, "retrain s") else { continue };
            for &k in &plan.deletions {
                let Some(time) = results.get(Study::Times, &cell, &format!("k={k} exact s")) else {
                    continue;
                };
                let share = time.median / retrain.least;
                shares.push(share);
                if let Some(printed) = paper::table1(k, d) {
                    cells += 1;
                    below += usize::from(share * 1e4 < printed.influence.min(printed.projection));
                }
            }
        }
    }
    let (fastest, slowest) =
        shares.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &s| (low.min(s), high.max(s)));
    (cells > 0).then(|| {
        Text::new("It is fast: forgetting up to ")
            .number("most rows", Number::count(plan.deletions.iter().copied().max().unwrap_or(0)))
            .and(" rows is between ")
            .number("retraining by the slowest request", Number::new((1.0 / slowest).round(), Style::Count))
            .and(" and ")
            .number("retraining by the fastest request", Number::new((1.0 / fastest).round(), Style::Count))
            .and(" times faster than retraining, and its share of that time is below both numbers that the paper prints in ")
            .number("cells below the paper", Number::count(below))
            .and(" of ")
            .number("cells of table 1", Number::count(cells))
            .and(" cells of table 1.")
    })
}

/// What became of the paper's own picture.
fn paper_methods(context: &Context, results: &Results<'_>) -> Option<Text> {
    let plan = &context.plan.injection;
    let (&k, (&first, &last)) = (plan.deletions.last()?, plan.keeps.first().zip(plan.keeps.last())?);
    let at = |keep: f64| results.get(Study::Injection, &injection::cell(k, keep), "PRU");
    let (dense, sparse) = (at(first)?, at(last)?);
    let verdict = if sparse.median < dense.median {
        "The paper's picture of its own method reproduces"
    } else {
        "The paper's picture does not reproduce here"
    };
    let mut text = Text::new(verdict)
        .and(": with ")
        .number("rows forgotten", Number::count(k))
        .and(" rows forgotten, what PRU leaves goes from ")
        .number("PRU left, dense", Number::new(dense.median, Style::Fixed(2)))
        .and(" to ")
        .number("PRU left, sparse", Number::new(sparse.median, Style::Fixed(2)))
        .and(" as the rows get sparser");
    if let (Some(a), Some(b)) = (paper::table4(k, first), paper::table4(k, last)) {
        text = text
            .and(" (printed: ")
            .number("PRU left, dense, paper", Number::new(a.projection, Style::Fixed(2)))
            .and(" to ")
            .number("PRU left, sparse, paper", Number::new(b.projection, Style::Fixed(2)))
            .and(")");
    }
    Some(text.and("."))
}

fn networks(context: &Context, results: &Results<'_>) -> Option<Text> {
    let set = sets(context, true).into_iter().next()?;
    let head = |name: &str| results.get(Study::NetworkTimes, &network_times::cell(set, HEADS), name);
    let retrain = results.get(Study::NetworkTimes, &network_times::cell(set, "retrain"), "s")?;
    let (exact, before, after) = (head("exact s")?, head("accuracy before")?, head("exact accuracy")?);
    Some(
        Text::new("On a text network a request to the head takes ")
            .number("exact on a head", Number::new(exact.median, Style::Seconds))
            .and(" where retraining the network takes ")
            .number("retraining a network", Number::new(retrain.median, Style::Seconds))
            .and(", and accuracy is ")
            .number("accuracy before", Number::new(before.mean, Style::Percent(1)))
            .and(" before and ")
            .number("accuracy after exact", Number::new(after.mean, Style::Percent(1)))
            .and(" after; what the encoder learned is another matter, and stays."),
    )
}

fn attack(results: &Results<'_>) -> Option<Text> {
    let (exact, low, high) = auc(results, "exact", "forgotten")?;
    let (retrain, ..) = auc(results, "retrain", "forgotten")?;
    let verdict = match low <= retrain && retrain <= high {
        true => "An attacker with models of their own cannot tell exact forgetting from retraining: AUC ",
        false => "An attacker does tell exact forgetting from retraining, which should not be: AUC ",
    };
    let mut text = Text::new(verdict)
        .number("AUC of exact", Number::new(exact, Style::Fixed(3)))
        .and(" (")
        .number("low", Number::new(low, Style::Fixed(3)))
        .and(" to ")
        .number("high", Number::new(high, Style::Fixed(3)))
        .and(") against ")
        .number("AUC of retraining", Number::new(retrain, Style::Fixed(3)));
    if let Some(((inf, ..), (pru, ..))) =
        auc(results, "INF", "forgotten").zip(auc(results, "PRU", "forgotten"))
    {
        text = text
            .and("; INF is at ")
            .number("AUC of INF", Number::new(inf, Style::Fixed(3)))
            .and(" and PRU at ")
            .number("AUC of PRU", Number::new(pru, Style::Fixed(3)));
    }
    Some(text.and("."))
}
