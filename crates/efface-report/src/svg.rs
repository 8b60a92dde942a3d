//! Drawing: a panel of a figure as inline SVG. Colours come from the page's style sheet, so that
//! they follow light and dark; marks and dashes are drawn here, so that no reader depends on
//! colour.

use std::fmt::Write;

use crate::escape::escape;
use crate::figure::{Figure, Panel, Point, Series};
use crate::scale::Ruler;

/// A place on the paper, in units of which a line of text is 12 high.
struct PlotFrame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Lines by the look's number: none, long, dots, dash-dot, short, long-short.
const DASHES: [&str; 6] = ["", "8 4", "1.5 4", "9 3 2 3", "4 3", "12 3 4 3"];

/// One panel, or the whole figure where it has one.
pub(crate) fn panel(figure: &Figure, panel: &Panel) -> String {
    let many = figure.panels.len() > 1;
    let top = if panel.title.is_empty() { 12.0 } else { 30.0 };
    let (width, height) = if many { (380.0, 280.0) } else { (560.0, 350.0) };
    let frame = PlotFrame {
        width,
        height,
        left: 62.0,
        right: width - 14.0,
        top,
        bottom: height - 50.0,
    };
    // Panels share their axes: what is compared must be drawn to one scale.
    let points = || {
        figure
            .panels
            .iter()
            .flat_map(|p| &p.series)
            .flat_map(|s| &s.points)
    };
    let x = Ruler::new(
        &figure.x,
        points().map(|p| p.x),
        frame.left + 10.0,
        frame.right - 10.0,
    );
    let heights = points()
        .flat_map(|p| [p.y, p.low, p.high])
        .filter(|y| positive_or_measured(figure, *y, points()));
    let y = Ruler::new(&figure.y, heights, frame.bottom - 6.0, frame.top + 4.0);
    let name = [figure.caption.plain(), panel.title.clone()].join(" ");
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" class=\"{}\">\n",
        escape(name.trim()),
        if many { "small" } else { "large" }
    );
    axes(&mut out, figure, panel, &frame, &x, &y);
    let names = figure.names();
    for series in &panel.series {
        let place = names
            .iter()
            .position(|known| known.name == series.name)
            .unwrap_or(0);
        // Points at the same place would hide each other's error bars: each series stands a little
        // to the side.
        let aside = (place as f64 - (names.len() as f64 - 1.0) / 2.0) * 3.0;
        draw(&mut out, series, figure.look(series), aside, &x, &y);
    }
    out + "</svg>\n"
}

/// On an axis of powers the end of an error bar may fall below 0, which is no reason for a shelf; a
/// measured 0 is.
fn positive_or_measured<'a>(
    figure: &Figure,
    y: f64,
    mut points: impl Iterator<Item = &'a Point>,
) -> bool {
    figure.y.scale != crate::figure::Scale::Log
        || y > 0.0
        || (y == 0.0 && points.any(|point| point.y == 0.0))
}

fn axes(out: &mut String, figure: &Figure, panel: &Panel, frame: &PlotFrame, x: &Ruler, y: &Ruler) {
    let PlotFrame {
        width,
        height,
        left,
        right,
        top,
        bottom,
    } = *frame;
    // Writing to a String cannot fail.
    for (value, text) in &y.ticks {
        let Some(at) = y.at(*value) else { continue };
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            at + 4.0,
            escape(text)
        );
    }
    for (value, text) in &x.ticks {
        let Some(at) = x.at(*value) else { continue };
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 4.0,
            bottom + 18.0,
            escape(text)
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/>"
    );
    if let Some(fold) = y.fold() {
        let a = left - 5.0;
        let b = left + 5.0;
        let _ = writeln!(
            out,
            "<path class=\"fold\" d=\"M{a} {:.1}L{b} {:.1}M{a} {:.1}L{b} {:.1}\"/>",
            fold + 1.0,
            fold - 4.0,
            fold + 5.0,
            fold
        );
    }
    let middle = (left + right) / 2.0;
    if !panel.title.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"title\" x=\"{middle:.1}\" y=\"18\" text-anchor=\"middle\">{}</text>",
            escape(&panel.title)
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"label\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        height - 9.0,
        escape(&figure.x.label)
    );
    let centre = (top + bottom) / 2.0;
    let _ = writeln!(
        out,
        "<text class=\"label\" transform=\"translate(14 {centre:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(&figure.y.label)
    );
    debug_assert!(width > right);
}

