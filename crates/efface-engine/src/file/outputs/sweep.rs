//! What killed processes leave behind: drafts of models with their rows, drafts of key files and
//! exports. A draft is locked while its process lives (on Linux), so that one whose lock is free is
//! a leftover: it is overwritten and removed.

use std::io;
use std::path::Path;

use super::SUFFIX;
use super::plain::{has_no_name, is_only_name, open_to_overwrite, overwrite};

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
