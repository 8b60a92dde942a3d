//! The sufficient statistics of a ridge model: A = XᵀWX + Λ, b = XᵀWY, and how many rows have each
//! feature. Everything else, the factor, the inverse, the parameters, can be made from them without
//! the rows.
//!
//! The support counts make one thing exact that no subtraction could: when the last row that has a
//! feature leaves, the feature's row and column of A are *known* to be zero beyond the penalty, and
//! are set so, instead of being left at the rounding error of what was subtracted.

use faer::{Accum, Mat, MatRef, Par};

use super::long_sums::SplitRows;
use crate::linalg::{
    DoubleWord, SHARED_COLUMNS, UNIT, by_stretches, coarse, dot, long_dot, multiply, norm,
    symmetric_product,
};

#[derive(Debug, Clone)]
pub(crate) struct RidgeSums {
    /// Both triangles, penalty included.
    pub(crate) a: Mat<f64>,
    pub(crate) b: Mat<f64>,
    /// Per column, the rows whose entry is not zero.
    pub(crate) support: Vec<u64>,
    /// The least entry of `support`, so that most requests need not look further.
    pub(super) scarcest: u64,
    /// The most that √A_jj ever was since the sums were made: taking a large row out does not take
    /// out the digits that it cost the others.
    pub(crate) spread: Vec<f64>,
    /// The most that √Σwy² ever was.
    pub(crate) target_spread: f64,
    /// Every entry of A is within charge·s_i·s_j of the truth, s being the spreads of its two
    /// factors: the rounding errors of as many additions as there were. The bound holds for b
    /// alike.
    pub(crate) charge: f64,
    pub(crate) b_charge: f64,
    /// What A lacks to the true sums, both triangles, where columns are so correlated that its own
    /// digits are too few (`long_sums.rs`).
    pub(crate) low: Option<Mat<f64>>,
}

/// k signed rows: +1 adds, −1 removes. Rows are scaled by the root of their weight, one column
/// each.
#[derive(Debug, Clone)]
pub(crate) struct SignedRows {
    pub(crate) xt: Mat<f64>,
    /// k × outputs, scaled alike.
    pub(crate) y: Mat<f64>,
    pub(crate) signs: Vec<f64>,
    /// Where all entries lie that are not zero, if they are few enough to be worth knowing.
    pub(crate) places: Option<Vec<ColumnPlaces>>,
    /// By how many units of rounding an entry can differ from that of the row itself: none where
    /// scaling by powers of two is all that was done.
    pub(crate) rounding: f64,
}

/// Columns of A that are changed together.
const TOGETHER: usize = 64;

/// Sums with a change on its way into them, some columns at a time; those before the change stay as
/// they are.
#[derive(Debug, Clone)]
pub(crate) struct GrowingSums {
    after: RidgeSums,
    signed: Mat<f64>,
    split: Option<SplitRows>,
    emptied: Vec<usize>,
}

impl GrowingSums {
    pub(crate) fn new(before: &RidgeSums, change: &SignedRows, par: Par) -> Self {
        let width = before.a.nrows();
        let mut after = RidgeSums {
            a: Mat::with_capacity(width, width),
            low: before
                .low
                .as_ref()
                .map(|_| Mat::with_capacity(width, width)),
            b: before.b.clone(),
            support: before.support.clone(),
            spread: before.spread.clone(),
            ..*before
        };
        let emptied = after.apply_to_vectors(change, par);
        let split = after.low.is_some().then(|| SplitRows::new(change));
        Self {
            after,
            signed: change.signed(),
            split,
            emptied,
        }
    }

