//! Where the rows of a model live: in memory ([`Rows`](super::Rows)), or in a database that reads
//! only what is asked.

use std::borrow::Cow;

use super::{RowId, RowRef, Rows, Stop};
use crate::error::{Error, Result};

/// One row as its store shows it.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    /// The id of the row.
    pub id: RowId,
    /// What the row holds: features, or word ids.
    pub features: RowRef<'a>,
    /// The targets of the row, one per output.
    pub targets: &'a [f64],
    /// The weight of the row; 1 unless the rows are weighted.
    pub weight: f64,
}

/// A place that holds the training rows. Methods read the rows to forget through it, and all rows
/// only when their mathematics demands it, so that a store need not be in memory.
pub trait RowStore: Send + Sync {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// Whether the store holds no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many features a row has; of rows of word ids, the most ids that a row may have.
    fn width(&self) -> usize;

    /// How many targets a row has.
    fn outputs(&self) -> usize;

    /// Whether rows are kept as index–value pairs.
    fn is_sparse(&self) -> bool;

    /// Whether rows hold word ids rather than numbers. Models that calculate with numbers refuse
    /// such a store.
    fn holds_word_ids(&self) -> bool {
        false
    }

    /// Whether the row is here.
    fn contains(&self, id: RowId) -> Result<bool>;

    /// Checks that each id is named once and is here, without reading rows.
    fn check(&self, ids: &[RowId]) -> Result<()> {
        check_distinct(ids)?;
        for &id in ids {
            if !self.contains(id)? {
                return Err(Error::UnknownRow(id));
            }
        }
        Ok(())
    }

    /// Shows the named rows in the order asked. An unknown or repeated id is an error that names
    /// it.
    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()>;

    /// Every row, in memory. Only methods whose mathematics needs all rows call this; a store
    /// [beyond memory](Self::is_beyond_memory) refuses.
    fn all(&self) -> Result<Cow<'_, Rows>>;

    /// Whether its rows are more than may be in memory at once. Then they are read in
    /// [blocks](Self::each_block), again for every pass.
    fn is_beyond_memory(&self) -> bool {
        false
    }

    /// Shows all rows block by block. A store beyond memory holds a few blocks at a time, of 512
    /// rows or more each but for the last, and shows rows in the order of their ids.
    fn each_block(&self, see: &mut dyn FnMut(&Rows) -> Result<()>) -> Result<()> {
        see(&*self.all()?)
    }

    /// Where a request to stop work on these rows would arrive; None where no caller can make one.
    fn stop(&self) -> Option<&Stop> {
        None
    }

    /// An error once work on these rows was asked to stop.
    fn go_on(&self) -> Result<()> {
        self.stop().map_or(Ok(()), Stop::go_on)
    }
}

/// A request must name each row once.
pub(crate) fn check_distinct(ids: &[RowId]) -> Result<()> {
    if ids.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Error::DuplicateRow(twice[0])),
        None => Ok(()),
    }
}
