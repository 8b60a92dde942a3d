//! Keys of requests that are being done: within a model a key is for one request, also while two that
//! share it are under way.
//!
//! The log of a model says what was done under a key. Before it does, this says what is asked:
//! otherwise one of two different requests could be answered by 202 under the key of the other, and
//! be lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ErasureOrder, ErasureTarget};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};

/// The requests that are being done, by their keys.
#[derive(Default)]
pub(crate) struct KeysInUse(Mutex<HashMap<String, Vec<UsedKey>>>);

/// A request under whose key no conflicting one is taken in.
pub(super) struct UsedKey {
    target: ErasureTarget,
    asked_by: String,
    identity: RequestIdentity,
    /// Callers who wait for it.
    holders: usize,
}

impl UsedKey {
    pub(super) fn new(order: &ErasureOrder) -> Self {
        Self {
            target: order.target.clone(),
            asked_by: order.asked_by.clone(),
            identity: order.identity(),
            holders: 1,
        }
    }

    /// Returns true if two different requests cannot have the same key: the log of a model they
    /// share would know the key twice, or a token would use its own key twice. A token for one model
    /// neither blocks the keys of another model nor learns of them.
    fn conflicts_with(&self, other: &Self) -> bool {
        self.identity != other.identity
            && (self.target.overlaps(&other.target) || self.asked_by == other.asked_by)
    }
}

/// The hash of what a request asks for.
pub(super) type RequestIdentity = [u8; 32];

impl KeysInUse {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<UsedKey>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use a key for a request, until it is dropped. Several may hold it for the same
/// request.
pub(crate) struct KeyClaim {
    state: Arc<ServiceState>,
    id: String,
    identity: RequestIdentity,
}

impl KeyClaim {
    /// Fails where a conflicting request is being done, or waits, under the same key.
    pub(crate) fn new(state: &Arc<ServiceState>, order: &ErasureOrder) -> Result<Self, Problem> {
        let claimed = UsedKey::new(order);
        let identity = claimed.identity;
        let mut keys = state.open.keys.lock();
        let waiting = state.open.keys_of(&order.id);
        let used = keys.get(&order.id).into_iter().flatten();
        if used
            .chain(&waiting)
            .any(|other| other.conflicts_with(&claimed))
        {
            let detail = "another request is being done, or waits, under this key";
            return Err(Problem::new(ProblemCode::KeyReused, detail));
        }
        let used = keys.entry(order.id.clone()).or_default();
        match used.iter_mut().find(|used| used.identity == identity) {
            Some(used) => used.holders += 1,
            None => used.push(claimed),
        }
        Ok(Self {
            state: state.clone(),
            id: order.id.clone(),
            identity,
        })
    }
}

impl Drop for KeyClaim {
    fn drop(&mut self) {
        let mut keys = self.state.open.keys.lock();
        let Some(used) = keys.get_mut(&self.id) else {
            return;
        };
        if let Some(used) = used.iter_mut().find(|used| used.identity == self.identity) {
            used.holders -= 1;
        }
        used.retain(|used| used.holders > 0);
        if used.is_empty() {
            keys.remove(&self.id);
        }
    }
}
