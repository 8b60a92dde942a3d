//! Sums over rows of products of two features, where rows lie side by side: a register holds one feature of several rows. A product of
//! matrices as small as those of one class keeps half of the processor idle.

/// Sums that are made at a time: so many features by so many others fill the registers.
const TALL: usize = 4;
const BROAD: usize = 5;

/// One feature after another, each with the numbers of `rows` rows.
#[derive(Clone, Copy)]
pub(crate) struct SideBySide<'a> {
    pub(crate) values: &'a [f64],
    pub(crate) rows: usize,
}

impl<'a> SideBySide<'a> {
    fn feature(&self, at: usize) -> &'a [f64] {
        &self.values[at * self.rows..(at + 1) * self.rows]
    }

    fn features(&self) -> usize {
        self.values.len() / self.rows.max(1)
    }
}

/// Calls `add` with (i, j, Σ left_i·right_j) for all i ≥ j.
pub(crate) fn lower_products(
    left: SideBySide<'_>,
    right: SideBySide<'_>,
    add: impl FnMut(usize, usize, f64),
) {
    pulp::Arch::new().dispatch(ProductLoop { left, right, add });
}

struct ProductLoop<'a, A> {
    left: SideBySide<'a>,
    right: SideBySide<'a>,
    add: A,
}

impl<A: FnMut(usize, usize, f64)> pulp::WithSimd for ProductLoop<'_, A> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { left, right, mut add } = self;
        let features = left.features();
        // Narrow registers are half as many.
        let wide = S::F64_LANES >= 8;
        for j in (0..features).step_by(BROAD) {
            let broad = BROAD.min(features - j);
            let mut i = j;
            while i < features {
                let tall = if wide && broad == BROAD && i + TALL <= features { TALL } else { 1 };
                match (tall, broad) {
                    (TALL, BROAD) => tile::<S, TALL, BROAD>(simd, left, right, (i, j), &mut add),
                    (_, BROAD) => tile::<S, 1, BROAD>(simd, left, right, (i, j), &mut add),
                    (_, 4) => tile::<S, 1, 4>(simd, left, right, (i, j), &mut add),
                    (_, 3) => tile::<S, 1, 3>(simd, left, right, (i, j), &mut add),
                    (_, 2) => tile::<S, 1, 2>(simd, left, right, (i, j), &mut add),
                    _ => tile::<S, 1, 1>(simd, left, right, (i, j), &mut add),
                }
                i += tall;
            }
        }
    }
}

#[inline(always)]
fn tile<S: pulp::Simd, const T: usize, const B: usize>(
    simd: S,
    left: SideBySide<'_>,
    right: SideBySide<'_>,
    (i, j): (usize, usize),
    add: &mut impl FnMut(usize, usize, f64),
) {
    let tall: [_; T] = std::array::from_fn(|t| S::as_simd_f64s(left.feature(i + t)));
    let broad: [_; B] = std::array::from_fn(|b| S::as_simd_f64s(right.feature(j + b)));
    let mut sums = [[simd.splat_f64s(0.0); B]; T];
    for r in 0..left.rows / S::F64_LANES {
        for t in 0..T {
            for b in 0..B {
                sums[t][b] = simd.mul_add_e_f64s(tall[t].0[r], broad[b].0[r], sums[t][b]);
            }
        }
    }
    for t in 0..T {
        for b in 0..B {
            if i + t >= j + b {
                let rest: f64 = tall[t].1.iter().zip(broad[b].1).map(|(x, y)| x * y).sum();
                add(i + t, j + b, simd.reduce_sum_f64s(sums[t][b]) + rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_numbers() {
        let entry = |i: usize, k: usize| ((i * 31 + k * 17 + 5) as f64 * 0.37).sin();
        for (features, rows) in [(1, 1), (3, 8), (5, 17), (11, 64), (23, 40)] {
            let table = |shift: usize| -> Vec<f64> {
                (0..features * rows).map(|at| entry(at / rows + shift, at % rows)).collect()
            };
            let (left, right) = (table(0), table(50));
            let mut seen = 0;
            let left = SideBySide { values: &left, rows };
            lower_products(left, SideBySide { values: &right, rows }, |i, j, found| {
                let truth: f64 = (0..rows).map(|k| entry(i, k) * entry(j + 50, k)).sum();
                assert!(i >= j && (found - truth).abs() < 1e-12, "{features} {rows}: {i} {j}");
                seen += 1;
            });
            assert_eq!(seen, features * (features + 1) / 2);
        }
    }
}
