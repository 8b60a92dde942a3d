//! Rows in single precision, side by side: a register holds one feature of many rows. Products with
//! a handful of vectors or with hundreds fill the registers alike, what is done with the scores of
//! a row is done with those of many at once, and sums over rows are short, so that they round
//! little.

/// Rows of a block: four registers of the widest kind.
pub(crate) const BLOCK_ROWS: usize = 64;

/// Unit roundoff of f32.
pub(crate) const SINGLE_UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Features whose products are summed before they join the sum of the others.
const RUN: usize = 64;

/// Vectors that are multiplied at a time, and features in sums over rows.
const VECTORS: usize = 5;
const FEATURES: usize = 4;

/// Blocks that are multiplied and then added up take so many bytes at most: they are to stay in the
/// cache meanwhile.
const CHUNK_BYTES: usize = 1 << 19;

/// Rows, one block of them after another; in a block one feature after another, each with the
/// numbers of all rows of the block.
#[derive(Debug, Clone)]
pub(crate) struct LaneRows {
    width: usize,
    rows: usize,
    values: Vec<f32>,
}

/// Vectors to multiply rows with, feature by feature.
pub(crate) struct LaneVectors {
    count: usize,
    values: Vec<f32>,
}

impl LaneVectors {
    /// `entry` is asked for feature and vector.
    pub(crate) fn new(width: usize, count: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut values = Vec::with_capacity(width * count);
        (0..width).for_each(|j| values.extend((0..count).map(|c| entry(j, c) as f32)));
        Self { count, values }
    }
}

impl LaneRows {
    pub(crate) fn new(width: usize, capacity: usize) -> Self {
        let bytes = capacity.div_ceil(BLOCK_ROWS) * BLOCK_ROWS * width;
        Self {
            width,
            rows: 0,
            values: Vec::with_capacity(bytes),
        }
    }

    pub(crate) fn push(&mut self, row: &[f64]) {
        let lane = self.rows % BLOCK_ROWS;
        if lane == 0 {
            self.values
                .resize(self.values.len() + self.width * BLOCK_ROWS, 0.0);
        }
        let begin = self.rows / BLOCK_ROWS * self.width * BLOCK_ROWS;
        let block = self.values[begin..].as_chunks_mut::<BLOCK_ROWS>().0;
        block
            .iter_mut()
            .zip(row)
            .for_each(|(feature, x)| feature[lane] = *x as f32);
        self.rows += 1;
    }

    /// Puts 0 in the place of a row.
    pub(crate) fn scrub(&mut self, row: usize) {
        let block = self.block_mut(row / BLOCK_ROWS);
        block
            .iter_mut()
            .for_each(|feature| feature[row % BLOCK_ROWS] = 0.0);
    }

    fn block(&self, at: usize) -> &[[f32; BLOCK_ROWS]] {
        &self.values.as_chunks().0[at * self.width..(at + 1) * self.width]
    }

    fn block_mut(&mut self, at: usize) -> &mut [[f32; BLOCK_ROWS]] {
        &mut self.values.as_chunks_mut().0[at * self.width..(at + 1) * self.width]
    }

    pub(crate) fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK_ROWS)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values.len() * size_of::<f32>()
    }

    /// Blocks to be multiplied and then added up.
    fn chunk(&self) -> usize {
        (CHUNK_BYTES / (self.width.max(1) * BLOCK_ROWS * size_of::<f32>())).clamp(2, 16)
    }

    /// At most what a product of a row with a vector is wrong by, as a share of the norms of both.
    pub(crate) fn product_error(&self) -> f64 {
        let runs = self.width.div_ceil(RUN);
        // Both numbers are rounded before they are multiplied.
        (self.width.min(RUN) + runs + 4) as f64 * SINGLE_UNIT
    }

    /// At most what a sum over rows is wrong by, as a share of the norms of what is multiplied.
    pub(crate) fn sum_error(&self) -> f64 {
        // Along every lane a chunk is summed term by term, and then the lanes.
        let lanes = pulp::Arch::new().dispatch(LaneCount);
        (self.chunk() * BLOCK_ROWS / lanes + lanes + 8) as f64 * SINGLE_UNIT
    }

    /// The scores of the rows of a block by every vector.
    pub(crate) fn scores(
        &self,
        block: usize,
        vectors: &LaneVectors,
        scores: &mut [[f32; BLOCK_ROWS]],
    ) {
        pulp::Arch::new().dispatch(LaneScoreLoop {
            block: self.block(block),
            vectors,
            scores,
        });
    }

    /// The sum over the rows of some blocks of every row times its shares, which `share` makes of
    /// its scores: it is given the number of the block, and for every vector the scores of all its
    /// rows, to be replaced. A line per feature.
    pub(crate) fn share_sum(
        &self,
        blocks: std::ops::Range<usize>,
        vectors: &LaneVectors,
        mut share: impl FnMut(usize, &mut [[f32; BLOCK_ROWS]]),
    ) -> Vec<f64> {
        let count = vectors.count;
        let mut sums = vec![0.0; self.width * count];
        let mut scores = vec![[0.0f32; BLOCK_ROWS]; self.chunk() * count];
        let mut first = blocks.start;
        while first < blocks.end {
            let last = (first + self.chunk()).min(blocks.end);
            for (at, scores) in (first..last).zip(scores.chunks_exact_mut(count)) {
                self.scores(at, vectors, scores);
                share(at, scores);
            }
            let blocks = &self.values.as_chunks().0[first * self.width..last * self.width];
            let shares = &scores[..(last - first) * count];
            pulp::Arch::new().dispatch(LaneSumLoop {
                blocks,
                width: self.width,
                shares,
                count,
                sums: &mut sums,
            });
            first = last;
        }
        sums
    }
}

