//! The request once more, on a model file in a temporary folder: fit, forget, and verify the
//! receipt as an outsider would, from the receipt's bytes and the public key.

use std::time::Instant;

use efface::synthetic::{PLANTED_USER, Review};
use efface_engine::{Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent};
use efface_io::{FileFormat, Source};
use efface_receipt::{KeyRing, verify_bytes};
use serde::Serialize;

use super::data::write_csv;
use crate::failure::{Failure, Result};

/// What became of the model file, and whether its receipt holds.
#[derive(Debug, Serialize)]
pub(super) struct ReceiptResult {
    pub(super) rows: usize,
    pub(super) file_bytes: u64,
    pub(super) fit_seconds: f64,
    pub(super) forgotten: usize,
    pub(super) method: String,
    pub(super) claim: String,
    pub(super) relative_bound: f64,
    /// The forget alone: model read, rows overwritten, receipt signed, file synced.
    pub(super) forget_seconds: f64,
    pub(super) id: String,
    pub(super) sequence: u64,
    pub(super) bytes: usize,
    pub(super) verified: bool,
    pub(super) verify_seconds: f64,
    /// Whether the same bundle with one digit changed is refused, as it has to be.
    pub(super) altered_refused: bool,
}

impl ReceiptResult {
    pub(super) fn measure(reviews: &[Review]) -> Result<Self> {
        let folder = tempfile::tempdir()
            .map_err(|cause| Failure::file(&std::env::temp_dir(), "written", &cause))?;
        let path = folder.path().join("reviews.efface");
        let fitted = efface_engine::fit(&fit_request(reviews)?, &path, false, &Silent)?;

        let mut engine = Engine::open(&path)?;
        let who = RowSelection::Subject {
            column: "user_id".into(),
            value: PLANTED_USER.into(),
        };
        let report = engine.forget(&ForgetRequest::new(who), &ForgetOptions::default())?;
        let logged = report
            .receipt
            .ok_or_else(|| Failure::internal("the forget left no receipt"))?;
        let bundle = engine.bundle(&logged.sequence.to_string())?;
        let bytes = bundle.to_bytes().map_err(efface_engine::Error::from)?;

        let list: String = engine
            .public_keys()?
            .iter()
            .map(|key| format!("{key}\n"))
            .collect();
        let keys = KeyRing::parse(&list).map_err(efface_engine::Error::from)?;
        let begin = Instant::now();
        let verified = verify_bytes(&bytes, &keys).is_ok();
        let verify_seconds = begin.elapsed().as_secs_f64();
        Ok(Self {
            rows: fitted.summary.rows,
            file_bytes: fitted.summary.file_bytes,
            fit_seconds: fitted.seconds,
            forgotten: report.forgotten,
            method: report.method,
            claim: report.claim,
            relative_bound: report.evidence.relative_bound,
            forget_seconds: report.seconds,
            id: logged.id,
            sequence: logged.sequence,
            bytes: bytes.len(),
            verified,
            verify_seconds,
            altered_refused: verify_bytes(&altered(&bytes), &keys).is_err(),
        })
    }
}

/// The request of `efface fit reviews.csv --text text --target stars --subject user_id --id
/// review_id`.
pub(super) fn fit_request(reviews: &[Review]) -> Result<FitRequest> {
    let mut table = Vec::new();
    write_csv(reviews, &mut table).map_err(|cause| Failure::internal(cause.to_string()))?;
    let source = Source::from_bytes("reviews.csv", table, Some(FileFormat::Csv))?;
    let mut request = FitRequest::new(source);
    request.targets = vec!["stars".into()];
    request.text = vec!["text".into()];
    request.id = Some("review_id".into());
    request.subject = Some("user_id".into());
    Ok(request)
}

/// The bundle with another digit in the first place that has one: what a forger would change to
/// tell another story.
fn altered(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(digit) = bytes.iter_mut().find(|byte| byte.is_ascii_digit()) {
        *digit = if *digit == b'9' { b'0' } else { *digit + 1 };
    }
    bytes
}
