//! The page of an audit: the same numbers as on the terminal and more, with what each means beside
//! it.

use efface::eval::{Attack, KlomQuantiles, Utility};
use efface_engine::{AuditReport, StateReport};
use efface_evidence::{AuditMark, audit_figures, coin_figure};
use efface_report::{Number, Page, ReportTable, RichText, Section, Style, TableCell, TableColumn};

const SHORT: Style = Style::Digits(2);
const AUC: Style = Style::Fixed(3);

pub(super) fn page(report: &AuditReport) -> Page {
    let mut page = Page::new("How well this model forgets")
        .subtitle(format!(
            "An audit of one {} model against a true retraining",
            report.model
        ))
        .opening(opening(report))
        .section(in_short(report))
        .section(twins(report))
        .section(nearness(report));
    if report.membership.is_some() {
        page = page.section(attacks(report));
    }
    page = page.section(useful(report));
    let sentences = |list: &[String]| {
        list.iter()
            .map(|line| RichText::new(line.clone()))
            .collect::<Vec<_>>()
    };
    let mut end = Section::new("What is not claimed").list(sentences(&report.not_claimed));
    if !report.left_out.is_empty() {
        end = end
            .add(RichText::new("Left out:"))
            .list(sentences(&report.left_out));
    }
    page.section(end).footer(
        "Every number of this page is in the CSV files beside it, and in audit.json with all its digits.",
    )
}

fn opening(report: &AuditReport) -> RichText {
    let how = if report.gone_before {
        " had left the model before; they were measured from a file. "
    } else {
        " were forgotten in a copy in memory; the model file was only read. "
    };
    let mut text = RichText::new("Of ")
        .number("rows", Number::count(report.rows))
        .and(" rows with ")
        .number("features", Number::count(report.features))
        .and(" features, ")
        .number("forgotten", Number::count(report.forgotten))
        .and(how);
    if report.twins.surviving > 0 {
        text = text.strong("Some of them stay as twins. ");
    }
    text
}

/// A line for each method with its verdict, and a line for each thing that was found.
fn in_short(report: &AuditReport) -> Section {
    let methods = report
        .states
        .iter()
        .filter(|state| report.is_compared(&state.state));
    let mut lines: Vec<RichText> = super::recall(report)
        .into_iter()
        .map(RichText::new)
        .collect();
    lines.extend(methods.map(|state| verdict(report, state)));
    for finding in super::findings(report) {
        let mut line = match finding.words.split_once(": ") {
            Some((method, rest)) if finding.areas.is_some() => {
                RichText::new("").code(method).and(": ").and(rest)
            }
            _ => {
                let mut letters = finding.words.chars();
                let first: String = letters
                    .next()
                    .map(|c| c.to_uppercase().to_string())
                    .unwrap_or_default();
                RichText::new(first + letters.as_str())
            }
        };
        if let Some((own, truth)) = finding.areas {
            line = line
                .and(" (AUC ")
                .number("AUC", Number::new(own, AUC))
                .and(", retraining ")
                .number("AUC of retraining", Number::new(truth, AUC))
                .and(")");
        }
        lines.push(line.and("."));
    }
    Section::new("In short").list(lines)
}

/// A thousandth of the way, or of a planted weight, is what a page can show of nothing.
const NOTHING: f64 = 1e-3;

/// Whether a method forgot as retraining does, and what it left where it did not.
fn verdict(report: &AuditReport, state: &StateReport) -> RichText {
    let name = &state.state;
    let way = state.distance.as_ref().and_then(|far| far.fraction);
    let planted = super::injected(report, name);
    let known: Vec<f64> = [way, planted].into_iter().flatten().collect();
    let word = if known.is_empty() {
        "nothing could be measured"
    } else if known.iter().all(|left| left.abs() <= NOTHING) {
        match report.comparison {
            "retrain_head" => "as a new head on the same encoder",
            _ => "as retraining",
        }
    } else {
        "leaves something"
    };
    let mut line = RichText::new("").code(name.clone()).and(": ").strong(word);
    if let Some(left) = way {
        let left = Number::new(left, SHORT);
        line = line
            .and("; ")
            .number(format!("way left by {name}"), left)
            .and(" of the way to retraining is left");
    }
    if let Some(left) = planted {
        let left = Number::new(left, SHORT);
        line = line
            .and(", ")
            .number(format!("weight left by {name}"), left)
            .and(" of a planted weight");
    }
    line.and(".")
}

