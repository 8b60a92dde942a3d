//! Pages at the end of a new file, written past SQLite while it does not look: the draft of a model
//! is nobody else's, and between two of its transactions SQLite keeps nothing that the counters in
//! the header do not tell it to read again
//! (<https://sqlite.org/fileformat2.html#the_database_header>).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// Bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 1 << 20;

/// Bytes after which the disk is to begin with what was written. It works while rows are read then,
/// and has little left to do when the whole file is synced.
const TAKEN_BY_DISK: usize = 1 << 25;

/// The page at this byte is never used: SQLite's locks lie there.
const LOCKS: u64 = 1 << 30;

/// Bytes of the header, and where it tells what changes: how often the file did, how many pages it
/// has, and for which of its changes that holds.
const HEADER: usize = 100;
const CHANGES: usize = 24;
const PAGES: usize = 28;
const VALID_FOR: usize = 92;

/// Adds pages to a file.
pub(super) struct PageWriter {
    path: PathBuf,
    file: File,
    size: usize,
    /// The number of the next page, counted from 1.
    next: u32,
    /// Pages that are not written yet.
    waiting: Vec<u8>,
    /// Bytes that were written since the disk was last asked to take them.
    untaken: usize,
    disk: Option<JoinHandle<io::Result<()>>>,
}

impl PageWriter {
    /// Goes on behind the last page. SQLite must not be in a transaction, and begin none before
    /// [`finish`](Self::finish).
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        let size = usize::from(u16::from_be_bytes([header[16], header[17]]));
        let next = number_at(&header, PAGES);
        let path = path.to_owned();
        let mut writer = Self {
            path,
            file,
            size,
            next,
            waiting: Vec::new(),
            untaken: 0,
            disk: None,
        };
        writer.next = writer.after(writer.next)?;
        writer
            .file
            .seek(SeekFrom::Start(writer.place(writer.next)))?;
        Ok(writer)
    }

    /// Goes on behind what SQLite wrote since [`finish`](Self::finish).
    pub(super) fn resume(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// Bytes of a page.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The number that the next page will have.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The number behind this one.
    pub(super) fn after(&self, number: u32) -> io::Result<u32> {
        let step = if self.place(number) + self.size as u64 == LOCKS {
            2
        } else {
            1
        };
        number
            .checked_add(step)
            .ok_or_else(|| io::Error::other("the file has more pages than SQLite knows"))
    }

    fn place(&self, number: u32) -> u64 {
        (u64::from(number) - 1) * self.size as u64
    }

    /// Adds a page; gives its number.
    pub(super) fn append(&mut self, page: &[u8]) -> io::Result<u32> {
        let number = self.next;
        self.next = self.after(number)?;
        self.waiting.extend_from_slice(page);
        if self.next > number + 1 {
            self.waiting.resize(self.waiting.len() + self.size, 0);
        }
        if self.waiting.len() >= WRITTEN_AT_ONCE {
            self.flush()?;
        }
        Ok(number)
    }

    /// Writes a page that is in the file already.
    pub(super) fn replace(&mut self, number: u32, page: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.file.seek(SeekFrom::Start(self.place(number)))?;
        self.file.write_all(page)?;
        self.file.seek(SeekFrom::Start(self.place(self.next)))?;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.waiting)?;
        self.untaken += self.waiting.len();
        self.waiting.clear();
        if self.untaken >= TAKEN_BY_DISK && self.disk.as_ref().is_none_or(JoinHandle::is_finished) {
            self.await_disk()?;
            self.untaken = 0;
            let file = self.file.try_clone()?;
            self.disk = Some(thread::spawn(move || file.sync_data()));
        }
        Ok(())
    }

    /// What the disk made of what it was asked to take. The system tells of a failure once: whoever
    /// syncs the file later would not hear of it.
    fn await_disk(&mut self) -> io::Result<()> {
        match self.disk.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(taken)) => taken,
            None => Ok(()),
        }
    }

    /// Writes what waits, and tells SQLite that the file changed.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.await_disk()?;
        let pages = self.file.metadata()?.len() / self.size as u64;
        let mut header = [0; HEADER];
        self.file.rewind()?;
        self.file.read_exact(&mut header)?;
        let changes = number_at(&header, CHANGES).wrapping_add(1).to_be_bytes();
        header[CHANGES..][..4].copy_from_slice(&changes);
        header[PAGES..][..4].copy_from_slice(&(pages as u32).to_be_bytes());
        header[VALID_FOR..][..4].copy_from_slice(&changes);
        self.file.rewind()?;
        self.file.write_all(&header)
    }
}

fn number_at(header: &[u8; HEADER], at: usize) -> u32 {
    header[at..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
