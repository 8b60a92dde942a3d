//! Bodies of requests: JSON, whose faults are told by their place and never by their content.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use efface::features::Cell;
use efface_engine::RecordTable;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemCode};

/// Whole numbers up to here are numbers; larger ones would lose digits and are taken as text.
const LARGEST_INTEGER: u64 = 1 << 53;

/// A body of JSON.
pub(super) struct JsonBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let essence = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        if essence.as_deref() != Some("application/json") {
            let detail = "the header Content-Type must be application/json";
            return Err(Problem::new(ProblemCode::UnsupportedMedia, detail));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(unreadable)?;
        parse(&bytes).map(Self)
    }
}

/// Reads JSON. The parser's own words may repeat what it stumbled over, which may be a row.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => "the JSON is not of the form that /openapi.json describes",
            _ => "the body is not JSON",
        };
        Problem::invalid(format!("line {}, column {}: {what}", error.line(), error.column()))
    })
}

fn unreadable(rejection: BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(ProblemCode::BodyTooLarge, "the body is larger than this server takes");
    }
    Problem::invalid("the body could not be read to its end")
}

/// Rows, as objects of named cells.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsBody {
    /// The rows: objects whose keys are the columns of the model and whose values are numbers, texts, booleans or null.
    #[schema(value_type = Vec<std::collections::HashMap<String, Value>>, min_items = 1)]
    rows: Vec<Map<String, Value>>,
}

impl RowsBody {
    /// The rows as the engine takes them.
    pub(super) fn into_records(self) -> Result<RecordTable, Problem> {
        if self.rows.is_empty() {
            return Err(Problem::invalid("`rows` is empty; at least one row is needed"));
        }
        let mut records = Vec::with_capacity(self.rows.len());
        for (at, row) in self.rows.into_iter().enumerate() {
            let mut cells = Vec::with_capacity(row.len());
            for (column, value) in row {
                let cell = cell(value).ok_or_else(|| {
                    let detail =
                        format!("row {}, column `{column}`: arrays and objects are no cells", at + 1);
                    Problem::new(ProblemCode::InvalidRows, detail)
                })?;
                cells.push((column, cell));
            }
            records.push(cells);
        }
        Ok(RecordTable::from_records(records)?)
    }
}

fn cell(value: Value) -> Option<Cell> {
    match value {
        Value::Null => Some(Cell::Missing),
        Value::Bool(truth) => Some(Cell::Text(truth.to_string())),
        Value::Number(number) => {
            let exact = match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => whole <= LARGEST_INTEGER,
                (None, Some(whole)) => whole.unsigned_abs() <= LARGEST_INTEGER,
                (None, None) => true,
            };
            match number.as_f64().filter(|_| exact) {
                Some(value) => Some(Cell::Number(value)),
                None => Some(Cell::Text(number.to_string())),
            }
        }
        Value::String(text) => Some(Cell::Text(text)),
        Value::Array(_) | Value::Object(_) => None,
    }
}
