//! The clock of a server: that of the system, which somebody may put forward or back while the
//! server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock that tokens end by and callbacks wait by. Clones of it show the same time.
#[derive(Debug, Clone, Default)]
pub struct ServiceClock {
    /// Milliseconds that were added to the time of the system; 0 but in simulations.
    shift: Arc<AtomicI64>,
}

impl ServiceClock {
    /// Puts the clock forward, or back where `milliseconds` is negative, as an administrator or a
    /// time server may do to that of the system. For simulations.
    pub fn jump(&self, milliseconds: i64) {
        self.shift.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn milliseconds(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        since.saturating_add_signed(self.shift.load(Ordering::Relaxed))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.milliseconds() / 1000
    }
}
