//! Sums in two words, about 106 bits, that know what they lost.
//!
//! A sum that rows leave again must not remember them as rounding. Every product is split into its
//! two exact halves, every addition keeps its error in the second word, and what even that word
//! could not hold is returned to the caller as a measured loss. Counts and single-precision data
//! lose nothing, so that their sums after a forget are bit for bit those of the retained rows in
//! whatever order they came. Dekker 1971; Ogita, Rump and Oishi 2005.

use crate::error::{Error, Result};
use crate::linalg::{two_product, two_sum, widest};
use crate::rows::{RowId, RowRef, RowView, every};

/// The largest feature or weight whose products can be summed without overflow.
pub(crate) const LARGEST: f64 = 1e60;

/// Below this size the error of a product may itself fall out of the range of f64.
const TINY: f64 = 1e-280;

/// What a factor in two words can lose of a sum.
const SCALE_ROUNDING: f64 = 1.0 / (1u128 << 99) as f64;

/// A value kept as `high + low`, where `high` is the value rounded to f64.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct LongSum {
    high: f64,
    low: f64,
}

impl LongSum {
    /// Adds a number; returns how much of it was lost.
    #[inline(always)]
    pub(crate) fn add(&mut self, x: f64) -> f64 {
        let (high, rest) = two_sum(self.high, x);
        let (low, lost) = two_sum(self.low, rest);
        (self.high, self.low) = two_sum(high, low);
        lost.abs()
    }

    /// Adds a·b; returns how much of it was lost.
    #[inline(always)]
    pub(crate) fn add_product(&mut self, a: f64, b: f64) -> f64 {
        if a.abs() == 1.0 {
            return self.add(a * b);
        }
        let (product, rest) = two_product(a, b);
        self.add(product) + self.add(rest) + underflow(product, a != 0.0 && b != 0.0)
    }

    /// Adds w·x²; returns how much of it was lost.
    #[inline(always)]
    pub(crate) fn add_square(&mut self, w: f64, x: f64) -> f64 {
        let (square, rest) = two_product(x, x);
        let missing = underflow(square, x != 0.0) * w.abs();
        self.add_product(w, square)
            + if rest == 0.0 {
                0.0
            } else {
                self.add_product(w, rest)
            }
            + missing
    }

    /// Adds another sum; returns how much of it was lost.
    pub(crate) fn add_sum(&mut self, other: Self) -> f64 {
        self.add(other.high) + self.add(other.low)
    }

    /// The two words, the rounded value first.
    pub(crate) fn words(self) -> [f64; 2] {
        [self.high, self.low]
    }

    /// The sum of these two words.
    pub(crate) fn of_words([high, low]: [f64; 2]) -> Self {
        Self { high, low }
    }

    /// The value rounded to f64.
    pub(crate) fn value(self) -> f64 {
        self.high
    }

    /// The product, to about 2⁻¹⁰² of itself.
    pub(crate) fn times(self, other: Self) -> Self {
        let (product, rest) = two_product(self.high, other.high);
        let (high, low) = two_sum(
            product,
            rest + (self.high * other.low + self.low * other.high),
        );
        Self { high, low }
    }

    /// Multiplies by a/b; returns how much may be lost.
    pub(crate) fn scale(&mut self, a: f64, b: f64) -> f64 {
        let ratio = a / b;
        let rest = (-ratio).mul_add(b, a) / b;
        *self = self.times(Self {
            high: ratio,
            low: rest,
        });
        self.high.abs() * SCALE_ROUNDING
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
        let rest = self.minus(other.times(Self {
            high: first,
            low: 0.0,
        }));
        first + rest.high / other.high
    }

    /// Whether both words are numbers, as they are unless a stored model was damaged.
    pub(crate) fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }
}

#[inline(always)]
pub(super) fn underflow(product: f64, happened: bool) -> f64 {
    if happened && product.abs() < TINY {
        f64::MIN_POSITIVE
    } else {
        0.0
    }
}

/// Columns that are added side by side.
pub(super) const LANES: usize = 8;

/// Adds `weight` times a row, or times its squares, to a sum for each column; returns how much was
/// lost in all.
///
/// Every sum goes through the same additions as one by one, so that the result is the same to the
/// bit; but several go abreast, in instructions that do so where the processor has them.
pub(crate) fn add_row(sums: &mut [LongSum], weight: f64, row: &[f64], squares: bool) -> f64 {
    widest(
        #[inline(always)]
        || match (squares, weight.abs() == 1.0) {
            (false, true) => add_abreast::<false, true>(sums, weight, row),
            (false, false) => add_abreast::<false, false>(sums, weight, row),
            (true, true) => add_abreast::<true, true>(sums, weight, row),
            (true, false) => add_abreast::<true, false>(sums, weight, row),
        },
    )
}

#[expect(
    clippy::needless_range_loop,
    reason = "lanes are counted, so that the compiler sees that they do not end early"
)]
#[inline(always)]
fn add_abreast<const SQUARES: bool, const UNIT: bool>(
    sums: &mut [LongSum],
    w: f64,
    row: &[f64],
) -> f64 {
    let mut lanes = SumLanes {
        high: [0.0; LANES],
        low: [0.0; LANES],
        lost: [0.0; LANES],
    };
    let (blocks, left) = sums.as_chunks_mut::<LANES>();
    let (values, last) = row.as_chunks::<LANES>();
    for (sums, values) in blocks.iter_mut().zip(values) {
        for i in 0..LANES {
            (lanes.high[i], lanes.low[i]) = (sums[i].high, sums[i].low);
        }
        lanes.put::<SQUARES, UNIT>(w, values);
        for i in 0..LANES {
            sums[i] = LongSum {
                high: lanes.high[i],
                low: lanes.low[i],
            };
        }
    }
    let mut lost: f64 = lanes.lost.iter().sum();
    for (sum, x) in left.iter_mut().zip(last) {
        lost += if SQUARES {
            sum.add_square(w, *x)
        } else {
            sum.add_product(w, *x)
        };
    }
    lost
}