    /// Makes the next columns of A. Returns them from the diagonal of the first of them down.
    pub(crate) fn advance(
        &mut self,
        before: &RidgeSums,
        change: &SignedRows,
        penalty: &[f64],
        columns: std::ops::Range<usize>,
        par: Par,
    ) -> MatRef<'_, f64> {
        let Self {
            after,
            signed,
            split,
            emptied,
        } = self;
        let start = columns.start;
        let width = before.a.nrows();
        let lines = width - start;
        let own = columns.len();
        let second_words = before.low.as_ref().zip(after.low.as_mut());
        for (before, after) in std::iter::once((&before.a, &mut after.a)).chain(second_words) {
            after.resize_with(width, columns.end, |_, _| 0.0);
            let from = before.as_ref().submatrix(start, start, lines, own);
            after
                .as_mut()
                .submatrix_mut(start, start, lines, own)
                .copy_from(from);
        }
        match split {
            Some(split) => split.add_to(after, change, columns.clone(), par),
            None => {
                let left = signed.as_ref().subrows(start, lines);
                let right = change.xt.as_ref().subrows(start, own).transpose();
                let out = after.a.as_mut().submatrix_mut(start, start, lines, own);
                multiply(out, Accum::Add, left, right, 1.0, par);
            }
        }
        for matrix in std::iter::once(&mut after.a).chain(&mut after.low) {
            for &j in emptied.iter().filter(|&&j| j >= start) {
                columns.clone().for_each(|column| matrix[(j, column)] = 0.0);
                if columns.contains(&j) {
                    matrix.col_as_slice_mut(j)[start..].fill(0.0);
                }
            }
        }
        for &j in emptied.iter().filter(|&j| columns.contains(j)) {
            after.a[(j, j)] = penalty[j];
        }
        after.mirror(columns);
        after.a.as_ref().submatrix(start, start, lines, own)
    }

    /// Finds out what follows from A, once all of its columns are made.
    pub(crate) fn complete(&mut self, change: &SignedRows) {
        self.after.note_change(
            change,
            self.split.as_ref().map_or(1.0, SplitRows::rounding_share),
        );
    }

    /// The sums with the change in them, and the columns that no row has any more.
    pub(crate) fn into_parts(self) -> (RidgeSums, Vec<usize>) {
        (self.after, self.emptied)
    }

    /// The sums as far as they have got.
    pub(crate) fn sums(&self) -> &RidgeSums {
        &self.after
    }
}

/// Where the entries of one row lie that are not zero, if that is known.
pub(crate) type ColumnPlaces = Option<Box<[u32]>>;

impl RidgeSums {
    /// The sums of nothing, without a penalty.
    pub(crate) fn zero(width: usize, outputs: usize) -> Self {
        Self {
            a: Mat::zeros(width, width),
            ..Self::without_matrix(width, outputs)
        }
    }

