//! Points in time as receipts write them: RFC 3339, UTC, milliseconds, always the same length.
//! Sorting the text sorts the times.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A point in time, such as `2026-03-02T09:15:00.250Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Milliseconds since 1970, between the years 0000 and 9999.
    milliseconds: i64,
}

const DAY: i64 = 86_400_000;
const FIRST: i64 = -719_528 * DAY;
const END: i64 = 2_932_897 * DAY;

impl Time {
    /// From milliseconds since 1970-01-01T00:00:00Z; None outside the years 0000 to 9999.
    pub fn from_unix_milliseconds(milliseconds: i64) -> Option<Time> {
        (FIRST..END)
            .contains(&milliseconds)
            .then_some(Time { milliseconds })
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub fn unix_milliseconds(&self) -> i64 {
        self.milliseconds
    }

    /// Reads the one form that is written; None for anything else, also for days that do not exist.
    pub fn parse(text: &str) -> Option<Time> {
        let bytes = text.as_bytes();
        if bytes.len() != 24 {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<i64> {
            bytes.get(from..to)?.iter().try_fold(0i64, |sum, byte| {
                byte.is_ascii_digit()
                    .then(|| sum * 10 + i64::from(byte - b'0'))
            })
        };
        let year = number(0, 4)?;
        let month = number(5, 7)?;
        let day = number(8, 10)?;
        let hour = number(11, 13)?;
        let minute = number(14, 16)?;
        let second = number(17, 19)?;
        let milli = number(20, 23)?;
        if !(1..=12).contains(&month) || day < 1 || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let clock = ((hour * 60 + minute) * 60 + second) * 1000 + milli;
        let time = Time::from_unix_milliseconds(days_from_civil(year, month, day) * DAY + clock)?;
        // Writing it again catches wrong punctuation and the 30th of February at once.
        (time.to_string() == text).then_some(time)
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. The year starts in March, so that the
/// leap day is last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.milliseconds.div_euclid(DAY));
        let clock = self.milliseconds.rem_euclid(DAY);
        let seconds = clock / 1000;
        let milli = clock % 1000;
        let hour = seconds / 3600;
        let minute = seconds / 60 % 60;
        let second = seconds % 60;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
        )
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = String::deserialize(deserializer)?;
        Time::parse(&text)
            .ok_or_else(|| D::Error::custom("a time is written like 2026-03-02T09:15:00.250Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_772_442_900_250, "2026-03-02T09:15:00.250Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (FIRST, "0000-01-01T00:00:00.000Z"),
            (END - 1, "9999-12-31T23:59:59.999Z"),
        ] {
            let time = Time::from_unix_milliseconds(milliseconds).unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(Time::parse(text), Some(time));
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "2026-03-02T09:15:00Z",
            "2026-03-02T09:15:00.250+00:00",
            "2026-03-02 09:15:00.250Z",
            "2026-02-30T09:15:00.250Z",
            "2026-03-02T24:00:00.000Z",
            "2026-03-02T09:15:60.000Z",
            "2026-13-02T09:15:00.000Z",
            "",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
        assert_eq!(Time::from_unix_milliseconds(END), None);
    }
}
