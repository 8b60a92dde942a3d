//! The list of what must not come back. It holds keyed hashes and times: whoever has the file and
//! not the secret beside it can test no guess.
//!
//! A row that is forgotten is entered by its id, by ids that look like it, and, where the request
//! named a person, by the person; where the policy asks for it, also by its content. Two names look
//! alike when they are equal after Unicode normalisation (NFKC), in lower case, with blanks at the
//! ends dropped and blanks inside taken as one.

use std::collections::{BTreeMap, HashMap};

use efface_receipt::{CommitmentLabel, CommitmentSalt, Hash};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::LedgerHead;
use super::tree::{SealedEntry, SealedTable, SealedTree, TrustedTree};
use crate::error::SuppressionKind;
use crate::file::{FileFault, damaged};

/// What keeps a row from being learned again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionScope {
    /// Its id, and ids that look like it.
    Ids,
    /// Also the person that a request to forget has named.
    #[default]
    Subjects,
    /// Also its content, under whatever id. Only rows that were forgotten under this policy are
    /// known by their content.
    Content,
}

impl SuppressionKind {
    /// The first byte of an entry's value.
    fn mark(self) -> u8 {
        match self {
            Self::Id => b'i',
            Self::AlikeId => b'a',
            Self::Subject => b's',
            Self::Content => b'c',
        }
    }

    fn of_mark(mark: u8) -> Option<Self> {
        [Self::Id, Self::AlikeId, Self::Subject, Self::Content]
            .into_iter()
            .find(|kind| kind.mark() == mark)
    }
}

/// A name as the list knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SuppressedName {
    pub(crate) kind: SuppressionKind,
    pub(crate) commitment: Hash,
}

impl SuppressedName {
    pub(crate) fn id(names: &CommitmentSalt, id: &str) -> Self {
        Self::new(names, SuppressionKind::Id, id.as_bytes())
    }

    pub(crate) fn alike_id(names: &CommitmentSalt, id: &str) -> Self {
        Self::new(names, SuppressionKind::AlikeId, alike(id).as_bytes())
    }

    pub(crate) fn subject(names: &CommitmentSalt, subject: &str) -> Self {
        Self::new(names, SuppressionKind::Subject, alike(subject).as_bytes())
    }

    pub(crate) fn content(names: &CommitmentSalt, content: &Hash) -> Self {
        Self::new(names, SuppressionKind::Content, content.as_bytes())
    }

    fn new(names: &CommitmentSalt, kind: SuppressionKind, value: &[u8]) -> Self {
        let value = [&[kind.mark(), 0], value].concat();
        Self {
            kind,
            commitment: names.commit(CommitmentLabel::RowId, &value),
        }
    }
}

/// A name as it is compared with others that look like it.
pub(crate) fn alike(name: &str) -> String {
    let folded: String = name.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuppressedEntry {
    pub(crate) name: SuppressedName,
    /// When it was entered.
    pub(crate) since: String,
}

impl SuppressedEntry {
    fn read(commitment: Hash, value: &[u8]) -> Result<Self, FileFault> {
        let parts = value.split_first().and_then(|(mark, since)| {
            Some((
                SuppressionKind::of_mark(*mark)?,
                String::from_utf8(since.to_vec()).ok()?,
            ))
        });
        match parts {
            Some((kind, since)) => Ok(Self {
                name: SuppressedName { kind, commitment },
                since,
            }),
            None => damaged("an entry on its list of what must not come back makes no sense"),
        }
    }

    fn write(&self) -> SealedEntry {
        let value = [&[self.name.kind.mark()], self.since.as_bytes()].concat();
        SealedEntry::new(self.name.commitment, value)
    }
}

/// The list, to be asked for many names: they are looked up together before.
pub(crate) struct SuppressionList {
    found: HashMap<Hash, Vec<u8>>,
    trusted: TrustedTree,
}

impl SuppressionList {
    /// Looks names up. Memory grows with the names, not with the list.
    pub(crate) fn look_up<'n>(
        connection: &Connection,
        ledger: &LedgerHead,
        names: impl IntoIterator<Item = &'n SuppressedName>,
    ) -> Result<Self, FileFault> {
        let asked: Vec<Hash> = names.into_iter().map(|name| name.commitment).collect();
        let tree = SealedTree::new(connection, SealedTable::Forgotten);
        let mut trusted = TrustedTree::default();
        let values = tree.find(&ledger.forgotten, &asked, &mut trusted)?;
        let found = asked
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        Ok(Self { found, trusted })
    }

    /// Since when a name is on the list; None where it is not. It must have been looked up.
    pub(crate) fn since(&self, name: &SuppressedName) -> Result<Option<String>, FileFault> {
        let value = self.found.get(&name.commitment);
        let entry = value
            .map(|value| SuppressedEntry::read(name.commitment, value))
            .transpose()?;
        Ok(entry.map(|entry| entry.since))
    }
}

