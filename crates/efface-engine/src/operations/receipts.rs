//! The log for its readers: receipts, proofs, the signed head.

use efface_receipt::{ConsistencyProof, ReceiptBundle, SignedReceipt};

use super::open_model::OpenModel;
use crate::error::{Error, Result};
use crate::ledger::{self, LedgerHead};

/// Shows every receipt, oldest first, with its bytes in the log.
pub(crate) fn each(
    model: &OpenModel,
    see: &mut dyn FnMut(&SignedReceipt, &[u8]) -> Result<()>,
) -> Result<()> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    for sequence in 0..ledger.size {
        let bytes = model.store.with(|connection| ledger::leaf(connection, sequence))?;
        see(&parse(model, &bytes)?, &bytes)?;
    }
    Ok(())
}

/// The receipt of this number or this id, with all that is needed to check it.
pub(crate) fn bundle(model: &OpenModel, asked: &str) -> Result<ReceiptBundle> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
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
        _ => search(model, &ledger, asked)?.ok_or_else(unknown)?,
    };
    model.store.with(|connection| ledger::bundle(connection, &ledger, sequence))
}

/// The newest receipts are asked for most.
fn search(model: &OpenModel, ledger: &LedgerHead, id: &str) -> Result<Option<u64>> {
    for sequence in (0..ledger.size).rev() {
        let bytes = model.store.with(|connection| ledger::leaf(connection, sequence))?;
        if parse(model, &bytes)?.receipt.id == id {
            return Ok(Some(sequence));
        }
    }
    Ok(None)
}

pub(crate) fn checkpoint(model: &OpenModel) -> Result<String> {
    let _transaction = model.store.begin(false)?;
    ledger(model)?;
    model.store.with(ledger::checkpoint)
}

pub(crate) fn consistency(model: &OpenModel, old: u64) -> Result<ConsistencyProof> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    if old > ledger.size {
        return Err(Error::UnknownReceipt { asked: format!("{old} and before"), size: ledger.size });
    }
    model.store.with(|connection| ledger::consistency(connection, &ledger, old))
}

fn ledger(model: &OpenModel) -> Result<LedgerHead> {
    Ok(model.snapshot()?.manifest.ledger)
}

fn parse(model: &OpenModel, bytes: &[u8]) -> Result<SignedReceipt> {
    let path = model.store.path().to_owned();
    SignedReceipt::parse(bytes).map_err(|fault| Error::Damaged { path, what: format!("its log: {fault}") })
}
