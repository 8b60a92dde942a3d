//! Watchers of a run: progress for bars, and sentences for the log.

/// A watcher of a run. Amounts are estimated work, so that a progress bar over them shows the time
/// that is left.
pub trait RunWatch {
    /// Work of this amount begins.
    fn start(&mut self, what: &str, amount: u64);
    /// So much of it is done.
    fn at(&mut self, done: u64);
    /// All of it is done.
    fn finish(&mut self);
    /// Something to know: a reason, an estimate, a file that was written.
    fn say(&mut self, sentence: &str);
    /// Whether to stop after the trial at hand.
    fn stop(&self) -> bool {
        false
    }
}

/// A watcher that shows nothing and never stops the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentWatch;

impl RunWatch for SilentWatch {
    fn start(&mut self, _what: &str, _amount: u64) {}
    fn at(&mut self, _done: u64) {}
    fn finish(&mut self) {}
    fn say(&mut self, _sentence: &str) {}
}
