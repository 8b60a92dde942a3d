//! CSV and TSV: RFC 4180 with a header, and with any separator. Rows have as many fields as the
//! header; an empty field is a missing cell, everything else is text. Blank lines are skipped,
//! quoted fields may hold newlines, and a quote that the file never closes is an error instead of
//! one last giant field.
//!
//! The state machine is that of the `csv` crate; the buffers are kept here, so that a record can be
//! refused before it is held. Lines without quotes, most of most files, are split at their
//! separators without it.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use efface::features::Cell;

use crate::TableRecord;
use crate::blocks::TextBlock;
use crate::dialect::find_separator;
use crate::error::{ReadFault, Result};
use crate::source::SourceInput;
use crate::table::set_text;
use crate::text::TextReader;

pub(crate) struct CsvReader {
    input: SourceInput,
    separator: u8,
    text: TextReader,
    parser: Reader,
    /// The line that the next byte belongs to.
    line: u64,
    /// Content of the record without quotes and separators.
    content: Vec<u8>,
    /// Where each field ends in `content`.
    ends: Vec<usize>,
}

impl CsvReader {
    /// Opens the input and reads the header. Without a separator, the one of the first lines is
    /// found.
    pub(crate) fn open(input: &SourceInput, separator: Option<u8>) -> Result<(Vec<String>, Self)> {
        let mut text = TextReader::open(input)?;
        let separator = match input.dialect.separator.or(separator) {
            Some(separator) => separator,
            None => find_separator(&mut text)?,
        };
        let mut reader = Self::over(input, separator, text, 1);
        let columns = reader.header()?;
        Ok((columns, reader))
    }

    /// The records of a block, which has no header.
    pub(crate) fn of_block(input: &SourceInput, separator: u8, block: TextBlock) -> Self {
        let line = block.first_line;
        let mut reader = Self::over(input, separator, TextReader::of_block(input, block), line);
        // A parser drops a byte order mark at the start of what it reads, and this text is from the
        // middle of a file.
        let _ = reader
            .parser
            .read_record(b"a\n", &mut reader.content, &mut reader.ends);
        reader
    }

    fn over(input: &SourceInput, separator: u8, text: TextReader, line: u64) -> Self {
        let parser = ReaderBuilder::new().delimiter(separator).build();
        let content = vec![0; 1 << 12];
        let ends = vec![0; 1 << 6];
        Self {
            input: input.clone(),
            separator,
            text,
            parser,
            line,
            content,
            ends,
        }
    }

    /// What separates fields, the text that was not read yet, and its first line.
    pub(crate) fn into_text(self) -> (u8, TextReader, u64) {
        (self.separator, self.text, self.line)
    }

    /// Starts again and reads the header again.
    pub(crate) fn rewind(&mut self) -> Result<Vec<String>> {
        let (columns, fresh) = Self::open(&self.input, Some(self.separator))?;
        *self = fresh;
        Ok(columns)
    }

    fn header(&mut self) -> Result<Vec<String>> {
        let Some((line, fields)) = self.next()? else {
            return Err(self.input.fault(ReadFault::Empty));
        };
        let mut columns = Vec::with_capacity(fields);
        for bytes in split(&self.content, &self.ends[..fields]) {
            let Ok(name) = str::from_utf8(bytes) else {
                return Err(self.input.fault(ReadFault::NotUtf8 { line, column: None }));
            };
            columns.push(name.to_owned());
        }
        self.input.check_names(&columns, line)?;
        Ok(columns)
    }

    pub(crate) fn read(&mut self, columns: &[String], record: &mut TableRecord) -> Result<bool> {
        self.skip_blank_lines()?;
        if self.read_plain_line(columns.len(), record)? {
            return Ok(true);
        }
        let Some((line, found)) = self.next()? else {
            return Ok(false);
        };
        let expected = columns.len();
        if found != expected {
            return Err(self.input.fault(ReadFault::Ragged {
                line,
                found,
                expected,
            }));
        }
        record.line = line;
        record.cells.resize(expected, Cell::Missing);
        let fields = split(&self.content, &self.ends[..found]);
        for ((bytes, cell), column) in fields.zip(&mut record.cells).zip(columns) {
            match str::from_utf8(bytes) {
                Ok(text) if self.input.dialect.is_missing(text) => *cell = Cell::Missing,
                Ok(text) => set_text(cell, &self.input.dialect.with_point(text)),
                Err(_) => {
                    let column = Some(column.clone());
                    return Err(self.input.fault(ReadFault::NotUtf8 { line, column }));
                }
            }
        }
        Ok(true)
    }

