//! KLoM: how different the margins of unlearned models are from those of retrained ones, row by row
//! (Georgiev et al. 2024, "Attribute-to-Delete").
//!
//! For a row x, the margins of retrained models are one distribution, those of unlearned models
//! another. KLoM(x) = KL(retrained ‖ unlearned), in nats; 0 is retraining. Which models make up the
//! two samples is the question:
//!
//! - **unpaired**, as in the literature: the retrained models and the unlearned ones are different
//!   models, each on its own draw of the other rows. Two samples of one distribution are then not
//!   equal, and KLoM has a floor (below).
//! - **paired**: every model is compared with its own retraining, on the same draw. Chance nearly
//!   cancels, and what a method leaves is seen far below the floor.
//!
//! Two estimates. [`normal_klom`] fits a normal distribution to both samples and takes the closed
//! form, clipped at [`KLOM_CLIP`]. [`binned_klom`] is that of the literature: margins are cut off
//! at ±100, the range of both samples is divided into [`KLOM_BINS`] equal bins, every bin of both
//! histograms gets 1e-5 added to its share, and both are divided by their sum. A bin that one
//! sample does not reach is thus treated alike on both sides, and is worth at most ln 1e5 = 11.5
//! nats.
//!
//! The floor, for two samples of m margins of one normal distribution: the normal estimate has a
//! mean of 2/m and a 95th percentile of 6/m to first order (both have two parameters, so that m·KL
//! is near a χ² of two degrees of freedom). The binned one counts bins that one sample happens to
//! miss, which is far more: 1.7 on the mean at m = 32, 0.26 at 128, 0.011 at 2,000.

use serde::Serialize;

use super::bootstrap::quantile;
use crate::error::{Error, Result};

/// The largest KLoM that is reported: larger values are cut off here.
pub const KLOM_CLIP: f64 = 12.0;
/// Bins of [`binned_klom`].
pub const KLOM_BINS: usize = 20;

/// Margins of the binned estimate are cut off here.
const MARGIN_LIMIT: f64 = 100.0;
/// What every bin of both histograms gets on top of its share.
const EMPTY_SHARE: f64 = 1e-5;
/// Spreads below this share of the margin are rounding.
const FLOOR: f64 = 1e-9;

/// KLoM over many rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KlomQuantiles {
    /// How many rows were compared.
    pub rows: usize,
    /// The mean over the rows.
    pub mean: f64,
    /// The median over the rows.
    pub median: f64,
    /// The 95th percentile, which the literature reports.
    pub p95: f64,
    /// The largest value of a row.
    pub worst: f64,
}

/// Every model against its own retraining: the normal estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedKlom {
    /// KLoM of the rows to forget, over the models that had them.
    pub forgotten: KlomQuantiles,
    /// KLoM of rows that stay, over all models.
    pub retained: KlomQuantiles,
}

/// Unlearned models against other models that were retrained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UnpairedKlom {
    /// KLoM of the rows to forget: models that had the row and unlearned it, against models that
    /// never had it.
    pub forgotten: KlomQuantiles,
    /// KLoM of rows that stay: one half of the models against the other.
    pub retained: KlomQuantiles,
    /// As `forgotten`, by histograms.
    pub binned_forgotten: KlomQuantiles,
    /// As `retained`, by histograms.
    pub binned_retained: KlomQuantiles,
}

/// KL(N(m₁, s₁²) ‖ N(m₂, s₂²)) = log s₂/s₁ + (s₁² + (m₁ − m₂)²)/(2s₂²) − ½.
pub fn normal_divergence((m1, s1): (f64, f64), (m2, s2): (f64, f64)) -> f64 {
    (s2 / s1).ln() + (s1 * s1 + (m1 - m2).powi(2)) / (2.0 * s2 * s2) - 0.5
}

/// KLoM of one row by normal distributions fitted to both samples; at least two margins each.
pub fn normal_klom(retrained: &[f64], unlearned: &[f64]) -> Result<f64> {
    check(retrained, unlearned)?;
    let p = normal(retrained);
    let q = normal(unlearned);
    let floor = FLOOR * (1.0 + p.0.abs().max(q.0.abs()));
    Ok(normal_divergence((p.0, p.1.max(floor)), (q.0, q.1.max(floor))).clamp(0.0, KLOM_CLIP))
}

