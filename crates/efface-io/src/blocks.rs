//! A table in blocks of whole records. One thread cuts them, any number of others parse them: what
//! a block gives, row by row, and the first error among them, is what a [`RecordPass`] gives at the
//! same place.
//!
//! A block of text ends behind a line break that ends a record. In CSV that is one outside quotes,
//! so that the cutter follows them as the parser does. A record that is longer than it may be, and
//! a file that cannot be read further, end the last block.

use std::io;
use std::sync::Arc;

use crate::csv::CsvReader;
use crate::error::Result;
use crate::jsonl::JsonReader;
#[cfg(feature = "parquet")]
use crate::parquet::{ColumnBatch, ParquetReader};
use crate::source::SourceInput;
use crate::table::RecordReader;
use crate::text::TextReader;
use crate::{RecordPass, TableRecord};

/// Cuts a table into blocks, in the order of its rows.
pub struct TableBlocks {
    input: SourceInput,
    columns: Arc<[String]>,
    rows: CutRows,
}

enum CutRows {
    Csv(TextCutter, u8),
    Json(TextCutter, Box<JsonReader>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetReader>),
}

/// Some rows of a table that were not parsed yet.
pub struct TableBlock {
    input: SourceInput,
    columns: Arc<[String]>,
    content: BlockContent,
}

enum BlockContent {
    Csv(TextBlock, u8),
    Json(Box<JsonReader>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ColumnBatch>),
}

/// Text that is whole records, but for the last block of a file that breaks off.
#[derive(Default)]
pub(crate) struct TextBlock {
    pub(crate) bytes: Vec<u8>,
    /// The line of its first byte, counted from 1.
    pub(crate) first_line: u64,
    pub(crate) end: BlockEnd,
}

/// What comes behind the bytes of a block.
#[derive(Default)]
pub(crate) enum BlockEnd {
    /// Another block, or the end of the file.
    #[default]
    Whole,
    /// The file could not be read further.
    Broken(io::Error),
    /// More of a record than the limit allows.
    TooLong,
}

impl TableBlocks {
    pub(crate) fn new(pass: RecordPass, bytes: usize) -> Self {
        let (input, columns, rows) = pass.into_parts();
        let rows = match rows {
            RecordReader::Csv(reader) => {
                let (separator, text, line) = reader.into_text();
                let quotes = Some(QuoteState::FieldStart);
                let cutter = TextCutter::new(
                    text,
                    line,
                    quotes,
                    separator,
                    bytes,
                    input.limits.line_bytes,
                );
                CutRows::Csv(cutter, separator)
            }
            RecordReader::Json(reader) => {
                let (like, text) = reader.into_text();
                let cutter = TextCutter::new(text, 1, None, 0, bytes, input.limits.line_bytes);
                CutRows::Json(cutter, Box::new(like))
            }
            #[cfg(feature = "parquet")]
            RecordReader::Parquet(reader) => CutRows::Parquet(reader),
        };
        Self {
            input,
            columns: columns.into(),
            rows,
        }
    }

    /// The names of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next block; None behind the last. What is wrong with a text is found by whoever parses
    /// the block that it is in.
    ///
    /// # Errors
    /// A column of a Parquet file cannot be decoded. No block comes after an error.
    pub fn next_block(&mut self) -> Result<Option<TableBlock>> {
        let content = match &mut self.rows {
            CutRows::Csv(cutter, separator) => cutter
                .next()
                .map(|block| BlockContent::Csv(block, *separator)),
            CutRows::Json(cutter, like) => cutter
                .next()
                .map(|block| BlockContent::Json(Box::new(like.over_block(block)))),
            #[cfg(feature = "parquet")]
            CutRows::Parquet(reader) => reader
                .next_batch()?
                .map(|batch| BlockContent::Parquet(Box::new(batch))),
        };
        let block = |content| TableBlock {
            input: self.input.clone(),
            columns: Arc::clone(&self.columns),
            content,
        };
        Ok(content.map(block))
    }
}

impl TableBlock {
    /// Starts to parse the rows of the block.
    #[must_use]
    pub fn rows(self) -> BlockPass {
        let rows = match self.content {
            BlockContent::Csv(block, separator) => {
                RecordReader::Csv(Box::new(CsvReader::of_block(&self.input, separator, block)))
            }
            BlockContent::Json(reader) => RecordReader::Json(reader),
            #[cfg(feature = "parquet")]
            BlockContent::Parquet(batch) => {
                RecordReader::Parquet(Box::new(ParquetReader::of_batch(&self.input, *batch)))
            }
        };
        BlockPass {
            input: self.input,
            columns: self.columns,
            rows,
            over: false,
        }
    }
}

/// A pass over the rows of a block. It is over after its first error.
pub struct BlockPass {
    input: SourceInput,
    columns: Arc<[String]>,
    rows: RecordReader,
    over: bool,
}

