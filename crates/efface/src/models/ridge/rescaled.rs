//! Features that change in scale and origin for all rows at once, as the scores of a column do when
//! one row leaves. With an entry of every row going from v_j to κ_j v_j + τ_j, and the constant's
//! column 1 among the others, the sums follow by a congruence and rank-one terms:
//!
//! ```text
//! A'_ij = κ_i κ_j A_ij + κ_i τ_j A_i1 + τ_i κ_j A_1j + τ_i τ_j A_11        b'_i = κ_i b_i + τ_i b_1
//! ```
//!
//! O(d²), and no row that stays is read. The errors of the old sums go the same way: what was
//! within charge·s_i·s_j of the truth is then within charge·s'_i·s'_j of it, where s'_i = κ_i s_i +
//! |τ_i| s_1. Where that is much more than the new column, because an outlier left whose digits the
//! others had lost, the bound says so and the rows are needed.

use std::sync::Arc;

use faer::Mat;

use super::build::{BuiltBody, RidgeFrame};
use super::sums::{RidgeSums, SignedRows};
use super::{Form, GatheredRows, RidgeBody, RidgeModel, RidgePenalty};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::features::FeatureRescale;
use crate::linalg::{UNIT, par};
use crate::models::basis::EntryMove;
use crate::rows::{RowId, RowStore, Rows};

/// The roundings of one entry: its four products, their sum, both factors, and what the features
/// themselves were rounded by in the old units and are in the new ones.
const ROUNDINGS: f64 = 24.0;

impl RidgeModel {
    /// The model after every feature changed as `rescale` says, rows `gone` left and `new` ones
    /// joined. The rows that leave and join are read in the new features, and no others. None where
    /// the sums do not tell enough: the model must be fitted to its rows then.
    pub fn rescaled(
        &self,
        rescale: &[FeatureRescale],
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Option<Outcome<Self>>> {
        let RidgeBody::Dense(body) = &self.body else {
            return Ok(None);
        };
        if !matches!(body.form(), Form::Factor | Form::Inverse) {
            return Ok(None);
        }
        let Some((basis, moves)) = self.basis.rescaled(rescale) else {
            return Ok(None);
        };
        let gathered = GatheredRows::read(&basis, self.outputs(), rows, gone, new)?;
        let threads = par(self.settings.threads);
        let mut sums = (*body.sums).clone();
        if !body.pending.is_empty() {
            sums = body
                .settled(&self.frame(), &SignedRows::none(&gathered.rows))
                .0;
        }
        let penalty = RidgePenalty::new(&basis, self.settings.lambda);
        let mut sums = sums.moved(&moves, &self.penalty.values, &penalty.values);
        sums.apply(&gathered.rows, &penalty.values, threads);
        let frame = RidgeFrame::new(self.settings, Arc::new(basis), Arc::new(penalty));
        let built = match frame.build(body.form(), sums, None, &|| Ok(None)) {
            // Sums may be singular in their last digits where the rows are not; the rows tell.
            Err(Error::Singular { .. }) => return Ok(None),
            built => built?,
        };
        let BuiltBody {
            body: mut built,
            theta,
            ..
        } = built;
        if built.ledger.relative(&frame.basis, &theta) > self.settings.tolerance {
            return Ok(None);
        }
        built.ledger.refactorisations = body.ledger.refactorisations + 1;
        let joined = new.map_or(0, |new| new.len());
        let model = frame.model(theta, self.rows + joined - gone.len(), built);
        let mut evidence = model.evidence("exact", Claim::Exact);
        evidence.forgotten = gone.len();
        evidence.learned = joined;
        evidence.rows_read = gathered.ids.len();
        evidence.refactored = true;
        Ok(Some(Outcome { model, evidence }))
    }
}

impl RidgeSums {
    /// The sums of the same rows with other entries, and with another penalty. The constant's
    /// column is the first.
    fn moved(mut self, moves: &[EntryMove], old_penalty: &[f64], penalty: &[f64]) -> Self {
        for (j, penalty) in old_penalty.iter().enumerate() {
            self.a[(j, j)] -= penalty;
        }
        for matrix in std::iter::once(&mut self.a).chain(&mut self.low) {
            move_products(matrix, moves);
        }
        for (j, penalty) in penalty.iter().enumerate() {
            self.a[(j, j)] += penalty;
        }
        let first = self.b.row(0).to_owned();
        let constant = self.spread[0];
        let mut lost: f64 = 0.0;
        for (j, change) in moves.iter().enumerate() {
            for output in 0..self.b.ncols() {
                self.b[(j, output)] =
                    change.factor * self.b[(j, output)] + change.shift * first[output];
            }
            let spread = change.factor * self.spread[j] + change.shift.abs() * constant;
            if spread > 0.0 {
                lost = lost.max(change.reach * constant / spread);
            }
            self.spread[j] = spread;
            if change.shift != 0.0 {
                // Which rows are 0 now is not known; all of them may have the column.
                self.support[j] = self.support[0];
            }
        }
        let rounding = UNIT * (ROUNDINGS + 8.0 * lost);
        self.charge += rounding;
        self.b_charge += rounding;
        self.note();
        self
    }
}

/// The products of moved entries, both triangles. Without a constant nothing is shifted, and the
/// first column is multiplied with 0.
fn move_products(products: &mut Mat<f64>, moves: &[EntryMove]) {
    let ones: Vec<f64> = products.col_as_slice(0).to_vec();
    for (j, to) in moves.iter().enumerate() {
        for (i, from) in moves.iter().enumerate().take(j + 1) {
            let product = from.factor * to.factor * products[(i, j)];
            let shifts = from.factor * to.shift * ones[i] + from.shift * to.factor * ones[j];
            let both = from.shift * to.shift * ones[0];
            products[(i, j)] = product + shifts + both;
        }
    }
    for j in 0..moves.len() {
        for i in 0..j {
            products[(j, i)] = products[(i, j)];
        }
    }
}

#[cfg(test)]
#[path = "rescaled_tests.rs"]
mod tests;