    /// The same, and A is still to come.
    pub(super) fn without_matrix(width: usize, outputs: usize) -> Self {
        Self {
            a: Mat::new(),
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

    /// A + X̂ᵀSX̂ and b + X̂ᵀSŶ, with the features that no row has any more cleared and returned.
    /// O(kd²).
    pub(crate) fn apply(&mut self, change: &SignedRows, penalty: &[f64], par: Par) -> Vec<usize> {
        let emptied = self.apply_to_vectors(change, par);
        let mut kept_share = 1.0;
        if self.low.is_some() {
            let split = SplitRows::new(change);
            kept_share = split.rounding_share();
            for start in (0..self.a.ncols()).step_by(TOGETHER) {
                let columns = start..(start + TOGETHER).min(self.a.ncols());
                split.add_to(self, change, columns.clone(), par);
                self.mirror(columns);
            }
        } else {
            let signed = change.signed();
            multiply(
                self.a.as_mut(),
                Accum::Add,
                signed.as_ref(),
                change.xt.as_ref().transpose(),
                1.0,
                par,
            );
        }
        for &j in &emptied {
            for matrix in std::iter::once(&mut self.a).chain(&mut self.low) {
                for i in 0..matrix.nrows() {
                    matrix[(i, j)] = 0.0;
                    matrix[(j, i)] = 0.0;
                }
            }
            self.a[(j, j)] = penalty[j];
        }
        self.note_change(change, kept_share);
        emptied
    }

    /// The part of [`apply`](Self::apply) that is not about A: b and the counts. Returns the
    /// columns that no row has any more.
    fn apply_to_vectors(&mut self, change: &SignedRows, par: Par) -> Vec<usize> {
        multiply(
            self.b.as_mut(),
            Accum::Add,
            change.signed().as_ref(),
            change.y.as_ref(),
            1.0,
            par,
        );
        self.b_charge += UNIT * (change.signs.len() as f64 + 4.0);
        if change.signs.iter().any(|sign| *sign > 0.0) {
            self.target_spread = self.target_spread.hypot(coarse(norm(&change.y)));
        }
        let mut emptied = Vec::new();
        for (k, sign) in change.signs.iter().enumerate() {
            for (j, x) in change.xt.col_as_slice(k).iter().enumerate() {
                if *x != 0.0 {
                    let count = &mut self.support[j];
                    *count = count.saturating_add_signed(*sign as i64);
                    if *count == 0 {
                        emptied.push(j);
                    }
                }
            }
        }
        // A column may have reached zero and come back within one change.
        emptied.retain(|&j| self.support[j] == 0);
        for &j in &emptied {
            self.b.row_mut(j).fill(0.0);
            self.spread[j] = 0.0;
        }
        emptied
    }

    /// Refreshes what is derived from A once a change is in it, and charges its rounding: every
    /// entry is rounded once where the sum over the rows of the change is added to it, and that sum
    /// by as many units as it has terms, of what the rows of the change alone amount to. Entries of
    /// rows may have been rounded themselves. `kept_share` of all this is left where sums have
    /// second words.
    fn note_change(&mut self, change: &SignedRows, kept_share: f64) {
        self.note();
        let mut squares = vec![0.0; self.spread.len()];
        for k in 0..change.signs.len() {
            squares
                .iter_mut()
                .zip(change.xt.col_as_slice(k))
                .for_each(|(sum, x)| *sum += x * x);
        }
        let share = squares
            .iter()
            .zip(&self.spread)
            .filter(|(_, spread)| **spread > 0.0);
        let share = share
            .map(|(square, spread)| square / (spread * spread))
            .fold(0.0, f64::max);
        let terms = (change.signs.len() as f64 + 4.0) * share;
        // A matrix product adds its sum in one piece, or in as many as the rows of the change have
        // stretches.
        let added = 2.0 + change.signs.len() as f64 / 128.0;
        self.charge += UNIT * ((added + terms) * kept_share * 1.01 + 2.0 * change.rounding * share);
    }

    /// Refreshes what is derived from A and the counts.
    pub(crate) fn note(&mut self) {
        for (j, spread) in self.spread.iter_mut().enumerate() {
            // The diagonal has rounding of its own.
            *spread = spread.max(coarse(self.a[(j, j)].max(0.0).sqrt() * (1.0 + 1e-9)));
        }
        self.scarcest = self.support.iter().copied().min().unwrap_or(0);
    }

    /// Copies what stands left of the diagonals of these columns onto what stands above them.
    fn mirror(&mut self, columns: std::ops::Range<usize>) {
        for matrix in std::iter::once(&mut self.a).chain(&mut self.low) {
            for j in 0..columns.end {
                for i in columns.start.max(j + 1)..columns.end {
                    matrix[(j, i)] = matrix[(i, j)];
                }
            }
        }
    }

    /// The columns that no row has any more once all these changes are made.
    pub(crate) fn unsupported<'a>(
        &self,
        changes: impl Iterator<Item = &'a SignedRows> + Clone,
    ) -> Vec<usize> {
        let gone: u64 = changes
            .clone()
            .map(|change| change.signs.len() as u64)
            .sum();
        if self.scarcest > gone {
            return Vec::new();
        }
        let scarce: Vec<usize> = (0..self.support.len())
            .filter(|&j| self.support[j] <= gone)
            .collect();
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
            all.support
                .iter_mut()
                .zip(&part.support)
                .for_each(|(sum, count)| *sum += count);
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
    pub(crate) fn times(&self, v: &Mat<f64>, par: Par) -> Mat<f64> {
        let mut product = symmetric_product(&self.a, v, par);
        if let Some(low) = &self.low {
            multiply(
                product.as_mut(),
                Accum::Add,
                low.as_ref(),
                v.as_ref(),
                1.0,
                par,
            );
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
        par: Par,
    ) -> f64 {
        let mut along = 0.0;
        for output in 0..v.ncols() {
            let v = v.col_as_slice(output);
            let v_low = v_low.col_as_slice(output);
            let entry = |j: usize| {
                let product = long_dot(self.a.col_as_slice(j), v, v_low);
                match &self.low {
                    Some(second) => product.plus(DoubleWord::new(dot(second.col_as_slice(j), v))),
                    None => product,
                }
            };
            let products = by_stretches(v.len(), SHARED_COLUMNS, par, |columns| {
                columns.map(entry).collect::<Vec<_>>()
            });
            for (j, product) in products.into_iter().flatten().enumerate() {
                along += v[j] * product.high;
                let sum = DoubleWord {
                    high: high[(j, output)],
                    low: low[(j, output)],
                }
                .plus(product);
                high[(j, output)] = sum.high;
                low[(j, output)] = sum.low;
            }
        }
        along
    }

    pub(crate) fn bytes(&self) -> usize {
        let low = self
            .low
            .as_ref()
            .map_or(0, |low| low.nrows() * low.ncols() * 8);
        low + (self.a.nrows() * self.a.ncols()
            + self.b.nrows() * self.b.ncols()
            + self.support.len())
            * 8
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    /// Sums of 90 rows, and rows that change them: the first leave, the last three join.
    fn sums_and_change(width: usize, rows: usize, size: f64, low: bool) -> (RidgeSums, SignedRows) {
        let mut next = numbers((width + rows) as u64);
        let x = Mat::from_fn(width, 90, |i, _| next() + if i == 2 { 3.0 } else { 0.0 });
        let mut sums = RidgeSums::zero(width, 1);
        multiply(
            sums.a.as_mut(),
            Accum::Add,
            x.as_ref(),
            x.as_ref().transpose(),
            1.0,
            Par::Seq,
        );
        sums.support = vec![2 * rows as u64; width];
        // The change takes the last row that has column 1.
        sums.support[1] = (rows - 3) as u64;
        sums.low = low.then(|| Mat::zeros(width, width));
        sums.note();
        let xt = Mat::from_fn(width, rows, |j, k| {
            if j == 1 && k + 3 >= rows {
                0.0
            } else {
                next() * size
            }
        });
        let signs: Vec<f64> = (0..rows)
            .map(|k| if k + 3 < rows { -1.0 } else { 1.0 })
            .collect();
        let y = Mat::from_fn(rows, 1, |_, _| next());
        (
            sums,
            SignedRows {
                xt,
                y,
                signs,
                places: None,
                rounding: 0.0,
            },
        )
    }

    #[test]
    fn columns_one_after_another_make_the_same_sums() {
        for low in [false, true] {
            let (before, change) = sums_and_change(37, 40, 0.1, low);
            let penalty = vec![0.5; 37];
            let mut whole = before.clone();
            assert_eq!(whole.apply(&change, &penalty, Par::Seq), [1]);
            let mut growing = GrowingSums::new(&before, &change, Par::Seq);
            for start in (0..37).step_by(5) {
                growing.advance(
                    &before,
                    &change,
                    &penalty,
                    start..(start + 5).min(37),
                    Par::Seq,
                );
            }
            growing.complete(&change);
            let (pieces, emptied) = growing.into_parts();
            assert_eq!(emptied, [1]);
            assert!((&whole.a - &pieces.a).norm_max() < 1e-12);
            assert_eq!(whole.b, pieces.b);
            assert_eq!(whole.support, pieces.support);
            assert_eq!(whole.spread, pieces.spread);
            assert_eq!(whole.charge, pieces.charge);
            assert_eq!(pieces.a, pieces.a.transpose().to_owned());
            // Both words together: a last digit of the first may be in the second.
            if let (Some(low), Some(pieces_low)) = (&whole.low, &pieces.low) {
                assert!(((&whole.a - &pieces.a) + (low - pieces_low)).norm_max() < 1e-20);
            }
        }
    }

    #[test]
    fn a_change_costs_no_more_digits_than_it_is_charged() {
        for (width, rows) in [(5, 3), (30, 40), (40, 200), (24, 700)] {
            for size in [1e-9, 1e-3, 0.1] {
                let (before, change) = sums_and_change(width, rows.max(7), size, false);
                let mut after = before.clone();
                let emptied = after.apply(&change, &vec![0.5; width], Par::Seq);
                for i in (0..width).filter(|i| !emptied.contains(i)) {
                    for j in (0..width).filter(|j| !emptied.contains(j)) {
                        let mut exact = DoubleWord::new(before.a[(i, j)]);
                        for (k, sign) in change.signs.iter().enumerate() {
                            exact = exact.plus_product(sign * change.xt[(i, k)], change.xt[(j, k)]);
                        }
                        let off = exact.plus(DoubleWord::new(-after.a[(i, j)])).value().abs();
                        let allowed =
                            (after.charge - before.charge) * after.spread[i] * after.spread[j];
                        assert!(off <= allowed, "{width} {rows} {size}: {off:e} {allowed:e}");
                    }
                }
            }
        }
    }
}
