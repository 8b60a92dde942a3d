//! An evidence pack: what shows that a request was carried out, in one ZIP file.

use std::io::{Cursor, Write};

use efface_engine::{Engine, Error, ReceiptQuery};
use efface_receipt::{CopyKind, KnownCopy, Receipt, ReceiptBundle, RequestKind};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime};

use crate::page;

/// Why a pack could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The model or its log does not give what the pack needs.
    #[error(transparent)]
    Model(#[from] Error),
    /// What should be in the pack is no JSON.
    #[error("a part of the pack is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The ZIP file cannot be written or read.
    #[error("the pack is no ZIP file of receipts: {0}")]
    Zip(String),
}

impl From<zip::result::ZipError> for EvidenceError {
    fn from(cause: zip::result::ZipError) -> Self {
        Self::Zip(cause.to_string())
    }
}

/// What a pack holds.
#[derive(Debug, Clone)]
pub struct EvidencePack {
    /// The receipts that were asked for.
    pub asked: Vec<ReceiptBundle>,
    /// The settles that erased rows which those receipts had left waiting.
    pub settled: Vec<ReceiptBundle>,
    /// The audits on record since the first of them.
    pub audits: Vec<ReceiptBundle>,
    /// The exports that the engine knows of, as the newest receipt that lists some has them.
    pub exports: Vec<KnownCopy>,
    checkpoint: String,
    /// The public keys of the log, one a line.
    keys: String,
}

/// Whether a settle erased the rows that a receipt had left waiting.
pub(crate) fn settles(settle: &Receipt, receipt: &Receipt) -> bool {
    let waited = receipt.times.forgotten_at.is_some() && receipt.times.scrubbed_at.is_none();
    waited
        && settle
            .settles
            .is_some_and(|run| (run.first..=run.last).contains(&receipt.sequence))
}

/// The JSON of a receipt, laid out for people.
///
/// # Errors
/// The receipt is no JSON.
pub fn readable_receipt(receipt: &Receipt) -> serde_json::Result<String> {
    serde_json::to_string_pretty(receipt)
}

impl EvidencePack {
    /// Gathers what the log of a model has on a request, a person or a receipt.
    ///
    /// # Errors
    /// The log has nothing on it, or the file cannot be read.
    pub fn gather(engine: &Engine, query: &ReceiptQuery) -> Result<Self, EvidenceError> {
        let bundles = |numbers: &[u64]| -> Result<Vec<ReceiptBundle>, Error> {
            numbers
                .iter()
                .map(|number| engine.bundle(&number.to_string()))
                .collect()
        };
        let asked = bundles(&engine.find_receipts(query)?)?;
        let first = asked
            .first()
            .map_or(0, |bundle| bundle.signed.receipt.sequence);
        let mut settled = Vec::new();
        let mut audits = Vec::new();
        let mut exports = Vec::new();
        engine.receipts(&mut |signed, _| {
            let receipt = &signed.receipt;
            if asked
                .iter()
                .any(|bundle| settles(receipt, &bundle.signed.receipt))
            {
                settled.push(receipt.sequence);
            }
            if receipt.kind == RequestKind::Audit && receipt.sequence > first {
                audits.push(receipt.sequence);
            }
            let listed: Vec<KnownCopy> = receipt
                .copies
                .iter()
                .filter(|copy| copy.kind == CopyKind::Export)
                .cloned()
                .collect();
            if !listed.is_empty() {
                exports = listed;
            }
            Ok(())
        })?;
        let keys = engine
            .public_keys()?
            .iter()
            .map(|key| format!("{key}\n"))
            .collect();
        let settled = bundles(&settled)?;
        let audits = bundles(&audits)?;
        Ok(Self {
            asked,
            settled,
            audits,
            exports,
            checkpoint: engine.checkpoint()?,
            keys,
        })
    }

    fn all(&self) -> impl Iterator<Item = &ReceiptBundle> {
        self.asked.iter().chain(&self.settled).chain(&self.audits)
    }

    /// The files of the pack, by name.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, EvidenceError> {
        let page = page::page(self);
        let mut files = vec![
            ("summary.html".to_owned(), page.html().into_bytes()),
            (
                "exports.json".to_owned(),
                serde_json::to_vec_pretty(&self.exports)?,
            ),
            (
                "checkpoint.txt".to_owned(),
                self.checkpoint.clone().into_bytes(),
            ),
            ("keys.txt".to_owned(), self.keys.clone().into_bytes()),
        ];
        // The page links to the numbers of its tables and figures.
        files.extend(
            page.csv()
                .into_iter()
                .map(|file| (file.name, file.text.into_bytes())),
        );
        for bundle in self.all() {
            let number = bundle.signed.receipt.sequence;
            let file = bundle.to_bytes().map_err(Error::from)?;
            files.push((format!("receipts/{number}.cose"), file));
            let text = readable_receipt(&bundle.signed.receipt)? + "\n";
            files.push((format!("receipts/{number}.json"), text.into_bytes()));
        }
        Ok(files)
    }

    /// The pack as a ZIP file. Nothing is compressed, and no time of this machine is written: the
    /// same pack has the same bytes.
    ///
    /// # Errors
    /// A part of it cannot be written; that happens to no receipt of a log that can be read.
    pub fn zip(&self) -> Result<Vec<u8>, EvidenceError> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default());
        for (name, bytes) in self.files()? {
            writer.start_file(name, options)?;
            writer
                .write_all(&bytes)
                .map_err(|cause| EvidenceError::Zip(cause.to_string()))?;
        }
        Ok(writer.finish()?.into_inner())
    }
}