impl BlockPass {
    /// The names of the columns of the whole table.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Reads the next row into `record`, see [`RecordPass::read`].
    ///
    /// # Errors
    /// The next row is not what the format wants, or the file could not be read further.
    pub fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        if self.over {
            return Ok(false);
        }
        let dialect = &self.input.dialect;
        let outcome = self.rows.read(&self.columns, dialect, record);
        self.over = !matches!(outcome, Ok(true));
        outcome
    }
}

/// Where a CSV text stands between two bytes, as far as quotes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// Before the first byte of a field, where a quote opens it.
    FieldStart,
    /// In a field that no quote opened, where quotes are letters.
    Plain,
    /// In a field that a quote opened.
    Quoted,
    /// Behind a quote in such a field: the field is over, unless another quote follows.
    QuoteInQuoted,
    /// Behind a carriage return that ended a record, and that a newline may complete.
    CarriageReturn,
}

/// Cuts text at the ends of records.
struct TextCutter {
    text: TextReader,
    /// The line of the first byte of the next block.
    line: u64,
    /// None where every newline ends a record.
    quotes: Option<QuoteState>,
    separator: u8,
    /// Bytes of a block, at least.
    size: usize,
    /// Bytes of a record, at most.
    limit: usize,
    /// The beginning of the next block.
    begun: Vec<u8>,
    /// Where the last record that is whole ends in it.
    whole: usize,
    over: bool,
}

impl TextCutter {
    fn new(
        text: TextReader,
        line: u64,
        quotes: Option<QuoteState>,
        separator: u8,
        size: usize,
        limit: usize,
    ) -> Self {
        Self {
            text,
            line,
            quotes,
            separator,
            size,
            limit,
            begun: Vec::new(),
            whole: 0,
            over: false,
        }
    }

    fn next(&mut self) -> Option<TextBlock> {
        while !self.over {
            if self.begun.len() >= self.size && self.whole > 0 {
                let rest = self.begun.split_off(self.whole);
                return Some(self.block(rest, BlockEnd::Whole));
            }
            // The longest record, its line break, and one byte more.
            if self.begun.len() - self.whole > self.limit.saturating_add(3) {
                self.over = true;
                return Some(self.block(Vec::new(), BlockEnd::TooLong));
            }
            let read = match self.text.fill_raw() {
                Ok([]) => 0,
                Ok(bytes) => {
                    // No further than the block is to reach, so that what is left over is little.
                    let room = self.size.saturating_sub(self.begun.len()).max(1 << 12);
                    let bytes = &bytes[..bytes.len().min(room)];
                    self.begun.extend_from_slice(bytes);
                    bytes.len()
                }
                Err(cause) => {
                    self.over = true;
                    return Some(self.block(Vec::new(), BlockEnd::Broken(cause)));
                }
            };
            self.text.consume(read);
            if read == 0 {
                self.over = true;
                return (!self.begun.is_empty()).then(|| self.block(Vec::new(), BlockEnd::Whole));
            }
            self.look_over(self.begun.len() - read);
        }
        None
    }

    /// The block that was begun; `rest` begins the next one.
    fn block(&mut self, rest: Vec<u8>, end: BlockEnd) -> TextBlock {
        let bytes = std::mem::replace(&mut self.begun, rest);
        let first_line = self.line;
        self.line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        self.whole = 0;
        TextBlock {
            bytes,
            first_line,
            end,
        }
    }

    /// Finds the last end of a record from `start` on.
    fn look_over(&mut self, start: usize) {
        let new = &self.begun[start..];
        let Some(state) = &mut self.quotes else {
            if let Some(at) = memchr::memrchr(b'\n', new) {
                self.whole = start + at + 1;
            }
            return;
        };
        let is_open = matches!(state, QuoteState::Quoted | QuoteState::QuoteInQuoted);
        // Without quotes every newline ends a record, and only the last of them matters.
        if !is_open
            && memchr::memchr(b'"', new).is_none()
            && let Some(at) = memchr::memrchr(b'\n', new)
        {
            self.whole = start + at + 1;
            *state = match new.last() {
                Some(b'\n') => QuoteState::FieldStart,
                Some(b'\r') => QuoteState::CarriageReturn,
                Some(last) if *last == self.separator => QuoteState::FieldStart,
                _ => QuoteState::Plain,
            };
            return;
        }
        for (at, &byte) in new.iter().enumerate() {
            *state = match (*state, byte) {
                (QuoteState::Quoted, b'"') => QuoteState::QuoteInQuoted,
                (QuoteState::Quoted, _) => QuoteState::Quoted,
                (QuoteState::QuoteInQuoted, b'"') => QuoteState::Quoted,
                (_, b'\n') => {
                    self.whole = start + at + 1;
                    QuoteState::FieldStart
                }
                (before, byte) => {
                    if before == QuoteState::CarriageReturn {
                        self.whole = start + at;
                    }
                    let opens =
                        matches!(before, QuoteState::FieldStart | QuoteState::CarriageReturn);
                    match byte {
                        b'\r' => QuoteState::CarriageReturn,
                        byte if byte == self.separator => QuoteState::FieldStart,
                        b'"' if opens => QuoteState::Quoted,
                        _ => QuoteState::Plain,
                    }
                }
            };
        }
    }
}
