//! The first hundred bytes of a SQLite file say whether it is ours and how new it is, before SQLite is asked.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

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

pub(super) fn check(path: &Path) -> Result<()> {
    let io = |cause| Error::io(path, cause);
    let mut file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        return Err(io(ErrorKind::IsADirectory.into()));
    }
    let mut header = Vec::with_capacity(100);
    file.by_ref().take(100).read_to_end(&mut header).map_err(io)?;
    let ours = || Error::NotOurs { path: path.to_owned() };
    if !header.starts_with(MAGIC) {
        return Err(ours());
    }
    if header.len() < 100 {
        return Err(Error::Damaged { path: path.to_owned(), what: "it ends inside its header".into() });
    }
    if number(&header, 68) != APPLICATION_ID {
        return Err(ours());
    }
    // Under a write-ahead log, erased bytes would live on beside the file.
    if header[18..20] != [1, 1] {
        return Err(Error::Damaged {
            path: path.to_owned(),
            what: "it was put into another journal mode".into(),
        });
    }
    let format = number(&header, 60);
    let path = path.to_owned();
    match format.cmp(&crate::FORMAT) {
        _ if format == 0 => Err(Error::NotOurs { path }),
        Ordering::Less => Err(Error::Older { path, format }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::Newer { path, format }),
    }
}

fn number(header: &[u8], at: usize) -> u32 {
    header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
