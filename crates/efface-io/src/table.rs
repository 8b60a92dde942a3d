//! A pass over a table, whatever format it is written in.

use efface::features::Cell;

use crate::FileFormat;
use crate::csv::CsvReader;
use crate::dialect::TableDialect;
use crate::error::{ReadFault, Result};
use crate::jsonl::JsonReader;
#[cfg(feature = "parquet")]
use crate::parquet::ParquetReader;
use crate::source::SourceInput;

/// One row of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableRecord {
    /// The line on which the row starts, counted from 1 with the header; for Parquet the number of
    /// the row.
    pub line: u64,
    /// One cell for each of [`RecordPass::columns`], in that order.
    pub cells: Vec<Cell>,
}

/// A pass over the rows of a file. As an iterator it yields records; [`read`](Self::read) reuses
/// one instead. A pass is over after its first error.
pub struct RecordPass {
    input: SourceInput,
    columns: Vec<String>,
    rows: RecordReader,
    over: bool,
}

pub(crate) enum RecordReader {
    Csv(Box<CsvReader>),
    Json(Box<JsonReader>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetReader>),
}

impl RecordPass {
    pub(crate) fn open(input: &SourceInput, format: FileFormat) -> Result<Self> {
        let (columns, rows) =
            match format {
                FileFormat::JsonLines => {
                    JsonReader::open(input).map(|(c, r)| (c, RecordReader::Json(Box::new(r))))?
                }
                #[cfg(feature = "parquet")]
                FileFormat::Parquet => ParquetReader::open(input)
                    .map(|(c, r)| (c, RecordReader::Parquet(Box::new(r))))?,
                #[cfg(not(feature = "parquet"))]
                FileFormat::Parquet => return Err(input.fault(ReadFault::ParquetDisabled)),
                FileFormat::Tsv => CsvReader::open(input, Some(b'\t'))
                    .map(|(c, r)| (c, RecordReader::Csv(Box::new(r))))?,
                FileFormat::Csv | FileFormat::Svmlight => CsvReader::open(input, None)
                    .map(|(c, r)| (c, RecordReader::Csv(Box::new(r))))?,
            };
        Ok(Self {
            input: input.clone(),
            columns,
            rows,
            over: false,
        })
    }

    /// The names of the columns: a header, the keys in the order in which they first appear, or a
    /// schema.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Reads the next row into `record`, whose memory is used again; false at the end. After an
    /// error the content of `record` means nothing.
    ///
    /// # Errors
    /// The next row is not what the format wants, or the file cannot be read further.
    pub fn read(&mut self, record: &mut TableRecord) -> Result<bool> {
        if self.over {
            return Ok(false);
        }
        let dialect = &self.input.dialect;
        let outcome = self.rows.read(&self.columns, dialect, record);
        self.over = !matches!(outcome, Ok(true));
        outcome
    }

    /// The parts that blocks are cut from.
    pub(crate) fn into_parts(self) -> (SourceInput, Vec<String>, RecordReader) {
        (self.input, self.columns, self.rows)
    }

    /// Starts again at the first row.
    ///
    /// # Errors
    /// The file cannot be opened again, or its columns are no longer the same.
    pub fn rewind(&mut self) -> Result<()> {
        self.over = true;
        let same = match &mut self.rows {
            RecordReader::Csv(reader) => reader.rewind()? == self.columns,
            RecordReader::Json(reader) => reader.rewind().map(|()| true)?,
            #[cfg(feature = "parquet")]
            RecordReader::Parquet(reader) => {
                let (columns, fresh) = ParquetReader::open(&self.input)?;
                **reader = fresh;
                columns == self.columns
            }
        };
        self.over = !same;
        if same {
            Ok(())
        } else {
            Err(self.input.fault(ReadFault::Changed))
        }
    }

    /// Bytes taken from the file in this pass, see
    /// [`ReadProgress::bytes_read`](crate::ReadProgress::bytes_read).
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

impl RecordReader {
    pub(crate) fn read(
        &mut self,
        columns: &[String],
        dialect: &TableDialect,
        record: &mut TableRecord,
    ) -> Result<bool> {
        let is_read = match self {
            Self::Csv(reader) => return reader.read(columns, record),
            Self::Json(reader) => reader.read(record)?,
            #[cfg(feature = "parquet")]
            Self::Parquet(reader) => reader.read(columns, record)?,
        };
        if is_read && !dialect.missing.is_empty() {
            for cell in &mut record.cells {
                if matches!(cell, Cell::Text(text) if dialect.names_missing(text)) {
                    *cell = Cell::Missing;
                }
            }
        }
        Ok(is_read)
    }
}

impl Iterator for RecordPass {
    type Item = Result<TableRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = TableRecord {
            line: 0,
            cells: Vec::with_capacity(self.columns.len()),
        };
        match self.read(&mut record) {
            Ok(true) => Some(Ok(record)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Puts text into a cell, in the memory of the text that was there before.
pub(crate) fn set_text(cell: &mut Cell, text: &str) {
    if let Cell::Text(kept) = cell {
        kept.clear();
        kept.push_str(text);
    } else {
        *cell = Cell::Text(text.to_owned());
    }
}

/// A whole number as a cell. Beyond 2⁵³ it stays text, digit by digit, so that no identifier is
/// ever rounded onto its neighbour.
pub(crate) fn integer(value: i128) -> Cell {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() <= EXACT {
        Cell::Number(value as f64)
    } else {
        Cell::Text(value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_can_move_to_another_thread() {
        fn moves<T: Send>() {}
        moves::<RecordPass>();
        moves::<crate::TableBlocks>();
        moves::<crate::TableBlock>();
        moves::<crate::SparseTable>();
        moves::<crate::Source>();
    }

    #[test]
    fn whole_numbers_stay_exact() {
        assert_eq!(integer(-(1 << 53)), Cell::Number(-9_007_199_254_740_992.0));
        assert_eq!(
            integer(-(1 << 53) - 1),
            Cell::Text("-9007199254740993".to_owned())
        );
    }
}
