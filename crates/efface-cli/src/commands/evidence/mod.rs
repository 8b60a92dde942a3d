//! `efface evidence`: what shows that a request was carried out, in one file for an officer or an authority.

mod page;

use std::io::{Cursor, Write};

use efface_engine::{Engine, Error, ReceiptQuery};
use efface_receipt::{CopyKind, KnownCopy, Receipt, ReceiptBundle, RequestKind};
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime};

use super::receipt::readable;
use crate::cli::EvidenceArguments;
use crate::failure::{Failure, Result};
use crate::output::OutputFile;
use crate::report::count;
use crate::terminal::Terminal;

/// What a pack holds.
struct EvidencePack {
    /// The receipts that were asked for.
    asked: Vec<ReceiptBundle>,
    /// The settles that erased rows which those receipts had left waiting.
    settled: Vec<ReceiptBundle>,
    /// The audits on record since the first of them.
    audits: Vec<ReceiptBundle>,
    /// The exports that the engine knows of, as the newest receipt that lists some has them.
    exports: Vec<KnownCopy>,
    checkpoint: String,
    /// The public keys of the log, one a line.
    keys: String,
}

pub(crate) fn run(args: &EvidenceArguments, terminal: &Terminal) -> Result {
    let mut out = OutputFile::file(&args.output, &[&args.model], args.force, terminal)?;
    let engine = terminal.look(&args.model)?;
    let pack = EvidencePack::gather(&engine, &query(args))?;
    let bytes = pack.zip().map_err(|cause| Failure::internal(format!("the pack is no ZIP file: {cause}")))?;
    out.write_all(&bytes).map_err(|cause| Failure::file(out.name(), "written", &cause))?;
    out.finish()?;
    if terminal.json() {
        let numbers = |bundles: &[ReceiptBundle]| bundles.iter().map(number).collect::<Vec<_>>();
        return terminal.object(&json!({
            "file": args.output, "receipts": numbers(&pack.asked), "settles": numbers(&pack.settled),
            "audits": numbers(&pack.audits), "exports": pack.exports.len(),
        }));
    }
    let receipts = count(pack.asked.len(), "receipt");
    let audits = count(pack.audits.len(), "audit");
    terminal.message(&format!("{}: {receipts}, {audits} on record", args.output.display()));
    if pack.audits.is_empty() {
        terminal.note("no audit is on record since; `efface audit MODEL --file ROWS --record` makes one");
    }
    Ok(())
}

fn query(args: &EvidenceArguments) -> ReceiptQuery {
    match (&args.request, &args.subject, &args.receipt) {
        (Some(name), ..) => ReceiptQuery::Request(name.clone()),
        (None, Some(person), _) => ReceiptQuery::Subject {
            value: person.value.clone(),
            opening: args.opening.clone().unwrap_or_default(),
        },
        (None, None, receipt) => ReceiptQuery::Receipt(receipt.clone().unwrap_or_default()),
    }
}

fn number(bundle: &ReceiptBundle) -> u64 {
    bundle.signed.receipt.sequence
}

/// Whether a settle erased the rows that a receipt had left waiting.
fn settles(settle: &Receipt, receipt: &Receipt) -> bool {
    let waited = receipt.times.forgotten_at.is_some() && receipt.times.scrubbed_at.is_none();
    waited && settle.settles.is_some_and(|run| (run.first..=run.last).contains(&receipt.sequence))
}

impl EvidencePack {
    fn gather(engine: &Engine, query: &ReceiptQuery) -> Result<Self> {
        let bundles = |numbers: &[u64]| -> Result<Vec<ReceiptBundle>> {
            numbers.iter().map(|number| Ok(engine.bundle(&number.to_string())?)).collect()
        };
        let asked = bundles(&engine.find_receipts(query)?)?;
        let first = asked.first().map_or(0, number);
        let mut settled = Vec::new();
        let mut audits = Vec::new();
        let mut exports = Vec::new();
        engine.receipts(&mut |signed, _| {
            let receipt = &signed.receipt;
            if asked.iter().any(|bundle| settles(receipt, &bundle.signed.receipt)) {
                settled.push(receipt.sequence);
            }
            if receipt.kind == RequestKind::Audit && receipt.sequence > first {
                audits.push(receipt.sequence);
            }
            let listed: Vec<KnownCopy> =
                receipt.copies.iter().filter(|copy| copy.kind == CopyKind::Export).cloned().collect();
            if !listed.is_empty() {
                exports = listed;
            }
            Ok(())
        })?;
        let keys = engine.public_keys()?.iter().map(|key| format!("{key}\n")).collect();
        let settled = bundles(&settled)?;
        let audits = bundles(&audits)?;
        Ok(Self { asked, settled, audits, exports, checkpoint: engine.checkpoint()?, keys })
    }

    fn all(&self) -> impl Iterator<Item = &ReceiptBundle> {
        self.asked.iter().chain(&self.settled).chain(&self.audits)
    }

    /// The files of the pack, by name.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let exports = serde_json::to_vec_pretty(&self.exports)
            .map_err(|cause| Failure::internal(format!("the list of exports is no JSON: {cause}")))?;
        let mut files = vec![
            ("summary.html".to_owned(), page::page(self).html().into_bytes()),
            ("exports.json".to_owned(), exports),
            ("checkpoint.txt".to_owned(), self.checkpoint.clone().into_bytes()),
            ("keys.txt".to_owned(), self.keys.clone().into_bytes()),
        ];
        for bundle in self.all() {
            let number = number(bundle);
            let file = bundle.to_bytes().map_err(Error::from)?;
            files.push((format!("receipts/{number}.cose"), file));
            let text = readable(&bundle.signed.receipt)? + "\n";
            files.push((format!("receipts/{number}.json"), text.into_bytes()));
        }
        Ok(files)
    }

    fn zip(&self) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let files = self.files().map_err(|failure| failure.message)?;
        // Nothing is compressed, and no time of this machine is written: the same pack has the same bytes.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default());
        for (name, bytes) in files {
            writer.start_file(name, options)?;
            writer.write_all(&bytes)?;
        }
        Ok(writer.finish()?.into_inner())
    }
}
