//! A symmetric matrix in single precision, for solves by a kept inverse: a quarter of what two triangles in double precision
//! take, read once a product. Products are summed in double precision, so that rounding the entries is all that is lost.

use faer::{Accum, Mat, MatRef, Par};

use super::{multiply, widest};

/// Unit roundoff of f32.
const SINGLE_UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Sums that are made side by side.
const LANES: usize = 16;

/// Numbers that are widened at a time.
const CHUNK: usize = 64;

/// Columns that are changed at a time.
const PANEL: usize = 128;

/// The lower triangle, column after column.
#[derive(Debug, Clone)]
pub(crate) struct SingleSymmetric {
    width: usize,
    lower: Vec<f32>,
    /// At least the norm of what rounding took from the matrix.
    pub(crate) rounded: f64,
}

/// Adds `scale` times a column to `out`, and returns its inner product with `along`.
#[inline(always)]
fn add_and_dot(column: &[f32], scale: f64, out: &mut [f64], along: &[f64]) -> f64 {
    let (wide, rest) = column.as_chunks::<CHUNK>();
    let (out_wide, out_rest) = out.as_chunks_mut::<CHUNK>();
    let (along_wide, along_rest) = along.as_chunks::<CHUNK>();
    let mut sums = [0.0f64; LANES];
    // A loop that only widens the numbers is one that compilers know how to do many at a time.
    let mut widened = [0.0f64; CHUNK];
    for ((values, out), along) in wide.iter().zip(out_wide).zip(along_wide) {
        widened.iter_mut().zip(values).for_each(|(to, value)| *to = f64::from(*value));
        out.iter_mut().zip(&widened).for_each(|(out, value)| *out += scale * value);
        for (values, along) in widened.as_chunks::<LANES>().0.iter().zip(along.as_chunks::<LANES>().0) {
            sums.iter_mut().zip(values.iter().zip(along)).for_each(|(sum, (value, x))| *sum += value * x);
        }
    }
    let mut sum: f64 = sums.iter().sum();
    for ((value, out), along) in rest.iter().zip(out_rest).zip(along_rest) {
        *out += scale * f64::from(*value);
        sum += f64::from(*value) * along;
    }
    sum
}

/// A matrix on its way to single precision, column after column.
struct Rounding {
    width: usize,
    lower: Vec<f32>,
    /// The square of the norm of all entries so far.
    square: f64,
}

impl Rounding {
    fn new(width: usize) -> Self {
        Self { width, lower: Vec::with_capacity(width * (width + 1) / 2), square: 0.0 }
    }

    /// Takes the next column, from the diagonal down.
    fn push(&mut self, column: impl Iterator<Item = f64>) {
        let at = self.lower.len();
        let mut square = 0.0;
        self.lower.extend(column.map(|x| {
            square += x * x;
            x as f32
        }));
        let own = self.lower.get(at).map_or(0.0, |x| f64::from(*x));
        self.square += 2.0 * square - own * own;
    }

    fn finish(self) -> Option<SingleSymmetric> {
        let Self { width, lower, square } = self;
        // Numbers below the least normal one are off by no more than that one.
        let vanished = width as f64 * f64::from(f32::MIN_POSITIVE);
        let rounded = 1.001 * SINGLE_UNIT * square.sqrt() + vanished;
        let sound = rounded.is_finite() && lower.iter().all(|x| x.is_finite());
        sound.then_some(SingleSymmetric { width, lower, rounded })
    }
}

impl SingleSymmetric {
    /// Rounds the lower triangle of `a`. None where single precision has no such numbers.
    pub(crate) fn of(a: &Mat<f64>) -> Option<Self> {
        let mut rounding = Rounding::new(a.nrows());
        (0..a.nrows()).for_each(|j| rounding.push(a.col_as_slice(j)[j..].iter().copied()));
        rounding.finish()
    }

    /// This matrix less `left`·`right`, which is known to be symmetric; rounded anew, as [`of`](Self::of) does.
    pub(crate) fn less(&self, left: MatRef<'_, f64>, right: MatRef<'_, f64>, par: Par) -> Option<Self> {
        let width = self.width;
        let mut rounding = Rounding::new(width);
        let mut rest = self.lower.as_slice();
        for first in (0..width).step_by(PANEL) {
            let count = PANEL.min(width - first);
            let mut taken = Mat::zeros(width - first, count);
            let left = left.subrows(first, width - first);
            multiply(taken.as_mut(), Accum::Replace, left, right.subcols(first, count), 1.0, par);
            for j in 0..count {
                let (column, others) = rest.split_at(width - first - j);
                rest = others;
                let taken = &taken.col_as_slice(j)[j..];
                rounding.push(column.iter().zip(taken).map(|(own, taken)| f64::from(*own) - taken));
            }
        }
        rounding.finish()
    }

