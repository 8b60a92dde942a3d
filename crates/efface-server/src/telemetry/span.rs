//! A span for each request, sent in groups to a collector by OTLP over HTTP.

use axum::http::{HeaderMap, Method};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span as SdkSpan};

use super::collector::CollectorClient;
use crate::server::ServeError;

/// Where a collector takes spans, below its address.
const TRACES: &str = "/v1/traces";

/// Makes spans of requests and sends them.
pub(crate) struct RequestTracer {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

/// The span of a request that is being answered.
pub(crate) struct RequestSpan(SdkSpan);

/// The headers of a request, of which the trace that it belongs to is read (W3C Trace Context).
struct TraceHeaders<'a>(&'a HeaderMap);

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

impl RequestTracer {
    /// Spans for the collector at this address. Must be called inside a runtime of tokio, which
    /// sends them.
    pub(crate) fn new(endpoint: &str) -> Result<Self, ServeError> {
        let fault = |problem: String| ServeError::Collector {
            endpoint: endpoint.to_owned(),
            problem,
        };
        let address = endpoint.trim_end_matches('/');
        let client = CollectorClient::new(address).map_err(fault)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{address}{TRACES}"))
            .build()
            .map_err(|error| fault(error.to_string()))?;
        let resource = Resource::builder_empty()
            .with_service_name("efface")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let tracer =
            provider.tracer_with_scope(InstrumentationScope::builder("efface-server").build());
        Ok(Self {
            provider,
            tracer,
            propagator: TraceContextPropagator::new(),
        })
    }

    /// A span for a request. `path` is the pattern of the path and not the path itself, which may
    /// hold names.
    pub(crate) fn begin(&self, method: &Method, path: &str, headers: &HeaderMap) -> RequestSpan {
        let parent = self.propagator.extract(&TraceHeaders(headers));
        let span = self
            .tracer
            .span_builder(format!("{method} {path}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method.to_string()),
                KeyValue::new("http.route", path.to_owned()),
            ]);
        RequestSpan(self.tracer.build_with_context(span, &parent))
    }

    /// Sends what has not been sent; blocks for a few seconds at most.
    pub(crate) fn close(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

impl RequestSpan {
    /// The request was answered.
    pub(crate) fn end(mut self, status: u16) {
        self.0.set_attribute(KeyValue::new(
            "http.response.status_code",
            i64::from(status),
        ));
        if status >= 500 {
            self.0.set_status(Status::error(""));
        }
        self.0.end();
    }
}
