//! Files that are written beside a model: what must never be replaced, how a file comes to its
//! name, and what becomes of temporary files whose process was killed.
//!
//! [`check_outputs`] is the one place that decides whether a file may be written. It judges a path
//! by what lies there: a link by what it points at, a model and a key by their content and not by
//! their names.

mod draft;
mod plain;
mod sweep;

pub use draft::DraftFile;
pub(crate) use draft::{LockedName, ReplacedFile, set_mode, sync_folder};
pub use plain::{ReplaceLock, open_plain, remove_overwritten};
pub(crate) use plain::{
    has_foreign_name, is_only_name, open_to_overwrite, open_unlinked, overwrite,
};
pub use sweep::sweep;

use std::fs::{FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::paths::{folder_of, resolve};
use crate::file::{self, paths};

/// Who may read a file that nobody chose a mode for: its owner alone.
pub const PRIVATE_MODE: u32 = 0o600;

/// The end of every temporary name of ours.
const SUFFIX: &str = ".efface-tmp";

/// More than the lines of a key file ever take.
const START: u64 = 64 * 1024;

/// What lies at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNature {
    /// Nothing.
    Absent,
    /// A plain file that is neither a model nor a key.
    Plain,
    /// A model, or the journal of one.
    Model,
    /// A file with a signing key or the seed of noise.
    Key,
    /// A folder, device, pipe or socket, in words.
    Special(&'static str),
}

impl FileNature {
    /// What lies at a path. A file that cannot be read cannot be judged.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = match std::fs::metadata(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Self::Absent),
            found => found?,
        };
        if !found.is_file() {
            return Ok(Self::Special(special(found.file_type())));
        }
        let mut start = Vec::new();
        open_plain(path)?.take(START).read_to_end(&mut start)?;
        if file::is_model(&start) {
            return Ok(Self::Model);
        }
        let has_key = start
            .split(|byte| *byte == b'\n')
            .any(paths::is_secret_line);
        Ok(if has_key { Self::Key } else { Self::Plain })
    }

    /// What it is in words, where it must not be replaced.
    fn protected(self) -> Option<&'static str> {
        match self {
            Self::Absent | Self::Plain => None,
            Self::Model => Some("a model, or a part of one"),
            Self::Key => Some("a key file"),
            Self::Special(what) => Some(what),
        }
    }
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn special(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else {
        "no plain file"
    }
}

/// What a command writes to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    File,
    Model,
    Resumed,
}

/// A file that a command is going to write.
#[derive(Debug, Clone, Copy)]
pub struct PlannedOutput<'a> {
    path: &'a Path,
    kind: OutputKind,
}

impl<'a> PlannedOutput<'a> {
    /// A file that replaces a plain file at most.
    pub fn file(path: &'a Path) -> Self {
        Self {
            path,
            kind: OutputKind::File,
        }
    }

    /// A model with its key, which may replace a model with its key.
    pub fn model(path: &'a Path) -> Self {
        Self {
            path,
            kind: OutputKind::Model,
        }
    }

    /// A file that is gone on from where it is there, such as the checkpoint of a training.
    pub fn resumed(path: &'a Path) -> Self {
        Self {
            path,
            kind: OutputKind::Resumed,
        }
    }

    fn check(&self, overwrite: bool) -> Result<()> {
        let Self { path, kind } = *self;
        let nature = FileNature::of(path).map_err(|cause| Error::io(path, cause))?;
        let replaces_model = kind == OutputKind::Model && nature == FileNature::Model;
        if let Some(what) = nature.protected().filter(|_| !replaces_model) {
            return Err(Error::Protected {
                path: path.to_owned(),
                what,
            });
        }
        if nature != FileNature::Absent && kind != OutputKind::Resumed && !overwrite {
            return Err(Error::Exists {
                path: path.to_owned(),
            });
        }
        if kind == OutputKind::Model {
            let path = paths::key_path(path);
            let what = match FileNature::of(&path).map_err(|cause| Error::io(&path, cause))? {
                FileNature::Absent | FileNature::Key => return Ok(()),
                other => other
                    .protected()
                    .unwrap_or("no key file, and the key of the model belongs there"),
            };
            return Err(Error::Protected { path, what });
        }
        Ok(())
    }
}

/// Judges every file that a command is going to write, before any work: none replaces a model, a
/// key or what is no plain file, none replaces a plain file unless `overwrite` is set, no two are
/// one file, and none is a file that the command reads, under whatever name. Leftovers of killed
/// processes beside them are scrubbed.
pub fn check_outputs(
    outputs: &[PlannedOutput<'_>],
    inputs: &[&Path],
    overwrite: bool,
) -> Result<()> {
    let mut seen: Vec<(PathBuf, FileIdentity)> = Vec::new();
    for input in inputs {
        // A file that cannot be found is reported when it is read.
        if let Ok(identity) = FileIdentity::of(input) {
            seen.push((input.to_path_buf(), identity));
        }
    }
    for output in outputs {
        output.check(overwrite)?;
        let mut names = vec![output.path.to_owned()];
        if output.kind == OutputKind::Model {
            names.push(paths::key_path(output.path));
        }
        for name in names {
            let identity = FileIdentity::of(&name).map_err(|cause| Error::io(&name, cause))?;
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == identity) {
                return Err(Error::SameFile {
                    path: name,
                    other: other.clone(),
                });
            }
            seen.push((name, identity));
        }
        sweep(&folder_of(
            &resolve(output.path).map_err(|cause| Error::io(output.path, cause))?,
        ));
    }
    Ok(())
}

/// Judges what lies in a folder under names that a command may write there: files with one of these
/// extensions.
pub fn check_folder(folder: &Path, extensions: &[&str], inputs: &[&Path]) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|cause| Error::io(folder, cause))?,
    };
    for entry in entries {
        let path = entry.map_err(|cause| Error::io(folder, cause))?.path();
        let named = path
            .extension()
            .and_then(|end| end.to_str())
            .is_some_and(|end| extensions.contains(&end));
        if named {
            check_outputs(&[PlannedOutput::file(&path)], inputs, true)?;
        }
    }
    Ok(())
}

/// Where the key of a model lies.
pub fn key_path(model: &Path) -> PathBuf {
    paths::key_path(model)
}

/// What makes two paths one file: the same inode, or, where there is none yet, the same name in the
/// same folder.
#[derive(Debug, PartialEq, Eq)]
enum FileIdentity {
    Inode(u64, u64),
    Name(PathBuf),
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) => Self::existing(path, &found),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Self::Name(resolve(path)?)),
            Err(cause) => Err(cause),
        }
    }

    #[cfg(unix)]
    fn existing(_: &Path, found: &Metadata) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Self::Inode(found.dev(), found.ino()))
    }

    #[cfg(not(unix))]
    fn existing(path: &Path, _: &Metadata) -> io::Result<Self> {
        Ok(Self::Name(std::fs::canonicalize(path)?))
    }
}

#[cfg(test)]
mod tests;
