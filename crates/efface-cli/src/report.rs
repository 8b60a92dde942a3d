//! Numbers and tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use efface::{Certificate, Evidence, NotCovered};
use efface_engine::ChangeReport;
use efface_receipt::{Receipt, ReceiptClaim};

/// Longer values are broken into lines of this many characters.
const WIDTH: u16 = 100;

/// One line, under the header.
const RULED: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table of names and values without lines.
pub(crate) fn pairs(rows: impl IntoIterator<Item = (String, String)>) -> String {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    for (name, value) in rows {
        table.add_row([name, value]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 2));
    }
    trimmed(&table)
}

/// A table with a header. Columns numbered in `right` are aligned to the right.
pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    right: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(RULED);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for &at in right {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trimmed(&table)
}

fn trimmed(table: &Table) -> String {
    table
        .to_string()
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

/// `1 row`, `14 rows`.
pub(crate) fn count(number: usize, one: &str) -> String {
    let plural = if one.ends_with('s') { "es" } else { "s" };
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}{plural}")
    }
}

/// The first names of a list.
pub(crate) fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// A time in the unit that suits it, with two or three digits.
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let digits = if value >= 99.5 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

/// A time as it is typed in options: `12h` rather than `43200 s`.
pub(crate) fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let whole = units
        .iter()
        .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(
        || format!("{seconds}s"),
        |(unit, letter)| format!("{}{letter}", seconds / unit),
    )
}

/// What a change left, a line for each list, or whole sentences.
pub(crate) fn left_behind(evidence: &Evidence, explain: bool) -> Vec<String> {
    let lists = left_lists(&evidence.not_covered, &evidence.kept_beside, explain);
    lists
        .into_iter()
        .map(|(name, what)| format!("{name}: {what}"))
        .collect()
}

/// The two lists under their names: what answers may still depend on, and what is kept beside them.
pub(crate) fn left_lists(
    not_covered: &[NotCovered],
    kept_beside: &[NotCovered],
    explain: bool,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (name, list) in [("not covered", not_covered), ("kept beside", kept_beside)] {
        let parts = list.iter().map(|what| (what.code(), what.to_string()));
        let parts = once_each(parts);
        if explain {
            lines.extend(parts.into_iter().map(|(_, text)| (name, text)));
        } else if !parts.is_empty() {
            let codes: Vec<&str> = parts.iter().map(|(code, _)| *code).collect();
            lines.push((name, format!("{} (--explain)", codes.join(", "))));
        }
    }
    lines
}

/// Returns each code once, with the sentence of its first part and the number of other parts with
/// that code, such as the scales of other columns.
pub(crate) fn once_each<'a>(
    parts: impl Iterator<Item = (&'a str, String)>,
) -> Vec<(&'a str, String)> {
    let mut found: Vec<(&str, String, usize)> = Vec::new();
    for (code, text) in parts {
        match found.iter_mut().find(|(known, ..)| *known == code) {
            Some((_, first, more)) => *more += usize::from(*first != text),
            None => found.push((code, text, 0)),
        }
    }
    let with_rest = |(code, text, more)| match more {
        0 => (code, text),
        more => (code, format!("{text} (and {more} more of this kind)")),
    };
    found.into_iter().map(with_rest).collect()
}

/// Method, claim and bound of a change, as words for people.
pub(crate) struct ChangeWords {
    pub(crate) method: String,
    pub(crate) claim: String,
    /// The distance to retraining.
    pub(crate) bound: String,
}

impl ChangeWords {
    /// What a report says.
    pub(crate) fn of_report(report: &ChangeReport) -> Self {
        Self {
            method: report.method.clone(),
            claim: report.claim.clone(),
            bound: bound_words(
                Some(report.evidence.relative_bound),
                report.evidence.head_bound.map(|head| head.relative_bound),
            ),
        }
    }

