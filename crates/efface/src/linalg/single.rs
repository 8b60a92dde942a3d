//! A symmetric matrix in single precision, for solves by a kept inverse: a quarter of what two
//! triangles in double precision take, read once a product. Products are summed in double
//! precision, so that rounding the entries is all that is lost.

use faer::{Accum, Mat, MatRef, Par};

use super::{multiply, widest};

/// Unit roundoff of f32.
const SINGLE_UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Sums that are made side by side.
const LANES: usize = 16;

/// Columns that are read together.
const TOGETHER: usize = 4;

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

/// Adds every column times its scale to `out`, and returns their inner products with `along`.
/// Several columns at a time: main memory answers more than one question at once.
#[inline(always)]
fn add_and_dot<const N: usize>(
    columns: [&[f32]; N],
    scales: [f64; N],
    out: &mut [f64],
    along: &[f64],
) -> [f64; N] {
    let chunks = columns.map(|column| column.as_chunks::<LANES>());
    let (out_wide, out_rest) = out.as_chunks_mut::<LANES>();
    let (along_wide, along_rest) = along.as_chunks::<LANES>();
    let mut sums = [[0.0f64; LANES]; N];
    for (at, (out, along)) in out_wide.iter_mut().zip(along_wide).enumerate() {
        let mut added = *out;
        for n in 0..N {
            let values = chunks[n].0[at].map(f64::from);
            for lane in 0..LANES {
                added[lane] += scales[n] * values[lane];
                sums[n][lane] += values[lane] * along[lane];
            }
        }
        *out = added;
    }
    let mut totals = sums.map(|sums| sums.iter().sum::<f64>());
    for (at, (out, along)) in out_rest.iter_mut().zip(along_rest).enumerate() {
        for n in 0..N {
            let value = f64::from(chunks[n].1[at]);
            *out += scales[n] * value;
            totals[n] += value * along;
        }
    }
    totals
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
        Self {
            width,
            lower: Vec::with_capacity(width * (width + 1) / 2),
            square: 0.0,
        }
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
        let Self {
            width,
            lower,
            square,
        } = self;
        // Numbers below the least normal one are off by no more than that one.
        let vanished = width as f64 * f64::from(f32::MIN_POSITIVE);
        let rounded = 1.001 * SINGLE_UNIT * square.sqrt() + vanished;
        let sound = rounded.is_finite() && lower.iter().all(|x| x.is_finite());
        sound.then_some(SingleSymmetric {
            width,
            lower,
            rounded,
        })
    }
}

impl SingleSymmetric {
    /// Rounds the lower triangle of `a`. None where single precision has no such numbers.
    pub(crate) fn of(a: &Mat<f64>) -> Option<Self> {
        let mut rounding = Rounding::new(a.nrows());
        (0..a.nrows()).for_each(|j| rounding.push(a.col_as_slice(j)[j..].iter().copied()));
        rounding.finish()
    }

    /// This matrix less `left`·`right`, which is known to be symmetric; rounded anew, as
    /// [`of`](Self::of) does.
    pub(crate) fn less(
        &self,
        left: MatRef<'_, f64>,
        right: MatRef<'_, f64>,
        par: Par,
    ) -> Option<Self> {
        let width = self.width;
        let mut rounding = Rounding::new(width);
        let mut rest = self.lower.as_slice();
        for first in (0..width).step_by(PANEL) {
            let count = PANEL.min(width - first);
            let mut taken = Mat::zeros(width - first, count);
            let left = left.subrows(first, width - first);
            multiply(
                taken.as_mut(),
                Accum::Replace,
                left,
                right.subcols(first, count),
                1.0,
                par,
            );
            for j in 0..count {
                let (column, others) = rest.split_at(width - first - j);
                rest = others;
                let taken = &taken.col_as_slice(j)[j..];
                rounding.push(
                    column
                        .iter()
                        .zip(taken)
                        .map(|(own, taken)| f64::from(*own) - taken),
                );
            }
        }
        rounding.finish()
    }

    /// Column `j`, from the diagonal down.
    fn column(&self, j: usize) -> &[f32] {
        let begin = j * self.width - j * j.saturating_sub(1) / 2;
        &self.lower[begin..begin + self.width - j]
    }

    /// `N` columns from `j` on: what stands in their first `N` lines, column by column, and the
    /// rest of each.
    #[inline(always)]
    fn columns<const N: usize>(&self, j: usize) -> [(&[f32], &[f32]); N] {
        std::array::from_fn(|n| self.column(j + n).split_at(N - n))
    }

