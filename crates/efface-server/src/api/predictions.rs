//! Scores.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{RowsToScore, ScoredBody, unpacked};
use super::path::NameInPath;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// Rows that are scored where the request is read; more of them would keep other requests waiting.
const AT_ONCE: usize = 16;

/// What scores the rows of a request, here or on another thread.
type ScoringTask =
    Box<dyn FnOnce() -> efface_engine::Result<Vec<efface_engine::Prediction>> + Send>;

/// The scores of all rows, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PredictionList {
    /// Names of the scores.
    outputs: Vec<String>,
    /// Changes of the model between its fit and these scores.
    generation: u64,
    predictions: Vec<RowPrediction>,
}

/// The scores of a row.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RowPrediction {
    /// The row's id, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// One score for each output; null for one that is no number.
    scores: Vec<f64>,
    /// The class, or the number of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// Scores rows, by the names of their cells or in the order of the model's columns. Targets are not
/// needed, and columns that the model does not know are passed over.
#[utoipa::path(
    post, path = "/v1/models/{model}/predictions", tag = "predictions", security(("token" = [])),
    params(("model" = String, Path, description = "The name of the model")),
    request_body(content((ScoredBody = "application/json"), (Vec<u8> = "application/octet-stream")),
        description = "As application/octet-stream: numbers in the order of the model's columns, row after row, each eight bytes of IEEE 754 with the lowest first; NaN is a missing cell"),
    responses((status = 200, description = "The scores", body = PredictionList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"))
)]
pub(super) async fn create(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(name): NameInPath,
    request: Request,
) -> Result<Json<PredictionList>, Problem> {
    caller.allow(Scope::Predict, Some(&name))?;
    let scorer = state.models.find(&name)?.scorer();
    let rows = RowsToScore::read(request).await?;
    let generation = scorer.generation();
    let outputs = scorer.outputs().to_vec();
    let (count, score): (usize, ScoringTask) = match rows {
        RowsToScore::Named(records) => {
            (records.len(), Box::new(move || scorer.predict_all(records)))
        }
        RowsToScore::Ordered(cells) => (
            cells.len(),
            Box::new(move || scorer.predict_in_order(&cells)),
        ),
        RowsToScore::Packed(bytes) => {
            let Some(columns) = scorer.column_count() else {
                let detail =
                    "the model reads no columns that have an order; name the cells of a row";
                return Err(Problem::invalid(detail));
            };
            let numbers = unpacked(&bytes, columns)?;
            (
                numbers.len() / columns,
                Box::new(move || scorer.predict_numbers(&numbers)),
            )
        }
    };
    let scored = if count <= AT_ONCE {
        score()
    } else {
        let stopped = |_| Problem::new(ProblemCode::Internal, "the thread that scores has stopped");
        state.settings.work.run(score).await.map_err(stopped)?
    };
    let row = |row: efface_engine::Prediction| RowPrediction {
        id: row.id,
        scores: row.scores,
        label: row.label,
    };
    Ok(Json(PredictionList {
        outputs,
        generation,
        predictions: scored?.into_iter().map(row).collect(),
    }))
}
