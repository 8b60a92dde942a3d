//! How many requests a token may send: a bucket each, which fills at a steady rate.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Requests a second for each token, and as many at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_second: f64,
    buckets: Mutex<HashMap<String, RequestBucket>>,
}

#[derive(Debug)]
struct RequestBucket {
    left: f64,
    filled: Instant,
}

impl RateLimiter {
    pub(crate) fn new(per_second: f64) -> Self {
        Self {
            per_second,
            buckets: Mutex::default(),
        }
    }

    /// Takes a request out of the bucket of a token; false when it is empty.
    pub(crate) fn admit(&self, token: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(token) {
            // Tokens are few, but withdrawn ones would stay for ever: full buckets say nothing and
            // can go.
            let full =
                |bucket: &RequestBucket| now.duration_since(bucket.filled).as_secs_f64() >= 60.0;
            buckets.retain(|_, bucket| !full(bucket));
            buckets.insert(
                token.to_owned(),
                RequestBucket {
                    left: self.per_second.max(1.0),
                    filled: now,
                },
            );
        }
        let Some(bucket) = buckets.get_mut(token) else {
            return false;
        };
        let waited = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.left = (bucket.left + waited * self.per_second).min(self.per_second.max(1.0));
        bucket.filled = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again_for_each_token() {
        let limiter = RateLimiter::new(2.0);
        let start = Instant::now();
        let asks = [
            ("a", 0, true),
            ("a", 0, true),
            ("a", 0, false),
            ("b", 0, true),
            ("a", 500, true),
            ("a", 500, false),
        ];
        for (token, after, admitted) in asks {
            assert_eq!(
                limiter.admit(token, start + Duration::from_millis(after)),
                admitted,
                "{token} {after}"
            );
        }
    }
}
