//! The opening of the page: what was found, in sentences made from the numbers.

use efface_report::{Number, RichText, Style};

use super::membership::auc;
use super::{TrialResults, adaptive, speed};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::distance::{CONSTRUCTIONS, at_scale};
use crate::studies::network_times::{self, HEADS};
use crate::studies::networks::sets;
use crate::studies::{StudyContext, distance, head_injection, injection, review_injection};

/// What is left of a weight that is nothing but rounding.
const NOTHING: f64 = 1e-9;

/// All that can be said so far.
pub(super) fn findings(context: &StudyContext, results: &TrialResults<'_>) -> Vec<RichText> {
    let all = [
        forgets(context, results),
        nearness(context, results),
        speed::finding(context, results),
        speed::caution(context, results),
        sparsity(context, results),
        heads(context, results),
        networks(context, results),
        adaptive::finding(context, results),
        attack(results),
    ];
    let found: Vec<RichText> = all.into_iter().flatten().collect();
    if found.is_empty() {
        vec![RichText::new("Nothing has been measured yet.")]
    } else {
        found
    }
}

/// Does it forget? The largest trace over every cell of every injection table.
fn forgets(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let plan = &context.plan;
    let mut cells: Vec<(PaperStudy, String)> = Vec::new();
    for &k in &plan.injection.deletions {
        cells.extend(
            plan.injection
                .keeps
                .iter()
                .map(|&keep| (PaperStudy::Injection, injection::cell(k, keep))),
        );
    }
    for &k in &plan.head.deletions {
        cells.extend(
            plan.head
                .widths
                .iter()
                .map(|&d| (PaperStudy::HeadInjection, head_injection::cell(k, d))),
        );
    }
    for &k in &plan.review_injection.deletions {
        let widths = review_injection::widths(context);
        cells.extend(
            widths
                .into_iter()
                .map(|d| (PaperStudy::ReviewInjection, review_injection::cell(k, d))),
        );
    }
    let worst = |name: &str| {
        let found: Vec<f64> = cells
            .iter()
            .filter_map(|(study, cell)| Some(results.get(*study, cell, name)?.most))
            .collect();
        (found.len(), found.into_iter().fold(0.0, f64::max))
    };
    let (measured, exact) = worst("exact");
    let (_, retrain) = worst("retrain");
    let (_, projection) = worst("PRU");
    let (_, influence) = worst("INF");
    if measured == 0 {
        return None;
    }
    let verdict = if exact <= NOTHING {
        "Exact forgetting forgets: over all "
    } else {
        "Exact forgetting leaves more than it should: over all "
    };
    let text = RichText::new(verdict)
        .number("injection cells", Number::count(measured))
        .and(" cells of the injection tests it leaves ")
        .text(share("largest share left by exact", exact))
        .and(" of the planted weight, and retraining leaves ")
        .text(share("largest share left by retraining", retrain))
        .and("; the projection residual update leaves up to ")
        .number(
            "largest share left by PRU",
            Number::new(projection, Style::Digits(2)),
        )
        .and(", the influence update up to ")
        .number(
            "largest share left by INF",
            Number::new(influence, Style::Digits(2)),
        )
        .and(" of it.");
    Some(text)
}

/// How near is it to retraining? The largest distance over every cell of the L2 table.
fn nearness(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let plan = &context.plan.distance;
    let cells = || {
        CONSTRUCTIONS
            .into_iter()
            .flat_map(|made| plan.deletions.iter().map(move |&k| distance::cell(made, k)))
    };
    let worst = |name: &str| {
        let found = cells().flat_map(|cell| {
            let scales = plan.scales.iter();
            scales.map(move |&scale| {
                Some(
                    results
                        .get(PaperStudy::Distance, &cell, &at_scale(scale, name))?
                        .most,
                )
            })
        });
        found.flatten().reduce(f64::max)
    };
    let exact = worst("exact")?;
    let projection = worst("PRU")?;
    let influence = worst("INF")?;
    let text = RichText::new("On outliers, exact forgetting ends at most ")
        .number("largest distance of exact", Number::new(exact, Style::Digits(1)))
        .and(" of the way from the retrained parameters; the projection residual update stays up to ")
        .number("largest distance of PRU", Number::new(projection, Style::Fixed(2)))
        .and(" and the influence update up to ")
        .number("largest distance of INF", Number::new(influence, Style::Fixed(2)))
        .and(" of it away.");
    Some(text)
}

/// Nothing, where it is nothing.
fn share(name: &str, value: f64) -> RichText {
    if value == 0.0 {
        RichText::new("nothing (")
            .number(name, Number::new(value, Style::Digits(1)))
            .and(")")
    } else {
        RichText::new("at most ").number(name, Number::new(value, Style::Digits(1)))
    }
}

