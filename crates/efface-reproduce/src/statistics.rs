//! Few numbers out of many: means and medians with their standard errors.

/// A sample in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleSummary {
    pub(crate) trials: usize,
    pub(crate) mean: f64,
    /// Of the mean; NaN for one trial.
    pub(crate) error: f64,
    pub(crate) median: f64,
    /// Of the median, from the middle half of the sample, so that one interrupted trial does not
    /// count; NaN for one trial.
    pub(crate) median_error: f64,
    /// The distance between the quartiles by the median: how unlike each other the trials are; NaN
    /// for one trial.
    pub(crate) spread: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Sums a sample up; None when there is none. Values that are no numbers are left out.
pub(crate) fn summary(values: impl IntoIterator<Item = f64>) -> Option<SampleSummary> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let least = *values.first()?;
    let most = *values.last()?;
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    let spread = if n > 1 {
        (squares / (n - 1) as f64).sqrt()
    } else {
        f64::NAN
    };
    // For a normal sample the median has a standard error of 1.2533 σ/√n, and σ is the quartiles'
    // distance by 1.349.
    let quartiles = quantile(&values, 0.75) - quantile(&values, 0.25);
    let quartiles = if n > 1 { quartiles } else { f64::NAN };
    let median = quantile(&values, 0.5);
    Some(SampleSummary {
        trials: n,
        mean,
        error: spread / (n as f64).sqrt(),
        median,
        median_error: 1.2533 * quartiles / 1.349 / (n as f64).sqrt(),
        spread: quartiles / median,
        least,
        most,
    })
}

/// The quantile of a sorted sample, between neighbours by their distance, as numpy takes it.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let low = at.floor() as usize;
    let high = at.ceil() as usize;
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// numpy 2.4: mean, std(ddof=1)/sqrt(n), median, percentile 25 and 75 of [1, 2, 4, 8, 16].
    #[test]
    fn a_sample_is_summed_up_as_numpy_does() {
        let found = summary([16.0, 1.0, f64::NAN, 4.0, 2.0, 8.0]).unwrap();
        assert_eq!(
            (
                found.trials,
                found.mean,
                found.median,
                found.least,
                found.most
            ),
            (5, 6.2, 4.0, 1.0, 16.0)
        );
        assert!((found.error - 2.727_636_339_397_171).abs() < 1e-12);
        assert!((found.median_error - 1.2533 * (6.0 / 1.349) / 5f64.sqrt()).abs() < 1e-12);
        assert_eq!(found.spread, 6.0 / 4.0);
        let single = summary([3.0]).unwrap();
        assert!(summary([]).is_none() && single.error.is_nan() && single.spread.is_nan());
    }
}
