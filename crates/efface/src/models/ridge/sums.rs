//! The sufficient statistics of a ridge model: A = XᵀWX + Λ, b = XᵀWY, and how many rows have each feature.
//! Everything else, the factor, the inverse, the parameters, can be made from them without the rows.
//!
//! The support counts make one thing exact that no subtraction could: when the last row that has a feature leaves, the
//! feature's row and column of A are *known* to be zero beyond the penalty, and are set so, instead of being left at the
//! rounding error of what was subtracted.

use faer::{Accum, Mat, Par};

use crate::linalg::{DoubleWord, UNIT, coarse, dot, long_dot, multiply, norm, symmetric_product};

#[derive(Debug, Clone)]
pub(crate) struct RidgeSums {
    /// Both triangles, penalty included.
    pub(crate) a: Mat<f64>,
    pub(crate) b: Mat<f64>,
    /// Per column, the rows whose entry is not zero.
    pub(crate) support: Vec<u64>,
    /// The least entry of `support`, so that most requests need not look further.
    scarcest: u64,
    /// The most that √A_jj ever was since the sums were made: taking a large row out does not take out the digits that it
    /// cost the others.
    pub(crate) spread: Vec<f64>,
    /// The most that √Σwy² ever was.
    pub(crate) target_spread: f64,
    /// Every entry of A is within charge·s_i·s_j of the truth, s being the spreads of its two factors: the rounding errors of
    /// as many additions as there were. The bound holds for b alike.
    pub(crate) charge: f64,
    pub(crate) b_charge: f64,
    /// What A lacks to the true sums, both triangles, where columns are so correlated that its own digits are too few
    /// (`long_sums.rs`).
    pub(crate) low: Option<Mat<f64>>,
}

/// k signed rows: +1 adds, −1 removes. Rows are scaled by the root of their weight, one column each.
#[derive(Debug, Clone)]
pub(crate) struct SignedRows {
    pub(crate) xt: Mat<f64>,
    /// k × outputs, scaled alike.
    pub(crate) y: Mat<f64>,
    pub(crate) signs: Vec<f64>,
    /// Where all entries lie that are not zero, if they are few enough to be worth knowing.
    pub(crate) places: Option<Vec<ColumnPlaces>>,
    /// By how many units of rounding an entry can differ from that of the row itself: none where scaling by powers of two is
    /// all that was done.
    pub(crate) rounding: f64,
}

/// Where the entries of one row lie that are not zero, if that is known.
pub(crate) type ColumnPlaces = Option<Box<[u32]>>;

impl RidgeSums {
    /// The sums of nothing, without a penalty.
    pub(crate) fn zero(width: usize, outputs: usize) -> Self {
        Self {
            a: Mat::zeros(width, width),
            b: Mat::zeros(width, outputs),
            support: vec![0; width],
            scarcest: 0,
            spread: vec![0.0; width],
            target_spread: 0.0,
            charge: 0.0,
            b_charge: 0.0,
            low: None,
        }
    }

    /// A + X̂ᵀSX̂ and b + X̂ᵀSŶ, with the features that no row has any more cleared and returned. O(kd²).
    pub(crate) fn apply(&mut self, change: &SignedRows, penalty: &[f64], par: Par) -> Vec<usize> {
        let signed = change.signed();
        let rounding = UNIT * (change.signs.len() as f64 + 4.0);
        if self.low.is_some() {
            self.charge += self.apply_long(change, par) * rounding + change.rounding * UNIT;
        } else {
            multiply(self.a.as_mut(), Accum::Add, signed.as_ref(), change.xt.as_ref().transpose(), 1.0, par);
            self.charge += rounding;
        }
        multiply(self.b.as_mut(), Accum::Add, signed.as_ref(), change.y.as_ref(), 1.0, par);
        self.b_charge += rounding;
        if change.signs.iter().any(|sign| *sign > 0.0) {
            self.target_spread = self.target_spread.hypot(coarse(norm(&change.y)));
        }
        let mut gone = Vec::new();
        for (k, sign) in change.signs.iter().enumerate() {
            for (j, x) in change.xt.col_as_slice(k).iter().enumerate() {
                if *x != 0.0 {
                    let count = &mut self.support[j];
                    *count = count.saturating_add_signed(*sign as i64);
                    if *count == 0 {
                        gone.push(j);
                    }
                }
            }
        }
        // A column may have reached zero and come back within one change.
        gone.retain(|&j| self.support[j] == 0);
        for &j in &gone {
            for matrix in std::iter::once(&mut self.a).chain(&mut self.low) {
                for i in 0..matrix.nrows() {
                    matrix[(i, j)] = 0.0;
                    matrix[(j, i)] = 0.0;
                }
            }
            self.a[(j, j)] = penalty[j];
            self.b.row_mut(j).fill(0.0);
            self.spread[j] = 0.0;
        }
        self.note();
        gone
    }

    /// Refreshes what is derived from A and the counts.
    pub(crate) fn note(&mut self) {
        for (j, spread) in self.spread.iter_mut().enumerate() {
            // The diagonal has rounding of its own.
            *spread = spread.max(coarse(self.a[(j, j)].max(0.0).sqrt() * (1.0 + 1e-9)));
        }
        self.scarcest = self.support.iter().copied().min().unwrap_or(0);
    }

