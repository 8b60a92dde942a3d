//! Spans of requests for OpenTelemetry, where the crate was built with the feature `otel`. A span
//! has the pattern of a path, the method and the status: nothing that names a row, a person, a
//! request or a token.

#[cfg(not(feature = "otel"))]
mod absent;
#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod span;

#[cfg(not(feature = "otel"))]
pub(crate) use absent::AbsentTracer as RequestTracer;
#[cfg(feature = "otel")]
pub(crate) use span::RequestTracer;
