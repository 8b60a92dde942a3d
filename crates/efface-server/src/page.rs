//! The page for people, and what it is made of. Nothing of it comes from elsewhere.

use std::fmt::Write;
use std::sync::Arc;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::{Content, HttpMethod, PathItem, Paths, Ref, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};

/// What the page may load: itself, and nothing else. WebAssembly is the verifier of receipts.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The verifier of receipts, a WebAssembly program packed by gzip, which every browser that has
/// WebAssembly takes; None where it was not there when the server was built.
#[cfg(browser_verifier)]
const VERIFIER: Option<&[u8]> = Some(include_bytes!(env!("EFFACE_VERIFIER_WASM")));
#[cfg(not(browser_verifier))]
const VERIFIER: Option<&[u8]> = None;

/// The paths that need no token: they hold nothing of any model.
pub(crate) fn paths() -> OpenApiRouter<Arc<ServiceState>> {
    let html = "text/html; charset=utf-8";
    let script = "text/javascript; charset=utf-8";
    let style = "text/css; charset=utf-8";
    let json = "application/json";
    let page = asset(html, include_bytes!("../page/index.html"));
    let styles = asset(style, include_bytes!("../page/style.css"));
    let app = asset(script, include_bytes!("../page/app.js"));
    let check = asset(script, include_bytes!("../page/verifier.js"));
    let description = get(|| async { axum::Json(crate::api::description()) });
    OpenApiRouter::new()
        .routes(file("/", html, "The page for people", page))
        .routes(file("/page/style.css", style, "Its styles", styles))
        .routes(file("/page/app.js", script, "Its script", app))
        .routes(file(
            "/page/verifier.js",
            script,
            "Loads the verifier of receipts",
            check,
        ))
        .routes(file(
            "/page/verifier.wasm",
            "application/wasm",
            "The verifier of receipts",
            get(verifier),
        ))
        .routes(file("/openapi.json", json, "This description", description))
        .routes(file(
            "/problems",
            html,
            "The table of problems",
            get(problems),
        ))
}

/// A path that gives a file, with its description.
fn file(
    path: &str,
    kind: &str,
    description: &str,
    handler: MethodRouter<Arc<ServiceState>>,
) -> UtoipaMethodRouter<Arc<ServiceState>> {
    let essence = kind.split(';').next().unwrap_or(kind);
    let found = ResponseBuilder::new()
        .description(description)
        .content(essence, Content::default());
    let problem = Content::new(Some(Ref::from_schema_name("ProblemDetails")));
    let failed = ResponseBuilder::new()
        .description("A problem")
        .content("application/problem+json", problem);
    let operation = OperationBuilder::new()
        .tag("page")
        .summary(Some(description))
        .response("200", found)
        .response("default", failed);
    let mut paths = Paths::new();
    let item = PathItem::new(HttpMethod::Get, operation);
    paths.paths.insert(path.to_owned(), item);
    (Vec::new(), paths, handler)
}

fn asset(kind: &'static str, bytes: &'static [u8]) -> MethodRouter<Arc<ServiceState>> {
    get(move || async move { with_policy(([(header::CONTENT_TYPE, kind)], bytes).into_response()) })
}

async fn verifier() -> Response {
    match VERIFIER {
        Some(bytes) => {
            let headers = [
                (header::CONTENT_TYPE, "application/wasm"),
                (header::CONTENT_ENCODING, "gzip"),
            ];
            with_policy((headers, bytes).into_response())
        }
        None => {
            let detail = "this server was built without the verifier for browsers";
            Problem::new(ProblemCode::NotFound, detail).into_response()
        }
    }
}

fn with_policy(mut response: Response) -> Response {
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    response
}

/// The table of problems, for people who follow the `type` of one.
async fn problems() -> Response {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>efface: problems</title><h1>Problems</h1><dl>",
    );
    for code in ProblemCode::ALL {
        let kind = code.kind();
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "<dt id=\"{0}\"><code>{0}</code>, {1}: {2}</dt><dd>{3}</dd>",
            kind.code, kind.status, kind.title, kind.advice
        );
    }
    page.push_str("</dl></html>");
    with_policy(Html(page).into_response())
}
