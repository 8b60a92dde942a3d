//! The demo's findings as a page for people.

use super::compare::{DemoReport, MethodResult};
use super::receipt::ReceiptResult;
use crate::report::{bytes, count, distance, number, pairs, seconds, table, times};

pub(super) fn page(found: &DemoReport) -> String {
    [
        introduction(found),
        methods(found),
        meaning(found),
        receipt(&found.receipt),
        next(),
    ]
    .join("\n\n")
}

fn introduction(found: &DemoReport) -> String {
    format!(
        "{} by {} people, {} different words; ridge with λ = {}, fitted in {}.\n\
         {} asks to be forgotten: {}, each with the word “{}”, which nobody else uses.",
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

fn methods(found: &DemoReport) -> String {
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
    let row = |tried: &MethodResult| {
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

fn meaning(found: &DemoReport) -> String {
    format!(
        "Retraining on everyone else is what forgetting has to equal; its distance is 0 by definition. An exact\n\
         method gives the same parameters up to rounding, and the word that only {subject} used has no weight.\n\
         An approximate method stops somewhere near, and the weight that it leaves is a trace of the person.\n\
         Distances are relative to the size of the parameters; the bound is what a method guarantees without\n\
         retraining. Times are medians over repeated runs on {threads}, in memory.\n\n\
         {subject} is a hard request: a word leaves the model with them, so that the bound is measured anew.\n\
         {other} has {reviews} and no word of their own: forgotten by exact in {other_time}, {faster} faster than\n\
         retraining, at most {other_bound} away from it. Learning the {rows} of {subject} again takes {time} and\n\
         gives the first model, at a distance of {distance}.",
        subject = found.subject,
        threads = count(found.threads, "thread"),
        other = found.ordinary.subject,
        reviews = count(found.ordinary.forgotten, "review"),
        other_time = seconds(found.ordinary.seconds),
        faster = times(found.ordinary.times_faster),
        other_bound = distance(found.ordinary.relative_bound),
        rows = count(found.learned_back.rows, "review"),
        time = seconds(found.learned_back.seconds),
        distance = distance(found.learned_back.distance),
    )
}

fn receipt(found: &ReceiptResult) -> String {
    let verdict = if found.verified {
        "the receipt holds"
    } else {
        "THE RECEIPT DOES NOT HOLD"
    };
    let altered = if found.altered_refused {
        "refused"
    } else {
        "NOT REFUSED"
    };
    let size = bytes(found.file_bytes);
    let fit = format!(
        "{}, {size} on disk, in {}",
        count(found.rows, "row"),
        seconds(found.fit_seconds)
    );
    let forget = format!(
        "{} by {}: {}, at most {} from retraining, durable in {}",
        count(found.forgotten, "row"),
        found.method,
        found.claim,
        distance(found.relative_bound),
        seconds(found.forget_seconds)
    );
    let size = bytes(found.bytes as u64);
    let receipt = format!("{}, number {} in the log, {size}", found.id, found.sequence);
    let verify = format!(
        "{verdict}: checked with the public key alone in {}",
        seconds(found.verify_seconds)
    );
    let altered = format!("with one digit changed it is {altered}");
    let lines = [
        ("fit", fit),
        ("forget", forget),
        ("receipt", receipt),
        ("verify", verify),
        ("", altered),
    ];
    let told = pairs(
        lines
            .into_iter()
            .map(|(name, value)| (format!("  {name}"), value)),
    );
    format!("The same request on a model file, in a temporary folder:\n{told}")
}

fn next() -> String {
    format!(
        "What to type next:\n  efface demo --write .\n{}\n  \
         efface keys reviews.efface > reviews.pub\n  \
         efface verify receipt.cose --key reviews.pub",
        commands("reviews.csv", "reviews.efface")
    )
}

/// The next two commands, on a file of reviews and a model beside it.
pub(super) fn commands(data: &str, model: &str) -> String {
    format!(
        "  efface fit {data} --text text --target stars --subject user_id --id review_id\n  \
         efface forget {model} --subject user_id=u1042 --receipt receipt.cose"
    )
}
