//! A receipt before it is signed: what a change found out, and where it stands in the log.

use efface::NotCovered;
use efface_receipt::{
    AuditEntry, DistanceBound, Hash, KeyChange, KeyId, KnownCopy, LogHead, MAX_LIST,
    MAX_TEXT_BYTES, Receipt, ReleaseTerms, RequestId, RequestKind, RequestOutcome, RequestTimes,
    RowsTouched, SCHEMA, SettledRun, StateChange, Time, UncoveredPart, rows_commitment,
};
use serde_json::{Map, Value};

use super::{LedgerHead, ModelState};
use crate::file::FileFault;
use crate::randomness::random_name;

/// The model before and after, which requests that are applied together share.
pub(crate) struct ModelTransition {
    pub(crate) before: Option<ModelState>,
    pub(crate) after: ModelState,
    pub(crate) copies: Vec<KnownCopy>,
}

/// Where a receipt will stand, and by which key it will be signed.
pub(super) struct LogPosition {
    pub(super) sequence: u64,
    /// The head that it is written on; None for the first receipt of a log.
    pub(super) previous: Option<LogHead>,
    pub(super) key_id: KeyId,
}

/// One receipt to be.
pub(crate) struct ReceiptDraft {
    pub(crate) kind: RequestKind,
    pub(crate) outcome: RequestOutcome,
    pub(crate) reason: Option<String>,
    /// The commitment to the caller's name for the request.
    pub(crate) request: Option<Hash>,
    pub(crate) requested_at: Option<Time>,
    pub(crate) received_at: Time,
    /// When the rows left the model.
    pub(crate) forgotten_at: Option<Time>,
    /// When they were overwritten, or those that had waited were.
    pub(crate) scrubbed_at: Option<Time>,
    /// For a settle: the receipts whose rows it overwrote.
    pub(crate) settles: Option<SettledRun>,
    pub(crate) subject: Option<Hash>,
    pub(crate) gone: Vec<Hash>,
    pub(crate) come: Vec<Hash>,
    /// The rows of a new model, which are too many to be listed.
    pub(crate) loaded: Option<RowsTouched>,
    pub(crate) findings: Option<MethodFindings>,
    pub(crate) release: Option<ReleaseTerms>,
    pub(crate) keys: Option<KeyChange>,
    pub(crate) audit: Vec<AuditEntry>,
    /// Settings of what computed no model, such as a policy, or beside those of the method.
    pub(crate) settings: Map<String, Value>,
}

/// What a method found out, in the receipt's words.
#[derive(Clone)]
pub(crate) struct MethodFindings {
    pub(crate) method: String,
    pub(crate) settings: Map<String, Value>,
    pub(crate) seed: Option<u64>,
    pub(crate) claim: efface_receipt::ReceiptClaim,
    pub(crate) bound: DistanceBound,
    pub(crate) head_bound: Option<DistanceBound>,
    pub(crate) not_covered: Vec<NotCovered>,
    pub(crate) kept_beside: Vec<NotCovered>,
}

impl ReceiptDraft {
    /// A draft with nothing but its kind, its outcome and its time.
    pub(crate) fn new(kind: RequestKind, outcome: RequestOutcome, received_at: Time) -> Self {
        Self {
            kind,
            outcome,
            reason: None,
            request: None,
            requested_at: None,
            received_at,
            forgotten_at: None,
            scrubbed_at: None,
            settles: None,
            subject: None,
            gone: Vec::new(),
            come: Vec::new(),
            loaded: None,
            findings: None,
            release: None,
            keys: None,
            audit: Vec::new(),
            settings: Map::new(),
        }
    }

    pub(super) fn receipt(
        self,
        ledger: &LedgerHead,
        stage: &ModelTransition,
        position: LogPosition,
    ) -> Result<Receipt, FileFault> {
        let id = random_name::<16>().map_err(|error| FileFault::Damaged(error.to_string()))?;
        let LogPosition {
            sequence,
            previous,
            key_id,
        } = position;
        let touched: Vec<Hash> = self.gone.iter().chain(&self.come).copied().collect();
        let rows = self.loaded.unwrap_or_else(|| RowsTouched {
            commitment: rows_commitment(&touched),
            removed: self.gone.len() as u64,
            added: self.come.len() as u64,
        });
        let changed = !matches!(
            self.outcome,
            RequestOutcome::NotFound | RequestOutcome::Refused
        ) && self.kind != RequestKind::Settle;
        // A request that changed nothing, or a settle, starts and ends where the others that it
        // came with end.
        let before = if changed {
            stage.before
        } else {
            Some(stage.after)
        };
        let mut settings = self.settings;
        let mut method = None;
        let mut seed = None;
        let mut claim = None;
        let mut bound = None;
        let mut head_bound = None;
        let mut not_covered = Vec::new();
        let mut kept_beside = Vec::new();
        if let Some(mut found) = self.findings {
            found.settings.extend(settings);
            settings = found.settings;
            method = Some(found.method);
            seed = found.seed;
            claim = Some(found.claim);
            bound = Some(found.bound);
            head_bound = found.head_bound;
            not_covered = found.not_covered;
            kept_beside = found.kept_beside;
        }
        let mut copies = stage.copies.clone();
        if copies.len() > MAX_LIST {
            let more = copies.len() - MAX_LIST;
            copies.drain(..more);
            kept_beside.push(NotCovered::OlderCopies { copies: more });
        }
        Ok(Receipt {
            schema: SCHEMA.into(),
            id,
            origin: ledger.origin.clone(),
            sequence,
            request_id: self.request.map(RequestId::Committed),
            kind: self.kind,
            outcome: self.outcome,
            reason: self.reason.map(|text| printable(&text)),
            times: RequestTimes {
                requested_at: self.requested_at,
                received_at: self.received_at,
                forgotten_at: self.forgotten_at,
                scrubbed_at: self.scrubbed_at,
            },
            subject: self.subject,
            rows,
            training_set: StateChange {
                before: before.map(|state| state.0),
                after: stage.after.0,
            },
            parameters: StateChange {
                before: before.map(|state| state.1),
                after: stage.after.1,
            },
            method,
            efface: env!("CARGO_PKG_VERSION").into(),
            settings,
            seed,
            claim,
            bound,
            head_bound,
            audit: self.audit,
            not_covered: not_covered.iter().map(uncovered_part).collect(),
            kept_beside: kept_beside.iter().map(uncovered_part).collect(),
            copies,
            release: self.release,
            settles: self.settles,
            keys: self.keys,
            key_id,
            previous,
        })
    }
}

/// What is not covered, in the receipt's form: the code, and the sentence.
fn uncovered_part(what: &NotCovered) -> UncoveredPart {
    UncoveredPart {
        code: what.code().into(),
        detail: printable(&what.to_string()),
    }
}

/// A text as receipts have them: no control characters, not too long. Names of columns may have
/// either.
pub(crate) fn printable(text: &str) -> String {
    let mut clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if clean.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES - '…'.len_utf8())
            .rev()
            .find(|at| clean.is_char_boundary(*at));
        clean.truncate(end.unwrap_or(0));
        clean.push('…');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_printable() {
        assert_eq!(printable("a\nb"), "a b");
        let long = printable(&"é".repeat(2000));
        assert!(long.len() <= MAX_TEXT_BYTES && long.ends_with('…'));
    }
}
