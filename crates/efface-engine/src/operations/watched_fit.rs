//! A fit whose caller sees how far it is. The work is done by a thread of its own, and what it
//! writes down beside its rows is read from time to time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use efface::{Fit, Model, Recipe, RowStore, WorkShare};

use crate::progress::Progress;

/// Fits that take less than this show no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the work is looked at.
const GLANCE: Duration = Duration::from_millis(150);

/// The length of the bar.
const PARTS: f64 = 1000.0;

/// The model of these rows, which may be beyond memory. Where they are watched and the fit takes
/// more than two seconds, its passes are told, and the share of the work that is done, from which a
/// bar tells when it ends. With a start, training goes on from there, over rows that are in memory.
pub(crate) fn fit(
    recipe: &Recipe,
    rows: &dyn RowStore,
    start: Option<&Model>,
    what: &str,
    progress: &dyn Progress,
) -> efface::Result<Model> {
    fit_after(
        PATIENCE,
        GLANCE,
        || match start {
            Some(start) => recipe.resume(start, &*rows.all()?),
            None => recipe.fit_store(rows),
        },
        || rows.stop().map(efface::Stop::progress),
        what,
        progress,
    )
}

fn fit_after<T: Send>(
    patience: Duration,
    glance: Duration,
    work: impl FnOnce() -> T + Send,
    seen: impl Fn() -> Option<WorkShare>,
    what: &str,
    progress: &dyn Progress,
) -> T {
    let began = Instant::now();
    let mut has_bar = false;
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let worker = scope.spawn(move || {
            let result = work();
            // The receiver is there as long as this thread is.
            drop(done);
            result
        });
        while is_done.recv_timeout(glance) == Err(RecvTimeoutError::Timeout) {
            let Some(WorkShare { passes, share }) = seen().filter(|_| began.elapsed() >= patience)
            else {
                continue;
            };
            if share > 0.0 {
                if !has_bar {
                    progress.start(what, Some(PARTS as u64));
                    has_bar = true;
                }
                progress.at((share * PARTS) as u64);
            }
            if passes > 0 {
                progress.tell(&format!("{what}, pass {passes}"));
            }
        }
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Writes down what it is told.
    #[derive(Default)]
    struct ToldProgress(Mutex<Vec<String>>);

    impl Progress for ToldProgress {
        fn start(&self, what: &str, total: Option<u64>) {
            self.0
                .lock()
                .unwrap()
                .push(format!("start {what} {total:?}"));
        }
        fn at(&self, done: u64) {
            self.0.lock().unwrap().push(format!("at {done}"));
        }
        fn tell(&self, what: &str) {
            self.0.lock().unwrap().push(format!("tell {what}"));
        }
    }

    #[test]
    fn a_long_fit_tells_its_passes_and_its_share() {
        let told = ToldProgress::default();
        let (go_on, may_end) = sync_channel::<()>(8);
        let share = WorkShare {
            passes: 3,
            share: 0.25,
        };
        // The work ends once it was looked at: the look itself lets it go on.
        let seen = || {
            let _ = go_on.try_send(());
            Some(share)
        };
        let wait = Duration::from_millis(1);
        let result = fit_after(
            Duration::ZERO,
            wait,
            move || may_end.recv().is_ok(),
            seen,
            "fitting",
            &told,
        );
        assert!(result);
        let told = told.0.into_inner().unwrap();
        assert_eq!(
            told[..3],
            ["start fitting Some(1000)", "at 250", "tell fitting, pass 3"].map(String::from)
        );
    }

    #[test]
    fn a_short_fit_tells_nothing() {
        let told = ToldProgress::default();
        let seen = || {
            Some(WorkShare {
                passes: 3,
                share: 0.25,
            })
        };
        assert_eq!(fit_after(PATIENCE, GLANCE, || 7, seen, "fitting", &told), 7);
        assert!(told.0.into_inner().unwrap().is_empty());
    }
}
