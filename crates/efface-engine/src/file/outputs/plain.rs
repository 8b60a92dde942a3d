//! How files are opened whose names the program chooses: the files beside a model, of a folder of
//! models and of a server. Nothing that somebody else puts under such a name is written through,
//! and a pipe does not make a command wait.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

use crate::file::paths::{folder_of, resolve};

/// Opens a plain file for reading. Symbolic links are followed. Anything that is no plain file is
/// an error of the kind `InvalidInput`.
pub fn open_plain(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), true)
}

/// Opens a plain file for reading. A symbolic link is an error as well.
pub(crate) fn open_unlinked(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), false)
}

/// Opens a plain file to overwrite its content, so that nothing elsewhere is overwritten: a
/// symbolic link is an error. The caller decides what becomes of a file with a second name.
pub(crate) fn open_to_overwrite(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true).write(true), false)
}

/// Overwrites a file with zeros and removes it. A file that has another name only loses this one,
/// and so does what a link leads to. A file that is not there is removed already.
pub fn remove_overwritten(path: &Path) -> io::Result<()> {
    let remove = || -> io::Result<()> {
        let found = std::fs::symlink_metadata(path)?;
        if found.is_file() && is_only_name(&found) {
            overwrite(&mut open_to_overwrite(path)?, found.len())?;
        }
        std::fs::remove_file(path)
    };
    match remove() {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Zeros over all of a file, on disk.
pub(crate) fn overwrite(file: &mut File, length: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    file.rewind()?;
    let mut left = length;
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        file.write_all(&zeros[..now as usize])?;
        left -= now;
    }
    file.sync_data()
}

/// Opens a file without waiting for the other end of a pipe, and returns an error unless it is a
/// plain file.
fn open(path: &Path, options: &mut OpenOptions, follow: bool) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let links = if follow {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let flags = OFlags::NONBLOCK | links;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits() as i32);
    }
    #[cfg(not(unix))]
    let _ = follow;
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_plain())
    }
}

/// The error for a path where something else than a plain file lies.
fn not_plain() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no plain file")
}

/// A lock on a file that is read, changed and replaced as a whole: whoever does this holds the lock
/// from reading to replacing, so that no change is lost. The file itself cannot be locked, because
/// another one takes its name. The lock is a hidden file beside it, which is there only while it is
/// held.
#[derive(Debug)]
pub struct ReplaceLock {
    file: File,
    path: PathBuf,
}

impl ReplaceLock {
    /// Waits until nobody else holds the lock of the file at `path`, or where a link of that name
    /// points.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let target = resolve(path)?;
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(".efface-lock");
        let path = target.with_file_name(name);
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, super::PRIVATE_MODE);
            let file = open(&path, &mut options, false)?;
            file.lock()?;
            // The holder before removed the file, and somebody may hold a new one by now.
            if !has_no_name(&file.metadata()?) {
                return Ok(Self { file, path });
            }
        }
    }
}

impl Drop for ReplaceLock {
    fn drop(&mut self) {
        // Where a removed file cannot be told from one that has its name, the name stays.
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
pub(super) fn names_of(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(found)
}

/// Names are not counted here.
#[cfg(not(unix))]
pub(super) fn names_of(_: &Metadata) -> u64 {
    1
}

/// Returns true if an open file lies under one name only.
pub(crate) fn is_only_name(found: &Metadata) -> bool {
    names_of(found) == 1
}

/// Returns true if a file has a name that is no temporary one of ours in the same folder: a file
/// that is about to be replaced has a second name for a moment ([`super::ReplacedFile`]).
pub(crate) fn has_foreign_name(path: &Path, found: &Metadata) -> bool {
    if is_only_name(found) {
        return false;
    }
    let entries = std::fs::read_dir(folder_of(path)).into_iter().flatten();
    let ours = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let is_temporary = name
            .to_str()
            .is_some_and(|name| name.starts_with('.') && name.ends_with(super::SUFFIX));
        is_temporary && entry.metadata().is_ok_and(|other| is_same(&other, found))
    });
    ours.count() as u64 + 1 < names_of(found)
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Every file has one name here.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Returns true if an open file was removed.
pub(super) fn has_no_name(found: &Metadata) -> bool {
    names_of(found) == 0
}
