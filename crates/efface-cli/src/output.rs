//! Files that a command writes. A file appears under its name only when it is complete, and never over another one
//! unless the user said `--force`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Standard output, or a file that is not there yet.
pub(crate) enum Output {
    Stdout(BufWriter<io::Stdout>),
    File { writer: BufWriter<File>, waiting: Waiting },
}

/// A file under a temporary name; removed unless it is kept.
pub(crate) struct Waiting {
    temporary: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// A file to be, at `path`.
    pub(crate) fn file(path: &Path, force: bool) -> Result<Self> {
        if path.file_name().is_none() {
            return Err(Failure::usage(format!("{} is no file name", path.display())));
        }
        refuse_existing(path, force)?;
        let temporary = temporary_beside(path);
        let opened = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = opened.map_err(|cause| Failure::file(path, "created", &cause))?;
        let waiting = Waiting { temporary, path: path.to_owned(), kept: false };
        Ok(Self::File { writer: BufWriter::new(file), waiting })
    }

    /// Everything is written: put the file in its place.
    pub(crate) fn finish(self) -> Result {
        match self {
            Self::Stdout(mut writer) => Ok(writer.flush()?),
            Self::File { writer, mut waiting } => {
                let path = waiting.path.clone();
                let failed = |cause: io::Error| Failure::file(&path, "written", &cause);
                let file = writer.into_inner().map_err(|e| failed(e.into_error()))?;
                file.sync_all().map_err(failed)?;
                drop(file);
                fs::rename(&waiting.temporary, &path).map_err(failed)?;
                waiting.kept = true;
                Ok(())
            }
        }
    }

    /// What to call it in a message.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Stdout(_) => Path::new("standard output"),
            Self::File { waiting, .. } => &waiting.path,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(writer) => writer.write(bytes),
            Self::File { writer, .. } => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(writer) => writer.flush(),
            Self::File { writer, .. } => writer.flush(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Stops when there is something at `path` already.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result {
    if !force && path.symlink_metadata().is_ok() {
        let failure = Failure::refused(format!("{} exists already", path.display()));
        return Err(failure.hint("choose another name with -o, or overwrite it with --force"));
    }
    Ok(())
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
