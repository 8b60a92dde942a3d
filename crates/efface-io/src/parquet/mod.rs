//! Parquet with flat columns, read row by row through the record interface of the `parquet` crate, so that
//! arrow stays out of the build. At any time one page of each column is in memory, with its dictionary.
//!
//! The decoder panics on some damaged files. The schema and the footer are checked first, and what still
//! panics is caught and reported as a broken file; with `panic = "abort"` it would end the process.

mod cell;
mod format;
mod headers;
mod pages;

use std::cell::Cell;
use std::io::{Cursor, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ::parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Row;
use ::parquet::record::reader::RowIter;
use ::parquet::schema::types::Type;
use bytes::Bytes;
use efface::features::Cell as TableCell;

use self::headers::PageFault;
use self::pages::CheckedFile;
use crate::TableRecord;
use crate::error::{Error, ReadFault, Result};
use crate::source::{InputOrigin, SourceInput};

pub(crate) struct ParquetReader {
    input: SourceInput,
    rows: RowIter<'static>,
    kinds: Vec<cell::ColumnKind>,
    row: u64,
    total: u64,
}

/// A file, or bytes in memory.
trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl ParquetReader {
    /// Opens the input and checks its schema and its footer.
    pub(crate) fn open(input: &SourceInput) -> Result<(Vec<String>, Self)> {
        input.progress.set(0);
        let unreadable = |cause| input.fault(ReadFault::Read { line: 0, cause });
        let mut plain: Box<dyn ReadSeek> = match &input.origin {
            InputOrigin::File => Box::new(input.open_file()?),
            InputOrigin::Memory(bytes) => Box::new(Cursor::new(std::sync::Arc::clone(bytes))),
        };
        if !headers::footer_is_bounded(&mut plain).map_err(unreadable)? {
            return Err(input.fault(ReadFault::NotParquet));
        }
        let opened = guard(|| {
            Ok(match &input.origin {
                InputOrigin::File => boxed(SerializedFileReader::new(input.open_file()?)),
                InputOrigin::Memory(bytes) => {
                    boxed(SerializedFileReader::new(Bytes::from_owner(std::sync::Arc::clone(bytes))))
                }
            })
        });
        let file = match opened {
            Some(Ok(Ok(file))) => file,
            Some(Ok(Err(error))) => return Err(broken(input, &error, ReadFault::NotParquet)),
            Some(Err(error)) => return Err(error),
            None => return Err(input.fault(ReadFault::NotParquet)),
        };

        let fields = file.metadata().file_metadata().schema_descr().root_schema().get_fields().to_vec();
        let columns: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        input.check_names(&columns, 1)?;
        for field in &fields {
            check_column(field).map_err(|fault| input.fault(fault))?;
        }
        let total = check_footer(file.metadata(), &columns, input.progress.size(), input.limits.memory);
        let total = total.map_err(|fault| input.fault(fault))?;
        let limit = input.limits.memory;
        for chunk in file.metadata().row_groups().iter().flat_map(|group| group.columns()) {
            let (start, length) = chunk.byte_range();
            let checked = headers::check_pages(&mut plain, start, length, limit).map_err(unreadable)?;
            checked.map_err(|fault| {
                input.fault(match fault {
                    PageFault::Header => ReadFault::BrokenParquet { row: 0 },
                    PageFault::Large => ReadFault::TooMuchMemory { line: 0, limit },
                })
            })?;
        }
        let kinds = fields.iter().map(|field| cell::ColumnKind::of(field)).collect();
        let rows = RowIter::from_file_into(Box::new(CheckedFile { file, memory: limit }));
        Ok((columns, Self { input: input.clone(), rows, kinds, row: 0, total }))
    }

    pub(crate) fn read(&mut self, columns: &[String], record: &mut TableRecord) -> Result<bool> {
        let Self { input, rows, .. } = self;
        let row: Row = match guard(|| rows.next()) {
            Some(None) => {
                input.progress.set(input.progress.size());
                return Ok(false);
            }
            Some(Some(Ok(row))) => row,
            Some(Some(Err(error))) => {
                return Err(broken(input, &error, ReadFault::BrokenParquet { row: self.row }));
            }
            None => return Err(input.fault(ReadFault::BrokenParquet { row: self.row })),
        };
        self.row += 1;
        record.line = self.row;
        record.cells.clear();
        for ((_, field), (kind, column)) in row.into_columns().into_iter().zip(self.kinds.iter().zip(columns))
        {
            let not_utf8 = || ReadFault::NotUtf8 { line: self.row, column: Some(column.clone()) };
            let made: Option<TableCell> = kind.cell(field);
            record.cells.push(made.ok_or_else(|| self.input.fault(not_utf8()))?);
        }
        let share =
            u128::from(self.input.progress.size()) * u128::from(self.row) / u128::from(self.total.max(1));
        self.input.progress.set(u64::try_from(share).unwrap_or(u64::MAX));
        Ok(true)
    }
}

thread_local! {
    /// Whether this thread is in the decoder.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of the decoder; `None` when it panics. The decoder is dropped unused after that, so nothing sees
/// a state that the panic left half made. What the panic says is not printed: it may hold bytes of a row.
fn guard<T>(run: impl FnOnce() -> T) -> Option<T> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(run)).ok();
    GUARDED.set(outer);
    done
}

