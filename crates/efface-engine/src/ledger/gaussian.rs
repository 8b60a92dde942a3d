//! How much Gaussian noise hides a distance: the analytic mechanism of Balle and Wang, "Improving
//! the Gaussian Mechanism for Differential Privacy" (2018), theorem 8. Noise of standard deviation
//! σ makes two vectors of distance Δ (ε, δ)-indistinguishable exactly when
//!
//! Φ(Δ/2σ − εσ/Δ) − e^ε·Φ(−Δ/2σ − εσ/Δ) ≤ δ.
//!
//! The left side falls with σ, so that the least σ is found by halving. It holds for every ε, where
//! the textbook's Δ·√(2·ln(1.25/δ))/ε holds below 1 only and asks for more noise there.

/// The ε and δ for which the search is exact to nine digits.
pub(crate) const EPSILON: std::ops::RangeInclusive<f64> = 1e-3..=100.0;
pub(crate) const DELTA: std::ops::RangeInclusive<f64> = 1e-12..=0.5;

/// The least σ for a distance of 1, rounded up.
pub(crate) fn deviation(epsilon: f64, delta: f64) -> f64 {
    let mut low = 1e-3_f64;
    let mut high = 1e6_f64;
    // Halving the logarithm: 80 times is beyond the last bit.
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if excess(middle, epsilon) <= delta {
            high = middle
        } else {
            low = middle
        }
    }
    high
}

/// The least ε at this δ where the distance is μ standard deviations of the noise, rounded up.
pub(crate) fn epsilon(mu: f64, delta: f64) -> f64 {
    // Two vectors this near are indistinguishable at ε = 0 already.
    if mu == 0.0 || excess(1.0 / mu, 0.0) <= delta {
        return 0.0;
    }
    let mut low = 0.0;
    let mut high = 1.0;
    while excess(1.0 / mu, high) > delta && high < f64::MAX / 2.0 {
        low = high;
        high *= 2.0;
    }
    // Halving: 80 times is beyond the last bit.
    for _ in 0..80 {
        let middle = low + (high - low) / 2.0;
        if excess(1.0 / mu, middle) <= delta {
            high = middle
        } else {
            low = middle
        }
    }
    high
}

/// The least δ at this σ and ε, for a distance of 1.
fn excess(sigma: f64, epsilon: f64) -> f64 {
    let half = 0.5 / sigma;
    let shift = epsilon * sigma;
    log_normal(half - shift).exp() - (epsilon + log_normal(-half - shift)).exp()
}

/// ln Φ(x), also where Φ(x) is too small for a number.
fn log_normal(x: f64) -> f64 {
    if x > -20.0 {
        return (0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)).ln();
    }
    let square = 1.0 / (x * x);
    let series = 1.0 - square * (1.0 - 3.0 * square * (1.0 - 5.0 * square * (1.0 - 7.0 * square)));
    -0.5 * x * x - (-x * (2.0 * std::f64::consts::PI).sqrt()).ln() + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_formula_in_sixty_digits() {
        // mpmath 1.3.0, 60 digits, the formula above solved by bisection.
        let known = [
            (0.001, 1e-6, 2436.55249374858),
            (0.001, 1e-12, 5412.30219384393),
            (0.1, 1e-5, 30.7495661319775),
            (1.0, 1e-5, 3.73063163481594),
            (1.0, 1e-12, 6.55782206745885),
            (5.0, 1e-6, 0.98004900030921),
            (20.0, 1e-9, 0.359812086654593),
            (100.0, 1e-12, 0.113546175556794),
            (2.0, 0.5, 0.411047839580516),
        ];
        for (epsilon, delta, sigma) in known {
            let found = deviation(epsilon, delta);
            assert!(
                (found / sigma - 1.0).abs() < 1e-8,
                "ε {epsilon}, δ {delta}: {found} and {sigma}"
            );
        }
    }

    #[test]
    fn epsilon_equals_the_formula_in_sixty_digits() {
        // mpmath 1.3.0, 60 digits, the formula above solved by bisection.
        let known = [
            (0.01, 1e-12, 0.0607522106297862),
            (0.1, 1e-5, 0.340669364684326),
            (0.26805, 1e-5, 0.999995398486671),
            (1.0, 1e-6, 4.88655411746221),
            (3.0, 0.1, 7.52443606884858),
            (10.0, 1e-6, 96.7172719638677),
            (50.0, 1e-9, 1548.94602493892),
        ];
        for (mu, delta, known) in known {
            let found = epsilon(mu, delta);
            assert!(
                (found / known - 1.0).abs() < 1e-8,
                "μ {mu}, δ {delta}: {found} and {known}"
            );
        }
        assert_eq!((epsilon(0.0, 1e-6), epsilon(0.1, 0.1)), (0.0, 0.0));
        assert!((epsilon(1.0 / deviation(1.0, 1e-5), 1e-5) - 1.0).abs() < 1e-8);
    }

    #[test]
    fn never_more_than_the_textbook_and_less_with_a_larger_promise() {
        for delta in [1e-9, 1e-6, 1e-3] {
            for epsilon in [0.01_f64, 0.1, 0.5, 0.99] {
                assert!(deviation(epsilon, delta) < (2.0 * (1.25 / delta).ln()).sqrt() / epsilon);
                assert!(deviation(2.0 * epsilon, delta) < deviation(epsilon, delta));
                assert!(deviation(epsilon, 10.0 * delta) < deviation(epsilon, delta));
            }
        }
    }
}
