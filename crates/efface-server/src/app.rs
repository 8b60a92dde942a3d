//! All that requests share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::access::{RateLimiter, TokenStore};
use crate::callbacks::CallbackDesk;
use crate::erasures::{ErasureOrder, OpenErasures};
use crate::metrics::ServiceMetrics;
use crate::opendsr::OpenDsrService;
use crate::registry::ModelRegistry;
use crate::settings::ServerSettings;
use crate::storage::JsonFolder;
use crate::telemetry::RequestTracer;

/// Tokens that are hashed at the same time, at most.
const HASHING: usize = 2;

/// The folder of requests that were accepted and are not done yet, beside the models.
const INBOX: &str = "inbox";

/// What requests share. Nothing here outlives the process but the models and the inbox.
pub(crate) struct ServiceState {
    pub(crate) settings: ServerSettings,
    pub(crate) models: ModelRegistry,
    pub(crate) open: OpenErasures,
    /// A request holds the names of rows or of a person, without which it could not be done after a
    /// crash; when it is done, its file is overwritten and removed.
    pub(crate) inbox: Arc<JsonFolder<ErasureOrder>>,
    /// None where no callbacks are sent.
    pub(crate) callbacks: Option<Arc<CallbackDesk>>,
    /// None where OpenDSR is not spoken.
    pub(crate) opendsr: Option<OpenDsrService>,
    /// None where everyone may do everything.
    pub(crate) tokens: Option<Arc<TokenStore>>,
    pub(crate) rates: RateLimiter,
    pub(crate) hashing: Semaphore,
    /// Tokens that are hashed for each client.
    pub(crate) hash_rates: RateLimiter,
    pub(crate) metrics: Arc<ServiceMetrics>,
    /// None where no spans are sent.
    pub(crate) tracer: Option<RequestTracer>,
}

impl ServiceState {
    pub(crate) fn new(
        settings: ServerSettings,
        tokens: Option<TokenStore>,
        callbacks: Option<CallbackDesk>,
        opendsr: Option<OpenDsrService>,
        tracer: Option<RequestTracer>,
    ) -> Self {
        let metrics = Arc::new(ServiceMetrics::new(
            tokens.as_ref().map(TokenStore::hashes).unwrap_or_default(),
            tokens.as_ref().map(TokenStore::refused).unwrap_or_default(),
        ));
        Self {
            models: ModelRegistry::new(
                &settings.folder,
                settings.access.clone(),
                metrics.clone(),
                settings.work,
            ),
            open: OpenErasures::default(),
            inbox: Arc::new(JsonFolder::new(settings.folder.join(INBOX))),
            callbacks: callbacks.map(Arc::new),
            opendsr,
            tokens: tokens.map(Arc::new),
            rates: RateLimiter::new(settings.limits.requests_per_second),
            hashing: Semaphore::new(HASHING),
            hash_rates: RateLimiter::new(settings.limits.token_hashes_per_second),
            metrics,
            tracer,
            settings,
        }
    }
}
