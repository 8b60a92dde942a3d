//! When new parameters may be published. Two published versions that differ by one row give that
//! row away (Bertran et al. 2024), so that an export can be made to wait for company.

use efface_receipt::{Calibration, ReceiptFault, ReleaseTerms, SensitivitySource, WitnessQuorum};
use serde::{Deserialize, Serialize};

use super::suppression::SuppressionScope;
use super::{PrivacyAccount, gaussian};

/// Requests that an export waits for where nothing else was chosen. Where ten rows left together,
/// an attacker who subtracts two exports finds no more of one of them than by guessing
/// (`tests/difference.rs`).
pub(crate) const USUAL_BATCH: u64 = 10;

/// The policy of a model, and what waits under it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PolicyState {
    /// Requests that must have come together before an export, where that was chosen.
    pub(crate) minimum_batch: Option<u64>,
    /// Seconds after which they need no more company; 0 for never.
    pub(crate) delay_seconds: u64,
    /// The standard deviation of noise on exported parameters, where it was chosen outright.
    pub(crate) noise: Option<f64>,
    /// What the noise has to hold, where it follows from a promise.
    pub(crate) promise: Option<NoisePromise>,
    /// At most so far did the parameters move since the last export.
    pub(crate) moved: f64,
    /// At most so far did the parameters move since the last export that had no noise. What noise
    /// hid must stay hidden: another export with less of it would show what the first one kept
    /// back.
    pub(crate) unseen: f64,
    /// Requests since the last export.
    pub(crate) waiting: u64,
    /// Requests since the last export that had no noise. An export with noise in between does not
    /// protect them from an export without.
    pub(crate) unshown: u64,
    /// When the first of them came, in milliseconds since 1970.
    pub(crate) since: Option<i64>,
    /// Whether anything was ever exported, so that there is something to compare with.
    pub(crate) published: bool,
    /// Whether anything was ever exported without noise.
    pub(crate) shown: bool,
    /// Forgotten rows that may wait to be scrubbed; 1 for none.
    pub(crate) settle_after: u64,
    /// Seconds after which they wait no longer.
    pub(crate) settle_within_seconds: u64,
    /// What exports with noise have spent.
    pub(crate) account: PrivacyAccount,
    /// What keeps a row from being learned again.
    pub(crate) suppress: SuppressionScope,
    /// Who must have signed the head of the log before anything is published.
    pub(crate) witnesses: Option<WitnessTerms>,
}

/// Witnesses of a log, and how many of them must have signed its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessTerms {
    /// Their public keys, as they print them.
    pub keys: Vec<String>,
    /// How many of them are enough.
    pub needed: usize,
}

impl WitnessTerms {
    /// The same, checked.
    pub(crate) fn quorum(&self) -> Result<WitnessQuorum, ReceiptFault> {
        WitnessQuorum::parse(&self.keys.join("\n"), Some(self.needed))
    }
}

/// (ε, δ) and the distance that they are to hide; None for as far as the parameters moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct NoisePromise {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) sensitivity: Option<f64>,
}

impl Default for PolicyState {
    fn default() -> Self {
        Self {
            minimum_batch: None,
            delay_seconds: 0,
            noise: None,
            promise: None,
            moved: 0.0,
            unseen: 0.0,
            waiting: 0,
            unshown: 0,
            since: None,
            published: false,
            shown: false,
            settle_after: 1,
            settle_within_seconds: 0,
            account: PrivacyAccount::default(),
            suppress: SuppressionScope::default(),
            witnesses: None,
        }
    }
}

impl PolicyState {
    /// Notes requests that took rows out.
    pub(crate) fn count(&mut self, requests: u64, now: i64) {
        self.waiting += requests;
        if self.shown {
            self.unshown += requests;
        }
        self.since.get_or_insert(now);
    }

    /// Notes that the parameters moved. What was never published has nothing to be compared with.
    pub(crate) fn travel(&mut self, distance: f64) {
        if self.published {
            // A distance that is no number is as far as numbers go, which the manifest can hold and
            // infinity it cannot.
            for sum in [&mut self.moved, &mut self.unseen] {
                let all = *sum + distance * (1.0 + 1e-9);
                *sum = if all.is_nan() {
                    f64::MAX
                } else {
                    all.min(f64::MAX)
                };
            }
        }
    }

    /// What an export says of it, noise included. Err with the distance that may be hidden where
    /// they moved further.
    pub(crate) fn export(&self) -> Result<ReleaseTerms, f64> {
        let mut release = self.release();
        let Some(NoisePromise {
            epsilon,
            delta,
            sensitivity,
        }) = self.promise
        else {
            return Ok(release);
        };
        let hidden = match sensitivity {
            Some(allowed) if self.moved > allowed => return Err(allowed),
            None if self.unseen == f64::MAX => return Err(0.0),
            Some(allowed) => allowed,
            None => self.unseen,
        };
        release.noise = Some(hidden * gaussian::deviation(epsilon, delta));
        if let Some(calibration) = &mut release.calibration {
            calibration.sensitivity = Some(hidden);
        }
        Ok(release)
    }

