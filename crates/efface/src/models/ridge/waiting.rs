//! Changes that wait, and how a new one meets them: what they make of its Ẑ, and how much they let
//! A⁻¹ grow together.
//!
//! Together, rows make A⁻¹ grow far less than the product of what each does, because they point in
//! different directions: by 1/(1 − ‖H‖) for H = XA⁻¹Xᵀ over all rows that wait, with the settled A.
//! H follows from inner products that are made anyway.

use std::sync::Arc;

use faer::{Accum, Mat, Par};

use super::change::{ChangeCore, RidgeChange, largest_column_sum};
use crate::linalg::{close_operator_norm, dot, multiply};

/// Up to so many inner products, one by one they beat a matrix product.
const FEW_PRODUCTS: usize = 4;

/// How a change meets those that wait before it.
#[derive(Debug, Clone)]
pub(super) struct MetChanges {
    /// ẐⱼX̂ᵀ, one line for each row that waits and one column for each row of this change.
    along: Mat<f64>,
    /// X̂A⁻¹Xᵀ with the settled A, X being all rows that wait, those of this change last.
    joint_hat: Mat<f64>,
    /// For every row up to this change the sum of its line of |H| over the rows that leave; 0 for
    /// rows that join.
    line_sums: Vec<f64>,
    /// At least ‖H‖ over the rows that leave,
    hat_norm: f64,
    /// which was found from all of H when there were so many rows.
    found_at: usize,
}

impl RidgeChange {
    /// Finds ‖H‖ from all of H where enough rows have come since that was last done: what is added
    /// row by row is no more than a limit, and soon says little.
    pub(super) fn find_hat_norm(&mut self, pending: &[Arc<RidgeChange>]) {
        /// A request of more rows takes a long time anyway, and counts each of its rows by itself.
        const FEW_ROWS: usize = 32;
        let rows = self.met.line_sums.len();
        let due = rows - self.met.found_at >= (rows / 16).max(4);
        if due && self.rows.signs.len() <= FEW_ROWS {
            let found = hat_norm(
                pending
                    .iter()
                    .map(Arc::as_ref)
                    .chain(std::iter::once(&*self)),
            );
            self.met.hat_norm = self.met.hat_norm.min(found);
            self.met.found_at = rows;
        }
    }

    /// Brings what is known of the way this change meets others to an A that has the first
    /// `settled` rows in it; `before` are the changes that still wait before this one.
    pub(crate) fn settle_first(&mut self, settled: usize, before: &[Arc<RidgeChange>]) {
        let left = self.met.along.nrows() - settled;
        let along = self.met.along.as_ref().subrows(settled, left).to_owned();
        let mut scaled = Mat::zeros(left, along.ncols());
        let mut at = 0;
        for change in before {
            let k = change.rows.signs.len();
            let part = change.core.times(&along.as_ref().subrows(at, k).to_owned());
            scaled.as_mut().subrows_mut(at, k).copy_from(&part);
            at += k;
        }
        self.met = WaitingChanges {
            pending: before,
            along,
            scaled,
        }
        .meet(&self.core, &self.rows.signs);
    }

    /// The entry of X̂Ẑᵀ, of which the core has S + X̂Ẑᵀ.
    fn hat(core: &ChangeCore, signs: &[f64], i: usize, j: usize) -> f64 {
        core.middle[(i, j)] - if i == j { signs[i] } else { 0.0 }
    }
}

/// The changes that wait before some rows, as these rows meet them.
pub(crate) struct WaitingChanges<'a> {
    pub(super) pending: &'a [Arc<RidgeChange>],
    /// ẐⱼX̂ᵀ and (S + X̂Ẑᵀ)ⱼ⁻¹ẐⱼX̂ᵀ, one line for each row that waits.
    along: Mat<f64>,
    scaled: Mat<f64>,
}

impl<'a> WaitingChanges<'a> {
    /// Turns `zt`, which is X̂A⁻¹ with the settled A, into that with A after the changes that wait.
    pub(crate) fn correct(
        pending: &'a [Arc<RidgeChange>],
        xt: &Mat<f64>,
        zt: &mut Mat<f64>,
        par: Par,
    ) -> Self {
        let waiting = pending.iter().map(|change| change.rows.signs.len()).sum();
        let mut met = Self {
            pending,
            along: Mat::zeros(waiting, xt.ncols()),
            scaled: Mat::zeros(waiting, xt.ncols()),
        };
        let mut at = 0;
        for change in pending {
            let k = change.rows.signs.len();
            let [along, scaled] = change.correct(xt, zt, par);
            met.along.as_mut().subrows_mut(at, k).copy_from(&along);
            met.scaled.as_mut().subrows_mut(at, k).copy_from(&scaled);
            at += k;
        }
        met
    }

    /// For each change that waits, its rows' products with those of this one in the settled A⁻¹, a
    /// line for each of its rows.
    fn products_with_waiting(&self) -> Vec<Mat<f64>> {
        let mut at = 0;
        let mut blocks = Vec::with_capacity(self.pending.len());
        for other in self.pending {
            let k = other.rows.signs.len();
            let mut block = self.along.as_ref().subrows(at, k).to_owned();
            if k * block.ncols() <= FEW_PRODUCTS {
                for own in 0..block.ncols() {
                    let scaled = &self.scaled.col_as_slice(own)[..at];
                    for j in 0..k {
                        block[(j, own)] += dot(other.met.along.col_as_slice(j), scaled);
                    }
                }
            } else {
                let before = self.scaled.as_ref().subrows(0, at);
                let theirs = other.met.along.as_ref().transpose();
                multiply(block.as_mut(), Accum::Add, theirs, before, 1.0, Par::Seq);
            }
            blocks.push(block);
            at += k;
        }
        blocks
    }

