//! Receipts, and the logs that they stand in. Every model has a log of its own.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use efface_engine::{Engine, Error};
use efface_receipt::{ConsistencyProof, Receipt, ReceiptBundle};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode, ProblemDetails};
use crate::registry::ServedModel;
use crate::work::WorkLost;

/// The media type of a receipt with its proofs.
const COSE: &str = "application/cose";

/// Receipts in one answer, at most.
const PAGE: u64 = 1000;

/// Which log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// The model whose log it is; may be left out where the server has one model.
    model: Option<String>,
}

/// Which part of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// The model whose log it is; may be left out where the server has one model.
    model: Option<String>,
    /// The first receipt, from 0.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    from: Option<u64>,
    /// How many, 1,000 at most; 100 unless this says otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// Which beginning of which log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BeginningQuery {
    /// The model whose log it is; may be left out where the server has one model.
    model: Option<String>,
    /// Receipts in the beginning that is known.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    from: Option<u64>,
}

/// Receipts of a log, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReceiptPage {
    model: String,
    /// Receipts in the log.
    size: u64,
    /// Receipts as their canonical JSON has them.
    #[schema(value_type = Vec<Object>)]
    receipts: Vec<Receipt>,
}

/// Proof that a log continues its beginning.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConsistencyAnswer {
    /// The signed head of the log.
    checkpoint: String,
    /// The proof, as in RFC 9162.
    #[schema(value_type = Object)]
    proof: ConsistencyProof,
}

/// A public key, and from which receipt on it signs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    model: String,
    /// The keys in the form of C2SP notes, oldest first.
    keys: Vec<String>,
}

/// A receipt in a form that people can read, with the bytes that can be verified.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReadableReceipt {
    model: String,
    /// The receipt as its canonical JSON has it.
    #[schema(value_type = Object)]
    receipt: Receipt,
    /// The signed receipt with its proofs, a COSE_Sign1, in base64.
    cose: String,
}

