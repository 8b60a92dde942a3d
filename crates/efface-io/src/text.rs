//! The text under CSV, JSON lines and svmlight: buffered, without a byte order mark, and handed out
//! in lines of bounded length. It is a whole file, or a block that was cut out of one.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use crate::blocks::{BlockEnd, TextBlock};
use crate::error::{ReadFault, Result};
use crate::source::SourceInput;

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Bytes that are read at once. The first of them are there together, so that a separator can be
/// found among them.
const FIRST_BYTES: usize = 1 << 16;

/// A stream that fails.
struct BrokenRead(Option<io::Error>);

impl Read for BrokenRead {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self
            .0
            .take()
            .unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
    }
}

/// The decompressed text of an input, or of a block of it.
pub(crate) struct TextReader {
    input: SourceInput,
    bytes: TextBytes,
}

enum TextBytes {
    Stream(BufReader<Box<dyn Read + Send>>),
    Block { block: TextBlock, next: usize },
}

impl TextReader {
    /// Opens the input at its start, behind a byte order mark where there is one.
    pub(crate) fn open(input: &SourceInput) -> Result<Self> {
        let mut reader = input.open_text()?;
        let mut start = Vec::new();
        let took = (&mut reader)
            .take(FIRST_BYTES as u64)
            .read_to_end(&mut start);
        // What is wrong behind these bytes is told when they have been read. A decoder might not
        // tell it twice.
        let rest: Box<dyn Read + Send> = match took {
            Ok(_) => reader,
            Err(error) => Box::new(BrokenRead(Some(error))),
        };
        if start.starts_with(&BYTE_ORDER_MARK) {
            start.drain(..BYTE_ORDER_MARK.len());
        }
        let whole: Box<dyn Read + Send> = Box::new(Cursor::new(start).chain(rest));
        let bytes = TextBytes::Stream(BufReader::with_capacity(FIRST_BYTES, whole));
        Ok(Self {
            input: input.clone(),
            bytes,
        })
    }

    /// The text of a block alone.
    pub(crate) fn of_block(input: &SourceInput, block: TextBlock) -> Self {
        Self {
            input: input.clone(),
            bytes: TextBytes::Block { block, next: 0 },
        }
    }

    /// The next bytes; none at the end. `line` is the last line that was read, for the message.
    pub(crate) fn fill(&mut self, line: u64) -> Result<&[u8]> {
        match &mut self.bytes {
            TextBytes::Stream(reader) => {
                loop {
                    // The borrow of a successful call cannot leave the loop, so the buffer is asked
                    // for again below.
                    match reader.fill_buf() {
                        Ok(_) => break,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(self.input.broken(e, line)),
                    }
                }
                Ok(reader.buffer())
            }
            TextBytes::Block { block, next } => {
                let rest = block.bytes.get(*next..).unwrap_or_default();
                if rest.is_empty() {
                    match std::mem::replace(&mut block.end, BlockEnd::Whole) {
                        BlockEnd::Whole => {}
                        BlockEnd::Broken(cause) => return Err(self.input.broken(cause, line)),
                        BlockEnd::TooLong => {
                            let fault = ReadFault::LongLine {
                                line: line + 1,
                                limit: self.input.limits.line_bytes,
                            };
                            return Err(self.input.fault(fault));
                        }
                    }
                }
                Ok(rest)
            }
        }
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        match &mut self.bytes {
            TextBytes::Stream(reader) => reader.consume(bytes),
            TextBytes::Block { next, .. } => *next += bytes,
        }
    }

    /// The next bytes for a cutter, which passes failures on with the block that they end.
    pub(crate) fn fill_raw(&mut self) -> io::Result<&[u8]> {
        match &mut self.bytes {
            TextBytes::Stream(reader) => loop {
                match reader.fill_buf() {
                    Ok(_) => return Ok(reader.buffer()),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            },
            TextBytes::Block { block, next } => Ok(block.bytes.get(*next..).unwrap_or_default()),
        }
    }
}

/// Lines of bounded length; CRLF and a missing last newline are accepted.
pub(crate) struct LineReader {
    text: TextReader,
    line: u64,
    buffer: Vec<u8>,
}

impl LineReader {
    pub(crate) fn open(input: &SourceInput) -> Result<Self> {
        Ok(Self {
            text: TextReader::open(input)?,
            line: 0,
            buffer: Vec::new(),
        })
    }

    /// The lines of a block alone, counted on from those before it.
    pub(crate) fn of_block(input: &SourceInput, block: TextBlock) -> Self {
        let line = block.first_line.saturating_sub(1);
        Self {
            text: TextReader::of_block(input, block),
            line,
            buffer: Vec::new(),
        }
    }

    /// The text behind the lines that were read.
    pub(crate) fn into_text(self) -> TextReader {
        self.text
    }

    /// The next line with its number, counted from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.buffer.clear();
        let limit = self.text.input.limits.line_bytes;
        loop {
            let bytes = self.text.fill(self.line)?;
            if bytes.is_empty() {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                break;
            }
            let newline = memchr::memchr(b'\n', bytes);
            let content = newline.unwrap_or(bytes.len());
            if self.buffer.len() + content > limit {
                let fault = ReadFault::LongLine {
                    line: self.line + 1,
                    limit,
                };
                return Err(self.text.input.fault(fault));
            }
            self.buffer.extend_from_slice(&bytes[..content]);
            self.text.consume(content + usize::from(newline.is_some()));
            if newline.is_some() {
                break;
            }
        }
        self.line += 1;
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        Ok(Some((self.line, line)))
    }
}
