//! Files that a command writes. A file appears under its name only when it is complete. Whether it
//! may be written at all is decided in one place, `efface_engine::files::check_outputs`, which
//! every command asks before any work.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use efface_engine::files::{DraftFile, PlannedOutput, check_outputs};

use crate::failure::{Failure, Result};
use crate::terminal::Terminal;

/// Standard output, or a file that is not there yet.
pub(crate) enum OutputFile {
    Stdout(BufWriter<io::Stdout>),
    File {
        writer: BufWriter<DraftFile>,
        path: PathBuf,
        force: bool,
        mode: u32,
    },
}

/// Judges a file that a command is going to write, and reads none of these.
pub(crate) fn check(path: &Path, inputs: &[&Path], force: bool) -> Result {
    Ok(check_outputs(&[PlannedOutput::file(path)], inputs, force)?)
}

impl OutputFile {
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// A file to be, at `path`, that is none of the files which the command reads.
    pub(crate) fn file(
        path: &Path,
        inputs: &[&Path],
        force: bool,
        terminal: &Terminal,
    ) -> Result<Self> {
        check(path, inputs, force)?;
        let draft =
            DraftFile::create(path).map_err(|cause| Failure::file(path, "created", &cause))?;
        let writer = BufWriter::new(draft);
        Ok(Self::File {
            writer,
            path: path.to_owned(),
            force,
            mode: terminal.mode(),
        })
    }

    /// Everything is written: put the file in its place.
    pub(crate) fn finish(self) -> Result {
        match self {
            Self::Stdout(mut writer) => Ok(writer.flush()?),
            Self::File {
                writer,
                path,
                force,
                mode,
            } => {
                let failed = |cause: io::Error| Failure::file(&path, "written", &cause);
                let draft = writer.into_inner().map_err(|e| failed(e.into_error()))?;
                // The work may have taken long, and somebody else may have put a model there.
                check(&path, &[], force)?;
                draft.publish(force, mode).map_err(failed)
            }
        }
    }

    /// What to call it in a message.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Stdout(_) => Path::new("standard output"),
            Self::File { path, .. } => path,
        }
    }
}

impl Write for OutputFile {
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