/// Lists the receipts of a log.
#[utoipa::path(
    get, path = "/v1/log/receipts", tag = "log", params(PageQuery), security(("token" = [])),
    responses((status = 200, description = "The receipts", body = ReceiptPage),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn receipts(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    query: Result<Query<PageQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<ReceiptPage>, Problem> {
    let Query(query) = query.map_err(bad_query)?;
    let model = log_of(&state, &caller, query.model.as_deref())?;
    let limit = query.limit.unwrap_or(100);
    if limit == 0 || limit > PAGE {
        return Err(Problem::invalid(format!(
            "limit is {limit}; it must be between 1 and {PAGE}"
        )));
    }
    let from = place(query.from)?;
    let name = model.name().to_owned();
    let (size, receipts) = blocking(&state, model, move |engine| {
        let mut receipts = Vec::new();
        let size =
            engine.receipts_between(from..from.saturating_add(limit), &mut |signed, _| {
                receipts.push(signed.receipt.clone());
                Ok(())
            })?;
        Ok((size, receipts))
    })
    .await?;
    Ok(Json(ReceiptPage {
        model: name,
        size,
        receipts,
    }))
}

/// Gives a receipt: readable, or with its proofs as COSE where the header Accept asks for that.
#[utoipa::path(
    get, path = "/v1/receipts/{id}", tag = "log", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the receipt, 32 hexadecimal digits")),
    responses((status = 200, description = "The receipt", content((ReadableReceipt = "application/json"), (Vec<u8> = "application/cose"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn receipt(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = wanted_form(&headers)?;
    let (model, bundle) = find_bundle(&state, &caller, id).await?;
    let model = model.name().to_owned();
    let bytes = bundle.to_bytes().map_err(Error::from)?;
    let mut response = match form {
        ReceiptForm::Cose => (
            ([(header::CONTENT_TYPE, HeaderValue::from_static(COSE))]),
            bytes,
        )
            .into_response(),
        ReceiptForm::Readable => {
            let cose = data_encoding::BASE64.encode(&bytes);
            Json(ReadableReceipt {
                model,
                receipt: bundle.signed.receipt,
                cose,
            })
            .into_response()
        }
    };
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// The receipt of an id, in whichever log that the caller may see.
pub(super) async fn find_bundle(
    state: &ServiceState,
    caller: &Caller,
    id: String,
) -> Result<(Arc<ServedModel>, ReceiptBundle), Problem> {
    caller.allow(Scope::Audit, None)?;
    let unknown = || Problem::new(ProblemCode::NotFound, "no log holds a receipt of that id");
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(unknown());
    }
    let seen: Vec<_> = state
        .models
        .all()
        .into_iter()
        .filter(|model| caller.sees(model.name()))
        .collect();
    let found = state.settings.work.run(
        move || -> Result<Option<(Arc<ServedModel>, ReceiptBundle)>, Error> {
            for model in seen {
                match model.ask(|engine| engine.bundle(&id)) {
                    Ok(bundle) => return Ok(Some((model, bundle))),
                    Err(Error::UnknownReceipt { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        },
    );
    found.await.map_err(stopped)??.ok_or_else(unknown)
}

/// Gives the signed head of a log, a C2SP checkpoint.
#[utoipa::path(
    get, path = "/v1/log/checkpoint", tag = "log", params(LogQuery), security(("token" = [])),
    responses((status = 200, description = "The checkpoint", body = String, content_type = "text/plain"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn checkpoint(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    query: Result<Query<LogQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<String, Problem> {
    let Query(query) = query.map_err(bad_query)?;
    let model = log_of(&state, &caller, query.model.as_deref())?;
    blocking(&state, model, Engine::checkpoint).await
}

/// Gives the public keys of a log.
#[utoipa::path(
    get, path = "/v1/log/keys", tag = "log", params(LogQuery), security(("token" = [])),
    responses((status = 200, description = "The keys", body = KeyList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn keys(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    query: Result<Query<LogQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<KeyList>, Problem> {
    let Query(query) = query.map_err(bad_query)?;
    let model = log_of(&state, &caller, query.model.as_deref())?;
    let name = model.name().to_owned();
    let keys = blocking(&state, model, Engine::public_keys).await?;
    Ok(Json(KeyList {
        model: name,
        keys: keys.iter().map(|key| key.key.to_string()).collect(),
    }))
}

/// Proves that a log continues the one of its first `from` receipts.
#[utoipa::path(
    get, path = "/v1/log/consistency", tag = "log", params(BeginningQuery), security(("token" = [])),
    responses((status = 200, description = "The proof", body = ConsistencyAnswer),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn consistency(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    query: Result<Query<BeginningQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<ConsistencyAnswer>, Problem> {
    let Query(query) = query.map_err(bad_query)?;
    let model = log_of(&state, &caller, query.model.as_deref())?;
    let from = place(query.from)?;
    let (checkpoint, proof) = blocking(&state, model, move |engine| {
        Ok((engine.checkpoint()?, engine.consistency(from)?))
    })
    .await?;
    Ok(Json(ConsistencyAnswer { checkpoint, proof }))
}

/// A place in a log. JSON has no whole numbers beyond 2^53.
fn place(asked: Option<u64>) -> Result<u64, Problem> {
    let place = asked.unwrap_or(0);
    if place >= 1 << 53 {
        return Err(Problem::invalid("from is 2^53 or more; no log is as long"));
    }
    Ok(place)
}

/// In which form a receipt is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiptForm {
    Readable,
    Cose,
}

fn wanted_form(headers: &HeaderMap) -> Result<ReceiptForm, Problem> {
    let Some(accept) = headers.get(header::ACCEPT) else {
        return Ok(ReceiptForm::Readable);
    };
    let accept = accept.to_str().unwrap_or_default();
    for kind in accept
        .split(',')
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
    {
        match kind {
            COSE => return Ok(ReceiptForm::Cose),
            "application/json" | "application/*" | "*/*" => return Ok(ReceiptForm::Readable),
            _ => {}
        }
    }
    Err(Problem::new(
        ProblemCode::NotAcceptable,
        "a receipt is application/json or application/cose",
    ))
}

/// The log that is meant.
fn log_of(
    state: &ServiceState,
    caller: &Caller,
    asked: Option<&str>,
) -> Result<Arc<ServedModel>, Problem> {
    let model = match asked {
        Some(name) => {
            caller.allow(Scope::Audit, Some(name))?;
            return state.models.find(name);
        }
        None => {
            let mut all = state.models.all();
            match (all.pop(), all.is_empty()) {
                (Some(model), true) => model,
                _ => {
                    return Err(Problem::invalid(
                        "the server has not one model; name one with `model`",
                    ));
                }
            }
        }
    };
    caller.allow(Scope::Audit, Some(model.name()))?;
    Ok(model)
}

/// Asks a model where blocking does no harm.
pub(super) async fn blocking<T: Send + 'static>(
    state: &ServiceState,
    model: Arc<ServedModel>,
    question: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
) -> Result<T, Problem> {
    let answer = state
        .settings
        .work
        .run(move || model.ask(question))
        .await
        .map_err(stopped)?;
    answer.map_err(Problem::from)
}

pub(super) fn stopped(_: WorkLost) -> Problem {
    Problem::new(
        ProblemCode::Internal,
        "the thread that reads the log has stopped",
    )
}

fn bad_query(_: axum::extract::rejection::QueryRejection) -> Problem {
    Problem::invalid("the query of the path is not of the form that /openapi.json describes")
}