/// KLoM of one row by histograms; at least two margins each.
pub fn binned_klom(retrained: &[f64], unlearned: &[f64]) -> Result<f64> {
    check(retrained, unlearned)?;
    let cut = |margin: &f64| margin.clamp(-MARGIN_LIMIT, MARGIN_LIMIT);
    let all = || retrained.iter().chain(unlearned).map(cut);
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(f64::NEG_INFINITY, f64::max);
    if low == high {
        return Ok(0.0);
    }
    let shares = |samples: &[f64]| {
        let mut shares = [EMPTY_SHARE; KLOM_BINS];
        for margin in samples.iter().map(cut) {
            let bin = ((margin - low) / (high - low) * KLOM_BINS as f64) as usize;
            shares[bin.min(KLOM_BINS - 1)] += 1.0 / samples.len() as f64;
        }
        shares.map(|share| share / (1.0 + KLOM_BINS as f64 * EMPTY_SHARE))
    };
    let sum: f64 = shares(retrained)
        .iter()
        .zip(shares(unlearned))
        .map(|(p, q)| p * (p / q).ln())
        .sum();
    Ok(sum.max(0.0))
}

/// Sums up the rows.
pub fn klom_quantiles(mut values: Vec<f64>) -> Result<KlomQuantiles> {
    if values.is_empty() {
        return Err(Error::NoRows);
    }
    values.sort_unstable_by(f64::total_cmp);
    Ok(KlomQuantiles {
        rows: values.len(),
        mean: values.iter().sum::<f64>() / values.len() as f64,
        median: quantile(&values, 0.5),
        p95: quantile(&values, 0.95),
        worst: values[values.len() - 1],
    })
}

