//! Draws groups of methods as an SVG that stands by itself: one line a method, its time to forget
//! on a logarithmic scale and what it leaves on a linear one. The colours follow the reader's light
//! or dark setting, on a card of its own, so that the picture can be read on any background.

use std::fmt::Write;

/// One method, measured.
pub(crate) struct MethodLine {
    pub(crate) method: String,
    pub(crate) claim: String,
    pub(crate) relative_bound: f64,
    pub(crate) seconds: f64,
    /// The share of the way to the retrained parameters that is left.
    pub(crate) left: f64,
}

/// The methods of one model. The first is retraining, which the others are compared with.
pub(crate) struct MethodGroup {
    pub(crate) name: String,
    pub(crate) lines: Vec<MethodLine>,
}

/// The whole picture.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) groups: Vec<MethodGroup>,
}

const CARD_WIDTH: f64 = 860.0;
const LINE_HEIGHT: f64 = 26.0;
const BAR_HEIGHT: f64 = 15.0;
/// Where the bars of time begin, and how long the longest can be.
const TIME_START: f64 = 180.0;
const TIME_LENGTH: f64 = 250.0;
/// Where the bars of what is left begin, and how long 100 % is.
const LEFT_START: f64 = 580.0;
const LEFT_LENGTH: f64 = 190.0;
/// The bars of time begin at this many seconds.
const SHORTEST: f64 = 1e-4;

const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
.head{font-weight:600}.title{font-size:16px;font-weight:600}.soft,.how{fill:#59636e}.how{font-weight:400}\
.card{fill:#fff;stroke:#d1d9e0}.rule{stroke:#d1d9e0}\
.retrain{fill:#8c959f}.exact{fill:#1a7f37}.approximate{fill:#bc4c00}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft,.how{fill:#9198a1}\
.card{fill:#0d1117;stroke:#3d444d}.rule{stroke:#3d444d}\
.retrain{fill:#6e7681}.exact{fill:#3fb950}.approximate{fill:#f0883e}}";

impl Chart {
    /// The picture.
    pub(crate) fn svg(&self) -> String {
        let lines: usize = self.groups.iter().map(|group| group.lines.len() + 1).sum();
        let height = 118.0 + LINE_HEIGHT * lines as f64 + 44.0;
        let mut svg = Drawing::default();
        svg.push(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {CARD_WIDTH} {height}\" role=\"img\">"
        ));
        svg.push(format!(
            "<title>{}</title><desc>{}</desc>",
            self.title,
            self.sentence()
        ));
        svg.push(format!("<style>{STYLE}</style>"));
        svg.push(format!(
            "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
            CARD_WIDTH - 1.0,
            height - 1.0
        ));
        svg.text(24.0, 36.0, "title", &self.title);
        svg.legend(24.0, 60.0);
        svg.heading(
            TIME_START,
            "time to forget",
            "logarithmic; × faster than retraining",
        );
        svg.heading(LEFT_START, "what is left", "of the way to retraining");
        let longest = self
            .lines()
            .map(|line| line.seconds)
            .fold(SHORTEST * 10.0, f64::max);
        let mut y = 108.0;
        for group in &self.groups {
            svg.push(format!(
                "<line class=\"rule\" x1=\"24\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
                CARD_WIDTH - 24.0
            ));
            svg.text(24.0, y + 19.0, "head", &group.name);
            y += LINE_HEIGHT;
            for line in &group.lines {
                svg.method(line, group.retraining(), longest, y);
                y += LINE_HEIGHT;
            }
            y += 5.0;
        }
        svg.text(
            24.0,
            y + 22.0,
            "soft",
            "Measured by cargo xtask picture. Mean processor time of one thread.",
        );
        svg.push("</svg>".into());
        svg.0
    }

    /// What the picture shows, for readers who cannot see it.
    fn sentence(&self) -> String {
        let told = self.lines().map(|line| {
            format!(
                "{}: {}, {} of the way to retraining left",
                line.method,
                time(line.seconds),
                percent(line.left)
            )
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// The numbers of the picture as a table.
    pub(crate) fn markdown(&self) -> String {
        let mut page =
            String::from("| model | method | claim | time | × faster | left | bound |\n");
        page.push_str("|---|---|---|---|---|---|---|\n");
        for group in &self.groups {
            for line in &group.lines {
                let _ = writeln!(
                    page,
                    "| {} | `{}` | {} | {} | {} | {} | {:.0e} |",
                    group.name,
                    line.method,
                    line.claim,
                    time(line.seconds),
                    faster(group.retraining() / line.seconds),
                    percent(line.left),
                    line.relative_bound
                );
            }
        }
        page
    }

    fn lines(&self) -> impl Iterator<Item = &MethodLine> {
        self.groups.iter().flat_map(|group| &group.lines)
    }
}

impl MethodGroup {
    /// The time of retraining.
    fn retraining(&self) -> f64 {
        self.lines.first().map_or(f64::NAN, |line| line.seconds)
    }
}

/// The SVG as far as it is written.
#[derive(Default)]
struct Drawing(String);

impl Drawing {
    fn push(&mut self, element: String) {
        self.0.push_str(&element);
        self.0.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.push(format!(
            "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\">{text}</text>"
        ));
    }

    /// The heading of a column: what it shows, and how in a softer tone.
    fn heading(&mut self, x: f64, what: &str, how: &str) {
        self.push(format!(
            "<text class=\"head\" x=\"{x:.0}\" y=\"94\">{what} <tspan class=\"how\">{how}</tspan></text>"
        ));
    }

    fn bar(&mut self, class: &str, x: f64, y: f64, length: f64) {
        self.push(format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
        ));
    }

    fn legend(&mut self, x: f64, y: f64) {
        let entries = [
            ("retrain", "retraining", 104.0),
            ("exact", "exact: the bound is within the tolerance", 290.0),
            ("approximate", "approximate", 0.0),
        ];
        let mut at = x;
        for (class, text, width) in entries {
            self.bar(class, at, y - 11.0, 12.0);
            self.text(at + 18.0, y, "soft", text);
            at += width;
        }
    }

    /// One line: name, bar of time, bar of what is left.
    fn method(&mut self, line: &MethodLine, retraining: f64, longest: f64, y: f64) {
        let class = if line.method == "retrain" {
            "retrain"
        } else {
            &line.claim
        };
        let base = y + 17.0;
        self.text(36.0, base, "name", &line.method);
        let share = (line.seconds / SHORTEST).max(1.0).ln() / (longest / SHORTEST).ln();
        let length = (TIME_LENGTH * share).max(2.0);
        self.bar(class, TIME_START, y + 5.0, length);
        let mut told = time(line.seconds);
        if line.method != "retrain" {
            told = format!("{told} · {}", faster(retraining / line.seconds));
        }
        self.text(TIME_START + length + 8.0, base, "soft", &told);
        let length = (LEFT_LENGTH * line.left.min(1.0)).max(2.0);
        self.bar(class, LEFT_START, y + 5.0, length);
        self.text(LEFT_START + length + 8.0, base, "soft", &percent(line.left));
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

fn faster(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1}×")
    } else {
        format!("{ratio:.0}×")
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0".into(),
        p if p < 0.1 => format!("{p:.0e} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
