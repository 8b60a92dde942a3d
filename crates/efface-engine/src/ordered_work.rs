//! Work that several threads do side by side, and whose results are taken in the order of the
//! pieces.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// More threads than this wait for the one that takes the results.
const MOST_THREADS: usize = 8;

/// As many threads as there are cores, within reason.
pub(crate) fn usual_threads() -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_THREADS)
}

/// Takes pieces from `next`, works on as many of them at a time as there are threads, and shows
/// every result to `see`, in the order of the pieces. `next` has a thread of its own, `see` is
/// called by the caller's. At most twice as many pieces as threads are on their way. The first
/// error of `see` ends everything.
pub(crate) fn in_order<P: Send, T: Send, E>(
    threads: usize,
    mut next: impl FnMut() -> Option<P> + Send,
    work: impl Fn(P) -> T + Sync,
    mut see: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let (to_workers, pieces) = sync_channel::<(P, SyncSender<T>)>(1);
    let (to_see, results) = sync_channel::<Receiver<T>>(threads);
    let pieces = Mutex::new(pieces);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let taken = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((piece, done)) = taken else { break };
                    // Nobody waits for the result where an earlier one was an error.
                    let _ = done.send(work(piece));
                }
            });
        }
        scope.spawn(move || {
            while let Some(piece) = next() {
                let (done, result) = sync_channel(1);
                if to_see.send(result).is_err() || to_workers.send((piece, done)).is_err() {
                    break;
                }
            }
        });
        for result in results {
            // A worker that gives no result has panicked, and the scope passes that on.
            let Ok(result) = result.recv() else { break };
            see(result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_an_error_ends_it() {
        for threads in [1, 2, 5] {
            let mut pieces = 0..1000u64;
            let mut seen = Vec::new();
            let done: Result<(), ()> = in_order(
                threads,
                || pieces.next(),
                |piece| piece * piece,
                |square| {
                    seen.push(square);
                    Ok(())
                },
            );
            assert!(done.is_ok());
            assert!(
                seen.iter()
                    .enumerate()
                    .all(|(at, square)| *square == (at * at) as u64)
                    && seen.len() == 1000
            );

            let mut pieces = 0..;
            let mut count = 0;
            let done = in_order(
                threads,
                || pieces.next(),
                |piece: u64| piece,
                |piece| {
                    count += 1;
                    if piece == 17 { Err(piece) } else { Ok(()) }
                },
            );
            assert_eq!((done, count), (Err(17), 18));
        }
    }
}
