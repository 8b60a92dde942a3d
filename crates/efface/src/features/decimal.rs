//! Numbers in the form in which most tables write them, read faster than any number can be.

/// Whole numbers of so many digits are doubles, and so are powers of ten with as many zeros.
const MOST_DIGITS: usize = 15;

const POWERS: [f64; MOST_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// The number that a text is: what `str::parse` gives, bit by bit. Blanks around it are left out.
pub(crate) fn number_in(text: &str) -> Option<f64> {
    short_decimal(text).or_else(|| text.trim().parse().ok())
}

/// A few digits with a point among them or without, and perhaps a minus; None for all others.
/// Digits and power of ten are exact, so that the quotient is the nearest double.
fn short_decimal(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let (negative, bytes) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    // Digits, and the point.
    if bytes.len() > MOST_DIGITS + 1 {
        return None;
    }
    let mut digits = 0_u64;
    let mut point = None;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let count = bytes.len() - usize::from(point.is_some());
    if count == 0 || count > MOST_DIGITS {
        return None;
    }
    let behind = point.map_or(0, |at| count - at);
    let value = digits as f64 / POWERS[behind];
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them() {
        let mut texts: Vec<String> = [
            "0",
            "-0",
            "-0.0",
            ".5",
            "5.",
            ".",
            "-",
            "",
            " 1.5 ",
            "+2",
            "1e3",
            "1.2.3",
            "--1",
            "0x1",
            "inf",
            "nan",
            "999999999999999",
            "9999999999999999",
            "99999999999999.9",
            "123456789012345.",
            ".123456789012345",
            "0.1234567890123456",
            "1,5",
            "١",
        ]
        .map(str::to_owned)
        .into();
        let mut dice = 7_u64;
        for _ in 0..100_000 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let digits = (dice >> 20) % 10_u64.pow((dice % 18) as u32 + 1);
            let mut text = digits.to_string();
            text.insert(dice as usize % (text.len() + 1), '.');
            texts.push(if dice >> 63 == 0 {
                text
            } else {
                format!("-{text}")
            });
        }
        for text in texts {
            let wanted: Option<f64> = text.trim().parse().ok();
            assert_eq!(
                number_in(&text).map(f64::to_bits),
                wanted.map(f64::to_bits),
                "{text}"
            );
        }
    }
}
