//! Requests by the names that their callers gave them: one effect each. What is kept is a
//! commitment to the name, a hash of what was asked, and the answer.

use efface_receipt::Hash;
use rusqlite::Connection;

use super::LedgerHead;
use super::tree::{SealedEntry, SealedTable, SealedTree, TrustedTree};
use crate::file::{FileFault, damaged};

/// A request that was answered before.
pub(crate) struct AnsweredRequest {
    pub(crate) body: Hash,
    pub(crate) sequence: u64,
    pub(crate) result: Vec<u8>,
}

impl AnsweredRequest {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.body.as_bytes().to_vec();
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(&self.result);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, FileFault> {
        let parts = bytes
            .split_first_chunk()
            .and_then(|(body, rest)| Some((body, rest.split_first_chunk()?)));
        match parts {
            Some((body, (sequence, result))) => Ok(Self {
                body: Hash(*body),
                sequence: u64::from_be_bytes(*sequence),
                result: result.to_vec(),
            }),
            None => damaged("the answer to a request is cut short"),
        }
    }
}

/// The answers to requests of these names; None where the root says that there was none. What was
/// compared with the root is put down in `trusted`.
pub(crate) fn find(
    connection: &Connection,
    ledger: &LedgerHead,
    requests: &[Hash],
    trusted: &mut TrustedTree,
) -> Result<Vec<Option<AnsweredRequest>>, FileFault> {
    let tree = SealedTree::new(connection, SealedTable::Requests);
    let found = tree.find(&ledger.requests, requests, trusted)?;
    found
        .into_iter()
        .map(|value| {
            value
                .map(|bytes| AnsweredRequest::from_bytes(&bytes))
                .transpose()
        })
        .collect()
}

/// Keeps the answers to new requests, each under the commitment to its name. `trusted` is what
/// their names were looked up with.
pub(crate) fn record<'a>(
    connection: &Connection,
    ledger: &mut LedgerHead,
    answers: impl IntoIterator<Item = &'a (Hash, AnsweredRequest)>,
    trusted: TrustedTree,
) -> Result<(), FileFault> {
    let entries: Vec<SealedEntry> = answers
        .into_iter()
        .map(|(name, answer)| SealedEntry::new(*name, answer.to_bytes()))
        .collect();
    let tree = SealedTree::new(connection, SealedTable::Requests);
    tree.change_known(&mut ledger.requests, &[], &entries, trusted)
}

/// Every name and answer, after all of them were compared with their root.
pub(crate) fn checked_list(
    connection: &Connection,
    ledger: &LedgerHead,
) -> Result<Vec<(Hash, AnsweredRequest)>, FileFault> {
    let mut all = Vec::new();
    check_each(connection, ledger, |name, answer| {
        all.push((name, answer));
        Ok(())
    })?;
    Ok(all)
}

/// Compares all names and answers with their root and shows each.
pub(crate) fn check_each(
    connection: &Connection,
    ledger: &LedgerHead,
    mut see: impl FnMut(Hash, AnsweredRequest) -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    let tree = SealedTree::new(connection, SealedTable::Requests);
    tree.check(&ledger.requests, |entry| {
        see(entry.commitment, AnsweredRequest::from_bytes(&entry.value)?)
    })
}
