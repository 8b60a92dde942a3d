//! Tables: columns that may stand under a common heading, rows of labels and numbers, and the same
//! as CSV.

use crate::csv::CsvFile;
use crate::escape::{escape, slug};
use crate::number::{Number, Style};
use crate::text::{RichText, data, data_as};

/// A table with its caption and, below it, notes.
#[derive(Debug, Clone)]
pub struct ReportTable {
    pub(crate) id: String,
    caption: RichText,
    columns: Vec<TableColumn>,
    rows: Vec<TableRow>,
    pub(crate) notes: Vec<RichText>,
}

/// One column.
#[derive(Debug, Clone)]
pub struct TableColumn {
    title: String,
    group: Option<String>,
    label: bool,
}

#[derive(Debug, Clone)]
struct TableRow {
    cells: Vec<TableCell>,
    apart: bool,
}

/// What stands in one place.
#[derive(Debug, Clone)]
pub enum TableCell {
    /// Words. Numbers in them are shown but belong to the CSV of the text, so labels are the place
    /// for this.
    Words(String),
    /// A number.
    Number(Number),
    /// A number and its standard error.
    WithError(Number, f64),
    /// A number between two others.
    WithRange(Number, f64, f64),
    /// A number that the reader should look at.
    Strong(Number),
    /// Nothing, and the word that says why.
    Missing(&'static str),
}

impl TableColumn {
    /// A column of labels; they head their row when they come first.
    pub fn label(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            group: None,
            label: true,
        }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            group: None,
            label: false,
        }
    }

    /// Under a heading that it shares with its neighbours of the same group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Its name in the CSV, where a heading over several columns has no place.
    fn name(&self) -> String {
        match &self.group {
            Some(group) => format!("{group}: {}", self.title),
            None => self.title.clone(),
        }
    }
}

impl From<&str> for TableCell {
    fn from(words: &str) -> Self {
        Self::Words(words.into())
    }
}

impl From<String> for TableCell {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<Number> for TableCell {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for TableCell {
    fn from(count: usize) -> Self {
        Self::Number(Number::count(count))
    }
}

impl TableCell {
    fn html(&self) -> String {
        let beside = |number: &Number, value: f64| data(&Number::new(value, number.style));
        let margin = |number: &Number, value: f64| {
            data_as(
                &Number::new(value, number.style),
                &number.show_margin(value),
            )
        };
        match self {
            Self::Words(words) => escape(words),
            Self::Number(number) => data(number),
            Self::WithError(number, error) => {
                format!(
                    "{}<span class=\"e\"> ± {}</span>",
                    data(number),
                    margin(number, *error)
                )
            }
            Self::WithRange(number, low, high) => format!(
                "{}<span class=\"e\"> ({} to {})</span>",
                data(number),
                beside(number, *low),
                beside(number, *high)
            ),
            Self::Strong(number) => format!("<strong>{}</strong>", data(number)),
            Self::Missing(why) => format!("<span class=\"m\">{}</span>", escape(why)),
        }
    }

    /// As a terminal shows it.
    pub fn plain(&self) -> String {
        let beside = |number: &Number, value: f64| Number::new(value, number.style).show();
        match self {
            Self::Words(words) => words.clone(),
            Self::Number(number) | Self::Strong(number) => number.show(),
            Self::WithError(number, error) => {
                format!("{} ± {}", number.show(), number.show_margin(*error))
            }
            Self::WithRange(number, low, high) => {
                format!(
                    "{} ({} to {})",
                    number.show(),
                    beside(number, *low),
                    beside(number, *high)
                )
            }
            Self::Missing(why) => (*why).into(),
        }
    }

    fn is_words(&self) -> bool {
        matches!(self, Self::Words(_))
    }

    /// How many further columns the CSV needs for it.
    fn extra(&self) -> &'static [&'static str] {
        match self {
            Self::WithError(..) => &["standard error"],
            Self::WithRange(..) => &["low", "high"],
            _ => &[],
        }
    }

