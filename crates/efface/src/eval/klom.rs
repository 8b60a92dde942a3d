//! KLoM: how different the margins of unlearned models are from those of retrained ones, row by row (Georgiev et al. 2024,
//! "Attribute-to-Delete").
//!
//! For a row x, the margins of many oracles (models fitted without the forgotten rows, each on its own draw of the others) are
//! one distribution, the margins of as many unlearned models another. KLoM(x) = KL(oracles ‖ unlearned), in nats, clipped
//! at [`KLOM_CLIP`] as there. Two estimates: of normal distributions fitted to both, in closed form, which is what the
//! audit uses because it takes few samples; and of histograms of equal bins over the range of both, where a bin that
//! only oracles reach is worth the clip. 0 is retraining.

use serde::Serialize;

use super::bootstrap::quantile;
use crate::error::{Error, Result};

/// The largest KLoM that is told apart.
pub const KLOM_CLIP: f64 = 12.0;

/// Spreads below this share of the margin are rounding.
const FLOOR: f64 = 1e-9;

/// KLoM over many rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Klom {
    /// Rows.
    pub rows: usize,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// The 95th percentile, which the literature reports.
    pub p95: f64,
    /// The worst row.
    pub worst: f64,
}

/// KL(N(m₁, s₁²) ‖ N(m₂, s₂²)) = log s₂/s₁ + (s₁² + (m₁ − m₂)²)/(2s₂²) − ½.
pub fn normal_divergence((m1, s1): (f64, f64), (m2, s2): (f64, f64)) -> f64 {
    (s2 / s1).ln() + (s1 * s1 + (m1 - m2).powi(2)) / (2.0 * s2 * s2) - 0.5
}

/// KLoM of one row by normal distributions; at least two samples each.
pub fn klom(oracles: &[f64], unlearned: &[f64]) -> Result<f64> {
    check(oracles, unlearned)?;
    let (p, q) = (normal(oracles), normal(unlearned));
    let floor = FLOOR * (1.0 + p.0.abs().max(q.0.abs()));
    Ok(normal_divergence((p.0, p.1.max(floor)), (q.0, q.1.max(floor))).clamp(0.0, KLOM_CLIP))
}

/// KLoM of one row by histograms of `bins` equal bins over the range of all samples.
pub fn klom_histogram(oracles: &[f64], unlearned: &[f64], bins: usize) -> Result<f64> {
    check(oracles, unlearned)?;
    if !(2..=10_000).contains(&bins) {
        return Err(Error::Parameter { name: "bins", value: bins.to_string(), range: "2 to 10 000" });
    }
    let all = || oracles.iter().chain(unlearned);
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    if low == high {
        return Ok(0.0);
    }
    let share = |samples: &[f64]| {
        let mut shares = vec![0.0; bins];
        for x in samples {
            let bin = ((x - low) / (high - low) * bins as f64) as usize;
            shares[bin.min(bins - 1)] += 1.0 / samples.len() as f64;
        }
        shares
    };
    let sum: f64 = (share(oracles).into_iter().zip(share(unlearned)))
        .filter(|(p, _)| *p > 0.0)
        .map(|(p, q)| if q > 0.0 { p * (p / q).ln() } else { f64::INFINITY })
        .sum();
    Ok(sum.clamp(0.0, KLOM_CLIP))
}

/// Sums up the rows.
pub fn klom_of(mut values: Vec<f64>) -> Result<Klom> {
    if values.is_empty() {
        return Err(Error::NoRows);
    }
    values.sort_unstable_by(f64::total_cmp);
    Ok(Klom {
        rows: values.len(),
        mean: values.iter().sum::<f64>() / values.len() as f64,
        median: quantile(&values, 0.5),
        p95: quantile(&values, 0.95),
        worst: values[values.len() - 1],
    })
}

fn check(oracles: &[f64], unlearned: &[f64]) -> Result<()> {
    for (what, samples) in [("oracle margins", oracles), ("unlearned margins", unlearned)] {
        if samples.len() < 2 {
            let advice = "a distribution needs two at least; ask for more oracles";
            return Err(Error::TooFew { what, found: samples.len(), needed: 2, advice });
        }
        if let Some(value) = samples.iter().find(|value| !value.is_finite()) {
            return Err(Error::Parameter { name: "margin", value: value.to_string(), range: "finite" });
        }
    }
    Ok(())
}

/// Mean and standard deviation, with n − 1.
pub(super) fn normal(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy-free closed forms: KL(N(0,1) ‖ N(1,1)) = ½, KL(N(0,1) ‖ N(0,4)) = ln 2 + 1/8 − ½.
    #[test]
    fn normals_have_their_closed_form() {
        assert!((normal_divergence((0.0, 1.0), (1.0, 1.0)) - 0.5).abs() < 1e-15);
        assert!((normal_divergence((0.0, 1.0), (0.0, 2.0)) - (2f64.ln() + 0.125 - 0.5)).abs() < 1e-15);
        assert_eq!(normal_divergence((3.0, 2.0), (3.0, 2.0)), 0.0);
        // Samples of mean 0 and variance 1 (n − 1), and the same moved by 1 and doubled.
        let half = (1.5f64).sqrt() / 2f64.sqrt();
        let a = [-half, half, -half, half];
        let b: Vec<f64> = a.iter().map(|x| 1.0 + 2.0 * x).collect();
        let expected = normal_divergence((0.0, 1.0), (1.0, 2.0));
        assert!((klom(&a, &b).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn histograms_of_known_shares() {
        // Shares (¾, ¼) against (½, ½): ¾·ln 1.5 + ¼·ln ½.
        let expected = 0.75 * 1.5f64.ln() + 0.25 * 0.5f64.ln();
        let found = klom_histogram(&[0.0, 0.0, 0.0, 1.0], &[0.0, 0.0, 1.0, 1.0], 2).unwrap();
        assert!((found - expected).abs() < 1e-15);
        assert_eq!(klom_histogram(&[0.0, 1.0], &[1.0, 1.0], 2).unwrap(), KLOM_CLIP);
        assert_eq!(klom_histogram(&[2.0, 2.0], &[2.0, 2.0], 20).unwrap(), 0.0);
    }

    #[test]
    fn equal_samples_are_no_distance_even_without_spread() {
        assert_eq!(klom(&[1.0, 1.0], &[1.0, 1.0]).unwrap(), 0.0);
        assert!(klom(&[1.0, 1.0], &[1.0 + 1e-13, 1.0]).unwrap() < 1e-3);
        assert_eq!(klom(&[1.0, 1.0], &[2.0, 2.0]).unwrap(), KLOM_CLIP);
    }

    #[test]
    fn bad_samples_are_refused() {
        assert!(klom(&[1.0], &[1.0, 2.0]).unwrap_err().to_string().contains("oracle margins: 1"));
        assert!(klom(&[1.0, f64::NAN], &[1.0, 2.0]).unwrap_err().to_string().starts_with("margin = NaN"));
        assert!(klom_histogram(&[1.0, 2.0], &[1.0, 2.0], 1).is_err());
        assert!(klom_of(Vec::new()).is_err());
    }
}
