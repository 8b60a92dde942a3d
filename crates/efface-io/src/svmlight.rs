//! svmlight, also known as libsvm: `label [qid:n] index:value …`, one vector a line, `#` starts a
//! comment. Indices are given as written and must increase along the line; whether they count from
//! 0 or 1 shows in the [`SparseExtent`] of the whole file.

use crate::error::{ReadFault, Result};
use crate::source::SourceInput;
use crate::text::LineReader;

/// One line of a sparse file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseRecord {
    /// The line, counted from 1.
    pub line: u64,
    /// The label; it may be NaN or infinite where the file says so.
    pub target: f64,
    /// The query that the line belongs to, in ranking data.
    pub qid: Option<u64>,
    /// Indices as written, increasing, with their values.
    pub entries: Vec<(u32, f64)>,
}

/// What one pass over a sparse file learns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SparseExtent {
    /// Lines that hold a vector.
    pub rows: u64,
    /// Entries of all lines together.
    pub entries: u64,
    /// The smallest and the largest index; `None` when no line has an entry.
    pub indices: Option<(u32, u32)>,
}

/// A pass over the vectors of a file. As an iterator it yields records; [`read`](Self::read) reuses
/// one instead. A pass is over after its first error.
pub struct SparseTable {
    input: SourceInput,
    lines: LineReader,
    over: bool,
}

impl SparseTable {
    pub(crate) fn open(input: &SourceInput) -> Result<Self> {
        Ok(Self {
            input: input.clone(),
            lines: LineReader::open(input)?,
            over: false,
        })
    }

    /// Reads the next vector into `record`, whose memory is used again; false at the end.
    ///
    /// # Errors
    /// A line is not what the format wants, or the file cannot be read further.
    pub fn read(&mut self, record: &mut SparseRecord) -> Result<bool> {
        if self.over {
            return Ok(false);
        }
        self.over = true;
        while let Some((line, bytes)) = self.lines.next()? {
            let end = bytes.iter().position(|&b| b == b'#').unwrap_or(bytes.len());
            let content = bytes[..end].trim_ascii();
            if content.is_empty() {
                continue;
            }
            parse(line, content, self.input.limits.features, record)
                .map_err(|fault| self.input.fault(fault))?;
            self.over = false;
            return Ok(true);
        }
        Ok(false)
    }

    /// Starts again at the first line.
    ///
    /// # Errors
    /// The file cannot be opened again, or has another size.
    pub fn rewind(&mut self) -> Result<()> {
        self.over = true;
        self.lines = LineReader::open(&self.input)?;
        self.over = false;
        Ok(())
    }

    /// Reads what is left of the pass for its extent.
    ///
    /// # Errors
    /// Whatever [`read`](Self::read) finds wrong.
    pub fn extent(&mut self) -> Result<SparseExtent> {
        let mut extent = SparseExtent::default();
        let mut record = SparseRecord::default();
        while self.read(&mut record)? {
            extent.rows += 1;
            extent.entries += record.entries.len() as u64;
            if let (Some(&(first, _)), Some(&(last, _))) =
                (record.entries.first(), record.entries.last())
            {
                let (least, most) = extent.indices.unwrap_or((first, last));
                extent.indices = Some((least.min(first), most.max(last)));
            }
        }
        Ok(extent)
    }

    /// Bytes taken from the file in this pass, before decompression.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.input.progress.bytes_read()
    }

    /// Size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.input.progress.size()
    }
}

