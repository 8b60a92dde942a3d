//! Sums in two words, about 106 bits, that know what they lost.
//!
//! A sum that rows leave again must not remember them as rounding. Every product is split into its two exact halves,
//! every addition keeps its error in the second word, and what even that word could not hold is returned to the caller
//! as a measured loss. Counts and single-precision data lose nothing, so that their sums after a forget are bit for bit
//! those of the retained rows in whatever order they came. Dekker 1971; Ogita, Rump and Oishi 2005.

use crate::error::{Error, Result};
use crate::rows::{RowId, RowView};

/// The largest feature or weight whose products can be summed without overflow.
const LARGEST: f64 = 1e60;

/// Below this size the error of a product may itself fall out of the range of f64.
const TINY: f64 = 1e-280;

/// A value kept as `high + low`, where `high` is the value rounded to f64.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct LongSum {
    high: f64,
    low: f64,
}

/// a + b as its rounded value and the exact rest (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// a·b as its rounded value and the exact rest.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl LongSum {
    /// Adds a number; returns how much of it was lost.
    pub(crate) fn add(&mut self, x: f64) -> f64 {
        let (high, rest) = two_sum(self.high, x);
        let (low, lost) = two_sum(self.low, rest);
        (self.high, self.low) = two_sum(high, low);
        lost.abs()
    }

    /// Adds a·b; returns how much of it was lost.
    pub(crate) fn add_product(&mut self, a: f64, b: f64) -> f64 {
        let (product, rest) = two_product(a, b);
        self.add(product) + self.add(rest) + underflow(product, a != 0.0 && b != 0.0)
    }

    /// Adds w·x²; returns how much of it was lost.
    pub(crate) fn add_square(&mut self, w: f64, x: f64) -> f64 {
        let (square, rest) = two_product(x, x);
        let missing = underflow(square, x != 0.0) * w.abs();
        self.add_product(w, square) + if rest == 0.0 { 0.0 } else { self.add_product(w, rest) } + missing
    }

    /// The value rounded to f64.
    pub(crate) fn value(self) -> f64 {
        self.high
    }

    /// The product, to about 2⁻¹⁰² of itself.
    pub(crate) fn times(self, other: Self) -> Self {
        let (product, rest) = two_product(self.high, other.high);
        let (high, low) = two_sum(product, rest + (self.high * other.low + self.low * other.high));
        Self { high, low }
    }

    /// The difference, to about 2⁻¹⁰⁴ of the larger.
    pub(crate) fn minus(self, other: Self) -> Self {
        let mut difference = self;
        difference.add(-other.high);
        difference.add(-other.low);
        difference
    }

    /// The quotient rounded to f64.
    pub(crate) fn over(self, other: Self) -> f64 {
        let first = self.high / other.high;
        let rest = self.minus(other.times(Self { high: first, low: 0.0 }));
        first + rest.high / other.high
    }

    /// Whether both words are numbers, as they are unless a stored model was damaged.
    pub(crate) fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }
}

fn underflow(product: f64, happened: bool) -> f64 {
    if happened && product.abs() < TINY { f64::MIN_POSITIVE } else { 0.0 }
}

/// Refuses a row whose values or weight are too large to be squared and summed.
pub(crate) fn check_size(view: &RowView<'_>) -> Result<()> {
    let mut column = None;
    view.features.each(|j, x| {
        if x.abs() > LARGEST {
            column.get_or_insert(j);
        }
    });
    match column {
        Some(column) => Err(too_large("feature", view.id, format!(", column {column}"))),
        None if view.weight > LARGEST => Err(too_large("weight", view.id, String::new())),
        None => Ok(()),
    }
}

fn too_large(name: &'static str, row: RowId, place: String) -> Error {
    Error::Parameter { name, value: format!("too large (row {row}{place})"), range: "at most 1e60 in size" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_is_gone_to_the_bit() {
        let values: Vec<f64> = (0..500).map(|i| f64::from((f64::from(i) * 0.731).sin() as f32)).collect();
        let sum = |values: &[f64]| {
            let (mut s, mut lost) = (LongSum::default(), 0.0);
            values.iter().for_each(|&x| lost += s.add_square(1.0, x));
            (s, lost)
        };
        let (mut all, lost) = sum(&values);
        values[..300].iter().for_each(|&x| assert_eq!(all.add_square(-1.0, x), 0.0));
        assert_eq!(lost, 0.0);
        assert_eq!(all, sum(&values[300..]).0);
    }

    #[test]
    fn a_loss_is_noticed() {
        let mut sum = LongSum::default();
        sum.add(1e40);
        sum.add(1.0);
        assert!(sum.add(1e-40) > 0.0);
        sum.add(-1e40);
        assert_eq!(sum.value(), 1.0);
        assert_eq!(LongSum { high: 1.0, low: 0.0 }.over(LongSum { high: 3.0, low: 0.0 }), 1.0 / 3.0);
    }
}
