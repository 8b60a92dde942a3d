//! What killed processes leave behind: drafts of models with their rows, drafts of key files and
//! exports. A draft is locked while its process lives (on Linux), so that one whose lock is free is
//! a leftover: it is overwritten and removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::Path;

use super::SUFFIX;

/// What SQLite puts behind the name of a file that it changes.
const JOURNAL: &str = "-journal";

/// Overwrites and removes temporary files of ours in a folder whose processes are gone. What cannot
/// be removed now is left to the next command.
pub fn sweep(folder: &Path) {
    // Only there does a lock tell the dead from the living.
    if !cfg!(target_os = "linux") {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with('.')) else {
            continue;
        };
        let path = entry.path();
        if name.ends_with(SUFFIX) {
            let mut journal = path.clone().into_os_string();
            journal.push(JOURNAL);
            if scrub(&path).is_ok() {
                let _ = scrub(Path::new(&journal));
            }
        } else if let Some(draft) = name
            .strip_suffix(JOURNAL)
            .filter(|draft| draft.ends_with(SUFFIX))
        {
            // Its draft is swept with it; one without a draft belongs to nobody.
            if !folder.join(draft).exists() {
                let _ = scrub(&path);
            }
        }
    }
}

/// Overwrites and removes one file, unless somebody holds it. Of one that has another name, which
/// would lose its content, only this name goes: it was about to be replaced when its process died.
fn scrub(path: &Path) -> io::Result<()> {
    let mut file = open_to_overwrite(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.try_lock()?;
    if is_only_name(&found) {
        overwrite(&mut file, found.len())?;
        return std::fs::remove_file(path);
    }
    std::fs::remove_file(path)?;
    // Somebody may have replaced the file under its other name meanwhile: then nothing names it any
    // more.
    if has_no_name(&file.metadata()?) {
        overwrite(&mut file, found.len())
    } else {
        Ok(())
    }
}

/// Zeros over all of a file, on disk.
pub(crate) fn overwrite(file: &mut File, length: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    file.rewind()?;
    let mut left = length;
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        file.write_all(&zeros[..now as usize])?;
        left -= now;
    }
    file.sync_data()
}

/// Opens a file but no link, so that nothing elsewhere is overwritten; a pipe does not make it
/// wait.
#[cfg(unix)]
pub(crate) fn open_to_overwrite(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

#[cfg(not(unix))]
pub(crate) fn open_to_overwrite(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

#[cfg(unix)]
pub(super) fn is_only_name(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) == 1
}

#[cfg(unix)]
fn has_no_name(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) == 0
}

#[cfg(not(unix))]
fn has_no_name(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
pub(super) fn is_only_name(_: &std::fs::Metadata) -> bool {
    true
}
