//! The keys of a model's log: which they are, and how one replaces another.

use efface_receipt::{RequestKind, RequestOutcome};

use super::change::OpenedChange;
use super::open_model::OpenModel;
use super::report::ReceiptPlace;
use crate::error::{Error, Result};
use crate::ledger::{ReceiptDraft, key};

/// The most hand-overs of keys in one log: a verifier reads no more.
const MOST_KEYS: usize = 60;

/// The public keys: the one that the log began with, and the one that signs now.
pub(crate) fn public_keys(model: &OpenModel) -> Result<(String, String)> {
    let _transaction = model.store.begin(false)?;
    let ledger = model.snapshot()?.manifest.ledger;
    Ok((ledger.first_key, ledger.key))
}

/// Another key signs from here on; gives its public half and the receipt of the hand-over.
pub(crate) fn rotate(model: &OpenModel) -> Result<(String, ReceiptPlace)> {
    let change = OpenedChange::begin(model, true)?;
    let signer = change.signing_key()?;
    let path = model.store.path();
    let ledger = &change.manifest.ledger;
    if ledger.rotations.len() >= MOST_KEYS {
        let hint = "fit the model again to start a new log";
        return Err(Error::request(format!("the key of this log was replaced {MOST_KEYS} times"), hint));
    }
    let secret = key::draw(&ledger.origin)?;
    let public = secret.public().to_string();
    // The new key is on disk before the model asks for it.
    key::add(path, &secret, None)?;
    let mut draft = ReceiptDraft::new(RequestKind::KeyRotation, RequestOutcome::Done, change.received_at);
    draft.next_key = Some(public.clone());
    let unchanged = change.unchanged();
    let receipt = change.sign(&signer, &unchanged, vec![draft])?.hand_over(&secret).commit_last()?;
    // The old key is good for nothing any more. If it cannot be removed now, the next rotation does it.
    let _ = key::keep_only(path, &secret, None);
    Ok((public, receipt))
}
