//! Folders of small JSON files, a file each, for the server's user alone: what must survive a
//! crash.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use efface_engine::files;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// The largest file that is read back.
const MOST_BYTES: u64 = 64 << 20;

/// A folder of values of one type, by their names.
#[derive(Debug)]
pub(crate) struct JsonFolder<T> {
    folder: PathBuf,
    held: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> JsonFolder<T> {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            held: PhantomData,
        }
    }

    /// Writes a value down, in the place of one of the same name. When this returns, it survives a
    /// crash.
    pub(crate) fn put(&self, name: &str, value: &T) -> io::Result<()> {
        private_folder(&self.folder)?;
        let mut draft = files::DraftFile::create_unlinked(&self.path(name))?;
        serde_json::to_writer(&mut draft, value)?;
        draft.flush()?;
        draft.publish(true, files::PRIVATE_MODE)
    }

    /// Overwrites a value and removes it.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        files::remove_overwritten(&self.path(name))?;
        match File::open(&self.folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            folder => folder?.sync_all(),
        }
    }

    /// Whether a value of this name is written down.
    pub(crate) fn contains(&self, name: &str) -> io::Result<bool> {
        self.path(name).try_exists()
    }

    /// Every value that is written down.
    pub(crate) fn all(&self) -> io::Result<Vec<T>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<_>>>()?;
        // The order of a folder is nobody's; requests are taken up in the same order every time.
        paths.sort();
        let mut values = Vec::new();
        for path in paths {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(bytes) = bytes_of(&path)? else {
                continue;
            };
            // A process died between overwriting a value and removing it; overwriting begins at the
            // first byte.
            if bytes.first() == Some(&0) {
                files::remove_overwritten(&path)?;
                continue;
            }
            values.push(serde_json::from_slice(&bytes)?);
        }
        Ok(values)
    }

    /// A value may be called anything; its file is called by a hash of that.
    fn path(&self, name: &str) -> PathBuf {
        let name = data_encoding::HEXLOWER.encode(&Sha256::digest(name.as_bytes()));
        self.folder.join(format!("{name}.json"))
    }
}

/// The bytes of a file, or none where it is gone: a server that ends may still remove what it has
/// delivered.
fn bytes_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match files::open_plain(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() > MOST_BYTES {
        return Err(io::Error::other(
            "a file is larger than any that was written",
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(unix)]
fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_until_it_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = JsonFolder::<Vec<String>>::new(parent.path().join("inbox"));
        assert!(folder.all().unwrap().is_empty());
        let name = "../../etc/passwd";
        folder.put(name, &vec!["first".into()]).unwrap();
        folder.put(name, &vec!["second".into()]).unwrap();
        assert_eq!(folder.all().unwrap(), [["second"]]);
        folder.put("another", &vec!["third".into()]).unwrap();
        // As a process leaves it that dies while it removes the value.
        std::fs::write(folder.path("another"), b"\0\0\0hird\"]").unwrap();
        assert_eq!(folder.all().unwrap(), [["second"]]);
        assert!(!folder.path("another").exists());
        folder.remove(name).unwrap();
        folder.remove(name).unwrap();
        assert!(folder.all().unwrap().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_goes_after_it_was_listed_is_no_error() {
        let parent = tempfile::tempdir().unwrap();
        let folder = JsonFolder::<Vec<String>>::new(parent.path().to_path_buf());
        folder.put("stays", &vec!["here".into()]).unwrap();
        // A name that is listed and cannot be opened, as that of a file that another process
        // removes in between.
        std::os::unix::fs::symlink(
            parent.path().join("nowhere"),
            parent.path().join("gone.json"),
        )
        .unwrap();
        assert_eq!(folder.all().unwrap(), [["here"]]);
    }
}
