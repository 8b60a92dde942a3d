//! Model files: the engine from Python.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use efface::features::Cell;
use efface_engine::{
    Engine, ForgetOptions, ForgetRequest, RecordTable, RowSelection, RowSource, Silent, fit,
    named_method, refit,
};
use efface_io::Source;
use efface_receipt::KeyRing;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::argument;
use crate::create::CreateOptions;
use crate::errors;
use crate::evidence::{Evidence, plain};

/// An open model file.
#[pyclass(frozen, module = "efface._core")]
pub(crate) struct ModelFile {
    engine: Mutex<Engine>,
}

impl ModelFile {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Engine) -> efface_engine::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.engine.lock().unwrap_or_else(PoisonError::into_inner)))
            .map_err(|error| errors::engine(py, error))
    }
}

/// Rows that Python hands over: a file, or the names of columns and the cells of rows.
#[derive(FromPyObject)]
enum GivenRows<'py> {
    Table(Vec<String>, Bound<'py, PyAny>),
    Path(PathBuf),
}

impl GivenRows<'_> {
    fn source(self, py: Python<'_>) -> PyResult<RowSource> {
        match self {
            Self::Table(columns, rows) => Ok(records(py, columns, &rows)?.into()),
            Self::Path(path) => {
                let source =
                    Source::open(&path, None).map_err(|error| errors::engine(py, error.into()))?;
                Ok(source.into())
            }
        }
    }
}

#[pymethods]
impl ModelFile {
    #[new]
    #[pyo3(signature = (path, read_only=false))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool) -> PyResult<Self> {
        let opened = py.detach(|| {
            if read_only {
                Engine::open_read_only(&path)
            } else {
                Engine::open(&path)
            }
        });
        Ok(Self {
            engine: Mutex::new(opened.map_err(|error| errors::engine(py, error))?),
        })
    }

    /// What the file holds.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = self.with(py, |engine| engine.summary())?;
        plain(py, &summary)
    }

    /// The parameters, by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parameters = self.with(py, |engine| engine.parameters())?;
        plain(py, &parameters)
    }

    /// Takes rows out, by id or by subject; the report and the evidence.
    #[pyo3(signature = (ids, subject, method, tolerance, request_id, allow_missing, dry_run))]
    #[expect(clippy::too_many_arguments, reason = "Python names every one of them")]
    fn forget<'py>(
        &self,
        py: Python<'py>,
        ids: Option<Vec<String>>,
        subject: Option<(String, String)>,
        method: String,
        tolerance: Option<f64>,
        request_id: Option<String>,
        allow_missing: bool,
        dry_run: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Evidence)> {
        let who = match (ids, subject) {
            (Some(ids), None) => RowSelection::Ids(ids),
            (None, Some((column, value))) => RowSelection::Subject { column, value },
            _ => return Err(PyTypeError::new_err("name either rows or a subject")),
        };
        let settings: Vec<_> = tolerance
            .map(|value| ("tolerance", value.to_string()))
            .into_iter()
            .collect();
        let report = self.with(py, |engine| {
            let method = named_method(&method, &settings)?;
            let request = ForgetRequest {
                method,
                id: request_id,
                allow_missing,
                ..ForgetRequest::new(who)
            };
            engine.forget(
                &request,
                &ForgetOptions {
                    dry_run,
                    ..ForgetOptions::default()
                },
            )
        })?;
        Ok((
            plain(py, &report)?,
            Evidence {
                inner: report.evidence,
            },
        ))
    }

    /// Adds rows; the report, the evidence and what the caller should know of the rows.
    #[pyo3(signature = (rows, request_id=None))]
    fn learn<'py>(
        &self,
        py: Python<'py>,
        rows: GivenRows<'py>,
        request_id: Option<String>,
    ) -> PyResult<(Bound<'py, PyAny>, Evidence, Vec<String>)> {
        let source = rows.source(py)?;
        let report = self.with(py, |engine| match &request_id {
            Some(name) => engine.learn_request(&source, name, &Silent),
            None => engine.learn(&source, &Silent),
        })?;
        let remarks = report.remarks.iter();
        let warnings = remarks.map(|remark| remark.worded(argument)).collect();
        Ok((
            plain(py, &report)?,
            Evidence {
                inner: report.evidence,
            },
            warnings,
        ))
    }

    /// Replaces rows by rows of the same id.
    fn amend<'py>(
        &self,
        py: Python<'py>,
        rows: GivenRows<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Evidence)> {
        let source = rows.source(py)?;
        let report = self.with(py, |engine| engine.amend(&source, &Silent))?;
        Ok((
            plain(py, &report)?,
            Evidence {
                inner: report.evidence,
            },
        ))
    }

    /// The scores and labels of rows.
    fn predict<'py>(&self, py: Python<'py>, rows: GivenRows<'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = rows.source(py)?;
        let found = self.with(py, |engine| {
            let mut found = Vec::new();
            engine.predict(&source, &mut |prediction| {
                found.push(prediction);
                Ok(())
            })?;
            Ok(found)
        })?;
        plain(py, &found)
    }

    /// How good the model is on rows with targets.
    fn evaluate<'py>(&self, py: Python<'py>, rows: GivenRows<'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = rows.source(py)?;
        let found = self.with(py, |engine| engine.evaluate(&source, &Silent))?;
        plain(py, &found)
    }

    /// The model as ONNX; the log names the copy and where it goes.
    fn to_onnx<'py>(
        &self,
        py: Python<'py>,
        destination: Option<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let exported = self.with(py, |engine| engine.export("onnx", destination.as_deref()))?;
        Ok(PyBytes::new(py, &exported.file.unwrap_or_default()))
    }

    /// The receipt of this number or id with its proofs, as the bytes of its file.
    fn bundle<'py>(&self, py: Python<'py>, receipt: String) -> PyResult<Bound<'py, PyBytes>> {
        let bundle = self.with(py, |engine| engine.bundle(&receipt))?;
        let bytes = bundle
            .to_bytes()
            .map_err(|fault| errors::receipt(py, &fault))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The numbers of all receipts and what they are about.
    fn receipts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.with(py, |engine| {
            let mut found = Vec::new();
            engine.receipts(&mut |signed, _| {
                found.push(signed.receipt.clone());
                Ok(())
            })?;
            Ok(found)
        })?;
        plain(py, &found)
    }

    /// The signed head of the log.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |engine| engine.checkpoint())
    }

    /// The public keys of the log, one a line, oldest first.
    fn public_keys(&self, py: Python<'_>) -> PyResult<String> {
        let keys = self.with(py, |engine| engine.public_keys())?;
        Ok(keys
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    /// Recomputes from what is stored all that the log says.
    #[pyo3(signature = (key=None))]
    fn verify<'py>(&self, py: Python<'py>, key: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let keys = key.map(KeyRing::parse).transpose();
        let keys = keys.map_err(|fault| errors::receipt(py, &fault))?;
        let checks = self.with(py, |engine| engine.verify(keys.as_ref()))?;
        plain(py, &checks)
    }

    /// Gives back the places of forgotten rows.
    fn settle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let settled = self.with(py, |engine| engine.settle())?;
        plain(py, &settled)
    }
}

