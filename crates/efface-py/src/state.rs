//! A model with its rows as a safetensors file: arrays as tensors, the rest as JSON. Nothing in
//! such a file is code, and nothing of it is believed before it was checked.
//!
//! Tensors `rows.*` are the rows, `model.*` the model's arrays. The metadata has one entry,
//! `efface`, a JSON object: `format`, `version`, `recipe`, `state` (which arrays there are) and
//! `note` (what the estimator adds).

use std::collections::HashMap;

use efface::models::RowsBeside;
use efface::{
    Csr, Dense, Error, Family, Features, Model, ModelState, Recipe, Result, RowId, RowRef,
    RowStore, Rows, StateArray,
};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::model::GuardedModel;

/// The version of this form.
const FORMAT: u32 = 1;

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::Damaged(what.to_string())
}

#[derive(Serialize, Deserialize)]
struct FileCover {
    format: u32,
    version: String,
    recipe: Recipe,
    state: StateCover,
    note: String,
}

/// What the file says of the model's state: the family that reads it, and its arrays. Its head is
/// the tensor `model.facts`.
#[derive(Serialize, Deserialize)]
struct StateCover {
    family: Family,
    numbers: Vec<String>,
    counts: Vec<String>,
}

/// The tensors of a file under way.
#[derive(Default)]
struct TensorFile(Vec<(String, Dtype, Vec<usize>, Vec<u8>)>);

impl TensorFile {
    fn numbers(&mut self, name: &str, values: &[f64]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.0
            .push((name.into(), Dtype::F64, vec![values.len()], bytes));
    }

    fn singles(&mut self, name: &str, values: &[f32]) {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.0
            .push((name.into(), Dtype::F32, vec![values.len()], bytes));
    }

    fn counts(&mut self, name: &str, values: impl ExactSizeIterator<Item = u64>) {
        let length = values.len();
        self.0.push((
            name.into(),
            Dtype::U64,
            vec![length],
            values.flat_map(u64::to_le_bytes).collect(),
        ));
    }

    fn bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.0
            .push((name.into(), Dtype::U8, vec![bytes.len()], bytes));
    }
}

fn write_rows(rows: &Rows, out: &mut TensorFile) {
    let mut doubles = Vec::new();
    let mut singles = Vec::new();
    let mut starts = vec![0u64];
    let mut columns = Vec::new();
    let mut single = false;
    for view in rows.iter() {
        let (at, sparse): (&[u32], bool) = match view.features {
            RowRef::Sparse64(at, _) | RowRef::Sparse32(at, _) => (at, true),
            _ => (&[], false),
        };
        match view.features {
            RowRef::Dense64(values) | RowRef::Sparse64(_, values) => {
                doubles.extend_from_slice(values)
            }
            RowRef::Dense32(values) | RowRef::Sparse32(_, values) => {
                single = true;
                singles.extend_from_slice(values);
            }
            // The models that Python holds in memory refuse word ids at the fit.
            RowRef::WordIds(_) => {}
        }
        if sparse {
            columns.extend(at.iter().map(|&column| u64::from(column)));
            starts.push(columns.len() as u64);
        }
    }
    if single {
        out.singles("rows.values", &singles)
    } else {
        out.numbers("rows.values", &doubles)
    }
    if rows.is_sparse() {
        out.counts("rows.starts", starts.into_iter());
        out.counts("rows.columns", columns.into_iter());
    }
    let targets: Vec<f64> = rows.iter().flat_map(|view| view.targets.to_vec()).collect();
    out.numbers("rows.targets", &targets);
    let weights: Vec<f64> = rows.iter().map(|view| view.weight).collect();
    if weights.iter().any(|weight| *weight != 1.0) {
        out.numbers("rows.weights", &weights);
    }
    let ids: Vec<u64> = rows.ids().map(|id| id.0).collect();
    out.counts("rows.ids", ids.into_iter());
    out.counts(
        "rows.shape",
        vec![
            rows.len() as u64,
            rows.width() as u64,
            rows.outputs() as u64,
        ]
        .into_iter(),
    );
}

/// What a file holds.
pub(crate) struct StoredModel {
    pub(crate) recipe: Recipe,
    pub(crate) model: Model,
    pub(crate) rows: Rows,
    /// What the estimator added.
    pub(crate) note: String,
}

