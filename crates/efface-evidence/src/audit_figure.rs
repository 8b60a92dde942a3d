//! The results of an audit as figures: the same ones on the page of `efface audit`, in evidence
//! packs and in the service.

use efface_engine::{Engine, Error};
use efface_receipt::{AuditEntry, Receipt, RequestKind};
use efface_report::{Axis, Figure, Series};

/// A state of a model, what was measured on it, and the ends of the interval of that.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditMark {
    /// The method, or the state of the model.
    pub state: String,
    /// What was measured.
    pub value: f64,
    /// The lower end; the value itself where no interval is known.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How the results of one test are drawn.
struct DrawnTest {
    /// The name before the `/` of a result.
    test: &'static str,
    caption: &'static str,
    axis: &'static str,
    /// Whether small values are told apart by their powers.
    by_powers: bool,
    /// What retraining, or a coin, would give, and how that is called.
    compared: Option<(f64, &'static str)>,
}

const DRAWN: &[DrawnTest] = &[
    DrawnTest {
        test: "l2_distance",
        caption: "Distance of the parameters to those of a true retraining; 0 is retraining",
        axis: "distance",
        by_powers: true,
        compared: None,
    },
    DrawnTest {
        test: "feature_injection",
        caption: "Feature injection: what is left of the weight of a planted feature; 0 is perfect",
        axis: "share of the weight",
        by_powers: true,
        compared: Some((1.0, "nothing forgotten, 1")),
    },
    DrawnTest {
        test: "relearning_ratio",
        caption: "Time to learn the rows again, beside that of a retrained model",
        axis: "ratio",
        by_powers: false,
        compared: Some((1.0, "retraining, 1")),
    },
    DrawnTest {
        test: COIN_TEST,
        caption: "U-LiRA on forgotten rows; 0.5 is a coin",
        axis: "AUC",
        by_powers: false,
        compared: Some((0.5, "a coin, 0.5")),
    },
];

const COIN_TEST: &str = "u_lira_auc";

impl DrawnTest {
    /// The results of this test, where an audit has any.
    fn figure(&self, marks: &[AuditMark], caption: &str) -> Figure {
        let mut axis = if self.by_powers {
            Axis::log(self.axis)
        } else {
            Axis::linear(self.axis)
        };
        let measured = marks
            .iter()
            .enumerate()
            .fold(Series::new("measured").apart(), |series, (at, mark)| {
                series.range(at as f64, mark.value, mark.low, mark.high)
            });
        let mut lines = Vec::new();
        if let Some((value, name)) = self.compared {
            axis = axis.include(value);
            // A line from the first state to the last, beside which the marks are read.
            let line = (0..marks.len())
                .fold(Series::new(name).reference("measured"), |line, at| {
                    line.point(at as f64, value, 0.0)
                });
            lines.push(line);
        }
        let states = Axis::names("state", marks.iter().map(|mark| mark.state.clone()));
        let figure = Figure::new(&self.test.replace('_', "-"), caption)
            .axes(states, axis)
            .series(measured);
        lines.into_iter().fold(figure, Figure::series)
    }
}

/// What attackers can tell, with intervals: U-LiRA against a coin.
#[must_use]
pub fn coin_figure(marks: &[AuditMark]) -> Option<Figure> {
    let drawn = DRAWN.iter().find(|drawn| drawn.test == COIN_TEST)?;
    Some(drawn.figure(
        marks,
        "U-LiRA on forgotten rows, with 95 % intervals; 0.5 is a coin",
    ))
}

/// The results of an audit as its receipt has them: a figure for each test of more than a count. A
/// receipt holds no intervals. Tests of other names are in the table alone.
#[must_use]
pub fn audit_figures(entries: &[AuditEntry]) -> Vec<Figure> {
    let figure = |drawn: &DrawnTest| {
        let of_test = |entry: &AuditEntry| {
            let state = entry
                .test
                .strip_prefix(drawn.test)?
                .strip_prefix('/')?
                .to_owned();
            let value = entry.value.filter(|value| value.is_finite())?;
            Some(AuditMark {
                state,
                value,
                low: value,
                high: value,
            })
        };
        let marks: Vec<AuditMark> = entries.iter().filter_map(of_test).collect();
        (!marks.is_empty()).then(|| drawn.figure(&marks, drawn.caption))
    };
    DRAWN.iter().filter_map(figure).collect()
}

/// The newest audit among the receipts from `first` on, and how many receipts the log has.
///
/// # Errors
/// The log cannot be read.
pub fn latest_audit(engine: &Engine, first: u64) -> Result<(Option<Receipt>, u64), Error> {
    let mut found = None;
    let size = engine.receipts_between(first..u64::MAX, &mut |signed, _| {
        if signed.receipt.kind == RequestKind::Audit {
            found = Some(signed.receipt.clone());
        }
        Ok(())
    })?;
    Ok((found, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(test: &str, value: f64) -> AuditEntry {
        AuditEntry {
            test: test.into(),
            passed: None,
            value: Some(value),
            threshold: None,
            trials: None,
        }
    }

    #[test]
    fn every_test_with_states_is_a_figure_and_counts_are_none() {
        let entries = [
            entry("twins_surviving", 0.0),
            entry("l2_distance/exact", 3e-15),
            entry("feature_injection/exact", 0.0),
            entry("feature_injection/influence", 0.25),
            entry("u_lira_auc/retrain", 0.51),
            entry("l2_distance/influence", f64::NAN),
            entry("somebody-elses/test", 1.0),
        ];
        let figures = audit_figures(&entries);
        let ids: Vec<&str> = figures.iter().map(Figure::id).collect();
        assert_eq!(ids, ["l2-distance", "feature-injection", "u-lira-auc"]);
        let drawing = figures[1].drawings().concat();
        assert!(
            drawing.contains("influence") && drawing.starts_with("<svg"),
            "{drawing}"
        );
        assert!(audit_figures(&entries[..1]).is_empty());
    }
}
