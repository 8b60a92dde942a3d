//! How a log begins: with a key, the training set as it is, and a receipt that says so.

use std::path::Path;

use efface_receipt::{Hash, KeyRing, Kind, Outcome, PublicKey, SecretKey, Signed};
use rusqlite::Connection;

use super::noise::{self, NoiseSeed};
use super::{
    LedgerHead, MemberTree, MethodFindings, ModelTransition, ReceiptDraft, ReceiptLog, key, leaf, of,
    parameters,
};
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::file::{self, FileFault, ModelStore, RowShape};

/// The secrets of a new log, which lie beside the model: the key that signs, and the seed of all noise on exports.
pub(crate) struct LogSecrets {
    pub(crate) key: SecretKey,
    pub(crate) noise: NoiseSeed,
}

/// The secrets of a new log. Its name is drawn too: two fits of one file are two logs.
pub(crate) fn draw() -> Result<LogSecrets> {
    let origin = format!("efface/{}", key::name::<8>()?);
    Ok(LogSecrets { key: key::draw(&origin)?, noise: NoiseSeed::draw(&origin)? })
}

/// The first receipt over these rows. The caller saves the manifest.
pub(crate) fn found(
    connection: &Connection,
    manifest: &mut Manifest,
    secrets: &LogSecrets,
    rows: Vec<Hash>,
    findings: Option<MethodFindings>,
    reason: Option<String>,
) -> std::result::Result<(), FileFault> {
    let mut ledger = LedgerHead::new(&secrets.key.public());
    let now = ledger.now();
    let set = MemberTree(connection).change(&mut ledger, &[], &rows)?;
    ledger.version_at = ledger.newest;
    let stage =
        ModelTransition { before: None, after: (set, parameters(&manifest.parts)), copies: Vec::new() };
    let mut entry = ReceiptDraft::new(Kind::Fit, Outcome::Done, now);
    (entry.come, entry.findings, entry.reason) = (rows, findings, reason);
    // Signed here, so that another seed beside the model is noticed.
    entry.settings.insert(noise::SETTING.into(), secrets.noise.commitment().to_string().into());
    ReceiptLog(connection).append(&mut ledger, &secrets.key, &stage, vec![entry])?;
    manifest.ledger = Some(ledger);
    Ok(())
}

/// The key to sign a change with. A model of an older format gets its log here, in the transaction of its first change.
pub(crate) fn signer(store: &ModelStore, manifest: &mut Manifest) -> Result<SecretKey> {
    let path: &Path = store.path();
    if let Some(ledger) = &manifest.ledger {
        return key::load(path, &ledger.key);
    }
    let secrets = draw()?;
    key::add(path, &secrets.key, Some(&secrets.noise))?;
    store.with(|connection| {
        file::extend(connection)?;
        let salt = super::salt(manifest);
        let mut rows = Vec::new();
        file::rows::each(connection, RowShape::of(&manifest.blueprint), &[], |_, row, content| {
            rows.push(salt.row(row.id.as_bytes(), &content));
            Ok(())
        })?;
        let reason = "the log starts here: the model was fitted, and perhaps changed, by an older efface";
        found(connection, manifest, &secrets, rows, None, Some(reason.into()))
    })?;
    Ok(secrets.key)
}

/// The seed of the noise on exports. It must be the one whose hash the first receipt holds.
pub(crate) fn noise_seed(store: &ModelStore, manifest: &Manifest) -> Result<NoiseSeed> {
    let path = store.path();
    let ledger = of(manifest, path)?;
    let first = store.with(|connection| {
        let first = Signed::parse(&leaf(connection, 0)?)?;
        first.verify(&KeyRing::from(PublicKey::parse(&ledger.first_key)?))?;
        Ok(first)
    })?;
    let promised = first.receipt.settings.get(noise::SETTING).and_then(|hash| hash.as_str());
    match promised.and_then(Hash::from_hex) {
        Some(commitment) => key::noise_seed(path, &commitment),
        None => Err(Error::NoiseSeed {
            path: key::path(path),
            problem: "the model is older than such seeds".into(),
        }),
    }
}
