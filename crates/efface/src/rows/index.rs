//! From row id to slot. Ids that arrive in ascending order, the common case, need no table: a
//! binary search over them is as good and takes no memory.

use std::collections::HashMap;

use super::RowId;
use crate::error::{Error, Result};

#[derive(Debug, Clone, Default)]
pub(crate) struct RowIndex {
    ids: Vec<RowId>,
    /// Present only when `ids` is not ascending.
    table: Option<HashMap<RowId, usize>>,
}

impl RowIndex {
    pub(crate) fn new(ids: Vec<RowId>) -> Result<Self> {
        if ids.is_sorted_by(|a, b| a < b) {
            return Ok(Self { ids, table: None });
        }
        let mut table = HashMap::with_capacity(ids.len());
        for (slot, &id) in ids.iter().enumerate() {
            if table.insert(id, slot).is_some() {
                return Err(Error::DuplicateRow(id));
            }
        }
        Ok(Self {
            ids,
            table: Some(table),
        })
    }

    /// For ids known to be distinct.
    pub(crate) fn of_distinct(ids: Vec<RowId>) -> Self {
        let table = (!ids.is_sorted()).then(|| {
            ids.iter()
                .enumerate()
                .map(|(slot, &id)| (id, slot))
                .collect()
        });
        Self { ids, table }
    }

    pub(crate) fn push(&mut self, id: RowId) -> Result<()> {
        if self.slot(id).is_some() {
            return Err(Error::DuplicateRow(id));
        }
        let slot = self.ids.len();
        if self.table.is_none() && self.ids.last().is_some_and(|last| *last > id) {
            self.table = Some(
                self.ids
                    .iter()
                    .enumerate()
                    .map(|(slot, &id)| (id, slot))
                    .collect(),
            );
        }
        if let Some(table) = &mut self.table {
            table.insert(id, slot);
        }
        self.ids.push(id);
        Ok(())
    }

    pub(crate) fn slot(&self, id: RowId) -> Option<usize> {
        match &self.table {
            Some(table) => table.get(&id).copied(),
            None => {
                // Ids without gaps are the commonest case: there, an id less the first one is its
                // slot.
                let guess = id.0.wrapping_sub(self.ids.first()?.0);
                match usize::try_from(guess)
                    .ok()
                    .and_then(|guess| self.ids.get(guess))
                {
                    Some(&there) if there == id => Some(guess as usize),
                    _ => self.ids.binary_search(&id).ok(),
                }
            }
        }
    }

    pub(crate) fn id(&self, slot: usize) -> RowId {
        self.ids[slot]
    }
}
