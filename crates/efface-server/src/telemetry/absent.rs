//! What stands in the place of spans in a build without them: types that have no values.

use std::convert::Infallible;

use axum::http::{HeaderMap, Method};

use crate::server::ServeError;

/// Does not exist in this build.
pub(crate) struct AbsentTracer(Infallible);

/// Does not exist in this build.
pub(crate) struct AbsentSpan(Infallible);

impl AbsentTracer {
    /// Says that this build sends nothing.
    pub(crate) fn new(endpoint: &str) -> Result<Self, ServeError> {
        let problem = "this build has no OpenTelemetry; its cargo feature is `otel`".to_owned();
        Err(ServeError::Collector {
            endpoint: endpoint.to_owned(),
            problem,
        })
    }

    pub(crate) fn begin(&self, _: &Method, _: &str, _: &HeaderMap) -> AbsentSpan {
        match self.0 {}
    }

    pub(crate) fn close(&self) {
        match self.0 {}
    }
}

impl AbsentSpan {
    pub(crate) fn end(self, _: u16) {
        match self.0 {}
    }
}
