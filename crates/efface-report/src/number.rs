//! A measured number and how it is shown. The shown form may round; the exact one goes with it
//! everywhere.

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A whole number with thousands apart: 2,225.
    Count,
    /// This many decimals: 0.79.
    Fixed(usize),
    /// This many significant digits, as a decimal between 0.001 and 100,000 and as a power of ten
    /// beyond: 0.79, 3.1×10⁻⁹.
    Digits(usize),
    /// A share as a percentage with this many decimals: 93.5 %.
    Percent(usize),
    /// A time, in the unit that suits it: 3.2 µs.
    Seconds,
    /// Memory, in powers of ten: 18 MB.
    Bytes,
    /// How many times: 5,500×.
    Times,
}

/// A value and its style.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The value as it was measured.
    pub value: f64,
    /// How it is shown.
    pub style: Style,
}

impl Number {
    /// A number in a style.
    pub fn new(value: f64, style: Style) -> Self {
        Self { value, style }
    }

    /// A whole number.
    pub fn count(value: usize) -> Self {
        Self::new(value as f64, Style::Count)
    }

    /// All digits, as programs read them: the shortest decimal that gives the value back.
    pub fn exact(&self) -> String {
        let value = self.value;
        if value.is_nan() {
            return "nan".into();
        }
        if value.is_infinite() {
            return if value > 0.0 {
                "inf".into()
            } else {
                "-inf".into()
            };
        }
        if value == value.trunc() && value.abs() < 1e15 {
            return format!("{}", value + 0.0);
        }
        // The debug form changes to exponents where the plain one would be long.
        format!("{value:?}")
    }

    /// The form for readers of a margin of error of this number: no finer than the number itself,
    /// unless it would vanish.
    pub fn show_margin(&self, margin: f64) -> String {
        let shown = self.show();
        let fitting = match self.style {
            Style::Digits(_) if !shown.contains('×') => {
                let decimals = shown.split_once('.').map_or(0, |(_, rest)| rest.len());
                Number::new(margin, Style::Fixed(decimals)).show()
            }
            style => Number::new(margin, style).show(),
        };
        let vanishes = margin != 0.0 && !fitting.contains(|c: char| ('1'..='9').contains(&c));
        if vanishes {
            Number::new(margin, Style::Digits(1)).show()
        } else {
            fitting
        }
    }

    /// The form for readers.
    pub fn show(&self) -> String {
        let value = self.value;
        if value.is_nan() {
            return "–".into();
        }
        if value.is_infinite() {
            return if value > 0.0 {
                "∞".into()
            } else {
                "−∞".into()
            };
        }
        match self.style {
            Style::Count => grouped(value, 0),
            Style::Fixed(decimals) => grouped(value, decimals),
            Style::Digits(digits) => significant(value, digits.max(1)),
            Style::Percent(decimals) => format!("{} %", grouped(value * 100.0, decimals)),
            Style::Seconds => seconds(value),
            Style::Bytes => scaled(value, 1000.0, &["B", "kB", "MB", "GB", "TB"]),
            Style::Times => format!(
                "{}×",
                grouped(value, if value.abs() < 10.0 { 1 } else { 0 })
            ),
        }
    }
}

fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 s".into(),
        s if s < 0.9995e-6 => format!("{} ns", short(value * 1e9)),
        s if s < 0.9995e-3 => format!("{} µs", short(value * 1e6)),
        s if s < 0.9995 => format!("{} ms", short(value * 1e3)),
        s if s < 599.5 => format!("{} s", short(value)),
        s if s < 7170.0 => format!("{} min", short(value / 60.0)),
        _ => format!("{} h", short(value / 3600.0)),
    }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    while value.abs() >= step * 0.9995 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    format!("{} {}", short(value), units[at])
}

/// Two digits below ten, otherwise whole numbers: what a reader takes in of a number with a unit.
fn short(value: f64) -> String {
    let decimals = if value.abs() < 9.95 && value.fract() != 0.0 {
        1
    } else {
        0
    };
    grouped(value, decimals)
}

