//! How a log begins: with a key, the training set as it is, and a receipt that says so.

use std::path::Path;

use efface_receipt::{Hash, Kind, Outcome, SecretKey};
use rusqlite::Connection;

use super::{Entry, Findings, Journal, Ledger, Members, Stage, key, parameters};
use crate::error::Result;
use crate::store::{self, Fault, Manifest, Shape, Store};

/// The key of a new log. Its name is drawn too: two fits of one file are two logs.
pub(crate) fn draw() -> Result<SecretKey> {
    key::draw(&format!("efface/{}", key::name::<8>()?))
}

/// The first receipt over these rows. The caller saves the manifest.
pub(crate) fn found(
    connection: &Connection,
    manifest: &mut Manifest,
    secret: &SecretKey,
    rows: Vec<Hash>,
    findings: Option<Findings>,
    reason: Option<String>,
) -> std::result::Result<(), Fault> {
    let mut ledger = Ledger::new(&secret.public());
    let now = ledger.now();
    let set = Members(connection).change(&mut ledger, &[], &rows)?;
    ledger.version_at = ledger.newest;
    let stage = Stage { before: None, after: (set, parameters(&manifest.parts)), copies: Vec::new() };
    let mut entry = Entry::new(Kind::Fit, Outcome::Done, now);
    (entry.come, entry.findings, entry.reason) = (rows, findings, reason);
    Journal(connection).append(&mut ledger, secret, &stage, vec![entry])?;
    manifest.ledger = Some(ledger);
    Ok(())
}

/// The key to sign a change with. A model of an older format gets its log here, in the transaction of its first change.
pub(crate) fn signer(store: &Store, manifest: &mut Manifest) -> Result<SecretKey> {
    let path: &Path = store.path();
    if let Some(ledger) = &manifest.ledger {
        return key::load(path, &ledger.key);
    }
    let secret = draw()?;
    key::add(path, &secret)?;
    store.with(|connection| {
        store::extend(connection)?;
        let salt = super::salt(manifest);
        let mut rows = Vec::new();
        store::rows::each(connection, Shape::of(&manifest.blueprint), &[], |_, row, content| {
            rows.push(salt.row(row.id.as_bytes(), &content));
            Ok(())
        })?;
        let reason = "the log starts here: the model was fitted, and perhaps changed, by an older efface";
        found(connection, manifest, &secret, rows, None, Some(reason.into()))
    })?;
    Ok(secret)
}
