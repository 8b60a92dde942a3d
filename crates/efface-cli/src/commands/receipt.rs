//! `efface receipt`: the readable part of a receipt's file, and its time stamp.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use efface_engine::{Error, random_nonce};
use efface_evidence::readable_receipt;
use efface_receipt::{
    MAX_BUNDLE_BYTES, Receipt, ReceiptBundle, SignedReceipt, TimeStamp, stamp_request,
};

use crate::cli::{ReceiptAction, ReceiptArguments};
use crate::failure::{Failure, Result};
use crate::output::OutputFile;
use crate::terminal::Terminal;

pub(crate) fn run(args: &ReceiptArguments, terminal: &Terminal) -> Result {
    match &args.action {
        ReceiptAction::Show { file } => show(file, terminal),
        ReceiptAction::StampRequest { file, output } => {
            let nonce = random_nonce()?;
            let request = stamp_request(&bundle(file)?.signed.signature, &nonce);
            write(output, &request, &[file], terminal)
        }
        ReceiptAction::Attach {
            file,
            request,
            stamp,
            output,
        } => {
            let mut bundle = bundle(file)?;
            let stamp_read = TimeStamp::parse(&read(stamp)?).map_err(Error::from)?;
            stamp_read
                .check(&bundle.signed.signature)
                .map_err(Error::from)?;
            stamp_read.answers(&read(request)?).map_err(Error::from)?;
            terminal.message(&format!("attached: {}", told(&stamp_read)));
            terminal.note("whether the authority really made it, `openssl ts -verify` says");
            bundle.stamp = Some(stamp_read.token);
            write(
                output,
                &bundle.to_bytes().map_err(Error::from)?,
                &[file, request, stamp],
                terminal,
            )
        }
        ReceiptAction::Stamp { file, output } => match bundle(file)?.stamp {
            Some(token) => write(output, &token, &[file], terminal),
            None => Err(Failure::not_found(format!(
                "{} holds no time stamp",
                file.display()
            ))),
        },
    }
}

fn show(file: &Path, terminal: &Terminal) -> Result {
    let bytes = read(file)?;
    // A leaf of a log, without proofs, can be looked at too.
    let mut stamp = None;
    let receipt = match SignedReceipt::parse(&bytes) {
        Ok(signed) => signed.receipt,
        Err(_) => {
            let bundle = ReceiptBundle::parse(&bytes).map_err(Error::from)?;
            stamp = bundle.stamp;
            bundle.signed.receipt
        }
    };
    if terminal.json() {
        return terminal.object(&receipt);
    }
    terminal.result(&readable(&receipt)?)?;
    if let Some(token) = stamp {
        terminal.note(&told(&TimeStamp::parse(&token).map_err(Error::from)?));
    }
    terminal.note("nothing was checked; `efface verify FILE --key KEYS` does");
    Ok(())
}

/// What a time stamp says.
pub(super) fn told(stamp: &TimeStamp) -> String {
    let authority = stamp
        .authority
        .as_deref()
        .unwrap_or("an authority that does not name itself");
    format!("time stamp of {} by {authority}", stamp.time)
}

fn bundle(file: &Path) -> Result<ReceiptBundle> {
    Ok(ReceiptBundle::parse(&read(file)?).map_err(Error::from)?)
}

fn write(path: &Path, bytes: &[u8], inputs: &[&PathBuf], terminal: &Terminal) -> Result {
    let inputs: Vec<&Path> = inputs.iter().map(|input| input.as_path()).collect();
    let mut out = OutputFile::file(path, &inputs, false, terminal)?;
    out.write_all(bytes)
        .map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()
}

/// The JSON of a receipt, laid out for people.
pub(super) fn readable(receipt: &Receipt) -> Result<String> {
    readable_receipt(receipt)
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
