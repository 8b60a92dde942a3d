//! A callback until it has arrived, or until nobody hopes for that any more. No clock and no
//! network: both are the caller's.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Waits after the first failure, the second, and so on: three days in all, as Standard Webhooks
/// recommends.
pub(crate) const WAITS: [u64; 9] = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// How a callback is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallbackForm {
    /// Standard Webhooks, with an Ed25519 key of the server's.
    StandardWebhook,
    /// OpenDSR, with the key of a certificate.
    OpenDsr,
}

/// Where the answers to a request shall go, and in which form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallbackTarget {
    pub(crate) url: String,
    pub(crate) form: CallbackForm,
}

/// A callback that has not arrived yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallbackDelivery {
    /// The same for every attempt, so that whoever gets it twice can tell.
    pub(crate) id: String,
    pub(crate) target: CallbackTarget,
    pub(crate) body: String,
    /// Milliseconds since 1970.
    pub(crate) created_at: u64,
    pub(crate) attempts: u32,
    /// When it is tried next, in milliseconds since 1970; None for one that is given up.
    pub(crate) next_at: Option<u64>,
    /// How long it waits for that, in milliseconds. A longer time cannot be left, unless the clock
    /// was put back.
    pub(crate) wait: u64,
    pub(crate) last_failure: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryFailure {
    /// In words that hold nothing of the request.
    pub(crate) reason: String,
    /// How long the receiver asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the receiver wants no more of it.
    pub(crate) is_final: bool,
}

impl DeliveryFailure {
    pub(crate) fn passing(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            retry_after: None,
            is_final: false,
        }
    }
}

impl CallbackDelivery {
    /// A new one, about an `event` of a request. Made again, it has the same id.
    pub(crate) fn new(
        target: CallbackTarget,
        request: &str,
        event: &str,
        body: String,
        now: u64,
    ) -> Self {
        let mut digest = Sha256::new();
        for part in [request, event, &target.url] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        // No full stop in it: it is signed together with the time and the body, with stops in
        // between.
        let id = format!(
            "msg_{}",
            &data_encoding::HEXLOWER.encode(&digest.finalize())[..32]
        );
        Self {
            id,
            target,
            body,
            created_at: now,
            attempts: 0,
            next_at: Some(now),
            wait: 0,
            last_failure: None,
        }
    }

    /// Whether it is to be tried now.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.time_left(now) == Some(0)
    }

    /// Milliseconds until it is tried; None for one that is given up. A time further away than the
    /// wait was written by a clock that has been put back since.
    pub(crate) fn time_left(&self, now: u64) -> Option<u64> {
        let left = self.next_at?.saturating_sub(now);
        Some(if left > self.wait { 0 } else { left })
    }

    /// An attempt failed: when the next one is, or none.
    pub(crate) fn failed(&mut self, now: u64, failure: DeliveryFailure) {
        self.attempts = self.attempts.saturating_add(1);
        self.last_failure = Some(failure.reason);
        let wait = WAITS
            .get(self.attempts as usize - 1)
            .filter(|_| !failure.is_final);
        let wait = wait.map(|seconds| {
            let asked = failure
                .retry_after
                .map_or(0, |after| after.as_secs())
                .min(86_400);
            let wait = 1000 * (*seconds).max(asked);
            wait.saturating_add(self.spread(wait / 10))
        });
        self.wait = wait.unwrap_or(0);
        self.next_at = wait.map(|wait| now.saturating_add(wait));
    }

    /// Somebody wants it to be tried again.
    pub(crate) fn revive(&mut self, now: u64) {
        self.attempts = 0;
        self.wait = 0;
        self.next_at = Some(now);
    }

    /// Up to `most`, by the id and the attempt: callbacks that failed together do not come back
    /// together.
    fn spread(&self, most: u64) -> u64 {
        let digest = Sha256::digest(format!("{}{}", self.id, self.attempts).as_bytes());
        let number = digest
            .iter()
            .take(4)
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        number % most.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(url: &str) -> CallbackDelivery {
        let target = CallbackTarget {
            url: url.into(),
            form: CallbackForm::StandardWebhook,
        };
        CallbackDelivery::new(target, "case-1", "erasure.done", "{}".into(), 1_000)
    }

    #[test]
    fn a_delivery_is_tried_ten_times_with_growing_waits_and_then_given_up() {
        let mut delivery = delivery("https://a.example/");
        let mut now = 1_000;
        for wait in WAITS {
            assert!(delivery.is_due(now));
            delivery.failed(now, DeliveryFailure::passing("status 500"));
            let next = delivery.next_at.unwrap();
            assert!(
                (now + wait * 1000..=now + wait * 1100).contains(&next),
                "{wait}: {}",
                next - now
            );
            assert!(!delivery.is_due(next - 1) && delivery.is_due(next));
            now = next;
        }
        delivery.failed(now, DeliveryFailure::passing("status 500"));
        assert_eq!((delivery.next_at, delivery.attempts), (None, 10));
        assert!(
            !delivery.is_due(u64::MAX),
            "a delivery that is given up is due"
        );
        delivery.revive(now);
        assert!(delivery.is_due(now));
    }

    #[test]
    fn receivers_may_ask_for_time_or_for_no_more() {
        let mut patient = delivery("https://a.example/");
        let later = DeliveryFailure {
            retry_after: Some(Duration::from_secs(60)),
            ..DeliveryFailure::passing("status 429")
        };
        patient.failed(0, later);
        assert!((60_000..=66_000).contains(&patient.next_at.unwrap()));
        let mut gone = delivery("https://a.example/");
        gone.failed(
            0,
            DeliveryFailure {
                is_final: true,
                ..DeliveryFailure::passing("status 410")
            },
        );
        assert_eq!(gone.next_at, None);
    }

    #[test]
    fn the_same_event_has_the_same_id_and_another_one_another() {
        assert_eq!(
            delivery("https://a.example/").id,
            delivery("https://a.example/").id
        );
        assert_ne!(
            delivery("https://a.example/").id,
            delivery("https://b.example/").id
        );
        assert!(!delivery("https://a.example/").id.contains('.'));
    }

    #[test]
    fn a_clock_that_is_put_back_stops_no_delivery() {
        let year = 365 * 86_400_000;
        let mut delivery = delivery("https://a.example/");
        delivery.failed(50 * year, DeliveryFailure::passing("no connection"));
        assert!(!delivery.is_due(50 * year) && delivery.is_due(49 * year));
        assert!(
            delivery.is_due(50 * year - 10_000),
            "ten seconds back, for a wait of five"
        );
        delivery.revive(50 * year);
        assert!(delivery.is_due(50 * year - 1));
    }
}
