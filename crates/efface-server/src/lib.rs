//! efface over HTTP: `efface serve` is this crate.
//!
//! A [`Server`] serves every model of a folder. Its state is that of the model files; beside them
//! it keeps only the tokens and the requests that were accepted and are not done yet. Erasures that
//! wait together are one commit with a receipt each; predictions come from a snapshot that is
//! replaced after every change, so that they never wait for a forget.
//!
//! [`description`] is the OpenAPI document that the server gives at `/openapi.json`, and
//! [`ProblemCode`] the table of all errors.

mod access;
mod api;
mod app;
mod callbacks;
mod clock;
mod erasures;
mod listener;
mod metrics;
mod opendsr;
mod page;
mod problem;
mod registry;
mod server;
mod settings;
mod storage;
mod telemetry;
mod tls;
mod work;

pub use access::{NewToken, Scope, TokenError, TokenGrant, TokenRecord, TokenStore};
pub use api::description;
pub use callbacks::CallbackHost;
pub use clock::ServiceClock;
pub use problem::{Problem, ProblemCode, ProblemDetails, ProblemKind};
pub use server::{ServeError, Server};
pub use settings::{CallbackSettings, OpenDsrSettings, ServerSettings, ServiceLimits, TlsFiles};
pub use work::WorkPlace;
