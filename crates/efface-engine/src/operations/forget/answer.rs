//! What is told of a request, and what is kept of that for the same request when it comes again.

use efface::Evidence;
use efface_receipt::{Hash, RequestOutcome, SignedReceipt};
use serde::{Deserialize, Serialize};

use super::plan::ForgetPlan;
use crate::codec::pack;
use crate::error::Result;
use crate::ledger::TrustedTree;
use crate::ledger::requests::AnsweredRequest;
use crate::operations::change::{OpenedChange, SignedChange, change_report, receipt_place};
use crate::operations::report::{ChangeReport, ReceiptPlace};

/// What is kept of an answer.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptAnswer {
    /// The id of the receipt.
    id: String,
    pub(super) outcome: RequestOutcome,
    pub(super) reason: Option<String>,
    pub(super) missing: usize,
    pub(super) withdrawn: usize,
    /// How far the parameters would move, in a dry run.
    #[serde(skip)]
    pub(super) moved: Option<f64>,
    /// The digest of the rows that leave, which a dry run reports.
    #[serde(skip)]
    pub(super) rows_digest: Option<Hash>,
    pub(super) dropped: usize,
    pub(super) scrubbed: bool,
    pub(super) evidence: Evidence,
    /// What proves to whom the receipt's commitment to the subject is. It is told once: whoever
    /// finds it in the file could test guesses.
    #[serde(skip)]
    pub(super) opening: Option<Hash>,
}

impl KeptAnswer {
    /// The answer to a request that changed nothing; the fields tell what else came of it.
    pub(super) fn new(outcome: RequestOutcome, plan: &ForgetPlan, evidence: Evidence) -> Self {
        Self {
            id: String::new(),
            outcome,
            reason: plan.reason(outcome),
            missing: plan.missing,
            withdrawn: 0,
            moved: None,
            rows_digest: Some(plan.rows_digest),
            dropped: 0,
            scrubbed: true,
            evidence,
            opening: plan.subject.as_ref().map(|subject| subject.opening),
        }
    }

    /// The answer to a request that added rows.
    pub(crate) fn learned(dropped: usize, evidence: Evidence) -> Self {
        Self {
            id: String::new(),
            outcome: RequestOutcome::Done,
            reason: None,
            missing: 0,
            withdrawn: 0,
            moved: None,
            rows_digest: None,
            dropped,
            scrubbed: true,
            evidence,
            opening: None,
        }
    }

    /// Returns the answer as it is kept beside a hash of what was asked.
    pub(crate) fn under(&mut self, body: Hash, signed: &SignedReceipt) -> Result<AnsweredRequest> {
        self.id = signed.receipt.id.clone();
        Ok(AnsweredRequest {
            body,
            sequence: signed.receipt.sequence,
            result: pack::write(&*self)?,
        })
    }

    fn into_report(self, seconds: f64, dry_run: bool) -> ChangeReport {
        ChangeReport {
            outcome: self.outcome,
            reason: self.reason,
            missing: self.missing,
            withdrawn: self.withdrawn,
            moved: self.moved,
            rows_digest: self.rows_digest.filter(|_| dry_run),
            scrubbed: self.scrubbed,
            subject_opening: self
                .opening
                .filter(|_| !dry_run)
                .map(|opening| opening.to_string()),
            ..change_report(self.evidence, seconds, dry_run, self.dropped)
        }
    }
}

/// The reports of answers, each with the receipt of the same place.
pub(super) fn reports(
    kept: Vec<KeptAnswer>,
    receipts: &[SignedReceipt],
    seconds: f64,
    dry_run: bool,
) -> Vec<ChangeReport> {
    let report = |(at, answer): (usize, KeptAnswer)| ChangeReport {
        receipt: receipts.get(at).map(receipt_place),
        ..answer.into_report(seconds, dry_run)
    };
    kept.into_iter().enumerate().map(report).collect()
}

/// Keeps the answers of requests that have names.
pub(super) fn record(
    change: &mut SignedChange<'_>,
    plans: &[ForgetPlan],
    kept: &mut [KeptAnswer],
    answered: TrustedTree,
) -> Result<()> {
    let mut answers = Vec::new();
    for ((plan, answer), signed) in plans.iter().zip(kept).zip(change.receipts()) {
        let Some(name) = plan.name else { continue };
        answers.push((name.commitment, answer.under(name.body, signed)?));
    }
    change.record_answers(&answers, answered)
}

/// The first answer again.
pub(crate) fn replay(change: &OpenedChange<'_>, known: &AnsweredRequest) -> Result<ChangeReport> {
    let kept: KeptAnswer =
        pack::read(&known.result).map_err(|fault| fault.at(change.store().path()))?;
    let receipt = Some(ReceiptPlace {
        id: kept.id.clone(),
        sequence: known.sequence,
    });
    let report = kept.into_report(change.started.elapsed().as_secs_f64(), false);
    Ok(ChangeReport {
        replayed: true,
        receipt,
        ..report
    })
}