fn twins(report: &AuditReport) -> Section {
    let twins = &report.twins;
    let mut table = ReportTable::new(
        "twins",
        "Rows that equal others, looked for before anything was split",
    );
    table.columns([TableColumn::label("what"), TableColumn::number("rows")]);
    for (what, rows) in [
        (
            "rows of the model that have an equal in it",
            twins.rows_with_twins,
        ),
        ("rows to forget that stay as a twin", twins.surviving),
        (
            "rows to forget whose features stay under another target",
            twins.resembled,
        ),
        ("twins that were forgotten along", twins.taken_along),
    ] {
        table.row([what.into(), rows.into()]);
    }
    Section::new("Twins")
        .add(RichText::new(
            "A row that stays under another id has not been forgotten, whatever the other numbers say.",
        ))
        .add(table)
}

fn nearness(report: &AuditReport) -> Section {
    let mut table = ReportTable::new(
        "distance",
        "How far each state of the model is from the retrained one",
    );
    table.columns([
        TableColumn::label("state"),
        TableColumn::label("claim"),
        TableColumn::number("time"),
        TableColumn::number("distance"),
        TableColumn::number("way left"),
        TableColumn::number("score change"),
        TableColumn::number("same class"),
        TableColumn::number("relearning steps"),
        TableColumn::number("relearned"),
        TableColumn::number("injected left"),
        TableColumn::number("injected cleared"),
    ]);
    for state in &report.states {
        let far = state.distance.as_ref();
        let number = |value: Option<f64>, style| cell(value.map(|value| Number::new(value, style)));
        let claim = state
            .evidence
            .as_ref()
            .map_or("", |evidence| evidence.claim().name());
        table.row([
            super::named(state).into(),
            claim.into(),
            number(state.seconds, Style::Seconds),
            number(far.and_then(|far| far.l2), SHORT),
            number(far.and_then(|far| far.fraction), SHORT),
            number(far.map(|far| far.largest_prediction_change), SHORT),
            number(far.and_then(|far| far.agreement), Style::Percent(2)),
            cell(
                state
                    .relearning
                    .and_then(|found| found.steps)
                    .map(Number::count),
            ),
            number(
                state.relearning.and_then(|found| found.ratio),
                Style::Percent(0),
            ),
            number(super::injected(report, &state.state), SHORT),
            number(super::injected_and_cleared(report, &state.state), SHORT),
        ]);
    }
    table.note(
        "Distance is the Euclidean norm between parameters, and the way left its share of the distance before. The score change \
         is the largest over all rows, the same class the share of rows that both models decide alike. Relearning steps are \
         the gradient steps on the forgotten rows until they are known as well as before, and relearned is their number beside the \
         retrained model's: 100 % is retraining, 0 % is not having forgotten. The injected weight is that of a planted feature which only the \
         forgotten rows have, as a share of what it was before; 0 is perfect. Exact methods set the weight of a column that no row has any more to 0 \
         because they count its rows: what their algebra had left there is shown as cleared.",
    );
    // What attackers can tell is drawn with its intervals, which the results for a receipt do not
    // have.
    let mut results = report.results();
    results.retain(|result| !result.test.starts_with("u_lira"));
    audit_figures(&results).into_iter().fold(
        Section::new("How near to retraining").add(table),
        Section::add,
    )
}

