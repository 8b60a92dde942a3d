//! What exports with noise add up to. Each hides a distance Δ behind noise of standard deviation σ,
//! which is a Gaussian release with μ = Δ/σ. Releases of μ₁, μ₂, … are together one of
//! √(μ₁² + μ₂² + …), exactly, also where later versions depend on what was seen of earlier ones, as long as no
//! μ does: Dong, Roth and Su, "Gaussian Differential Privacy" (2019), corollary 3.3. At every δ the
//! ε of the sum follows from theorem 8 of Balle and Wang (2018).
//!
//! The noise of a version follows from the version, so that its second copy is the first one and
//! costs nothing. A copy with another σ would be a second sample of the same parameters, and is
//! refused. Only the last copy is remembered: a version that comes back after another one left is
//! charged once more, whatever its σ.

use efface_receipt::{Hash, PrivacySpent, PrivacyTotal, ReleaseTerms};
use serde::{Deserialize, Serialize};

use super::gaussian;

/// The sum over all exports with noise since the last one without.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PrivacyAccount {
    /// The sum of the squares of μ.
    squared: f64,
    /// Different copies that left.
    releases: u64,
    /// Whether one of them had noise of a chosen deviation: no policy said which distance that
    /// noise has to hide.
    untold: bool,
    /// The receipt of the last export without noise.
    since: Option<u64>,
    /// The last copy with noise.
    last: Option<NoisyCopy>,
}

/// A version that left with noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NoisyCopy {
    version: Hash,
    deviation: f64,
    mu: f64,
}

impl PrivacyAccount {
    /// Notes an export, and says in its release what it spends. `sequence` is the receipt that it
    /// will have. Err with the standard deviation under which this version left before.
    pub(crate) fn charge(
        &mut self,
        version: &Hash,
        sequence: u64,
        release: &mut ReleaseTerms,
    ) -> Result<(), f64> {
        let deviation = release.noise.unwrap_or(0.0);
        let before = self
            .last
            .as_ref()
            .filter(|copy| copy.version == *version)
            .cloned();
        // A policy without noise hides nothing. A calibrated policy whose noise comes to 0 still
        // hides earlier exports.
        let open = deviation == 0.0 && (before.is_none() || release.calibration.is_none());
        if open {
            if self.last.is_some() {
                release.warnings.push(
                    "no noise: what noise on earlier exports hid can be read off this one as far as it is still true".into(),
                );
            }
            *self = Self {
                since: Some(sequence),
                ..Self::default()
            };
            return Ok(());
        }
        if let Some(copy) = before.as_ref().filter(|copy| copy.deviation != deviation) {
            return Err(copy.deviation);
        }
        let hidden = release
            .calibration
            .as_ref()
            .and_then(|calibration| calibration.sensitivity);
        let mu = hidden.map_or(0.0, |distance| distance / deviation);
        // A second copy of a version, under a policy that has more to hide, is charged with the
        // difference.
        let known = before.as_ref().map_or(0.0, |copy| copy.mu);
        let fresh = (mu * mu - known * known).max(0.0);
        self.squared += fresh;
        self.releases += u64::from(before.is_none());
        self.untold |= hidden.is_none();
        self.last = Some(NoisyCopy {
            version: *version,
            deviation,
            mu: mu.max(known),
        });
        match release
            .calibration
            .as_ref()
            .map(|calibration| calibration.delta)
        {
            Some(delta) => release.privacy = Some(self.spent(fresh.sqrt(), delta)),
            None => release.warnings.push(outright(deviation)),
        }
        Ok(())
    }

    fn spent(&self, mu: f64, delta: f64) -> PrivacySpent {
        let epsilon = gaussian::epsilon(mu, delta);
        PrivacySpent {
            delta,
            mu,
            epsilon,
            total: self.total(delta),
            since: self.since,
        }
    }

    /// What all of them spent at this δ; None where no policy said which distance their noise has
    /// to hide.
    pub(crate) fn total(&self, delta: f64) -> Option<PrivacyTotal> {
        let mu = self.squared.sqrt();
        let epsilon = gaussian::epsilon(mu, delta);
        (!self.untold).then_some(PrivacyTotal {
            mu,
            epsilon,
            releases: self.releases,
        })
    }
}

/// What can be said of noise that was chosen outright.
fn outright(deviation: f64) -> String {
    const EPSILON: f64 = 1.0;
    const DELTA: f64 = 1e-6;
    let hidden = deviation / gaussian::deviation(EPSILON, DELTA);
    format!(
        "the noise was chosen outright: it hides a distance of {hidden:.3e} at ε = {EPSILON} and δ = {DELTA:e}, in \
         proportion more at a larger ε, and nothing says that the parameters moved no further"
    )
}

