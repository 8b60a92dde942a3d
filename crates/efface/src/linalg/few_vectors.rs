//! Products of many rows with a few vectors. A matrix product keeps a register of scores for every row, most of which stays empty where
//! there are few of them; here registers run along the rows, two rows at a time, and each number of a row is read once for all
//! vectors.

use faer::Mat;

/// So many vectors at most: their sums for two rows fill the registers.
pub(crate) const MOST_VECTORS: usize = 6;

/// Numbers that rows and vectors can be made of.
pub(crate) trait FewVectors: Copy {
    /// The products of each row with the columns of `vectors` become the first entries of a column of `scores`. Entries of `vectors`
    /// before the last ones, of which a row has as many, are the rows' constants and count once.
    fn scores(rows: &[&[Self]], vectors: &Mat<Self>, scores: &mut Mat<Self>);

    /// Adds each row, times its shares, to the columns of `sums`, which are as long as those of `vectors` above. The shares are the
    /// first entries of the columns of `shares`.
    fn add_shares(rows: &[&[Self]], shares: &Mat<Self>, sums: &mut Mat<Self>);
}

/// Calls a function for as many vectors as there are, which the compiler then knows.
macro_rules! for_count {
    ($count:expr, $call:ident $arguments:tt) => {
        match $count {
            0 => {}
            1 => for_count!(@ $call, 1, $arguments),
            2 => for_count!(@ $call, 2, $arguments),
            3 => for_count!(@ $call, 3, $arguments),
            4 => for_count!(@ $call, 4, $arguments),
            5 => for_count!(@ $call, 5, $arguments),
            _ => for_count!(@ $call, MOST_VECTORS, $arguments),
        }
    };
    (@ $call:ident, $count:expr, ($($argument:expr),*)) => { $call::<$count>($($argument),*) };
}

macro_rules! few_vectors {
    ($module:ident, $float:ty, $registers:ident, $as_simd:ident, $as_mut_simd:ident, $splat:ident, $mul_add:ident, $sum:ident) => {
        mod $module {
            use super::*;

            impl FewVectors for $float {
                fn scores(rows: &[&[Self]], vectors: &Mat<Self>, scores: &mut Mat<Self>) {
                    for at in (0..vectors.ncols()).step_by(MOST_VECTORS) {
                        for_count!(vectors.ncols() - at, multiply(rows, vectors, at, scores));
                    }
                }

                fn add_shares(rows: &[&[Self]], shares: &Mat<Self>, sums: &mut Mat<Self>) {
                    pulp::Arch::new().dispatch(ShareLoop { rows, shares, sums });
                }
            }

            /// How many entries of a vector are rows' constants.
            fn constants(rows: &[&[$float]], length: usize) -> usize {
                length - rows.first().map_or(length, |row| row.len())
            }

            fn multiply<const C: usize>(
                rows: &[&[$float]],
                vectors: &Mat<$float>,
                at: usize,
                scores: &mut Mat<$float>,
            ) {
                let skipped = constants(rows, vectors.nrows());
                let vectors = std::array::from_fn(|c| vectors.col_as_slice(at + c).split_at(skipped));
                pulp::Arch::new().dispatch(ScoreLoop::<C> { rows, vectors, at, scores });
            }

            struct ScoreLoop<'a, const C: usize> {
                rows: &'a [&'a [$float]],
                /// Each as its constants and the rest.
                vectors: [(&'a [$float], &'a [$float]); C],
                at: usize,
                scores: &'a mut Mat<$float>,
            }

            impl<const C: usize> pulp::WithSimd for ScoreLoop<'_, C> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, simd: S) {
                    let Self { rows, vectors, at, scores } = self;
                    let constants = vectors.map(|(constants, _)| constants.iter().sum::<$float>());
                    for (pair, rows) in rows.chunks(2).enumerate() {
                        // A row without a neighbour is its own.
                        let pairs = [rows[0], rows[rows.len() - 1]];
                        let [x, y] = pairs.map(|row| S::$as_simd(row));
                        let wide: [&[S::$registers]; C] =
                            std::array::from_fn(|c| &S::$as_simd(vectors[c].1).0[..x.0.len()]);
                        let mut sums = [[simd.$splat(0.0); C]; 2];
                        for (i, (x, y)) in x.0.iter().zip(y.0).enumerate() {
                            for c in 0..C {
                                let v = wide[c][i];
                                sums[0][c] = simd.$mul_add(*x, v, sums[0][c]);
                                sums[1][c] = simd.$mul_add(*y, v, sums[1][c]);
                            }
                        }
                        for (k, (sums, rest)) in sums.into_iter().zip([x.1, y.1]).enumerate().take(rows.len())
                        {
                            let out = &mut scores.col_as_slice_mut(2 * pair + k)[at..at + C];
                            for c in 0..C {
                                let ends = S::$as_simd(vectors[c].1).1;
                                let end: $float = rest.iter().zip(ends).map(|(x, v)| x * v).sum();
                                out[c] = simd.$sum(sums[c]) + end + constants[c];
                            }
                        }
                    }
                }
            }

            struct ShareLoop<'a> {
                rows: &'a [&'a [$float]],
                shares: &'a Mat<$float>,
                sums: &'a mut Mat<$float>,
            }

            impl pulp::WithSimd for ShareLoop<'_> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, simd: S) {
                    let Self { rows, shares, sums } = self;
                    let skipped = constants(rows, sums.nrows());
                    for (pair, rows) in rows.chunks(2).enumerate() {
                        let x = S::$as_simd(rows[0]);
                        let y = S::$as_simd(rows[rows.len() - 1]);
                        for c in 0..sums.ncols() {
                            let mine = shares[(c, 2 * pair)];
                            // A row without a neighbour has one that adds nothing.
                            let theirs = if rows.len() == 2 { shares[(c, 2 * pair + 1)] } else { 0.0 };
                            let (constants, sum) = sums.col_as_slice_mut(c).split_at_mut(skipped);
                            constants.iter_mut().for_each(|sum| *sum += mine + theirs);
                            let sum = S::$as_mut_simd(sum);
                            let (a, b) = (simd.$splat(mine), simd.$splat(theirs));
                            for ((sum, x), y) in sum.0.iter_mut().zip(x.0).zip(y.0) {
                                *sum = simd.$mul_add(*y, b, simd.$mul_add(*x, a, *sum));
                            }
                            for ((sum, x), y) in sum.1.iter_mut().zip(x.1).zip(y.1) {
                                *sum += mine * x + theirs * y;
                            }
                        }
                    }
                }
            }
        }
    };
}

