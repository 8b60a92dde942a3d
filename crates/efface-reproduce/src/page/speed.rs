//! What table 1 says in a sentence: how fast, against what the paper prints, and whether the times
//! can be trusted.

use efface_report::{Number, RichText, Style};

use super::TrialResults;
use super::shares::{SPREAD_LIMIT, TimeDenominator, UNIT, WAIT_LIMIT, places, steadiness};
use crate::studies::StudyContext;
use crate::studies::times::sources;

/// How fast, and against the paper, by both of what a time can be divided by.
pub(super) fn finding(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let places = places(context);
    let shares = places
        .iter()
        .filter_map(|place| place.share(results, "exact", TimeDenominator::Refit));
    let shares: Vec<f64> = shares.map(|share| share.value / UNIT).collect();
    let fastest = shares.iter().copied().reduce(f64::min)?;
    let slowest = shares.iter().copied().reduce(f64::max)?;
    let most = Number::count(
        context
            .plan
            .times
            .deletions
            .iter()
            .copied()
            .max()
            .unwrap_or(0),
    );
    let mut text = if slowest < 1.0 {
        RichText::new("It is fast: forgetting up to ")
            .number("most rows", most)
            .and(" rows is between ")
            .number(
                "a refit by the slowest request",
                Number::new((1.0 / slowest).floor(), Style::Count),
            )
            .and(" and ")
            .number(
                "a refit by the fastest request",
                Number::new((1.0 / fastest).floor(), Style::Count),
            )
            .and(" times faster than a refit.")
    } else {
        RichText::new("It is not always faster than a refit: forgetting up to ")
            .number("most rows", most)
            .and(" rows takes between ")
            .number(
                "the fastest request by a refit",
                Number::new(fastest, Style::Digits(2)),
            )
            .and(" and ")
            .number(
                "the slowest request by a refit",
                Number::new(slowest, Style::Digits(2)),
            )
            .and(" of its time.")
    };
    for by in TimeDenominator::ALL {
        let compared: Vec<bool> = places
            .iter()
            .filter_map(|place| place.is_below_paper(results, by))
            .collect();
        if compared.is_empty() {
            continue;
        }
        let why = match by {
            TimeDenominator::NewtonStep => ", by which the paper's numbers were divided,",
            TimeDenominator::Refit => "",
        };
        text = text
            .and(format!(
                " Its share of {}{why} is below both numbers that the paper prints in ",
                by.name()
            ))
            .number(
                format!("cells below the paper, by {}", by.name()),
                Number::count(compared.iter().filter(|below| **below).count()),
            )
            .and(" of ")
            .number(
                format!("cells compared, by {}", by.name()),
                Number::count(compared.len()),
            )
            .and(" cells of table 1.");
    }
    let sets = sources(context).len();
    if sets > 1 {
        let sets = Number::count(sets);
        text = text
            .and(" Each was measured on ")
            .number("sets of rows", sets)
            .and(" sets of rows.");
    }
    Some(text)
}

/// A warning where the trials of a cell are far apart, or the machine had other work.
pub(super) fn caution(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let found = steadiness(context, results);
    let busy = found.waited.filter(|waited| *waited > WAIT_LIMIT);
    if found.unsteady == 0 && busy.is_none() {
        return None;
    }
    let mut text = RichText::new("The times of table 1 are not to be trusted.");
    if found.unsteady > 0 {
        text = text
            .and(" In ")
            .number("unsteady cells", Number::count(found.unsteady))
            .and(" of ")
            .number("cells with a spread", Number::count(found.cells))
            .and(" cells the middle half of the trials, or of what they are divided by, spans more than ")
            .number("limit of the spread", Number::new(SPREAD_LIMIT, Style::Percent(0)))
            .and(" of the median (at most ")
            .number("largest spread", Number::new(found.largest, Style::Percent(0)))
            .and(").");
    }
    if let Some(waited) = busy {
        text = text
            .and(" Up to ")
            .number("time spent waiting", Number::new(waited, Style::Percent(0)))
            .and(" of the time was spent waiting for a processor, where ")
            .number("limit of waiting", Number::new(WAIT_LIMIT, Style::Percent(0)))
            .and(" is allowed; that slows what is long more than what is short, and makes shares too small.");
    }
    Some(text.and(" Something else was at work on this machine; measure again when it is idle."))
}
