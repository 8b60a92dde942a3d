//! The rollback journal that SQLite keeps beside a file while it changes. It holds pages as they
//! were before the change, and with them the rows that the change overwrites. Deleting it would
//! leave those bytes in free blocks of the disk, where nothing reaches them. So it keeps its name
//! when a change is over (`journal_mode = PERSIST`), and is overwritten with zeros before its
//! blocks are given back. A process that dies in between leaves it to the next one that opens the
//! file for writing.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::{outputs, paths};
use crate::error::{Error, Result};

/// Where the journal of a file lies: beside the file itself, where its path is a link.
pub(crate) fn journal_path(path: &Path) -> PathBuf {
    named(path, "-journal")
}

fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = paths::resolve(path)
        .unwrap_or_else(|_| path.to_owned())
        .into_os_string();
    name.push(end);
    name.into()
}

/// Returns an error if something else than a plain file with one name lies where SQLite keeps files
/// beside a model: it would write pages through a link, or wait for the other end of a pipe.
pub(super) fn check_beside(path: &Path) -> Result<()> {
    for end in ["-journal", "-wal", "-shm"] {
        let name = named(path, end);
        let found = match std::fs::symlink_metadata(&name) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
            found => found.map_err(|cause| Error::io(&name, cause))?,
        };
        if !found.is_file() || outputs::has_foreign_name(&name, &found) {
            return Err(Error::io(&name, foreign()));
        }
    }
    Ok(())
}

fn foreign() -> io::Error {
    let problem =
        "it is no plain file with one name, as SQLite keeps them beside a model; move it away";
    io::Error::new(ErrorKind::InvalidInput, problem)
}

/// Whether anything lies in the journal: of a change that goes on, or of one that is over.
pub(super) fn holds_bytes(path: &Path) -> bool {
    std::fs::metadata(journal_path(path)).is_ok_and(|found| found.len() > 0)
}

/// Whether a change goes on or was cut short: the journal of one that is over begins with zeros.
pub(super) fn is_unfinished(path: &Path) -> bool {
    let mut first = [0];
    let read = outputs::open_unlinked(&journal_path(path))
        .and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first != [0]
}

/// Overwrites the journal on disk and empties it. The caller holds the file, so that no change is
/// going on and none begins.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    let mut file = match outputs::open_to_overwrite(&journal_path(path)) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let found = file.metadata()?;
    let length = found.len();
    if length == 0 {
        return Ok(());
    }
    if outputs::has_foreign_name(&journal_path(path), &found) {
        return Err(foreign());
    }
    outputs::overwrite(&mut file, length)?;
    file.set_len(0)
}

/// Overwrites and removes the journal of a file that is given up.
pub(crate) fn remove_journal(path: &Path) -> io::Result<()> {
    outputs::remove_overwritten(&journal_path(path))
}
