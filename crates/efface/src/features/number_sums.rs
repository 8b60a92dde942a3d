//! What is kept of a numeric column, so that its mean, spread and extremes can be told for the rows
//! that are there.

use serde::{Deserialize, Serialize};

use super::exact_sum::ExactSum;
use super::{ColumnScale, FeatureSteps, MissingNumbers};
use crate::linalg::DoubleWord;

/// Counts, sums and extremes of a numeric column. What no step asks for stays empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct NumberSums {
    /// Rows that have a number.
    present: u64,
    /// Rows without one.
    missing: u64,
    sum: ExactSum,
    squares: ExactSum,
    least: ColumnExtreme,
    most: ColumnExtreme,
}

/// The least or greatest value, and in how many rows it is. With 0 rows the value is unknown: the
/// last row that held it has left, and only the other rows tell the next one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct ColumnExtreme {
    value: f64,
    rows: u64,
}

impl ColumnExtreme {
    fn add(&mut self, value: f64, rows: u64, is_beyond: impl Fn(f64, f64) -> bool) {
        if self.rows == 0 || is_beyond(value, self.value) {
            *self = Self { value, rows };
        } else if value == self.value {
            self.rows += rows;
        }
    }

    /// Takes one row with this value out. A value that no row holds any more is not kept.
    fn take(&mut self, value: f64) {
        if self.rows > 0 && value == self.value {
            self.rows -= 1;
            if self.rows == 0 {
                *self = Self::default();
            }
        }
    }
}

/// How a number becomes a feature: (x − shift) / scale, with `fill` for a missing x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberMap {
    pub(crate) fill: f64,
    pub(crate) shift: f64,
    pub(crate) scale: f64,
    /// Shift and scale of the feature that says where numbers are missing; None where there is no
    /// such feature.
    pub(crate) indicator: Option<(f64, f64)>,
}

impl NumberMap {
    pub(crate) fn is_identity(&self) -> bool {
        self.shift == 0.0 && self.scale == 1.0 && self.indicator.is_none()
    }

    /// The features that the column has.
    pub(crate) fn width(&self) -> usize {
        1 + usize::from(self.indicator.is_some())
    }

    /// Appends the features of a number, or of one that is missing, from `feature` on; zeros are
    /// left out.
    pub(crate) fn append(&self, number: Option<f64>, feature: u32, out: &mut Vec<(u32, f64)>) {
        let value = (number.unwrap_or(self.fill) - self.shift) / self.scale;
        if value != 0.0 {
            out.push((feature, value));
        }
        if let Some((shift, scale)) = self.indicator {
            let value = (f64::from(u8::from(number.is_none())) - shift) / scale;
            if value != 0.0 {
                out.push((feature + 1, value));
            }
        }
    }
}

impl NumberSums {
    /// One row has this number, or none.
    pub(crate) fn learn(&mut self, number: Option<f64>, steps: &FeatureSteps) {
        let Some(value) = number else {
            self.missing += 1;
            return;
        };
        self.learn_many(value, 1, steps);
    }

    /// So many rows have this number. One that is not finite is refused when its row is read, and
    /// is passed over here.
    pub(crate) fn learn_many(&mut self, value: f64, rows: u64, steps: &FeatureSteps) {
        let is_first = self.present == 0;
        self.present += rows;
        if !value.is_finite() {
            return;
        }
        if needs_sums(steps) {
            for _ in 0..rows {
                self.sum.add(value);
                self.squares.add_square(value, 1.0);
            }
        }
        if steps.scale == ColumnScale::MinMax {
            // An unknown extreme stays unknown: other rows may lie beyond this one.
            if is_first || self.least.rows > 0 {
                self.least.add(value, rows, |new, old| new < old);
            }
            if is_first || self.most.rows > 0 {
                self.most.add(value, rows, |new, old| new > old);
            }
        }
    }

    /// So many rows have a finite number, of which no step asks more than that it is there.
    pub(crate) fn learn_present(&mut self, rows: u64) {
        self.present += rows;
    }

