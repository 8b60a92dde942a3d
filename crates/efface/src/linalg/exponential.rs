//! e^x of many numbers at once, for the probabilities of many classes: one at a time, exponentials
//! would take as long as the products around them.

use super::widest;

/// Below this, e^x is near the least number there is, and is left to the standard library.
const LEAST: f64 = -700.0;

/// 1.5·2^52: adding it rounds a number to an integer, which the low bits of the sum then hold.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// ln 2 in two parts, of which the first has zeros for its last bits: an integer times it is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/k! from k = 13 down to 2.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// e^x for x from −700 to 0, to less than two units of the last digit: 2ⁿ·e^r with |r| ≤ ½ ln 2,
/// and e^r by its series, whose fourteenth term is below 1e-17.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    let shifted = x * std::f64::consts::LOG2_E + ROUNDING;
    let power = shifted - ROUNDING;
    let r = (x - power * LN_2_HIGH) - power * LN_2_LOW;
    let mut series = INVERSE_FACTORIALS[0];
    for term in &INVERSE_FACTORIALS[1..] {
        series = series * r + term;
    }
    let exponent = shifted
        .to_bits()
        .wrapping_sub(ROUNDING.to_bits())
        .wrapping_add(1023)
        << 52;
    (1.0 + (r + r * r * series)) * f64::from_bits(exponent)
}

/// e^x for x up to 0 in single precision, to a few units of the last digit; what is below the least
/// normal number becomes that one.
#[inline(always)]
pub(crate) fn single_exponential(x: f32) -> f32 {
    const ROUNDING: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let power = shifted - ROUNDING;
    let r = (x - power * 0.693_145_75) - power * 1.428_606_8e-6;
    let series = 0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))));
    let exponent = shifted
        .to_bits()
        .wrapping_sub(ROUNDING.to_bits())
        .wrapping_add(127)
        << 23;
    (1.0 + (r + r * r * series)) * f32::from_bits(exponent)
}

/// Replaces numbers that are at most 0 by their exponentials.
pub(crate) fn exponentials_in_place(values: &mut [f64]) {
    if values.iter().any(|x| x.is_nan() || *x < LEAST) {
        values.iter_mut().for_each(|x| *x = x.exp());
        return;
    }
    widest(
        #[inline(always)]
        || values.iter_mut().for_each(|x| *x = exponential(*x)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_standard_library() {
        let mut values: Vec<f64> = (0..20_000).map(|i| -f64::from(i) * 0.034_999).collect();
        values.extend([-0.0, -1e-300, -1e-9, -700.0, -std::f64::consts::LN_2]);
        let truth: Vec<f64> = values.iter().map(|x| x.exp()).collect();
        exponentials_in_place(&mut values);
        for (found, truth) in values.iter().zip(&truth) {
            assert!(
                (found - truth).abs() <= 2.0 * f64::EPSILON * truth,
                "{found:e} {truth:e}"
            );
        }
    }

    #[test]
    fn exponentials_in_single_precision_are_those_of_the_standard_library() {
        for i in 0..20_000 {
            let x = -(i as f32) * 0.004_3;
            let truth = f64::from(x).exp();
            let apart = (f64::from(single_exponential(x)) - truth).abs();
            assert!(
                apart <= 4.0 * f64::from(f32::EPSILON) * truth,
                "{x}: {apart:e} of {truth:e}"
            );
        }
        assert_eq!(single_exponential(0.0), 1.0);
        assert!(single_exponential(-1e30) < 2e-38);
    }

    #[test]
    fn what_is_far_below_zero_or_no_number_is_left_to_the_library() {
        let mut values = [-800.0, -740.0, f64::NEG_INFINITY, -1.0];
        exponentials_in_place(&mut values);
        assert_eq!(values, [0.0, (-740f64).exp(), 0.0, (-1f64).exp()]);
        let mut values = [f64::NAN, -1.0];
        exponentials_in_place(&mut values);
        assert!(values[0].is_nan() && values[1] == (-1f64).exp());
    }
}
