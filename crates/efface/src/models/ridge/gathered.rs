//! The rows of a request, read once and written in the model's coordinates.

use faer::Mat;

use super::Basis;
use super::sums::SignedRows;
use crate::error::Result;
use crate::rows::{RowId, RowStore, RowView, Rows};

/// Signed rows with their names.
pub(crate) struct Gathered {
    pub(crate) ids: Vec<RowId>,
    pub(crate) roots: Vec<f64>,
    pub(crate) rows: SignedRows,
}

impl Gathered {
    /// Reads the rows that leave from the store and those that join from `new`.
    pub(crate) fn read(
        basis: &Basis,
        outputs: usize,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Self> {
        let total = gone.len() + new.map_or(0, |new| new.len());
        let mut all = Self {
            ids: gone.to_vec(),
            roots: vec![1.0; total],
            rows: SignedRows {
                xt: Mat::zeros(basis.width(), total),
                y: Mat::zeros(total, outputs),
                signs: vec![-1.0; gone.len()],
            },
        };
        rows.visit(gone, &mut |k, row| all.set(basis, k, row))?;
        for (k, row) in new.into_iter().flat_map(|new| new.iter()).enumerate() {
            all.ids.push(row.id);
            all.rows.signs.push(1.0);
            all.set(basis, gone.len() + k, row);
        }
        Ok(all)
    }

    fn set(&mut self, basis: &Basis, k: usize, row: RowView<'_>) {
        let root = row.weight.sqrt();
        self.roots[k] = root;
        basis.write(row.features, root, self.rows.xt.col_as_slice_mut(k));
        for (output, target) in row.targets.iter().enumerate() {
            self.rows.y[(k, output)] = target * root;
        }
    }
}
