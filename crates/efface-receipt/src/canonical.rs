//! Canonical JSON, RFC 8785 (JCS): one value, one sequence of bytes, so that a signature over the
//! bytes is a signature over the value.
//!
//! The parser accepts nothing but the canonical form. It is written here, because a general JSON
//! parser loses what matters (repeated keys, the spelling of numbers) before anyone can look at it.

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::{
    fault::ReceiptFault,
    json_form::JsonForm,
    limits::{MAX_DEPTH, MAX_INTEGER, MAX_VALUES},
};

/// The canonical bytes of anything that serde can write.
///
/// Numbers that are not finite become `null` on the way through `serde_json`; callers with such
/// fields check them first.
pub fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, ReceiptFault> {
    let value = serde_json::to_value(value)
        .map_err(|_| ReceiptFault::Unwritable("serialisation failed"))?;
    write(&value)
}

/// The canonical bytes of a JSON value. Integers of 2⁵³ and more, of either sign, are refused: not
/// every reader keeps them.
pub fn write(value: &Value) -> Result<Vec<u8>, ReceiptFault> {
    let mut out = Vec::new();
    write_value(value, &mut out, 0)?;
    Ok(out)
}

/// Reads a document of at most `limit` bytes that must be canonical to the last byte.
pub(crate) fn from_bytes<T: JsonForm>(
    bytes: &[u8],
    what: &'static str,
    limit: usize,
) -> Result<T, ReceiptFault> {
    T::from_json(parse(bytes, what, limit)?)
}

