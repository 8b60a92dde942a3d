//! The clock: RFC 3339 in UTC, to the second.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as in `2026-03-02T09:30:00Z`.
pub(crate) fn now() -> String {
    // A clock set before 1970 is wrong anyway; its time is written as the epoch.
    rfc3339(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
    )
}

/// A time of the log, which never runs backwards, as [`now`] writes it.
pub(crate) fn stamp(milliseconds: i64) -> String {
    rfc3339(u64::try_from(milliseconds / 1000).unwrap_or(0))
}

/// Now, in milliseconds since 1970.
pub(crate) fn milliseconds() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The date in a time stamp of ours.
pub(crate) fn date(stamp: &str) -> &str {
    stamp.get(..10).unwrap_or(stamp)
}

fn rfc3339(seconds: u64) -> String {
    let days = seconds / 86_400;
    let rest = seconds % 86_400;
    // The Gregorian calendar repeats every 146,097 days; counting years from March puts the leap
    // day last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let hour = rest / 3_600;
    let minute = rest / 60 % 60;
    let second = rest % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        // GNU date, `date -u -d @N --iso-8601=seconds`.
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(rfc3339(1_772_443_800), "2026-03-02T09:30:00Z");
        assert_eq!(rfc3339(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(date(&rfc3339(1_772_443_800)), "2026-03-02");
    }
}
