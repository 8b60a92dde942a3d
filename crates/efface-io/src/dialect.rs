//! How a text table is written: what separates its fields, what stands for nothing, and how numbers
//! are written.

use std::borrow::Cow;

use crate::error::{ReadFault, Result};
use crate::text::TextReader;

/// Separators that are looked for, in the order in which they are preferred.
const CANDIDATES: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The way a CSV or TSV file is written. The other formats say it themselves, but for words that
/// stand for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableDialect {
    /// What separates fields; None to find it from the first lines of a CSV file.
    pub separator: Option<u8>,
    /// Whether numbers are written with a comma, as in 3,14.
    pub decimal_comma: bool,
    /// Words in the place of a missing value, in files of any format: `NA`, `?`.
    pub missing: Vec<String>,
}

impl TableDialect {
    /// Returns true if a CSV field of this text holds nothing.
    pub(crate) fn is_missing(&self, text: &str) -> bool {
        text.is_empty() || self.names_missing(text)
    }

    /// Returns true if a text is one of the words that stand for nothing.
    pub(crate) fn names_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|word| word == text.trim())
    }

    /// A number with a comma, as one with a point; any other text as it is.
    pub(crate) fn with_point<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.decimal_comma && is_decimal_comma(text.trim()) {
            Cow::Owned(text.replacen(',', ".", 1))
        } else {
            Cow::Borrowed(text)
        }
    }
}

/// Whether a text is digits with one comma among them, perhaps with a sign and an exponent.
fn is_decimal_comma(text: &str) -> bool {
    let Some((whole, rest)) = text.split_once(',') else {
        return false;
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let whole = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let (fraction, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !(whole.is_empty() && fraction.is_empty())
        && digits(whole)
        && digits(fraction)
        && digits(exponent)
}

/// The separator of a CSV file. A separator that the header holds as often as the first row is
/// better than one that it does not, and of two equally good ones the commoner is, or the comma.
/// Without any, it is the comma: a table of one column.
pub(crate) fn find_separator(text: &mut TextReader) -> Result<u8> {
    let start = text.fill(0)?;
    let mut lines = record_lines(start);
    let header = lines.next().unwrap_or_default();
    let first = lines.next();
    let judged = CANDIDATES.iter().rev().map(|&separator| {
        let count = outside_quotes(header, separator);
        let agrees = first.is_none_or(|first| outside_quotes(first, separator) == count);
        (agrees && count > 0, count, separator)
    });
    // `max_by_key` takes the last of equals, so that the comma is looked at last.
    let best = judged.max_by_key(|(agrees, count, _)| (*agrees, *count));
    Ok(best
        .filter(|(_, count, _)| *count > 0)
        .map_or(b',', |(_, _, separator)| separator))
}

/// Lines that are not empty; a newline in quotes ends none. The last line may be cut off.
fn record_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut in_quotes = false;
    let lines = text.split(move |&byte| {
        in_quotes ^= byte == b'"';
        byte == b'\n' && !in_quotes
    });
    lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace))
}

fn outside_quotes(line: &[u8], separator: u8) -> usize {
    let mut in_quotes = false;
    let mut count = 0;
    for &byte in line {
        in_quotes ^= byte == b'"';
        count += usize::from(byte == separator && !in_quotes);
    }
    count
}

/// The days from 1970-01-01 to a date, with a time as a fraction: `2026-03-02`, `2026-03-02 09:15`,
/// `2026-03-02T09:15:30.5Z`. None where the text is no date of this form. Offsets other than Z are
/// refused: a column of them would have to say which day is meant.
pub fn days_since_1970(text: &str) -> Option<f64> {
    let text = text.trim();
    let date = text.get(..10)?;
    let bytes = date.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |part: &str| -> Option<i64> {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            part.parse().ok()
        } else {
            None
        }
    };
    let year = number(date.get(..4)?)?;
    let month = number(date.get(5..7)?)?;
    let day = number(date.get(8..10)?)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [
        31,
        if leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    // Days from the civil calendar, with years that begin in March (Hinnant, `days_from_civil`).
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100
        + day_of_year
        - 719_468;
    let rest = text.get(10..)?;
    if rest.is_empty() {
        return Some(days as f64);
    }
    let time = rest.strip_prefix(['T', ' '])?;
    Some(days as f64 + seconds_of_day(time.strip_suffix('Z').unwrap_or(time))? / 86_400.0)
}

