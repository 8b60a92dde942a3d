//! The log of a model: which rows it was made from and what was done to it, signed, in a list that
//! only grows. A receipt is written in the transaction of its change: without the receipt there is
//! no change.

mod account;
mod agent;
pub(crate) mod copies;
mod draft;
pub(crate) mod founding;
pub(crate) mod gaussian;
pub(crate) mod key;
mod log;
pub(crate) mod newest;
pub(crate) mod noise;
pub(crate) mod passphrase;
mod release;
pub(crate) mod requests;
pub(crate) mod signer;
pub(crate) mod suppression;
mod tree;

pub(crate) use account::PrivacyAccount;
pub(crate) use draft::{MethodFindings, ModelTransition, ReceiptDraft, printable};
pub(crate) use log::{
    ReceiptLog, bundle, checkpoint, consistency, keep_cosigned, leaf, signed_head,
};
pub use release::WitnessTerms;
pub(crate) use release::{NoisePromise, PolicyState, USUAL_BATCH};
pub(crate) use tree::{SealedEntry, SealedTable, SealedTree, TreeHead, TrustedTree};

use std::path::Path;

use efface_receipt::{
    CommitmentLabel, CommitmentOpening, Hash, PublicKey, RowsCommitment, RowsTouched, SetState,
    Time, row_value, sha256,
};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::file::{FileFault, RecordSorter, RowNonce};

/// What the manifest knows of the log and of the training set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LedgerHead {
    /// The name of the log, which is also that of its keys.
    pub(crate) origin: String,
    /// The public key that signed the first receipt.
    pub(crate) first_key: String,
    /// The public key that signs now.
    pub(crate) key: String,
    /// The key that may hand over in place of one that was lost.
    pub(crate) recovery: Option<String>,
    /// The receipts in which a key handed over.
    pub(crate) rotations: Vec<u64>,
    /// Receipts in the log, and the root over them: a log that was cut short does not match.
    pub(crate) size: u64,
    pub(crate) root: Hash,
    /// The newest time in the log, in milliseconds since 1970. A clock that runs backwards does not
    /// take it along.
    pub(crate) newest: i64,
    /// When the parameters last changed.
    pub(crate) version_at: i64,
    /// The training set.
    pub(crate) members: TreeHead,
    /// What must not come back.
    pub(crate) forgotten: TreeHead,
    /// The answers to named requests.
    pub(crate) requests: TreeHead,
    /// The hash over the list of exports.
    pub(crate) copies: Hash,
}

impl LedgerHead {
    /// A log without receipts over a training set without rows.
    pub(crate) fn new(key: &PublicKey) -> Self {
        Self {
            origin: key.name().to_owned(),
            first_key: key.to_string(),
            key: key.to_string(),
            recovery: None,
            rotations: Vec::new(),
            size: 0,
            root: sha256(b""),
            newest: 0,
            version_at: 0,
            members: TreeHead::empty(),
            forgotten: TreeHead::empty(),
            requests: TreeHead::empty(),
            copies: copies::empty_hash(),
        }
    }

    /// Takes rows out of the training set and puts rows in; gives its state afterwards.
    pub(crate) fn change_members(
        &mut self,
        connection: &Connection,
        gone: &[Hash],
        come: &[Hash],
    ) -> Result<SetState, FileFault> {
        let come: Vec<SealedEntry> = come
            .iter()
            .map(|row| SealedEntry::new(*row, Vec::new()))
            .collect();
        SealedTree::new(connection, SealedTable::Members).change(&mut self.members, gone, &come)?;
        Ok(self.members.set)
    }

    /// Enters the rows of a new model at this path; gives what a receipt says of them. There must
    /// be no transaction.
    pub(crate) fn load_members(
        &mut self,
        connection: &Connection,
        path: &Path,
        rows: RecordSorter,
    ) -> Result<RowsTouched, FileFault> {
        let added = rows.len() as u64;
        let mut commitment = RowsCommitment::new(added);
        let rows = rows.sorted()?.map(|row| {
            let row = Hash(row?);
            commitment.push(&row);
            Ok(row)
        });
        SealedTree::new(connection, SealedTable::Members).load(
            path,
            &mut self.members,
            added,
            rows,
        )?;
        Ok(RowsTouched {
            commitment: commitment.finish(),
            removed: 0,
            added,
        })
    }

    /// The time, never before the newest time in the log: a clock that was set back does not take
    /// the log along.
    pub(crate) fn now(&mut self) -> Time {
        self.newest = self.newest.max(crate::clock::milliseconds());
        at(self.newest)
    }
}

/// A stored time. The last day of the year 9999 stands for whatever lies beyond the calendar.
pub(crate) fn at(milliseconds: i64) -> Time {
    const END: i64 = 253_402_300_799_999;
    Time::from_unix_milliseconds(milliseconds.clamp(0, END)).unwrap_or_else(epoch)
}

fn epoch() -> Time {
    match Time::from_unix_milliseconds(0) {
        Some(time) => time,
        None => unreachable!("1970 is a year of the calendar"),
    }
}

/// A state of a model as receipts name it: its training set and the hash of its parameters.
pub(crate) type ModelState = (SetState, Hash);

/// The leaf of a row in the training set: a commitment to its id and its content with the row's own
/// nonce. Nobody can test a guess of the row without the nonce, which is overwritten with the row.
pub(crate) fn row_leaf(nonce: &RowNonce, id: &str, content: &Hash) -> Hash {
    let value = row_value(id.as_bytes(), content);
    CommitmentOpening(Hash(*nonce)).commitment(CommitmentLabel::Row, &value)
}