    /// The columns that no row has any more once all these changes are made.
    pub(crate) fn unsupported<'a>(
        &self,
        changes: impl Iterator<Item = &'a SignedRows> + Clone,
    ) -> Vec<usize> {
        let gone: u64 = changes.clone().map(|change| change.signs.len() as u64).sum();
        if self.scarcest > gone {
            return Vec::new();
        }
        let scarce: Vec<usize> = (0..self.support.len()).filter(|&j| self.support[j] <= gone).collect();
        let mut left: Vec<i64> = self.support.iter().map(|&rows| rows as i64).collect();
        for change in changes {
            for (k, sign) in change.signs.iter().enumerate() {
                let row = change.xt.col_as_slice(k);
                let mut see = |j: usize| left[j] += if row[j] != 0.0 { *sign as i64 } else { 0 };
                match change.places.as_ref().and_then(|places| places[k].as_ref()) {
                    Some(places) => places.iter().for_each(|&j| see(j as usize)),
                    None => scarce.iter().for_each(|&j| see(j)),
                }
            }
        }
        scarce.into_iter().filter(|&j| left[j] <= 0).collect()
    }

    /// The sums of several sets of rows together, none of which has a penalty in it yet.
    pub(crate) fn join<'a>(parts: impl Iterator<Item = &'a Self>, penalty: &[f64]) -> Self {
        let mut all = Self::zero(0, 0);
        let mut count = 0u32;
        for part in parts {
            if all.support.is_empty() {
                all = Self::zero(part.support.len(), part.b.ncols());
            }
            all.a += &part.a;
            all.b += &part.b;
            all.support.iter_mut().zip(&part.support).for_each(|(sum, count)| *sum += count);
            all.target_spread = all.target_spread.hypot(part.target_spread);
            all.charge = all.charge.max(part.charge);
            all.b_charge = all.b_charge.max(part.b_charge);
            count += 1;
        }
        for (j, penalty) in penalty.iter().enumerate() {
            all.a[(j, j)] += penalty;
        }
        all.charge += UNIT * f64::from(count);
        all.b_charge += UNIT * f64::from(count);
        all.note();
        all
    }

    pub(crate) fn is_finite(&self) -> bool {
        // An entry is at most the product of its spreads.
        self.target_spread.is_finite() && self.spread.iter().all(|s| (s * s).is_finite())
    }

    /// A·v, each entry rounded once.
    pub(crate) fn times(&self, v: &Mat<f64>) -> Mat<f64> {
        let mut product = symmetric_product(&self.a, v);
        if let Some(low) = &self.low {
            multiply(product.as_mut(), Accum::Add, low.as_ref(), v.as_ref(), 1.0, Par::Seq);
        }
        product
    }

    /// Adds A(v + v_low) to a gradient in two words; returns Σ vᵀAv over the columns.
    pub(crate) fn add_product(
        &self,
        v: &Mat<f64>,
        v_low: &Mat<f64>,
        high: &mut Mat<f64>,
        low: &mut Mat<f64>,
    ) -> f64 {
        let mut along = 0.0;
        for output in 0..v.ncols() {
            let v = v.col_as_slice(output);
            let v_low = v_low.col_as_slice(output);
            for j in 0..self.a.ncols() {
                let mut product = long_dot(self.a.col_as_slice(j), v, v_low);
                if let Some(second) = &self.low {
                    product = product.plus(DoubleWord::new(dot(second.col_as_slice(j), v)));
                }
                along += v[j] * product.high;
                let sum = DoubleWord { high: high[(j, output)], low: low[(j, output)] }.plus(product);
                high[(j, output)] = sum.high;
                low[(j, output)] = sum.low;
            }
        }
        along
    }

    pub(crate) fn bytes(&self) -> usize {
        let low = self.low.as_ref().map_or(0, |low| low.nrows() * low.ncols() * 8);
        low + (self.a.nrows() * self.a.ncols() + self.b.nrows() * self.b.ncols() + self.support.len()) * 8
    }
}

impl SignedRows {
    /// X̂ᵀS: one column per row, with its sign.
    pub(crate) fn signed(&self) -> Mat<f64> {
        let mut signed = self.xt.clone();
        for (k, sign) in self.signs.iter().enumerate() {
            if *sign < 0.0 {
                signed.col_as_slice_mut(k).iter_mut().for_each(|x| *x = -*x);
            }
        }
        signed
    }

    /// No rows, of the same shape.
    pub(crate) fn none(like: &Self) -> Self {
        Self {
            xt: Mat::zeros(like.xt.nrows(), 0),
            y: Mat::zeros(0, like.y.ncols()),
            signs: Vec::new(),
            places: None,
            rounding: 0.0,
        }
    }

    /// All rows of several changes as one.
    pub(crate) fn stack<'a>(parts: impl Iterator<Item = &'a SignedRows> + Clone) -> Option<Self> {
        let first = parts.clone().next()?;
        let total = parts.clone().map(|part| part.signs.len()).sum();
        let mut all = Self {
            xt: Mat::zeros(first.xt.nrows(), total),
            y: Mat::zeros(total, first.y.ncols()),
            signs: Vec::with_capacity(total),
            places: None,
            rounding: 0.0,
        };
        for part in parts {
            let at = all.signs.len();
            let k = part.signs.len();
            all.xt.as_mut().subcols_mut(at, k).copy_from(&part.xt);
            all.y.as_mut().subrows_mut(at, k).copy_from(&part.y);
            all.signs.extend_from_slice(&part.signs);
            all.rounding = all.rounding.max(part.rounding);
        }
        Some(all)
    }
}
