//! Whether a file is ours, and how new it is.

use std::cmp::Ordering;
use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::Connection;

use super::FileFault;
use super::schema::APPLICATION_ID;
use crate::error::{Error, Result};

const MAGIC: &[u8] = b"SQLite format 3\0";

/// How the rollback journal of a SQLite file begins.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Whether a file that begins like this is a model, whole or not, or the journal of one.
pub(crate) fn is_model(start: &[u8]) -> bool {
    let ours = start.starts_with(MAGIC) && start.len() >= 72 && number(start, 68) == APPLICATION_ID;
    ours || start.starts_with(&JOURNAL_MAGIC)
}

/// Refuses what is no plain file: a pipe would be waited for.
pub(super) fn check_kind(path: &Path) -> Result<()> {
    let found = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?;
    if found.is_dir() {
        return Err(Error::io(path, ErrorKind::IsADirectory.into()));
    }
    if found.is_file() {
        return Ok(());
    }
    Err(Error::io(
        path,
        io::Error::new(ErrorKind::InvalidInput, "it is no plain file"),
    ))
}

/// Refuses a file that is not ours, or not of this format. SQLite is asked, and the file is not
/// opened beside it: on Unix, closing a file takes away all locks that the process has on it, those
/// of another engine in the middle of a change too.
pub(super) fn check(path: &Path, connection: &Connection) -> std::result::Result<(), Error> {
    let ask = |pragma: &str| {
        let answer =
            connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, u32>(0));
        answer.map_err(|error| FileFault::from(error).at(path))
    };
    let ours = || Error::NotOurs {
        path: path.to_owned(),
    };
    if ask("application_id")? != APPLICATION_ID {
        return Err(ours());
    }
    // Under a write-ahead log, erased bytes would live on beside the file.
    let journal: String = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .map_err(|error| FileFault::from(error).at(path))?;
    if journal == "wal" {
        return Err(Error::Damaged {
            path: path.to_owned(),
            what: "it was put into another journal mode".into(),
        });
    }
    let format = ask("user_version")?;
    let path = path.to_owned();
    match format.cmp(&crate::FORMAT) {
        _ if format == 0 => Err(ours()),
        Ordering::Less => Err(Error::Older { path, format }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::Newer { path, format }),
    }
}

fn number(header: &[u8], at: usize) -> u32 {
    header[at..at + 4]
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
