//! The page of an evidence pack: what was done, how it can be checked, and what it does not show.

use efface_receipt::{AuditEntry, CopyState, Receipt, ReceiptClaim, RequestId};
use efface_report::{Page, ReportTable, RichText, Section, TableColumn};

use crate::audit_figure::audit_figures;
use crate::pack::{EvidencePack, settles};

pub(crate) fn page(pack: &EvidencePack) -> Page {
    let origin = pack
        .asked
        .first()
        .map_or("", |bundle| bundle.signed.receipt.origin.as_str());
    let mut page = Page::new("Evidence of forgetting")
        .subtitle(format!("Log {origin}. This page names no person, no row and no request."))
        .opening(
            "A trained model was asked to forget. This pack holds what was signed about it at the time, with proofs \
             that it stands in a log that only grows. The words below are taken from the receipts.",
        );
    for bundle in &pack.asked {
        page = page.section(request(pack, &bundle.signed.receipt));
    }
    page.section(tests(pack))
        .section(copies(pack))
        .section(opinion(pack))
        .section(checking(pack))
        .footer("Written by efface. It is no legal opinion.")
}

/// What one request did.
fn request(pack: &EvidencePack, receipt: &Receipt) -> Section {
    let mut table = ReportTable::new(
        &format!("receipt-{}", receipt.sequence),
        format!(
            "Receipt {}, number {} of the log",
            receipt.id, receipt.sequence
        ),
    );
    table.columns([TableColumn::label("what"), TableColumn::label("as signed")]);
    let mut line = |name: &str, value: String| {
        table.row([name.into(), value.as_str().into()]);
    };
    line(
        "Kind and outcome",
        format!("{}: {}", receipt.kind.name(), receipt.outcome.name()),
    );
    line("Request", commitment(receipt));
    if let Some(subject) = &receipt.subject {
        line("Person", format!("commitment {subject}"));
    }
    if let Some(time) = receipt.times.requested_at {
        line("The person asked", time.to_string());
    }
    line("Taken", receipt.times.received_at.to_string());
    if let Some(time) = receipt.times.forgotten_at {
        line("Out of the model", time.to_string());
    }
    line("Bytes overwritten", scrubbed(pack, receipt));
    line(
        "Rows",
        format!(
            "{} left, {} joined",
            receipt.rows.removed, receipt.rows.added
        ),
    );
    let before = receipt.training_set.before.map_or(0, |state| state.count);
    line(
        "Training set",
        format!(
            "{before} rows before, {} after",
            receipt.training_set.after.count
        ),
    );
    if let Some(method) = &receipt.method {
        line("Method", method.clone());
    }
    line("Claim", claim(receipt));
    if let Some(reason) = &receipt.reason {
        line("Reason", reason.clone());
    }
    let mut section = Section::new(format!("Receipt {}", receipt.sequence)).add(table);
    if receipt.not_covered.is_empty() {
        section = section.add("The receipt lists nothing that forgetting could not take out.");
    } else {
        let parts = receipt
            .not_covered
            .iter()
            .map(|part| RichText::new(part.detail.clone()));
        section = section
            .add("What this request could not take out, as the receipt lists it:")
            .list(parts);
    }
    if !receipt.kept_beside.is_empty() {
        let parts = receipt
            .kept_beside
            .iter()
            .map(|part| RichText::new(part.detail.clone()));
        section = section
            .add("What is kept beside the model, on which none of its answers depends:")
            .list(parts);
    }
    section
}

fn commitment(receipt: &Receipt) -> String {
    match &receipt.request_id {
        None => "without a name".into(),
        Some(RequestId::Committed(hash)) => format!("commitment {hash}"),
        // An opaque id that the caller chose to show is still not for this page.
        Some(RequestId::Given(_)) => "named by an opaque id, which is in the receipt".into(),
    }
}

fn scrubbed(pack: &EvidencePack, receipt: &Receipt) -> String {
    let later = pack.settled.iter().map(|bundle| &bundle.signed.receipt);
    let settle = later.into_iter().find(|settle| settles(settle, receipt));
    match (receipt.times.scrubbed_at, settle) {
        (Some(time), _) => time.to_string(),
        (None, Some(settle)) => {
            let time = settle
                .times
                .scrubbed_at
                .map_or(String::new(), |time| time.to_string());
            format!("{time}, by receipt {}", settle.sequence)
        }
        (None, None) if receipt.times.forgotten_at.is_some() => {
            "not yet: they wait for a settle".into()
        }
        (None, None) => "nothing was there to overwrite".into(),
    }
}

/// What is promised, in words.
fn claim(receipt: &Receipt) -> String {
    let bound = receipt.bound.as_ref().and_then(|bound| bound.relative);
    let bound = bound.map_or("no bound is known".to_owned(), |bound| {
        format!("bound {bound:.1e}")
    });
    match &receipt.claim {
        None => "none: no model was computed".into(),
        Some(ReceiptClaim::Exact { tolerance }) => format!(
            "exact: equal to a model that was never trained on these rows, up to a relative distance of {tolerance:.1e}; {bound}"
        ),
        Some(ReceiptClaim::Certified { epsilon, delta, .. }) => format!(
            "certified: indistinguishable from retraining in the sense of (ε, δ) = ({epsilon}, {delta}); {bound}"
        ),
        Some(ReceiptClaim::Approximate {}) if receipt.head_bound.is_some() => {
            "approximate: only the head of the network forgot, and nothing bounds how far its encoder is from retraining".into()
        }
        Some(ReceiptClaim::Approximate {}) => {
            format!("approximate: near retraining; relative {bound}")
        }
    }
}

