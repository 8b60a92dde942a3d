//! A source: a file, or bytes in memory, that can be read again from its start.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dialect::check_separator;
use crate::error::{Error, ReadFault, Result};
use crate::{Compression, FileFormat, ReadProgress, RecordPass, SparseExtent, SparseTable, TableDialect};

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
    /// Features: indices of an svmlight file lie below it, and words are hashed into as many at most; 16,777,216.
    pub features: u32,
    /// Bytes of the rows that are in memory at a time, and of one unpacked column of a Parquet row group; 16 GiB.
    pub memory: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            line_bytes: 64 << 20,
            columns: 1_000_000,
            keys: 65_536,
            name_bytes: 1_024,
            features: 1 << 24,
            memory: 16 << 30,
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
            return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        File::open(path).map_err(refused)?;
        Self::new(path.to_owned(), InputOrigin::File, metadata.len(), format)
    }

    /// Takes bytes as if they were the file `name`; the name tells compression and format as it does for
    /// [`open`].
    ///
    /// # Errors
    /// There are no bytes, or the name tells no format.
    pub fn from_bytes(name: &str, bytes: impl Into<Vec<u8>>, format: Option<FileFormat>) -> Result<Self> {
        let bytes: Arc<[u8]> = bytes.into().into();
        let size = bytes.len() as u64;
        Self::new(PathBuf::from(name), InputOrigin::Memory(bytes), size, format)
    }

    fn new(path: PathBuf, origin: InputOrigin, size: u64, format: Option<FileFormat>) -> Result<Self> {
        let compression = Compression::of_path(&path);
        let format = format.or_else(|| FileFormat::of_path(&path));
        let progress = ReadProgress::new(size);
        let input = SourceInput {
            path: path.into(),
            origin,
            compression,
            progress,
            limits: ReadLimits::default(),
            dialect: Arc::default(),
        };
        let Some(format) = format else { return Err(input.fault(ReadFault::UnknownFormat)) };
        match (format, compression.name()) {
            (FileFormat::Parquet, Some(codec)) => Err(input.fault(ReadFault::CompressedParquet(codec))),
            _ if size == 0 => Err(input.fault(ReadFault::Empty)),
            _ => Ok(Self { format, input }),
        }
    }

    /// Replaces the bounds on memory.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.input.limits = limits;
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

    /// How far the latest pass has come. The handle stays valid over passes, and each pass sets it back.
    #[must_use]
    pub fn progress(&self) -> ReadProgress {
        self.input.progress.clone()
    }

    /// Starts a pass over rows of cells. For JSON lines this first reads the whole file to learn its keys;
    /// [`RecordPass::rewind`] does not do so again.
    ///
    /// # Errors
    /// The source is sparse, or the start of the file (for JSON lines, any of it) is not what the format
    /// wants.
    pub fn table(&self) -> Result<RecordPass> {
        if self.is_sparse() {
            let fault = ReadFault::Shape { found: "sparse vectors", wanted: "a table" };
            return Err(self.input.fault(fault));
        }
        RecordPass::open(&self.input, self.format)
    }

    /// Starts a pass over sparse vectors.
    ///
    /// # Errors
    /// The source is a table, or it cannot be opened.
    pub fn sparse(&self) -> Result<SparseTable> {
        if !self.is_sparse() {
            let fault = ReadFault::Shape { found: "a table", wanted: "sparse vectors" };
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
}

#[derive(Debug, Clone)]
pub(crate) enum InputOrigin {
    File,
    Memory(Arc<[u8]>),
}

impl SourceInput {
    pub(crate) fn fault(&self, fault: ReadFault) -> Error {
        Error::new(&self.path, fault)
    }

    /// The file, unless it is no longer the one that was opened first.
    pub(crate) fn open_file(&self) -> Result<File> {
        let file = File::open(&self.path).map_err(|e| self.fault(ReadFault::Open(e)))?;
        let metadata = file.metadata().map_err(|e| self.fault(ReadFault::Open(e)))?;
        if metadata.len() == self.progress.size() { Ok(file) } else { Err(self.fault(ReadFault::Changed)) }
    }

    /// The decompressed bytes from the start; the count of raw bytes starts again.
    pub(crate) fn open_text(&self) -> Result<Box<dyn Read + Send>> {
        let raw = match &self.origin {
            InputOrigin::File => self.progress.count(self.open_file()?),
            InputOrigin::Memory(bytes) => self.progress.count(Cursor::new(Arc::clone(bytes))),
        };
        self.compression.unpack(raw).map_err(|e| self.broken(e, 0))
    }

    /// An error in the middle of the file. What the operating system reports carries its number; anything
    /// else comes from the decoder, and then the stream is at fault and not the disk.
    pub(crate) fn broken(&self, cause: io::Error, line: u64) -> Error {
        match self.compression.name() {
            Some(codec) if cause.raw_os_error().is_none() => {
                self.fault(ReadFault::BrokenStream { codec, line })
            }
            _ => self.fault(ReadFault::Read { line, cause }),
        }
    }

    /// Refuses column names that are too many, too long or not distinct; `line` is where they stand.
    pub(crate) fn check_names(&self, names: &[String], line: u64) -> Result<()> {
        let ReadLimits { columns, name_bytes, .. } = self.limits;
        if names.len() > columns {
            return Err(self.fault(ReadFault::TooManyColumns { line, limit: columns }));
        }
        if names.iter().any(|name| name.len() > name_bytes) {
            return Err(self.fault(ReadFault::LongName { line, limit: name_bytes }));
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        let twice = |pair: &[&String]| (pair[0] == pair[1]).then(|| pair[0].clone());
        let mut shared: Vec<String> = sorted.windows(2).filter_map(twice).collect();
        shared.dedup();
        if shared.is_empty() { Ok(()) } else { Err(self.fault(ReadFault::DuplicateColumns(shared))) }
    }
}
