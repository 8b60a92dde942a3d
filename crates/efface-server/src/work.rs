//! Where work that blocks is done.

use std::time::Duration;

/// Steps that others have in a pause of a simulation.
const STEPS_OF_A_PAUSE: usize = 64;

/// Where work that blocks is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkPlace {
    /// On threads of its own, so that nobody waits who need not.
    #[default]
    Threads,
    /// On the thread of the runtime, in the order in which it was asked for. In a runtime of one
    /// thread whose clock stands still the same requests then take the same way every time. For
    /// simulations.
    InTurn,
}

/// Work that ended before its time, because it panicked or the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkLost;

impl WorkPlace {
    /// Does some work that blocks. It goes on if nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkLost> {
        let doing = match self {
            Self::Threads => tokio::task::spawn_blocking(work),
            Self::InTurn => tokio::spawn(async move {
                tokio::task::yield_now().await;
                work()
            }),
        };
        doing.await.map_err(|_| WorkLost)
    }

    /// Lets some time pass; in simulations, some steps of others.
    pub(crate) async fn pause(self, time: Duration) {
        match self {
            Self::Threads => tokio::time::sleep(time).await,
            Self::InTurn => {
                for _ in 0..STEPS_OF_A_PAUSE {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}
