//! Intervals by resampling (Efron 1979, percentile form). What is drawn again are clusters, such as
//! whole oracles: games that share a model are not independent, and drawing them one by one would
//! make intervals too narrow.

use rand::RngExt;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::random::seeded;

/// How to resample.
///
/// | setting | default | range |
/// |---|---|---|
/// | `resamples` | 1000 | 20 or more |
/// | `confidence` | 0.95 | above 0.5 and below 1 |
/// | `seed` | 0 | |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// How often the clusters are resampled.
    pub resamples: usize,
    /// The share of resamples inside the interval.
    pub confidence: f64,
    /// Seed of the resampling.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            resamples: 1000,
            confidence: 0.95,
            seed: 0,
        }
    }
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside, the ends included.
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

impl Bootstrap {
    pub(super) fn check(&self) -> Result<()> {
        if self.resamples < 20 {
            let value = self.resamples.to_string();
            return Err(Error::Parameter {
                name: "resamples",
                value,
                range: "20 or more",
            });
        }
        if !(self.confidence > 0.5 && self.confidence < 1.0) {
            let value = self.confidence.to_string();
            return Err(Error::Parameter {
                name: "confidence",
                value,
                range: "above 0.5 and below 1",
            });
        }
        Ok(())
    }
}

/// The intervals of several numbers that one resample of `clusters` clusters gives. `statistic` is
/// told how often each cluster was drawn; it answers None where the resample says nothing, such as
/// one without a single member.
pub fn bootstrap(
    clusters: usize,
    settings: &Bootstrap,
    mut statistic: impl FnMut(&[u32]) -> Option<Vec<f64>>,
) -> Result<Vec<Interval>> {
    settings.check()?;
    if clusters == 0 {
        return Err(Error::NoRows);
    }
    let mut rng = seeded(settings.seed);
    let mut counts = vec![0u32; clusters];
    let mut found: Vec<Vec<f64>> = Vec::new();
    for _ in 0..settings.resamples {
        counts.fill(0);
        (0..clusters).for_each(|_| counts[rng.random_range(0..clusters)] += 1);
        for (at, value) in statistic(&counts)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            if at == found.len() {
                found.push(Vec::with_capacity(settings.resamples));
            }
            found[at].push(value);
        }
    }
    let tail = (1.0 - settings.confidence) / 2.0;
    let mut interval = |values: &mut Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        Interval {
            low: quantile(values, tail),
            high: quantile(values, 1.0 - tail),
        }
    };
    Ok(found.iter_mut().map(&mut interval).collect())
}

/// The quantile of sorted values, between neighbours in proportion (numpy's default).
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let low = sorted[place.floor() as usize];
    let high = sorted[place.ceil() as usize];
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};

    /// The mean of 40 standard normals: a 90 % interval must hold the truth about nine times in
    /// ten. The percentile interval is known to fall a little short at this size; three standard
    /// errors of 300 trials are allowed besides.
    #[test]
    fn an_interval_covers_a_known_mean_as_often_as_it_says() {
        let trials = 300;
        let covered = (0..trials)
            .filter(|&trial| {
                let mut rng = seeded(trial);
                let sample: Vec<f64> = StandardNormal.sample_iter(&mut rng).take(40).collect();
                let settings = Bootstrap {
                    resamples: 200,
                    confidence: 0.9,
                    seed: trial,
                };
                let mean = |counts: &[u32]| {
                    let sum: f64 = counts
                        .iter()
                        .zip(&sample)
                        .map(|(n, x)| f64::from(*n) * x)
                        .sum();
                    Some(vec![sum / 40.0])
                };
                bootstrap(40, &settings, mean).unwrap()[0].covers(0.0)
            })
            .count() as f64
            / trials as f64;
        assert!((0.83..=0.95).contains(&covered), "{covered}");
    }

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy 2.4: np.quantile([1, 2, 4, 8], [0.0, 0.1, 0.5, 0.975]) = [1, 1.3, 3, 7.7]
        let sorted = [1.0, 2.0, 4.0, 8.0];
        for (share, expected) in [(0.0, 1.0), (0.1, 1.3), (0.5, 3.0), (0.975, 7.7)] {
            assert!((quantile(&sorted, share) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn settings_have_a_range() {
        let bad = |settings: Bootstrap| bootstrap(3, &settings, |_| None).unwrap_err().to_string();
        assert!(
            bad(Bootstrap {
                resamples: 5,
                ..Bootstrap::default()
            })
            .starts_with("resamples = 5")
        );
        assert!(
            bad(Bootstrap {
                confidence: 1.0,
                ..Bootstrap::default()
            })
            .starts_with("confidence = 1")
        );
        assert_eq!(
            bootstrap(0, &Bootstrap::default(), |_| None),
            Err(Error::NoRows)
        );
    }
}
