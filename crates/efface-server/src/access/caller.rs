//! Who sends a request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{header, request::Parts};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::token::{Scope, TokenRecord};
use super::token_store::TokenStore;
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode};

/// What a server without tokens calls everyone.
const ANYONE: &str = "anyone";

/// Who sends a request, and what they may do.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    token: Option<TokenRecord>,
}

impl Caller {
    /// The id of the token, which is no secret.
    pub(crate) fn id(&self) -> &str {
        self.token.as_ref().map_or(ANYONE, |token| &token.id)
    }

    /// Whether two callers cannot be told apart, so that one cannot approve what the other asked
    /// for.
    pub(crate) fn is_anyone(&self) -> bool {
        self.token.is_none()
    }

    /// Fails unless the caller has this scope, for whichever models.
    pub(crate) fn allow_scope(&self, scope: Scope) -> Result<(), Problem> {
        let has = |token: &TokenRecord| {
            token.scopes.contains(&Scope::Admin) || token.scopes.contains(&scope)
        };
        if self.token.as_ref().is_none_or(has) {
            return Ok(());
        }
        let detail = format!("the token has not the scope `{scope}`");
        Err(Problem::new(ProblemCode::Forbidden, detail))
    }

    /// Fails unless the caller has this scope and may use this model.
    pub(crate) fn allow(&self, scope: Scope, model: Option<&str>) -> Result<(), Problem> {
        self.allow_scope(scope)?;
        let Some(token) = &self.token else {
            return Ok(());
        };
        match (&token.models, model) {
            (Some(models), Some(model)) if !models.iter().any(|known| known == model) => Err(
                Problem::new(ProblemCode::Forbidden, "the token is not for this model"),
            ),
            (Some(_), None) if scope != Scope::Audit => Err(Problem::new(
                ProblemCode::Forbidden,
                "the token is for some models only, and this request is about all of them",
            )),
            _ => Ok(()),
        }
    }

    /// Whether the caller may see that a model exists.
    pub(crate) fn sees(&self, model: &str) -> bool {
        let models = self.token.as_ref().and_then(|token| token.models.as_ref());
        models.is_none_or(|models| models.iter().any(|known| known == model))
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // A path that was put outside the guard by mistake must not become open.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(unauthenticated)
    }
}

/// Finds out who sends a request, before anything else looks at it.
pub(crate) async fn authenticate(
    State(state): State<Arc<ServiceState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let token = bearer(&request).map(str::to_owned);
    let client = request.extensions().get::<ClientAddress>().copied();
    match identify(&state, token, client).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl ClientAddress {
    /// The network whose addresses count as one client: in IPv6, a client has 2⁶⁴ of them.
    fn network(self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}")
            }
        }
    }
}

async fn identify(
    state: &Arc<ServiceState>,
    token: Option<String>,
    client: Option<ClientAddress>,
) -> Result<Caller, Problem> {
    let Some(tokens) = state.tokens.clone() else {
        return Ok(Caller { token: None });
    };
    let text = token.ok_or_else(unauthenticated)?;
    let found = match tokens.known(&text) {
        Some(record) => Some(record),
        None if !tokens.is_plausible(&text) => None,
        None => hashed(state, tokens, text, client).await?,
    };
    let record = found.ok_or_else(unauthenticated)?;
    if !state.rates.admit(&record.id, Instant::now()) {
        return Err(Problem::new(
            ProblemCode::TooManyRequests,
            "the token has sent too many requests",
        ));
    }
    Ok(Caller {
        token: Some(record),
    })
}

/// The token that a text is, hashed slowly. Two texts are hashed at a time at most, so that wrong
/// tokens cannot take all processors, and each client has its share.
async fn hashed(
    state: &Arc<ServiceState>,
    tokens: Arc<TokenStore>,
    text: String,
    client: Option<ClientAddress>,
) -> Result<Option<TokenRecord>, Problem> {
    let turn = state.hashing.acquire().await;
    let _turn = turn.map_err(|_| unauthenticated())?;
    // The same token may have come in another request in the meantime.
    if let Some(record) = tokens.known(&text) {
        return Ok(Some(record));
    }
    let client = client.map_or_else(String::new, ClientAddress::network);
    if !state.hash_rates.admit(&client, Instant::now()) {
        return Err(Problem::new(
            ProblemCode::TooManyRequests,
            "the client has sent too many tokens that are new to the server",
        ));
    }
    let checked = state.settings.work.run(move || tokens.check(&text)).await;
    checked.map_err(|_| unauthenticated())?.map_err(|error| {
        tracing::error!(%error, "a token could not be checked");
        Problem::new(ProblemCode::Internal, "the token could not be checked")
    })
}

fn bearer(request: &Request) -> Option<&str> {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    // Two headers could be read differently by a proxy and by us.
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthenticated() -> Problem {
    Problem::new(
        ProblemCode::Unauthenticated,
        "no token that is known came with the request",
    )
}
