//! The promises of the room: every number of the page is in a CSV, nothing comes from elsewhere,
//! everything is escaped.

use efface_report::{
    Axis, Figure, Number, Page, Panel, ReportTable, RichText, Section, Series, Style, TableCell,
    TableColumn,
};

const NASTY: &str = "</style><script src=\"https://e.example/x.js\">&'";

fn page() -> Page {
    let mut table = ReportTable::new("times", format!("Times {NASTY}"));
    table.columns([
        TableColumn::label(NASTY),
        TableColumn::number("a").group("both"),
        TableColumn::number("b").group("both"),
        TableColumn::number("c"),
    ]);
    table.row([
        NASTY.into(),
        TableCell::WithError(Number::new(0.123_456_789, Style::Fixed(2)), 0.002_5),
        TableCell::Missing("not run"),
        TableCell::WithRange(Number::new(0.51, Style::Fixed(2)), 0.47, 0.55),
    ]);
    table.row([
        TableCell::Words("x".into()),
        3usize.into(),
        TableCell::Strong(Number::new(1e-12, Style::Digits(1))),
        7usize.into(),
    ]);
    table.note(RichText::new("measured in ").number("took", Number::new(61.25, Style::Seconds)));
    let figure = Figure::new("curve", "Curve")
        .axes(
            Axis::log("k").ticks([1.0, 5.0]),
            Axis::names("who", ["a", "b"]),
        )
        .panel(
            Panel::new(NASTY).series(Series::new(NASTY).point(1.0, 1.0, 0.5).point(5.0, 0.0, 0.0)),
        );
    Page::new(NASTY)
        .subtitle(NASTY)
        .opening(
            RichText::new("Found ")
                .number("share", Number::new(0.25, Style::Percent(0)))
                .strong(NASTY)
                .code(NASTY),
        )
        .section(
            Section::new("One")
                .add("words")
                .note(NASTY)
                .list([RichText::new("line")])
                .add(table),
        )
        .section(Section::new("Two").add(figure))
        .section(Section::new("Three"))
        .footer(RichText::new("in ").number("all", Number::new(99.5, Style::Seconds)))
}

/// The values of all `<data>` elements.
fn values(html: &str) -> Vec<&str> {
    html.split("<data value=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[test]
fn every_number_of_the_page_is_in_a_csv() {
    let page = page();
    let html = page.html();
    let all: Vec<String> = page
        .csv()
        .iter()
        .flat_map(|file| {
            file.text
                .split([',', '\n'])
                .map(String::from)
                .collect::<Vec<_>>()
        })
        .collect();
    let found = values(&html);
    assert_eq!(found.len(), 11);
    for value in found {
        assert!(
            all.iter().any(|field| field == value),
            "{value} is in no CSV"
        );
    }
}

#[test]
fn nothing_comes_from_elsewhere_and_nothing_runs() {
    let html = page().html();
    assert!(
        !html.contains("<script") && !html.contains("</style><"),
        "escaped everywhere"
    );
    for source in ["src=", "url(", "@import", "<link", "onload"] {
        assert!(!html.replace("src=&quot;", "").contains(source), "{source}");
    }
    assert!(
        html.contains("default-src 'none'")
            && html.contains("prefers-color-scheme: dark")
            && html.contains("@media print")
    );
}

#[test]
fn tags_are_closed_in_order() {
    let html = page().html();
    let mut open: Vec<String> = Vec::new();
    let body = html.split_once("</style>").map_or("", |(_, body)| body);
    for piece in body.split('<').skip(1) {
        let Some((tag, _)) = piece.split_once('>') else {
            panic!("unclosed tag: {piece}")
        };
        let name: String = tag
            .chars()
            .skip_while(|c| *c == '/')
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        if tag.starts_with('/') {
            match open.pop() {
                Some(last) => assert_eq!(last, name),
                None => assert!(
                    ["head", "html"].contains(&name.as_str()),
                    "{name} was never opened"
                ),
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_outline_has_no_numbers_of_the_measurement() {
    let outline = page().outline();
    assert!(
        outline.contains("table times: ") && outline.contains("both: a | both: b | c"),
        "{outline}"
    );
    assert!(outline.contains("figure curve: who against k"));
    assert!(!outline.contains("0.12"));
}
