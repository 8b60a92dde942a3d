//! What the caller of a change is told.

use efface::Evidence;
use efface_receipt::Signed;

use crate::report::{Logged, Report};

pub(super) fn report(evidence: Evidence, seconds: f64, dry_run: bool, features_dropped: usize) -> Report {
    Report {
        method: evidence.method.clone(),
        claim: evidence.claim.name().into(),
        forgotten: evidence.forgotten,
        learned: evidence.learned,
        rows: evidence.rows,
        bound: evidence.bound,
        seconds,
        dry_run,
        features_dropped,
        outcome: "done".into(),
        reason: None,
        missing: 0,
        withdrawn: 0,
        scrubbed: true,
        replayed: false,
        receipt: None,
        evidence,
    }
}

pub(super) fn logged(signed: &Signed) -> Logged {
    Logged { id: signed.receipt.id.clone(), sequence: signed.receipt.sequence }
}

pub(super) fn empty() -> efface_receipt::SetState {
    efface_receipt::training_set::Node::EMPTY.state()
}
