//! What a server that speaks OpenDSR keeps: who signs, and which requests were cancelled.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::callbacks::CertificateSigner;
use crate::problem::{Problem, ProblemCode};
use crate::server::ServeError;
use crate::settings::OpenDsrSettings;
use crate::storage::JsonFolder;

/// The folder of requests that were cancelled, beside the models.
const FOLDER: &str = "cancelled";

/// A request that was cancelled: nothing but its id, which the controller chose at random.
#[derive(Debug, Serialize, Deserialize)]
struct CancelledRequest {
    id: String,
}

/// The OpenDSR side of a server.
pub(crate) struct OpenDsrService {
    pub(crate) settings: OpenDsrSettings,
    pub(crate) signer: Arc<CertificateSigner>,
    cancelled: JsonFolder<CancelledRequest>,
}

impl OpenDsrService {
    pub(crate) fn open(models: &Path, settings: OpenDsrSettings) -> Result<Self, ServeError> {
        let signer = Arc::new(CertificateSigner::open(&settings)?);
        Ok(Self {
            settings,
            signer,
            cancelled: JsonFolder::new(models.join(FOLDER)),
        })
    }

    /// Whether a request was cancelled, in whichever run of the server.
    pub(crate) fn is_cancelled(&self, id: &str) -> Result<bool, Problem> {
        self.cancelled.contains(id).map_err(storage)
    }

    pub(crate) fn remember_cancelled(&self, id: &str) -> Result<(), Problem> {
        self.cancelled
            .put(id, &CancelledRequest { id: id.to_owned() })
            .map_err(storage)
    }
}

fn storage(error: std::io::Error) -> Problem {
    tracing::error!(%error, "the list of cancelled requests cannot be used");
    Problem::new(
        ProblemCode::ModelUnusable,
        "cancelled requests cannot be written down",
    )
}
