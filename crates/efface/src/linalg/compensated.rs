//! Arithmetic that keeps what ordinary addition and multiplication throw away.
//!
//! A number is carried as an unevaluated sum `high + low` of two doubles, about 106 bits. An inner
//! product made this way is as good as if it had been computed in twice the precision and then
//! rounded: its error is u|aᵀb| + (du)²·|a|ᵀ|b|, where the ordinary one has du·|a|ᵀ|b| (Ogita, Rump
//! and Oishi 2005). This is what makes a measured gradient worth believing: near the minimum it is
//! a difference of large numbers.

use faer::{Mat, Par};

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
        Self {
            high: value,
            low: 0.0,
        }
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
        self.plus(Self {
            high: product,
            low: rest,
        })
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

/// Partial sums side by side, as many whatever the processor, so that every machine adds in the
/// same order.
const LANES: usize = 16;

/// Σ a_j (b_j + c_j) in two words; `c` may be empty.
pub(crate) fn long_dot(a: &[f64], b: &[f64], c: &[f64]) -> DoubleWord {
    let b = &b[..a.len()];
    let whole = a.len() / LANES * LANES;
    let (high, low) = pulp::Arch::new().dispatch(LaneProducts {
        a: &a[..whole],
        b: &b[..whole],
    });
    let mut total = DoubleWord::default();
    for (x, y) in a[whole..].iter().zip(&b[whole..]) {
        total = total.plus_product(*x, *y);
    }
    for (high, low) in high.into_iter().zip(low) {
        total = total.plus(DoubleWord { high, low });
    }
    // The second words are so small that their products need no compensation.
    if c.is_empty() {
        total
    } else {
        total.plus(DoubleWord::new(super::dot(a, c)))
    }
}

/// The sums of products in every lane, in two words. Written in the processor's own registers: left
/// to itself, the compiler takes one number at a time, which takes four times as long.
struct LaneProducts<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl pulp::WithSimd for LaneProducts<'_> {
    type Output = ([f64; LANES], [f64; LANES]);

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) -> Self::Output {
        match LANES / S::F64_LANES {
            2 => self.summed::<S, 2>(simd),
            4 => self.summed::<S, 4>(simd),
            8 => self.summed::<S, 8>(simd),
            _ => self.summed::<S, LANES>(simd),
        }
    }
}

impl LaneProducts<'_> {
    /// As many registers as hold all lanes.
    #[inline(always)]
    fn summed<S: pulp::Simd, const REGISTERS: usize>(
        self,
        simd: S,
    ) -> ([f64; LANES], [f64; LANES]) {
        let a = S::as_simd_f64s(self.a).0.as_chunks::<REGISTERS>().0;
        let b = S::as_simd_f64s(self.b).0.as_chunks::<REGISTERS>().0;
        let mut high = [simd.splat_f64s(0.0); REGISTERS];
        let mut low = [simd.splat_f64s(0.0); REGISTERS];
        for (x, y) in a.iter().zip(b) {
            for r in 0..REGISTERS {
                let product = simd.mul_f64s(x[r], y[r]);
                let rest = simd.mul_add_f64s(x[r], y[r], simd.neg_f64s(product));
                let sum = simd.add_f64s(high[r], product);
                let part = simd.sub_f64s(sum, high[r]);
                let lost = simd.add_f64s(
                    simd.sub_f64s(high[r], simd.sub_f64s(sum, part)),
                    simd.sub_f64s(product, part),
                );
                high[r] = sum;
                low[r] = simd.add_f64s(low[r], simd.add_f64s(lost, rest));
            }
        }
        let mut sums = ([0.0; LANES], [0.0; LANES]);
        S::as_mut_simd_f64s(&mut sums.0)
            .0
            .iter_mut()
            .zip(high)
            .for_each(|(to, from)| *to = from);
        S::as_mut_simd_f64s(&mut sums.1)
            .0
            .iter_mut()
            .zip(low)
            .for_each(|(to, from)| *to = from);
        sums
    }
}

/// `high + low += scale · a`, entry by entry. The second word stays below the last digit of the
/// first, so that a sum of n terms is off by at most 3n·u² of their sizes, and not by its square.
pub(crate) fn long_add_scaled(high: &mut [f64], low: &mut [f64], scale: DoubleWord, a: &[f64]) {
    widest(
        #[inline(always)]
        || {
            for ((h, l), x) in high.iter_mut().zip(low.iter_mut()).zip(a) {
                long_add(h, l, scale, *x);
            }
        },
    );
}

/// The same of one entry.
#[inline(always)]
pub(crate) fn long_add(high: &mut f64, low: &mut f64, scale: DoubleWord, x: f64) {
    let (product, rest) = two_product(scale.high, x);
    let (sum, lost) = two_sum(*high, product);
    let small = *low + (lost + (rest + scale.low * x));
    // The larger word comes first, so that three operations give the exact sum of both.
    *high = sum + small;
    *low = small - (*high - sum);
}

/// So many columns of a matrix a thread is worth, at least, for products in two words.
pub(crate) const SHARED_COLUMNS: usize = 128;

/// A·v for a symmetric matrix with both triangles, each entry rounded once.
pub(crate) fn symmetric_product(a: &Mat<f64>, v: &Mat<f64>, par: Par) -> Mat<f64> {
    let entry =
        |j: usize, output: usize| long_dot(a.col_as_slice(j), v.col_as_slice(output), &[]).value();
    let outputs = 0..v.ncols();
    let lines = super::by_stretches(a.ncols(), SHARED_COLUMNS, par, |columns| {
        columns
            .flat_map(|j| outputs.clone().map(move |output| entry(j, output)))
            .collect::<Vec<f64>>()
    })
    .concat();
    Mat::from_fn(a.nrows(), v.ncols(), |j, output| {
        lines[j * v.ncols() + output]
    })
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
            long_add_scaled(
                &mut high,
                &mut low,
                DoubleWord::new(0.5),
                &[1.0, -1.0, 0.25],
            );
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
