//! Parquet values as cells.
//!
//! Booleans become the text `true` or `false`. Whole numbers, floats and decimals become numbers,
//! except that whole numbers and decimals of more than 2⁵³ units stay text, so that none is
//! rounded. Strings, and plain bytes that are UTF-8, become text; dates, times and timestamps
//! become ISO 8601 text without a zone, UUIDs their usual form.

use ::parquet::basic::{LogicalType, TimeUnit};
use ::parquet::data_type::Decimal;
use ::parquet::record::Field;
use ::parquet::schema::types::Type;
use efface::features::Cell;

use crate::table::integer;

/// What the record interface does not tell about a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Plain,
    TimestampNanos,
    TimeNanos,
    Uuid,
}

impl ColumnKind {
    pub(super) fn of(field: &Type) -> Self {
        match field.get_basic_info().logical_type_ref() {
            Some(LogicalType::Timestamp(kind)) if kind.unit == TimeUnit::NANOS => {
                Self::TimestampNanos
            }
            Some(LogicalType::Time(kind)) if kind.unit == TimeUnit::NANOS => Self::TimeNanos,
            Some(LogicalType::Uuid) => Self::Uuid,
            _ => Self::Plain,
        }
    }

    /// The cell of a value; `None` for bytes that are not text.
    pub(super) fn cell(self, field: Field) -> Option<Cell> {
        Some(match (self, field) {
            (_, Field::Null) => Cell::Missing,
            (_, Field::Bool(value)) => Cell::Text(value.to_string()),
            (Self::TimestampNanos, Field::Long(value)) => Cell::Text(timestamp(value, 9)),
            (Self::TimeNanos, Field::Long(value)) => Cell::Text(time(value, 9)),
            (_, Field::Byte(value)) => Cell::Number(value.into()),
            (_, Field::Short(value)) => Cell::Number(value.into()),
            (_, Field::Int(value)) => Cell::Number(value.into()),
            (_, Field::Long(value)) => integer(value.into()),
            (_, Field::UByte(value)) => Cell::Number(value.into()),
            (_, Field::UShort(value)) => Cell::Number(value.into()),
            (_, Field::UInt(value)) => Cell::Number(value.into()),
            (_, Field::ULong(value)) => integer(value.into()),
            (_, Field::Float16(value)) => Cell::Number(value.into()),
            (_, Field::Float(value)) => Cell::Number(value.into()),
            (_, Field::Double(value)) => Cell::Number(value),
            (_, Field::Decimal(value)) => decimal(&value)?,
            (_, Field::Str(value)) => Cell::Text(value),
            (Self::Uuid, Field::Bytes(value)) => Cell::Text(uuid(value.data())),
            (_, Field::Bytes(value)) => Cell::Text(str::from_utf8(value.data()).ok()?.to_owned()),
            (_, Field::Date(days)) => Cell::Text(date(days.into())),
            (_, Field::TimeMillis(value)) => Cell::Text(time(value.into(), 3)),
            (_, Field::TimeMicros(value)) => Cell::Text(time(value, 6)),
            (_, Field::TimestampMillis(value)) => Cell::Text(timestamp(value, 3)),
            (_, Field::TimestampMicros(value)) => Cell::Text(timestamp(value, 6)),
            // The schema check has refused these.
            (_, Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_)) => return None,
        })
    }
}

/// A decimal is a whole number of units of 10^-scale, big end first. `None` when it has more than
/// 128 bits.
fn decimal(value: &Decimal) -> Option<Cell> {
    let bytes = value.data();
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let spare = bytes.len().saturating_sub(16);
    let sign = if negative { 0xff } else { 0 };
    if bytes[..spare].iter().any(|&b| b != sign) {
        return None;
    }
    let mut wide = [sign; 16];
    wide[16 - (bytes.len() - spare)..].copy_from_slice(&bytes[spare..]);
    let units = i128::from_be_bytes(wide);
    let scale = usize::try_from(value.scale())
        .ok()
        .filter(|&scale| scale <= 38)?;
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let minus = if units < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    let written = format!("{minus}{whole}{point}{fraction}");
    match integer(units) {
        Cell::Number(_) => written.parse().ok().map(Cell::Number),
        _ => Some(Cell::Text(written)),
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut written = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            written.push('-');
        }
        written.push_str(&format!("{byte:02x}"));
    }
    written
}