fn attacks(report: &AuditReport) -> Section {
    let Some(membership) = &report.membership else {
        return Section::new("Who can tell");
    };
    let mut table = ReportTable::new(
        "attacks",
        "What attackers can tell: area under the ROC curve, 0.5 is a coin",
    );
    table.columns([
        TableColumn::label("state"),
        TableColumn::number("U-LiRA").group("forgotten rows"),
        TableColumn::number("TPR at 1 %").group("forgotten rows"),
        TableColumn::number("at 0.1 %").group("forgotten rows"),
        TableColumn::number("threshold").group("forgotten rows"),
        TableColumn::number("LiRA").group("retained rows"),
        TableColumn::number("threshold").group("retained rows"),
    ]);
    let mut margins = klom_table(
        "paired-klom",
        "Paired KLoM: the margins of models and of their own retrainings, in nats",
    );
    let mut apart = klom_table(
        "unpaired-klom",
        "Unpaired KLoM: the margins of models and of other, retrained models, in nats",
    );
    let mut marks = Vec::new();
    for exposure in &membership.exposures {
        table.row([
            exposure.state.clone().into(),
            auc(&exposure.forgotten),
            rate(&exposure.forgotten, 0),
            rate(&exposure.forgotten, 1),
            plain(&exposure.population_forgotten),
            auc(&exposure.retained),
            plain(&exposure.population_retained),
        ]);
        let paired = &exposure.paired_klom;
        margins.row(klom_row(
            &exposure.state,
            &paired.forgotten,
            &paired.retained,
        ));
        let unpaired = &exposure.unpaired_klom;
        apart.row(klom_row(
            &exposure.state,
            &unpaired.forgotten,
            &unpaired.retained,
        ));
        let found = &exposure.forgotten;
        let interval = &found.auc_interval;
        marks.push(AuditMark {
            state: exposure.state.clone(),
            value: found.auc,
            low: interval.low,
            high: interval.high,
        });
    }
    table.note("Intervals are 95 %, from leaving out pairs of oracles. A rate is left out where there were too few games to see it.");
    margins.note(format!(
        "Of {} it is 0: a model against itself.",
        report.comparison
    ));
    apart.note(
        "Of retrain it is what chance alone gives. Estimates from histograms are in audit.json.",
    );
    let text = RichText::new("Measured on ")
        .number("oracles", Number::count(membership.oracles))
        .and(" models, each fitted on a random share of the rows, with a random half of the forgotten ones, which it then forgot.");
    let section = Section::new("Who can tell").add(text).add(table);
    coin_figure(&marks)
        .into_iter()
        .fold(section, Section::add)
        .add(margins)
        .add(apart)
}

fn klom_table(name: &str, title: &str) -> ReportTable {
    let mut table = ReportTable::new(name, title);
    table.columns([
        TableColumn::label("state"),
        TableColumn::number("median").group("forgotten rows"),
        TableColumn::number("95th percentile").group("forgotten rows"),
        TableColumn::number("worst").group("forgotten rows"),
        TableColumn::number("median").group("retained rows"),
        TableColumn::number("95th percentile").group("retained rows"),
        TableColumn::number("worst").group("retained rows"),
    ]);
    table
}

fn klom_row(state: &str, forgotten: &KlomQuantiles, retained: &KlomQuantiles) -> Vec<TableCell> {
    let of = |klom: &KlomQuantiles| {
        [klom.median, klom.p95, klom.worst].map(|value| TableCell::from(Number::new(value, SHORT)))
    };
    std::iter::once(state.to_owned().into())
        .chain(of(forgotten))
        .chain(of(retained))
        .collect()
}

fn useful(report: &AuditReport) -> Section {
    let mut table = ReportTable::new("utility", "How good each state of the model is");
    let mut columns = vec![TableColumn::label("state")];
    for group in ["retained rows", "forgotten rows", "held-out rows"] {
        columns.extend(
            ["accuracy", "RMSE", "log-loss"].map(|title| TableColumn::number(title).group(group)),
        );
    }
    table.columns(columns);
    for state in &report.states {
        let StateReport {
            state: name,
            retained,
            forgotten,
            held_out,
            ..
        } = state;
        let mut cells: Vec<TableCell> = vec![name.clone().into()];
        for utility in [Some(retained), Some(forgotten), held_out.as_ref()] {
            let of = |read: fn(&Utility) -> Option<f64>, style| {
                cell(
                    utility
                        .and_then(read)
                        .map(|value| Number::new(value, style)),
                )
            };
            cells.push(of(|utility| utility.accuracy, Style::Percent(2)));
            cells.push(of(|utility| utility.rmse, Style::Digits(4)));
            cells.push(of(|utility| utility.log_loss, Style::Digits(4)));
        }
        table.row(cells);
    }
    Section::new("What it costs").add(table)
}

fn cell(number: Option<Number>) -> TableCell {
    number.map_or(TableCell::Missing("–"), TableCell::from)
}

fn auc(attack: &Attack) -> TableCell {
    TableCell::WithRange(
        Number::new(attack.auc, AUC),
        attack.auc_interval.low,
        attack.auc_interval.high,
    )
}

/// Without its interval, which is in audit.json: a page is only so wide.
fn plain(attack: &Attack) -> TableCell {
    Number::new(attack.auc, AUC).into()
}

fn rate(attack: &Attack, at: usize) -> TableCell {
    match attack.rates.get(at) {
        Some(rate) if rate.resolved => Number::new(rate.tpr, Style::Percent(1)).into(),
        _ => TableCell::Missing("–"),
    }
}