/// Sums side by side. Each loop below is one instruction or a few.
struct SumLanes {
    high: [f64; LANES],
    low: [f64; LANES],
    lost: [f64; LANES],
}

#[expect(
    clippy::needless_range_loop,
    reason = "lanes are counted, so that the compiler sees that they do not end early"
)]
impl SumLanes {
    /// w·x or w·x², w being 1 or −1 where `UNIT`.
    #[inline(always)]
    fn put<const SQUARES: bool, const UNIT: bool>(&mut self, w: f64, x: &[f64; LANES]) {
        let mut term = *x;
        let mut rest = [0.0; LANES];
        if SQUARES {
            for i in 0..LANES {
                (term[i], rest[i]) = two_product(x[i], x[i]);
                self.lost[i] += w.abs() * underflow(term[i], x[i] != 0.0);
            }
        }
        self.add_product::<UNIT>(w, &term);
        if SQUARES {
            self.add_product::<UNIT>(w, &rest);
        }
    }

    #[inline(always)]
    fn add_product<const UNIT: bool>(&mut self, w: f64, x: &[f64; LANES]) {
        let mut product = [0.0; LANES];
        let mut rest = [0.0; LANES];
        for i in 0..LANES {
            if UNIT {
                product[i] = w * x[i];
            } else {
                (product[i], rest[i]) = two_product(w, x[i]);
                self.lost[i] += underflow(product[i], x[i] != 0.0);
            }
        }
        self.add(&product);
        if !UNIT {
            self.add(&rest);
        }
    }

    #[inline(always)]
    fn add(&mut self, x: &[f64; LANES]) {
        for i in 0..LANES {
            let (high, rest) = two_sum(self.high[i], x[i]);
            let (low, lost) = two_sum(self.low[i], rest);
            (self.high[i], self.low[i]) = two_sum(high, low);
            self.lost[i] += lost.abs();
        }
    }
}

/// Whether the values of a row all pass.
pub(crate) fn all(row: &RowRef<'_>, pass: impl Fn(f64) -> bool) -> bool {
    match *row {
        RowRef::Dense64(v) | RowRef::Sparse64(_, v) => every(v, pass),
        RowRef::Dense32(v) | RowRef::Sparse32(_, v) => every(v, pass),
        RowRef::WordIds(_) => true,
    }
}

/// Refuses a row whose values or weight are too large to be squared and summed.
pub(crate) fn check_size(view: &RowView<'_>) -> Result<()> {
    if view.weight <= LARGEST && all(&view.features, |x| x.abs() <= LARGEST) {
        return Ok(());
    }
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
    Error::Parameter {
        name,
        value: format!("too large (row {row}{place})"),
        range: "at most 1e60 in size",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_is_gone_to_the_bit() {
        let values: Vec<f64> = (0..500)
            .map(|i| f64::from((f64::from(i) * 0.731).sin() as f32))
            .collect();
        let sum = |values: &[f64]| {
            let mut s = LongSum::default();
            let mut lost = 0.0;
            values.iter().for_each(|&x| lost += s.add_square(1.0, x));
            (s, lost)
        };
        let (mut all, lost) = sum(&values);
        values[..300]
            .iter()
            .for_each(|&x| assert_eq!(all.add_square(-1.0, x), 0.0));
        assert_eq!(lost, 0.0);
        assert_eq!(all, sum(&values[300..]).0);
    }

    #[test]
    fn columns_abreast_are_columns_one_by_one() {
        let row = |i: usize| {
            (0..19).map(move |j| {
                ((i * 31 + j * 17) as f64).sin() * 10f64.powi((i * 7 + j) as i32 % 40 - 20)
            })
        };
        for weight in [1.0, -1.0, 0.37] {
            for squares in [false, true] {
                let mut abreast = [LongSum::default(); 19];
                let mut single = abreast;
                let mut lost = 0.0;
                let mut expected = 0.0;
                for i in 0..200 {
                    lost += add_row(&mut abreast, weight, &row(i).collect::<Vec<_>>(), squares);
                    for (sum, x) in single.iter_mut().zip(row(i)) {
                        expected += if squares {
                            sum.add_square(weight, x)
                        } else {
                            sum.add_product(weight, x)
                        };
                    }
                }
                assert_eq!(abreast, single);
                assert!(
                    (lost - expected).abs() <= 1e-12 * expected,
                    "{lost} {expected}"
                );
                assert!(expected > 0.0);
            }
        }
    }

    #[test]
    fn a_loss_is_noticed() {
        let mut sum = LongSum::default();
        sum.add(1e40);
        sum.add(1.0);
        assert!(sum.add(1e-40) > 0.0);
        sum.add(-1e40);
        assert_eq!(sum.value(), 1.0);
        assert_eq!(
            LongSum {
                high: 1.0,
                low: 0.0
            }
            .over(LongSum {
                high: 3.0,
                low: 0.0
            }),
            1.0 / 3.0
        );
    }
}