/// The day of the proleptic Gregorian calendar, from days since 1970-01-01: years are counted from
/// March in cycles of 400 years, which have 146,097 days each.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * cycle + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The time of day, from units of 10^-digits seconds since midnight.
fn time(units: i64, digits: usize) -> String {
    let second = if digits == 3 {
        1_000
    } else if digits == 6 {
        1_000_000
    } else {
        1_000_000_000
    };
    let seconds = units.div_euclid(second);
    let fraction = units.rem_euclid(second);
    let hour = seconds.div_euclid(3_600);
    let minute = seconds.rem_euclid(3_600) / 60;
    let clock = format!("{hour:02}:{minute:02}:{:02}", seconds.rem_euclid(60));
    if fraction == 0 {
        clock
    } else {
        format!("{clock}.{fraction:0digits$}")
    }
}

/// Date and time, from units of 10^-digits seconds since 1970-01-01.
fn timestamp(units: i64, digits: usize) -> String {
    let day = 86_400
        * if digits == 3 {
            1_000
        } else if digits == 6 {
            1_000_000
        } else {
            1_000_000_000
        };
    format!(
        "{}T{}",
        date(units.div_euclid(day)),
        time(units.rem_euclid(day), digits)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // Oracle: GNU date 9.1, `date -u -d @SECONDS +%FT%T`.
    #[test]
    fn dates_and_times() {
        assert_eq!(timestamp(0, 3), "1970-01-01T00:00:00");
        assert_eq!(timestamp(951_782_400_000, 3), "2000-02-29T00:00:00");
        assert_eq!(
            timestamp(1_709_251_199_250_000, 6),
            "2024-02-29T23:59:59.250000"
        );
        assert_eq!(timestamp(-1, 9), "1969-12-31T23:59:59.999999999");
        assert_eq!(timestamp(-2_208_988_800_000, 3), "1900-01-01T00:00:00");
        for units in [i64::MIN, i64::MAX] {
            for digits in [3, 6, 9] {
                let _ = (timestamp(units, digits), time(units, digits));
            }
        }
        let _ = (date(i32::MIN.into()), date(i32::MAX.into()));
    }

    #[test]
    fn decimals_are_exact_or_text() {
        assert_eq!(
            decimal(&Decimal::from_i32(-1_205, 9, 2)),
            Some(Cell::Number(-12.05))
        );
        assert_eq!(
            decimal(&Decimal::from_i64(7, 9, 3)),
            Some(Cell::Number(0.007))
        );
        let wide = Decimal::from_i64(-90_071_992_547_409_931, 18, 1);
        assert_eq!(
            decimal(&wide),
            Some(Cell::Text("-9007199254740993.1".into()))
        );
        assert_eq!(
            decimal(&Decimal::from_bytes(vec![1; 17].into(), 38, 0)),
            None
        );
        assert_eq!(
            decimal(&Decimal::from_bytes(vec![0xff; 20].into(), 38, 0)),
            Some(Cell::Number(-1.0))
        );
        assert_eq!(
            decimal(&Decimal::from_bytes(Vec::new().into(), 38, 0)),
            Some(Cell::Number(0.0))
        );
    }

    #[test]
    fn identifiers_are_not_rounded() {
        assert_eq!(
            ColumnKind::Plain.cell(Field::Long(1 << 53)),
            Some(Cell::Number(9_007_199_254_740_992.0))
        );
        let beyond = ColumnKind::Plain.cell(Field::ULong((1 << 53) + 1));
        assert_eq!(beyond, Some(Cell::Text("9007199254740993".into())));
        let uuid = Field::Bytes((0..16).collect::<Vec<u8>>().into());
        let written = Cell::Text("00010203-0405-0607-0809-0a0b0c0d0e0f".into());
        assert_eq!(ColumnKind::Uuid.cell(uuid), Some(written));
    }
}
