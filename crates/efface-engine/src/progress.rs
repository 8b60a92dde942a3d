//! How long work tells its caller where it is, and how the caller stops it.

/// Where long work reports. Every method does nothing unless it is overridden.
pub trait Progress {
    /// A stage begins; `total` is how far it goes, where that is known.
    fn start(&self, _what: &str, _total: Option<u64>) {}
    /// The same for a stage that goes through bytes of files; `total` is unknown for a stream.
    fn start_bytes(&self, what: &str, total: Option<u64>) {
        self.start(what, total);
    }
    /// The stage has come this far.
    fn at(&self, _done: u64) {}
    /// The stage is over.
    fn finish(&self) {}
    /// Something to tell about the stage as it is now, such as the loss of a training.
    fn tell(&self, _what: &str) {}
    /// Something to tell that stays, such as an epoch that is over.
    fn note(&self, _what: &str) {}
    /// Whether a training should stop here and keep the best that it has.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Reports to nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