few_vectors!(single, f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, mul_add_e_f32s, reduce_sum_f32s);
few_vectors!(double, f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, mul_add_e_f64s, reduce_sum_f64s);

#[cfg(test)]
mod tests {
    use super::*;

    fn compare<T>(number: impl Fn(f64) -> T, value: impl Fn(T) -> f64, accuracy: f64)
    where
        T: FewVectors,
    {
        for (width, count, outputs) in
            [(1, 1, 1), (7, 3, 2), (64, 5, 5), (33, 8, 6), (100, 9, 7), (19, 4, 13)]
        {
            let entry = |i: usize, j: usize| ((i * 31 + j * 17 + 5) as f64 * 0.37).sin();
            for constants in [0, 1] {
                let table = Mat::from_fn(width, count, |i, k| number(entry(i, k)));
                let rows: Vec<&[T]> = (0..count).map(|k| table.col_as_slice(k)).collect();
                let vectors = Mat::from_fn(constants + width, outputs, |i, c| number(entry(i, 50 + c)));
                let row = |i: usize, k: usize| if i < constants { 1.0 } else { entry(i - constants, k) };
                let mut scores = Mat::from_fn(outputs + 2, count + 1, |_, _| number(9.0));
                T::scores(&rows, &vectors, &mut scores);
                let mut sums = Mat::from_fn(constants + width, outputs, |_, _| number(1.0));
                T::add_shares(&rows, &scores, &mut sums);
                for c in 0..outputs {
                    for k in 0..count {
                        let truth: f64 = (0..constants + width).map(|i| row(i, k) * entry(i, 50 + c)).sum();
                        assert!(
                            (value(scores[(c, k)]) - truth).abs() < accuracy,
                            "{width} {count} {outputs}"
                        );
                    }
                    assert_eq!(value(scores[(c, count)]), 9.0, "a column beyond the rows was written");
                    for i in 0..constants + width {
                        let share = |k: usize| value(scores[(c, k)]) * row(i, k);
                        let truth = 1.0 + (0..count).map(share).sum::<f64>();
                        assert!((value(sums[(i, c)]) - truth).abs() < accuracy * 10.0);
                    }
                }
                assert_eq!(value(scores[(outputs, 0)]), 9.0, "a line beyond the vectors was written");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_numbers() {
        compare(|x| x, |x: f64| x, 1e-12);
        compare(|x| x as f32, f64::from, 1e-4);
    }
}