    fn fields(&self, names: &[&'static str]) -> Vec<String> {
        let exact = |value: f64| Number::new(value, Style::Count).exact();
        let main = match self {
            Self::Words(words) => words.clone(),
            Self::Number(number) | Self::Strong(number) => number.exact(),
            Self::WithError(number, _) | Self::WithRange(number, ..) => number.exact(),
            Self::Missing(_) => String::new(),
        };
        let beside = names.iter().map(|name| match (self, *name) {
            (Self::WithError(_, error), "standard error") => exact(*error),
            (Self::WithRange(_, low, _), "low") => exact(*low),
            (Self::WithRange(_, _, high), "high") => exact(*high),
            _ => String::new(),
        });
        std::iter::once(main).chain(beside).collect()
    }
}

impl ReportTable {
    /// An empty table. `id` names its CSV and its place in the page.
    pub fn new(id: &str, caption: impl Into<RichText>) -> Self {
        let columns = Vec::new();
        let rows = Vec::new();
        let notes = Vec::new();
        Self {
            id: slug(id),
            caption: caption.into(),
            columns,
            rows,
            notes,
        }
    }

    /// Adds columns.
    pub fn columns(&mut self, columns: impl IntoIterator<Item = TableColumn>) -> &mut Self {
        self.columns.extend(columns);
        self
    }

