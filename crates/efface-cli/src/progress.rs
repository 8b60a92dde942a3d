//! Progress bars over the engine's reports, drawn on standard error and cleared when their work is over.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use efface_engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// One bar at a time.
pub(crate) struct Bars {
    shown: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    pub(crate) fn new(shown: bool) -> Self {
        Self { shown, bar: Mutex::new(None) }
    }

    fn replace(&self, next: Option<ProgressBar>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = std::mem::replace(&mut *bar, next) {
            last.finish_and_clear();
        }
    }
}

impl Progress for Bars {
    fn start(&self, what: &str, total: Option<u64>) {
        if !self.shown {
            return;
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{msg} [{bar:40}] {percent:>3}% {eta:>4} left"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        self.replace(Some(bar));
    }

    fn at(&self, done: u64) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.set_position(done);
        }
    }

    fn finish(&self) {
        self.replace(None);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.replace(None);
    }
}