    /// Takes in what was learned of other rows.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.missing += other.missing;
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
        let ColumnExtreme { value, rows } = other.least;
        if rows > 0 {
            self.least.add(value, rows, |new, old| new < old);
        }
        let ColumnExtreme { value, rows } = other.most;
        if rows > 0 {
            self.most.add(value, rows, |new, old| new > old);
        }
    }

    /// Takes a value into account for the extremes alone.
    pub(crate) fn see(&mut self, value: f64, rows: u64) {
        self.least.add(value, rows, |new, old| new < old);
        self.most.add(value, rows, |new, old| new > old);
    }

    /// One row fewer has this number, or none.
    pub(crate) fn forget(&mut self, number: Option<f64>, steps: &FeatureSteps) {
        let Some(value) = number else {
            self.missing = self.missing.saturating_sub(1);
            return;
        };
        self.present = self.present.saturating_sub(1);
        if needs_sums(steps) {
            self.sum.add(-value);
            self.squares.add_square(value, -1.0);
        }
        if steps.scale == ColumnScale::MinMax {
            self.least.take(value);
            self.most.take(value);
        }
    }

    /// Returns true if these are the counts, sums and extremes that the rows themselves give. An
    /// unknown extreme is that of any rows.
    pub(crate) fn agrees_with(&self, fresh: &Self) -> bool {
        let agree = |kept: ColumnExtreme, fresh| kept.rows == 0 || kept == fresh;
        self.present == fresh.present
            && self.missing == fresh.missing
            && self.sum == fresh.sum
            && self.squares == fresh.squares
            && agree(self.least, fresh.least)
            && agree(self.most, fresh.most)
    }

    /// Whether some row has no number.
    pub(crate) fn has_gaps(&self) -> bool {
        self.missing > 0
    }

    /// Whether the last row at an extreme has left, so that only the rows can tell the next one.
    pub(crate) fn lacks_extremes(&self, steps: &FeatureSteps) -> bool {
        steps.scale == ColumnScale::MinMax
            && self.present > 0
            && (self.least.rows == 0 || self.most.rows == 0)
    }

    /// Drops the extremes, before all rows are seen again.
    pub(crate) fn drop_extremes(&mut self) {
        self.least = ColumnExtreme::default();
        self.most = ColumnExtreme::default();
    }

    /// Returns how numbers become features, given the rows that are there. The extremes must be known, see
    /// [`lacks_extremes`](Self::lacks_extremes), or the shift and scale between them mean nothing.
    pub(crate) fn map(&self, steps: &FeatureSteps) -> NumberMap {
        let all = (self.present + self.missing) as f64;
        let fill = match steps.missing {
            MissingNumbers::Refused => 0.0,
            MissingNumbers::Mean { .. } => quotient(self.sum.value(), self.present as f64),
            MissingNumbers::Constant { value, .. } => value,
        };
        let (shift, scale) = match steps.scale {
            ColumnScale::None => (0.0, 1.0),
            ColumnScale::Standard => self.standard(fill),
            ColumnScale::MinMax => {
                let mut least = self.least;
                let mut most = self.most;
                if self.missing > 0 {
                    least.add(fill, 1, |new, old| new < old);
                    most.add(fill, 1, |new, old| new > old);
                }
                (least.value, some_scale(most.value - least.value))
            }
        };
        let share = self.missing as f64 / all.max(1.0);
        let indicator = match steps.scale {
            _ if self.missing == 0 || !steps.missing.has_indicator() => None,
            ColumnScale::Standard => Some((share, some_scale((share * (1.0 - share)).sqrt()))),
            // A column that is missing everywhere is 1 everywhere, which is its least value too.
            ColumnScale::MinMax if self.present == 0 => Some((1.0, 1.0)),
            ColumnScale::None | ColumnScale::MinMax => Some((0.0, 1.0)),
        };
        NumberMap {
            fill,
            shift,
            scale,
            indicator,
        }
    }

    /// Mean and standard deviation of the column with its gaps filled.
    fn standard(&self, fill: f64) -> (f64, f64) {
        let all = (self.present + self.missing) as f64;
        let gaps = self.missing as f64;
        let sum = self.sum.value().plus_product(gaps, fill);
        let squares = self
            .squares
            .value()
            .plus(DoubleWord::default().plus_product(fill, fill).times(gaps));
        let mean = quotient(sum, all);
        // n·Σx² − (Σx)² in twice the precision: where the mean dwarfs the spread, most of its
        // digits cancel.
        let square = sum.times(sum.high).plus(sum.times(sum.low));
        let spread = squares.times(all).plus(square.times(-1.0)).value().max(0.0);
        let variance = if all > 0.0 { spread / (all * all) } else { 0.0 };
        // What scikit-learn takes for rounding, it takes for a constant column.
        let rounding = all * f64::EPSILON * variance + (all * mean * f64::EPSILON).powi(2);
        let scale = if variance <= rounding {
            1.0
        } else {
            variance.sqrt()
        };
        (mean, scale)
    }
}

/// Whether it is enough to know how many numbers there are.
pub(crate) fn needs_no_values(steps: &FeatureSteps) -> bool {
    !needs_sums(steps) && steps.scale != ColumnScale::MinMax
}

/// Whether means or deviations are asked for.
fn needs_sums(steps: &FeatureSteps) -> bool {
    steps.scale == ColumnScale::Standard || matches!(steps.missing, MissingNumbers::Mean { .. })
}

/// A column without spread stays as wide as it is. So does one whose spread is lost in rounding, as
/// in scikit-learn.
fn some_scale(spread: f64) -> f64 {
    if spread < 10.0 * f64::EPSILON {
        1.0
    } else {
        spread
    }
}

