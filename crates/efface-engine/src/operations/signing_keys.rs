//! The keys of a model's log: which they are, how one replaces another, and how a lost one is
//! replaced.

use std::path::{Path, PathBuf};

use efface_receipt::{
    KeyChange, PublicKey, ReceiptSigner, RequestKind, RequestOutcome, SecretKey, SignedReceipt,
    TrustedKey,
};

use super::change::OpenedChange;
use super::open_model::OpenModel;
use super::report::ReceiptPlace;
use crate::error::{Error, Result};
use crate::file::outputs::{self, PlannedOutput};
use crate::ledger::key::{self, KeyFile};
use crate::ledger::passphrase::Passphrase;
use crate::ledger::signer::KeyPlace;
use crate::ledger::{self, ReceiptDraft, founding};

/// The most hand-overs of keys in one log: a verifier reads no more.
const MOST_KEYS: usize = 60;

/// How the signing key is replaced.
#[derive(Debug, Clone, Default)]
pub struct KeyRotation {
    /// Where the new key is to be: a key file, or something that signs.
    pub place: KeyPlace,
    /// The file of the recovery key, where the signing key is lost.
    pub recover: Option<PathBuf>,
    /// A new file for another recovery key; without one the recovery key stays as it is.
    pub recovery_key: Option<PathBuf>,
}

/// The public keys of the log, oldest first, each with the receipts that it signs.
pub(crate) fn public_keys(model: &OpenModel) -> Result<Vec<TrustedKey>> {
    let _transaction = model.store.begin(false)?;
    let ledger = model.snapshot()?.manifest.ledger;
    let mut keys = vec![TrustedKey {
        key: PublicKey::parse(&ledger.first_key)?,
        first: 0,
        last: None,
    }];
    for rotation in &ledger.rotations {
        let bytes = model
            .store
            .with(|connection| ledger::leaf(connection, *rotation))?;
        let named = SignedReceipt::parse(&bytes)?.receipt.keys;
        let Some(named) = named else {
            let what = format!("receipt {rotation} names no keys");
            return Err(Error::Damaged {
                path: model.store.path().to_owned(),
                what,
            });
        };
        if let Some(old) = keys.last_mut() {
            old.last = Some(*rotation);
        }
        keys.push(TrustedKey {
            key: PublicKey::parse(&named.next)?,
            first: rotation + 1,
            last: None,
        });
    }
    Ok(keys)
}

/// Encrypts the key file with another passphrase, or with none.
pub(crate) fn change_passphrase(model: &OpenModel, passphrase: Option<Passphrase>) -> Result<()> {
    // Nobody else replaces the file meanwhile: a rotation holds the model.
    let _transaction = model.store.begin(true)?;
    model
        .access
        .file(model.store.path())
        .change_passphrase(passphrase)
}

/// Destroys the key of an encrypted model; gives the receipt.
pub(crate) fn destroy(model: &OpenModel) -> Result<ReceiptPlace> {
    let change = OpenedChange::begin(model, true)?;
    let Some(check) = model.store.key_check()? else {
        let hint = "only a model that was fitted with encryption has one; to scrub rows, forget and settle";
        return Err(Error::request(
            "the model is not encrypted: there is no key to destroy",
            hint,
        ));
    };
    let signer = change.signing_key()?;
    let draft = ReceiptDraft::new(
        RequestKind::Destroy,
        RequestOutcome::Done,
        change.received_at,
    );
    let unchanged = change.unchanged();
    let signed = change.sign(&*signer, &unchanged, vec![draft])?;
    // Before the receipt lasts: none may say what is not done. After a crash in between, the same
    // can be asked again.
    model
        .access
        .file(model.store.path())
        .destroy_data_key(&check)?;
    let receipt = signed.commit_last()?;
    model.store.lock();
    Ok(receipt)
}

/// Another key signs from here on; gives its public half and the receipt of the hand-over.
pub(crate) fn rotate(model: &OpenModel, rotation: &KeyRotation) -> Result<(String, ReceiptPlace)> {
    let outputs: Vec<PlannedOutput<'_>> = rotation
        .recovery_key
        .as_deref()
        .map(PlannedOutput::file)
        .into_iter()
        .collect();
    outputs::check_outputs(&outputs, &[model.store.path()], false)?;
    let change = OpenedChange::begin(model, true)?;
    let signer = match &rotation.recover {
        Some(path) => recovery_signer(&change, path)?,
        None => change.signing_key()?,
    };
    let path = model.store.path();
    let ledger = &change.manifest.ledger;
    if ledger.rotations.len() >= MOST_KEYS {
        let hint = "fit the model again to start a new log";
        return Err(Error::request(
            format!("the key of this log was replaced {MOST_KEYS} times"),
            hint,
        ));
    }
    let (next, secret) = founding::new_signer(&ledger.origin, &rotation.place)?;
    let keys = model.access.file(path);
    let kept = founding::noise_seed_in(&model.store, ledger, &keys);
    let is_lost = kept.is_err();
    // The seed of noise and names is lost with the key file; the file of the recovery key holds it
    // too.
    let seed = match (kept, &rotation.recover) {
        (Ok(seed), _) => Some(seed),
        (Err(_), Some(file)) => Some(founding::noise_seed_in(
            &model.store,
            ledger,
            &KeyFile::at(file),
        )?),
        (Err(_), None) => None,
    };
    let mut recovery = ledger.recovery.clone();
    if let Some(path) = &rotation.recovery_key {
        let secret = key::draw(&ledger.origin)?;
        KeyFile::at(path).add(Some(&secret), seed.as_ref())?;
        recovery = Some(secret.public().to_string());
    }
    let public = next.public_key().to_string();
    // The new key is on disk before the model asks for it.
    keys.add(secret.as_ref(), seed.as_ref().filter(|_| is_lost))?;
    let mut draft = ReceiptDraft::new(
        RequestKind::KeyRotation,
        RequestOutcome::Done,
        change.received_at,
    );
    draft.keys = Some(KeyChange {
        by: signer.public_key().to_string(),
        retired: Some(ledger.key.clone()),
        next: public.clone(),
        recovery: recovery.clone(),
    });
    let unchanged = change.unchanged();
    let signed = change.sign(&*signer, &unchanged, vec![draft])?;
    let receipt = signed.hand_over(&*next, recovery).commit_last()?;
    // The old key is good for nothing any more. If it cannot be removed now, the next rotation does
    // it.
    let _ = keys.keep_only(next.public_key(), None);
    Ok((public, receipt))
}

/// The recovery key, which must be the one that the log names.
fn recovery_signer(change: &OpenedChange<'_>, path: &Path) -> Result<Box<dyn ReceiptSigner>> {
    let Some(named) = &change.manifest.ledger.recovery else {
        let hint = "a log gets one at the fit, or with a rotation of its key";
        return Err(Error::request("this log names no recovery key", hint));
    };
    let secret: SecretKey = KeyFile::at(path).load(&PublicKey::parse(named)?)?;
    Ok(Box::new(secret))
}
