//! Many rows of weight 1 added to long sums at once, in fewer operations than row by row.
//!
//! With σ a power of two so far above a column's largest number x that all numbers of a block fit
//! between, (σ + x) − σ is x rounded to a grid on which a block of such parts adds up without an
//! error; what is left of x is small, its sum keeps a word of its own, and what that word cannot
//! hold is measured. Only the two words of a whole block then go through the additions of a long
//! sum. Rump, Ogita and Oishi 2008, "Accurate floating-point summation", part I (their
//! ExtractVector).
//!
//! A block's words hold a few bits less than a long sum. As long as nothing has ever been lost, a
//! block that would lose something is therefore added row by row: sums that can be exact are.

use crate::linalg::{two_product, two_sum, widest};

use super::long_sum::{LANES, LongSum, underflow};

/// The rows of a block. Their number decides how far σ lies above the numbers, and so how many bits
/// are left for them.
pub(crate) const BLOCK: usize = 64;

/// σ over the power of two at or below the largest number: a factor of 2 to be above it, and one of
/// at least `BLOCK` + 2.
const ROOM: f64 = (4 * BLOCK) as f64;

/// Adds at most [`BLOCK`] rows, or their squares, to a sum for each column. `lost` is what the sums
/// have lost before; returns how much more was lost.
pub(crate) fn add_rows<T: Copy + Into<f64>>(
    sums: &mut [LongSum],
    rows: &[&[T]],
    squares: bool,
    lost: f64,
) -> f64 {
    debug_assert!(rows.len() <= BLOCK && rows.iter().all(|row| row.len() == sums.len()));
    widest(
        #[inline(always)]
        || {
            if squares {
                add_all::<T, true>(sums, rows, lost)
            } else {
                add_all::<T, false>(sums, rows, lost)
            }
        },
    )
}

#[inline(always)]
fn add_all<T: Copy + Into<f64>, const SQUARES: bool>(
    sums: &mut [LongSum],
    rows: &[&[T]],
    before: f64,
) -> f64 {
    let mut lost = 0.0;
    let (blocks, left) = sums.as_chunks_mut::<LANES>();
    let whole = blocks.len() * LANES;
    for (at, sums) in blocks.iter_mut().enumerate() {
        let load = |row: &[T]| row.as_chunks::<LANES>().0[at].map(Into::into);
        lost += add_columns::<T, SQUARES>(sums, rows, load, before + lost == 0.0);
    }
    if !left.is_empty() {
        let load = |row: &[T]| {
            let mut values = [0.0; LANES];
            values
                .iter_mut()
                .zip(&row[whole..])
                .for_each(|(value, x)| *value = (*x).into());
            values
        };
        lost += add_columns::<T, SQUARES>(left, rows, load, before + lost == 0.0);
    }
    lost
}

/// Adds up to `LANES` columns of the rows.
#[inline(always)]
fn add_columns<T: Copy, const SQUARES: bool>(
    sums: &mut [LongSum],
    rows: &[&[T]],
    load: impl Fn(&[T]) -> [f64; LANES],
    exact: bool,
) -> f64 {
    let mut lost = 0.0;
    // The sums as they would be: what is lost shows only at the end.
    let mut next = [LongSum::default(); LANES];
    next.iter_mut()
        .zip(&*sums)
        .for_each(|(next, sum)| *next = *sum);
    if !SQUARES && let Some(counts) = add_counts(rows, &load) {
        for (sum, count) in next.iter_mut().zip(counts) {
            lost += sum.add(count);
        }
    } else {
        let mut largest = [0.0f64; LANES];
        for row in rows {
            for (largest, x) in largest.iter_mut().zip(load(row)) {
                *largest = if x.abs() > *largest {
                    x.abs()
                } else {
                    *largest
                };
            }
        }
        let mut words = BlockWords::above(largest.map(|x| if SQUARES { x * x } else { x }));
        for row in rows {
            words.add::<SQUARES>(&load(row));
        }
        for (i, sum) in next.iter_mut().enumerate() {
            lost += sum.add(words.coarse[i]) + sum.add(words.fine[i]) + words.lost[i];
            if SQUARES {
                lost += sum.add(words.rest[i]);
            }
        }
    }
    if exact && lost != 0.0 {
        lost = 0.0;
        for row in rows {
            for (sum, x) in sums.iter_mut().zip(load(row)) {
                lost += if SQUARES {
                    sum.add_square(1.0, x)
                } else {
                    sum.add(x)
                };
            }
        }
        return lost;
    }
    sums.iter_mut()
        .zip(next)
        .for_each(|(sum, next)| *sum = next);
    lost
}

