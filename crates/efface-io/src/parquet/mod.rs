//! Parquet with flat columns, decoded column by column in batches of rows, without arrow, which
//! stays out of the build. At any time the pages that hold a batch of each column are in memory,
//! with their dictionaries.
//!
//! The decoder panics on some damaged files. The schema and the footer are checked first, and what
//! still panics is caught and reported as a broken file; with `panic = "abort"` it would end the
//! process.

mod cell;
mod columns;
mod format;
mod headers;
mod pages;

use std::cell::Cell;
use std::io::{Cursor, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use ::parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::Type;
use bytes::Bytes;

pub(crate) use self::columns::ColumnBatch;
use self::columns::{ColumnFault, OpenColumn, TableColumn};
use self::headers::PageFault;
use self::pages::CheckedFile;
use crate::TableRecord;
use crate::error::{Error, ReadFault, Result};
use crate::source::{InputOrigin, SourceInput};

/// Bytes of a batch of rows, about.
const BATCH_BYTES: u64 = 4 << 20;

/// Rows of a batch, at most.
const BATCH_ROWS: u64 = 8192;

pub(crate) struct ParquetReader {
    input: SourceInput,
    /// None where all there is to read is a batch.
    file: Option<OpenFile>,
    batch: Option<ColumnBatch>,
}

/// A file whose schema and footer are sound.
struct OpenFile {
    file: CheckedFile,
    columns: Arc<[TableColumn]>,
    /// The row group that comes next.
    next_group: usize,
    /// The columns of the current one, and the rows that are left in it.
    open: Vec<OpenColumn>,
    left: u64,
    batch_rows: u64,
    /// Rows that were decoded.
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
            InputOrigin::File(_) => Box::new(input.open_file()?),
            InputOrigin::Memory(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
            InputOrigin::Stream(_) => return Err(input.fault(ReadFault::NotParquet)),
        };
        if !headers::footer_is_bounded(&mut plain).map_err(unreadable)? {
            return Err(input.fault(ReadFault::NotParquet));
        }
        let opened = guard(|| {
            Ok(match &input.origin {
                InputOrigin::File(_) => boxed(SerializedFileReader::new(input.open_file()?)),
                InputOrigin::Memory(bytes) => boxed(SerializedFileReader::new(Bytes::from_owner(
                    Arc::clone(bytes),
                ))),
                InputOrigin::Stream(_) => return Err(input.fault(ReadFault::NotParquet)),
            })
        });
        let file = match opened {
            Some(Ok(Ok(file))) => file,
            Some(Ok(Err(error))) => return Err(broken(input, &error, ReadFault::NotParquet)),
            Some(Err(error)) => return Err(error),
            None => return Err(input.fault(ReadFault::NotParquet)),
        };

        let fields = file
            .metadata()
            .file_metadata()
            .schema_descr()
            .root_schema()
            .get_fields()
            .to_vec();
        let columns: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        input.check_names(&columns, 1)?;
        for field in &fields {
            check_column(field).map_err(|fault| input.fault(fault))?;
        }
        let total = check_footer(
            file.metadata(),
            &columns,
            input.progress.size(),
            input.limits.memory,
        );
        let total = total.map_err(|fault| input.fault(fault))?;
        let limit = input.limits.memory;
        for chunk in file
            .metadata()
            .row_groups()
            .iter()
            .flat_map(|group| group.columns())
        {
            let (start, length) = chunk.byte_range();
            let checked =
                headers::check_pages(&mut plain, start, length, limit).map_err(unreadable)?;
            checked.map_err(|fault| {
                input.fault(match fault {
                    PageFault::Header => ReadFault::BrokenParquet { row: 0 },
                    PageFault::Large => ReadFault::TooMuchMemory { line: 0, limit },
                })
            })?;
        }
        let schema = file.metadata().file_metadata().schema_descr();
        let described = fields
            .iter()
            .zip(schema.columns())
            .map(|(field, about)| TableColumn::new(field, about));
        let file = OpenFile {
            columns: described.collect(),
            file: CheckedFile {
                file,
                memory: limit,
            },
            next_group: 0,
            open: Vec::new(),
            left: 0,
            batch_rows: BATCH_ROWS,
            row: 0,
            total,
        };
        Ok((
            columns,
            Self {
                input: input.clone(),
                file: Some(file),
                batch: None,
            },
        ))
    }

    /// The rows of a batch alone.
    pub(crate) fn of_batch(input: &SourceInput, batch: ColumnBatch) -> Self {
        Self {
            input: input.clone(),
            file: None,
            batch: Some(batch),
        }
    }

    /// Decodes the next rows of all columns.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ColumnBatch>> {
        let Self {
            input,
            file: Some(file),
            ..
        } = self
        else {
            return Ok(None);
        };
        let before = file.row;
        match guard(|| file.next_batch()) {
            Some(Ok(batch)) => {
                let size = input.progress.size();
                let share = u128::from(size) * u128::from(file.row) / u128::from(file.total.max(1));
                input.progress.set(if batch.is_none() {
                    size
                } else {
                    u64::try_from(share).unwrap_or(size)
                });
                Ok(batch)
            }
            Some(Err(error)) => Err(broken(
                input,
                &error,
                ReadFault::BrokenParquet { row: before },
            )),
            None => Err(input.fault(ReadFault::BrokenParquet { row: before })),
        }
    }

    pub(crate) fn read(&mut self, columns: &[String], record: &mut TableRecord) -> Result<bool> {
        loop {
            if let Some(batch) = &mut self.batch {
                match guard(|| batch.read(record)) {
                    Some(Ok(true)) => return Ok(true),
                    Some(Ok(false)) => self.batch = None,
                    Some(Err(ColumnFault::NotUtf8 { column })) => {
                        let fault = ReadFault::NotUtf8 {
                            line: record.line,
                            column: columns.get(column).cloned(),
                        };
                        return Err(self.input.fault(fault));
                    }
                    Some(Err(ColumnFault::Broken)) | None => {
                        return Err(self.input.fault(ReadFault::BrokenParquet {
                            row: record.line - 1,
                        }));
                    }
                }
            }
            self.batch = self.next_batch()?;
            if self.batch.is_none() {
                return Ok(false);
            }
        }
    }
}

