//! How long work is stopped, and how far it has come. The caller that waits for the work holds a
//! clone of the signal; the code that does the work looks at it now and then, and writes down where
//! it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A request to stop, shared between the rows that are worked on and the caller, which may cancel
/// the work, and see how far it is.
///
/// Rows that [carry one](super::Rows::watched) hand it to their copies. Training looks at it
/// between passes and blocks, gives up with [`Error::Stopped`], and changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<WorkSignal>);

#[derive(Debug, Default)]
struct WorkSignal {
    stopped: AtomicBool,
    passes: AtomicU64,
    /// The bits of a number from 0 to 1.
    share: AtomicU64,
}

/// How far work on rows has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkShare {
    /// Passes over the rows; 0 where the work counts none.
    pub passes: u64,
    /// The share of the work that is done, from 0 to 1, as far as it can be told.
    pub share: f64,
}

impl Stop {
    /// Asks whatever works on the rows to give up.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Takes the request back, so that the rows can be worked on again.
    pub fn reset(&self) {
        self.0.stopped.store(false, Ordering::Relaxed);
    }

    /// Whether the work was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// An error once the work was asked to stop.
    pub fn go_on(&self) -> Result<()> {
        if self.is_stopped() {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    }

    /// How far the work has come.
    pub fn progress(&self) -> WorkShare {
        let share = f64::from_bits(self.0.share.load(Ordering::Relaxed));
        WorkShare {
            passes: self.0.passes.load(Ordering::Relaxed),
            share,
        }
    }

    /// So many passes were made, and training has brought its gradient from `first` down to `now`
    /// where it ends at `goal`. Newton's and like methods gain digits at a steady rate, so that the
    /// share of the digits is a fair share of the time.
    pub(crate) fn note_training(&self, passes: usize, first: f64, now: f64, goal: f64) {
        self.0.passes.store(passes as u64, Ordering::Relaxed);
        let share = (first / now).ln() / (first / goal).ln();
        if share.is_finite() {
            self.raise_share(share);
        }
    }

    /// Another part of a single pass is done, as a share of all work.
    pub(crate) fn note_part(&self, part: f64) {
        self.0.passes.fetch_max(1, Ordering::Relaxed);
        self.raise_share(self.progress().share + part);
    }

    /// So many passes were made, and so much of the work is done, as far as can be told.
    pub(crate) fn note_passes(&self, passes: u64, share: f64) {
        self.0.passes.fetch_max(passes, Ordering::Relaxed);
        if share.is_finite() {
            self.raise_share(share);
        }
    }

    /// A gradient may rise for a step, and threads may overtake each other; what is told only
    /// grows.
    fn raise_share(&self, share: f64) {
        let share = share.clamp(0.0, 1.0);
        // Bits of numbers from 0 to 1 are in the order of the numbers.
        self.0.share.fetch_max(share.to_bits(), Ordering::Relaxed);
    }
}
