//! What A lacks to the true sums XᵀX + Λ: its second words, for columns so correlated that 53 bits
//! are too few.
//!
//! A row is split into a coarse part H of 22 bits, relative to the largest entry of its column in a
//! block of 256 rows, and the rest L. Products of coarse parts and sums of 256 of them fit into 53
//! bits, so that HᵀH is exact; HᵀL + LᵀH + LᵀL is (H + L/2)ᵀL plus its transpose, and so small that
//! its own rounding does not matter. Two matrix products and a half instead of half a one: five
//! times the work of the plain sums. Ozaki, Ogita, Oishi and Rump 2012.

use faer::{Accum, Mat, Par};

use super::Basis;
use super::sums::{RidgeSums, SignedRows};
use crate::error::Result;
use crate::linalg::{
    DoubleWord, UNIT, long_add_scaled, mirror_lower, multiply, multiply_lower, two_product, two_sum,
};
use crate::rows::{RowStore, Rows};

/// Rows whose products are summed without rounding.
const BLOCK: usize = 256;
/// Bits of the coarse part, its sign included: 2·(23 − 1) + log₂ 256 ≤ 53.
const COARSE: i32 = 23;
/// Rows of which at most one entry in so many is not zero are added entry by entry.
const FEW_NON_ZEROS: usize = 8;
/// The rest is at most 2^-22 of the column's largest entry in the block, whose sum over a block is
/// at most √256 spreads.
const REST: f64 = 1.0 / (1 << 17) as f64;

impl RidgeSums {
    /// Finds the second words of A. Weights would have to be rooted, which rounds: rows that have
    /// some are left as they are.
    pub(crate) fn lengthen(
        &mut self,
        rows: &Rows,
        basis: &Basis,
        penalty: &[f64],
        par: Par,
    ) -> Result<bool> {
        if rows.iter().any(|row| row.weight != 1.0) {
            return Ok(false);
        }
        let width = basis.width();
        // What is still missing: minus A at first, and plus every product that is added.
        let mut high = &self.a * faer::Scale(-1.0);
        let mut low = Mat::<f64>::zeros(width, width);
        for (j, penalty) in penalty.iter().enumerate() {
            add_exactly(&mut high[(j, j)], &mut low[(j, j)], *penalty);
        }
        let mut missing = MissingSums { high, low };
        let rest = if rows.is_sparse() && basis.is_unshifted() {
            missing.add_sparse(rows, basis)?;
            0.0
        } else {
            missing.add_dense(rows, basis, par)?
        };
        let mut missing = missing.high + missing.low;
        mirror_lower(missing.as_mut());
        self.low = Some(missing);
        // The second words have the rounding of the rest, and that of summing themselves.
        self.charge = self.charge * rest + 64.0 * UNIT * UNIT * rows.len() as f64;
        Ok(true)
    }
}

/// Signed rows on their way into both words of A.
#[derive(Debug, Clone)]
pub(super) enum SplitRows {
    /// Few entries are not zero: each pair is added by itself.
    Sparse,
    Dense(Vec<SplitBlock>),
}

/// At most [`BLOCK`] rows in their two parts.
#[derive(Debug, Clone)]
pub(super) struct SplitBlock {
    coarse: Mat<f64>,
    signed_coarse: Mat<f64>,
    /// H + L/2.
    middle: Mat<f64>,
    signed_rest: Mat<f64>,
}

impl SplitRows {
    pub(super) fn new(change: &SignedRows) -> Self {
        let rows = change.signs.len();
        let width = change.xt.nrows();
        let non_zeros: usize = (0..rows)
            .map(|k| {
                change
                    .xt
                    .col_as_slice(k)
                    .iter()
                    .filter(|x| **x != 0.0)
                    .count()
            })
            .sum();
        if non_zeros * FEW_NON_ZEROS < width * rows {
            return Self::Sparse;
        }
        let block = |start: usize| {
            let filled = BLOCK.min(rows - start);
            let mut coarse = change.xt.as_ref().subcols(start, filled).to_owned();
            let mut rest = Mat::<f64>::zeros(width, filled);
            split(&mut coarse, &mut rest, filled);
            let middle = &coarse + &rest * faer::Scale(0.5);
            let mut signed_coarse = coarse.clone();
            let mut signed_rest = rest;
            let signs = change.signs[start..start + filled].iter().enumerate();
            for (k, sign) in signs.filter(|(_, sign)| **sign < 0.0) {
                signed_coarse
                    .col_as_slice_mut(k)
                    .iter_mut()
                    .for_each(|x| *x *= sign);
                signed_rest
                    .col_as_slice_mut(k)
                    .iter_mut()
                    .for_each(|x| *x *= sign);
            }
            SplitBlock {
                coarse,
                signed_coarse,
                middle,
                signed_rest,
            }
        };
        Self::Dense((0..rows).step_by(BLOCK).map(block).collect())
    }

