//! What can be shown to others about a request: its proofs, an evidence pack, and the newest audit
//! as pictures.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use efface_engine::ReceiptQuery;
use efface_evidence::{EvidenceError, EvidencePack, audit_figures};
use efface_receipt::{AuditEntry, ConsistencyProof, Hash, InclusionProof, LogHead, leaf_hash};
use efface_report::Figure;
use serde::Serialize;
use utoipa::ToSchema;

use super::ledger::{find_bundle, stopped};
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// The media type of an evidence pack.
const ZIP: &str = "application/zip";

/// Where a receipt stands in its log, as RFC 9162 proves it. The same proofs are in the receipt's
/// COSE file.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReceiptProofs {
    model: String,
    /// The signed head of the log, a C2SP checkpoint, which the proofs lead to.
    checkpoint: String,
    /// The hash of the receipt's leaf.
    #[schema(value_type = String)]
    leaf: Hash,
    /// That the receipt is in the log.
    #[schema(value_type = Object)]
    inclusion: InclusionProof,
    /// The head of the log that the receipt was written on.
    #[schema(value_type = Object)]
    previous: Option<LogHead>,
    /// That the log continues that head; absent for the first receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    consistency: Option<ConsistencyProof>,
}

/// The newest audit on record.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditOnRecord {
    model: String,
    /// The id of its receipt.
    receipt: String,
    /// When it was put on record.
    recorded_at: String,
    /// Names of tests and what they found, as signed.
    #[schema(value_type = Vec<Object>)]
    results: Vec<AuditEntry>,
    figures: Vec<AuditPicture>,
}

/// A figure of an audit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditPicture {
    /// What it shows.
    caption: String,
    /// The figure, one `svg` element without scripts and styles.
    svg: String,
}

impl From<&Figure> for AuditPicture {
    fn from(figure: &Figure) -> Self {
        Self {
            caption: figure.caption(),
            svg: figure.drawings().concat(),
        }
    }
}

/// Gives the proofs that a receipt is in its log, and that the log continues the one it was written
/// on.
#[utoipa::path(
    get, path = "/v1/receipts/{id}/proofs", tag = "log", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the receipt, 32 hexadecimal digits")),
    responses((status = 200, description = "The proofs", body = ReceiptProofs),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn proofs(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Json<ReceiptProofs>, Problem> {
    let (model, bundle) = find_bundle(&state, &caller, id).await?;
    let leaf = bundle
        .signed
        .to_bytes()
        .map_err(efface_engine::Error::from)?;
    Ok(Json(ReceiptProofs {
        model: model.name().to_owned(),
        checkpoint: bundle.head.checkpoint,
        leaf: leaf_hash(&leaf),
        inclusion: bundle.inclusion,
        previous: bundle.signed.receipt.previous,
        consistency: bundle.consistency,
    }))
}

/// Gives an evidence pack: a ZIP file with the receipt, what settled it, the audits since, their
/// proofs, the head of the log, its keys and a page to read. `efface verify` takes it.
#[utoipa::path(
    get, path = "/v1/receipts/{id}/evidence", tag = "log", security(("token" = [])),
    params(("id" = String, Path, description = "The id of the receipt, 32 hexadecimal digits")),
    responses((status = 200, description = "The pack", content((Vec<u8> = "application/zip"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn pack(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Response, Problem> {
    let (model, bundle) = find_bundle(&state, &caller, id).await?;
    let number = bundle.signed.receipt.sequence;
    let made = state.settings.work.run(move || {
        let query = ReceiptQuery::Receipt(number.to_string());
        model.ask(|engine| EvidencePack::gather(engine, &query)?.zip())
    });
    let bytes = made.await.map_err(stopped)?.map_err(|error| match error {
        EvidenceError::Model(error) => error.into(),
        error => {
            tracing::error!(%error, "no evidence pack could be made");
            Problem::new(ProblemCode::Internal, "the server's log says what is wrong")
        }
    })?;
    let mut response = (
        [(header::CONTENT_TYPE, HeaderValue::from_static(ZIP))],
        bytes,
    )
        .into_response();
    let name = format!("attachment; filename=\"evidence-{number}.zip\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        response
            .headers_mut()
            .insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Gives the newest audit of a model that was put on record, with its figures.
#[utoipa::path(
    get, path = "/v1/models/{model}/audit", tag = "models", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model")),
    responses((status = 200, description = "The audit", body = AuditOnRecord),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn audit(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
) -> Result<Json<AuditOnRecord>, Problem> {
    caller.allow(Scope::Audit, Some(&name))?;
    let model = state.models.find(&name)?;
    let found = state
        .settings
        .work
        .run(move || model.newest_audit())
        .await
        .map_err(stopped)??;
    let Some(receipt) = found else {
        let detail = "no audit of this model is on record; `efface audit` can put one there";
        return Err(Problem::new(ProblemCode::NotFound, detail));
    };
    Ok(Json(AuditOnRecord {
        model: name,
        receipt: receipt.id,
        recorded_at: receipt.times.received_at.to_string(),
        figures: audit_figures(&receipt.audit)
            .iter()
            .map(AuditPicture::from)
            .collect(),
        results: receipt.audit,
    }))
}