    /// How this change meets those that wait: its rows' products with theirs, and what follows of
    /// ‖H‖.
    ///
    /// A⁻¹ is the inverse after the changes 1 … l plus Σ Ẑⱼᵀ(S + X̂Ẑᵀ)ⱼ⁻¹Ẑⱼ over them, so that
    /// these products follow from those that the corrections were made of, without another one of
    /// length d.
    pub(super) fn meet(&self, core: &ChangeCore, signs: &[f64]) -> MetChanges {
        let own = signs.len();
        let waiting = self.along.nrows();
        let mut joint_hat = Mat::zeros(own, waiting + own);
        let last = self.pending.last().map(|last| &last.met);
        let mut line_sums = last.map_or(Vec::new(), |last| last.line_sums.clone());
        line_sums.resize(waiting + own, 0.0);
        let mut hat_norm = last.map_or(0.0, |last| last.hat_norm);
        let blocks = self.products_with_waiting();
        for k in 0..own {
            let scaled = self.scaled.col_as_slice(k);
            let leaves = signs[k] < 0.0;
            // Σh² over the rows before this one, of those that leave.
            let mut squares = 0.0;
            let mut at = 0;
            for (other, block) in self.pending.iter().zip(&blocks) {
                for (j, sign) in other.rows.signs.iter().enumerate() {
                    let entry = block[(j, k)];
                    joint_hat[(k, at + j)] = entry;
                    if leaves && *sign < 0.0 {
                        line_sums[at + j] += entry.abs();
                        line_sums[waiting + k] += entry.abs();
                        squares += entry * entry;
                    }
                }
                at += other.rows.signs.len();
            }
            for j in 0..own {
                let entry =
                    RidgeChange::hat(core, signs, k, j) + dot(self.along.col_as_slice(j), scaled);
                joint_hat[(k, waiting + j)] = entry;
                if leaves && signs[j] < 0.0 {
                    line_sums[waiting + k] += entry.abs();
                    squares += if j < k { entry * entry } else { 0.0 };
                }
            }
            if leaves {
                // A block matrix has at most the norm of the matrix of its blocks' norms.
                let own = joint_hat[(k, waiting + k)].abs();
                let half = (hat_norm - own) / 2.0;
                hat_norm = (hat_norm + own) / 2.0 + (half * half + squares).sqrt();
            }
        }
        let found_at = last.map_or(0, |last| last.found_at);
        hat_norm = line_sums.iter().copied().fold(0.0, f64::max).min(hat_norm);
        MetChanges {
            along: self.along.clone(),
            joint_hat,
            line_sums,
            hat_norm,
            found_at,
        }
    }
}

/// Above this bound on ‖H‖, the entries of H, made of quotients by 1 − h, are not good enough for
/// 1/(1 − ‖H‖).
const LARGEST_HAT: f64 = 0.99;

/// At least the growth of A⁻¹ through the rows that leave up to this change, 1/(1 − ‖H‖) for H =
/// XA⁻¹Xᵀ with the settled A.
pub(crate) fn joint_growth(last: &RidgeChange) -> f64 {
    growth_of(last.met.hat_norm)
}

/// The same from all of H as it is. O(k²) for k rows that wait.
pub(crate) fn tight_joint_growth<'a>(
    changes: impl Iterator<Item = &'a RidgeChange> + Clone,
) -> f64 {
    let Some(last) = changes.clone().last() else {
        return 1.0;
    };
    if last.met.found_at == last.met.line_sums.len() {
        return joint_growth(last);
    }
    growth_of(hat_norm(changes)).min(joint_growth(last))
}

/// Up to so many rows, powers of H bound its norm; of more, they take longer than the steps of a
/// search.
const FEW_WAITING: usize = 128;

/// At least ‖H‖, which counts that rows point in different directions: of few rows by ‖H¹⁶‖^(1/16),
/// of more by Lanczos steps.
fn hat_norm<'a>(changes: impl Iterator<Item = &'a RidgeChange> + Clone) -> f64 {
    let signs: Vec<f64> = changes
        .clone()
        .flat_map(|change| change.rows.signs.iter().copied())
        .collect();
    let rows = signs.len();
    let mut hat = Mat::zeros(rows, rows);
    let mut before = 0;
    for change in changes {
        let own = change.rows.signs.len();
        for k in (0..own).filter(|&k| signs[before + k] < 0.0) {
            for j in (0..=before + k).filter(|&j| signs[j] < 0.0) {
                hat[(before + k, j)] = change.met.joint_hat[(k, j)];
                hat[(j, before + k)] = change.met.joint_hat[(k, j)];
            }
        }
        before += own;
    }
    if rows > FEW_WAITING {
        let joining: Vec<usize> = (0..rows).filter(|&k| signs[k] > 0.0).collect();
        return close_operator_norm(rows, &joining, rows as u64, |v| {
            let unit = v.clone();
            multiply(
                v.as_mut(),
                Accum::Replace,
                hat.as_ref(),
                unit.as_ref(),
                1.0,
                Par::Seq,
            );
        });
    }
    let mut square = Mat::zeros(rows, rows);
    for _ in 0..4 {
        multiply(
            square.as_mut(),
            Accum::Replace,
            hat.as_ref(),
            hat.as_ref(),
            1.0,
            Par::Seq,
        );
        std::mem::swap(&mut hat, &mut square);
    }
    largest_column_sum(&hat).powf(1.0 / 16.0)
}

fn growth_of(norm: f64) -> f64 {
    let norm = norm * (1.0 + 1e-9);
    if norm <= LARGEST_HAT {
        1.0 / (1.0 - norm)
    } else {
        f64::INFINITY
    }
}
