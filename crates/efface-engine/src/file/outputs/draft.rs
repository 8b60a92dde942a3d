//! A file that appears under its name only when it is complete. Until then it has no name at all
//! where the system knows such files (Linux, most file systems), so that a killed process leaves
//! nothing behind; elsewhere it has a temporary one that the next command recognises. Only its
//! owner can read it, from the first byte on.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

use super::{PRIVATE_MODE, SUFFIX};
use crate::file::paths::{folder_of, resolve};
use crate::randomness::random_name;

/// A name for a temporary file beside `path`: hidden, never used before, and known to be ours.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let random = random_name::<8>().map_err(|error| io::Error::other(error.to_string()))?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{random}{SUFFIX}"));
    Ok(path.with_file_name(name))
}

/// An empty file under a temporary name, locked for as long as this lives: a name without a lock is
/// a leftover.
pub(crate) struct LockedName {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl LockedName {
    /// A new one beside `path`.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        loop {
            let path = temporary_name(path)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE_MODE);
            let file = options.open(&path)?;
            hold(&file);
            // Somebody may have swept the name away before it was held.
            if path.exists() {
                return Ok(Self { path, file });
            }
        }
    }
}

impl LockedName {
    /// Overwrites what was written and gives the name up.
    pub(crate) fn discard(&mut self) {
        // What cannot be removed now is swept by the next command.
        let length = self.file.metadata().map_or(0, |found| found.len());
        if super::overwrite(&mut self.file, length).is_ok() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file that another one is about to replace, under a second name: the blocks of a file that is
/// replaced are free, and hold what it held, unless it is overwritten. A process that dies on the
/// way leaves the name to be swept.
pub(crate) struct ReplacedFile(LockedName);

impl ReplacedFile {
    /// Keeps the file at `path`; None where there is none, or none that can be overwritten.
    pub(crate) fn keep(path: &Path) -> Option<Self> {
        let file = super::open_to_overwrite(path).ok()?;
        file.try_lock().ok()?;
        let second = temporary_name(path).ok()?;
        std::fs::hard_link(path, &second).ok()?;
        Some(Self(LockedName { path: second, file }))
    }

    /// Overwrites the file, which lies under no other name any more. One that does was not
    /// replaced, or is a copy that somebody made.
    pub(crate) fn discard(mut self) {
        if self
            .0
            .file
            .metadata()
            .is_ok_and(|found| super::is_only_name(&found))
        {
            self.0.discard();
        }
    }
}

impl Drop for ReplacedFile {
    fn drop(&mut self) {
        // Gone already when it was overwritten. Else the content has another name, and only this
        // one goes.
        if self
            .0
            .file
            .metadata()
            .is_ok_and(|found| !super::is_only_name(&found))
        {
            let _ = std::fs::remove_file(&self.0.path);
        }
    }
}

/// Locks a file for as long as it is open, which tells others that its process is alive. On Linux
/// this lock and those of SQLite do not meet; elsewhere they might, and nothing is swept there.
fn hold(file: &File) {
    if cfg!(target_os = "linux") {
        // Where the file system knows no locks, nothing is ever taken for a leftover.
        let _ = file.lock();
    }
}

/// A file to be.
pub struct DraftFile {
    file: File,
    /// None for a file without a name.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl DraftFile {
    /// Begins a file that will be at `path`, or where a link of that name points: for paths that
    /// the user chose.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::at(resolve(path)?)
    }

    /// Begins a file that will be at `path` itself: for names that the program chooses. A link of
    /// that name is replaced, and what it points at stays as it is.
    pub fn create_unlinked(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default();
        Self::at(std::fs::canonicalize(folder_of(path))?.join(name))
    }

    fn at(path: PathBuf) -> io::Result<Self> {
        if let Some(file) = nameless(&folder_of(&path)) {
            return Ok(Self {
                file,
                temporary: None,
                path,
            });
        }
        let LockedName {
            path: temporary,
            file,
        } = LockedName::beside(&path)?;
        Ok(Self {
            file,
            temporary: Some(temporary),
            path,
        })
    }

    /// Everything is written: puts the file in its place, on disk, with this mode. A file that is
    /// there is replaced with `overwrite`, and else an error of the kind `AlreadyExists`.
    pub fn publish(mut self, overwrite: bool, mode: u32) -> io::Result<()> {
        set_mode(&self.file, mode)?;
        self.file.sync_all()?;
        if overwrite {
            let temporary = self.named(mode)?;
            std::fs::rename(&temporary, &self.path)?;
        } else if self.temporary.is_some() || !self.link_to(&self.path.clone())? {
            let temporary = self.named(mode)?;
            take_name(&temporary, &self.path)?;
        }
        self.temporary = None;
        sync_folder(&self.path);
        Ok(())
    }

    /// Puts the file in its place with this mode, without waiting for the disk: for a file that
    /// nothing depends on after a power cut.
    pub(crate) fn publish_unsynced(mut self, mode: u32) -> io::Result<()> {
        set_mode(&self.file, mode)?;
        let temporary = self.named(mode)?;
        std::fs::rename(&temporary, &self.path)?;
        self.temporary = None;
        Ok(())
    }

    /// The temporary name of the file, which gets one if it has none: a rename needs a name.
    fn named(&mut self, mode: u32) -> io::Result<PathBuf> {
        if let Some(temporary) = &self.temporary {
            return Ok(temporary.clone());
        }
        // Held first, so that nobody takes it for a leftover.
        hold(&self.file);
        let temporary = temporary_name(&self.path)?;
        if self.link_to(&temporary)? {
            self.temporary = Some(temporary.clone());
            return Ok(temporary);
        }
        self.copy_to_name(mode)
    }

    /// Gives a nameless file a name that is free; false where the file system makes such files and
    /// cannot name them.
    fn link_to(&self, path: &Path) -> io::Result<bool> {
        match link(&self.file, path) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Err(cause),
            Err(_) => Ok(false),
        }
    }

