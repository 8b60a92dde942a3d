//! All that requests share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::access::{RateLimiter, TokenStore};
use crate::erasures::{OpenErasures, RequestInbox};
use crate::metrics::ServiceMetrics;
use crate::registry::ModelRegistry;
use crate::settings::ServerSettings;

/// Tokens that are hashed at the same time, at most.
const HASHING: usize = 2;

/// What requests share. Nothing here outlives the process but the models and the inbox.
pub(crate) struct ServiceState {
    pub(crate) settings: ServerSettings,
    pub(crate) models: ModelRegistry,
    pub(crate) open: OpenErasures,
    pub(crate) inbox: Arc<RequestInbox>,
    /// None where everyone may do everything.
    pub(crate) tokens: Option<Arc<TokenStore>>,
    pub(crate) rates: RateLimiter,
    pub(crate) hashing: Semaphore,
    pub(crate) metrics: Arc<ServiceMetrics>,
}

impl ServiceState {
    pub(crate) fn new(settings: ServerSettings, tokens: Option<TokenStore>) -> Self {
        let metrics =
            Arc::new(ServiceMetrics::new(tokens.as_ref().map(TokenStore::hashes).unwrap_or_default()));
        Self {
            models: ModelRegistry::new(&settings.folder, settings.access.clone(), metrics.clone()),
            open: OpenErasures::default(),
            inbox: Arc::new(RequestInbox::new(&settings.folder)),
            tokens: tokens.map(Arc::new),
            rates: RateLimiter::new(settings.limits.requests_per_second),
            hashing: Semaphore::new(HASHING),
            metrics,
            settings,
        }
    }
}
