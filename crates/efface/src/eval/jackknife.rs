//! Intervals by leaving out (Tukey's jackknife over blocks), for areas under the curve that come
//! from models.
//!
//! What is left out are pairs of neighbouring models, 2i and 2i + 1, or blocks of such pairs: the
//! two of a pair were drawn as opposites, so that their margins are not independent. Blocks are
//! few, so that quantiles are Student's.
//!
//! A cross-fitted area θ = ½(A₁ + A₂) needs more than that. A₁ judges the first half of the models
//! by an attacker who was fitted on the second, A₂ the other way round; every pair is a judge in
//! one of them and a teacher of the attacker in the other. With θ₋ₚ, θ₋q and θ₋ₚq without block p
//! of the first half, block q of the second, or both:
//!
//! ```text
//! V₁ = (g−1)/g · Σ_p (θ₋ₚ − mean)²        what the first half contributes, as judges and as teachers
//! V₂                                      the same of the second half
//! V₁₂ = ((g−1)/g)² · Σ_pq (θ₋ₚq − its row's mean − its column's mean + mean)²     what only both together contribute
//! C  = ((h₁ + h₂)/2)²                     h the standard error of a half when its attacker is held fixed
//! V  = max(V₁ + V₂ − V₁₂, ½(V₁ + V₂), sC)
//! s  = ½ + u·(¼ + 1/20r) + (1 − u)·2/m    u = exp(−(z/3.5)⁶), z = |θ − ½|/√C, r the rows, m the pairs of a half
//! ```
//!
//! V₁ and V₂ both hold the part V₁₂, which must be counted once. Around a coin this part is all
//! there is: whatever chance made alike in both halves moves A₁ and A₂ together, V₁ ≈ V₂ ≈ V₁₂, and
//! the difference V₁ + V₂ − V₁₂ is a poor estimate of the size of its terms; ½(V₁ + V₂) is the
//! better one there. sC is for a handful of rows, of which an attacker learns little more than a
//! sign: leaving one block out hardly ever turns a sign, so that V₁ and V₂ miss that both halves
//! turn together. C is the variance if the halves always erred together, ½C if they were
//! independent. Far from a coin no sign is in doubt, and the halves are independent but for what
//! few pairs miss of a skewed distribution; near one, where u is 1, s lies between. Its numbers
//! were chosen by simulation: `benches/coverage` prints how often the intervals cover.

use super::bootstrap::Interval;

/// Blocks that each half is dealt into, at most. More would cost more and change little: the
/// quantiles are near the normal ones.
pub(super) const MOST_BLOCKS: usize = 16;

/// Steps of Simpson's rule: the error is far below what a report shows.
const STEPS: usize = 512;

/// Areas of one half of the models: `without[j][s]` is judged without block j, by an attacker
/// fitted without block s. The last index of both stands for nothing left out.
pub(super) struct HalfAreas {
    pub(super) without: Vec<Vec<f64>>,
}

impl HalfAreas {
    fn blocks(&self) -> usize {
        self.without.len().saturating_sub(1)
    }

    /// The squared standard error when the attacker is held fixed.
    fn fixed_variance(&self) -> f64 {
        let blocks = self.blocks();
        let judged: Vec<f64> = (0..blocks)
            .map(|block| self.without[block][blocks])
            .collect();
        jackknife_variance(&judged)
    }
}

/// How much stands behind an area.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditSize {
    pub(super) rows: usize,
    /// Pairs of models in a half.
    pub(super) pairs: usize,
}

/// The interval of the mean of two areas that were fitted crosswise.
pub(super) fn cross_fitted_interval(
    halves: &[HalfAreas; 2],
    size: AuditSize,
    confidence: f64,
) -> Interval {
    let blocks = halves[0].blocks().min(halves[1].blocks());
    if blocks < 2 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let none = [halves[0].blocks(), halves[1].blocks()];
    // θ without block p of the first half and block q of the second.
    let theta = |p: usize, q: usize| (halves[0].without[p][q] + halves[1].without[q][p]) / 2.0;
    let first = jackknife_variance(&(0..blocks).map(|p| theta(p, none[1])).collect::<Vec<_>>());
    let second = jackknife_variance(&(0..blocks).map(|q| theta(none[0], q)).collect::<Vec<_>>());
    let table: Vec<Vec<f64>> = (0..blocks)
        .map(|p| (0..blocks).map(|q| theta(p, q)).collect())
        .collect();
    let both = interaction_variance(&table);
    let fixed = (halves[0].fixed_variance().sqrt() + halves[1].fixed_variance().sqrt()) / 2.0;
    let area = theta(none[0], none[1]);
    let together = fixed * fixed;
    let variance = (first + second - both)
        .max((first + second) / 2.0)
        .max(share_of_joint_errors(area, together, size) * together);
    // Welch and Satterthwaite: the halves have blocks − 1 degrees of freedom each.
    let squares = first * first + second * second;
    let freedom = (blocks as f64 - 1.0)
        * if squares > 0.0 {
            (first + second).powi(2) / squares
        } else {
            1.0
        };
    around(area, variance, freedom, confidence)
}

