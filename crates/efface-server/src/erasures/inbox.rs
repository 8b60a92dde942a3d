//! Requests that were accepted and are not done yet, on disk: a file each, for the server's user alone. It holds the names of
//! rows or of a person, without which the request could not be done after a crash; when the request is done, the file is
//! overwritten and removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use efface_engine::files;
use sha2::{Digest, Sha256};

use super::order::ErasureOrder;

/// The folder beside the models.
const FOLDER: &str = "inbox";

/// The largest request that is read back.
const MOST_BYTES: u64 = 64 << 20;

/// A folder of requests.
#[derive(Debug)]
pub(crate) struct RequestInbox {
    folder: PathBuf,
}

impl RequestInbox {
    pub(crate) fn new(models: &Path) -> Self {
        Self { folder: models.join(FOLDER) }
    }

    /// Writes a request down. When this returns, it survives a crash.
    pub(crate) fn put(&self, order: &ErasureOrder) -> io::Result<()> {
        private_folder(&self.folder)?;
        let mut draft = files::DraftFile::create(&self.path(&order.id))?;
        serde_json::to_writer(&mut draft, order)?;
        draft.flush()?;
        draft.publish(true, files::PRIVATE_MODE)
    }

    /// Overwrites a request and removes it.
    pub(crate) fn remove(&self, id: &str) -> io::Result<()> {
        let path = self.path(id);
        let file = match OpenOptions::new().write(true).open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        io::copy(&mut io::Read::take(io::repeat(0), length), &mut &file)?;
        file.sync_all()?;
        std::fs::remove_file(&path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Every request that is written down.
    pub(crate) fn all(&self) -> io::Result<Vec<ErasureOrder>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut orders = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            if std::fs::metadata(&path)?.len() > MOST_BYTES {
                return Err(io::Error::other("a request in the inbox is larger than any that was accepted"));
            }
            orders.push(serde_json::from_slice(&std::fs::read(&path)?)?);
        }
        Ok(orders)
    }

    /// A request may be called anything; its file is called by a hash of that.
    fn path(&self, id: &str) -> PathBuf {
        let name = data_encoding::HEXLOWER.encode(&Sha256::digest(id.as_bytes()));
        self.folder.join(format!("{name}.json"))
    }
}

#[cfg(unix)]
fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::super::order::{ErasureTarget, RowChoice};
    use super::*;

    #[test]
    fn a_request_comes_back_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = RequestInbox::new(folder.path());
        assert!(inbox.all().unwrap().is_empty());
        let order = ErasureOrder {
            id: "../../etc/passwd".into(),
            target: ErasureTarget::Model("houses".into()),
            rows: RowChoice::Subject("ann".into()),
            method: efface::Method::default(),
            allow_missing: false,
            requested_at: None,
            asked_by: "one".into(),
            needs_approval: true,
            approved_by: None,
        };
        inbox.put(&order).unwrap();
        assert_eq!(inbox.all().unwrap(), std::slice::from_ref(&order));
        inbox.remove(&order.id).unwrap();
        inbox.remove(&order.id).unwrap();
        assert!(inbox.all().unwrap().is_empty());
    }
}