/// `09:15`, `09:15:30`, `09:15:30.5`.
fn seconds_of_day(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let whole = |part: &str, below: u32| -> Option<f64> {
        let is_two_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let value: u32 = if is_two_digits {
            part.parse().ok()?
        } else {
            return None;
        };
        (value < below).then_some(f64::from(value))
    };
    let hours = whole(parts.next()?, 24)?;
    let minutes = whole(parts.next()?, 60)?;
    let seconds = match parts.next() {
        None => 0.0,
        Some(seconds) => {
            let (whole_seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
            if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            whole(whole_seconds, 60)? + format!("0.{fraction}").parse::<f64>().ok()?
        }
    };
    if parts.next().is_some() {
        None
    } else {
        Some(hours * 3600.0 + minutes * 60.0 + seconds)
    }
}

/// Refuses a separator that no table can have.
pub(crate) fn check_separator(separator: u8) -> std::result::Result<(), ReadFault> {
    if separator.is_ascii() && !matches!(separator, b'"' | b'\n' | b'\r') {
        Ok(())
    } else {
        Err(ReadFault::Separator)
    }
}

#[cfg(test)]
mod tests {
    use efface::features::Cell;

    use super::*;
    use crate::Source;

    fn read(text: &str, dialect: TableDialect) -> (Vec<String>, Vec<Vec<Cell>>) {
        let source = Source::from_bytes("a.csv", text, None)
            .unwrap()
            .with_dialect(dialect)
            .unwrap();
        let table = source.table().unwrap();
        (
            table.columns().to_vec(),
            table.map(|record| record.unwrap().cells).collect(),
        )
    }

    #[test]
    fn the_separator_is_found() {
        for (text, columns) in [
            ("a,b\n1,2\n", vec!["a", "b"]),
            ("a;b\n1,5;2\n", vec!["a", "b"]),
            ("a\tb\n1\t2\n", vec!["a", "b"]),
            ("a|b|c\n1|2|3\n", vec!["a", "b", "c"]),
            // A comma in the header's text is none in its rows.
            (
                "size, in m;price;x\n1;2;3\n",
                vec!["size, in m", "price", "x"],
            ),
            ("\"a;b\",c\n1,2\n", vec!["a;b", "c"]),
            ("text\nwell; yes\n", vec!["text"]),
            ("a,b;c\n", vec!["a", "b;c"]),
            ("alone\n", vec!["alone"]),
        ] {
            assert_eq!(read(text, TableDialect::default()).0, columns, "{text:?}");
        }
    }

    #[test]
    fn a_given_separator_counts_and_commas_make_numbers() {
        let dialect = TableDialect {
            separator: Some(b';'),
            decimal_comma: true,
            missing: vec!["NA".into(), "?".into()],
        };
        let (columns, rows) = read("a;b,c;d\n3,14;-,5e2;NA\n1.234,5; ? ;a,b\n", dialect);
        assert_eq!(columns, ["a", "b,c", "d"]);
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(rows[0], [text("3.14"), text("-.5e2"), Cell::Missing]);
        assert_eq!(rows[1], [text("1.234,5"), Cell::Missing, text("a,b")]);
        let quote = TableDialect {
            separator: Some(b'"'),
            ..TableDialect::default()
        };
        assert!(
            Source::from_bytes("a.csv", "a\n", None)
                .unwrap()
                .with_dialect(quote)
                .is_err()
        );
    }

    #[test]
    fn dates_are_days() {
        // Python 3.11: (datetime.date(y, m, d) - datetime.date(1970, 1, 1)).days
        for (text, days) in [
            ("1970-01-01", 0.0),
            ("2026-03-02", 20_514.0),
            ("2000-02-29", 11_016.0),
            ("1899-12-31", -25_568.0),
            ("0001-01-01", -719_162.0),
            (" 2026-03-02T12:00:00Z ", 20_514.5),
            ("2026-03-02 06:00", 20_514.25),
        ] {
            assert_eq!(days_since_1970(text), Some(days), "{text}");
        }
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-3-2",
            "02.03.2026",
            "2026-03-02T25:00",
            "2026-03-02+01",
            "",
            "é026-03-02",
        ] {
            assert_eq!(days_since_1970(text), None, "{text}");
        }
    }
}