/// What became of table 4's fall with sparsity.
fn sparsity(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let plan = &context.plan.injection;
    let &k = plan.deletions.last()?;
    let (&first, &last) = plan.keeps.first().zip(plan.keeps.last())?;
    let at = |keep: f64| results.get(PaperStudy::Injection, &injection::cell(k, keep), "PRU");
    let dense = at(first)?;
    let sparse = at(last)?;
    let verdict = if sparse.median < dense.median {
        "PRU's fall with sparsity, the point of table 4, reproduces"
    } else {
        "PRU's fall with sparsity, the point of table 4, does not reproduce here"
    };
    let mut text = RichText::new(verdict)
        .and(": with ")
        .number("rows forgotten", Number::count(k))
        .and(" rows forgotten, what PRU leaves goes from ")
        .number(
            "PRU left, dense",
            Number::new(dense.median, Style::Fixed(2)),
        )
        .and(" to ")
        .number(
            "PRU left, sparse",
            Number::new(sparse.median, Style::Fixed(2)),
        )
        .and(" as the rows get sparser");
    if let (Some(a), Some(b)) = (paper::table4(k, first), paper::table4(k, last)) {
        text = text
            .and(" (printed: ")
            .number(
                "PRU left, dense, paper",
                Number::new(a.projection, Style::Fixed(2)),
            )
            .and(" to ")
            .number(
                "PRU left, sparse, paper",
                Number::new(b.projection, Style::Fixed(2)),
            )
            .and(")");
    }
    Some(text.and("."))
}

/// What became of table 3: whether every cell that the paper prints comes out within a factor of
/// two.
fn heads(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let plan = &context.plan.head;
    let cells = plan
        .widths
        .iter()
        .flat_map(|&d| plan.deletions.iter().map(move |&k| (k, d)));
    let mut here = Vec::new();
    let mut there = Vec::new();
    let mut near = true;
    for (k, d) in cells {
        let Some(printed) = paper::table3(k, d) else {
            continue;
        };
        for (name, printed) in [("INF", printed.influence), ("PRU", printed.projection)] {
            let cell = head_injection::cell(k, d);
            let Some(found) = results.get(PaperStudy::HeadInjection, &cell, name) else {
                continue;
            };
            let found = found.mean * 1e4;
            near &= found <= 2.0 * printed && printed <= 2.0 * found;
            here.push(found);
            there.push(printed);
        }
    }
    let range = |values: &[f64]| {
        values
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(low, high), &value| {
                (low.min(value), high.max(value))
            })
    };
    let (low, high) = range(&here);
    let (least, most) = range(&there);
    let verdict = if near {
        "Table 3 reproduces within a factor of two"
    } else {
        "Table 3 does not reproduce"
    };
    (!here.is_empty()).then(|| {
        RichText::new(verdict)
            .and(": INF and PRU leave between ")
            .number("least left in a head", Number::new(low, Style::Digits(2)))
            .and(" and ")
            .number("most left in a head", Number::new(high, Style::Digits(2)))
            .and(" ×10⁻⁴ of the weight injected into a network's head, where the paper prints between ")
            .number("least left in a head, paper", Number::new(least, Style::Digits(2)))
            .and(" and ")
            .number("most left in a head, paper", Number::new(most, Style::Digits(2)))
            .and(".")
    })
}

fn networks(context: &StudyContext, results: &TrialResults<'_>) -> Option<RichText> {
    let set = sets(context, true).into_iter().next()?;
    let head = |name: &str| {
        results.get(
            PaperStudy::NetworkTimes,
            &network_times::cell(set, HEADS),
            name,
        )
    };
    let retrain = results.get(
        PaperStudy::NetworkTimes,
        &network_times::cell(set, "retrain"),
        "s",
    )?;
    let exact = head("exact s")?;
    let before = head("accuracy before")?;
    let after = head("exact accuracy")?;
    Some(
        RichText::new("On a text network a request to the head takes ")
            .number("exact on a head", Number::new(exact.median, Style::Seconds))
            .and(" where retraining the network takes ")
            .number(
                "retraining a network",
                Number::new(retrain.median, Style::Seconds),
            )
            .and(", and accuracy is ")
            .number(
                "accuracy before",
                Number::new(before.mean, Style::Percent(1)),
            )
            .and(" before and ")
            .number(
                "accuracy after exact",
                Number::new(after.mean, Style::Percent(1)),
            )
            .and(" after; what the encoder learned is another matter, and stays."),
    )
}

fn attack(results: &TrialResults<'_>) -> Option<RichText> {
    let (exact, low, high) = auc(results, "exact", "forgotten")?;
    let (retrain, ..) = auc(results, "retrain", "forgotten")?;
    let verdict = match (retrain < low, retrain > high) {
        (false, false) => {
            "An attacker with models of their own (U-LiRA) does not tell exact forgetting from retraining: AUC "
        }
        (true, _) => {
            "An attacker (U-LiRA) finds more after exact forgetting than after retraining, which should not be: AUC "
        }
        (_, true) => {
            "An attacker (U-LiRA) finds less after exact forgetting than after retraining, which should not be: AUC "
        }
    };
    let mut text = RichText::new(verdict)
        .number("AUC of exact", Number::new(exact, Style::Fixed(3)))
        .and(" (")
        .number("low", Number::new(low, Style::Fixed(3)))
        .and(" to ")
        .number("high", Number::new(high, Style::Fixed(3)))
        .and(") against ")
        .number("AUC of retraining", Number::new(retrain, Style::Fixed(3)));
    if let Some((before, low, _)) = auc(results, "before", "forgotten") {
        text = text
            .and("; before, it was ")
            .number("AUC before", Number::new(before, Style::Fixed(3)));
        if low <= 0.5 {
            text = text
                .and(", hardly better than a coin, so that this attack shows little on these rows");
        }
    }
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