/// How many numbers a register holds.
struct LaneCount;

impl pulp::WithSimd for LaneCount {
    type Output = usize;

    fn with_simd<S: pulp::Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// Calls a function for as many vectors as there are, which the compiler then knows.
macro_rules! for_count {
    ($count:expr, $tile:ident, $with:expr, $arguments:tt) => {
        match $count {
            0 => {}
            1 => for_count!(@ $tile, 1, $with, $arguments),
            2 => for_count!(@ $tile, 2, $with, $arguments),
            3 => for_count!(@ $tile, 3, $with, $arguments),
            4 => for_count!(@ $tile, 4, $with, $arguments),
            _ => for_count!(@ $tile, VECTORS, $with, $arguments),
        }
    };
    (@ $tile:ident, $count:expr, $with:expr, ($($argument:expr),*)) => { $tile::<_, $count, $with>($($argument),*) };
}

struct LaneScoreLoop<'a> {
    block: &'a [[f32; BLOCK_ROWS]],
    vectors: &'a LaneVectors,
    scores: &'a mut [[f32; BLOCK_ROWS]],
}

impl pulp::WithSimd for LaneScoreLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self {
            block,
            vectors,
            scores,
        } = self;
        // As many sums as there are registers for.
        let rows = if S::F32_LANES >= 16 { 4 } else { 2 } * S::F32_LANES;
        for lane in (0..BLOCK_ROWS).step_by(rows) {
            for at in (0..vectors.count).step_by(VECTORS) {
                let left = vectors.count - at;
                if S::F32_LANES >= 16 {
                    for_count!(
                        left,
                        scores_of,
                        4,
                        (simd, block, vectors, (lane, at), scores)
                    );
                } else {
                    for_count!(
                        left,
                        scores_of,
                        2,
                        (simd, block, vectors, (lane, at), scores)
                    );
                }
            }
        }
    }
}

/// The scores of `R` registers of rows by `C` vectors.
#[inline(always)]
fn scores_of<S: pulp::Simd, const C: usize, const R: usize>(
    simd: S,
    block: &[[f32; BLOCK_ROWS]],
    vectors: &LaneVectors,
    (lane, at): (usize, usize),
    scores: &mut [[f32; BLOCK_ROWS]],
) {
    let end = lane + R * S::F32_LANES;
    let mut total = [[simd.splat_f32s(0.0); R]; C];
    let features = block
        .chunks(RUN)
        .zip(vectors.values.chunks(RUN * vectors.count));
    for (features, values) in features {
        let mut sums = [[simd.splat_f32s(0.0); R]; C];
        for (feature, values) in features.iter().zip(values.chunks_exact(vectors.count)) {
            let x = &S::as_simd_f32s(&feature[lane..end]).0[..R];
            let values = &values[at..at + C];
            for c in 0..C {
                let v = simd.splat_f32s(values[c]);
                for r in 0..R {
                    sums[c][r] = simd.mul_add_e_f32s(x[r], v, sums[c][r]);
                }
            }
        }
        for c in 0..C {
            for r in 0..R {
                total[c][r] = simd.add_f32s(total[c][r], sums[c][r]);
            }
        }
    }
    for (total, scores) in total.iter().zip(&mut scores[at..at + C]) {
        let out = S::as_mut_simd_f32s(&mut scores[lane..end]).0;
        out.iter_mut()
            .zip(total)
            .for_each(|(out, total)| *out = *total);
    }
}

struct LaneSumLoop<'a> {
    /// The features of one block after those of another.
    blocks: &'a [[f32; BLOCK_ROWS]],
    width: usize,
    shares: &'a [[f32; BLOCK_ROWS]],
    count: usize,
    sums: &'a mut [f64],
}

