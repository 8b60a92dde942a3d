//! Progress bars over the engine's reports, drawn on standard error and cleared when their work is
//! over.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use efface_engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::{Failure, Result};

/// One bar at a time.
pub(crate) struct ProgressBars {
    shown: bool,
    /// Whether what stays is told where no bar can be shown.
    told: bool,
    bar: Mutex<Option<ProgressBar>>,
    /// Set by the first ctrl-C, where somebody listens.
    interrupted: Arc<AtomicBool>,
}

impl ProgressBars {
    pub(crate) fn new(shown: bool, told: bool) -> Self {
        Self {
            shown,
            told,
            bar: Mutex::new(None),
            interrupted: Arc::default(),
        }
    }

    /// From here on the first ctrl-C asks a training to stop and keep the best that it has; a
    /// second one ends the command.
    pub(crate) fn listen(&self) -> Result {
        let armed = || {
            // In this order: the second signal must find the flag that the first one set.
            flag::register_conditional_shutdown(SIGINT, 130, self.interrupted.clone())?;
            flag::register(SIGINT, self.interrupted.clone())
        };
        armed()
            .map(drop)
            .map_err(|cause| Failure::internal(format!("ctrl-C cannot be watched: {cause}")))
    }

    fn replace(&self, next: Option<ProgressBar>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = std::mem::replace(&mut *bar, next) {
            last.finish_and_clear();
        }
    }
}

/// How a stage is drawn whose length is known, and one whose is not.
const STEPS: [&str; 2] = [
    "{msg} [{bar:40}] {percent:>3}% {eta:>4} left",
    "{spinner} {msg} {elapsed}",
];

/// The same for bytes of files.
const BYTES: [&str; 2] = [
    "{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    "{spinner} {msg} {bytes}, {bytes_per_sec}, {elapsed}",
];

impl ProgressBars {
    fn show(&self, what: &str, total: Option<u64>, [known, unknown]: [&str; 2]) {
        if !self.shown {
            return;
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), known),
            None => (ProgressBar::new_spinner(), unknown),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        self.replace(Some(bar));
    }
}

impl Progress for ProgressBars {
    fn start(&self, what: &str, total: Option<u64>) {
        self.show(what, total, STEPS);
    }

    fn start_bytes(&self, what: &str, total: Option<u64>) {
        self.show(what, total, BYTES);
    }

    fn at(&self, done: u64) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.set_position(done);
        }
    }

    fn finish(&self) {
        self.replace(None);
    }

    fn tell(&self, what: &str) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.set_message(what.to_owned());
        }
    }

    fn note(&self, what: &str) {
        match &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(bar) => bar.println(what),
            // Standard error may be closed, and then there is nobody to tell.
            None if self.told => drop(writeln!(std::io::stderr().lock(), "{what}")),
            None => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for ProgressBars {
    fn drop(&mut self) {
        self.replace(None);
    }
}
