//! How a log begins: with a key, the training set as it is, and a receipt that says so.

use efface_receipt::{
    Hash, KeyChange, KeyRing, PublicKey, ReceiptSigner, RequestKind, RequestOutcome, RowsTouched,
    SecretKey, SignedReceipt,
};
use rusqlite::Connection;

use super::key::KeyFile;
use super::noise::{self, NoiseSeed};
use super::signer::{ExternalSigner, KeyAccess, KeyPlace};
use super::{LedgerHead, MethodFindings, ModelTransition, ReceiptDraft, ReceiptLog, key, leaf};
use crate::error::Result;
use crate::file::{FileFault, ModelStore, damaged};
use crate::randomness::random_name;

/// The secrets of a new log, none of which lies in the model.
pub(crate) struct LogSecrets {
    /// What signs.
    pub(crate) signer: Box<dyn ReceiptSigner>,
    /// The key that signs, where it is to lie beside the model; None where it is elsewhere.
    pub(crate) key: Option<SecretKey>,
    /// The seed of all noise on exports.
    pub(crate) noise: NoiseSeed,
    /// The key that hands over where the signing key is lost, if there is to be one.
    pub(crate) recovery: Option<SecretKey>,
}

impl LogSecrets {
    /// The log before its first receipt.
    pub(crate) fn head(&self) -> LedgerHead {
        let mut head = LedgerHead::new(self.signer.public_key());
        head.recovery = self.recovery.as_ref().map(|key| key.public().to_string());
        head
    }
}

/// The secrets of a new log. Its name is drawn too: two fits of one file are two logs.
pub(crate) fn draw(access: &KeyAccess, with_recovery: bool) -> Result<LogSecrets> {
    let origin = format!("efface/{}", random_name::<8>()?);
    let noise = NoiseSeed::draw(&origin)?;
    let recovery = with_recovery.then(|| key::draw(&origin)).transpose()?;
    let (signer, key) = new_signer(&origin, &access.place)?;
    Ok(LogSecrets {
        signer,
        key,
        noise,
        recovery,
    })
}

/// What signs from now on: a new key, which is to be put into the key file, or a key elsewhere.
pub(crate) fn new_signer(
    origin: &str,
    place: &KeyPlace,
) -> Result<(Box<dyn ReceiptSigner>, Option<SecretKey>)> {
    if *place != KeyPlace::KeyFile {
        return Ok((Box::new(ExternalSigner::ask(origin, place)?), None));
    }
    let key = key::draw(origin)?;
    let signer = SecretKey::parse(&key.to_text())?;
    Ok((Box::new(signer), Some(key)))
}

/// What the first receipt of a log says of the model.
pub(crate) struct FirstReceipt {
    /// The rows, which are members of the training set already.
    pub(crate) rows: RowsTouched,
    /// The hash of the parameters.
    pub(crate) parameters: Hash,
    pub(crate) findings: MethodFindings,
}

/// Begins the log of a new model with its first receipt. The head of the log is signed with the
/// manifest.
pub(crate) fn found(
    connection: &Connection,
    ledger: &mut LedgerHead,
    secrets: &LogSecrets,
    first: FirstReceipt,
) -> std::result::Result<(), FileFault> {
    let now = ledger.now();
    let set = ledger.members.set;
    ledger.version_at = ledger.newest;
    let fitted = ModelTransition {
        before: None,
        after: (set, first.parameters),
        copies: Vec::new(),
    };
    let mut draft = ReceiptDraft::new(RequestKind::Fit, RequestOutcome::Done, now);
    draft.loaded = Some(first.rows);
    draft.findings = Some(first.findings);
    draft.keys = Some(KeyChange {
        by: ledger.key.clone(),
        retired: None,
        next: ledger.key.clone(),
        recovery: ledger.recovery.clone(),
    });
    // Signed here, so that another seed beside the model is noticed.
    draft.settings.insert(
        noise::SETTING.into(),
        secrets.noise.commitment().to_string().into(),
    );
    ReceiptLog(connection).append(ledger, &*secrets.signer, &fitted, vec![draft])?;
    Ok(())
}

/// The seed of the noise on exports. It must be the one whose hash the first receipt holds.
pub(crate) fn noise_seed(
    store: &ModelStore,
    ledger: &LedgerHead,
    access: &KeyAccess,
) -> Result<NoiseSeed> {
    noise_seed_in(store, ledger, &access.file(store.path()))
}

/// The same, from another file: that of a recovery key holds the seed too.
pub(crate) fn noise_seed_in(
    store: &ModelStore,
    ledger: &LedgerHead,
    file: &KeyFile,
) -> Result<NoiseSeed> {
    let commitment = store.with(|connection| {
        let first = SignedReceipt::parse(&leaf(connection, 0)?)?;
        first.verify(&KeyRing::from(PublicKey::parse(&ledger.first_key)?))?;
        let promised = first
            .receipt
            .settings
            .get(noise::SETTING)
            .and_then(|hash| hash.as_str());
        match promised.and_then(Hash::from_hex) {
            Some(commitment) => Ok(commitment),
            None => damaged("its first receipt holds no hash of the seed of its noise"),
        }
    })?;
    file.noise_seed(&commitment)
}
