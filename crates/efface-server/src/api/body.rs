//! Bodies of requests: JSON, whose faults are told by their place and never by their content.

use std::fmt;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use efface::features::Cell;
use efface_engine::RecordTable;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemCode};

/// Whole numbers up to here are numbers; larger ones would lose digits and are taken as text.
const LARGEST_INTEGER: u64 = 1 << 53;

/// Reads the body of a request as JSON. Handlers call it once the caller is allowed to do what is
/// asked: the body of a request that is refused is not read.
pub(super) async fn read_json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    if !is_of_type(&request, JSON) {
        let detail = "the header Content-Type must be application/json";
        return Err(Problem::new(ProblemCode::UnsupportedMedia, detail));
    }
    parse(&read_bytes(request).await?)
}

/// Reads the body of a request.
pub(super) async fn read_bytes(request: Request) -> Result<Bytes, Problem> {
    Bytes::from_request(request, &()).await.map_err(unreadable)
}

const JSON: &str = "application/json";

/// Numbers as they lie in memory: no text has to be read.
pub(super) const PACKED: &str = "application/octet-stream";

fn is_of_type(request: &Request, wanted: &str) -> bool {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case(wanted))
}

/// Rows to score.
pub(super) enum RowsToScore {
    /// With names, as the engine takes them.
    Named(RecordTable),
    /// In the order of the model's columns.
    Ordered(Vec<Vec<Cell>>),
    /// Numbers in the order of the model's columns, row after row, each as eight bytes of IEEE 754,
    /// the lowest first.
    Packed(Bytes),
}

impl RowsToScore {
    /// Reads the rows of a request.
    pub(super) async fn read(request: Request) -> Result<Self, Problem> {
        if is_of_type(&request, PACKED) {
            return Ok(Self::Packed(read_bytes(request).await?));
        }
        match read_json(request).await? {
            ScoredBody {
                rows: Some(rows),
                cells: None,
            } => Ok(Self::Named(records(rows)?)),
            ScoredBody {
                rows: None,
                cells: Some(cells),
            } => Ok(Self::Ordered(ordered(cells)?)),
            _ => Err(Problem::invalid(
                "one of `rows` and `cells` is needed, and not both",
            )),
        }
    }
}

/// Reads JSON. The parser's own words may repeat what it stumbled over, which may be a row.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => {
                "the JSON is not of the form that /openapi.json describes"
            }
            _ => "the body is not JSON",
        };
        Problem::invalid(format!(
            "line {}, column {}: {what}",
            error.line(),
            error.column()
        ))
    })
}

fn unreadable(rejection: BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(
            ProblemCode::BodyTooLarge,
            "the body is larger than this server takes",
        );
    }
    Problem::invalid("the body could not be read to its end")
}

/// Rows, as objects of named cells.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsBody {
    /// The rows: objects whose keys are the columns of the model and whose values are numbers,
    /// texts, booleans or null.
    #[schema(value_type = Vec<std::collections::HashMap<String, Value>>, min_items = 1)]
    rows: Vec<NamedCells>,
}

/// Rows to score: with names, or in the order of the model's columns, which is faster where there
/// are many. One of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScoredBody {
    /// Objects whose keys are the columns of the model and whose values are numbers, texts,
    /// booleans or null.
    #[serde(default)]
    #[schema(value_type = Option<Vec<std::collections::HashMap<String, Value>>>, min_items = 1)]
    rows: Option<Vec<NamedCells>>,
    /// Arrays of numbers, texts, booleans or null, in the order of `columns` of the model.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Vec<Value>>>, min_items = 1)]
    cells: Option<Vec<Vec<RowCell>>>,
}

/// The cells of an object under their names, as they stand there.
#[derive(Debug)]
pub(super) struct NamedCells(Vec<(String, RowCell)>);

/// A cell; None for what is none.
#[derive(Debug)]
pub(super) struct RowCell(Option<Cell>);

impl<'de> Deserialize<'de> for NamedCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairVisitor;
        impl<'de> Visitor<'de> for PairVisitor {
            type Value = NamedCells;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedCells, A::Error> {
                let mut cells = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    cells.push(entry);
                }
                Ok(NamedCells(cells))
            }
        }
        deserializer.deserialize_map(PairVisitor)
    }
}

impl<'de> Deserialize<'de> for RowCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor).map(Self)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Option<Cell>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some(Cell::Missing))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(Some(Cell::Text(truth.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(Cell::Number(number)))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<Self::Value, E> {
        Ok(Some(if whole <= LARGEST_INTEGER {
            Cell::Number(whole as f64)
        } else {
            Cell::Text(whole.to_string())
        }))
    }

    fn visit_i64<E>(self, whole: i64) -> Result<Self::Value, E> {
        let exact = whole.unsigned_abs() <= LARGEST_INTEGER;
        Ok(Some(if exact {
            Cell::Number(whole as f64)
        } else {
            Cell::Text(whole.to_string())
        }))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cell::Text(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(Cell::Text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl RowsBody {
    /// The rows as the engine takes them.
    pub(super) fn into_records(self) -> Result<RecordTable, Problem> {
        records(self.rows)
    }
}

/// Rows with names as the engine takes them.
fn records(rows: Vec<NamedCells>) -> Result<RecordTable, Problem> {
    if rows.is_empty() {
        return Err(Problem::invalid(
            "`rows` is empty; at least one row is needed",
        ));
    }
    let mut records = Vec::with_capacity(rows.len());
    for (at, NamedCells(row)) in rows.into_iter().enumerate() {
        let mut cells = Vec::with_capacity(row.len());
        for (column, RowCell(cell)) in row {
            let Some(cell) = cell else {
                return Err(no_cell(at, &format!("column `{column}`")));
            };
            cells.push((column, cell));
        }
        records.push(cells);
    }
    Ok(RecordTable::from_records(records)?)
}

/// Rows without names as the engine takes them.
fn ordered(rows: Vec<Vec<RowCell>>) -> Result<Vec<Vec<Cell>>, Problem> {
    if rows.is_empty() {
        return Err(Problem::invalid(
            "`cells` is empty; at least one row is needed",
        ));
    }
    let row = |(at, cells): (usize, Vec<RowCell>)| {
        let cell = |(place, RowCell(cell)): (usize, RowCell)| {
            cell.ok_or_else(|| no_cell(at, &format!("cell {}", place + 1)))
        };
        cells.into_iter().enumerate().map(cell).collect()
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// The numbers of packed rows of a model of so many columns.
pub(super) fn unpacked(bytes: &[u8], columns: usize) -> Result<Vec<f64>, Problem> {
    let row = 8 * columns;
    if columns == 0 || bytes.is_empty() || !bytes.len().is_multiple_of(row) {
        let found = bytes.len();
        return Err(Problem::invalid(format!(
            "the body has {found} bytes; rows of {columns} columns have {row} bytes each"
        )));
    }
    Ok(bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|number| f64::from_le_bytes(*number))
        .collect())
}

fn no_cell(row: usize, place: &str) -> Problem {
    let detail = format!("row {}, {place}: arrays and objects are no cells", row + 1);
    Problem::new(ProblemCode::InvalidRows, detail)
}
