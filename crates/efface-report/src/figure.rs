//! Figures as data: axes, and panels of series of points with error bars. `svg.rs` draws them.

use crate::csv::CsvFile;
use crate::escape::{escape, slug};
use crate::number::{Number, Style};
use crate::svg;
use crate::text::RichText;

/// How values lie along an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers. A value of 0, which has no place there, is drawn on a shelf below the smallest
    /// power.
    Log,
    /// Names side by side; the values are their places, from 0.
    Names(Vec<String>),
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<f64>,
    pub(crate) include: Vec<f64>,
}

impl Axis {
    /// An even axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            ticks: Vec::new(),
            include: Vec::new(),
        }
    }

    /// An axis of powers.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label)
        }
    }

    /// An axis of names.
    pub fn names<S: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            scale: Scale::Names(names.into_iter().map(Into::into).collect()),
            ..Self::linear(label)
        }
    }

    /// Marks at these values, and nowhere else.
    pub fn ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = ticks.into_iter().filter(|tick| tick.is_finite()).collect();
        self
    }

    /// Long enough for this value, whatever the points are.
    pub fn include(mut self, value: f64) -> Self {
        self.include.push(value);
        self
    }
}

/// One measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// What was measured.
    pub y: f64,
    /// The lower end of its error bar.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Points that belong together. Marks, dashes and colours follow from the place in the figure, so
/// that a series looks the same in every panel and can be told from the others without colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    pub(crate) joined: bool,
    pub(crate) reference: Option<String>,
}

impl Series {
    /// A series without points yet, which will be joined by a line.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            points: Vec::new(),
            joined: true,
            reference: None,
        }
    }

    /// Adds a point with the same error to both sides; 0 for none.
    pub fn point(self, x: f64, y: f64, error: f64) -> Self {
        self.range(x, y, y - error, y + error)
    }

    /// Adds a point with the ends of its error bar.
    pub fn range(mut self, x: f64, y: f64, low: f64, high: f64) -> Self {
        self.points.push(Point { x, y, low, high });
        self
    }

    /// Marks only, no line.
    pub fn apart(mut self) -> Self {
        self.joined = false;
        self
    }

    /// Numbers from elsewhere, such as a paper's, for the series `of`: its marks, but hollow, and a
    /// thin line.
    pub fn reference(mut self, of: impl Into<String>) -> Self {
        self.reference = Some(of.into());
        self
    }
}

/// One field of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub(crate) title: String,
    pub(crate) series: Vec<Series>,
}

impl Panel {
    /// A panel with its heading.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            series: Vec::new(),
        }
    }

    /// Adds a series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }
}

/// A figure: one panel or several with common axes and one legend.
#[derive(Debug, Clone)]
pub struct Figure {
    pub(crate) id: String,
    pub(crate) caption: RichText,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) panels: Vec<Panel>,
    pub(crate) notes: Vec<RichText>,
}

impl Figure {
    /// An empty figure. `id` names its CSV and its place in the page.
    pub fn new(id: &str, caption: impl Into<RichText>) -> Self {
        Self {
            id: slug(id),
            caption: caption.into(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            panels: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Its axes.
    pub fn axes(mut self, x: Axis, y: Axis) -> Self {
        (self.x, self.y) = (x, y);
        self
    }

    /// Adds a panel.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Adds a series to the last panel, or to the only one.
    pub fn series(mut self, series: Series) -> Self {
        if self.panels.is_empty() {
            self.panels.push(Panel::new(""));
        }
        if let Some(panel) = self.panels.last_mut() {
            panel.series.push(series);
        }
        self
    }

    /// A sentence below the figure.
    pub fn note(mut self, note: impl Into<RichText>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The name of its CSV, without the ending.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &RichText> {
        std::iter::once(&self.caption).chain(&self.notes)
    }

    /// The names of all series in order of appearance; the place is the look.
    pub(crate) fn names(&self) -> Vec<&Series> {
        let mut names: Vec<&Series> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !names.iter().any(|known| known.name == series.name) {
                names.push(series);
            }
        }
        names
    }

    /// The number of a series' look: its place among those that were measured, or that of the
    /// series it is compared with.
    pub(crate) fn look(&self, series: &Series) -> usize {
        let name = series.reference.as_ref().unwrap_or(&series.name);
        let measured = self
            .names()
            .into_iter()
            .filter(|known| known.reference.is_none());
        measured
            .map(|known| &known.name)
            .position(|known| known == name)
            .unwrap_or(5)
    }

    /// What it shows, in words.
    pub fn caption(&self) -> String {
        self.caption.plain()
    }

    /// Its panels as SVG, for pages that have a style of their own for its classes.
    pub fn drawings(&self) -> Vec<String> {
        self.panels
            .iter()
            .map(|panel| svg::panel(self, panel))
            .collect()
    }

    pub(crate) fn html(&self) -> String {
        let mut out = format!(
            "<figure class=\"plot\" id=\"{id}\"><figcaption>{caption} <a class=\"csv\" href=\"{id}.csv\">CSV</a></figcaption>\n",
            id = self.id,
            caption = self.caption.html()
        );
        let names = self.names();
        if names.len() > 1 {
            let entry = |series: &&Series| {
                format!(
                    "<li>{}{}</li>",
                    svg::sample(self.look(series), series),
                    escape(&series.name)
                )
            };
            let entries = names.iter().map(entry);
            out.push_str(&format!(
                "<ul class=\"legend\">{}</ul>\n",
                entries.collect::<String>()
            ));
        }
        let class = if self.panels.len() > 1 {
            "panels"
        } else {
            "panels one"
        };
        out.push_str(&format!("<div class=\"{class}\">\n"));
        out.push_str(&self.drawings().concat());
        out.push_str("</div>\n");
        for note in &self.notes {
            out.push_str(&format!("<p class=\"below\">{}</p>\n", note.html()));
        }
        out + "</figure>\n"
    }

    pub(crate) fn csv(&self) -> CsvFile {
        let mut file = CsvFile::new(&self.id);
        file.line(["panel", "series", "x", "y", "low", "high"].map(String::from));
        let exact = |value: f64| Number::new(value, Style::Count).exact();
        for panel in &self.panels {
            for series in &panel.series {
                for point in &series.points {
                    let x = match &self.x.scale {
                        Scale::Names(names) => {
                            names.get(point.x as usize).cloned().unwrap_or_default()
                        }
                        _ => exact(point.x),
                    };
                    let numbers = [point.y, point.low, point.high].map(exact);
                    let labels = [panel.title.clone(), series.name.clone(), x];
                    file.line(labels.into_iter().chain(numbers));
                }
            }
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_keeps_its_look_in_every_panel_and_its_points_in_the_csv() {
        let figure = Figure::new("f", "caption")
            .axes(Axis::log("k"), Axis::log("left"))
            .panel(Panel::new("d = 1").series(Series::new("a").point(1.0, 0.5, 0.25)))
            .panel(
                Panel::new("d = 2")
                    .series(Series::new("b").point(1.0, 0.0, 0.0))
                    .series(Series::new("a").point(5.0, 1.0, 0.0)),
            );
        assert_eq!(
            figure
                .names()
                .iter()
                .map(|s| s.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        let html = figure.html();
        assert_eq!(
            html.matches("<svg").count(),
            4,
            "two panels and two legend samples"
        );
        assert_eq!(
            figure.csv().text.lines().nth(1).unwrap(),
            "d = 1,a,1,0.5,0.25,0.75"
        );
    }
}