fn boxed<F: FileReader + 'static>(
    opened: std::result::Result<F, ParquetError>,
) -> std::result::Result<Box<dyn FileReader>, ParquetError> {
    opened.map(|file| Box::new(file) as Box<dyn FileReader>)
}

/// The decoder's own words may hold bytes of the row, so only an error of the operating system is passed on.
fn broken(input: &SourceInput, error: &ParquetError, otherwise: ReadFault) -> Error {
    let code = match error {
        ParquetError::External(cause) => {
            cause.downcast_ref::<std::io::Error>().and_then(|e| e.raw_os_error())
        }
        _ => None,
    };
    let line = if let ReadFault::BrokenParquet { row } = otherwise { row } else { 0 };
    match code {
        Some(code) => input.fault(ReadFault::Read { line, cause: std::io::Error::from_raw_os_error(code) }),
        None => input.fault(otherwise),
    }
}

/// Refuses nested columns, and the types on which the decoder would panic.
fn check_column(field: &Type) -> std::result::Result<(), ReadFault> {
    let info = field.get_basic_info();
    let column = || field.name().to_owned();
    if !field.is_primitive() || !info.has_repetition() || info.repetition() == Repetition::REPEATED {
        return Err(ReadFault::NestedColumn { column: column() });
    }
    use ConvertedType as C;
    let converted = info.converted_type();
    let readable = match field.get_physical_type() {
        Physical::INT32 => matches!(
            converted,
            C::NONE
                | C::INT_8
                | C::INT_16
                | C::INT_32
                | C::UINT_8
                | C::UINT_16
                | C::UINT_32
                | C::DATE
                | C::TIME_MILLIS
                | C::DECIMAL
        ),
        Physical::INT64 => matches!(
            converted,
            C::NONE
                | C::INT_64
                | C::UINT_64
                | C::TIME_MICROS
                | C::TIMESTAMP_MILLIS
                | C::TIMESTAMP_MICROS
                | C::DECIMAL
        ),
        Physical::BYTE_ARRAY => {
            matches!(converted, C::NONE | C::UTF8 | C::ENUM | C::JSON | C::DECIMAL)
        }
        Physical::FIXED_LEN_BYTE_ARRAY => matches!(converted, C::NONE | C::DECIMAL),
        Physical::BOOLEAN | Physical::INT96 | Physical::FLOAT | Physical::DOUBLE => true,
    };
    if readable {
        return Ok(());
    }
    let what = format!("the type {converted} over {}", field.get_physical_type());
    Err(ReadFault::UnsupportedColumn { column: column(), what })
}

/// Refuses row groups that point outside the file, do not hold one value a row, unpack to more than memory should
/// hold, or use a codec that is not built in; gives the number of rows.
fn check_footer(
    footer: &ParquetMetaData,
    columns: &[String],
    size: u64,
    memory: u64,
) -> std::result::Result<u64, ReadFault> {
    let mut total = 0_u64;
    for group in footer.row_groups() {
        let rows = u64::try_from(group.num_rows()).map_err(|_| ReadFault::NotParquet)?;
        total = total.checked_add(rows).ok_or(ReadFault::NotParquet)?;
        if group.num_columns() != columns.len() {
            return Err(ReadFault::NotParquet);
        }
        for (chunk, column) in group.columns().iter().zip(columns) {
            if chunk.num_values() != group.num_rows() || !lies_inside(chunk, size) {
                return Err(ReadFault::NotParquet);
            }
            if u64::try_from(chunk.uncompressed_size()).map_or(true, |unpacked| unpacked > memory) {
                return Err(ReadFault::TooMuchMemory { line: total, limit: memory });
            }
            if let codec @ (Compression::LZO | Compression::BROTLI(_)) = chunk.compression() {
                let what = format!("the codec {codec}");
                return Err(ReadFault::UnsupportedColumn { column: column.clone(), what });
            }
        }
    }
    Ok(total)
}

fn lies_inside(chunk: &ColumnChunkMetaData, size: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    match (u64::try_from(start), u64::try_from(chunk.compressed_size())) {
        (Ok(start), Ok(length)) => start.checked_add(length).is_some_and(|end| end <= size),
        _ => false,
    }
}