    /// A·v.
    pub(crate) fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.width];
        widest(
            #[inline(always)]
            || {
                let together = self.width - self.width % TOGETHER;
                for j in (0..together).step_by(TOGETHER) {
                    self.add_columns::<TOGETHER>(j, v, &mut product);
                }
                (together..self.width).for_each(|j| self.add_columns::<1>(j, v, &mut product));
            },
        );
        product
    }

    /// What `N` columns, and the lines that are their mirror images, add to a product.
    #[inline(always)]
    fn add_columns<const N: usize>(&self, j: usize, v: &[f64], product: &mut [f64]) {
        let columns = self.columns::<N>(j);
        for (n, (corner, _)) in columns.iter().enumerate() {
            product[j + n] += f64::from(corner[0]) * v[j + n];
            for (i, value) in corner.iter().enumerate().skip(1) {
                product[j + n + i] += f64::from(*value) * v[j + n];
                product[j + n] += f64::from(*value) * v[j + n + i];
            }
        }
        let scales = std::array::from_fn(|n| v[j + n]);
        let (done, out) = product.split_at_mut(j + N);
        let across = add_and_dot(columns.map(|(_, rest)| rest), scales, out, &v[j + N..]);
        done[j..]
            .iter_mut()
            .zip(across)
            .for_each(|(out, across)| *out += across);
    }

    /// A·(I ⊗ x): a column for every block of the length of x.
    pub(crate) fn times_blocks(&self, x: &[f64]) -> Mat<f64> {
        let length = x.len();
        let blocks = self.width / length.max(1);
        let mut product = Mat::zeros(self.width, blocks);
        widest(
            #[inline(always)]
            || {
                let together = length - length % TOGETHER;
                for b in 0..blocks {
                    for j in (0..together).step_by(TOGETHER) {
                        self.add_block_columns::<TOGETHER>((b, j), x, &mut product);
                    }
                    (together..length)
                        .for_each(|j| self.add_block_columns::<1>((b, j), x, &mut product));
                }
            },
        );
        product
    }

    /// The same for `N` columns of a block.
    #[inline(always)]
    fn add_block_columns<const N: usize>(
        &self,
        (b, j): (usize, usize),
        x: &[f64],
        product: &mut Mat<f64>,
    ) {
        let length = x.len();
        let at = b * length + j;
        let columns = self.columns::<N>(at);
        let scales = std::array::from_fn(|n| x[j + n]);
        let own = product.col_as_slice_mut(b);
        for (n, (corner, _)) in columns.iter().enumerate() {
            own[at + n] += f64::from(corner[0]) * x[j + n];
            for (i, value) in corner.iter().enumerate().skip(1) {
                own[at + n + i] += f64::from(*value) * x[j + n];
                own[at + n] += f64::from(*value) * x[j + n + i];
            }
        }
        // The rest of the block, and then block by block: of each, what these columns add to the
        // lines below, and what their mirror images add to their own lines in that block's product.
        let mut rest = columns.map(|(_, rest)| rest);
        let mut below = at + N;
        for a in b..self.width / length {
            let along = if a == b { &x[j + N..] } else { x };
            let parts = rest.map(|rest| rest.split_at(along.len()));
            rest = parts.map(|(_, after)| after);
            let out = &mut product.col_as_slice_mut(b)[below..below + along.len()];
            let across = add_and_dot(parts.map(|(part, _)| part), scales, out, along);
            let mirrored = &mut product.col_as_slice_mut(a)[at..at + N];
            mirrored
                .iter_mut()
                .zip(across)
                .for_each(|(out, across)| *out += across);
            below += along.len();
        }
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
            let a = Mat::from_fn(width, width, |i, j| {
                1.0 / (1.0 + (i + j) as f64) + (i == j) as u8 as f64 * 0.1
            });
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
            let a = Mat::from_fn(width, width, |i, j| {
                1.0 / (1.0 + (i + j) as f64) + (i == j) as u8 as f64
            });
            let left = Mat::from_fn(width, 3, |i, j| ((i * 3 + j) as f64 * 0.3).sin());
            let changed = SingleSymmetric::of(&a).unwrap();
            let changed = changed
                .less(left.as_ref(), left.transpose(), Par::Seq)
                .unwrap();
            let truth = SingleSymmetric::of(&(&a - &left * left.transpose())).unwrap();
            let apart = changed
                .lower
                .iter()
                .zip(&truth.lower)
                .map(|(a, b)| f64::from(a - b).powi(2));
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
