//! The newest head of a log, in a file beside the key: `houses.efface.head`. A model file that is
//! put back from a copy is older than it, and with such a file forgotten rows come back: it is
//! noticed here.
//!
//! The file is written after every change. After a crash it may be older than the model, which is
//! no fault: the log continues it. It is no secret and proves nothing to others, who keep
//! checkpoints of their own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use efface_receipt::{ConsistencyProof, LogCheckpoint, MAX_NOTE_BYTES};
use rusqlite::Connection;

use super::{LedgerHead, ReceiptLog};
use crate::file::FileFault;
use crate::file::outputs::{DraftFile, PRIVATE_MODE, open_unlinked};
use crate::file::paths::key_path;

/// `houses.efface.head` for `houses.efface`.
pub(crate) fn head_path(model: &Path) -> PathBuf {
    key_path(model).with_extension("head")
}

/// Writes the head of the log down. The change that it belongs to is made already, so that a
/// failure is none of the change: the next one writes a newer head.
pub(crate) fn keep(model: &Path, note: &str) {
    let write = |note: &str| -> std::io::Result<()> {
        // The file is replaced as a whole: whoever reads it meanwhile finds the old head or the new
        // one, and a link in its place is not followed.
        let mut file = DraftFile::create_unlinked(&head_path(model))?;
        file.write_all(note.as_bytes())?;
        file.publish_unsynced(PRIVATE_MODE)
    };
    let _ = write(note);
}

/// The head that was written down; None where there is none that can be read.
fn kept(model: &Path) -> Option<LogCheckpoint> {
    let mut text = String::new();
    let file = open_unlinked(&head_path(model)).ok()?;
    file.take(MAX_NOTE_BYTES as u64)
        .read_to_string(&mut text)
        .ok()?;
    LogCheckpoint::parse_unverified(&text).ok()
}

/// What is wrong with a model whose log does not continue the head that was written down; None
/// where it does, or where nothing was.
pub(crate) fn rollback(
    connection: &Connection,
    ledger: &LedgerHead,
    model: &Path,
) -> Result<Option<String>, FileFault> {
    let Some(head) = kept(model) else {
        return Ok(None);
    };
    let path = head_path(model);
    let place = path.display();
    if head.origin != ledger.origin {
        let told = format!(
            "its log is another one than {} in {place}: another model lies in its place",
            head.origin
        );
        return Ok(Some(told));
    }
    if head.size > ledger.size {
        return Ok(Some(format!(
            "it is an older copy: its log has {} receipts, and {} were signed ({place}), so that rows forgotten since are in \
             it; put the newest file back, or restore this one with the newest log (`efface restore`)",
            ledger.size, head.size
        )));
    }
    Ok(break_since(connection, ledger, &head)?.map(|what| format!("{what}, which is in {place}")))
}

/// Why the log does not continue the one of an older head; None where it does.
pub(crate) fn break_since(
    connection: &Connection,
    ledger: &LedgerHead,
    head: &LogCheckpoint,
) -> Result<Option<String>, FileFault> {
    if head.origin != ledger.origin {
        return Ok(Some(format!(
            "the head is of the log {}, and this one is {}",
            head.origin, ledger.origin
        )));
    }
    if head.size > ledger.size {
        return Ok(Some(format!(
            "the log has {} receipts, and the head {}",
            ledger.size, head.size
        )));
    }
    let proof = ConsistencyProof::new(&ReceiptLog(connection), head.size, ledger.size)?;
    let broken = proof.verify(&head.root, &ledger.root).is_err();
    Ok(broken.then(|| {
        format!(
            "its log is another one than that of the head of {} receipts",
            head.size
        )
    }))
}