/// Fits a model as the options say, which are JSON, and writes it; the report, and what its reader
/// should be warned of. The rows are those of the files that the options name, unless there are
/// some here. With `replace` the log of the model at `path` goes on.
#[pyfunction]
#[pyo3(signature = (path, options, rows, overwrite, replace))]
pub(crate) fn fit_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: &str,
    rows: Option<(Vec<String>, Bound<'py, PyAny>)>,
    overwrite: bool,
    replace: bool,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let options: CreateOptions =
        serde_json::from_str(options).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let rows = rows
        .map(|(columns, rows)| records(py, columns, &rows))
        .transpose()?;
    let report = py.detach(|| {
        let request = options.request(rows)?;
        if replace {
            refit(&request, &path, &Silent)
        } else {
            fit(&request, &path, overwrite, &Silent)
        }
    });
    let report = report.map_err(|error| errors::engine(py, error))?;
    let judged = report
        .summary
        .scores
        .iter()
        .flat_map(|measured| measured.quality.worse_than_constant());
    let worse = judged.map(|what| format!("the model is worse than a constant: {what}"));
    let warnings = report
        .dropped
        .iter()
        .cloned()
        .chain(report.remarks.iter().map(|remark| remark.worded(argument)))
        .chain(worse)
        .collect();
    Ok((plain(py, &report)?, warnings))
}

/// A cell of a table from Python: a number that is none is missing.
fn cell(value: &Bound<'_, PyAny>) -> PyResult<Cell> {
    if value.is_none() {
        return Ok(Cell::Missing);
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(if text.is_empty() {
            Cell::Missing
        } else {
            Cell::Text(text)
        });
    }
    match value.extract::<f64>() {
        Ok(number) if number.is_nan() => Ok(Cell::Missing),
        Ok(number) => Ok(Cell::Number(number)),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "a cell is a {kind}; cells are numbers, texts or None"
            )))
        }
    }
}

/// Rows of a table from Python.
fn records(py: Python<'_>, columns: Vec<String>, rows: &Bound<'_, PyAny>) -> PyResult<RecordTable> {
    let mut table = Vec::new();
    for row in rows.try_iter()? {
        let row: PyResult<Vec<Cell>> = row?.try_iter()?.map(|value| cell(&value?)).collect();
        table.push(row?);
    }
    RecordTable::new(columns, table).map_err(|error| errors::engine(py, error))
}