fn check(retrained: &[f64], unlearned: &[f64]) -> Result<()> {
    for (what, samples) in [
        ("retrained margins", retrained),
        ("unlearned margins", unlearned),
    ] {
        if samples.len() < 2 {
            let advice = "a distribution needs two at least; ask for more oracles";
            return Err(Error::TooFew {
                what,
                found: samples.len(),
                needed: 2,
                advice,
            });
        }
        if let Some(value) = samples.iter().find(|value| !value.is_finite()) {
            return Err(Error::Parameter {
                name: "margin",
                value: value.to_string(),
                range: "finite",
            });
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
    use rand_distr::{Distribution, StandardNormal};

    /// scipy-free closed forms: KL(N(0,1) ‖ N(1,1)) = ½, KL(N(0,1) ‖ N(0,4)) = ln 2 + 1/8 − ½.
    #[test]
    fn normals_have_their_closed_form() {
        assert!((normal_divergence((0.0, 1.0), (1.0, 1.0)) - 0.5).abs() < 1e-15);
        assert!(
            (normal_divergence((0.0, 1.0), (0.0, 2.0)) - (2f64.ln() + 0.125 - 0.5)).abs() < 1e-15
        );
        assert_eq!(normal_divergence((3.0, 2.0), (3.0, 2.0)), 0.0);
        // Samples of mean 0 and variance 1 (n − 1), and the same moved by 1 and doubled.
        let half = (1.5f64).sqrt() / 2f64.sqrt();
        let a = [-half, half, -half, half];
        let b: Vec<f64> = a.iter().map(|x| 1.0 + 2.0 * x).collect();
        let expected = normal_divergence((0.0, 1.0), (1.0, 2.0));
        assert!((normal_klom(&a, &b).unwrap() - expected).abs() < 1e-12);
    }

    fn draws(seed: u64, count: usize, mean: f64, spread: f64) -> Vec<f64> {
        let rng = crate::random::seeded(seed);
        let sample: Vec<f64> = StandardNormal.sample_iter(rng).take(count).collect();
        sample.iter().map(|x| mean + spread * x).collect()
    }

    /// Two samples of one distribution: what the estimates say of 400 rows where nothing differs.
    #[test]
    fn samples_of_one_distribution_have_the_floor_that_is_documented() {
        for (count, binned_mean) in [(32, 1.7), (128, 0.26), (2_000, 0.011)] {
            let both: Vec<(Vec<f64>, Vec<f64>)> = (0..400)
                .map(|row| {
                    (
                        draws(2 * row, count, 3.0, 2.0),
                        draws(2 * row + 1, count, 3.0, 2.0),
                    )
                })
                .collect();
            let of = |klom: fn(&[f64], &[f64]) -> Result<f64>| {
                klom_quantiles(both.iter().map(|(a, b)| klom(a, b).unwrap()).collect()).unwrap()
            };
            let normal = of(normal_klom);
            let binned = of(binned_klom);
            let floor = 2.0 / count as f64;
            assert!(
                (0.8..1.3).contains(&(normal.mean / floor)),
                "{count}: {normal:?}"
            );
            assert!(
                (0.7..1.4).contains(&(normal.p95 / (3.0 * floor))),
                "{count}: {normal:?}"
            );
            assert!(
                (0.8..1.2).contains(&(binned.mean / binned_mean)),
                "{count}: {binned:?}"
            );
        }
    }

    /// KL(N(0,1) ‖ N(1,1)) = ½ and KL(N(0,1) ‖ N(0,4)) = 0.318 from 20,000 draws each: the normal
    /// estimate within 3 %, the binned one within 10 %, because bins of a width of about half a
    /// standard deviation blur the difference.
    #[test]
    fn known_distances_of_normals_are_found() {
        let count = 20_000;
        let truth = draws(1, count, 0.0, 1.0);
        for (mean, spread) in [(1.0, 1.0), (0.0, 2.0), (-0.5, 1.0)] {
            let expected = normal_divergence((0.0, 1.0), (mean, spread));
            let other = draws(2, count, mean, spread);
            let normal = normal_klom(&truth, &other).unwrap();
            assert!(
                (normal / expected - 1.0).abs() < 0.03,
                "{mean}, {spread}: {normal} for {expected}"
            );
            let binned = binned_klom(&truth, &other).unwrap();
            assert!(
                (binned / expected - 1.0).abs() < 0.1,
                "{mean}, {spread}: {binned} for {expected}"
            );
        }
    }

    #[test]
    fn histograms_of_known_shares() {
        // Shares (¾, ¼) against (½, ½) in the outer bins: ¾·ln 1.5 + ¼·ln ½, but for the 1e-5 of
        // the bins.
        let expected = 0.75 * 1.5f64.ln() + 0.25 * 0.5f64.ln();
        let found = binned_klom(&[0.0, 0.0, 0.0, 1.0], &[0.0, 0.0, 1.0, 1.0]).unwrap();
        assert!((found - expected).abs() < 1e-4, "{found}");
        assert_eq!(binned_klom(&[2.0, 2.0], &[2.0, 2.0]).unwrap(), 0.0);
        // Beyond the limit all margins are alike.
        assert_eq!(binned_klom(&[150.0, 200.0], &[300.0, 1e9]).unwrap(), 0.0);
    }

    /// Bins that only one side reaches cost the same whichever side it is, and samples that share
    /// no bin cost the most there is.
    #[test]
    fn empty_bins_are_treated_alike_on_both_sides() {
        let apart = |a: &[f64], b: &[f64]| binned_klom(a, b).unwrap();
        let one = apart(&[0.0, 0.0], &[1.0, 1.0]);
        assert_eq!(one, apart(&[1.0, 1.0], &[0.0, 0.0]));
        // ln((1 + ε)/ε), once: nearly all of one side lies where the other has only ε.
        assert!(
            (one - (1.0 + 1e5f64).ln()).abs() < 0.01 && one < KLOM_CLIP,
            "{one}"
        );
        // Shares (1, 0) against (½, ½), and the other way round: ln 2, and ½ln½ + ½ln(½/ε).
        let half = apart(&[0.0, 0.0], &[0.0, 1.0]);
        assert!((half - 2f64.ln()).abs() < 1e-3, "{half}");
        let other = apart(&[0.0, 1.0], &[0.0, 0.0]);
        assert!(
            (other - (0.5 * 0.5f64.ln() + 0.5 * 0.5e5f64.ln())).abs() < 1e-2,
            "{other}"
        );
    }

    #[test]
    fn equal_samples_are_no_distance_even_without_spread() {
        assert_eq!(normal_klom(&[1.0, 1.0], &[1.0, 1.0]).unwrap(), 0.0);
        assert!(normal_klom(&[1.0, 1.0], &[1.0 + 1e-13, 1.0]).unwrap() < 1e-3);
        assert_eq!(normal_klom(&[1.0, 1.0], &[2.0, 2.0]).unwrap(), KLOM_CLIP);
    }

    #[test]
    fn bad_samples_are_refused() {
        let one_too_few = normal_klom(&[1.0], &[1.0, 2.0]).unwrap_err().to_string();
        assert!(one_too_few.contains("retrained margins: 1"));
        assert!(
            normal_klom(&[1.0, f64::NAN], &[1.0, 2.0])
                .unwrap_err()
                .to_string()
                .starts_with("margin = NaN")
        );
        assert!(binned_klom(&[1.0, 2.0], &[1.0]).is_err());
        assert!(klom_quantiles(Vec::new()).is_err());
    }
}
