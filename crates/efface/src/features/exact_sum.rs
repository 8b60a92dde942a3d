//! Sums of numbers without any rounding. What a row added, it takes along to the last bit when it
//! leaves, whatever came and went in between, so that a mean after a forget is the mean of the rows
//! that stay.
//!
//! Every finite f64 is a whole multiple of 2⁻¹⁰⁷⁴. The sum is kept as such a multiple, in limbs of
//! 32 bits with room for carries (Kulisch and Miranker 1981).

use serde::{Deserialize, Serialize};

use super::FeatureError;
use crate::linalg::{DoubleWord, two_product};

/// Bits of a limb.
const LIMB: u32 = 32;
/// The power of two of the lowest bit.
const LOWEST: i32 = -1074;
/// Enough limbs for every finite f64, and for carries of more additions than there are rows.
const LIMBS: usize = 69;

/// A sum of finite numbers, exact.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "StoredSum", into = "StoredSum")]
pub(crate) struct ExactSum {
    limbs: Box<[i64; LIMBS]>,
    /// Additions since the carries were last moved on.
    additions: u32,
}

/// The limbs that are not zero, from the lowest on.
#[derive(Serialize, Deserialize)]
struct StoredSum {
    first: usize,
    limbs: Vec<i64>,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self {
            limbs: Box::new([0; LIMBS]),
            additions: 0,
        }
    }
}

/// Sums are equal when their values are, wherever their carries stand.
impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        let carried = |sum: &Self| {
            let mut sum = sum.clone();
            sum.carry();
            sum.limbs
        };
        carried(self) == carried(other)
    }
}

impl ExactSum {
    /// Adds a number, which must be finite.
    pub(crate) fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // A number without a leading one has the exponent of the least one that has it.
        let mantissa = if exponent == 0 {
            fraction
        } else {
            fraction | (1 << 52)
        };
        let place = exponent.max(1) - 1;
        let at = (place / LIMB) as usize;
        let wide = u128::from(mantissa) << (place % LIMB);
        for part in 0..3 {
            let digit = ((wide >> (part as u32 * LIMB)) & 0xffff_ffff) as i64;
            if digit != 0 {
                self.limbs[at + part] += if value < 0.0 { -digit } else { digit };
            }
        }
        self.additions += 1;
        // A limb has room for 2³¹ digits of 32 bits.
        if self.additions == 1 << 30 {
            self.carry();
        }
    }

    /// Adds a², whose two halves are exact.
    pub(crate) fn add_square(&mut self, value: f64, sign: f64) {
        let (square, rest) = two_product(value, value);
        // A value so large that its square overflows is refused by every model; here it only must
        // not spoil the sum.
        if square.is_finite() {
            self.add(sign * square);
            self.add(sign * rest);
        }
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        self.limbs
            .iter_mut()
            .zip(other.limbs.iter())
            .for_each(|(limb, more)| *limb += more);
    }

    /// Moves carries on, so that every limb but the last is one digit of 0 to 2³² − 1.
    fn carry(&mut self) {
        let mut carried = 0;
        for limb in self.limbs.iter_mut() {
            let sum = *limb + carried;
            carried = sum >> LIMB;
            *limb = sum & 0xffff_ffff;
        }
        // What leaves the last limb is its sign.
        self.limbs[LIMBS - 1] += carried << LIMB;
        self.additions = 0;
    }

    /// The sum in two words, about 106 bits. It follows from the value alone, not from how the
    /// value came to be.
    pub(crate) fn value(&self) -> DoubleWord {
        let mut digits = self.clone();
        digits.carry();
        let negative = digits.limbs[LIMBS - 1] < 0;
        if negative {
            digits.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            digits.carry();
        }
        let mut value = DoubleWord::default();
        let first = digits
            .limbs
            .iter()
            .rposition(|limb| *limb != 0)
            .unwrap_or(0);
        for at in (first.saturating_sub(4)..=first).rev() {
            let unit = LOWEST + at as i32 * LIMB as i32;
            value = value.plus(DoubleWord::new(scaled(digits.limbs[at] as f64, unit)));
        }
        if negative { value.times(-1.0) } else { value }
    }
}

/// `value · 2^power`, in two steps where one would leave the range of f64.
fn scaled(value: f64, power: i32) -> f64 {
    let half = power / 2;
    value * 2f64.powi(half) * 2f64.powi(power - half)
}

impl From<ExactSum> for StoredSum {
    fn from(mut sum: ExactSum) -> Self {
        sum.carry();
        let first = sum.limbs.iter().position(|limb| *limb != 0).unwrap_or(0);
        let last = sum
            .limbs
            .iter()
            .rposition(|limb| *limb != 0)
            .map_or(first, |last| last + 1);
        Self {
            first,
            limbs: sum.limbs[first..last].to_vec(),
        }
    }
}

impl TryFrom<StoredSum> for ExactSum {
    type Error = FeatureError;

    fn try_from(stored: StoredSum) -> Result<Self, FeatureError> {
        let mut sum = Self::default();
        let end = stored
            .first
            .checked_add(stored.limbs.len())
            .filter(|end| *end <= LIMBS);
        let Some(end) = end.filter(|_| {
            stored
                .limbs
                .iter()
                .all(|limb| limb.unsigned_abs() <= 1 << LIMB)
        }) else {
            return Err(FeatureError::Damaged(
                "a sum has more digits than a number".into(),
            ));
        };
        sum.limbs[stored.first..end].copy_from_slice(&stored.limbs);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_came_and_went_leaves_nothing() {
        let mut sum = ExactSum::default();
        for value in [0.1, 1e300, -3.5e-320, 7.0, f64::MIN_POSITIVE] {
            sum.add(value);
        }
        for value in [-1e300, 3.5e-320, -f64::MIN_POSITIVE, -7.0] {
            sum.add(value);
        }
        assert_eq!(sum.value().value(), 0.1);
        sum.add(-0.3);
        assert_eq!(sum.value().value(), 0.1 - 0.3);
        sum.add(0.3);
        sum.add(-0.1);
        assert_eq!(StoredSum::from(sum).limbs, Vec::<i64>::new());
    }

    proptest! {
        #[test]
        fn order_and_storage_do_not_matter(values in prop::collection::vec(-1e9..1e9f64, 1..30)) {
            let mut forward = ExactSum::default();
            let mut backward = ExactSum::default();
            values.iter().for_each(|&v| { forward.add(v); forward.add_square(v, 1.0); });
            values.iter().rev().for_each(|&v| { backward.add_square(v, 1.0); backward.add(v); });
            prop_assert_eq!(forward.value(), backward.value());
            let json = serde_json::to_string(&forward).unwrap();
            let read: ExactSum = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read.value(), forward.value());
            let plain: f64 = values.iter().map(|v| v + v * v).sum();
            prop_assert!((forward.value().value() - plain).abs() <= 1e-12 * values.iter().map(|v| v * v).sum::<f64>());
        }
    }
}