    /// Adds a row. Cells beyond the columns are dropped, and missing ones stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) -> &mut Self {
        let mut cells: Vec<TableCell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), TableCell::Missing(""));
        self.rows.push(TableRow {
            cells,
            apart: false,
        });
        self
    }

    /// A line above the row that comes next.
    pub fn rule(&mut self) -> &mut Self {
        self.rows.push(TableRow {
            cells: Vec::new(),
            apart: true,
        });
        self
    }

    /// A sentence below the table.
    pub fn note(&mut self, note: impl Into<RichText>) -> &mut Self {
        self.notes.push(note.into());
        self
    }

    /// The name of its CSV, without the ending.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The titles of its columns as the CSV has them.
    pub fn header(&self) -> Vec<String> {
        self.columns.iter().map(TableColumn::name).collect()
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &RichText> {
        std::iter::once(&self.caption).chain(&self.notes)
    }

    pub(crate) fn html(&self) -> String {
        let mut out = format!(
            "<figure class=\"table\" id=\"{id}\"><figcaption>{caption} <a class=\"csv\" href=\"{id}.csv\">CSV</a></figcaption>\n\
             <div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table{pinned}>\n<thead>",
            pinned = self.pinned(),
            id = self.id,
            caption = self.caption.html(),
            label = escape(&self.caption.plain()),
        );
        out.push_str(&self.head());
        out.push_str("</thead>\n<tbody>\n");
        let mut apart = false;
        for row in &self.rows {
            if row.apart {
                apart = true;
                continue;
            }
            out.push_str(if std::mem::take(&mut apart) {
                "<tr class=\"apart\">"
            } else {
                "<tr>"
            });
            for (at, (cell, column)) in row.cells.iter().zip(&self.columns).enumerate() {
                let heads = column.label && self.columns[..at].iter().all(|column| column.label);
                let class = match (column.label || cell.is_words(), self.starts_group(at)) {
                    (true, true) => " class=\"l g\"",
                    (true, false) => " class=\"l\"",
                    (false, true) => " class=\"g\"",
                    (false, false) => "",
                };
                if heads {
                    out.push_str(&format!("<th scope=\"row\"{class}>{}</th>", cell.html()));
                } else {
                    out.push_str(&format!("<td{class}>{}</td>", cell.html()));
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        for note in &self.notes {
            out.push_str(&format!("<p class=\"below\">{}</p>\n", note.html()));
        }
        out + "</figure>\n"
    }

    /// Labels stay in sight where a narrow screen scrolls the numbers: the first column, and the
    /// second where the first is short, so that both leave room.
    fn pinned(&self) -> &'static str {
        let short = |row: &TableRow| {
            row.apart
                || row
                    .cells
                    .first()
                    .is_some_and(|cell| cell.plain().chars().count() <= 5)
        };
        let second = self.columns.get(1).is_some_and(|column| column.label);
        if !self.columns.first().is_some_and(|column| column.label) {
            ""
        } else if second && self.rows.iter().all(short) {
            " class=\"pinned two\""
        } else {
            " class=\"pinned\""
        }
    }

    /// Whether a group of columns begins here, so that a gap belongs before it.
    fn starts_group(&self, at: usize) -> bool {
        at > 0
            && self.columns[at].group.is_some()
            && self.columns[at].group != self.columns[at - 1].group
    }

    fn head(&self) -> String {
        let class = |at: usize, label: bool| match (label, self.starts_group(at)) {
            (true, _) => " class=\"l\"",
            (false, true) => " class=\"g\"",
            (false, false) => "",
        };
        let title = |at: usize, extra: &str| {
            let column = &self.columns[at];
            format!(
                "<th scope=\"col\"{extra}{}>{}</th>",
                class(at, column.label),
                escape(&column.title)
            )
        };
        if self.columns.iter().all(|column| column.group.is_none()) {
            let titles: String = (0..self.columns.len()).map(|at| title(at, "")).collect();
            return format!("<tr>{titles}</tr>");
        }
        let mut upper = String::new();
        let mut lower = String::new();
        let mut at = 0;
        while at < self.columns.len() {
            let Some(group) = &self.columns[at].group else {
                upper.push_str(&title(at, " rowspan=\"2\""));
                at += 1;
                continue;
            };
            let end =
                (at..self.columns.len()).find(|&i| self.columns[i].group.as_ref() != Some(group));
            let end = end.unwrap_or(self.columns.len());
            let gap = if at > 0 {
                " class=\"group g\""
            } else {
                " class=\"group\""
            };
            upper.push_str(&format!(
                "<th scope=\"colgroup\" colspan=\"{}\"{gap}>{}</th>",
                end - at,
                escape(group)
            ));
            (at..end).for_each(|at| lower.push_str(&title(at, "")));
            at = end;
        }
        format!("<tr>{upper}</tr><tr>{lower}</tr>")
    }

    pub(crate) fn csv(&self) -> CsvFile {
        let rows = || self.rows.iter().filter(|row| !row.apart);
        let extras: Vec<Vec<&'static str>> = (0..self.columns.len())
            .map(|at| {
                let mut names = Vec::new();
                for name in rows().flat_map(|row| row.cells[at].extra()) {
                    if !names.contains(name) {
                        names.push(*name);
                    }
                }
                names
            })
            .collect();
        let mut file = CsvFile::new(&self.id);
        let header = self
            .columns
            .iter()
            .zip(&extras)
            .flat_map(|(column, extra)| {
                let name = column.name();
                let beside: Vec<String> = extra
                    .iter()
                    .map(|extra| format!("{name} {extra}"))
                    .collect();
                std::iter::once(name).chain(beside)
            });
        file.line(header);
        for row in rows() {
            file.line(
                row.cells
                    .iter()
                    .zip(&extras)
                    .flat_map(|(cell, extra)| cell.fields(extra)),
            );
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ReportTable {
        let mut table = ReportTable::new("Table 1", "Times & errors");
        table.columns([
            TableColumn::label("k"),
            TableColumn::number("paper").group("d = 1000"),
            TableColumn::number("here").group("d = 1000"),
        ]);
        table.row([
            "a, b".into(),
            79usize.into(),
            TableCell::WithError(Number::new(0.5, Style::Fixed(1)), 0.0625),
        ]);
        table.rule();
        table.row(["c".into(), TableCell::Missing("not asked")]);
        table
    }

    #[test]
    fn two_columns_of_labels_stay_in_sight_where_the_first_is_short() {
        let of = |label: &str| {
            let mut table = ReportTable::new("t", "t");
            table.columns([
                TableColumn::label("k"),
                TableColumn::label("method"),
                TableColumn::number("a"),
            ]);
            table.row([label.into(), "INF".into(), 1usize.into()]);
            table.html()
        };
        assert!(of("100").contains("<table class=\"pinned two\">"));
        assert!(of("projection_residual").contains("<table class=\"pinned\">"));
    }

    #[test]
    fn headings_span_their_columns_and_errors_get_one_of_their_own_in_the_csv() {
        let html = table().html();
        assert!(
            html.contains("<th scope=\"colgroup\" colspan=\"2\" class=\"group g\">d = 1000</th>"),
            "{html}"
        );
        assert!(
            html.contains("<th scope=\"col\" rowspan=\"2\" class=\"l\">k</th>"),
            "{html}"
        );
        assert!(html.contains("Times &amp; errors") && html.contains("<tr class=\"apart\">"));
        assert!(html.contains("<table class=\"pinned\">"), "{html}");
        let csv = table().csv();
        let lines: Vec<&str> = csv.text.lines().collect();
        assert_eq!(csv.name, "table-1.csv");
        assert_eq!(
            lines[0],
            "k,d = 1000: paper,d = 1000: here,d = 1000: here standard error"
        );
        assert_eq!(lines[1], "\"a, b\",79,0.5,0.0625");
        assert_eq!(lines[2], "c,,,");
    }
}
