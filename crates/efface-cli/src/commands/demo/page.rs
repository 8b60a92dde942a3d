//! The demo's findings as a page for people.

use super::compare::{Comparison, Tried};
use crate::report::{count, distance, number, seconds, table, times};

pub(super) fn page(found: &Comparison) -> String {
    [introduction(found), methods(found), meaning(found), next()].join("\n\n")
}

fn introduction(found: &Comparison) -> String {
    format!(
        "{} by {} people, {} different words; ridge with λ = {}, fitted in {}.\n\
         {} wants to be forgotten: {}, each with the word “{}”, which nobody else uses.",
        count(found.reviews, "review"),
        found.people,
        found.words,
        number(found.lambda),
        seconds(found.fit_seconds),
        found.subject,
        count(found.forgotten, "review"),
        found.planted_word,
    )
}

fn methods(found: &Comparison) -> String {
    let header = [
        "method",
        "claim",
        "distance to\nretraining",
        "its own\nbound",
        "weight of\nthe word",
        "time",
        "times\nfaster",
    ];
    let before = weight(found.weight_before);
    let row = |tried: &Tried| {
        vec![
            tried.method.to_owned(),
            tried.claim.to_owned(),
            distance(tried.distance),
            distance(tried.relative_bound),
            format!("{before} → {}", weight(tried.weight_after)),
            seconds(tried.seconds),
            times(tried.times_faster),
        ]
    };
    table(&header, found.methods.iter().map(row), &[2, 3, 4, 5, 6])
}

fn weight(value: f64) -> String {
    // A weight that vanished to rounding is worth seeing as such.
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 5e-4 => format!("{value:.3}"),
        _ => format!("{value:.0e}"),
    }
}

fn meaning(found: &Comparison) -> String {
    format!(
        "What this means. Retraining on everyone else is what forgetting has to equal; its distance is 0 by\n\
         definition. An exact method lands on the same parameters up to rounding, and the word that only\n\
         {subject} used no longer counts for anything. An approximate method is somewhere near: what is left of\n\
         the word's weight is a trace of the person. Distances are relative to the size of the parameters. The\n\
         bound is what a method can promise without retraining, and every forget reports it. Times are medians\n\
         over repeated runs on {threads}, in memory.\n\
         Rows come back the same way: learning the {rows} again took {time} and gives the first model,\n\
         at a relative distance of {distance}.",
        subject = found.subject,
        threads = count(found.threads, "thread"),
        rows = count(found.learned_back.rows, "review"),
        time = seconds(found.learned_back.seconds),
        distance = distance(found.learned_back.distance),
    )
}

fn next() -> String {
    format!("Try it on a file:\n  efface demo --write .\n{}", commands("reviews.csv", "reviews.efface"))
}

/// The next two commands, on a file of reviews and a model beside it.
pub(super) fn commands(data: &str, model: &str) -> String {
    format!(
        "  efface fit {data} --text text --target stars --subject user_id --id review_id --lambda 1e-4\n  \
         efface forget {model} --subject user_id=u1042"
    )
}