    /// The share of the plain sums' rounding that is left.
    pub(super) fn rounding_share(&self) -> f64 {
        match self {
            Self::Sparse => 4.0 * UNIT,
            Self::Dense(_) => REST + 4.0 * UNIT,
        }
    }

    /// Adds the rows to both words of these columns of A, from the diagonal of the first of them
    /// down.
    pub(super) fn add_to(
        &self,
        sums: &mut RidgeSums,
        change: &SignedRows,
        columns: std::ops::Range<usize>,
        par: Par,
    ) {
        let RidgeSums {
            a, low: Some(low), ..
        } = sums
        else {
            return;
        };
        let start = columns.start;
        let blocks = match self {
            Self::Sparse => {
                for (k, sign) in change.signs.iter().enumerate() {
                    let row = change.xt.col_as_slice(k);
                    for j in columns.clone().filter(|&j| row[j] != 0.0) {
                        let scale = DoubleWord::new(sign * row[j]);
                        let high = &mut a.col_as_slice_mut(j)[start..];
                        long_add_scaled(
                            high,
                            &mut low.col_as_slice_mut(j)[start..],
                            scale,
                            &row[start..],
                        );
                    }
                }
                return;
            }
            Self::Dense(blocks) => blocks,
        };
        let lines = a.nrows() - start;
        let mut square = Mat::<f64>::zeros(lines, columns.len());
        let mut cross = Mat::<f64>::zeros(lines, columns.len());
        for block in blocks {
            let product = |out: &mut Mat<f64>, accum, left: &Mat<f64>, right: &Mat<f64>| {
                let left = left.as_ref().subrows(start, lines);
                let right = right.as_ref().subrows(start, columns.len()).transpose();
                multiply(out.as_mut(), accum, left, right, 1.0, par);
            };
            product(
                &mut square,
                Accum::Replace,
                &block.signed_coarse,
                &block.coarse,
            );
            product(
                &mut cross,
                Accum::Replace,
                &block.middle,
                &block.signed_rest,
            );
            product(&mut cross, Accum::Add, &block.signed_rest, &block.middle);
            for (at, j) in columns.clone().enumerate() {
                let added = square.col_as_slice(at).iter().zip(cross.col_as_slice(at));
                let high = a.col_as_slice_mut(j)[start..].iter_mut();
                let sums = high.zip(&mut low.col_as_slice_mut(j)[start..]);
                for ((high, low), (square, cross)) in sums.zip(added) {
                    let (sum, lost) = two_sum(*high, *square);
                    let rest = *low + (lost + cross);
                    // The larger word comes first, so that three operations give the exact sum of
                    // both.
                    *high = sum + rest;
                    *low = rest - (*high - sum);
                }
            }
        }
    }
}

/// What is missing, in two words; the lower triangle counts.
struct MissingSums {
    high: Mat<f64>,
    low: Mat<f64>,
}

impl MissingSums {
    /// Adds the products of all pairs of non-zeros.
    fn add_sparse(&mut self, rows: &Rows, basis: &Basis) -> Result<()> {
        let first = basis.intercept as usize;
        let mut entries: Vec<(usize, f64)> = Vec::new();
        for row in rows.iter() {
            rows.go_on()?;
            entries.clear();
            entries.extend((0..first).map(|j| (j, 1.0)));
            row.features
                .each(|j, x| entries.push((first + j, x * basis.inverse_scale(j))));
            for (at, &(j, x)) in entries.iter().enumerate() {
                let high = self.high.col_as_slice_mut(j);
                let low = self.low.col_as_slice_mut(j);
                for &(i, other) in &entries[at..] {
                    let (product, rest) = two_product(x, other);
                    add_exactly(&mut high[i], &mut low[i], product);
                    low[i] += rest;
                }
            }
        }
        Ok(())
    }