/// Which share of `together`, the variance of halves that always err together, is to be expected of
/// an area; s above.
fn share_of_joint_errors(area: f64, together: f64, size: AuditSize) -> f64 {
    let scaled = (area - 0.5).powi(2) / (3.5 * 3.5 * together.max(f64::MIN_POSITIVE));
    let doubt = (-scaled.powi(3)).exp();
    let turning = 0.25 + 0.05 / size.rows.max(1) as f64;
    let skewed = 2.0 / size.pairs.max(1) as f64;
    0.5 + doubt * turning + (1.0 - doubt) * skewed
}

/// The interval of an area without an attacker to fit, from the areas without one block each.
pub(super) fn jackknife_interval(area: f64, without: &[f64], confidence: f64) -> Interval {
    if without.len() < 2 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    around(
        area,
        jackknife_variance(without),
        without.len() as f64 - 1.0,
        confidence,
    )
}

fn around(area: f64, variance: f64, freedom: f64, confidence: f64) -> Interval {
    let reach = student_quantile(confidence, freedom) * variance.sqrt();
    Interval {
        low: (area - reach).max(0.0),
        high: (area + reach).min(1.0),
    }
}

/// (g−1)/g · Σ (θ₋ₚ − mean)².
fn jackknife_variance(without: &[f64]) -> f64 {
    let blocks = without.len() as f64;
    let mean = without.iter().sum::<f64>() / blocks;
    (blocks - 1.0) / blocks
        * without
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
}

/// ((g−1)/g)² · Σ of what is left of a square table when the means of its rows and columns are
/// taken out.
fn interaction_variance(table: &[Vec<f64>]) -> f64 {
    let blocks = table.len() as f64;
    let of_rows: Vec<f64> = table
        .iter()
        .map(|row| row.iter().sum::<f64>() / blocks)
        .collect();
    let of_columns: Vec<f64> = (0..table.len())
        .map(|q| table.iter().map(|row| row[q]).sum::<f64>() / blocks)
        .collect();
    let mean = of_rows.iter().sum::<f64>() / blocks;
    let mut sum = 0.0;
    for (row, of_row) in table.iter().zip(&of_rows) {
        for (value, of_column) in row.iter().zip(&of_columns) {
            sum += (value - of_row - of_column + mean).powi(2);
        }
    }
    ((blocks - 1.0) / blocks).powi(2) * sum
}

/// t with P(|T| ≤ t) = confidence for Student's T of ν degrees of freedom. With T = √ν·tan φ, the
/// density of φ is proportional to cos^{ν−1} φ, so that the whole is one bounded integral.
pub(super) fn student_quantile(confidence: f64, freedom: f64) -> f64 {
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    let integral = |to: f64| {
        let width = to / STEPS as f64;
        let inner: f64 = (1..STEPS)
            .map(|at| density(at as f64 * width) * if at % 2 == 1 { 4.0 } else { 2.0 })
            .sum();
        (density(0.0) + inner + density(to)) * width / 3.0
    };
    let whole = integral(std::f64::consts::FRAC_PI_2);
    let mut low = 0.0;
    let mut high = std::f64::consts::FRAC_PI_2;
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if integral(middle) < confidence * whole {
            low = middle;
        } else {
            high = middle;
        }
    }
    freedom.sqrt() * low.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of Student's t: 0.975 quantiles of 3, 7, 15 and 30 degrees of freedom, and the 0.95
    /// quantile of 10.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, confidence, expected) in [
            (3.0, 0.95, 3.18245),
            (7.0, 0.95, 2.36462),
            (15.0, 0.95, 2.13145),
            (30.0, 0.95, 2.04227),
            (10.0, 0.9, 1.81246),
        ] {
            let found = student_quantile(confidence, freedom);
            assert!((found - expected).abs() < 1e-5, "{freedom}: {found}");
        }
    }

    /// The jackknife variance of a mean is s²/n.
    #[test]
    fn the_variance_of_a_mean_is_the_textbook_one() {
        let sample = [1.0, 4.0, 2.0, 7.0, 6.0];
        let without: Vec<f64> = sample.iter().map(|x| (20.0 - x) / 4.0).collect();
        // s² = 6.5 around the mean 4.
        assert!((jackknife_variance(&without) - 6.5 / 5.0).abs() < 1e-12);
    }

    /// A sum of effects of rows and columns has no interaction; a product of centred effects is
    /// nothing else.
    #[test]
    fn interaction_is_what_rows_and_columns_do_not_explain() {
        let rows = [1.0, -2.0, 1.0];
        let columns = [3.0, 0.0, -3.0];
        let table = |of: fn(f64, f64) -> f64| -> Vec<Vec<f64>> {
            rows.iter()
                .map(|p| columns.iter().map(|q| of(*p, *q)).collect())
                .collect()
        };
        assert!(interaction_variance(&table(|p, q| p + q)) < 1e-30);
        let expected = (2.0f64 / 3.0).powi(2) * 6.0 * 18.0;
        assert!((interaction_variance(&table(|p, q| p * q)) - expected).abs() < 1e-12);
    }

    #[test]
    fn too_few_blocks_say_nothing() {
        assert_eq!(
            jackknife_interval(0.7, &[0.7], 0.95),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
        let half = || HalfAreas {
            without: vec![vec![0.7; 2]; 2],
        };
        let size = AuditSize { rows: 1, pairs: 1 };
        assert_eq!(
            cross_fitted_interval(&[half(), half()], size, 0.95),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
    }
}
