//! Columns of a Parquet file: decoded in batches, and turned into cells row by row.

use std::sync::Arc;

use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use ::parquet::errors::ParquetError;
use ::parquet::record::Field;
use ::parquet::schema::types::{ColumnDescPtr, Type};
use efface::features::Cell;

use super::cell::ColumnKind;
use crate::TableRecord;

/// What is known of a column from the schema.
pub(super) struct TableColumn {
    kind: ColumnKind,
    about: ColumnDescPtr,
}

impl TableColumn {
    pub(super) fn new(field: &Type, about: &ColumnDescPtr) -> Self {
        Self {
            kind: ColumnKind::of(field),
            about: Arc::clone(about),
        }
    }
}

/// What is wrong with a value that was decoded.
pub(super) enum ColumnFault {
    /// Plain bytes that are no text, in the column of this number.
    NotUtf8 { column: usize },
    /// Text that is none, or a value of a wrong length.
    Broken,
}

/// A column chunk that is being decoded.
pub(super) struct OpenColumn(ColumnReader);

impl OpenColumn {
    pub(super) fn new(reader: ColumnReader) -> Self {
        Self(reader)
    }

    /// The next values.
    pub(super) fn decode(&mut self, rows: usize) -> Result<ColumnValues, ParquetError> {
        Ok(match &mut self.0 {
            ColumnReader::BoolColumnReader(reader) => ColumnValues::Bool(decode(reader, rows)?),
            ColumnReader::Int32ColumnReader(reader) => ColumnValues::Int32(decode(reader, rows)?),
            ColumnReader::Int64ColumnReader(reader) => ColumnValues::Int64(decode(reader, rows)?),
            ColumnReader::Int96ColumnReader(reader) => ColumnValues::Int96(decode(reader, rows)?),
            ColumnReader::FloatColumnReader(reader) => ColumnValues::Float(decode(reader, rows)?),
            ColumnReader::DoubleColumnReader(reader) => ColumnValues::Double(decode(reader, rows)?),
            ColumnReader::ByteArrayColumnReader(reader) => {
                ColumnValues::Bytes(decode(reader, rows)?)
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                ColumnValues::FixedBytes(decode(reader, rows)?)
            }
        })
    }
}

/// The values that are there, in order, and which rows have one; no levels where all have.
pub(super) struct SparseValues<T> {
    values: Vec<T>,
    levels: Vec<i16>,
    next: usize,
}

/// Texts stay in the pages that they were unpacked from until their row is read.
pub(super) enum ColumnValues {
    Bool(SparseValues<bool>),
    Int32(SparseValues<i32>),
    Int64(SparseValues<i64>),
    Int96(SparseValues<Int96>),
    Float(SparseValues<f32>),
    Double(SparseValues<f64>),
    Bytes(SparseValues<ByteArray>),
    FixedBytes(SparseValues<FixedLenByteArray>),
}

fn decode<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> Result<SparseValues<T::T>, ParquetError> {
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::new();
    let (read, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows
        || (!levels.is_empty() && levels.len() != rows)
        || (levels.is_empty() && values.len() != rows)
    {
        return Err(ParquetError::General(
            "a column ends before its rows".into(),
        ));
    }
    Ok(SparseValues {
        values,
        levels,
        next: 0,
    })
}

impl<T> SparseValues<T> {
    /// The value of a row; rows are asked for one after the other.
    fn take(&mut self, row: usize) -> Option<&T> {
        if self.levels.get(row).is_some_and(|level| *level == 0) {
            return None;
        }
        self.next += 1;
        self.values.get(self.next - 1)
    }
}

impl ColumnValues {
    /// The cell of a row; `None` for bytes that are not text.
    fn cell(&mut self, row: usize, column: &TableColumn) -> Result<Option<Cell>, ParquetError> {
        let about = &column.about;
        let field = match self {
            // The commonest of all, without a detour.
            Self::Double(values) => {
                return Ok(Some(
                    values
                        .take(row)
                        .map_or(Cell::Missing, |value| Cell::Number(*value)),
                ));
            }
            Self::Float(values) => values
                .take(row)
                .map(|value| Field::convert_float(about, *value)),
            Self::Bool(values) => values
                .take(row)
                .map(|value| Field::convert_bool(about, *value)),
            Self::Int32(values) => values
                .take(row)
                .map(|value| Field::convert_int32(about, *value)),
            Self::Int64(values) => values
                .take(row)
                .map(|value| Field::convert_int64(about, *value)),
            Self::Int96(values) => values
                .take(row)
                .map(|value| Field::convert_int96(about, *value)),
            Self::Bytes(values) => values
                .take(row)
                .map(|value| Field::convert_byte_array(about, value.clone()))
                .transpose()?,
            Self::FixedBytes(values) => {
                let convert = |value: &FixedLenByteArray| {
                    Field::convert_byte_array(about, value.clone().into())
                };
                values.take(row).map(convert).transpose()?
            }
        };
        Ok(field.map_or(Some(Cell::Missing), |field| column.kind.cell(field)))
    }
}

/// Some rows of all columns.
pub(crate) struct ColumnBatch {
    columns: Arc<[TableColumn]>,
    values: Vec<ColumnValues>,
    /// Rows of the file before these.
    before: u64,
    rows: usize,
    next: usize,
}

impl ColumnBatch {
    pub(super) fn new(
        columns: Arc<[TableColumn]>,
        values: Vec<ColumnValues>,
        before: u64,
        rows: usize,
    ) -> Self {
        Self {
            columns,
            values,
            before,
            rows,
            next: 0,
        }
    }

    /// Reads the next row; false behind the last.
    pub(super) fn read(&mut self, record: &mut TableRecord) -> Result<bool, ColumnFault> {
        if self.next == self.rows {
            return Ok(false);
        }
        let row = self.next;
        self.next += 1;
        record.line = self.before + self.next as u64;
        record.cells.clear();
        for (at, (values, column)) in self.values.iter_mut().zip(self.columns.iter()).enumerate() {
            match values.cell(row, column) {
                Ok(Some(cell)) => record.cells.push(cell),
                Ok(None) => return Err(ColumnFault::NotUtf8 { column: at }),
                Err(_) => return Err(ColumnFault::Broken),
            }
        }
        Ok(true)
    }
}
