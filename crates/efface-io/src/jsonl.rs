//! JSON lines: one flat object a line. The columns are the keys of all lines in the order in which
//! they first appear, which takes a pass of its own; a key that a line lacks is a missing cell, as
//! is null. Booleans become the text `true` or `false`. Blank lines are skipped.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use efface::features::Cell;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::TableRecord;
use crate::blocks::TextBlock;
use crate::error::{ReadFault, Result};
use crate::source::SourceInput;
use crate::table::integer;
use crate::text::{LineReader, TextReader};

pub(crate) struct JsonReader {
    input: SourceInput,
    lines: LineReader,
    keys: KnownKeys,
}

/// The columns as they are known so far.
#[derive(Default)]
struct KnownKeys {
    places: Arc<HashMap<String, usize>>,
    /// For each column the last line that filled it, which tells a repeated key.
    filled: Vec<u64>,
}

impl JsonReader {
    /// Opens the input. The first time all of it is read once for its keys, which later passes
    /// know.
    pub(crate) fn open(input: &SourceInput) -> Result<(Vec<String>, Self)> {
        let mut reader = Self {
            input: input.clone(),
            lines: LineReader::open(input)?,
            keys: KnownKeys::default(),
        };
        if let Some(columns) = input.keys.get() {
            reader.keys = KnownKeys::of(columns);
            return Ok((columns.to_vec(), reader));
        }
        let mut rows = 0_u64;
        while reader.next(true, |_, _| {})?.is_some() {
            rows += 1;
        }
        if rows == 0 {
            return Err(input.fault(ReadFault::Empty));
        }
        let mut columns = vec![String::new(); reader.keys.filled.len()];
        for (key, &place) in reader.keys.places.iter() {
            columns[place].clone_from(key);
        }
        // Two passes that begin at once learn the same keys, or notice that the file changed when
        // they read on.
        let _ = input.keys.set(columns.as_slice().into());
        reader.rewind()?;
        Ok((columns, reader))
    }

    /// The same columns over the lines of a block.
    pub(crate) fn over_block(&self, block: TextBlock) -> Self {
        let keys = KnownKeys {
            places: Arc::clone(&self.keys.places),
            filled: vec![0; self.keys.filled.len()],
        };
        Self {
            input: self.input.clone(),
            lines: LineReader::of_block(&self.input, block),
            keys,
        }
    }

    /// A reader without text, for blocks to be read like, and the text.
    pub(crate) fn into_text(self) -> (Self, TextReader) {
        let Self { input, lines, keys } = self;
        let lines_left = LineReader::of_block(&input, TextBlock::default());
        (
            Self {
                lines: lines_left,
                input,
                keys,
            },
            lines.into_text(),
        )
    }

    pub(crate) fn rewind(&mut self) -> Result<()> {
        self.lines = LineReader::open(&self.input)?;
        self.keys.filled.fill(0);
        Ok(())
    }

    pub(crate) fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        record.cells.clear();
        record.cells.resize(self.keys.filled.len(), Cell::Missing);
        let cells = &mut record.cells;
        let line = self.next(false, |place, cell| cells[place] = cell)?;
        record.line = line.unwrap_or(0);
        Ok(line.is_some())
    }

    /// Reads the next object and hands out its cells; while learning, new keys are taken in and
    /// text is not kept.
    fn next(&mut self, learn: bool, mut put: impl FnMut(usize, Cell)) -> Result<Option<u64>> {
        let Self { input, lines, keys } = self;
        while let Some((line, bytes)) = lines.next()? {
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let mut take = |key: &str, value: Option<Cell>| {
                let place = keys.place(input, learn, line, key)?;
                let nested = || ReadFault::NestedValue {
                    line,
                    key: key.to_owned(),
                };
                put(place, value.ok_or_else(nested)?);
                Ok(())
            };
            return match parse(line, bytes, !learn, &mut take) {
                Ok(()) => Ok(Some(line)),
                Err(fault) => Err(input.fault(fault)),
            };
        }
        Ok(None)
    }
}

impl KnownKeys {
    fn of(columns: &[String]) -> Self {
        let places = columns.iter().cloned().zip(0..).collect();
        Self {
            places: Arc::new(places),
            filled: vec![0; columns.len()],
        }
    }

