//! From values to places, and where the marks of an axis go.

use crate::figure::{Axis, Scale};
use crate::number::{Number, Style, superscript};

/// An axis laid along a line of pixels.
#[derive(Debug, Clone)]
pub(crate) struct Ruler {
    kind: RulerKind,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    /// Where a value of 0 goes on an axis of powers.
    shelf: Option<f64>,
    pub(crate) ticks: Vec<(f64, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RulerKind {
    Linear,
    Log,
}

/// The pixels between the smallest power and the shelf of zeros.
const SHELF: f64 = 26.0;

impl Ruler {
    /// Lays an axis from pixel `start` to pixel `end` so that every value finds a place.
    pub(crate) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        start: f64,
        end: f64,
    ) -> Self {
        let values: Vec<f64> = values
            .chain(axis.include.iter().copied())
            .filter(|v| v.is_finite())
            .collect();
        match &axis.scale {
            Scale::Names(names) => {
                let ticks = names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| (at as f64, name.clone()))
                    .collect();
                let high = names.len().max(1) as f64 - 0.5;
                Self {
                    kind: RulerKind::Linear,
                    low: -0.5,
                    high,
                    start,
                    end,
                    shelf: None,
                    ticks,
                }
            }
            Scale::Linear => Self::linear(axis, &values, start, end),
            Scale::Log => Self::log(axis, &values, start, end),
        }
    }

    fn linear(axis: &Axis, values: &[f64], start: f64, end: f64) -> Self {
        let (mut low, mut high) = ends(
            values.iter().copied().chain(axis.ticks.iter().copied()),
            (0.0, 1.0),
        );
        let step = nice((high - low) / 5.0);
        if axis.ticks.is_empty() {
            // An error bar that passes a mark by a hair is no reason for another one.
            let hair = step * 0.03;
            low = ((low + hair) / step).floor() * step;
            high = ((high - hair) / step).ceil() * step;
        } else {
            let air = (high - low) * 0.06;
            low -= air;
            high += air;
        }
        let marks = if axis.ticks.is_empty() {
            (0..=((high - low) / step).round() as usize)
                .map(|i| low + step * i as f64)
                .collect()
        } else {
            axis.ticks.clone()
        };
        let decimals = if step >= 1.0 {
            0
        } else {
            (-step.log10()).ceil().clamp(0.0, 12.0) as usize
        };
        let show = |v: f64| {
            Number::new(
                v,
                Style::Fixed(if v.fract() == 0.0 && step >= 1.0 {
                    0
                } else {
                    decimals
                }),
            )
            .show()
        };
        let ticks = marks.into_iter().map(|v| (v, show(v))).collect();
        Self {
            kind: RulerKind::Linear,
            low,
            high,
            start,
            end,
            shelf: None,
            ticks,
        }
    }

    fn log(axis: &Axis, values: &[f64], start: f64, end: f64) -> Self {
        let positive = values
            .iter()
            .chain(&axis.ticks)
            .copied()
            .filter(|v| *v > 0.0)
            .map(f64::log10);
        let (mut low, mut high) = ends(positive, (0.0, 1.0));
        let mut ticks: Vec<(f64, String)> = Vec::new();
        if axis.ticks.is_empty() {
            (low, high) = (
                (low + 1e-9).floor(),
                (high - 1e-9).ceil().max((low + 1e-9).floor() + 1.0),
            );
            let every = ((high - low) / 6.0).ceil().max(1.0) as i32;
            let mut power = low as i32;
            while power <= high as i32 {
                ticks.push((10f64.powi(power), show_power(power)));
                power += every;
            }
        } else {
            let air = ((high - low) * 0.06).max(0.05);
            low -= air;
            high += air;
            ticks = axis
                .ticks
                .iter()
                .map(|&v| (v, Number::new(v, Style::Count).exact()))
                .collect();
            if axis.ticks.iter().all(|v| v.fract() == 0.0) {
                ticks = axis
                    .ticks
                    .iter()
                    .map(|&v| (v, Number::new(v, Style::Count).show()))
                    .collect();
            }
        }
        // A shelf is made only for those who need it.
        let shelf = values.contains(&0.0).then_some(start);
        let start = if shelf.is_some() {
            start + SHELF * (end - start).signum()
        } else {
            start
        };
        if shelf.is_some() {
            ticks.insert(0, (0.0, "0".into()));
        }
        Self {
            kind: RulerKind::Log,
            low,
            high,
            start,
            end,
            shelf,
            ticks,
        }
    }

