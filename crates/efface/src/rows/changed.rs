//! The rows of a store after a change: without those that leave, and with those that join.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{RowId, RowStore, RowView, Rows, Stop};
use crate::error::Result;

/// A store as it is after a change that has not been made to it. Rows in memory are copied by
/// [`all`](RowStore::all); those beyond memory are read from the store in every pass.
pub struct ChangedRows<'a> {
    store: &'a dyn RowStore,
    gone: HashSet<RowId>,
    new: Option<&'a Rows>,
}

impl<'a> ChangedRows<'a> {
    /// The rows of `store` without `gone` ones, which are in it, and with `new` ones.
    #[must_use]
    pub fn new(store: &'a dyn RowStore, gone: &[RowId], new: Option<&'a Rows>) -> Self {
        Self {
            store,
            gone: gone.iter().copied().collect(),
            new,
        }
    }

    /// The new rows whose ids are above `after`, and at most `last` where there is one.
    fn joining(&self, after: Option<RowId>, last: Option<RowId>) -> Option<Rows> {
        let is_due =
            |id: RowId| after.is_none_or(|after| id > after) && last.is_none_or(|last| id <= last);
        let due = self.new?.filter(is_due);
        (!due.is_empty()).then_some(due)
    }
}

impl RowStore for ChangedRows<'_> {
    fn len(&self) -> usize {
        self.store.len() - self.gone.len() + self.new.map_or(0, |new| new.len())
    }

    fn width(&self) -> usize {
        self.store.width()
    }

    fn outputs(&self) -> usize {
        self.store.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.store.is_sparse()
    }

    fn holds_word_ids(&self) -> bool {
        self.store.holds_word_ids()
    }

    fn contains(&self, id: RowId) -> Result<bool> {
        Ok(self.new.is_some_and(|new| new.get(id).is_some())
            || (!self.gone.contains(&id) && self.store.contains(id)?))
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()> {
        self.check(ids)?;
        let mut old = Vec::with_capacity(ids.len());
        let mut places = Vec::with_capacity(ids.len());
        for (at, &id) in ids.iter().enumerate() {
            match self.new.and_then(|new| new.get(id)) {
                Some(row) => see(at, row),
                None => {
                    old.push(id);
                    places.push(at);
                }
            }
        }
        self.store.visit(&old, &mut |at, row| see(places[at], row))
    }

    fn all(&self) -> Result<Cow<'_, Rows>> {
        let mut rows = self.store.all()?.filter(|id| !self.gone.contains(&id));
        if let Some(new) = self.new {
            rows.append(&new.as_kept_by(&rows).map(Cow::into_owned)?)?;
        }
        Ok(Cow::Owned(rows))
    }

    fn is_beyond_memory(&self) -> bool {
        self.store.is_beyond_memory()
    }

    fn each_block(&self, see: &mut dyn FnMut(&Rows) -> Result<()>) -> Result<()> {
        let mut shown: Option<RowId> = None;
        // What new rows are kept like.
        let mut keeper: Option<Rows> = None;
        self.store.each_block(&mut |block| {
            let last = block.ids().max();
            let joining = self.joining(shown, last);
            let leaves = block.ids().any(|id| self.gone.contains(&id));
            shown = last.max(shown);
            keeper.get_or_insert_with(|| block.filter(|_| false));
            if !leaves && joining.is_none() {
                return see(block);
            }
            let mut changed = block.filter(|id| !self.gone.contains(&id));
            if let Some(joining) = joining {
                changed.append(&joining.as_kept_by(block).map(Cow::into_owned)?)?;
            }
            see(&changed)
        })?;
        match (self.joining(shown, None), keeper) {
            (Some(rest), Some(keeper)) => see(&*rest.as_kept_by(&keeper)?),
            (Some(rest), None) => see(&rest),
            (None, _) => Ok(()),
        }
    }

    fn stop(&self) -> Option<&Stop> {
        self.store.stop()
    }
}