fn draw(out: &mut String, series: &Series, look: usize, aside: f64, x: &Ruler, y: &Ruler) {
    let reference = series.reference.is_some();
    let place = |point: &Point| Some((x.at(point.x)? + aside, y.at(point.y)?));
    let _ = writeln!(
        out,
        "<g class=\"s{}{}\">",
        look % 6,
        if reference { " ref" } else { "" }
    );
    if series.joined {
        let mut path = String::new();
        let mut pen = 'M';
        for point in &series.points {
            match place(point) {
                Some((px, py)) => {
                    let _ = write!(path, "{pen}{px:.1} {py:.1}");
                    pen = 'L';
                }
                None => pen = 'M',
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"line\" stroke-dasharray=\"{}\" d=\"{path}\"/>",
            DASHES[look % 6]
        );
    }
    for point in &series.points {
        let Some((px, py)) = place(point) else {
            continue;
        };
        if let (Some(low), Some(high)) = (y.clamped(point.low), y.clamped(point.high))
            && (low - high).abs() > 0.5
        {
            let a = px - 3.5;
            let b = px + 3.5;
            let _ = writeln!(
                out,
                "<path class=\"bar\" d=\"M{px:.1} {low:.1}V{high:.1}M{a:.1} {low:.1}H{b:.1}M{a:.1} {high:.1}H{b:.1}\"/>"
            );
        }
        out.push_str(&mark(look, px, py, reference));
    }
    out.push_str("</g>\n");
}

/// A mark of its own for every look; hollow for numbers from elsewhere.
fn mark(look: usize, x: f64, y: f64, hollow: bool) -> String {
    let r = 4.2;
    let path = match look % 6 {
        0 => format!(
            "M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
            x - r,
            d = 2.0 * r
        ),
        1 => format!("M{:.1} {:.1}h7.6v7.6h-7.6Z", x - 3.8, y - 3.8),
        2 => format!("M{x:.1} {:.1}l4.8 8.4h-9.6Z", y - 5.2),
        3 => format!("M{x:.1} {:.1}l5 5.4l-5 5.4l-5 -5.4Z", y - 5.4),
        4 => format!("M{x:.1} {:.1}l4.8 -8.4h-9.6Z", y + 5.2),
        _ => format!(
            "M{:.1} {:.1}h2.8v3.4h3.4v2.8h-3.4v3.4h-2.8v-3.4h-3.4v-2.8h3.4Z",
            x - 1.4,
            y - 4.8
        ),
    };
    format!(
        "<path class=\"mark{}\" d=\"{path}\"/>\n",
        if hollow { " hollow" } else { "" }
    )
}

/// The sample of a series in the legend.
pub(crate) fn sample(look: usize, series: &Series) -> String {
    let line = if series.joined {
        format!(
            "<path class=\"line\" stroke-dasharray=\"{}\" d=\"M1 8H43\"/>",
            DASHES[look % 6]
        )
    } else {
        String::new()
    };
    format!(
        "<svg viewBox=\"0 0 44 16\" width=\"44\" height=\"16\" aria-hidden=\"true\"><g class=\"s{}{}\">{line}{}</g></svg>",
        look % 6,
        if series.reference.is_some() {
            " ref"
        } else {
            ""
        },
        mark(look, 22.0, 8.0, series.reference.is_some()).trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;

    fn drawn(points: &[(f64, f64, f64)]) -> String {
        let series = points
            .iter()
            .fold(Series::new("<b>"), |s, &(x, y, e)| s.point(x, y, e));
        let figure = Figure::new("f", "a & b")
            .axes(Axis::linear("x"), Axis::log("y"))
            .series(series);
        panel(&figure, &figure.panels[0])
    }

    #[test]
    fn strange_numbers_are_left_out_and_text_is_escaped() {
        let svg = drawn(&[
            (1.0, f64::NAN, 0.0),
            (2.0, f64::INFINITY, 1.0),
            (3.0, 0.5, f64::NAN),
            (4.0, -1.0, 0.0),
        ]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.matches("class=\"mark\"").count() == 1);
        assert!(!drawn(&[]).contains("NaN"));
    }

    #[test]
    fn an_error_bar_that_reaches_below_zero_ends_at_the_axis() {
        let svg = drawn(&[(1.0, 0.5, 0.7), (2.0, 0.01, 0.0)]);
        assert!(svg.contains("class=\"bar\"") && !svg.contains("class=\"fold\""));
        assert!(drawn(&[(1.0, 0.5, 0.7), (2.0, 0.0, 0.0)]).contains("class=\"fold\""));
    }

    #[test]
    fn every_look_has_its_own_mark_and_dash() {
        let marks: std::collections::HashSet<String> =
            (0..6).map(|look| mark(look, 0.0, 0.0, false)).collect();
        let dashes: std::collections::HashSet<&str> = DASHES.into_iter().collect();
        assert_eq!((marks.len(), dashes.len()), (6, 6));
    }
}
