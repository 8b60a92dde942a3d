//! Compression by extension, and the count of bytes taken from the file underneath it.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a text file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one member or several.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The compression that a file name tells: `.gz`, `.zst` or neither.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        match path
            .extension()
            .and_then(|e| e.to_str())
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The name for messages, `None` for plain files.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// The bytes inside. Decoders work in fixed windows, so a small file that unpacks to a huge one
    /// costs time but no memory; zstd refuses windows above 128 MiB by itself.
    pub(crate) fn unpack(self, raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => raw,
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(raw))),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(raw)?),
        })
    }
}

/// How far the current pass over a source has come. Clones share one count, so that a progress bar
/// on another thread can follow.
#[derive(Debug, Clone, Default)]
pub struct ReadProgress {
    read: Arc<AtomicU64>,
    size: u64,
}

impl ReadProgress {
    pub(crate) fn new(size: u64) -> Self {
        Self {
            read: Arc::default(),
            size,
        }
    }

    /// Bytes taken from the file in the current pass, before decompression. For Parquet, whose
    /// columns lie apart, it is the share of rows read, times the size.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.read.store(bytes, Ordering::Relaxed);
    }

    /// Sets the count back and lets `raw` drive it.
    pub(crate) fn count(&self, raw: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        self.set(0);
        Box::new(CountedReader {
            raw,
            read: Arc::clone(&self.read),
        })
    }
}

struct CountedReader<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_packed_bytes_and_starts_again() {
        let text = vec![b'a'; 100_000];
        let packed = zstd::encode_all(&text[..], 3).unwrap();
        let progress = ReadProgress::new(packed.len() as u64);
        for _ in 0..2 {
            let mut reader = Compression::Zstd
                .unpack(progress.count(io::Cursor::new(packed.clone())))
                .unwrap();
            assert_eq!(progress.bytes_read(), 0);
            let mut back = Vec::new();
            reader.read_to_end(&mut back).unwrap();
            assert_eq!(
                (back == text, progress.bytes_read()),
                (true, progress.size())
            );
        }
    }
}
