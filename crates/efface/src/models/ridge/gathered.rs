//! The rows of a request, read once and written in the model's coordinates.

use faer::Mat;

use super::Basis;
use super::sums::{ColumnPlaces, SignedRows};
use crate::error::Result;
use crate::rows::{RowId, RowRef, RowStore, RowView, Rows};

/// Rows of which at most one entry in so many is not zero are gone through entry by entry.
const SPARSE: usize = 6;

/// Signed rows with their names.
pub(crate) struct GatheredRows {
    pub(crate) ids: Vec<RowId>,
    pub(crate) roots: Vec<f64>,
    pub(crate) rows: SignedRows,
}

impl GatheredRows {
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
                // Shifted zeros are none.
                places: basis.is_unshifted().then(|| vec![None; total]),
                rounding: if basis.is_unshifted() { 0.0 } else { 1.0 },
            },
        };
        rows.visit(gone, &mut |k, row| all.set(basis, k, row))?;
        for (k, row) in new.into_iter().flat_map(|new| new.iter()).enumerate() {
            all.ids.push(row.id);
            all.rows.signs.push(1.0);
            all.set(basis, gone.len() + k, row);
        }
        let entries = basis.width() * total;
        let few = |places: &[ColumnPlaces]| {
            let non_zeros = places
                .iter()
                .map(|row| row.as_ref().map(|row| row.len()))
                .sum::<Option<usize>>();
            non_zeros.is_some_and(|non_zeros| non_zeros * SPARSE <= entries)
        };
        all.rows.places.take_if(|places| !few(places));
        Ok(all)
    }

    fn set(&mut self, basis: &Basis, k: usize, row: RowView<'_>) {
        let root = row.weight.sqrt();
        self.roots[k] = root;
        if root != 1.0 {
            // The root is rounded, and so is its product with every entry.
            self.rows.rounding = self.rows.rounding.max(4.0);
        }
        let column = self.rows.xt.col_as_slice_mut(k);
        if let (Some(places), RowRef::Sparse64(columns, _) | RowRef::Sparse32(columns, _)) =
            (&mut self.rows.places, row.features)
        {
            basis.scatter(row.features, root, column);
            let first = basis.intercept as u32;
            places[k] = Some(
                (0..first)
                    .chain(columns.iter().map(|column| first + column))
                    .collect(),
            );
        } else {
            basis.write(row.features, root, column);
        }
        for (output, target) in row.targets.iter().enumerate() {
            self.rows.y[(k, output)] = target * root;
        }
    }
}