#[cfg(test)]
mod tests {
    use efface_receipt::{Calibration, SensitivitySource};

    use super::*;

    fn release(noise: Option<f64>, sensitivity: Option<f64>) -> ReleaseTerms {
        ReleaseTerms {
            minimum_batch: 1,
            batch: 0,
            delay_seconds: 0,
            noise,
            calibration: sensitivity.map(|distance| Calibration {
                epsilon: 1.0,
                delta: 1e-5,
                sensitivity: Some(distance),
                source: SensitivitySource::Given,
            }),
            privacy: None,
            warnings: Vec::new(),
        }
    }

    /// Exports one version; gives what its receipt says.
    fn export(
        account: &mut PrivacyAccount,
        version: u8,
        noise: f64,
        sensitivity: Option<f64>,
    ) -> ReleaseTerms {
        let mut release = release((noise > 0.0).then_some(noise), sensitivity);
        account
            .charge(&Hash([version; 32]), u64::from(version), &mut release)
            .unwrap();
        release
    }

    #[test]
    fn squares_add_up_and_a_second_copy_costs_nothing() {
        let mut account = PrivacyAccount::default();
        let sigma = gaussian::deviation(1.0, 1e-5);
        let spent = |release: ReleaseTerms| release.privacy.unwrap();
        let first = spent(export(&mut account, 1, sigma, Some(1.0)));
        assert!(
            (first.epsilon - 1.0).abs() < 1e-8
                && first.total.as_ref().unwrap().epsilon == first.epsilon
        );
        for _ in 0..3 {
            let again = spent(export(&mut account, 1, sigma, Some(1.0)));
            assert_eq!(
                (again.mu, again.epsilon, again.total),
                (0.0, 0.0, first.total.clone())
            );
        }
        let second = spent(export(&mut account, 2, sigma, Some(1.0)));
        let third = spent(export(&mut account, 3, 2.0 * sigma, Some(4.0)));
        assert!((second.epsilon - 1.0).abs() < 1e-8 && third.mu == 2.0 / sigma);
        let total = third.total.unwrap();
        assert!((total.mu * sigma - 6.0_f64.sqrt()).abs() < 1e-12 && total.releases == 3);
        // Less than the ε of the parts added up, more than the largest of them.
        let parts = first.epsilon + second.epsilon + third.epsilon;
        assert!(
            total.epsilon < parts && total.epsilon > third.epsilon,
            "{total:?} and {parts}"
        );
    }

    #[test]
    fn one_version_leaves_with_one_noise() {
        let mut account = PrivacyAccount::default();
        export(&mut account, 1, 0.5, Some(0.1));
        for (noise, sensitivity) in [
            (Some(0.25), Some(0.1)),
            (Some(0.7), None),
            (Some(0.0), Some(0.1)),
        ] {
            let wrong = account.charge(&Hash([1; 32]), 9, &mut release(noise, sensitivity));
            assert_eq!(wrong, Err(0.5));
        }
        // An equal σ for a larger distance is still one copy, and only the difference is charged.
        let spent = export(&mut account, 1, 0.5, Some(0.3)).privacy.unwrap();
        assert!((spent.mu - 0.08_f64.sqrt() / 0.5).abs() < 1e-15);
        assert_eq!(spent.total.unwrap().mu, 0.3 / 0.5);
        export(&mut account, 2, 0.25, Some(0.1));
    }

    #[test]
    fn noise_without_a_promise_has_no_total_and_no_noise_starts_anew() {
        let mut account = PrivacyAccount::default();
        let chosen = export(&mut account, 1, 0.5, None);
        assert!(
            chosen.privacy.is_none() && chosen.warnings[0].contains("1.184e-1"),
            "{chosen:?}"
        );
        let spent = export(&mut account, 2, 0.5, Some(0.1)).privacy.unwrap();
        assert!(spent.total.is_none() && spent.epsilon > 0.0);
        let plain = export(&mut account, 3, 0.0, None);
        assert!(
            plain.privacy.is_none() && plain.warnings[0].contains("hid"),
            "{plain:?}"
        );
        let spent = export(&mut account, 4, 0.5, Some(0.1)).privacy.unwrap();
        assert_eq!((spent.since, spent.total.unwrap().releases), (Some(3), 1));
    }
}