    /// Copies a nameless file into one that has a temporary name.
    fn copy_to_name(&mut self, mode: u32) -> io::Result<PathBuf> {
        let LockedName {
            path: temporary,
            file: mut copy,
        } = LockedName::beside(&self.path)?;
        self.temporary = Some(temporary.clone());
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy)?;
        set_mode(&copy, mode)?;
        copy.sync_all()?;
        self.file = copy;
        Ok(temporary)
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nobody is left to be told if this fails, and the next command tries again.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Moves a file to a name that is free.
fn take_name(temporary: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(temporary, path) {
        Ok(()) => std::fs::remove_file(temporary),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists || path.exists() => Err(cause),
        // A file system without second names, such as FAT.
        Err(_) => std::fs::rename(temporary, path),
    }
}

/// A new name survives a power cut once its folder is on disk; where folders cannot be synced, so
/// be it.
pub(crate) fn sync_folder(path: &Path) {
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
}

/// A file in this folder that has no name, for its owner alone; None where the system has none
/// such.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // It gets its name by way of /proc.
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
    OpenOptions::new()
        .read(true)
        .write(true)
        .mode(PRIVATE_MODE)
        .custom_flags(flags)
        .open(folder)
        .ok()
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Gives an open file a name that is free.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = rustix::fs::AtFlags::SYMLINK_FOLLOW;
    Ok(rustix::fs::linkat(
        rustix::fs::CWD,
        &open,
        rustix::fs::CWD,
        path,
        flags,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(unix)]
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_named_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for overwrite in [false, true] {
            let mut draft = DraftFile::create(&path).unwrap();
            draft.write_all(b"whole").unwrap();
            // Where files always have names, this is a second copy under another name, which the
            // test removes.
            let first = draft.temporary.clone();
            let temporary = draft.copy_to_name(PRIVATE_MODE).unwrap();
            assert!(temporary.exists() && std::fs::read(&temporary).unwrap() == b"whole");
            draft.publish(overwrite, PRIVATE_MODE).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"whole");
            first
                .into_iter()
                .for_each(|name| std::fs::remove_file(name).unwrap());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