    /// Reads the next line if it is a record without quotes that lies whole in the bytes at hand.
    /// Anything else is left, with its faults, to the parser.
    fn read_plain_line(&mut self, columns: usize, record: &mut TableRecord) -> Result<bool> {
        let bytes = self.text.fill(self.line - 1)?;
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            return Ok(false);
        };
        let line = &bytes[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_plain = line.len() <= self.input.limits.line_bytes
            && memchr::memchr2(b'"', b'\r', line).is_none();
        let (true, Ok(text)) = (is_plain, str::from_utf8(line)) else {
            return Ok(false);
        };
        record.cells.resize(columns, Cell::Missing);
        let dialect = &self.input.dialect;
        let mut found = 0;
        let mut start = 0;
        let ends = memchr::memchr_iter(self.separator, line).chain(std::iter::once(line.len()));
        for end in ends {
            let Some(cell) = record.cells.get_mut(found) else {
                return Ok(false);
            };
            // A separator is ASCII, so that no character is cut.
            match text.get(start..end) {
                Some(text) if !dialect.is_missing(text) => {
                    set_text(cell, &dialect.with_point(text))
                }
                _ => *cell = Cell::Missing,
            }
            found += 1;
            start = end + 1;
        }
        if found != columns {
            return Ok(false);
        }
        record.line = self.line;
        self.line += 1;
        self.text.consume(end + 1);
        Ok(true)
    }

    /// Reads one record into the buffers; gives the line it starts on and its number of fields.
    fn next(&mut self) -> Result<Option<(u64, usize)>> {
        self.skip_blank_lines()?;
        let start = self.line;
        let limits = self.input.limits;
        let mut taken = 0;
        let mut length = 0;
        let mut fields = 0;
        loop {
            let bytes = self.text.fill(self.line - 1)?;
            let at_end = bytes.is_empty();
            if at_end && taken == 0 {
                return Ok(None);
            }
            // A newline stands in for the one that the last line may lack; inside quotes it ends
            // nothing. No more is parsed of a record than it may have, so that it does not depend
            // on the bytes at hand which of its faults is found first.
            let bytes = if at_end { b"\n" } else { bytes };
            let bytes = &bytes[..bytes.len().min(limits.line_bytes.saturating_add(3) - taken)];
            let output = &mut self.content[length..];
            let ends = &mut self.ends[fields..];
            let (outcome, read, wrote, ended) = self.parser.read_record(bytes, output, ends);
            self.line += bytes[..read].iter().filter(|&&b| b == b'\n').count() as u64;
            if !at_end {
                self.text.consume(read);
            }
            taken += read;
            length += wrote;
            fields += ended;
            if taken > limits.line_bytes.saturating_add(2) {
                let fault = ReadFault::LongLine {
                    line: start,
                    limit: limits.line_bytes,
                };
                return Err(self.input.fault(fault));
            }
            match outcome {
                ReadRecordResult::Record => return Ok(Some((start, fields))),
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::OutputFull => self.content.resize(self.content.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if fields > limits.columns => {
                    let fault = ReadFault::TooManyColumns {
                        line: start,
                        limit: limits.columns,
                    };
                    return Err(self.input.fault(fault));
                }
                ReadRecordResult::OutputEndsFull => {
                    let room = self
                        .ends
                        .len()
                        .saturating_mul(2)
                        .min(limits.columns.saturating_add(1));
                    self.ends.resize(room.max(self.ends.len() + 1), 0);
                }
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(self.input.fault(ReadFault::OpenQuote { line: start }));
                }
                ReadRecordResult::InputEmpty => {}
            }
        }
    }

    /// Consumes the newlines before a record, among them the second half of a CRLF, so that the
    /// record's first line is known.
    fn skip_blank_lines(&mut self) -> Result<()> {
        loop {
            let bytes = self.text.fill(self.line - 1)?;
            let blank = bytes
                .iter()
                .take_while(|&&b| b == b'\n' || b == b'\r')
                .count();
            let lines = bytes[..blank].iter().filter(|&&b| b == b'\n').count() as u64;
            self.text.consume(blank);
            self.line += lines;
            if blank == 0 {
                return Ok(());
            }
        }
    }
}

