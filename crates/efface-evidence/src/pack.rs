//! An evidence pack: what shows that a request was carried out, in one ZIP file.

use efface_engine::{Engine, Error, ReceiptQuery};
use efface_receipt::{
    CopyKind, KnownCopy, LogCheckpoint, PackDigests, Receipt, ReceiptBundle, ReceiptFault,
    RequestKind,
};

use crate::archive;
use crate::page;

/// The name of the head of the log in a pack.
pub(crate) const CHECKPOINT: &str = "checkpoint.txt";

/// Why a pack could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The model or its log does not give what the pack needs.
    #[error(transparent)]
    Model(#[from] Error),
    /// The keys that the pack is verified with cannot be read.
    #[error(transparent)]
    Keys(#[from] ReceiptFault),
    /// What should be in the pack is no JSON.
    #[error("a part of the pack is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The ZIP file cannot be written or read.
    #[error("the pack is no ZIP file of receipts as efface writes it: {0}")]
    Zip(String),
    /// A file of the pack does not hold.
    #[error("{name:?}: {fault}")]
    File {
        /// Its name in the pack.
        name: String,
        /// Why.
        fault: ReceiptFault,
    },
    /// A file of the pack is about another head of the log than its checkpoint.
    #[error("{name:?} is proved against another head than checkpoint.txt")]
    OtherHead {
        /// Its name in the pack.
        name: String,
    },
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
    /// The signed list of all other files.
    digests: String,
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
        let mut pack = Self {
            asked,
            settled,
            audits,
            exports,
            checkpoint: engine.checkpoint()?,
            keys,
            digests: String::new(),
        };
        let head = LogCheckpoint::parse_unverified(&pack.checkpoint).map_err(Error::from)?;
        let files = pack.files()?;
        let contents = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), &bytes[..]));
        pack.digests = engine.sign_pack(&PackDigests::new(&head.origin, head.size, contents))?;
        Ok(pack)
    }

    fn all(&self) -> impl Iterator<Item = &ReceiptBundle> {
        self.asked.iter().chain(&self.settled).chain(&self.audits)
    }

    /// The files of the pack that the list of digests is about, in the order of their names.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, EvidenceError> {
        let page = page::page(self);
        let mut files = vec![
            ("summary.html".to_owned(), page.html().into_bytes()),
            (
                "exports.json".to_owned(),
                serde_json::to_vec_pretty(&self.exports)?,
            ),
            (CHECKPOINT.to_owned(), self.checkpoint.clone().into_bytes()),
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
        files.sort();
        // A receipt may have been asked for that is an audit or a settle as well.
        files.dedup();
        Ok(files)
    }

    /// The pack as a ZIP file. Nothing is compressed, and no time of this machine is written: the
    /// same pack has the same bytes.
    ///
    /// # Errors
    /// A part of it cannot be written; that happens to no receipt of a log that can be read.
    pub fn zip(&self) -> Result<Vec<u8>, EvidenceError> {
        let mut files = self.files()?;
        files.push((
            PackDigests::FILE.to_owned(),
            self.digests.clone().into_bytes(),
        ));
        archive::write(&files)
    }
}