/// The quotient, rounded once; 0 where there is nothing to divide by.
fn quotient(sum: DoubleWord, count: f64) -> f64 {
    if count == 0.0 {
        return 0.0;
    }
    let first = sum.value() / count;
    let rest = sum.plus(DoubleWord::new(first).times(-count));
    first + rest.value() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(scale: ColumnScale, missing: MissingNumbers) -> FeatureSteps {
        FeatureSteps {
            scale,
            missing,
            ..FeatureSteps::default()
        }
    }

    fn sums(values: &[Option<f64>], steps: &FeatureSteps) -> NumberSums {
        let mut sums = NumberSums::default();
        values.iter().for_each(|value| sums.learn(*value, steps));
        sums
    }

    /// Oracle: scikit-learn 1.9.1, `SimpleImputer` and `StandardScaler` on [1, 2, 4, nan].
    #[test]
    fn mean_and_deviation_equal_scikit_learn() {
        let steps = steps(
            ColumnScale::Standard,
            MissingNumbers::Mean { indicator: true },
        );
        let map = sums(&[Some(1.0), Some(2.0), Some(4.0), None], &steps).map(&steps);
        assert!((map.fill - 7.0 / 3.0).abs() < 1e-15 && (map.shift - 7.0 / 3.0).abs() < 1e-15);
        assert!(
            (map.scale - (14.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15,
            "{map:?}"
        );
        let (shift, scale) = map.indicator.unwrap();
        assert!(shift == 0.25 && (scale - 0.1875f64.sqrt()).abs() < 1e-16);
    }

    #[test]
    fn a_spread_below_a_large_mean_is_not_lost() {
        let steps = steps(ColumnScale::Standard, MissingNumbers::Refused);
        let map = sums(&[Some(1e9), Some(1e9 + 1.0), Some(1e9 + 2.0)], &steps).map(&steps);
        assert_eq!(map.shift, 1e9 + 1.0);
        assert!((map.scale - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn what_left_leaves_nothing_and_a_constant_column_keeps_its_unit() {
        for scale in [ColumnScale::Standard, ColumnScale::MinMax] {
            let steps = steps(scale, MissingNumbers::Refused);
            let mut all = sums(&[Some(0.1), Some(1e40), Some(0.1), Some(0.3)], &steps);
            all.forget(Some(1e40), &steps);
            if all.lacks_extremes(&steps) {
                all.drop_extremes();
                [0.1, 0.1, 0.3]
                    .into_iter()
                    .for_each(|value| all.see(value, 1));
            }
            let fresh = sums(&[Some(0.1), Some(0.1), Some(0.3)], &steps);
            assert_eq!(all.map(&steps), fresh.map(&steps));
            all.forget(Some(0.3), &steps);
            if all.lacks_extremes(&steps) {
                all.drop_extremes();
                all.see(0.1, 2);
            }
            let map = all.map(&steps);
            assert!(
                map.scale == 1.0 && (map.shift - 0.1).abs() < 1e-16,
                "{map:?}"
            );
        }
    }

    /// A method that keeps the features shows no rows, so that the next extreme stays unknown,
    /// whatever value joins, until all rows are seen.
    #[test]
    fn an_extreme_that_left_is_unknown_until_all_rows_are_seen() {
        let steps = steps(ColumnScale::MinMax, MissingNumbers::Refused);
        let values = [0.0, 1.0, 5.0, 9.0];
        for (gone, joins) in [(9.0, 2.0), (9.0, 20.0), (0.0, 4.0), (0.0, -3.0)] {
            let mut all = sums(&values.map(Some), &steps);
            all.forget(Some(gone), &steps);
            assert!(all.lacks_extremes(&steps));
            all.learn(Some(joins), &steps);
            assert!(all.lacks_extremes(&steps), "{gone} left, {joins} joined");
            let kept = serde_json::to_string(&all).unwrap();
            assert!(gone == 0.0 || !kept.contains("9.0"), "{kept}");
            let left: Vec<f64> = values
                .into_iter()
                .filter(|value| *value != gone)
                .chain([joins])
                .collect();
            all.drop_extremes();
            left.iter().for_each(|value| all.see(*value, 1));
            let left: Vec<Option<f64>> = left.into_iter().map(Some).collect();
            assert_eq!(all.map(&steps), sums(&left, &steps).map(&steps));
        }
        // The last value takes its column along, and the next one is both extremes.
        let mut all = sums(&[Some(7.0)], &steps);
        all.forget(Some(7.0), &steps);
        assert!(!all.lacks_extremes(&steps));
        all.learn(Some(3.0), &steps);
        assert!(!all.lacks_extremes(&steps) && all.map(&steps).shift == 3.0);
    }
}