/// The plain sums of up to `LANES` columns, if they hold whole numbers that add up without an
/// error.
#[inline(always)]
fn add_counts<T: Copy>(
    rows: &[&[T]],
    load: &impl Fn(&[T]) -> [f64; LANES],
) -> Option<[f64; LANES]> {
    /// Added to a number below 2⁵¹ and taken off again, it leaves a whole number as it was, and no
    /// other.
    const WHOLE: f64 = 3.0 * (1u64 << 51) as f64;
    /// A block of numbers up to here stays below 2⁵³.
    const LARGEST: f64 = (1u64 << 46) as f64;
    let fits = |x: f64| ((x + WHOLE) - WHOLE == x) & (x.abs() <= LARGEST);
    let first = load(rows.first()?);
    if !first.iter().fold(true, |fine, x| fine & fits(*x)) {
        return None;
    }
    let mut sums = [0.0; LANES];
    let mut fine = [true; LANES];
    for row in rows {
        let values = load(row);
        for i in 0..LANES {
            sums[i] += values[i];
            fine[i] &= fits(values[i]);
        }
    }
    (fine == [true; LANES]).then_some(sums)
}

/// The sums of a block under way, side by side. Each loop below is one instruction or a few.
struct BlockWords {
    sigma: [f64; LANES],
    /// Multiples of σ·2⁻⁵³ whose sum stays below σ: added without an error.
    coarse: [f64; LANES],
    fine: [f64; LANES],
    /// What squares lose in their own rounding.
    rest: [f64; LANES],
    lost: [f64; LANES],
}

#[expect(
    clippy::needless_range_loop,
    reason = "lanes are counted, so that the compiler sees that they do not end early"
)]
impl BlockWords {
    #[inline(always)]
    fn above(largest: [f64; LANES]) -> Self {
        const EXPONENT: u64 = 0x7ff << 52;
        let mut sigma = [0.0; LANES];
        for i in 0..LANES {
            sigma[i] =
                f64::from_bits((largest[i].to_bits() & EXPONENT).max(f64::MIN_POSITIVE.to_bits()))
                    * ROOM;
        }
        let zero = [0.0; LANES];
        Self {
            sigma,
            coarse: zero,
            fine: zero,
            rest: zero,
            lost: zero,
        }
    }

    #[inline(always)]
    fn add<const SQUARES: bool>(&mut self, x: &[f64; LANES]) {
        for i in 0..LANES {
            let mut term = x[i];
            let mut rest = 0.0;
            if SQUARES {
                (term, rest) = two_product(x[i], x[i]);
                self.lost[i] += underflow(term, x[i] != 0.0);
            }
            let part = (self.sigma[i] + term) - self.sigma[i];
            self.coarse[i] += part;
            let (fine, lost) = two_sum(self.fine[i], term - part);
            self.fine[i] = fine;
            self.lost[i] += lost.abs();
            if SQUARES {
                let (rest, lost) = two_sum(self.rest[i], rest);
                self.rest[i] = rest;
                self.lost[i] += lost.abs();
            }
        }
    }
}

/// Rows that wait to be added to the same sums.
#[derive(Debug, Default)]
pub(crate) struct WaitingBlock<'a> {
    doubles: Vec<&'a [f64]>,
    singles: Vec<&'a [f32]>,
}

impl<'a> WaitingBlock<'a> {
    /// Puts a row of double precision to the others; true when it is time to add them.
    pub(crate) fn push(&mut self, row: &'a [f64]) -> bool {
        self.doubles.push(row);
        self.doubles.len() == BLOCK
    }

    /// Puts a row of single precision to the others; true when it is time to add them.
    pub(crate) fn push_single(&mut self, row: &'a [f32]) -> bool {
        self.singles.push(row);
        self.singles.len() == BLOCK
    }

    /// How many rows wait.
    pub(crate) fn len(&self) -> usize {
        self.doubles.len() + self.singles.len()
    }

    /// Adds them, or their squares, and returns how much was lost; they go on waiting for other
    /// sums.
    pub(crate) fn add_to(&self, sums: &mut [LongSum], squares: bool, lost: f64) -> f64 {
        let doubles = add_rows(sums, &self.doubles, squares, lost);
        doubles + add_rows(sums, &self.singles, squares, lost + doubles)
    }

