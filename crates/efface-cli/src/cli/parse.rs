//! Values of options that need more than a type.

use clap::builder::PossibleValuesParser;
use efface_io::RowCondition;
use efface_receipt::Time;

/// A person, by a column and the value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubjectValue {
    pub(crate) column: String,
    pub(crate) value: String,
}

/// `user_id=u1042`; the value may hold further equals signs.
pub(crate) fn person(text: &str) -> Result<SubjectValue, String> {
    match text.split_once('=') {
        Some((column, value)) if !column.is_empty() && !value.is_empty() => Ok(SubjectValue {
            column: column.into(),
            value: value.into(),
        }),
        _ => Err("write it as COLUMN=VALUE, as in user_id=u1042".into()),
    }
}

/// Which rows of a file are meant.
pub(crate) fn condition(text: &str) -> Result<RowCondition, String> {
    RowCondition::parse(text).map_err(|error| error.to_string())
}

/// `;`, `tab`.
pub(crate) fn separator(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("write one ASCII character, or tab; it is no quote".into()),
    }
}

/// A word of `--class-weight`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NamedWeight {
    Balanced,
    Class(String, f64),
}

/// `balanced`, or `spam=2.5`. The name of a class may hold equals signs.
pub(crate) fn class_weight(text: &str) -> Result<NamedWeight, String> {
    if text == "balanced" {
        return Ok(NamedWeight::Balanced);
    }
    match text
        .rsplit_once('=')
        .map(|(class, weight)| (class, weight.parse::<f64>()))
    {
        Some((class, Ok(weight))) if weight > 0.0 && weight.is_finite() => {
            Ok(NamedWeight::Class(class.into(), weight))
        }
        _ => Err("write balanced, or CLASS=W with a number above 0, as in spam=2.5".into()),
    }
}

/// Two numbers, as in `8x4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GridSize(pub(crate) usize, pub(crate) usize);

/// `8x4`.
pub(crate) fn grid(text: &str) -> Result<GridSize, String> {
    let parts = text
        .split_once(['x', '×'])
        .map(|(a, b)| (a.trim().parse(), b.trim().parse()));
    match parts {
        Some((Ok(a), Ok(b))) => Ok(GridSize(a, b)),
        _ => Err("write it as two whole numbers with an x between them, as in 8x4".into()),
    }
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DelaySeconds(pub(crate) u64);

/// `30s`, `15m`, `12h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<DelaySeconds, String> {
    let wrong = || "write it as a whole number and s, m, h or d, as in 12h".to_owned();
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text
        .get(..text.len() - 1)
        .unwrap_or_default()
        .parse()
        .map_err(|_| wrong())?;
    number
        .checked_mul(unit)
        .filter(|seconds| *seconds <= 1 << 40)
        .map(DelaySeconds)
        .ok_or_else(wrong)
}

/// A number of columns.
pub(crate) fn columns(text: &str) -> Result<u32, String> {
    match text.replace(['_', ','], "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("write it as a whole number from 1 to {}", u32::MAX)),
    }
}

/// `4096`, `512K`, `64M`, `2G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write it as a whole number of bytes, or with K, M or G, as in 512M".to_owned();
    let shift = match text.chars().last() {
        Some('K' | 'k') => 10,
        Some('M' | 'm') => 20,
        Some('G' | 'g') => 30,
        _ => 0,
    };
    let digits = if shift == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wrong)
}

/// A time as receipts write it; a shorter one without milliseconds is understood too.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    let long = text.strip_suffix('Z').map(|start| format!("{start}.000Z"));
    let found = Time::parse(text).or_else(|| Time::parse(&long?));
    found.ok_or_else(|| "write it as 2026-03-02T09:15:00Z".into())
}

/// The methods that the library has.
pub(crate) fn methods() -> PossibleValuesParser {
    PossibleValuesParser::new(efface_engine::method_names())
}

/// The mode of a new file in octal digits. Its owner must be able to read and to replace it.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode @ 0o600..=0o777) if mode & 0o600 == 0o600 => Ok(mode),
        _ => Err("a mode is three octal digits from 600 to 777, such as 600 or 640".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_classes_are_read() {
        assert_eq!(class_weight("balanced"), Ok(NamedWeight::Balanced));
        assert_eq!(
            class_weight("a=b=0.5"),
            Ok(NamedWeight::Class("a=b".into(), 0.5))
        );
        for wrong in ["spam", "spam=0", "spam=-1", "spam=inf", "spam=x"] {
            assert!(class_weight(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_grid_is_two_numbers() {
        assert_eq!(grid("8x4"), Ok(GridSize(8, 4)));
        for wrong in ["8", "x4", "8x", "8x-1", "axb", "1e3x2", ""] {
            assert!(grid(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_and_times_are_told_from_nonsense() {
        assert_eq!(duration("12h"), Ok(DelaySeconds(43_200)));
        assert_eq!(duration("0s"), Ok(DelaySeconds(0)));
        for wrong in ["", "h", "12", "-1s", "1.5h", "99999999999999999999d", "7é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            time("2026-03-02T09:15:00Z").unwrap().to_string(),
            "2026-03-02T09:15:00.000Z"
        );
        assert!(time("yesterday").is_err() && time("").is_err());
    }

    #[test]
    fn sizes_and_columns_are_whole_and_not_zero() {
        assert_eq!(
            [size("4096"), size("64M"), size("2g")],
            [Ok(4096), Ok(64 << 20), Ok(2 << 30)]
        );
        for wrong in [
            "",
            "M",
            "0",
            "-1",
            "1.5G",
            "99999999999999999999",
            "18446744073709551615K",
            "7é",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(columns("1,000"), Ok(1000));
        assert!(columns("0").is_err() && columns("4294967296").is_err());
    }

    #[test]
    fn a_person_is_a_column_and_a_value() {
        let found = person("mail=a=b").unwrap();
        assert_eq!(
            (found.column.as_str(), found.value.as_str()),
            ("mail", "a=b")
        );
        for wrong in ["u1042", "=u1042", "user_id=", ""] {
            assert!(person(wrong).is_err(), "{wrong}");
        }
    }
}
