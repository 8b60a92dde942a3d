//! Products of many rows with a few vectors. A matrix product keeps a register of scores for every
//! row, most of which stays empty where there are few of them; here registers run along the rows,
//! two rows at a time, and each number of a row is read once for all vectors.

use faer::Mat;

/// So many vectors at a time: their sums for two rows fill the registers.
const MOST_VECTORS: usize = 6;

/// The products of each row with the columns of `vectors` become the first entries of a column of
/// `scores`. Entries of `vectors` before the last ones, of which a row has as many, are the rows'
/// constants and count once.
pub(crate) fn few_scores(rows: &[&[f64]], vectors: &Mat<f64>, scores: &mut Mat<f64>) {
    for at in (0..vectors.ncols()).step_by(MOST_VECTORS) {
        match vectors.ncols() - at {
            1 => multiply::<1>(rows, vectors, at, scores),
            2 => multiply::<2>(rows, vectors, at, scores),
            3 => multiply::<3>(rows, vectors, at, scores),
            4 => multiply::<4>(rows, vectors, at, scores),
            5 => multiply::<5>(rows, vectors, at, scores),
            _ => multiply::<MOST_VECTORS>(rows, vectors, at, scores),
        }
    }
}

/// Adds each row, times its shares, to the columns of `sums`, which are as long as those of
/// `vectors` above. The shares are the first entries of the columns of `shares`.
pub(crate) fn add_few_shares(rows: &[&[f64]], shares: &Mat<f64>, sums: &mut Mat<f64>) {
    pulp::Arch::new().dispatch(ShareLoop { rows, shares, sums });
}

/// How many entries of a vector are rows' constants.
fn constants(rows: &[&[f64]], length: usize) -> usize {
    length - rows.first().map_or(length, |row| row.len())
}

fn multiply<const C: usize>(rows: &[&[f64]], vectors: &Mat<f64>, at: usize, scores: &mut Mat<f64>) {
    let skipped = constants(rows, vectors.nrows());
    let vectors = std::array::from_fn(|c| vectors.col_as_slice(at + c).split_at(skipped));
    pulp::Arch::new().dispatch(ScoreLoop::<C> {
        rows,
        vectors,
        at,
        scores,
    });
}

struct ScoreLoop<'a, const C: usize> {
    rows: &'a [&'a [f64]],
    /// Each as its constants and the rest.
    vectors: [(&'a [f64], &'a [f64]); C],
    at: usize,
    scores: &'a mut Mat<f64>,
}

impl<const C: usize> pulp::WithSimd for ScoreLoop<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self {
            rows,
            vectors,
            at,
            scores,
        } = self;
        let constants = vectors.map(|(constants, _)| constants.iter().sum::<f64>());
        for (pair, rows) in rows.chunks(2).enumerate() {
            // A row without a neighbour is its own.
            let pairs = [rows[0], rows[rows.len() - 1]];
            let [x, y] = pairs.map(|row| S::as_simd_f64s(row));
            let wide: [&[S::f64s]; C] =
                std::array::from_fn(|c| &S::as_simd_f64s(vectors[c].1).0[..x.0.len()]);
            let mut sums = [[simd.splat_f64s(0.0); C]; 2];
            for (i, (x, y)) in x.0.iter().zip(y.0).enumerate() {
                for c in 0..C {
                    let v = wide[c][i];
                    sums[0][c] = simd.mul_add_e_f64s(*x, v, sums[0][c]);
                    sums[1][c] = simd.mul_add_e_f64s(*y, v, sums[1][c]);
                }
            }
            for (k, (sums, rest)) in sums
                .into_iter()
                .zip([x.1, y.1])
                .enumerate()
                .take(rows.len())
            {
                let out = &mut scores.col_as_slice_mut(2 * pair + k)[at..at + C];
                for c in 0..C {
                    let ends = S::as_simd_f64s(vectors[c].1).1;
                    let end: f64 = rest.iter().zip(ends).map(|(x, v)| x * v).sum();
                    out[c] = simd.reduce_sum_f64s(sums[c]) + end + constants[c];
                }
            }
        }
    }
}

struct ShareLoop<'a> {
    rows: &'a [&'a [f64]],
    shares: &'a Mat<f64>,
    sums: &'a mut Mat<f64>,
}

impl pulp::WithSimd for ShareLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { rows, shares, sums } = self;
        let skipped = constants(rows, sums.nrows());
        for (pair, rows) in rows.chunks(2).enumerate() {
            let x = S::as_simd_f64s(rows[0]);
            let y = S::as_simd_f64s(rows[rows.len() - 1]);
            for c in 0..sums.ncols() {
                let mine = shares[(c, 2 * pair)];
                // A row without a neighbour has one that adds nothing.
                let theirs = if rows.len() == 2 {
                    shares[(c, 2 * pair + 1)]
                } else {
                    0.0
                };
                let (constants, sum) = sums.col_as_slice_mut(c).split_at_mut(skipped);
                constants.iter_mut().for_each(|sum| *sum += mine + theirs);
                let sum = S::as_mut_simd_f64s(sum);
                let (a, b) = (simd.splat_f64s(mine), simd.splat_f64s(theirs));
                for ((sum, x), y) in sum.0.iter_mut().zip(x.0).zip(y.0) {
                    *sum = simd.mul_add_e_f64s(*y, b, simd.mul_add_e_f64s(*x, a, *sum));
                }
                for ((sum, x), y) in sum.1.iter_mut().zip(x.1).zip(y.1) {
                    *sum += mine * x + theirs * y;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_numbers() {
        for (width, count, outputs) in [
            (1, 1, 1),
            (7, 3, 2),
            (64, 5, 5),
            (33, 8, 6),
            (100, 9, 7),
            (19, 4, 13),
        ] {
            let entry = |i: usize, j: usize| ((i * 31 + j * 17 + 5) as f64 * 0.37).sin();
            for constants in [0, 1] {
                let table = Mat::from_fn(width, count, entry);
                let rows: Vec<&[f64]> = (0..count).map(|k| table.col_as_slice(k)).collect();
                let vectors = Mat::from_fn(constants + width, outputs, |i, c| entry(i, 50 + c));
                let row = |i: usize, k: usize| {
                    if i < constants {
                        1.0
                    } else {
                        entry(i - constants, k)
                    }
                };
                let mut scores = Mat::from_fn(outputs + 2, count + 1, |_, _| 9.0);
                few_scores(&rows, &vectors, &mut scores);
                let mut sums = Mat::from_fn(constants + width, outputs, |_, _| 1.0);
                add_few_shares(&rows, &scores, &mut sums);
                for c in 0..outputs {
                    for k in 0..count {
                        let truth: f64 = (0..constants + width)
                            .map(|i| row(i, k) * entry(i, 50 + c))
                            .sum();
                        assert!(
                            (scores[(c, k)] - truth).abs() < 1e-12,
                            "{width} {count} {outputs}"
                        );
                    }
                    assert_eq!(
                        scores[(c, count)],
                        9.0,
                        "a column beyond the rows was written"
                    );
                    for i in 0..constants + width {
                        let truth =
                            1.0 + (0..count).map(|k| scores[(c, k)] * row(i, k)).sum::<f64>();
                        assert!((sums[(i, c)] - truth).abs() < 1e-11);
                    }
                }
                assert_eq!(
                    scores[(outputs, 0)],
                    9.0,
                    "a line beyond the vectors was written"
                );
            }
        }
    }
}