impl pulp::WithSimd for LaneSumLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self {
            blocks,
            width,
            shares,
            count,
            sums,
        } = self;
        let sizes = (width, count);
        let mut feature = 0;
        while feature < width {
            let wide = S::F32_LANES >= 16 && feature + FEATURES <= width;
            for at in (0..count).step_by(VECTORS) {
                if wide {
                    for_count!(
                        count - at,
                        sums_of,
                        FEATURES,
                        (simd, blocks, shares, sizes, (feature, at), sums)
                    );
                } else {
                    for_count!(
                        count - at,
                        sums_of,
                        1,
                        (simd, blocks, shares, sizes, (feature, at), sums)
                    );
                }
            }
            feature += if wide { FEATURES } else { 1 };
        }
    }
}

/// Adds the sums over all rows of `F` features times `C` shares.
#[inline(always)]
fn sums_of<S: pulp::Simd, const C: usize, const F: usize>(
    simd: S,
    blocks: &[[f32; BLOCK_ROWS]],
    shares: &[[f32; BLOCK_ROWS]],
    (width, count): (usize, usize),
    (feature, at): (usize, usize),
    sums: &mut [f64],
) {
    let mut total = [[simd.splat_f32s(0.0); C]; F];
    for (block, shares) in blocks.chunks_exact(width).zip(shares.chunks_exact(count)) {
        let x: [&[S::f32s]; F] = std::array::from_fn(|f| S::as_simd_f32s(&block[feature + f]).0);
        let shares: [&[S::f32s]; C] = std::array::from_fn(|c| S::as_simd_f32s(&shares[at + c]).0);
        for r in 0..BLOCK_ROWS / S::F32_LANES {
            for f in 0..F {
                for c in 0..C {
                    total[f][c] = simd.mul_add_e_f32s(x[f][r], shares[c][r], total[f][c]);
                }
            }
        }
    }
    for (f, total) in total.into_iter().enumerate() {
        let sums = &mut sums[(feature + f) * count + at..][..C];
        sums.iter_mut()
            .zip(total)
            .for_each(|(sum, total)| *sum += f64::from(simd.reduce_sum_f32s(total)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(i: usize, j: usize) -> f64 {
        ((i * 31 + j * 17 + 5) as f64 * 0.37).sin()
    }

    #[test]
    fn sums_are_those_of_the_numbers_to_the_error_that_is_told() {
        for (width, rows, count) in [
            (1, 1, 1),
            (7, 64, 2),
            (65, 200, 5),
            (201, 700, 13),
            (130, 3000, 4),
        ] {
            let mut table = LaneRows::new(width, rows);
            for i in 0..rows {
                table.push(&(0..width).map(|j| entry(i, j)).collect::<Vec<_>>());
            }
            let vectors = LaneVectors::new(width, count, |j, c| entry(j, 90 + c));
            let mut worst = 0.0f64;
            let mut shares = vec![vec![0.0; rows]; count];
            let sums = table.share_sum(0..table.blocks(), &vectors, |block, scores| {
                for (c, lanes) in scores.iter_mut().enumerate() {
                    for (k, score) in lanes.iter_mut().enumerate() {
                        let i = block * BLOCK_ROWS + k;
                        if i >= rows {
                            assert_eq!(*score, 0.0, "a row that is not there has a score");
                            continue;
                        }
                        let product = |j: usize| [entry(i, j), entry(j, 90 + c)];
                        let truth: f64 =
                            (0..width).map(|j| product(j).iter().product::<f64>()).sum();
                        let squares = (0..width)
                            .map(product)
                            .fold([0.0; 2], |[a, b], [x, v]| [a + x * x, b + v * v]);
                        let size = (squares[0] * squares[1]).sqrt();
                        worst = worst.max((f64::from(*score) - truth).abs() / size);
                        shares[c][i] = f64::from(*score);
                    }
                }
            });
            assert!(
                worst <= table.product_error(),
                "{worst:e} {:e}",
                table.product_error()
            );
            for j in 0..width {
                for c in 0..count {
                    let truth: f64 = (0..rows).map(|i| entry(i, j) * shares[c][i]).sum();
                    let squares = (0..rows).fold([0.0; 2], |[a, b], i| {
                        [a + entry(i, j).powi(2), b + shares[c][i].powi(2)]
                    });
                    let size = (squares[0] * squares[1]).sqrt();
                    let apart = (sums[j * count + c] - truth).abs();
                    assert!(
                        apart <= table.sum_error() * size,
                        "{apart:e} {:e}",
                        table.sum_error() * size
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_that_was_scrubbed_is_zero() {
        let mut table = LaneRows::new(3, 2);
        (0..70).for_each(|i| table.push(&[1.0, f64::from(i), 2.0]));
        table.scrub(66);
        let mut seen = Vec::new();
        let vectors = LaneVectors::new(3, 1, |_, _| 1.0);
        table.share_sum(0..table.blocks(), &vectors, |_, scores| {
            seen.extend(scores[0])
        });
        assert_eq!(seen[65..68], [68.0, 0.0, 70.0]);
    }
}