impl OpenFile {
    fn next_batch(&mut self) -> std::result::Result<Option<ColumnBatch>, ParquetError> {
        while self.left == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(None);
            }
            let group = self.file.get_row_group(self.next_group)?;
            self.next_group += 1;
            self.left = u64::try_from(group.metadata().num_rows()).unwrap_or(0);
            let bytes = u64::try_from(group.metadata().total_byte_size())
                .unwrap_or(0)
                .max(8 * self.columns.len() as u64);
            self.batch_rows = (BATCH_BYTES.saturating_mul(self.left) / bytes).clamp(1, BATCH_ROWS);
            self.open.clear();
            for at in 0..self.columns.len() {
                self.open
                    .push(OpenColumn::new(group.get_column_reader(at)?));
            }
        }
        let rows = self.left.min(self.batch_rows);
        let decoded = self
            .open
            .iter_mut()
            .map(|column| column.decode(rows as usize));
        let values = decoded.collect::<std::result::Result<Vec<_>, ParquetError>>()?;
        let batch = ColumnBatch::new(Arc::clone(&self.columns), values, self.row, rows as usize);
        self.left -= rows;
        self.row += rows;
        Ok(Some(batch))
    }
}

thread_local! {
    /// Whether this thread is in the decoder.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of the decoder; `None` when it panics. The decoder is dropped unused after that, so
/// nothing sees a state that the panic left half made. What the panic says is not printed: it may
/// hold bytes of a row.
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

/// The decoder's own words may hold bytes of the row, so only an error of the operating system is
/// passed on.
fn broken(input: &SourceInput, error: &ParquetError, otherwise: ReadFault) -> Error {
    let code = match error {
        ParquetError::External(cause) => cause
            .downcast_ref::<std::io::Error>()
            .and_then(|e| e.raw_os_error()),
        _ => None,
    };
    let line = if let ReadFault::BrokenParquet { row } = otherwise {
        row
    } else {
        0
    };
    match code {
        Some(code) => input.fault(ReadFault::Read {
            line,
            cause: std::io::Error::from_raw_os_error(code),
        }),
        None => input.fault(otherwise),
    }
}

/// Refuses nested columns, and the types on which the decoder would panic.
fn check_column(field: &Type) -> std::result::Result<(), ReadFault> {
    let info = field.get_basic_info();
    let column = || field.name().to_owned();
    if !field.is_primitive() || !info.has_repetition() || info.repetition() == Repetition::REPEATED
    {
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
            matches!(
                converted,
                C::NONE | C::UTF8 | C::ENUM | C::JSON | C::DECIMAL
            )
        }
        Physical::FIXED_LEN_BYTE_ARRAY => matches!(converted, C::NONE | C::DECIMAL),
        Physical::BOOLEAN | Physical::INT96 | Physical::FLOAT | Physical::DOUBLE => true,
    };
    if readable {
        return Ok(());
    }
    let what = format!("the type {converted} over {}", field.get_physical_type());
    Err(ReadFault::UnsupportedColumn {
        column: column(),
        what,
    })
}

/// Refuses row groups that point outside the file, do not hold one value a row, unpack to more than
/// memory should hold, or use a codec that is not built in; gives the number of rows.
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
                return Err(ReadFault::TooMuchMemory {
                    line: total,
                    limit: memory,
                });
            }
            if let codec @ (Compression::LZO | Compression::BROTLI(_)) = chunk.compression() {
                let what = format!("the codec {codec}");
                return Err(ReadFault::UnsupportedColumn {
                    column: column.clone(),
                    what,
                });
            }
        }
    }
    Ok(total)
}

fn lies_inside(chunk: &ColumnChunkMetaData, size: u64) -> bool {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    match (u64::try_from(start), u64::try_from(chunk.compressed_size())) {
        (Ok(start), Ok(length)) => start.checked_add(length).is_some_and(|end| end <= size),
        _ => false,
    }
}
