//! What the caller of a change is told.

use efface::{Claim, Evidence};
use efface_receipt::{RequestOutcome, SignedReceipt};

use crate::codec::manifest::Manifest;
use crate::operations::report::{ChangeReport, ReceiptPlace};

/// The report of a change that was made, or would be in a dry run.
pub(crate) fn change_report(
    evidence: Evidence,
    seconds: f64,
    dry_run: bool,
    features_dropped: usize,
) -> ChangeReport {
    ChangeReport {
        method: evidence.method.clone(),
        claim: evidence.claim().name().into(),
        forgotten: evidence.forgotten,
        learned: evidence.learned,
        rows: evidence.rows,
        bound: evidence.bound,
        tolerance: evidence.tolerance,
        tolerance_missed: evidence.tolerance_missed(),
        seconds,
        dry_run,
        features_dropped,
        outcome: RequestOutcome::Done,
        reason: None,
        missing: 0,
        withdrawn: 0,
        moved: None,
        rows_digest: None,
        scrubbed: true,
        replayed: false,
        receipt: None,
        subject_opening: None,
        remarks: Vec::new(),
        evidence,
    }
}

/// Where a receipt stands in the log.
pub(crate) fn receipt_place(signed: &SignedReceipt) -> ReceiptPlace {
    ReceiptPlace {
        id: signed.receipt.id.clone(),
        sequence: signed.receipt.sequence,
    }
}

/// The record of a change that left the model as it was.
pub(crate) fn idle_evidence(manifest: &Manifest) -> Evidence {
    Evidence {
        method: "none".into(),
        reason: None,
        promise: Claim::Approximate,
        tolerance: None,
        forgotten: 0,
        learned: 0,
        rows: manifest.rows as usize,
        rows_read: 0,
        largest_leverage: None,
        condition: None,
        directions_dropped: 0,
        iterations: 0,
        refinements: 0,
        refactored: false,
        resummed: false,
        gradient_norm: None,
        convexity: 0.0,
        bound: manifest.model.bound.unwrap_or(f64::INFINITY),
        relative_bound: manifest.model.relative_bound.unwrap_or(f64::INFINITY),
        bound_source: efface::BoundSource::Carried,
        head_bound: manifest.model.head_bound,
        certificate: None,
        cleared: None,
        compared: None,
        precomputed: Vec::new(),
        not_covered: Vec::new(),
        kept_beside: Vec::new(),
    }
}