    /// Adds the products of rows that are split. Returns the share of the plain sums' error that
    /// the rest can have.
    fn add_dense(&mut self, rows: &Rows, basis: &Basis, par: Par) -> Result<f64> {
        let width = basis.width();
        let mut coarse = Mat::<f64>::zeros(width, BLOCK);
        let mut rest = Mat::<f64>::zeros(width, BLOCK);
        let mut square = Mat::<f64>::zeros(width, width);
        let mut cross = Mat::<f64>::zeros(width, width);
        let mut filled = 0;
        let mut has_rest = false;
        let mut all = rows.iter().peekable();
        while let Some(row) = all.next() {
            basis.write_long(
                row.features,
                coarse.col_as_slice_mut(filled),
                rest.col_as_slice_mut(filled),
            );
            filled += 1;
            if filled < BLOCK && all.peek().is_some() {
                continue;
            }
            split(&mut coarse, &mut rest, filled);
            let h = coarse.as_ref().subcols(0, filled);
            let l = rest.as_ref().subcols(0, filled);
            multiply_lower(square.as_mut(), Accum::Replace, h, h.transpose(), 1.0, par);
            // Counts have no rest, and half of the work is saved.
            let fine = l.norm_max() > 0.0;
            if fine {
                let middle = h + l * faer::Scale(0.5);
                multiply(
                    cross.as_mut(),
                    Accum::Replace,
                    middle.as_ref(),
                    l.transpose(),
                    1.0,
                    par,
                );
            }
            for j in 0..width {
                for i in j..width {
                    add_exactly(
                        &mut self.high[(i, j)],
                        &mut self.low[(i, j)],
                        square[(i, j)],
                    );
                    if fine {
                        self.low[(i, j)] += cross[(i, j)] + cross[(j, i)];
                    }
                }
            }
            has_rest |= fine;
            filled = 0;
            rows.go_on()?;
        }
        Ok(if has_rest { REST } else { 0.0 })
    }
}

fn add_exactly(high: &mut f64, low: &mut f64, value: f64) {
    let (sum, lost) = two_sum(*high, value);
    *high = sum;
    *low += lost;
}

/// Moves all but the leading bits of every column of numbers, a line of `coarse` here, into `rest`.
fn split(coarse: &mut Mat<f64>, rest: &mut Mat<f64>, filled: usize) {
    let mut largest = vec![0.0f64; coarse.nrows()];
    for k in 0..filled {
        for (largest, x) in largest.iter_mut().zip(coarse.col_as_slice(k)) {
            *largest = largest.max(x.abs());
        }
    }
    // Adding and subtracting 1.5 times a power of two rounds to its last digit.
    let rounding: Vec<f64> = largest
        .iter()
        .map(|largest| {
            if *largest > 0.0 {
                1.5 * (largest.log2().ceil() + f64::from(53 - COARSE) + 1.0).exp2()
            } else {
                0.0
            }
        })
        .collect();
    for k in 0..filled {
        let fine = rest.col_as_slice_mut(k);
        for ((x, rounding), fine) in coarse
            .col_as_slice_mut(k)
            .iter_mut()
            .zip(&rounding)
            .zip(fine)
        {
            let leading = (*x + rounding) - rounding;
            *fine += *x - leading;
            *x = leading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Ridge;
    use crate::models::ridge::RidgePenalty;
    use crate::rows::Dense;

    #[test]
    fn second_words_are_what_the_sums_lack() {
        let n = 700;
        let mut state = 9u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let x: Vec<f64> = (0..n * 3)
            .map(|at| next() + [0.0, 1e4, 1e-3][at % 3])
            .collect();
        let rows = Rows::new(Dense::new(x, 3).unwrap(), vec![0.0; n], 1).unwrap();
        let basis = Ridge::new(0.1).basis(&rows);
        let penalty = RidgePenalty::new(&basis, 0.1).values;
        let mut sums = RidgeSums::gather(&rows, &basis, &penalty, Par::Seq).unwrap();
        let before = sums.charge;
        assert!(sums.lengthen(&rows, &basis, &penalty, Par::Seq).unwrap());
        assert!(sums.charge < 1e-4 * before);
        let low = sums.low.as_ref().unwrap();
        // In 128-bit integers, after scaling, the sums are exact.
        for i in 0..4 {
            for j in 0..4 {
                let mut exact = crate::linalg::DoubleWord::default();
                for row in rows.iter() {
                    let mut high = vec![0.0; 4];
                    let mut rest = vec![0.0; 4];
                    basis.write_long(row.features, &mut high, &mut rest);
                    exact = exact.plus_product(high[i], high[j]);
                    exact = exact.plus_product(high[i], rest[j]);
                    exact = exact.plus_product(rest[i], high[j]);
                }
                let penalty = if i == j { penalty[i] } else { 0.0 };
                let missing = exact
                    .plus(crate::linalg::DoubleWord::new(penalty))
                    .plus(crate::linalg::DoubleWord::new(-sums.a[(i, j)]))
                    .value();
                let allowed =
                    10.0 * sums.charge * sums.spread[i] * sums.spread[j] + 1e-10 * missing.abs();
                assert!(
                    (missing - low[(i, j)]).abs() <= allowed,
                    "{i} {j}: {missing:e} {:e}",
                    low[(i, j)]
                );
            }
        }
    }
}
