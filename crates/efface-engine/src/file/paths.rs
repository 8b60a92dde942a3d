//! Where files lie: links followed, folders, and the file beside a model that holds its secrets.
//! What the lines of that file mean is the ledger's to know; this layer must recognise them, so
//! that no output ever replaces a key.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How many links are followed before they are called a circle, as the kernel does.
const MOST_LINKS: usize = 40;

/// How the line of a signing key begins.
const KEY_PREFIX: &str = "PRIVATE+KEY+";

/// How a key file begins that is encrypted.
pub(crate) const ENCRYPTED_PREFIX: &str = "ENCRYPTED+KEY+FILE+";

/// How the line of a noise seed begins.
pub(crate) const SEED_PREFIX: &str = "NOISE+SEED+";

/// The path that a file is written to: links followed, also those that point at nothing yet. The
/// folder must be there.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(name) = path.file_name().map(ToOwned::to_owned) else {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "it is no file name",
            ));
        };
        let folder = std::fs::canonicalize(folder_of(&path))?;
        path = match std::fs::read_link(&path) {
            Ok(target) => folder.join(target),
            Err(_) => return Ok(folder.join(name)),
        };
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "its links lead in a circle",
    ))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// A path that SQLite takes for the name of a file. It reads names that begin with `file:` as URIs,
/// and `:memory:` as no file at all.
pub(crate) fn for_sqlite(path: &Path) -> PathBuf {
    // An absolute path stays as it is.
    Path::new(".").join(path)
}

/// `houses.efface.key` for `houses.efface`; beside the file itself where `houses.efface` is a link
/// to it.
pub(crate) fn key_path(model: &Path) -> PathBuf {
    let linked = if model.is_symlink() {
        resolve(model).ok()
    } else {
        None
    };
    let mut name = linked.unwrap_or_else(|| model.to_owned()).into_os_string();
    name.push(".key");
    name.into()
}

/// Whether a line is a secret of a key file.
pub(crate) fn is_secret_line(line: &[u8]) -> bool {
    [KEY_PREFIX, SEED_PREFIX, ENCRYPTED_PREFIX]
        .iter()
        .any(|prefix| line.starts_with(prefix.as_bytes()))
}
