//! How long work is stopped. The caller that waits for the work holds a clone of the signal; the code that does the work
//! looks at it now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A request to stop, shared between the rows that are worked on and the caller, which may cancel the work.
///
/// Rows that [carry one](super::Rows::watched) hand it to their copies. Training looks at it between passes and
/// blocks, gives up with [`Error::Stopped`], and changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks whatever works on the rows to give up.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request back, so that the rows can be worked on again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the work was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once the work was asked to stop.
    pub fn go_on(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}
