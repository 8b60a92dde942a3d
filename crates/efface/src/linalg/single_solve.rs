//! Triangular solves for one vector, which take as long as reading the factor does: columns are
//! taken eight at a time, so that the vector is read and written once for all of them.

use faer::Mat;
use pulp::Simd;

/// Columns that are taken together.
const COLUMNS: usize = 8;

/// `x ← (LLᵀ)⁻¹x` for a lower triangle L.
pub(super) fn solve(lower: &Mat<f64>, x: &mut [f64]) {
    pulp::Arch::new().dispatch(VectorSolve { lower, x });
}

struct VectorSolve<'a> {
    lower: &'a Mat<f64>,
    x: &'a mut [f64],
}

impl pulp::WithSimd for VectorSolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, x } = self;
        let n = x.len();
        let whole = n - n % COLUMNS;
        for start in (0..whole).step_by(COLUMNS) {
            let columns = block(lower, start);
            let (own, below) = x[start..].split_at_mut(COLUMNS);
            for k in 0..COLUMNS {
                let known: f64 = (0..k).map(|m| columns[m][k] * own[m]).sum();
                own[k] = (own[k] - known) / columns[k][k];
            }
            let own = std::array::from_fn(|k| own[k]);
            subtract(simd, below, columns.map(|column| &column[COLUMNS..]), own);
        }
        for k in whole..n {
            let known: f64 = (whole..k).map(|m| lower[(k, m)] * x[m]).sum();
            x[k] = (x[k] - known) / lower[(k, k)];
        }
        for k in (whole..n).rev() {
            let known: f64 = (k + 1..n).map(|m| lower[(m, k)] * x[m]).sum();
            x[k] = (x[k] - known) / lower[(k, k)];
        }
        for start in (0..whole).step_by(COLUMNS).rev() {
            let columns = block(lower, start);
            let (own, below) = x[start..].split_at_mut(COLUMNS);
            let sums = products(simd, below, columns.map(|column| &column[COLUMNS..]));
            for k in (0..COLUMNS).rev() {
                let known: f64 = (k + 1..COLUMNS).map(|m| columns[k][m] * own[m]).sum();
                own[k] = (own[k] - sums[k] - known) / columns[k][k];
            }
        }
    }
}

/// Some columns from the diagonal of the first of them down.
#[inline(always)]
fn block(lower: &Mat<f64>, start: usize) -> [&[f64]; COLUMNS] {
    std::array::from_fn(|k| &lower.col_as_slice(start + k)[start..])
}

/// `x −= Σ shareₖ columnₖ`.
#[inline(always)]
fn subtract<S: Simd>(simd: S, x: &mut [f64], columns: [&[f64]; COLUMNS], shares: [f64; COLUMNS]) {
    let (x, last) = S::as_mut_simd_f64s(x);
    let columns = columns.map(|column| S::as_simd_f64s(column));
    let wide = columns.map(|(wide, _)| &wide[..x.len()]);
    let shares = shares.map(|share| -share);
    let splats = shares.map(|share| simd.splat_f64s(share));
    for (i, x) in x.iter_mut().enumerate() {
        let mut sum = *x;
        for k in 0..COLUMNS {
            sum = simd.mul_add_f64s(wide[k][i], splats[k], sum);
        }
        *x = sum;
    }
    for (i, x) in last.iter_mut().enumerate() {
        *x += (0..COLUMNS)
            .map(|k| columns[k].1[i] * shares[k])
            .sum::<f64>();
    }
}

/// The product of each column with x.
#[inline(always)]
fn products<S: Simd>(simd: S, x: &[f64], columns: [&[f64]; COLUMNS]) -> [f64; COLUMNS] {
    let (x, last) = S::as_simd_f64s(x);
    let columns = columns.map(|column| S::as_simd_f64s(column));
    let wide = columns.map(|(wide, _)| &wide[..x.len()]);
    let mut sums = [simd.splat_f64s(0.0); COLUMNS];
    for (i, x) in x.iter().enumerate() {
        for k in 0..COLUMNS {
            sums[k] = simd.mul_add_f64s(wide[k][i], *x, sums[k]);
        }
    }
    std::array::from_fn(|k| {
        let rest: f64 = last
            .iter()
            .zip(columns[k].1)
            .map(|(x, value)| x * value)
            .sum();
        simd.reduce_sum_f64s(sums[k]) + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_solved_gives_the_vector_back() {
        for n in [1, 7, 8, 9, 16, 29, 83] {
            let entry = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 / 11.0 - 1.0;
            let lower = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Less => f64::NAN,
                std::cmp::Ordering::Equal => n as f64,
                std::cmp::Ordering::Greater => entry(i, j),
            });
            let truth: Vec<f64> = (0..n).map(|i| entry(i, 3)).collect();
            let up: Vec<f64> = (0..n)
                .map(|j| (j..n).map(|i| lower[(i, j)] * truth[i]).sum())
                .collect();
            let mut x: Vec<f64> = (0..n)
                .map(|i| (0..=i).map(|j| lower[(i, j)] * up[j]).sum())
                .collect();
            solve(&lower, &mut x);
            assert!(
                x.iter()
                    .zip(&truth)
                    .all(|(x, truth)| (x - truth).abs() < 1e-12),
                "{n}"
            );
        }
    }
}