    /// What a receipt says; None if it computed no model.
    pub(crate) fn of_receipt(receipt: &Receipt) -> Option<Self> {
        let claim = match receipt.claim.as_ref()? {
            ReceiptClaim::Exact { tolerance } => {
                format!("exact, within {} (relative)", distance(*tolerance))
            }
            ReceiptClaim::Certified { epsilon, delta, .. } => {
                format!("certified at ε = {epsilon}, δ = {delta}")
            }
            ReceiptClaim::Approximate {} => "approximate".into(),
        };
        let relative = receipt.bound.as_ref().and_then(|bound| bound.relative);
        let head = receipt.head_bound.as_ref().and_then(|bound| bound.relative);
        Some(Self {
            method: receipt.method.clone().unwrap_or_default(),
            claim,
            bound: bound_words(relative, head),
        })
    }

    /// The words as cells of a table, which are empty for what changed no model.
    pub(crate) fn cells(words: Option<Self>) -> [String; 3] {
        words.map_or_else(Default::default, |words| {
            [words.method, words.claim, words.bound]
        })
    }

    /// The words under their names.
    pub(crate) fn lines(self) -> [(&'static str, String); 3] {
        [
            ("method", self.method),
            ("claim", self.claim),
            ("bound", self.bound),
        ]
    }
}

/// Returns the bound of a result in words. Of a network whose encoder nothing bounds, it names the
/// bound of the head.
fn bound_words(relative: Option<f64>, head: Option<f64>) -> String {
    let bound = relative.filter(|bound| bound.is_finite());
    match (bound, head) {
        (Some(bound), _) => format!("at most {} (relative)", distance(bound)),
        (None, Some(head)) => format!(
            "not known, because nothing bounds the encoder; that of the head alone at most {} (relative)",
            distance(head)
        ),
        (None, None) => "not known".into(),
    }
}

/// A small distance: two digits and a power of ten; `unknown` when there is no number.
pub(crate) fn distance(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v.is_finite() => format!("{v:.1e}"),
        _ => "unknown".into(),
    }
}

/// A setting: as people write it, without a row of zeros.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// What stands behind a claim of (ε, δ).
pub(crate) fn certificate(certificate: &Certificate) -> String {
    let Certificate {
        epsilon,
        delta,
        unit,
        budget,
        used,
        left,
        retrained,
        ..
    } = certificate;
    let again = if *retrained {
        "; the budget was spent, so that the model was trained anew"
    } else {
        ""
    };
    format!(
        "ε = {}, δ = {}; {unit}: {} of {} used, {} left{again}",
        number(*epsilon),
        number(*delta),
        distance(*used),
        distance(*budget),
        distance(*left),
    )
}

/// How many times faster.
pub(crate) fn times(ratio: f64) -> String {
    if ratio >= 9.95 {
        format!("{ratio:.0}×")
    } else {
        format!("{ratio:.1}×")
    }
}

/// A size in the unit that suits it.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1024.0 * 1024.0 * 1024.0 => format!("{:.1} GiB", b / (1024.0 * 1024.0 * 1024.0)),
        b if b >= 1024.0 * 1024.0 => format!("{:.1} MiB", b / (1024.0 * 1024.0)),
        b if b >= 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(seconds(0.008_21), "8.2 ms");
        assert_eq!(seconds(0.123_4), "123 ms");
        assert_eq!(seconds(4.5e-5), "45.0 µs");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(distance(3.04e-12), "3.0e-12");
        assert_eq!(
            [
                duration(43_200),
                duration(90),
                duration(172_800),
                duration(0)
            ],
            ["12h", "90s", "2d", "0s"]
        );
        assert_eq!(distance(f64::INFINITY), "unknown");
        assert_eq!(
            [number(0.0), number(1.0), number(0.5), number(1e-4)],
            ["0", "1", "0.5", "1e-4"]
        );
        assert_eq!(times(9.94), "9.9×");
        assert_eq!(times(123.4), "123×");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
    }

    #[test]
    fn tables_have_no_trailing_blanks() {
        let shown = pairs([
            ("rows".to_owned(), "14".to_owned()),
            ("features".to_owned(), "3".to_owned()),
        ]);
        assert!(shown.lines().all(|line| line == line.trim_end()), "{shown}");
    }
}
