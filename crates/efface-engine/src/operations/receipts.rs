//! The log for its readers: receipts, proofs, the signed head.

use std::ops::Range;

use efface_receipt::{
    CommitmentLabel, CommitmentOpening, ConsistencyProof, Hash, PackDigests, ReceiptBundle,
    SignedReceipt, WitnessQuorum,
};

use super::open_model::OpenModel;
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result};
use crate::ledger::{self, LedgerHead, TrustedTree, founding, requests};

/// Shows the receipts of these numbers, oldest first, with their bytes in the log; gives how many
/// receipts the log has.
pub(crate) fn each(
    model: &OpenModel,
    numbers: Range<u64>,
    see: &mut dyn FnMut(&SignedReceipt, &[u8]) -> Result<()>,
) -> Result<u64> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    for sequence in numbers.start..numbers.end.min(ledger.size) {
        let bytes = model
            .store
            .with(|connection| ledger::leaf(connection, sequence))?;
        see(&parse(model, &bytes)?, &bytes)?;
    }
    Ok(ledger.size)
}

/// The receipt of this number or this id, with all that is needed to check it.
pub(crate) fn bundle(model: &OpenModel, asked: &str) -> Result<ReceiptBundle> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    let unknown = || Error::UnknownReceipt {
        asked: asked.into(),
        size: ledger.size,
    };
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
    model
        .store
        .with(|connection| ledger::bundle(connection, &ledger, sequence))
}

/// Which receipts are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptQuery {
    /// The receipt of this number or id.
    Receipt(String),
    /// The receipt that answered the request of this name.
    Request(String),
    /// The forget of this person's rows: the value that names the person, and the opening of the
    /// receipt's commitment to it, which was told when the request was answered and is kept
    /// nowhere.
    Subject {
        /// The value.
        value: String,
        /// The opening, 64 hexadecimal digits.
        opening: String,
    },
}

/// The numbers of the receipts that are meant, oldest first; none is an error.
pub(crate) fn find(model: &OpenModel, query: &ReceiptQuery) -> Result<Vec<u64>> {
    if let ReceiptQuery::Receipt(asked) = query {
        return Ok(vec![bundle(model, asked)?.signed.receipt.sequence]);
    }
    let _transaction = model.store.begin(false)?;
    let manifest = model.store.with(Manifest::load)?;
    let mut found = Vec::new();
    match query {
        ReceiptQuery::Receipt(_) => {}
        ReceiptQuery::Request(name) => {
            let names =
                founding::noise_seed(&model.store, &manifest.ledger, &model.access)?.names();
            let name = names.commit(CommitmentLabel::Request, name.trim().as_bytes());
            let answered = model.store.with(|connection| {
                requests::find(
                    connection,
                    &manifest.ledger,
                    &[name],
                    &mut TrustedTree::default(),
                )
            })?;
            found.extend(
                answered
                    .into_iter()
                    .flatten()
                    .map(|answered| answered.sequence),
            );
        }
        ReceiptQuery::Subject { value, opening } => {
            let Some(opening) = Hash::from_hex(opening.trim()) else {
                let hint = "it was told when the request was answered, as `subject_opening`";
                return Err(Error::request("an opening has 64 hexadecimal digits", hint));
            };
            let opening = CommitmentOpening(opening);
            let subject = opening.commitment(CommitmentLabel::Subject, value.trim().as_bytes());
            for sequence in 0..manifest.ledger.size {
                let bytes = model
                    .store
                    .with(|connection| ledger::leaf(connection, sequence))?;
                if parse(model, &bytes)?.receipt.subject == Some(subject) {
                    found.push(sequence);
                }
            }
        }
    }
    if found.is_empty() {
        let hint = "`efface log MODEL` lists all receipts; name one by its number";
        return Err(Error::request(
            "no receipt of this log is about that request or person",
            hint,
        ));
    }
    Ok(found)
}

/// Where a receipt stands in the log. The newest receipts are asked for most; those that were
/// looked at are remembered.
fn search(model: &OpenModel, ledger: &LedgerHead, id: &str) -> Result<Option<u64>> {
    let id_at = |sequence: u64| -> Result<String> {
        let bytes = model
            .store
            .with(|connection| ledger::leaf(connection, sequence))?;
        Ok(parse(model, &bytes)?.receipt.id)
    };
    let found = model
        .seen_receipts()
        .find(&ledger.origin, ledger.size, id, id_at)?;
    // Another file may lie in the place of the one that was read.
    match found {
        Some(sequence) if id_at(sequence)? != id => Ok(None),
        found => Ok(found),
    }
}

pub(crate) fn checkpoint(model: &OpenModel) -> Result<String> {
    let _transaction = model.store.begin(false)?;
    ledger(model)?;
    model
        .store
        .with(|connection| ledger::checkpoint(connection))
}

/// Signs the list of the files of an evidence pack with the key that signed the head that the pack
/// is about.
pub(crate) fn sign_pack(model: &OpenModel, digests: &PackDigests) -> Result<String> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    let rotated = ledger.rotations.last();
    if rotated.is_some_and(|rotation| *rotation >= digests.size) {
        return Err(Error::request(
            "the key of the log was replaced while the pack was made",
            "make the pack again",
        ));
    }
    let signer = model.access.signer(model.store.path(), &ledger.key)?;
    Ok(digests.sign(&*signer)?)
}

pub(crate) fn consistency(model: &OpenModel, old: u64) -> Result<ConsistencyProof> {
    let _transaction = model.store.begin(false)?;
    let ledger = ledger(model)?;
    if old > ledger.size {
        return Err(Error::UnknownReceipt {
            asked: format!("{old} and before"),
            size: ledger.size,
        });
    }
    model
        .store
        .with(|connection| ledger::consistency(connection, &ledger, old))
}

/// Keeps the cosignatures of witnesses with the head that they are of. The log and the model stay
/// as they are, and nothing is signed.
pub(crate) fn add_cosignatures(
    model: &OpenModel,
    witnesses: &WitnessQuorum,
    lines: &str,
) -> Result<()> {
    let transaction = model.store.begin(true)?;
    let ledger = ledger(model)?;
    model.check_rollback(&ledger)?;
    let note = model
        .store
        .with(|connection| ledger::checkpoint(connection))?;
    let cosigned = witnesses.attach(&note, lines)?;
    model
        .store
        .with(|connection| ledger::keep_cosigned(connection, &cosigned))?;
    transaction.commit().map(drop)
}

fn ledger(model: &OpenModel) -> Result<LedgerHead> {
    Ok(model.store.with(Manifest::load)?.ledger)
}

fn parse(model: &OpenModel, bytes: &[u8]) -> Result<SignedReceipt> {
    let path = model.store.path().to_owned();
    SignedReceipt::parse(bytes).map_err(|fault| Error::Damaged {
        path,
        what: format!("its log: {fault}"),
    })
}
