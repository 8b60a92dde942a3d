//! Rows that join a model, and rows that are corrected.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use efface_engine::{ChangeReport, Error, RecordTable};
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::body::{RowsBody, read_json};
use super::erasures::ReceiptLink;
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode, ProblemDetails};
use crate::registry::ChangeOrder;

/// What a change of rows did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RowsChanged {
    /// `exact`, `certified` or `approximate`.
    claim: String,
    /// Rows that joined.
    learned: usize,
    /// Rows that left.
    forgotten: usize,
    /// Rows in the model afterwards.
    rows: usize,
    /// An upper bound on the distance to a model fitted anew; null where nothing is known.
    bound: Option<f64>,
    /// The receipt.
    receipt: Option<ReceiptLink>,
}

/// Adds rows.
#[utoipa::path(
    post, path = "/v1/models/{model}/rows", tag = "rows", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model")),
    request_body = RowsBody,
    responses((status = 200, description = "The rows are in the model", body = RowsChanged),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn learn(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
    request: Request,
) -> Result<Json<RowsChanged>, Problem> {
    change(&state, &caller, &name, request, ChangeOrder::Learn).await
}

/// Replaces rows by rows of the same ids.
#[utoipa::path(
    patch, path = "/v1/models/{model}/rows", tag = "rows", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model")),
    request_body = RowsBody,
    responses((status = 200, description = "The rows are corrected", body = RowsChanged),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn amend(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
    request: Request,
) -> Result<Json<RowsChanged>, Problem> {
    change(&state, &caller, &name, request, ChangeOrder::Amend).await
}

async fn change(
    state: &Arc<ServiceState>,
    caller: &Caller,
    name: &str,
    request: Request,
    order: fn(RecordTable, oneshot::Sender<Result<ChangeReport, Error>>) -> ChangeOrder,
) -> Result<Json<RowsChanged>, Problem> {
    caller.allow(Scope::Learn, Some(name))?;
    let model = state.models.find(name)?;
    let records = read_json::<RowsBody>(request).await?.into_records()?;
    let (answer, reply) = oneshot::channel();
    model.order(order(records, answer))?;
    let stopped = |_| Problem::new(ProblemCode::Internal, "the thread of the model has stopped");
    let report = reply.await.map_err(stopped)??;
    Ok(Json(RowsChanged {
        claim: report.claim,
        learned: report.learned,
        forgotten: report.forgotten,
        rows: report.rows,
        bound: report.bound.is_finite().then_some(report.bound),
        receipt: report
            .receipt
            .as_ref()
            .map(|place| ReceiptLink::new(name, place)),
    }))
}