/// The audits on record.
fn tests(pack: &EvidencePack) -> Section {
    let section = Section::new("Tests of the model");
    if pack.audits.is_empty() {
        return section.add("No audit is on record since the first of these receipts.");
    }
    let mut table = ReportTable::new(
        "audits",
        "Audits on record since, names and numbers as signed",
    );
    table.columns([
        TableColumn::label("test"),
        TableColumn::label("value"),
        TableColumn::label("too much would be"),
        TableColumn::label("passed"),
        TableColumn::label("receipt"),
    ]);
    for bundle in &pack.audits {
        let receipt = &bundle.signed.receipt;
        for entry in &receipt.audit {
            table.row(audit_row(entry, receipt.sequence).map(|text| text.as_str().into()));
        }
    }
    // The newest audit is drawn: older ones are in the table.
    let newest = pack
        .audits
        .last()
        .map_or(&[][..], |bundle| &bundle.signed.receipt.audit);
    audit_figures(newest)
        .into_iter()
        .fold(section.add(table), Section::add)
}

fn audit_row(entry: &AuditEntry, sequence: u64) -> [String; 5] {
    let number = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.4}"));
    let passed = match entry.passed {
        Some(true) => "yes",
        Some(false) => "no",
        None => "a measurement",
    };
    [
        entry.test.clone(),
        number(entry.value),
        number(entry.threshold),
        passed.to_owned(),
        sequence.to_string(),
    ]
}

/// What is known of exports.
fn copies(pack: &EvidencePack) -> Section {
    let live = pack
        .exports
        .iter()
        .filter(|copy| copy.state == CopyState::Live)
        .count();
    let withdrawn = pack.exports.len() - live;
    Section::new("Copies of the model")
        .add(format!(
            "The log knows of {} exports: {live} in use, {withdrawn} withdrawn because they still hold rows that were \
             forgotten. exports.json lists them by number, hash and time.",
            pack.exports.len()
        )
        .as_str())
        .note("A copy that efface did not make, such as a backup or a replica, is in no log. Whoever received an export must be told.")
}

/// What the Opinion asks to be demonstrated, and what of this pack speaks to it.
fn opinion(pack: &EvidencePack) -> Section {
    let mut table = ReportTable::new(
        "opinion",
        "What EDPB Opinion 28/2024 asks a controller to demonstrate, and what this pack has on it",
    );
    table.columns([
        TableColumn::label("asked"),
        TableColumn::label("in this pack"),
        TableColumn::label("not shown here"),
    ]);
    let audits = if pack.audits.is_empty() {
        "nothing: no audit is on record"
    } else {
        "the table of tests: membership inference, feature injection and others, as signed"
    };
    for [asked, here, absent] in [
        [
            "Question 1: how likely it is that personal data of a person can be extracted from the model, directly or by \
             queries",
            "the claim and its bound: how far the model can be from one that was never trained on the rows; what is not \
             covered",
            "an assessment of everybody else whose rows are in the model",
        ],
        [
            "Question 1: documented tests of the model's resistance to attacks",
            audits,
            "attacks that nobody ran",
        ],
        [
            "Accountability (Article 5(2) GDPR): documentation from which an authority can confirm what was done",
            "signed receipts with their place in a log that only grows; keys.txt and checkpoint.txt to check them",
            "that the program which signed was honest at that time",
        ],
        [
            "Questions 2 and 3: measures that help people to exercise their rights, such as erasure",
            "when the person asked, when the request was taken, carried out, and the bytes overwritten",
            "how the person was told, and requests that were never entered",
        ],
        [
            "Question 4: what becomes of a model, and of copies in use elsewhere, after data had to be erased",
            "the model was changed in place; exports are listed, and withdrawn where they hold the rows",
            "copies that efface did not make; whether the rows were lawful before",
        ],
    ] {
        table.row([asked.into(), here.into(), absent.into()]);
    }
    Section::new("EDPB Opinion 28/2024").add(table)
}

fn checking(pack: &EvidencePack) -> Section {
    let first = pack
        .asked
        .first()
        .map_or(0, |bundle| bundle.signed.receipt.sequence);
    Section::new("How to check it")
        .add(
            RichText::new("With efface, the whole pack: ")
                .code("efface verify pack.zip")
                .and(", or one receipt: ")
                .code(format!("efface verify receipts/{first}.cose"))
                .and(", each with the file of keys that you were given before")
                .and(". With the second verifier, which shares no code with it: ")
                .code("verify.py pack KEYS pack.zip")
                .and(" or ")
                .code(format!("verify.py bundle KEYS receipts/{first}.cose"))
                .and(". The files are COSE_Sign1 statements with COSE receipts (RFC 9942), which other tools read too."),
        )
        .note("Compare keys.txt with the key that you were given before: a pack that brings its own key shows that it agrees with itself, and no more.")
}
