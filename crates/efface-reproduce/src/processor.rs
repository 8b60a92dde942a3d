//! Whether a thread had a processor while its work was timed. A machine that is busy all the time
//! slows a long computation, which has to share, more than a request of a millisecond, which is
//! over before its turn ends; times that are steady can therefore still flatter what is short.

use std::fs;
use std::time::Instant;

/// Where Linux says how long the thread ran, how long it waited for a processor, in nanoseconds,
/// and how often it had a turn.
const FILE: &str = "/proc/thread-self/schedstat";

/// How long this thread waited for a processor from some moment on.
pub(crate) struct ProcessorWait {
    start: Instant,
    waited: Option<f64>,
}

impl ProcessorWait {
    pub(crate) fn begin() -> Self {
        Self {
            start: Instant::now(),
            waited: waited(),
        }
    }

    /// The share of the time since then; None where the system does not tell.
    pub(crate) fn share(&self) -> Option<f64> {
        let before = self.waited?;
        let after = waited()?;
        Some((after - before) / self.start.elapsed().as_secs_f64())
    }
}

/// Seconds of waiting since the thread began.
fn waited() -> Option<f64> {
    parse(&fs::read_to_string(FILE).ok()?)
}

fn parse(text: &str) -> Option<f64> {
    let nanoseconds: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_time_of_waiting() {
        assert_eq!(parse("881000000 2500000000 42\n"), Some(2.5));
        assert_eq!(parse("881000000"), None);
        assert_eq!(parse("a b c"), None);
        if let Some(share) = ProcessorWait::begin().share() {
            assert!(share >= 0.0, "{share}");
        }
    }
}
