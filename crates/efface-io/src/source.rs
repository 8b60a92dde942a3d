//! A source: a file, or bytes in memory, that can be read again from its start.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use crate::dialect::check_separator;
use crate::error::{Error, ReadFault, Result};
use crate::machine::machine_memory;
use crate::stream::{StreamInput, is_read_once};
use crate::{
    Compression, FileFormat, ReadProgress, RecordPass, SparseExtent, SparseTable, TableBlocks,
    TableDialect,
};

/// How much a reader may hold in memory at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of one line, or of one CSV record with its quoted newlines; 64 MiB.
    pub line_bytes: usize,
    /// Columns of a CSV or Parquet file; 1,000,000.
    pub columns: usize,
    /// Distinct keys of a JSON lines file; 65,536.
    pub keys: usize,
    /// Bytes of one column name; 1,024.
    pub name_bytes: usize,
    /// Features: indices of an svmlight file lie below it, and words are hashed into as many at
    /// most; 16,777,216.
    pub features: u32,
    /// Bytes of the rows that are in memory at a time, and of one unpacked column of a Parquet row
    /// group; a quarter of what this process may take ([`machine_memory`]), because a fit in memory
    /// holds rows up to three times.
    pub memory: u64,
    /// Bytes of the sums of a model that is fitted in batches, which follow from its features
    /// alone; three quarters of what this process may take.
    pub sums: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        let quarter = machine_memory() / 4;
        Self {
            line_bytes: 64 << 20,
            columns: 1_000_000,
            keys: 65_536,
            name_bytes: 1_024,
            features: 1 << 24,
            memory: quarter,
            sums: quarter * 3,
        }
    }
}

/// Opens a file. The extension tells the compression, and the format unless one is given.
///
/// # Errors
/// The file cannot be opened or is empty, or its extension tells no format.
pub fn open(path: &Path, format: Option<FileFormat>) -> Result<Source> {
    Source::open(path, format)
}

/// A file that can be read in any number of passes, one after the other.
#[derive(Debug, Clone)]
pub struct Source {
    format: FileFormat,
    input: SourceInput,
}