    /// A·v.
    pub(crate) fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.width];
        let mut rest = self.lower.as_slice();
        widest(
            #[inline(always)]
            || {
                for j in 0..self.width {
                    let (column, others) = rest.split_at(self.width - j);
                    rest = others;
                    product[j] += f64::from(column[0]) * v[j];
                    product[j] += add_and_dot(&column[1..], v[j], &mut product[j + 1..], &v[j + 1..]);
                }
            },
        );
        product
    }

    /// A·(I ⊗ x): a column for every block of the length of x.
    pub(crate) fn times_blocks(&self, x: &[f64]) -> Mat<f64> {
        let length = x.len();
        let blocks = self.width / length.max(1);
        let mut product = Mat::zeros(self.width, blocks);
        // What the upper triangle adds, one line per entry of the column.
        let mut across = vec![0.0; blocks];
        let mut rest = self.lower.as_slice();
        widest(
            #[inline(always)]
            || {
                for b in 0..blocks {
                    for (j, scale) in x.iter().enumerate() {
                        let at = b * length + j;
                        let (column, others) = rest.split_at(self.width - at);
                        rest = others;
                        across.fill(0.0);
                        let out = &mut product.col_as_slice_mut(b)[at..];
                        out[0] += scale * f64::from(column[0]);
                        let own = length - j;
                        across[b] = add_and_dot(&column[1..own], *scale, &mut out[1..own], &x[j + 1..]);
                        let parts = column[own..].chunks_exact(length);
                        let outs = out[own..].chunks_exact_mut(length);
                        for ((part, out), across) in parts.zip(outs).zip(&mut across[b + 1..]) {
                            *across = add_and_dot(part, *scale, out, x);
                        }
                        for (a, across) in across.iter().enumerate().skip(b) {
                            product[(at, a)] += across;
                        }
                    }
                }
            },
        );
        product
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lower.len() * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_matrix() {
        for (length, blocks) in [(1, 1), (3, 4), (17, 3), (40, 2)] {
            let width = length * blocks;
            let a =
                Mat::from_fn(width, width, |i, j| 1.0 / (1.0 + (i + j) as f64) + (i == j) as u8 as f64 * 0.1);
            let single = SingleSymmetric::of(&a).unwrap();
            let v: Vec<f64> = (0..width).map(|i| (i as f64 * 0.7).sin()).collect();
            let x: Vec<f64> = (0..length).map(|i| (i as f64 * 1.3).cos()).collect();
            let size: f64 = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let product = single.times(&v);
            for i in 0..width {
                let truth: f64 = (0..width).map(|j| a[(i, j)] * v[j]).sum();
                assert!((product[i] - truth).abs() <= single.rounded * size);
            }
            let size: f64 = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            let product = single.times_blocks(&x);
            for b in 0..blocks {
                for i in 0..width {
                    let truth: f64 = (0..length).map(|j| a[(i, b * length + j)] * x[j]).sum();
                    assert!((product[(i, b)] - truth).abs() <= single.rounded * size + 1e-15);
                }
            }
        }
    }

    #[test]
    fn what_a_product_takes_is_gone() {
        for width in [1, 7, 130, 300] {
            let a = Mat::from_fn(width, width, |i, j| 1.0 / (1.0 + (i + j) as f64) + (i == j) as u8 as f64);
            let left = Mat::from_fn(width, 3, |i, j| ((i * 3 + j) as f64 * 0.3).sin());
            let changed = SingleSymmetric::of(&a).unwrap();
            let changed = changed.less(left.as_ref(), left.transpose(), Par::Seq).unwrap();
            let truth = SingleSymmetric::of(&(&a - &left * left.transpose())).unwrap();
            let apart = changed.lower.iter().zip(&truth.lower).map(|(a, b)| f64::from(a - b).powi(2));
            assert!(apart.sum::<f64>().sqrt() <= truth.rounded + changed.rounded + 1e-7);
            assert!((changed.rounded / truth.rounded - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn numbers_that_single_precision_lacks_are_refused() {
        assert!(SingleSymmetric::of(&Mat::from_fn(2, 2, |_, _| 1e60)).is_none());
        assert!(SingleSymmetric::of(&Mat::from_fn(2, 2, |_, _| f64::NAN)).is_none());
    }
}
