//! `efface receipt show`: the readable part of a receipt's file.

use std::io::Read;
use std::path::Path;

use efface_engine::Error;
use efface_receipt::{MAX_BUNDLE_BYTES, Receipt, ReceiptBundle, SignedReceipt};

use crate::cli::{ReceiptAction, ReceiptArguments};
use crate::failure::{Failure, Result};
use crate::terminal::Terminal;

pub(crate) fn run(args: &ReceiptArguments, terminal: &Terminal) -> Result {
    let ReceiptAction::Show { file } = &args.action;
    let bytes = read(file)?;
    // A leaf of a log, without proofs, can be looked at too.
    let receipt = match SignedReceipt::parse(&bytes) {
        Ok(signed) => signed.receipt,
        Err(_) => ReceiptBundle::parse(&bytes).map_err(Error::from)?.signed.receipt,
    };
    if terminal.json() {
        return terminal.object(&receipt);
    }
    terminal.result(&readable(&receipt)?)?;
    terminal.note("nothing was checked; `efface verify FILE --key KEYS` does");
    Ok(())
}

/// The JSON of a receipt, laid out for people.
pub(super) fn readable(receipt: &Receipt) -> Result<String> {
    serde_json::to_string_pretty(receipt)
        .map_err(|cause| Failure::internal(format!("a receipt is no JSON: {cause}")))
}

/// As much of a file as a receipt can have.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_BUNDLE_BYTES as u64 + 1;
    let read = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|cause| Failure::file(path, "read", &cause))?;
    Ok(bytes)
}
