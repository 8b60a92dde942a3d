//! What a model needs of the sums: how many rows, and every product about an origin that the model
//! chooses.

use faer::{Accum, Mat, Par};

use crate::linalg::{DoubleWord, UNIT, multiply};

/// Σw, Σw(z − c) and Σw(z − c)(z − c)ᵀ over all columns z, features first, in two words.
#[derive(Debug)]
pub(crate) struct CentredMoments {
    pub(crate) weight: DoubleWord,
    /// c.
    pub(crate) origin: Vec<f64>,
    pub(crate) sums: Vec<DoubleWord>,
    /// The lower triangle.
    pub(crate) high: Mat<f64>,
    pub(crate) low: Mat<f64>,
    /// Per feature, the rows in which it is not zero.
    pub(crate) support: Vec<u64>,
    /// A product about the origin is off by at most charge·r_i·r_j, r being the reaches of its
    /// columns: √Σw(z − c)² over all rows that ever came or went.
    pub(crate) charge: f64,
    pub(super) reach: Vec<f64>,
    /// The reach of the constant: √Σw over the same rows.
    pub(super) weight_reach: f64,
    /// Whether the sums are those of the rows to more digits than a double has.
    pub(crate) is_exact: bool,
}

impl CentredMoments {
    /// The most that √Σw(z − a)² ever was, for errors of products about another point: those of
    /// sums and of the weight enter them too.
    pub(crate) fn reach_about(&self, column: usize, at: f64) -> f64 {
        self.reach[column] + (at - self.origin[column]).abs() * self.weight_reach
    }

    pub(crate) fn weight_reach(&self) -> f64 {
        self.weight_reach
    }

    /// The mean of a column.
    pub(crate) fn mean(&self, column: usize) -> f64 {
        self.origin[column] + self.sums[column].value() / self.weight.value()
    }

    /// The deviation of a column.
    pub(crate) fn spread(&self, column: usize) -> f64 {
        let weight = self.weight.value();
        let about = self.mean(column) - self.origin[column];
        let square = self.product(column, column, about, about).value();
        (square / weight).max(0.0).sqrt()
    }

    /// Σw(z_i − c_i − a)(z_j − c_j − b), for i ≥ j.
    fn product(&self, i: usize, j: usize, a: f64, b: f64) -> DoubleWord {
        let mut sum = DoubleWord {
            high: self.high[(i, j)],
            low: self.low[(i, j)],
        };
        sum = sum.plus(self.sums[j].times(-a));
        sum = sum.plus(self.sums[i].times(-b));
        sum.plus(self.weight.times(a).times(b))
    }

    /// The same about two other points, in the columns' own coordinates.
    pub(crate) fn product_about(&self, i: usize, j: usize, at: (f64, f64)) -> DoubleWord {
        if i < j {
            return self.product_about(j, i, (at.1, at.0));
        }
        self.product(i, j, at.0 - self.origin[i], at.1 - self.origin[j])
    }

    /// Σw(z − a).
    pub(crate) fn sum_about(&self, column: usize, at: f64) -> DoubleWord {
        self.sums[column].plus(self.weight.times(self.origin[column] - at))
    }

    /// The same rows with columns in other units: column j becomes factor·z + offset, and columns
    /// beyond the list stay. O(d²).
    pub(crate) fn rescaled(&self, scales: impl Iterator<Item = (f64, f64)>) -> Self {
        let width = self.origin.len();
        let mut factors = vec![1.0; width];
        // What the new origins are rounded by.
        let mut rests = vec![0.0; width];
        let mut origin = self.origin.clone();
        for (column, (factor, offset)) in scales.enumerate() {
            factors[column] = factor;
            (origin[column], rests[column]) =
                rounded(DoubleWord::new(offset).plus_product(factor, origin[column]));
        }
        let mut high = Mat::zeros(width, width);
        let mut low = Mat::zeros(width, width);
        for j in 0..width {
            for i in j..width {
                let mut sum = DoubleWord {
                    high: self.high[(i, j)],
                    low: self.low[(i, j)],
                };
                sum = sum.times(factors[i]).times(factors[j]);
                if rests[i] != 0.0 || rests[j] != 0.0 {
                    sum = sum.plus(self.sums[i].times(factors[i]).times(rests[j]));
                    sum = sum.plus(self.sums[j].times(factors[j]).times(rests[i]));
                    sum = sum.plus(self.weight.times(rests[i]).times(rests[j]));
                }
                high[(i, j)] = sum.high;
                low[(i, j)] = sum.low;
            }
        }
        let moved = |j: usize| {
            self.sums[j]
                .times(factors[j])
                .plus(self.weight.times(rests[j]))
        };
        let reach =
            |j: usize| self.reach[j] * factors[j].abs() + rests[j].abs() * self.weight_reach;
        Self {
            weight: self.weight,
            sums: (0..width).map(moved).collect(),
            reach: (0..width).map(reach).collect(),
            support: self.support.clone(),
            charge: self.charge,
            weight_reach: self.weight_reach,
            is_exact: self.is_exact,
            origin,
            high,
            low,
        }
    }

