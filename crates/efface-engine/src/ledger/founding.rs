//! How a log begins: with a key, the training set as it is, and a receipt that says so.

use efface_receipt::{Hash, KeyRing, PublicKey, RequestKind, RequestOutcome, SecretKey, SignedReceipt};
use rusqlite::Connection;

use super::noise::{self, NoiseSeed};
use super::{LedgerHead, MethodFindings, ModelTransition, ReceiptDraft, ReceiptLog, key, leaf};
use crate::error::Result;
use crate::file::{FileFault, ModelStore, damaged};
use crate::randomness::random_name;

/// The secrets of a new log, which lie beside the model: the key that signs, and the seed of all noise on exports.
pub(crate) struct LogSecrets {
    pub(crate) key: SecretKey,
    pub(crate) noise: NoiseSeed,
}

/// The secrets of a new log. Its name is drawn too: two fits of one file are two logs.
pub(crate) fn draw() -> Result<LogSecrets> {
    let origin = format!("efface/{}", random_name::<8>()?);
    Ok(LogSecrets { key: key::draw(&origin)?, noise: NoiseSeed::draw(&origin)? })
}

/// What the first receipt of a log says of the model.
pub(crate) struct FirstReceipt {
    /// The commitments of the rows.
    pub(crate) rows: Vec<Hash>,
    /// The hash of the parameters.
    pub(crate) parameters: Hash,
    pub(crate) findings: MethodFindings,
}

/// Begins the log of a new model with its first receipt. The head of the log is signed with the manifest.
pub(crate) fn found(
    connection: &Connection,
    ledger: &mut LedgerHead,
    secrets: &LogSecrets,
    first: FirstReceipt,
) -> std::result::Result<(), FileFault> {
    let now = ledger.now();
    let set = ledger.change_members(connection, &[], &first.rows)?;
    ledger.version_at = ledger.newest;
    let fitted = ModelTransition { before: None, after: (set, first.parameters), copies: Vec::new() };
    let mut draft = ReceiptDraft::new(RequestKind::Fit, RequestOutcome::Done, now);
    draft.come = first.rows;
    draft.findings = Some(first.findings);
    // Signed here, so that another seed beside the model is noticed.
    draft.settings.insert(noise::SETTING.into(), secrets.noise.commitment().to_string().into());
    ReceiptLog(connection).append(ledger, &secrets.key, &fitted, vec![draft])?;
    Ok(())
}

/// The seed of the noise on exports. It must be the one whose hash the first receipt holds.
pub(crate) fn noise_seed(store: &ModelStore, ledger: &LedgerHead) -> Result<NoiseSeed> {
    let commitment = store.with(|connection| {
        let first = SignedReceipt::parse(&leaf(connection, 0)?)?;
        first.verify(&KeyRing::from(PublicKey::parse(&ledger.first_key)?))?;
        let promised = first.receipt.settings.get(noise::SETTING).and_then(|hash| hash.as_str());
        match promised.and_then(Hash::from_hex) {
            Some(commitment) => Ok(commitment),
            None => damaged("its first receipt holds no hash of the seed of its noise"),
        }
    })?;
    key::noise_seed(store.path(), &commitment)
}
