//! Long work off the interpreter: its lock is released, and Ctrl-C is heard.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use efface::Stop;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often a waiting thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// As much as a program's first thread usually has.
const STACK: usize = 8 << 20;

/// Runs `work` on a thread of its own and waits for it without the interpreter's lock. A signal
/// whose handler raises, as that of Ctrl-C does, stops the work; the exception is the handler's.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> efface::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let job = move || {
                // Nobody listens any more only if the waiting side has panicked.
                let _ = sender.send(work());
            };
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, job)?;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(done) => {
                        return done
                            .map_err(|error| Python::attach(|py| crate::errors::core(py, error)));
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(PyRuntimeError::new_err("the work ended without a result"));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                            stop.stop();
                            // The work gives up at its next look; what it returns no longer
                            // matters.
                            let _ = receiver.recv();
                            stop.reset();
                            return Err(interrupt);
                        }
                    }
                }
            }
        })
    })
}