/// A decimal with thousands apart and a true minus.
fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut out = String::new();
    // What rounds to nothing has no sign.
    if value < 0.0 && plain.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('−');
    }
    for (at, digit) in whole.chars().enumerate() {
        // Four digits read better in one piece when they stand alone, but a table wants one rule.
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let written = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-3..5).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        return grouped(value, decimals);
    }
    let mantissa = mantissa.replace('-', "−");
    format!("{mantissa}×10{}", superscript(exponent))
}

/// An exponent in raised figures.
pub(crate) fn superscript(exponent: i32) -> String {
    let raise = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' => '⁰',
        c => char::from_u32('⁴' as u32 + (c as u32 - '4' as u32)).unwrap_or(c),
    };
    exponent.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(value: f64, style: Style) -> String {
        Number::new(value, style).show()
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(show(2225.0, Style::Count), "2,225");
        assert_eq!(show(-0.004, Style::Fixed(2)), "0.00");
        assert_eq!(show(-1234.5, Style::Fixed(1)), "−1,234.5");
        assert_eq!(show(0.793_48, Style::Digits(2)), "0.79");
        assert_eq!(show(3.14e-9, Style::Digits(2)), "3.1×10⁻⁹");
        assert_eq!(show(-2.5e7, Style::Digits(1)), "−2×10⁷");
        assert_eq!(show(1456.0, Style::Digits(2)), "1,456");
        assert_eq!(show(0.934_8, Style::Percent(1)), "93.5 %");
        assert_eq!(show(3.2e-6, Style::Seconds), "3.2 µs");
        assert_eq!(show(0.0213, Style::Seconds), "21 ms");
        assert_eq!(show(160.0, Style::Seconds), "160 s");
        assert_eq!(show(1720.0, Style::Seconds), "29 min");
        assert_eq!(show(18e6, Style::Bytes), "18 MB");
        assert_eq!(show(999_900.0, Style::Bytes), "1.0 MB");
        assert_eq!(show(5500.0, Style::Times), "5,500×");
        assert_eq!(show(f64::NAN, Style::Count), "–");
        assert_eq!(show(f64::INFINITY, Style::Fixed(1)), "∞");
        assert_eq!(superscript(-4567890), "⁻⁴⁵⁶⁷⁸⁹⁰");
    }

    #[test]
    fn margins_are_no_finer_than_their_numbers() {
        let margin = |value, margin, style| Number::new(value, style).show_margin(margin);
        assert_eq!(margin(5169.0, 13.42, Style::Digits(3)), "13");
        assert_eq!(margin(0.54, 0.067, Style::Digits(2)), "0.07");
        assert_eq!(margin(0.54, 0.0002, Style::Digits(2)), "2×10⁻⁴");
        assert_eq!(margin(3.1e-9, 2e-10, Style::Digits(2)), "2.0×10⁻¹⁰");
        assert_eq!(margin(1.0, 0.0, Style::Fixed(2)), "0.00");
    }

    #[test]
    fn whole_numbers_are_exact_without_a_point() {
        assert_eq!(Number::count(100).exact(), "100");
        assert_eq!(Number::new(-0.0, Style::Count).exact(), "0");
        assert_eq!(Number::new(1.5e-9, Style::Count).exact(), "1.5e-9");
    }

    proptest! {
        #[test]
        fn the_exact_form_gives_the_value_back(value in any::<f64>()) {
            prop_assume!(value.is_finite());
            let back: f64 = Number::new(value, Style::Digits(2)).exact().parse().unwrap();
            prop_assert!(back == value);
        }

        #[test]
        fn showing_never_fails(value in any::<f64>(), digits in 0usize..9) {
            for style in [Style::Count, Style::Fixed(digits), Style::Digits(digits), Style::Percent(digits),
                          Style::Seconds, Style::Bytes, Style::Times] {
                prop_assert!(!show(value, style).is_empty());
            }
        }
    }
}