    /// Drops the rows that waited.
    pub(crate) fn clear(&mut self) {
        self.doubles.clear();
        self.singles.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 19;

    fn by_row(rows: &[Vec<f64>], squares: bool) -> (Vec<LongSum>, f64) {
        let mut sums = vec![LongSum::default(); WIDTH];
        let mut lost = 0.0;
        for row in rows {
            for (sum, x) in sums.iter_mut().zip(row) {
                lost += if squares {
                    sum.add_square(1.0, *x)
                } else {
                    sum.add(*x)
                };
            }
        }
        (sums, lost)
    }

    fn by_block(rows: &[Vec<f64>], squares: bool) -> (Vec<LongSum>, f64) {
        let mut sums = vec![LongSum::default(); WIDTH];
        let mut lost = 0.0;
        for block in rows.chunks(BLOCK) {
            let block: Vec<&[f64]> = block.iter().map(Vec::as_slice).collect();
            lost += add_rows(&mut sums, &block, squares, lost);
        }
        (sums, lost)
    }

    fn table(rows: usize, value: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        (0..rows)
            .map(|i| (0..WIDTH).map(|j| value(i, j)).collect())
            .collect()
    }

    #[test]
    fn what_can_be_exact_is_the_same_to_the_bit() {
        let wave = |i: usize, j: usize| ((i * 31 + j * 17) as f64).sin();
        let counts = table(1000, |i, j| ((i * j + i) % 7) as f64);
        let singles = table(1000, |i, j| {
            f64::from((wave(i, j) * 10f64.powi(j as i32 - 9)) as f32)
        });
        // Small and large numbers in one column, so that blocks would lose something and sums do
        // not.
        let uneven = table(1000, |i, j| {
            f64::from(wave(i, j) as f32) * 2f64.powi(if i % 5 == 0 { 20 } else { -20 })
        });
        for rows in [counts, singles, uneven.clone()] {
            for squares in [false, true] {
                let (sums, lost) = by_row(&rows, squares);
                if lost == 0.0 {
                    assert_eq!(by_block(&rows, squares), (sums, 0.0));
                }
            }
        }
        assert_eq!(by_row(&uneven, false).1, 0.0, "or the case above is none");
    }

    /// The words of a block may need more bits, one after the other, than the numbers that they
    /// stand for.
    #[test]
    fn a_block_that_costs_a_bit_is_added_row_by_row() {
        let first = table(1, |_, _| 2f64.powi(120));
        let second = table(1, |_, _| 2f64.powi(7));
        let third = table(1, |_, _| 2f64.powi(60) - 2f64.powi(8));
        let mut sums = vec![LongSum::default(); WIDTH];
        let mut lost = 0.0;
        for rows in [&first, &second, &third] {
            lost += add_rows(&mut sums, &[rows[0].as_slice()], false, lost);
        }
        let rows: Vec<Vec<f64>> = [first, second, third].concat();
        assert_eq!((sums, lost), (by_row(&rows, false).0, 0.0));
    }

    #[test]
    fn what_is_lost_is_measured() {
        let wild = table(1000, |i, j| {
            ((i * 31 + j * 17) as f64).sin() * 10f64.powi((i * 7 + j * 3) as i32 % 60 - 30)
        });
        for squares in [false, true] {
            let (sums, lost) = by_block(&wild, squares);
            let (expected, expected_lost) = by_row(&wild, squares);
            assert!(lost > 0.0 && expected_lost > 0.0);
            let apart: f64 = sums
                .iter()
                .zip(&expected)
                .map(|(a, b)| a.minus(*b).value().abs())
                .sum();
            assert!(
                apart <= lost + expected_lost,
                "{apart} {lost} {expected_lost}"
            );
            assert!(lost <= 64.0 * expected_lost, "{lost} {expected_lost}");
        }
    }

    #[test]
    fn tiny_numbers_and_zeros_are_no_special_case() {
        for value in [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, 1e-200, -1e59] {
            let rows = table(70, |i, j| if (i + j) % 3 == 0 { value } else { 0.0 });
            for squares in [false, true] {
                let (sums, lost) = by_block(&rows, squares);
                let (expected, expected_lost) = by_row(&rows, squares);
                assert_eq!(lost > 0.0, expected_lost > 0.0, "{value} {squares}");
                for (a, b) in sums.iter().zip(&expected) {
                    assert!(
                        a.minus(*b).value().abs() <= lost + expected_lost,
                        "{value} {squares}"
                    );
                }
            }
        }
    }
}
