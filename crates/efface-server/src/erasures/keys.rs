//! Keys of requests that are being done: a key is for one request, also while two that share it are
//! under way.
//!
//! The log of a model says what was done under a key. Before it does, this says what is asked:
//! otherwise one of two different requests could be answered by 202 under the key of the other, and
//! be lost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ErasureOrder;
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};

/// What is asked under each key that is in use, and by how many.
#[derive(Default)]
pub(crate) struct KeysInUse(Mutex<HashMap<String, (RequestIdentity, usize)>>);

/// The hash of what a request asks for.
pub(super) type RequestIdentity = [u8; 32];

impl KeysInUse {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (RequestIdentity, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use a key for a request, until it is dropped. Several may hold it for the same
/// request.
pub(crate) struct KeyClaim {
    state: Arc<ServiceState>,
    id: String,
}

impl KeyClaim {
    /// Fails where another request is being done, or waits, under the same key.
    pub(crate) fn new(state: &Arc<ServiceState>, order: &ErasureOrder) -> Result<Self, Problem> {
        let identity = order.identity();
        let reused = || {
            let detail = "another request is being done, or waits, under this key";
            Problem::new(ProblemCode::KeyReused, detail)
        };
        let mut keys = state.open.keys.lock();
        if state
            .open
            .identity(&order.id)
            .is_some_and(|waiting| waiting != identity)
        {
            return Err(reused());
        }
        match keys.entry(order.id.clone()) {
            Entry::Vacant(free) => {
                free.insert((identity, 1));
            }
            Entry::Occupied(mut used) => {
                let (asked, count) = used.get_mut();
                if *asked != identity {
                    return Err(reused());
                }
                *count += 1;
            }
        }
        Ok(Self {
            state: state.clone(),
            id: order.id.clone(),
        })
    }
}

impl Drop for KeyClaim {
    fn drop(&mut self) {
        let mut keys = self.state.open.keys.lock();
        if let Some((_, count)) = keys.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                keys.remove(&self.id);
            }
        }
    }
}
