//! What the server counts, for Prometheus. Labels are names of models, paths and statuses, never
//! anything of a request.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The counters of a server. They belong to it alone, so that tests do not see each other's.
pub(crate) struct ServiceMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<PathLabels, Histogram>,
    erasures: Family<ModelLabels, Counter>,
    groups: Family<ModelLabels, Counter>,
    group_seconds: Family<ModelLabels, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabels {
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model: String,
}

/// From 50 µs to 26 s.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(50e-6, 2.0, 20))
}

impl ServiceMetrics {
    /// `hashes` counts the secrets of tokens that were hashed, `refused` the tokens that were refused
    /// without that.
    pub(crate) fn new(hashes: Counter, refused: Counter) -> Self {
        let mut registry = Registry::with_prefix("efface");
        registry.register("token_hashes", "Secrets of tokens that were hashed", hashes);
        registry.register("tokens_refused", "Tokens that do not exist", refused);
        let requests = Family::<RequestLabels, Counter>::default();
        let seconds = Family::<PathLabels, Histogram>::new_with_constructor(histogram);
        let erasures = Family::<ModelLabels, Counter>::default();
        let groups = Family::<ModelLabels, Counter>::default();
        let group_seconds = Family::<ModelLabels, Histogram>::new_with_constructor(histogram);
        registry.register("requests", "Requests by path and status", requests.clone());
        registry.register(
            "request_seconds",
            "Time from the head of a request to its answer",
            seconds.clone(),
        );
        registry.register(
            "erasures",
            "Erasure requests that reached the model",
            erasures.clone(),
        );
        registry.register(
            "erasure_commits",
            "Commits that erasures were made in",
            groups.clone(),
        );
        registry.register(
            "erasure_commit_seconds",
            "Time of such a commit",
            group_seconds.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            erasures,
            groups,
            group_seconds,
        }
    }

    /// A request was answered. `path` is the pattern of the path and not the path itself, which may
    /// hold names.
    pub(crate) fn request(&self, path: &str, status: u16, took: Duration) {
        self.requests
            .get_or_create(&RequestLabels {
                path: path.to_owned(),
                status,
            })
            .inc();
        self.seconds
            .get_or_create(&PathLabels {
                path: path.to_owned(),
            })
            .observe(took.as_secs_f64());
    }

    /// Erasures were made in one commit.
    pub(crate) fn group(&self, model: &str, erasures: usize, took: Duration) {
        let labels = ModelLabels {
            model: model.to_owned(),
        };
        self.erasures.get_or_create(&labels).inc_by(erasures as u64);
        self.groups.get_or_create(&labels).inc();
        self.group_seconds
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// All of it, as text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
