//! What tests of a model found, put on record.

use efface_receipt::{AuditEntry, MAX_LIST, RequestKind, RequestOutcome};

use crate::error::{Error, Result};
use crate::ledger::ReceiptDraft;
use crate::operations::change::OpenedChange;
use crate::operations::open_model::OpenModel;
use crate::operations::report::ReceiptPlace;

/// What tests of the model found, as a receipt of its own.
pub(crate) fn record_audit(model: &OpenModel, results: &[AuditEntry]) -> Result<ReceiptPlace> {
    if results.is_empty() || results.len() > MAX_LIST {
        return Err(Error::request(
            format!("an audit has 1 to {MAX_LIST} results"),
            "record each test once",
        ));
    }
    let named = |name: &str| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/'))
    };
    if !results.iter().all(|result| named(&result.test)) {
        return Err(Error::request(
            "the name of a test has 1 to 64 letters, digits, `_`, `-`, `.` or `/`",
            "a receipt holds names and numbers of tests, and nothing of the rows they were run on",
        ));
    }
    if results
        .iter()
        .flat_map(|r| [r.value, r.threshold])
        .flatten()
        .any(|number| !number.is_finite())
    {
        let hint = "leave out a value that could not be measured";
        return Err(Error::request(
            "a result of a test is a finite number",
            hint,
        ));
    }
    let change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let mut draft = ReceiptDraft::new(RequestKind::Audit, RequestOutcome::Done, change.received_at);
    draft.audit = results.to_vec();
    let unchanged = change.unchanged();
    change
        .sign(&*signer, &unchanged, vec![draft])?
        .commit_last()
}