/// Reads any value that is written canonically in at most `limit` bytes.
pub fn parse(bytes: &[u8], what: &'static str, limit: usize) -> Result<Value, ReceiptFault> {
    if bytes.len() > limit {
        return Err(ReceiptFault::TooLarge {
            what,
            size: bytes.len(),
            limit,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ReceiptFault::NotCanonical {
        at: error.valid_up_to(),
        problem: "not UTF-8",
    })?;
    let mut parser = CanonicalParser {
        text,
        at: 0,
        values: 0,
    };
    let value = parser.value(0)?;
    if parser.at != bytes.len() {
        return parser.fault("something follows the document");
    }
    Ok(value)
}

fn write_value(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), ReceiptFault> {
    if depth > MAX_DEPTH {
        return Err(ReceiptFault::TooLarge {
            what: "the nesting",
            size: depth,
            limit: MAX_DEPTH,
        });
    }
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => out.extend_from_slice(number_text(number)?.as_bytes()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(item, out, depth + 1)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            // What was read is in order already; what is written for the first time is short.
            let mut sorted: Vec<(&String, &Value)> = Vec::with_capacity(members.len());
            for member in members {
                let place = match sorted.last() {
                    Some(last) if utf16_order(last.0, member.0).is_gt() => {
                        sorted.partition_point(|earlier| utf16_order(earlier.0, member.0).is_lt())
                    }
                    _ => sorted.len(),
                };
                sorted.insert(place, member);
            }
            out.push(b'{');
            for (i, (key, member)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_value(member, out, depth + 1)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// RFC 8785 §3.2.3: keys are ordered by their UTF-16 code units, which differs from the order of
/// their UTF-8 bytes above U+FFFF.
fn utf16_order(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() {
        a.cmp(b)
    } else {
        a.encode_utf16().cmp(b.encode_utf16())
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            0x00..=0x1f => {
                let hex = |digit: u8| {
                    if digit < 10 {
                        b'0' + digit
                    } else {
                        b'a' + digit - 10
                    }
                };
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex(byte >> 4), hex(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn number_text(number: &Number) -> Result<String, ReceiptFault> {
    const TOO_BIG: ReceiptFault =
        ReceiptFault::Unwritable("an integer of 2^53 or more; write it as a string");
    if let Some(n) = number.as_u64() {
        return if n <= MAX_INTEGER {
            Ok(n.to_string())
        } else {
            Err(TOO_BIG)
        };
    }
    if let Some(n) = number.as_i64() {
        return if n.unsigned_abs() <= MAX_INTEGER {
            Ok(n.to_string())
        } else {
            Err(TOO_BIG)
        };
    }
    number
        .as_f64()
        .and_then(ecmascript)
        .ok_or(ReceiptFault::Unwritable(
            "a number that is not a finite double",
        ))
}

/// A double as ECMAScript's `Number::toString` writes it; None for those that are not finite.
pub fn ecmascript(number: f64) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    if number == 0.0 {
        // The sign of a zero is not kept.
        return Some("0".to_owned());
    }
    let scientific = shortest(number.abs());
    let (mantissa, exponent) = scientific.split_once('e')?;
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().ok()?;
    let count = i32::try_from(digits.len()).ok()?;
    // The value is 0.DIGITS × 10^point.
    let point = exponent + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let split = |at: i32| digits.split_at_checked(usize::try_from(at).unwrap_or(0));
    let text = if (count..=21).contains(&point) {
        format!("{digits}{}", zeros(point - count))
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = split(point)?;
        format!("{whole}.{fraction}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = split(1)?;
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{exponent:+}")
    };
    Some(if number < 0.0 {
        format!("-{text}")
    } else {
        text
    })
}

/// The shortest digits that read back as the same double, and of those the nearest; of two equally
/// near ones the even. Rust's `{:e}` sees to the first two but takes the larger of two equally near
/// ones, so rounding to as many digits is tried as well. Just above a power of two the nearest
/// digits can read back as the double below; then they are not taken.
fn shortest(number: f64) -> String {
    let found = format!("{number:e}");
    let digits = found
        .bytes()
        .take_while(|&byte| byte != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    let rounded = format!("{number:.*e}", digits.saturating_sub(1));
    if rounded.parse() == Ok(number) {
        rounded
    } else {
        found
    }
}

struct CanonicalParser<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl CanonicalParser<'_> {
    fn fault<T>(&self, problem: &'static str) -> Result<T, ReceiptFault> {
        Err(ReceiptFault::NotCanonical {
            at: self.at,
            problem,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), ReceiptFault> {
        if self.take(byte) {
            Ok(())
        } else {
            self.fault(problem)
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ReceiptFault> {
        if !self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word.as_bytes()))
        {
            return self.fault("no JSON value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value, ReceiptFault> {
        if depth > MAX_DEPTH {
            return Err(ReceiptFault::TooLarge {
                what: "the nesting",
                size: depth,
                limit: MAX_DEPTH,
            });
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(ReceiptFault::TooLarge {
                what: "the document",
                size: self.values,
                limit: MAX_VALUES,
            });
        }
        match self.peek() {
            Some(b'n') => self.word("null", Value::Null),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.fault("no JSON value"),
            None => self.fault("the document ends early"),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ReceiptFault> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            self.expect(b',', "an array goes on without a comma")?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ReceiptFault> {
        self.at += 1;
        let mut members = Map::new();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        let mut last: Option<String> = None;
        loop {
            let key = self.string()?;
            match last.as_ref().map(|last| utf16_order(last, &key)) {
                Some(std::cmp::Ordering::Equal) => return self.fault("a key is repeated"),
                Some(std::cmp::Ordering::Greater) => {
                    return self.fault("the keys are not in order");
                }
                Some(std::cmp::Ordering::Less) | None => {}
            }
            self.expect(b':', "a key without a colon")?;
            let member = self.value(depth + 1)?;
            members.insert(key.clone(), member);
            last = Some(key);
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            self.expect(b',', "an object goes on without a comma")?;
        }
    }

    fn string(&mut self) -> Result<String, ReceiptFault> {
        self.expect(b'"', "no string")?;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            // Quotes, backslashes and control characters are single bytes, so this cuts between
            // characters.
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return self.fault("a control character that is not escaped"),
                None => return self.fault("the document ends inside a string"),
            }
        }
    }

    /// Only the escapes that the canonical form uses.
    fn escape(&mut self) -> Result<char, ReceiptFault> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let (found, length) = match rest {
            [b'\\', b'"', ..] => ('"', 2),
            [b'\\', b'\\', ..] => ('\\', 2),
            [b'\\', b'b', ..] => ('\u{8}', 2),
            [b'\\', b't', ..] => ('\t', 2),
            [b'\\', b'n', ..] => ('\n', 2),
            [b'\\', b'f', ..] => ('\u{c}', 2),
            [b'\\', b'r', ..] => ('\r', 2),
            [
                b'\\',
                b'u',
                b'0',
                b'0',
                high @ (b'0' | b'1'),
                low @ (b'0'..=b'9' | b'a'..=b'f'),
                ..,
            ] => {
                let low = if *low <= b'9' {
                    low - b'0'
                } else {
                    low - b'a' + 10
                };
                let code = (high - b'0') * 16 + low;
                if matches!(code, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d) {
                    return self.fault("an escape that has a shorter form");
                }
                (char::from(code), 6)
            }
            _ => return self.fault("an escape that the canonical form does not use"),
        };
        self.at += length;
        Ok(found)
    }

    fn number(&mut self) -> Result<Value, ReceiptFault> {
        const BAD: &str = "a number that is not written as ECMAScript writes doubles";
        let bytes = self.text.as_bytes();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = bytes
            .get(self.at..)
            .unwrap_or_default()
            .iter()
            .take(32)
            .take_while(|b| is_part(b))
            .count();
        let token = self.text.get(self.at..self.at + length).unwrap_or_default();
        // Whatever Rust's parser lets through beyond JSON's grammar is spelled differently when
        // written again.
        let double: f64 = match token.parse() {
            Ok(double) => double,
            Err(_) => return self.fault(BAD),
        };
        if ecmascript(double).as_deref() != Some(token) {
            return self.fault(BAD);
        }
        let number = match token.parse::<i64>() {
            Ok(integer) if integer.unsigned_abs() <= MAX_INTEGER => Some(Number::from(integer)),
            _ => Number::from_f64(double),
        };
        match number {
            Some(number) => {
                self.at += length;
                Ok(Value::Number(number))
            }
            None => self.fault(BAD),
        }
    }
}