    /// What a receipt says of it.
    pub(crate) fn release(&self) -> ReleaseTerms {
        ReleaseTerms {
            minimum_batch: self.batch(),
            batch: self.waiting,
            delay_seconds: self.delay_seconds,
            noise: self.noise,
            calibration: self.promise.map(
                |NoisePromise {
                     epsilon,
                     delta,
                     sensitivity,
                 }| Calibration {
                    epsilon,
                    delta,
                    sensitivity,
                    source: match sensitivity {
                        Some(_) => SensitivitySource::Given,
                        None => SensitivitySource::Measured,
                    },
                },
            ),
            privacy: None,
            warnings: self.warning().into_iter().collect(),
        }
    }

    /// Requests that must have come together before an export. Noise that was calibrated hides what
    /// two versions would show; noise of a deviation that was chosen outright promises nothing.
    pub(crate) fn batch(&self) -> u64 {
        let usual = if self.promise.is_some() {
            1
        } else {
            USUAL_BATCH
        };
        self.minimum_batch.unwrap_or(usual)
    }

    /// What a policy says that lets so few requests out, and what is said before such an export.
    fn warning(&self) -> Option<String> {
        let lets_out = self.batch() <= self.fewest() || self.delay_seconds > 0;
        self.exposed().filter(|_| lets_out)
    }

    /// What an export now would give away; None where nothing, or where enough requests came
    /// together.
    pub(crate) fn exposed(&self) -> Option<String> {
        let few = self.fewest();
        let hidden = self.promise.is_some() || !self.published;
        (!hidden && (1..USUAL_BATCH).contains(&few)).then(|| {
            let requests = if few == 1 { "one request".into() } else { format!("{few} requests") };
            format!(
                "{requests} since the last export: whoever holds both versions can compute the rows that left"
            )
        })
    }

    /// The requests between now and an earlier export that one could compare with; the fewest,
    /// where there are several. 0 where nothing is new.
    fn fewest(&self) -> u64 {
        let since_plain = if self.promise.is_some() {
            0
        } else {
            self.unshown
        };
        [self.waiting, since_plain]
            .into_iter()
            .filter(|requests| *requests > 0)
            .min()
            .unwrap_or(0)
    }

    /// How many more requests an export has to wait for; 0 when it may go.
    pub(crate) fn held(&self, now: i64) -> u64 {
        let waited = self
            .since
            .map_or(0, |since| now.saturating_sub(since).max(0) as u64 / 1000);
        let old_enough = self.delay_seconds > 0 && waited >= self.delay_seconds;
        match self.fewest() {
            0 => 0,
            _ if old_enough || !self.published => 0,
            waiting => self.batch().saturating_sub(waiting),
        }
    }

    /// Takes over from the model that a new fit replaces what was published of it and which
    /// requests wait: the first export of the new model can be compared with the last one of the
    /// old.
    pub(crate) fn succeed(&mut self, replaced: &Self) {
        self.minimum_batch = replaced.minimum_batch;
        self.delay_seconds = replaced.delay_seconds;
        self.waiting = replaced.waiting;
        self.unshown = replaced.unshown;
        self.since = replaced.since;
        self.published = replaced.published;
        self.shown = replaced.shown;
        // Nobody measured how far the new parameters are from those that left.
        if replaced.published {
            self.moved = f64::MAX;
            self.unseen = f64::MAX;
        }
    }

    /// Notes an export with this much noise.
    pub(crate) fn released(&mut self, noise: Option<f64>) {
        let hidden = noise.is_some_and(|deviation| deviation > 0.0);
        if !hidden {
            self.unseen = 0.0;
            self.unshown = 0;
            self.since = None;
            self.shown = true;
        }
        self.waiting = 0;
        self.published = true;
        self.moved = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_noise_hid_stays_hidden() {
        let promise = Some(NoisePromise {
            epsilon: 1.0,
            delta: 1e-5,
            sensitivity: None,
        });
        let mut policy = PolicyState {
            promise,
            ..PolicyState::default()
        };
        let mut export = |travelled: f64| {
            policy.travel(travelled);
            let noise = policy.export().unwrap().noise;
            policy.released(noise);
            noise.unwrap() / gaussian::deviation(1.0, 1e-5)
        };
        assert_eq!(
            export(0.0),
            0.0,
            "nothing was published that it could be compared with"
        );
        assert!((export(2.0) - 2.0).abs() < 1e-6);
        // With no noise or less of it, the second of two copies would show where the first one lay.
        assert!((export(0.0) - 2.0).abs() < 1e-6);
        assert!((export(0.5) - 2.5).abs() < 1e-6);
        // Who publishes them as they are has nothing left to hide.
        policy.released(None);
        assert_eq!(policy.export().unwrap().noise, Some(0.0));
    }

    #[test]
    fn an_export_waits_for_company_or_for_time() {
        let mut policy = PolicyState {
            minimum_batch: Some(3),
            delay_seconds: 60,
            ..PolicyState::default()
        };
        policy.count(1, 1_000);
        assert_eq!(
            policy.held(1_000),
            0,
            "nothing was published that it could be compared with"
        );
        policy.released(None);
        assert_eq!(policy.held(2_000), 0, "nothing is new");
        policy.count(1, 10_000);
        assert!(policy.warning().is_some());
        assert_eq!(policy.held(10_000), 2);
        assert_eq!(policy.held(69_000), 2);
        assert_eq!(policy.held(70_000), 0);
        policy.count(2, 20_000);
        assert_eq!(policy.held(20_000), 0);
        assert!(policy.warning().unwrap().starts_with("3 requests"));
        // A clock that runs backwards releases nothing.
        policy.released(None);
        policy.count(1, 100_000);
        assert_eq!(policy.held(0), 2);
    }
}
