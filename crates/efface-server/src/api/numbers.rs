//! Rows of numbers without names, the commonest body of all, read without the machinery of JSON. What is not exactly that goes
//! the usual way, which also says what is wrong with it.

use efface::features::Cell;

/// Digits of a whole number that is surely below 2^53, above which numbers are taken as text.
const SAFE_DIGITS: usize = 15;

/// The rows of `{"cells": [[1, 2.5], …]}`; None for anything else.
pub(super) fn rows_of_numbers(bytes: &[u8]) -> Option<Vec<Vec<Cell>>> {
    // Once for all of it: numbers are parsed from text.
    let text = std::str::from_utf8(bytes).ok()?;
    let mut scan = NumberScan { text, bytes, at: 0 };
    scan.take(b'{')?;
    scan.space();
    let rest = scan.bytes.get(scan.at..)?.strip_prefix(b"\"cells\"")?;
    scan.at = bytes.len() - rest.len();
    scan.take(b':')?;
    scan.take(b'[')?;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    loop {
        scan.take(b'[')?;
        // Rows are as long as the one before.
        let mut row = Vec::with_capacity(rows.last().map_or(64, Vec::len));
        loop {
            row.push(Cell::Number(scan.number()?));
            if scan.take(b',').is_none() {
                break;
            }
        }
        scan.take(b']')?;
        rows.push(row);
        if scan.take(b',').is_none() {
            break;
        }
    }
    scan.take(b']')?;
    scan.take(b'}')?;
    scan.space();
    (scan.at == bytes.len()).then_some(rows)
}

struct NumberScan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl NumberScan<'_> {
    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Passes this byte, with space before it.
    fn take(&mut self, wanted: u8) -> Option<()> {
        self.space();
        if *self.bytes.get(self.at)? != wanted {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - from
    }

    /// A number as JSON writes it, rounded correctly.
    fn number(&mut self) -> Option<f64> {
        self.space();
        let from = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let is_zero = self.bytes.get(self.at) == Some(&b'0');
        let whole = self.digits();
        // JSON has no 01.
        if whole == 0 || (is_zero && whole > 1) {
            return None;
        }
        let mut is_whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            is_whole = false;
            if self.digits() == 0 {
                return None;
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            is_whole = false;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        if is_whole && whole > SAFE_DIGITS {
            return None;
        }
        let text = self.text.get(from..self.at)?;
        // JSON has no infinity; the usual way refuses a number that is too large.
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Option<Vec<Vec<f64>>> {
        let of = |cell: Cell| match cell {
            Cell::Number(number) => number,
            _ => f64::NAN,
        };
        let rows = rows_of_numbers(text.as_bytes())?;
        Some(rows.into_iter().map(|row| row.into_iter().map(of).collect()).collect())
    }

    #[test]
    fn rows_of_numbers_are_read_as_the_usual_way_reads_them() {
        let texts = [
            "{\"cells\": [[1, 2.5]]}",
            " {\n\"cells\"\t:[ [ -0.0 ,1e3,1E-7, 0 ] , [999999999999999,-1.5e+2,0.1,0.30000000000000004] ] }\r\n",
            "{\"cells\":[[5e-324,2.2250738585072014e-308,1.7976931348623157e308]]}",
        ];
        for text in texts {
            let usual: serde_json::Value = serde_json::from_str(text).unwrap();
            let usual: Vec<Vec<f64>> = serde_json::from_value(usual["cells"].clone()).unwrap();
            let found = numbers(text).unwrap();
            let bits =
                |rows: &[Vec<f64>]| rows.iter().flatten().map(|number| number.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&usual), "{text}");
        }
    }

    #[test]
    fn everything_else_goes_the_usual_way() {
        let texts = [
            "",
            "{}",
            "{\"cells\": []}",
            "{\"cells\": [[]]}",
            "{\"cells\": [[1,]]}",
            "{\"cells\": [[1]],}",
            "{\"cells\": [[1]]} x",
            "{\"cells\": [[1], \"rows\": 1]}",
            "{\"cells\": [[01]]}",
            "{\"cells\": [[1.]]}",
            "{\"cells\": [[.5]]}",
            "{\"cells\": [[+1]]}",
            "{\"cells\": [[1e]]}",
            "{\"cells\": [[NaN]]}",
            "{\"cells\": [[inf]]}",
            "{\"cells\": [[1e999]]}",
            "{\"cells\": [[9007199254740993]]}",
            "{\"cells\": [[null]]}",
            "{\"cells\": [[\"a\"]]}",
            "{\"cells\": [[true]]}",
            "{\"cells\": [[1]",
            "{\"rows\": [[1]]}",
        ];
        for text in texts {
            assert_eq!(numbers(text), None, "{text}");
        }
    }
}
