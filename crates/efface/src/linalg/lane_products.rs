//! Sums over rows of products of two features, where rows lie side by side: a register holds one
//! feature of several rows. A product of matrices as small as those of one class keeps half of the
//! processor idle.

/// Sums that are made at a time: so many features by so many others fill the registers.
const TALL: usize = 4;
const BROAD: usize = 5;

/// A number of either precision, as many of which as possible fill a register.
pub(crate) trait LaneNumber:
    Copy + Default + std::ops::Mul<Output = Self> + 'static
{
    type Register<S: pulp::Simd>: Copy;

    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    fn lanes<S: pulp::Simd>() -> usize;
    /// As many registers as the numbers fill, and those that are left.
    fn registers<S: pulp::Simd>(values: &[Self]) -> (&[Self::Register<S>], &[Self]);
    fn zeros<S: pulp::Simd>(simd: S) -> Self::Register<S>;
    /// a·b + c.
    fn fused<S: pulp::Simd>(
        simd: S,
        a: Self::Register<S>,
        b: Self::Register<S>,
        c: Self::Register<S>,
    ) -> Self::Register<S>;
    fn total<S: pulp::Simd>(simd: S, register: Self::Register<S>) -> f64;
}

impl LaneNumber for f64 {
    type Register<S: pulp::Simd> = S::f64s;

    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    fn lanes<S: pulp::Simd>() -> usize {
        S::F64_LANES
    }

    #[inline(always)]
    fn registers<S: pulp::Simd>(values: &[Self]) -> (&[S::f64s], &[Self]) {
        S::as_simd_f64s(values)
    }

    #[inline(always)]
    fn zeros<S: pulp::Simd>(simd: S) -> S::f64s {
        simd.splat_f64s(0.0)
    }

    #[inline(always)]
    fn fused<S: pulp::Simd>(simd: S, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        simd.mul_add_e_f64s(a, b, c)
    }

    #[inline(always)]
    fn total<S: pulp::Simd>(simd: S, register: S::f64s) -> f64 {
        simd.reduce_sum_f64s(register)
    }
}

impl LaneNumber for f32 {
    type Register<S: pulp::Simd> = S::f32s;

    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }

    fn lanes<S: pulp::Simd>() -> usize {
        S::F32_LANES
    }

    #[inline(always)]
    fn registers<S: pulp::Simd>(values: &[Self]) -> (&[S::f32s], &[Self]) {
        S::as_simd_f32s(values)
    }

    #[inline(always)]
    fn zeros<S: pulp::Simd>(simd: S) -> S::f32s {
        simd.splat_f32s(0.0)
    }

    #[inline(always)]
    fn fused<S: pulp::Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn total<S: pulp::Simd>(simd: S, register: S::f32s) -> f64 {
        simd.reduce_sum_f32s(register).into()
    }
}

/// One feature after another, each with the numbers of `rows` rows.
#[derive(Clone, Copy)]
pub(crate) struct SideBySide<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) rows: usize,
}

impl<'a, T> SideBySide<'a, T> {
    fn feature(&self, at: usize) -> &'a [T] {
        &self.values[at * self.rows..(at + 1) * self.rows]
    }

    fn features(&self) -> usize {
        self.values.len() / self.rows.max(1)
    }
}

/// Calls `add` with (i, j, Σ left_i·right_j) for all i ≥ j.
pub(crate) fn lower_products<T: LaneNumber>(
    left: SideBySide<'_, T>,
    right: SideBySide<'_, T>,
    add: impl FnMut(usize, usize, f64),
) {
    pulp::Arch::new().dispatch(ProductLoop { left, right, add });
}

struct ProductLoop<'a, T, A> {
    left: SideBySide<'a, T>,
    right: SideBySide<'a, T>,
    add: A,
}

impl<T: LaneNumber, A: FnMut(usize, usize, f64)> pulp::WithSimd for ProductLoop<'_, T, A> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self {
            left,
            right,
            mut add,
        } = self;
        let features = left.features();
        // Narrow registers are half as many.
        let wide = S::F64_LANES >= 8;
        for j in (0..features).step_by(BROAD) {
            let broad = BROAD.min(features - j);
            let mut i = j;
            while i < features {
                let tall = if wide && broad == BROAD && i + TALL <= features {
                    TALL
                } else {
                    1
                };
                match (tall, broad) {
                    (TALL, BROAD) => tile::<T, S, TALL, BROAD>(simd, left, right, (i, j), &mut add),
                    (_, BROAD) => tile::<T, S, 1, BROAD>(simd, left, right, (i, j), &mut add),
                    (_, 4) => tile::<T, S, 1, 4>(simd, left, right, (i, j), &mut add),
                    (_, 3) => tile::<T, S, 1, 3>(simd, left, right, (i, j), &mut add),
                    (_, 2) => tile::<T, S, 1, 2>(simd, left, right, (i, j), &mut add),
                    _ => tile::<T, S, 1, 1>(simd, left, right, (i, j), &mut add),
                }
                i += tall;
            }
        }
    }
}

#[inline(always)]
fn tile<T: LaneNumber, S: pulp::Simd, const A: usize, const B: usize>(
    simd: S,
    left: SideBySide<'_, T>,
    right: SideBySide<'_, T>,
    (i, j): (usize, usize),
    add: &mut impl FnMut(usize, usize, f64),
) {
    let tall: [_; A] = std::array::from_fn(|a| T::registers::<S>(left.feature(i + a)));
    let broad: [_; B] = std::array::from_fn(|b| T::registers::<S>(right.feature(j + b)));
    let mut sums = [[T::zeros(simd); B]; A];
    for r in 0..left.rows / T::lanes::<S>() {
        for a in 0..A {
            for b in 0..B {
                sums[a][b] = T::fused(simd, tall[a].0[r], broad[b].0[r], sums[a][b]);
            }
        }
    }
    for a in 0..A {
        for b in 0..B {
            if i + a >= j + b {
                let rest = tall[a].1.iter().zip(broad[b].1);
                let rest: f64 = rest.map(|(x, y)| x.wide() * y.wide()).sum();
                add(i + a, j + b, T::total(simd, sums[a][b]) + rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: LaneNumber>(close: f64) {
        let entry = |i: usize, k: usize| ((i * 31 + k * 17 + 5) as f64 * 0.37).sin();
        for (features, rows) in [(1, 1), (3, 8), (5, 17), (11, 64), (23, 40)] {
            let table = |shift: usize| -> Vec<T> {
                (0..features * rows)
                    .map(|at| T::of(entry(at / rows + shift, at % rows)))
                    .collect()
            };
            let (left, right) = (table(0), table(50));
            let mut seen = 0;
            let sides = [&left, &right].map(|values| SideBySide {
                values: values.as_slice(),
                rows,
            });
            lower_products(sides[0], sides[1], |i, j, found| {
                let truth: f64 = (0..rows).map(|k| entry(i, k) * entry(j + 50, k)).sum();
                assert!(
                    i >= j && (found - truth).abs() < close,
                    "{features} {rows}: {i} {j}"
                );
                seen += 1;
            });
            assert_eq!(seen, features * (features + 1) / 2);
        }
    }

    #[test]
    fn products_are_those_of_the_numbers() {
        check::<f64>(1e-12);
        check::<f32>(1e-4);
    }
}