    /// The column of a key, which has not been filled on this line before.
    fn place(
        &mut self,
        input: &SourceInput,
        learn: bool,
        line: u64,
        key: &str,
    ) -> std::result::Result<usize, ReadFault> {
        if let Some(&place) = self.places.get(key) {
            if self.filled[place] == line {
                return Err(ReadFault::RepeatedKey {
                    line,
                    key: key.to_owned(),
                });
            }
            self.filled[place] = line;
            return Ok(place);
        }
        let place = self.filled.len();
        match () {
            () if !learn => Err(ReadFault::Changed),
            () if key.len() > input.limits.name_bytes => Err(ReadFault::LongName {
                line,
                limit: input.limits.name_bytes,
            }),
            () if place >= input.limits.keys => Err(ReadFault::TooManyColumns {
                line,
                limit: input.limits.keys,
            }),
            () => {
                Arc::make_mut(&mut self.places).insert(key.to_owned(), place);
                self.filled.push(line);
                Ok(place)
            }
        }
    }
}

/// Takes a key and its cell, or `None` for an array or an object.
type TakeCell<'a> = &'a mut dyn FnMut(&str, Option<Cell>) -> std::result::Result<(), ReadFault>;

fn parse(
    line: u64,
    bytes: &[u8],
    keep: bool,
    take: TakeCell<'_>,
) -> std::result::Result<(), ReadFault> {
    let text = str::from_utf8(bytes).map_err(|_| ReadFault::NotUtf8 { line, column: None })?;
    if !text.trim_start().starts_with('{') {
        return Err(ReadFault::NotAnObject { line });
    }
    let mut fault = None;
    let mut parser = serde_json::Deserializer::from_str(text);
    let object = ObjectVisitor {
        keep,
        take,
        fault: &mut fault,
    };
    let outcome = parser.deserialize_map(object).and_then(|()| parser.end());
    match (fault, outcome) {
        (Some(fault), _) => Err(fault),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => {
            // Only the place is passed on: the parser's own words may hold the value it stumbled
            // over.
            let category = match error.classify() {
                Category::Io | Category::Syntax => "syntax",
                Category::Data => "wrong type",
                Category::Eof => "cut short",
            };
            Err(ReadFault::BrokenJson {
                line,
                byte: error.column(),
                category,
            })
        }
    }
}

