//! Arithmetic that keeps what ordinary addition and multiplication throw away.
//!
//! A number is carried as an unevaluated sum `high + low` of two doubles, about 106 bits. An inner product made this way is
//! as good as if it had been computed in twice the precision and then rounded: its error is u|aᵀb| + (du)²·|a|ᵀ|b|, where the
//! ordinary one has du·|a|ᵀ|b| (Ogita, Rump and Oishi 2005). This is what makes a measured gradient worth believing: near
//! the minimum it is a difference of large numbers.

use faer::Mat;

use super::widest;

/// a + b as its rounded value and the exact rest (Knuth).
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// a·b as its rounded value and the exact rest.
#[inline(always)]
pub(crate) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// `high + low`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DoubleWord {
    pub(crate) high: f64,
    pub(crate) low: f64,
}

impl DoubleWord {
    pub(crate) fn new(value: f64) -> Self {
        Self { high: value, low: 0.0 }
    }

    #[inline(always)]
    pub(crate) fn plus(self, other: Self) -> Self {
        let (high, rest) = two_sum(self.high, other.high);
        let (high, low) = two_sum(high, rest + (self.low + other.low));
        Self { high, low }
    }

    /// The sum with a·b.
    #[inline(always)]
    pub(crate) fn plus_product(self, a: f64, b: f64) -> Self {
        let (product, rest) = two_product(a, b);
        self.plus(Self { high: product, low: rest })
    }

    #[inline(always)]
    pub(crate) fn times(self, factor: f64) -> Self {
        let (product, rest) = two_product(self.high, factor);
        let (high, low) = two_sum(product, rest + self.low * factor);
        Self { high, low }
    }

    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }
}

/// Partial sums side by side, so that the compiler can use wide registers.
const LANES: usize = 8;

/// Σ a_j (b_j + c_j) in two words; `c` may be empty.
pub(crate) fn long_dot(a: &[f64], b: &[f64], c: &[f64]) -> DoubleWord {
    widest(
        #[inline(always)]
        || {
            let mut high = [0.0f64; LANES];
            let mut low = [0.0f64; LANES];
            let (a_whole, a_rest) = a.as_chunks::<LANES>();
            let (b_whole, b_rest) = b[..a.len()].as_chunks::<LANES>();
            for (x, y) in a_whole.iter().zip(b_whole) {
                for lane in 0..LANES {
                    let (product, rest) = two_product(x[lane], y[lane]);
                    let (sum, lost) = two_sum(high[lane], product);
                    high[lane] = sum;
                    low[lane] += lost + rest;
                }
            }
            let mut total = DoubleWord::default();
            for (x, y) in a_rest.iter().zip(b_rest) {
                total = total.plus_product(*x, *y);
            }
            for lane in 0..LANES {
                total = total.plus(DoubleWord { high: high[lane], low: low[lane] });
            }
            // The second words are so small that their products need no compensation.
            let small: f64 = a.iter().zip(c).map(|(x, y)| x * y).sum();
            total.plus(DoubleWord::new(small))
        },
    )
}

/// `high + low += scale · a`, entry by entry. The second word stays below the last digit of the first, so that a sum of n
/// terms is off by at most 3n·u² of their sizes, and not by its square.
pub(crate) fn long_add_scaled(high: &mut [f64], low: &mut [f64], scale: DoubleWord, a: &[f64]) {
    widest(
        #[inline(always)]
        || {
            for ((h, l), x) in high.iter_mut().zip(low.iter_mut()).zip(a) {
                let (product, rest) = two_product(scale.high, *x);
                let (sum, lost) = two_sum(*h, product);
                let low = *l + (lost + (rest + scale.low * x));
                // The larger word comes first, so that three operations give the exact sum of both.
                *h = sum + low;
                *l = low - (*h - sum);
            }
        },
    );
}

/// A·v for a symmetric matrix with both triangles, each entry rounded once.
pub(crate) fn symmetric_product(a: &Mat<f64>, v: &Mat<f64>) -> Mat<f64> {
    let mut product = Mat::zeros(a.nrows(), v.ncols());
    for j in 0..a.ncols() {
        for output in 0..v.ncols() {
            product[(j, output)] = long_dot(a.col_as_slice(j), v.col_as_slice(output), &[]).value();
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_sums_keep_their_digits() {
        // 1e16 + 1 − 1e16 + …: ordinary addition loses every 1.
        let a: Vec<f64> = (0..40).map(|i| [1e16, 1.0, -1e16, 1.0][i % 4]).collect();
        let ones = vec![1.0; 40];
        assert_eq!(long_dot(&a, &ones, &[]).value(), 20.0);
        let mut high = vec![1e16; 3];
        let mut low = vec![0.0; 3];
        for _ in 0..10 {
            long_add_scaled(&mut high, &mut low, DoubleWord::new(0.5), &[1.0, -1.0, 0.25]);
        }
        let sums: Vec<f64> = high.iter().zip(&low).map(|(h, l)| (h - 1e16) + l).collect();
        assert_eq!(sums, [5.0, -5.0, 1.25]);
    }

    #[test]
    fn second_words_count() {
        let dot = long_dot(&[3.0, 2.0], &[1.0, 1.0], &[1e-20, -1e-20]);
        assert_eq!(dot.high, 5.0);
        assert!((dot.low - 1e-20).abs() < 1e-35);
    }
}
