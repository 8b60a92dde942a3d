//! The log for whoever wants to read it: receipts, proofs, the signed head.

use efface_receipt::{Bundle, ConsistencyProof, Signed};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ledger::{self, LedgerHead};

/// Shows every receipt, oldest first, with its bytes in the log.
pub(crate) fn each(engine: &Engine, see: &mut dyn FnMut(&Signed, &[u8]) -> Result<()>) -> Result<()> {
    let _transaction = engine.store.begin(false)?;
    let ledger = ledger(engine)?;
    for sequence in 0..ledger.size {
        let bytes = engine.store.with(|connection| ledger::leaf(connection, sequence))?;
        see(&parse(engine, &bytes)?, &bytes)?;
    }
    Ok(())
}

/// The receipt of this number or this id, with all that is needed to check it.
pub(crate) fn bundle(engine: &Engine, asked: &str) -> Result<Bundle> {
    let _transaction = engine.store.begin(false)?;
    let ledger = ledger(engine)?;
    let unknown = || Error::UnknownReceipt { asked: asked.into(), size: ledger.size };
    let sequence = match asked.parse::<u64>() {
        // Ids are 32 digits, numbers are not.
        Ok(number) if asked.len() < 32 => {
            if number < ledger.size {
                number
            } else {
                return Err(unknown());
            }
        }
        _ => search(engine, &ledger, asked)?.ok_or_else(unknown)?,
    };
    engine.store.with(|connection| ledger::bundle(connection, &ledger, sequence))
}

/// The newest receipts are asked for most.
fn search(engine: &Engine, ledger: &LedgerHead, id: &str) -> Result<Option<u64>> {
    for sequence in (0..ledger.size).rev() {
        let bytes = engine.store.with(|connection| ledger::leaf(connection, sequence))?;
        if parse(engine, &bytes)?.receipt.id == id {
            return Ok(Some(sequence));
        }
    }
    Ok(None)
}

pub(crate) fn checkpoint(engine: &Engine) -> Result<String> {
    let _transaction = engine.store.begin(false)?;
    ledger(engine)?;
    engine.store.with(ledger::checkpoint)
}

pub(crate) fn consistency(engine: &Engine, old: u64) -> Result<ConsistencyProof> {
    let _transaction = engine.store.begin(false)?;
    let ledger = ledger(engine)?;
    if old > ledger.size {
        return Err(Error::UnknownReceipt { asked: format!("{old} and before"), size: ledger.size });
    }
    engine.store.with(|connection| ledger::consistency(connection, &ledger, old))
}

/// The public keys: the one that the log began with, and the one that signs now.
pub(crate) fn keys(engine: &Engine) -> Result<(String, String)> {
    let _transaction = engine.store.begin(false)?;
    let ledger = ledger(engine)?;
    Ok((ledger.first_key, ledger.key))
}

fn ledger(engine: &Engine) -> Result<LedgerHead> {
    let manifest = engine.snapshot()?.manifest;
    ledger::of(&manifest, engine.store.path()).cloned()
}

fn parse(engine: &Engine, bytes: &[u8]) -> Result<Signed> {
    let path = engine.store.path().to_owned();
    Signed::parse(bytes).map_err(|fault| Error::Damaged { path, what: format!("its log: {fault}") })
}