impl Source {
    /// Opens a file, see [`open`].
    ///
    /// # Errors
    /// The file cannot be opened or is empty, or its extension tells no format.
    pub fn open(path: &Path, format: Option<FileFormat>) -> Result<Self> {
        let refused = |cause: io::Error| Error::new(path, ReadFault::Open(cause));
        let metadata = std::fs::metadata(path).map_err(refused)?;
        if metadata.is_dir() {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        // Opening a pipe would wait for somebody who writes to it, and it can be read once only.
        if !metadata.is_file() {
            let problem = "it is no plain file, which can be read again from its start";
            return Err(refused(io::Error::new(
                io::ErrorKind::InvalidInput,
                problem,
            )));
        }
        File::open(path).map_err(refused)?;
        Self::new(
            path.to_owned(),
            InputOrigin::File(FileStamp::of(&metadata)),
            metadata.len(),
            format,
        )
    }

    /// Takes bytes as if they were the file `name`; the name tells compression and format as it
    /// does for [`open`].
    ///
    /// # Errors
    /// There are no bytes, or the name tells no format.
    pub fn from_bytes(
        name: &str,
        bytes: impl Into<Vec<u8>>,
        format: Option<FileFormat>,
    ) -> Result<Self> {
        let bytes: Arc<[u8]> = bytes.into().into();
        let size = bytes.len() as u64;
        Self::new(
            PathBuf::from(name),
            InputOrigin::Memory(bytes),
            size,
            format,
        )
    }

    /// Takes a stream as if it were the file `name`, without knowing its size. Passes that go
    /// beyond its first megabytes put it into a temporary file, unless
    /// [`read_once`](Self::read_once) says that there will be one only. Parquet cannot be read this
    /// way.
    ///
    /// # Errors
    /// There are no bytes, or the name tells no format, or that of a format which is not read from
    /// its start.
    pub fn from_stream(
        name: &str,
        stream: Box<dyn Read + Send>,
        format: Option<FileFormat>,
    ) -> Result<Self> {
        let stream = StreamInput::new(stream);
        let is_empty = stream.is_empty();
        let source = Self::new(PathBuf::from(name), InputOrigin::Stream(stream), 1, format)?;
        match is_empty {
            _ if source.format == FileFormat::Parquet => {
                Err(source.input.fault(ReadFault::NotParquet))
            }
            Ok(true) => Err(source.input.fault(ReadFault::Empty)),
            Ok(false) => Ok(source),
            Err(cause) => Err(source.input.broken(cause, 0)),
        }
    }

    /// Says that the next pass is the only one, so that a stream need not be kept.
    pub fn read_once(&self) {
        if let InputOrigin::Stream(stream) = &self.input.origin {
            stream.read_once();
        }
    }

    fn new(
        path: PathBuf,
        origin: InputOrigin,
        size: u64,
        format: Option<FileFormat>,
    ) -> Result<Self> {
        let compression = Compression::of_path(&path);
        let format = format.or_else(|| FileFormat::of_path(&path));
        let progress = ReadProgress::new(if matches!(origin, InputOrigin::Stream(_)) {
            0
        } else {
            size
        });
        let input = SourceInput {
            path: path.into(),
            origin,
            compression,
            progress,
            limits: ReadLimits::default(),
            dialect: Arc::default(),
            keys: Arc::default(),
        };
        let Some(format) = format else {
            return Err(input.fault(ReadFault::UnknownFormat));
        };
        match (format, compression.name()) {
            (FileFormat::Parquet, Some(codec)) => {
                Err(input.fault(ReadFault::CompressedParquet(codec)))
            }
            _ if size == 0 => Err(input.fault(ReadFault::Empty)),
            _ => Ok(Self { format, input }),
        }
    }

    /// Refuses a file that is not as it was when it was opened: a pass over it may have seen rows
    /// of before and after the change.
    ///
    /// # Errors
    /// The file has another size, was written to or replaced since, or is gone.
    pub fn check_unchanged(&self) -> Result<()> {
        match self.input.origin {
            InputOrigin::File(_) => self.input.open_file().map(drop),
            InputOrigin::Memory(_) | InputOrigin::Stream(_) => Ok(()),
        }
    }

    /// Replaces the bounds on memory.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.input.limits = limits;
        // What was learned under other limits may break these.
        self.input.keys = Arc::default();
        self
    }

    /// Says how a CSV or TSV file is written.
    ///
    /// # Errors
    /// The separator is a quote, a line break, or no ASCII character.
    pub fn with_dialect(mut self, dialect: TableDialect) -> Result<Self> {
        if let Some(separator) = dialect.separator {
            check_separator(separator).map_err(|fault| self.input.fault(fault))?;
        }
        self.input.dialect = dialect.into();
        Ok(self)
    }

    /// The bounds on memory.
    #[must_use]
    pub fn limits(&self) -> ReadLimits {
        self.input.limits
    }

    /// The name that the source was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.input.path
    }

    /// The format, given or told by the extension.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// The compression that the extension tells.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.input.compression
    }

    /// Whether [`sparse`](Self::sparse) reads this source, instead of [`table`](Self::table).
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.format.is_sparse()
    }

    /// How far the latest pass has come. The handle stays valid over passes, and each pass sets it
    /// back.
    #[must_use]
    pub fn progress(&self) -> ReadProgress {
        self.input.progress.clone()
    }

    /// Starts a pass over rows of cells. For JSON lines this first reads the whole file to learn
    /// its keys; [`RecordPass::rewind`] does not do so again.
    ///
    /// # Errors
    /// The source is sparse, or the start of the file (for JSON lines, any of it) is not what the
    /// format wants.
    pub fn table(&self) -> Result<RecordPass> {
        if self.is_sparse() {
            let fault = ReadFault::Shape {
                found: "sparse vectors",
                wanted: "a table",
            };
            return Err(self.input.fault(fault));
        }
        RecordPass::open(&self.input, self.format)
    }

    /// Starts a pass over rows of cells in blocks of about so many bytes, which several threads can
    /// parse side by side.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn blocks(&self, bytes: usize) -> Result<TableBlocks> {
        Ok(TableBlocks::new(self.table()?, bytes))
    }

    /// Starts a pass over sparse vectors.
    ///
    /// # Errors
    /// The source is a table, or it cannot be opened.
    pub fn sparse(&self) -> Result<SparseTable> {
        if !self.is_sparse() {
            let fault = ReadFault::Shape {
                found: "a table",
                wanted: "sparse vectors",
            };
            return Err(self.input.fault(fault));
        }
        SparseTable::open(&self.input)
    }

    /// Reads a sparse source once to learn its number of rows and the range of its indices.
    ///
    /// # Errors
    /// Whatever [`SparseTable::read`] finds wrong.
    pub fn scan(&self) -> Result<SparseExtent> {
        self.sparse()?.extent()
    }
}

