//! A symmetric matrix in single precision, for solves by a kept inverse: a quarter of what two triangles in double precision
//! take, read once a product. Products are summed in double precision, so that rounding the entries is all that is lost.

use faer::Mat;

use super::widest;

/// Unit roundoff of f32.
const SINGLE_UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Sums that are made side by side.
const LANES: usize = 16;

/// Numbers that are widened at a time.
const CHUNK: usize = 64;

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

impl SingleSymmetric {
    /// Rounds the lower triangle of `a`. None where single precision has no such numbers.
    pub(crate) fn of(a: &Mat<f64>) -> Option<Self> {
        let width = a.nrows();
        let mut lower = Vec::with_capacity(width * (width + 1) / 2);
        let mut square = 0.0;
        for j in 0..width {
            let column = &a.col_as_slice(j)[j..];
            square += column.iter().map(|x| x * x).sum::<f64>() * 2.0 - column[0] * column[0];
            lower.extend(column.iter().map(|x| *x as f32));
        }
        // Numbers below the least normal one are off by no more than that one.
        let vanished = width as f64 * f64::from(f32::MIN_POSITIVE);
        let rounded = 1.001 * SINGLE_UNIT * square.sqrt() + vanished;
        let sound = rounded.is_finite() && lower.iter().all(|x| x.is_finite());
        sound.then_some(Self { width, lower, rounded })
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
    fn numbers_that_single_precision_lacks_are_refused() {
        assert!(SingleSymmetric::of(&Mat::from_fn(2, 2, |_, _| 1e60)).is_none());
        assert!(SingleSymmetric::of(&Mat::from_fn(2, 2, |_, _| f64::NAN)).is_none());
    }
}
