//! What a model needs of the sums: how many rows, and every product about an origin that the model chooses.

use faer::Mat;

use crate::linalg::DoubleWord;

/// Σw, Σw(z − c) and Σw(z − c)(z − c)ᵀ over all columns z, features first, in two words.
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
    /// A product about the origin is off by at most charge·r_i·r_j, r being the reaches of its columns: √Σw(z − c)² over all rows
    /// that ever came or went.
    pub(crate) charge: f64,
    pub(super) reach: Vec<f64>,
    /// The reach of the constant: √Σw over the same rows.
    pub(super) weight_reach: f64,
    /// Whether the sums are those of the rows to more digits than a double has.
    pub(crate) is_exact: bool,
}

impl CentredMoments {
    /// The most that √Σw(z − a)² ever was, for errors of products about another point: those of sums and of the weight enter them too.
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
        let mut sum = DoubleWord { high: self.high[(i, j)], low: self.low[(i, j)] };
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
}