    /// The same rows in columns that are sums of these: u = Wᵀz + offset. O(d²k).
    pub(crate) fn combined(&self, weights: &Mat<f64>, offset: &[f64]) -> Self {
        let columns = self.origin.len();
        let about: Vec<f64> = self
            .sums
            .iter()
            .map(|sum| sum.value() / self.weight.value())
            .collect();
        // About their means, columns are as small as they get.
        let centred = Mat::from_fn(columns, columns, |i, j| {
            let (i, j) = (i.max(j), i.min(j));
            self.product(i, j, about[i], about[j]).value()
        });
        let mut half = Mat::zeros(columns, offset.len());
        multiply(
            half.as_mut(),
            Accum::Replace,
            centred.as_ref(),
            weights.as_ref(),
            1.0,
            Par::Seq,
        );
        let mut products = Mat::zeros(offset.len(), offset.len());
        multiply(
            products.as_mut(),
            Accum::Replace,
            weights.as_ref().transpose(),
            half.as_ref(),
            1.0,
            Par::Seq,
        );
        let mut all = Self {
            weight: self.weight,
            origin: Vec::with_capacity(offset.len()),
            sums: Vec::with_capacity(offset.len()),
            high: Mat::zeros(offset.len(), offset.len()),
            low: Mat::zeros(offset.len(), offset.len()),
            support: Vec::new(),
            charge: self.charge + UNIT * (2 * columns + 16) as f64,
            reach: Vec::with_capacity(offset.len()),
            weight_reach: self.weight_reach,
            is_exact: false,
        };
        // How far the means are from the new origins, and what sums about the rounded means leave.
        let mut means = Vec::with_capacity(offset.len());
        let mut left = Vec::with_capacity(offset.len());
        for (column, offset) in offset.iter().enumerate() {
            let weights = weights.col_as_slice(column);
            let mut centre = DoubleWord::new(*offset);
            let mut sum = DoubleWord::default();
            let mut mean = DoubleWord::default();
            let mut reach = 0.0;
            for (from, weight) in weights.iter().enumerate() {
                centre = centre.plus_product(*weight, self.origin[from]);
                sum = sum.plus(self.sums[from].times(*weight));
                mean = mean.plus_product(*weight, about[from]);
                reach += weight.abs() * (self.reach[from] + about[from].abs() * self.weight_reach);
            }
            let (origin, rest) = rounded(centre);
            sum = sum.plus(self.weight.times(rest));
            let mean = mean.plus(DoubleWord::new(rest)).value();
            all.origin.push(origin);
            all.sums.push(sum);
            all.reach.push(reach + mean.abs() * self.weight_reach);
            left.push(sum.plus(self.weight.times(-mean)));
            means.push(mean);
        }
        for j in 0..offset.len() {
            for i in j..offset.len() {
                let mut sum = DoubleWord::new(products[(i, j)]);
                sum = sum
                    .plus(left[i].times(means[j]))
                    .plus(left[j].times(means[i]));
                sum = sum.plus(self.weight.times(means[i]).times(means[j]));
                all.high[(i, j)] = sum.high;
                all.low[(i, j)] = sum.low;
            }
        }
        all
    }
}

/// A number and what it lacks.
fn rounded(sum: DoubleWord) -> (f64, f64) {
    let value = sum.value();
    (value, sum.high - value + sum.low)
}