impl Iterator for SparseTable {
    type Item = Result<SparseRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = SparseRecord::default();
        match self.read(&mut record) {
            Ok(true) => Some(Ok(record)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

fn parse(
    line: u64,
    content: &[u8],
    limit: u32,
    record: &mut SparseRecord,
) -> std::result::Result<(), ReadFault> {
    record.line = line;
    record.qid = None;
    record.entries.clear();
    let mut tokens = (1..)
        .zip(
            content
                .split(u8::is_ascii_whitespace)
                .filter(|t| !t.is_empty()),
        )
        .peekable();
    let bad = |token, expected| ReadFault::BadToken {
        line,
        token,
        expected,
    };

    let label = tokens.next().and_then(|(_, label)| number(label));
    record.target = label.ok_or_else(|| bad(1, "a numeric label"))?;
    if let Some((token, digits)) = tokens
        .peek()
        .and_then(|&(n, t)| Some((n, t.strip_prefix(b"qid:")?)))
    {
        let qid = str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        record.qid = Some(qid.ok_or_else(|| bad(token, "`qid:` with a whole number"))?);
        tokens.next();
    }
    for (token, text) in tokens {
        let mut halves = text.splitn(2, |&b| b == b':');
        let index = halves.next().unwrap_or_default();
        let value = halves.next().and_then(number);
        if index.is_empty() || !index.iter().all(u8::is_ascii_digit) {
            return Err(bad(token, "`index:value` with a whole index"));
        }
        let value = value.ok_or_else(|| bad(token, "`index:value` with a numeric value"))?;
        let index = str::from_utf8(index)
            .ok()
            .and_then(|digits| digits.parse().ok());
        let index = index
            .filter(|&index| index < limit)
            .ok_or(ReadFault::IndexTooLarge { line, token, limit })?;
        if record
            .entries
            .last()
            .is_some_and(|&(before, _)| before >= index)
        {
            return Err(ReadFault::IndexOrder { line, token });
        }
        record.entries.push((index, value));
    }
    Ok(())
}

fn number(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadLimits, Source};

    fn read(text: &[u8]) -> Result<Vec<SparseRecord>> {
        Source::from_bytes("a.svm", text, None)?.sparse()?.collect()
    }

    fn fault(text: &[u8]) -> ReadFault {
        *read(text).unwrap_err().fault
    }

    #[test]
    fn labels_queries_and_entries() {
        let text = b"# made by hand\n\n+1 qid:3 1:0.5 4:-2e3 # why\r\n \t\nnan 0:inf\n-1";
        let records = read(text).unwrap();
        let first = SparseRecord {
            line: 3,
            target: 1.0,
            qid: Some(3),
            entries: vec![(1, 0.5), (4, -2000.0)],
        };
        assert_eq!(records[0], first);
        assert!(records[1].target.is_nan());
        assert_eq!(
            (records[1].line, &records[1].entries[..]),
            (5, &[(0, f64::INFINITY)][..])
        );
        assert_eq!(
            records[2],
            SparseRecord {
                line: 6,
                target: -1.0,
                qid: None,
                entries: vec![]
            }
        );
    }

    #[test]
    fn the_extent_tells_width_and_base() {
        let scan = |text: &str| {
            Source::from_bytes("a.svm", text, None)
                .unwrap()
                .scan()
                .unwrap()
        };
        let extent = scan("1 3:1 9:1\n0 1:1\n0\n");
        assert_eq!(
            extent,
            SparseExtent {
                rows: 3,
                entries: 3,
                indices: Some((1, 9))
            }
        );
        assert_eq!(scan("# nothing\n"), SparseExtent::default());
    }

    #[test]
    fn bad_tokens_are_named_by_place() {
        let token = |text: &[u8]| match fault(text) {
            ReadFault::BadToken { line, token, .. } => (line, token),
            other => panic!("{other:?}"),
        };
        assert_eq!(token(b"1 1:1\nsecret 1:1"), (2, 1));
        assert_eq!(token(b"1,2 1:1"), (1, 1));
        assert_eq!(token(b"1 qid:x 1:1"), (1, 2));
        assert_eq!(token(b"1 1:1 qid:3"), (1, 3));
        assert_eq!(token(b"1 1:1 2"), (1, 3));
        assert_eq!(token(b"1 1:1 2:"), (1, 3));
        assert_eq!(token(b"1 :1"), (1, 2));
        assert_eq!(token(b"1 -1:1"), (1, 2));
        assert_eq!(token(b"1 1:\xff"), (1, 2));
        let message = read(b"secret").unwrap_err().to_string();
        assert!(
            message.starts_with("a.svm: line 1, token 1 is not a numeric label")
                && !message.contains("secret")
        );
    }

    #[test]
    fn indices_increase_and_fit() {
        assert!(matches!(
            fault(b"1 2:1 1:1"),
            ReadFault::IndexOrder { line: 1, token: 3 }
        ));
        assert!(matches!(
            fault(b"1 2:1 2:1"),
            ReadFault::IndexOrder { line: 1, token: 3 }
        ));
        let too_large = |text: &[u8]| {
            matches!(
                fault(text),
                ReadFault::IndexTooLarge {
                    line: 1,
                    token: 2,
                    ..
                }
            )
        };
        assert!(too_large(b"1 16777216:1") && too_large(b"1 2147483648:1"));
        assert!(too_large(b"1 99999999999999999999:1"));
        assert_eq!(
            read(b"1 16777215:1").unwrap()[0].entries,
            [(16_777_215, 1.0)]
        );
        let limits = ReadLimits {
            features: u32::MAX,
            ..ReadLimits::default()
        };
        let wide = |text: &[u8]| {
            Source::from_bytes("a.svm", text, None)
                .unwrap()
                .with_limits(limits)
        };
        assert_eq!(
            wide(b"1 4294967294:1").scan().unwrap().indices,
            Some((u32::MAX - 1, u32::MAX - 1))
        );
        assert!(wide(b"1 4294967295:1").scan().is_err());
    }

    #[test]
    fn a_pass_is_over_after_an_error_and_can_start_again() {
        let mut table = Source::from_bytes("a.svm", "1 1:1\nx\n2 1:1\n", None)
            .unwrap()
            .sparse()
            .unwrap();
        for _ in 0..2 {
            assert!(table.next().unwrap().is_ok());
            assert!(table.next().unwrap().is_err());
            assert!(table.next().is_none());
            table.rewind().unwrap();
        }
        assert_eq!(table.size(), 14);
    }
}