/// The file of a settled model.
pub(crate) fn write(inner: &GuardedModel, note: &str) -> Result<Vec<u8>> {
    let mut out = TensorFile::default();
    write_rows(inner.fitted.rows(), &mut out);
    let model = inner.fitted.model();
    // With the form that was chosen, so that it is not chosen again.
    let recipe = inner.recipe.as_kept_by(model);
    let ModelState {
        family,
        head,
        arrays,
    } = model.to_state()?;
    let mut state = StateCover {
        family,
        numbers: Vec::new(),
        counts: Vec::new(),
    };
    out.bytes("model.facts", head);
    for (name, array) in arrays {
        match array {
            StateArray::Numbers(values) => {
                out.numbers(&format!("model.{name}"), &values);
                state.numbers.push(name);
            }
            StateArray::Counts(values) => {
                out.counts(&format!("model.{name}"), values.into_iter());
                state.counts.push(name);
            }
        }
    }
    let cover = FileCover {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        recipe,
        state,
        note: note.into(),
    };
    let cover = serde_json::to_string(&cover).map_err(damaged)?;
    let views = out
        .0
        .iter()
        .map(|(name, kind, shape, bytes)| {
            Ok((
                name.as_str(),
                TensorView::new(*kind, shape.clone(), bytes).map_err(damaged)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    safetensors::serialize(views, Some(HashMap::from([("efface".into(), cover)]))).map_err(damaged)
}

/// The tensors of a file that was read.
struct TensorSource<'a>(SafeTensors<'a>);

impl TensorSource<'_> {
    fn find(&self, name: &str, kind: Dtype) -> Result<Option<&[u8]>> {
        match self.0.tensor(name) {
            Ok(view) if view.dtype() == kind => Ok(Some(view.data())),
            Ok(_) => Err(damaged(format!("the tensor {name} has another type"))),
            Err(_) => Ok(None),
        }
    }

    fn need(&self, name: &str, kind: Dtype) -> Result<&[u8]> {
        self.find(name, kind)?
            .ok_or_else(|| damaged(format!("the tensor {name} is missing")))
    }

    fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        Ok(words(self.need(name, Dtype::F64)?)
            .map(f64::from_le_bytes)
            .collect())
    }

    fn counts(&self, name: &str) -> Result<Vec<u64>> {
        Ok(words(self.need(name, Dtype::U64)?)
            .map(u64::from_le_bytes)
            .collect())
    }
}

/// Pieces of eight, or of any other size.
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

fn read_rows(source: &TensorSource<'_>) -> Result<Rows> {
    let shape = source.counts("rows.shape")?;
    let &[count, width, outputs] = shape.as_slice() else {
        return Err(damaged("the shape of its rows"));
    };
    let count = count as usize;
    let width = width as usize;
    let outputs = outputs as usize;
    // Ids, targets and features are checked against each other below; a width that nothing backs is
    // not.
    crate::input::room(width, outputs)?;
    let single = source.find("rows.values", Dtype::F32).ok().flatten();
    let sparse = source.find("rows.starts", Dtype::U64)?.is_some();
    let features: Features = if sparse {
        let starts = source
            .counts("rows.starts")?
            .into_iter()
            .map(|start| start as usize)
            .collect();
        let columns = source.counts("rows.columns")?;
        let columns = columns
            .into_iter()
            .map(|column| u32::try_from(column).map_err(damaged));
        let columns = columns.collect::<Result<Vec<u32>>>()?;
        match single {
            Some(bytes) => Csr::from_parts(
                starts,
                columns,
                words(bytes).map(f32::from_le_bytes).collect(),
                width,
            )?
            .into(),
            None => Csr::from_parts(starts, columns, source.numbers("rows.values")?, width)?.into(),
        }
    } else {
        match single {
            Some(bytes) => {
                Dense::new(words(bytes).map(f32::from_le_bytes).collect(), width)?.into()
            }
            None => Dense::new(source.numbers("rows.values")?, width)?.into(),
        }
    };
    if features.rows() != count {
        return Err(damaged("its rows differ in number"));
    }
    let ids = source.counts("rows.ids")?.into_iter().map(RowId).collect();
    let rows = Rows::with_ids(ids, features, source.numbers("rows.targets")?, outputs)?;
    match source.find("rows.weights", Dtype::F64)? {
        Some(bytes) => rows.weighted(words(bytes).map(f64::from_le_bytes).collect()),
        None => Ok(rows),
    }
}

/// The model of a file, and its note.
pub(crate) fn read(bytes: &[u8]) -> Result<StoredModel> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let cover = header
        .metadata()
        .as_ref()
        .and_then(|entries| entries.get("efface"));
    let cover = cover.ok_or_else(|| damaged("this safetensors file holds no efface model"))?;
    let cover: FileCover = serde_json::from_str(cover).map_err(damaged)?;
    if cover.format > FORMAT {
        return Err(damaged(format!(
            "its format is {}, and {FORMAT} is the newest known here",
            cover.format
        )));
    }
    let source = TensorSource(SafeTensors::deserialize(bytes).map_err(damaged)?);
    let rows = read_rows(&source)?;
    let StateCover {
        family,
        numbers,
        counts,
    } = cover.state;
    let head = source.need("model.facts", Dtype::U8)?.to_vec();
    let mut state = ModelState {
        family,
        head,
        arrays: Vec::new(),
    };
    for name in numbers {
        let values = source.numbers(&format!("model.{name}"))?;
        state.arrays.push((name, StateArray::Numbers(values)));
    }
    for name in counts {
        let values = source.counts(&format!("model.{name}"))?;
        state.arrays.push((name, StateArray::Counts(values)));
    }
    let model = cover.recipe.restore(state, RowsBeside::Kept(&rows))?;
    if model.rows() != rows.len() || model.features() != rows.width() {
        return Err(damaged("its model and its rows differ in size"));
    }
    Ok(StoredModel {
        recipe: cover.recipe,
        model,
        rows,
        note: cover.note,
    })
}