/// The fields of a record, in order.
fn split<'a>(content: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(ends)
        .map(|(start, &end)| content.get(start..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadLimits, Source};

    fn source(text: &[u8]) -> Source {
        Source::from_bytes("a.csv", text, None).unwrap()
    }

    fn read(source: &Source) -> Result<(Vec<String>, Vec<TableRecord>)> {
        let table = source.table()?;
        Ok((table.columns().to_vec(), table.collect::<Result<_>>()?))
    }

    fn fault(text: &[u8]) -> ReadFault {
        *read(&source(text)).unwrap_err().fault
    }

    fn text(value: &str) -> Cell {
        Cell::Text(value.to_owned())
    }

    #[test]
    fn rows_carry_the_line_they_start_on() {
        let bytes = b"\xef\xbb\xbf\r\na,\"b \"\"c\"\"\"\r\n1,\r\n\r\n\"x\ny,\",2\r\n\"\",4";
        let (columns, records) = read(&source(bytes)).unwrap();
        assert_eq!(columns, ["a", "b \"c\""]);
        assert_eq!(
            records[0],
            TableRecord {
                line: 3,
                cells: vec![text("1"), Cell::Missing]
            }
        );
        assert_eq!(
            records[1],
            TableRecord {
                line: 5,
                cells: vec![text("x\ny,"), text("2")]
            }
        );
        assert_eq!(
            records[2],
            TableRecord {
                line: 7,
                cells: vec![Cell::Missing, text("4")]
            }
        );
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn tabs_separate_when_asked_and_a_header_alone_is_a_table() {
        let table = Source::from_bytes("a.txt", "a\tb,c\n", Some(crate::FileFormat::Tsv))
            .unwrap()
            .table()
            .unwrap();
        assert_eq!(table.columns(), ["a", "b,c"]);
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn broken_tables_are_named_by_place() {
        assert!(matches!(fault(b"\n\r\n"), ReadFault::Empty));
        assert!(matches!(fault(b"\xef\xbb\xbf"), ReadFault::Empty));
        assert!(matches!(
            fault(b"a,b\n1,2\n1\n"),
            ReadFault::Ragged {
                line: 3,
                found: 1,
                expected: 2
            }
        ));
        assert!(matches!(
            fault(b"a,b\n1,2,3\n"),
            ReadFault::Ragged {
                line: 2,
                found: 3,
                expected: 2
            }
        ));
        assert!(matches!(
            fault(b"a,b\n1,\"2\n3,4\n"),
            ReadFault::OpenQuote { line: 2 }
        ));
        assert!(matches!(
            fault(b"a,\xff\n"),
            ReadFault::NotUtf8 {
                line: 1,
                column: None
            }
        ));
        let ReadFault::DuplicateColumns(names) = fault(b"a,b,a,c,b,a\n") else {
            panic!()
        };
        assert_eq!(names, ["a", "b"]);
        let message = read(&source(b"a,b\n1,2\nx,\xff\n"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "a.csv: line 3, column \"b\" is not UTF-8; convert the file to UTF-8"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let limits = ReadLimits {
            line_bytes: 1000,
            columns: 80,
            name_bytes: 10,
            ..ReadLimits::default()
        };
        let fault = |text: String| {
            *read(&source(text.as_bytes()).with_limits(limits))
                .unwrap_err()
                .fault
        };
        let long = fault(format!("a\n1\n\"{}", "\n".repeat(2_000_000)));
        assert!(matches!(
            long,
            ReadFault::LongLine {
                line: 3,
                limit: 1000
            }
        ));
        let wide = fault(format!("a{}\n", ",".repeat(80)));
        assert!(matches!(
            wide,
            ReadFault::TooManyColumns { line: 1, limit: 80 }
        ));
        let wide = fault(format!("a\n{}\n", ",".repeat(900)));
        assert!(matches!(
            wide,
            ReadFault::TooManyColumns { line: 2, limit: 80 }
        ));
        assert!(matches!(
            fault("a,bbbbbbbbbbb\n".to_owned()),
            ReadFault::LongName { line: 1, limit: 10 }
        ));
        let fits = format!("a\n{}\n", "x".repeat(1000));
        assert_eq!(
            read(&source(fits.as_bytes()).with_limits(limits))
                .unwrap()
                .1
                .len(),
            1
        );
        let names: Vec<String> = (0..80).map(|i| i.to_string()).collect();
        let full = names.join(",");
        assert_eq!(
            read(&source(full.as_bytes()).with_limits(limits))
                .unwrap()
                .0,
            names
        );
    }

    #[test]
    fn a_second_pass_reads_the_same() {
        let mut table = source(b"a\n1\n2\n").table().unwrap();
        let first: Vec<TableRecord> = table.by_ref().map(|r| r.unwrap()).collect();
        table.rewind().unwrap();
        assert_eq!(table.map(|r| r.unwrap()).collect::<Vec<_>>(), first);
        assert_eq!(first.len(), 2);
    }
}