/// What every reader keeps of its source.
#[derive(Debug, Clone)]
pub(crate) struct SourceInput {
    pub(crate) path: Arc<Path>,
    pub(crate) origin: InputOrigin,
    pub(crate) compression: Compression,
    pub(crate) progress: ReadProgress,
    pub(crate) limits: ReadLimits,
    pub(crate) dialect: Arc<TableDialect>,
    /// The keys of a JSON lines file, once a pass has learned them.
    pub(crate) keys: Arc<OnceLock<Box<[String]>>>,
}

#[derive(Debug, Clone)]
pub(crate) enum InputOrigin {
    File(FileStamp),
    Memory(Arc<[u8]>),
    Stream(StreamInput),
}

/// What tells a file from the one that it was: its size, when it was written to, and which of the
/// file system's it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    written: Option<SystemTime>,
    number: u64,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let number = 0;
        Self {
            size: metadata.len(),
            written: metadata.modified().ok(),
            number,
        }
    }
}

impl SourceInput {
    pub(crate) fn fault(&self, fault: ReadFault) -> Error {
        Error::new(&self.path, fault)
    }

    /// The file, unless it is no longer the one that was opened first.
    pub(crate) fn open_file(&self) -> Result<File> {
        let file = File::open(&self.path).map_err(|e| self.fault(ReadFault::Open(e)))?;
        let metadata = file
            .metadata()
            .map_err(|e| self.fault(ReadFault::Open(e)))?;
        match &self.origin {
            InputOrigin::File(stamp) if *stamp != FileStamp::of(&metadata) => {
                Err(self.fault(ReadFault::Changed))
            }
            _ => Ok(file),
        }
    }

    /// The decompressed bytes from the start; the count of raw bytes starts again.
    pub(crate) fn open_text(&self) -> Result<Box<dyn Read + Send>> {
        let raw = match &self.origin {
            InputOrigin::File(_) => self.progress.count(self.open_file()?),
            InputOrigin::Memory(bytes) => self.progress.count(Cursor::new(Arc::clone(bytes))),
            InputOrigin::Stream(stream) => self.progress.count(stream.pass()),
        };
        self.compression.unpack(raw).map_err(|e| self.broken(e, 0))
    }

    /// An error in the middle of the file. What the operating system reports carries its number;
    /// anything else comes from the decoder, and then the stream is at fault and not the disk.
    pub(crate) fn broken(&self, cause: io::Error, line: u64) -> Error {
        match self.compression.name() {
            _ if is_read_once(&cause) => self.fault(ReadFault::ReadOnce),
            Some(codec) if cause.raw_os_error().is_none() => {
                self.fault(ReadFault::BrokenStream { codec, line })
            }
            _ => self.fault(ReadFault::Read { line, cause }),
        }
    }

    /// Refuses column names that are too many, too long or not distinct; `line` is where they
    /// stand.
    pub(crate) fn check_names(&self, names: &[String], line: u64) -> Result<()> {
        let ReadLimits {
            columns,
            name_bytes,
            ..
        } = self.limits;
        if names.len() > columns {
            return Err(self.fault(ReadFault::TooManyColumns {
                line,
                limit: columns,
            }));
        }
        if names.iter().any(|name| name.len() > name_bytes) {
            return Err(self.fault(ReadFault::LongName {
                line,
                limit: name_bytes,
            }));
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        let twice = |pair: &[&String]| (pair[0] == pair[1]).then(|| pair[0].clone());
        let mut shared: Vec<String> = sorted.windows(2).filter_map(twice).collect();
        shared.dedup();
        if shared.is_empty() {
            Ok(())
        } else {
            Err(self.fault(ReadFault::DuplicateColumns(shared)))
        }
    }
}
