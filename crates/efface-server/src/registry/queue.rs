//! Changes on their way to whoever makes them.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::worker::{ChangeOrder, ChangeWorker};
use crate::problem::{Problem, ProblemCode};
use crate::work::WorkPlace;

/// Changes that may wait for one model. Beyond them the server says that it is overloaded, so that
/// memory stays bounded.
const MOST_WAITING: usize = 8192;

/// The changes of a model that wait, and who makes them.
pub(super) enum ChangeQueue {
    /// A thread.
    Thread {
        orders: Mutex<Option<SyncSender<ChangeOrder>>>,
        worker: Mutex<Option<JoinHandle<()>>>,
    },
    /// The runtime, step by step.
    InTurn(Arc<OrdersInTurn>),
}

impl ChangeQueue {
    pub(super) fn start(worker: ChangeWorker, work: WorkPlace) -> std::io::Result<Self> {
        if work == WorkPlace::InTurn {
            let orders = OrdersInTurn {
                waiting: Mutex::default(),
                worker: Mutex::new(worker),
            };
            return Ok(Self::InTurn(Arc::new(orders)));
        }
        let (orders, waiting) = sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new().name(format!("model {}", worker.name));
        let thread = thread.spawn(move || worker.run(&waiting))?;
        Ok(Self::Thread {
            orders: Mutex::new(Some(orders)),
            worker: Mutex::new(Some(thread)),
        })
    }

    pub(super) fn order(&self, order: ChangeOrder) -> Result<(), Problem> {
        let orders = match self {
            Self::Thread { orders, .. } => lock(orders),
            Self::InTurn(orders) => {
                orders.push(order);
                return Ok(());
            }
        };
        let stopped = || Problem::new(ProblemCode::Overloaded, "the server is stopping");
        match orders.as_ref().ok_or_else(stopped)?.try_send(order) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Problem::new(
                ProblemCode::Overloaded,
                "too many changes of this model are waiting",
            )),
            Err(TrySendError::Disconnected(_)) => Err(stopped()),
        }
    }

    /// Whether changes are still made.
    pub(super) fn is_working(&self) -> bool {
        match self {
            Self::Thread { worker, .. } => lock(worker)
                .as_ref()
                .is_some_and(|worker| !worker.is_finished()),
            Self::InTurn(_) => true,
        }
    }

    /// Waits until all changes that were handed over are done. False where the thread panicked.
    pub(super) fn close(&self) -> bool {
        match self {
            Self::Thread { orders, worker } => {
                lock(orders).take();
                let worker = lock(worker).take();
                worker.is_none_or(|worker| worker.join().is_ok())
            }
            Self::InTurn(orders) => {
                while orders.work() {}
                true
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes that the runtime makes between two steps of other tasks.
pub(super) struct OrdersInTurn {
    waiting: Mutex<VecDeque<ChangeOrder>>,
    worker: Mutex<ChangeWorker>,
}

impl OrdersInTurn {
    fn push(self: &Arc<Self>, order: ChangeOrder) {
        lock(&self.waiting).push_back(order);
        let orders = self.clone();
        tokio::spawn(async move {
            // Those who ask in the same step wait together.
            tokio::task::yield_now().await;
            orders.work();
        });
    }

    /// Makes the next change, with those that can be made together with it. False where none waits.
    fn work(&self) -> bool {
        let Some(first) = lock(&self.waiting).pop_front() else {
            return false;
        };
        let left = lock(&self.worker).change(first, &mut || lock(&self.waiting).pop_front());
        if let Some(other) = left {
            lock(&self.waiting).push_front(other);
        }
        true
    }
}