struct ObjectVisitor<'a> {
    keep: bool,
    take: TakeCell<'a>,
    fault: &'a mut Option<ReadFault>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a flat object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<(), M::Error> {
        let mut key = String::new();
        while map.next_key_seed(KeySeed(&mut key))?.is_some() {
            let value = map.next_value_seed(CellSeed { keep: self.keep })?;
            if let Err(fault) = (self.take)(&key, value) {
                *self.fault = Some(fault);
                return Err(de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// Reads a key into memory that is used again.
struct KeySeed<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> std::result::Result<(), D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> std::result::Result<(), E> {
        self.0.clear();
        self.0.push_str(key);
        Ok(())
    }
}

/// Reads a value; an array or an object is passed over and gives `None`.
struct CellSeed {
    keep: bool,
}

impl<'de> DeserializeSeed<'de> for CellSeed {
    type Value = Option<Cell>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        parser: D,
    ) -> std::result::Result<Self::Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CellSeed {
    type Value = Option<Cell>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
        Ok(Some(Cell::Missing))
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Self::Value, E> {
        Ok(Some(Cell::Text(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Self::Value, E> {
        Ok(Some(integer(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Self::Value, E> {
        Ok(Some(integer(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Self::Value, E> {
        Ok(Some(Cell::Number(value)))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E> {
        Ok(Some(if self.keep {
            Cell::Text(value.to_owned())
        } else {
            Cell::Missing
        }))
    }

    fn visit_seq<S: SeqAccess<'de>>(
        self,
        mut seq: S,
    ) -> std::result::Result<Self::Value, S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<M: MapAccess<'de>>(
        self,
        mut map: M,
    ) -> std::result::Result<Self::Value, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadLimits, Source};

    fn read(text: &[u8]) -> Result<(Vec<String>, Vec<TableRecord>)> {
        let limits = ReadLimits {
            line_bytes: 1000,
            keys: 4,
            name_bytes: 10,
            ..ReadLimits::default()
        };
        let table = Source::from_bytes("a.jsonl", text, None)?
            .with_limits(limits)
            .table()?;
        Ok((table.columns().to_vec(), table.collect::<Result<_>>()?))
    }

    fn fault(text: &[u8]) -> ReadFault {
        *read(text).unwrap_err().fault
    }

    #[test]
    fn columns_are_the_keys_of_all_lines() {
        let lines = b"\xef\xbb\xbf{\"b\": 1.5, \"a\": \"x\"}\r\n\n{\"c\": true, \"b\": null}\n{\"a\": \"\"}";
        let (columns, records) = read(lines).unwrap();
        assert_eq!(columns, ["b", "a", "c"]);
        let missing = Cell::Missing;
        let text = |value: &str| Cell::Text(value.to_owned());
        assert_eq!(
            records[0].cells,
            [Cell::Number(1.5), text("x"), missing.clone()]
        );
        assert_eq!(
            records[1].cells,
            [missing.clone(), missing.clone(), text("true")]
        );
        assert_eq!(records[2].cells, [missing.clone(), text(""), missing]);
        assert_eq!(
            records.iter().map(|r| r.line).collect::<Vec<_>>(),
            [1, 3, 4]
        );
    }

    #[test]
    fn numbers_keep_their_last_bit() {
        let (_, records) =
            read(b"{\"a\": 9007199254740993, \"b\": -3, \"c\": 0.31245855329111215}").unwrap();
        let beyond = Cell::Text("9007199254740993".to_owned());
        assert_eq!(
            records[0].cells,
            [
                beyond,
                Cell::Number(-3.0),
                Cell::Number(0.31245855329111215)
            ]
        );
    }

    #[test]
    fn broken_lines_are_named_by_place() {
        assert!(matches!(fault(b"\n \n"), ReadFault::Empty));
        assert!(matches!(
            fault(b"{}\n[1]"),
            ReadFault::NotAnObject { line: 2 }
        ));
        assert!(matches!(
            fault(b"{\"a\": \"\xff\"}"),
            ReadFault::NotUtf8 {
                line: 1,
                column: None
            }
        ));
        assert!(
            matches!(fault(b"{}\n{\"a\": [{}]}"), ReadFault::NestedValue { line: 2, key } if key == "a")
        );
        assert!(
            matches!(fault(b"{\"a\": {\"b\": [1]}}"), ReadFault::NestedValue { line: 1, key } if key == "a")
        );
        assert!(
            matches!(fault(b"{\"a\": 1, \"a\": 2}"), ReadFault::RepeatedKey { line: 1, key } if key == "a")
        );
        let cut = fault(b"{\"a\": 1");
        assert!(
            matches!(
                cut,
                ReadFault::BrokenJson {
                    line: 1,
                    byte: 7,
                    category: "cut short"
                }
            ),
            "{cut:?}"
        );
        let message = read(b"{\"a\": secret}").unwrap_err().to_string();
        let expected = "a.jsonl: line 1 is not one JSON object (syntax at byte 7); write one flat object a line";
        assert_eq!(message, expected);
        assert!(matches!(
            fault(b"{} {}"),
            ReadFault::BrokenJson {
                category: "syntax",
                ..
            }
        ));
        assert!(matches!(
            fault(b"{\"a\": 1e999}"),
            ReadFault::BrokenJson {
                category: "syntax",
                ..
            }
        ));
    }

    #[test]
    fn memory_is_bounded() {
        let many = b"{\"a\":1,\"b\":1}\n{\"c\":1,\"d\":1,\"e\":1}";
        assert!(matches!(
            fault(many),
            ReadFault::TooManyColumns { line: 2, limit: 4 }
        ));
        assert!(matches!(
            fault(b"{\"aaaaaaaaaaa\":1}"),
            ReadFault::LongName { line: 1, limit: 10 }
        ));
        let long = format!("{{}}\n{{\"a\":\"{}\"}}", "x".repeat(1000));
        assert!(matches!(
            fault(long.as_bytes()),
            ReadFault::LongLine {
                line: 2,
                limit: 1000
            }
        ));
        let deep = format!("{{\"a\":{}", "[".repeat(900));
        assert!(matches!(
            fault(deep.as_bytes()),
            ReadFault::BrokenJson { .. }
        ));
    }
}
