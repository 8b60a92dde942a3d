//! Fitting rows of which a few are larger than the others by many orders of magnitude. Where
//! training begins, at 0, such a row is all that can be seen of the Hessian: the others, and the
//! penalty with them, are lost in its rounding. Where the others have their optimum, the loss of
//! such a row is flat, and it hides nothing. So training begins there, in units that the others
//! choose.

use std::collections::HashSet;

use super::super::basis::Basis;
use super::{ClassifierSettings, LogisticModel};
use crate::error::{Error, Result};
use crate::rows::{RowId, RowStore, Rows};

/// A row is a giant when one of its entries is so many times the median of its column.
const GIANT: f64 = 1e4;

/// The rows with an entry that is far larger than most in its column.
fn giants(rows: &Rows) -> HashSet<RowId> {
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); rows.width()];
    for row in rows.iter() {
        row.features.each(|j, x| {
            if x != 0.0 {
                columns[j].push(x.abs());
            }
        });
    }
    let medians: Vec<f64> = columns
        .into_iter()
        .map(|mut sizes| {
            sizes.sort_unstable_by(f64::total_cmp);
            sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
        })
        .collect();
    let is_giant = |row: crate::rows::RowRef<'_>| {
        let mut found = false;
        row.each(|j, x| found |= x.abs() / GIANT > medians[j]);
        found
    };
    rows.iter()
        .filter(|row| is_giant(row.features))
        .map(|row| row.id)
        .collect()
}

impl ClassifierSettings {
    /// Fits rows that could not be fitted from 0 because of a few giants among them; `error` says
    /// how that ended, and stands where there are none, or where this does not lead to an optimum
    /// either.
    pub(super) fn fit_beside_giants(&self, rows: &Rows, error: Error) -> Result<LogisticModel> {
        let giants = giants(rows);
        if giants.is_empty() || 2 * giants.len() > rows.len() {
            return Err(error);
        }
        let others = rows.filter(|id| !giants.contains(&id));
        let basis = || {
            Basis::choose(
                &others,
                rows.width(),
                self.logistic.intercept,
                self.logistic.lambda,
            )
        };
        let fitted = self
            .fit_in(basis(), &others, None)
            .and_then(|start| self.fit_in(basis(), rows, Some(&start)));
        fitted.map_err(|_| error)
    }
}