    /// The place of a value; None when it has none.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let value = match self.kind {
            RulerKind::Linear => value,
            RulerKind::Log if value > 0.0 => value.log10(),
            RulerKind::Log => return self.shelf.filter(|_| value == 0.0),
        };
        if !value.is_finite() {
            return None;
        }
        Some(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start))
    }

    /// The place of a value, or the end of the axis beyond which it lies.
    pub(crate) fn clamped(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let inside = match self.kind {
            RulerKind::Log if value <= 0.0 => return Some(self.shelf.unwrap_or(self.start)),
            RulerKind::Log => 10f64.powf(value.log10().clamp(self.low, self.high)),
            RulerKind::Linear => value.clamp(self.low, self.high),
        };
        self.at(inside)
    }

    /// Where the axis is broken between the shelf and the powers.
    pub(crate) fn fold(&self) -> Option<f64> {
        self.shelf.map(|shelf| (shelf + self.start) / 2.0)
    }
}

/// The least and the greatest, moved apart when they are one.
fn ends(values: impl Iterator<Item = f64>, otherwise: (f64, f64)) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    if low > high {
        return otherwise;
    }
    if high - low > 1e-12 * high.abs().max(low.abs()) && high > low {
        return (low, high);
    }
    let air = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
    (low - air, high + air)
}

/// The next larger number of the form 1, 2 or 5 times a power of ten.
fn nice(step: f64) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

fn show_power(power: i32) -> String {
    match power {
        -2..=4 => Number::new(10f64.powi(power), Style::Fixed((-power).max(0) as usize)).show(),
        power => format!("10{}", superscript(power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn even_axes_have_even_marks() {
        let ruler = Ruler::new(&Axis::linear(""), [0.13, 0.87].into_iter(), 0.0, 100.0);
        let shown: Vec<&str> = ruler.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(shown, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert!((ruler.at(0.5).unwrap() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn zeros_have_a_shelf_on_an_axis_of_powers() {
        let ruler = Ruler::new(&Axis::log(""), [0.0, 1e-3, 0.5].into_iter(), 200.0, 0.0);
        assert_eq!(ruler.ticks[0].1, "0");
        assert_eq!(ruler.at(0.0), Some(200.0));
        assert_eq!(ruler.at(-1.0), None);
        assert!(ruler.at(1e-3).unwrap() < 200.0 && ruler.at(0.5).unwrap() > 0.0);
        let without = Ruler::new(&Axis::log(""), [1e-3, 0.5].into_iter(), 200.0, 0.0);
        assert!(without.fold().is_none() && without.at(0.0).is_none());
    }

    proptest! {
        #[test]
        fn every_value_lies_on_its_axis(values in prop::collection::vec(-1e9f64..1e9, 1..8), log in any::<bool>()) {
            let axis = if log { Axis::log("") } else { Axis::linear("") };
            let ruler = Ruler::new(&axis, values.iter().copied(), 10.0, 110.0);
            for value in values {
                if let Some(at) = ruler.at(value) {
                    prop_assert!((8.0..=112.0).contains(&at), "{value} at {at}");
                }
                prop_assert!(ruler.clamped(value).is_some_and(|at| (9.999..=110.001).contains(&at)));
            }
            prop_assert!(ruler.ticks.len() < 40);
        }
    }
}