/// Enters names. One that is on the list already stays as it was entered first.
pub(crate) fn remember(
    connection: &Connection,
    ledger: &mut LedgerHead,
    names: &[SuppressedName],
    at: &str,
) -> Result<(), FileFault> {
    let list = SuppressionList::look_up(connection, ledger, names)?;
    let mut fresh = BTreeMap::new();
    for name in names {
        if list.since(name)?.is_none() {
            let entry = SuppressedEntry {
                name: *name,
                since: at.to_owned(),
            };
            fresh.insert(name.commitment, entry.write());
        }
    }
    let fresh: Vec<SealedEntry> = fresh.into_values().collect();
    let tree = SealedTree::new(connection, SealedTable::Forgotten);
    tree.change_known(&mut ledger.forgotten, &[], &fresh, list.trusted)
}

/// Enters what another list held, as it was.
pub(crate) fn carry(
    connection: &Connection,
    ledger: &mut LedgerHead,
    entries: &[SuppressedEntry],
) -> Result<(), FileFault> {
    let entries: Vec<SealedEntry> = entries.iter().map(SuppressedEntry::write).collect();
    SealedTree::new(connection, SealedTable::Forgotten).change(&mut ledger.forgotten, &[], &entries)
}

/// The whole list, after all of it was compared with its root.
pub(crate) fn checked_list(
    connection: &Connection,
    ledger: &LedgerHead,
) -> Result<Vec<SuppressedEntry>, FileFault> {
    let mut entries = Vec::new();
    check_each(connection, ledger, |entry| {
        entries.push(entry);
        Ok(())
    })?;
    Ok(entries)
}

/// Compares the whole list with its root and shows every entry.
pub(crate) fn check_each(
    connection: &Connection,
    ledger: &LedgerHead,
    mut see: impl FnMut(SuppressedEntry) -> Result<(), FileFault>,
) -> Result<(), FileFault> {
    let tree = SealedTree::new(connection, SealedTable::Forgotten);
    tree.check(&ledger.forgotten, |entry| {
        see(SuppressedEntry::read(entry.commitment, &entry.value)?)
    })
}

/// Whether a name is on a list that was compared with its root before.
pub(crate) fn holds(connection: &Connection, name: &SuppressedName) -> Result<bool, FileFault> {
    SealedTree::new(connection, SealedTable::Forgotten).holds(&name.commitment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one() {
        for (one, other) in [
            ("r29", " R29 "),
            ("Straße  5", "straße 5"),
            ("ﬁx", "FIX"),
            ("Ａnn", "ann"),
        ] {
            assert_eq!(alike(one), alike(other), "{one} and {other}");
        }
        assert_ne!(alike("r29"), alike("r 29"));
        let names = CommitmentSalt::new(&[1; 32]);
        assert_ne!(
            SuppressedName::id(&names, "r29"),
            SuppressedName::id(&names, "R29")
        );
        assert_eq!(
            SuppressedName::alike_id(&names, "r29"),
            SuppressedName::alike_id(&names, "R29")
        );
        let kinds = [
            SuppressedName::id,
            SuppressedName::alike_id,
            SuppressedName::subject,
        ];
        let commitments: std::collections::HashSet<Hash> = kinds
            .iter()
            .map(|kind| kind(&names, "ann").commitment)
            .collect();
        assert_eq!(commitments.len(), 3);
    }
}
