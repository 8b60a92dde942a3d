//! Times as other programs write them.

use efface_receipt::Time;

/// Reads RFC 3339: any fraction of a second, any distance from Greenwich. Receipts know one form
/// alone.
pub(super) fn parse_time(text: &str) -> Option<Time> {
    let date = text.get(..19)?;
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |rest| {
        rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    // The stop before the digits, where there are any.
    let stop = usize::from(digits > 0);
    let fraction = rest.get(stop..stop + digits)?;
    let zone = rest.get(stop + digits..)?;
    let offset: i64 = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let zone = zone.strip_prefix(['+', '-'])?;
            let (hours, minutes) = zone.split_once(':')?;
            let number = |part: &str| {
                part.parse::<i64>()
                    .ok()
                    .filter(|_| part.len() == 2 && part.is_ascii())
            };
            sign * (number(hours).filter(|hours| *hours < 24)? * 60
                + number(minutes).filter(|minutes| *minutes < 60)?)
        }
    };
    let milliseconds: String = fraction.chars().chain("000".chars()).take(3).collect();
    let local = Time::parse(&format!("{}.{milliseconds}Z", date.to_ascii_uppercase()))?;
    Time::from_unix_milliseconds(local.unix_milliseconds() - offset * 60_000)
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times_of_other_programs_are_read() {
        let cases = [
            ("2018-10-02T15:00:00Z", Some("2018-10-02T15:00:00.000Z")),
            ("2018-10-02t15:00:00.5z", Some("2018-10-02T15:00:00.500Z")),
            (
                "2018-10-02T15:00:00.123456+02:00",
                Some("2018-10-02T13:00:00.123Z"),
            ),
            (
                "2018-12-31T23:30:00-01:00",
                Some("2019-01-01T00:30:00.000Z"),
            ),
            ("2018-10-02", None),
            ("2018-10-02 15:00:00Z", None),
            ("2018-10-02T15:00:00", None),
            ("2018-10-02T15:00:00+2:00", None),
            ("2018-02-30T15:00:00Z", None),
            ("2018-10-02T15:00:0é", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse_time(text).map(|time| time.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
