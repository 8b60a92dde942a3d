//! The paths of the service, and what every request passes on its way.

mod body;
mod callbacks;
mod data_deletions;
mod erasures;
mod evidence;
mod guard;
mod ledger;
mod models;
mod opendsr;
mod operation;
mod path;
mod predictions;
mod rows;
mod time;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::access::authenticate;
use crate::app::ServiceState;
use crate::page;
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// What the description of the service says of itself.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "efface",
        description = "Erasure requests, receipts and predictions of models that forget. Errors are problem details (RFC 9457).",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ProblemDetails)),
    modifiers(&BearerToken)
)]
struct ServiceDescription;

struct BearerToken;

impl utoipa::Modify for BearerToken {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        description
            .components
            .get_or_insert_default()
            .add_security_scheme("token", scheme);
    }
}

/// All paths, without what they share.
fn paths() -> (
    Router<Arc<ServiceState>>,
    Router<Arc<ServiceState>>,
    utoipa::openapi::OpenApi,
) {
    let (guarded, described) = OpenApiRouter::with_openapi(ServiceDescription::openapi())
        .routes(routes!(models::list))
        .routes(routes!(models::show))
        .routes(routes!(erasures::create))
        .routes(routes!(erasures::create_everywhere))
        .routes(routes!(erasures::list))
        .routes(routes!(erasures::show, erasures::withdraw))
        .routes(routes!(erasures::approve))
        .routes(routes!(rows::learn, rows::amend))
        .routes(routes!(predictions::create))
        .routes(routes!(ledger::receipts))
        .routes(routes!(ledger::receipt))
        .routes(routes!(evidence::proofs))
        .routes(routes!(evidence::pack))
        .routes(routes!(evidence::audit))
        .routes(routes!(ledger::checkpoint))
        .routes(routes!(ledger::keys))
        .routes(routes!(ledger::consistency))
        .routes(routes!(callbacks::list))
        .routes(routes!(callbacks::give_up))
        .routes(routes!(callbacks::retry))
        .routes(routes!(opendsr::create))
        .routes(routes!(opendsr::show, opendsr::cancel))
        .routes(also_at(
            "/opendsr/v1/opengdpr_requests",
            routes!(opendsr::create),
        ))
        .routes(also_at(
            "/opendsr/v1/opengdpr_requests/{id}",
            routes!(opendsr::show, opendsr::cancel),
        ))
        .routes(also_at("/opendsr/v2/status/{id}", routes!(opendsr::show)))
        .routes(routes!(data_deletions::create))
        .routes(routes!(data_deletions::show, data_deletions::cancel))
        .routes(routes!(operation::metrics))
        .split_for_parts();
    let (open, health) = OpenApiRouter::new()
        .routes(routes!(operation::alive))
        .routes(routes!(operation::ready))
        .routes(routes!(opendsr::discovery))
        .routes(also_at(
            "/opendsr/v1/discovery",
            routes!(opendsr::discovery),
        ))
        .routes(routes!(opendsr::certificate))
        .merge(page::paths())
        .split_for_parts();
    let mut described = described;
    described.merge(health);
    (guarded, open, described)
}

/// The same handlers at another path: OpenDSR had other names before, and lists one that it does not
/// describe.
fn also_at(
    path: &str,
    (schemas, mut described, handlers): UtoipaMethodRouter<Arc<ServiceState>>,
) -> UtoipaMethodRouter<Arc<ServiceState>> {
    if let Some((_, mut item)) = described.paths.pop_first() {
        // An operation has its name at one path alone.
        let operations = [&mut item.get, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.operation_id = None;
        }
        described.paths.insert(path.to_owned(), item);
    }
    (schemas, described, handlers)
}

/// The description of the service, as /openapi.json gives it.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    paths().2
}

/// The service as one handler of requests.
pub(crate) fn router(state: &Arc<ServiceState>) -> Router {
    let limits = state.settings.limits;
    let (guarded, open, _) = paths();
    guarded
        .layer(middleware::from_fn_with_state(state.clone(), authenticate))
        .merge(open)
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(middleware::from_fn_with_state(state.clone(), guard::admit))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            guard::in_time,
        ))
        .layer(GlobalConcurrencyLimitLayer::new(limits.concurrent_requests))
        .layer(CatchPanicLayer::custom(guard::after_panic))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            guard::observe,
        ))
        .with_state(state.clone())
}

async fn nothing_here() -> Problem {
    Problem::new(ProblemCode::NotFound, "there is nothing at this path")
}

async fn wrong_method() -> Problem {
    Problem::new(
        ProblemCode::MethodNotAllowed,
        "the path does not take this method",
    )
}
