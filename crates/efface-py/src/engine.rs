//! Model files: the engine from Python.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use efface::{GaussianNb, KMeans, Logistic, MultinomialNb, Recipe, Ridge, Softmax};
use efface_engine::{
    Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, Silent, fit, named_method,
};
use efface_io::Source;
use efface_receipt::KeyRing;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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

fn source(py: Python<'_>, path: &Path) -> PyResult<Source> {
    Source::open(path, None).map_err(|error| errors::engine(py, error.into()))
}

#[pymethods]
impl ModelFile {
    #[new]
    #[pyo3(signature = (path, read_only=false))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool) -> PyResult<Self> {
        let opened =
            py.detach(|| if read_only { Engine::open_read_only(&path) } else { Engine::open(&path) });
        Ok(Self { engine: Mutex::new(opened.map_err(|error| errors::engine(py, error))?) })
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
        let settings: Vec<_> = tolerance.map(|value| ("tolerance", value.to_string())).into_iter().collect();
        let report = self.with(py, |engine| {
            let method = named_method(&method, &settings)?;
            let request = ForgetRequest { method, id: request_id, allow_missing, ..ForgetRequest::new(who) };
            engine.forget(&request, &ForgetOptions { dry_run, ..ForgetOptions::default() })
        })?;
        Ok((plain(py, &report)?, Evidence { inner: report.evidence }))
    }

    /// Adds the rows of a file.
    fn learn<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<(Bound<'py, PyAny>, Evidence)> {
        let source = source(py, &path)?;
        let report = self.with(py, |engine| engine.learn(&source, &Silent))?;
        Ok((plain(py, &report)?, Evidence { inner: report.evidence }))
    }

    /// Replaces rows by the rows of the same id in a file.
    fn amend<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<(Bound<'py, PyAny>, Evidence)> {
        let source = source(py, &path)?;
        let report = self.with(py, |engine| engine.amend(&source, &Silent))?;
        Ok((plain(py, &report)?, Evidence { inner: report.evidence }))
    }

    /// The scores and labels of the rows of a file.
    fn predict<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let source = source(py, &path)?;
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

    /// The receipt of this number or id with its proofs, as the bytes of its file.
    fn bundle<'py>(&self, py: Python<'py>, receipt: String) -> PyResult<Bound<'py, PyBytes>> {
        let bundle = self.with(py, |engine| engine.bundle(&receipt))?;
        let bytes = bundle.to_bytes().map_err(|fault| errors::receipt(py, &fault))?;
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
        Ok(keys.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
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

/// Fits a model to the rows of a file and writes it; the report.
#[pyfunction]
#[pyo3(signature = (source, path, target, model, penalty, id, subject, text, ignore, clusters, overwrite))]
#[expect(clippy::too_many_arguments, reason = "Python names every one of them")]
pub(crate) fn fit_file<'py>(
    py: Python<'py>,
    source: PathBuf,
    path: PathBuf,
    target: Vec<String>,
    model: &str,
    penalty: f64,
    id: Option<String>,
    subject: Option<String>,
    text: Vec<String>,
    ignore: Vec<String>,
    clusters: usize,
    overwrite: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let choice = choice(model, penalty, clusters)?;
    let mut request = FitRequest::new(self::source(py, &source)?);
    (request.targets, request.text, request.ignore) = (target, text, ignore);
    (request.id, request.subject) = (id, subject);
    request.classify = model == "ridge_classifier";
    request.model = choice;
    let report = py.detach(|| fit(&request, &path, overwrite, &Silent));
    let report = report.map_err(|error| errors::engine(py, error))?;
    plain(py, &report)
}

/// The model of that name.
fn choice(model: &str, penalty: f64, clusters: usize) -> PyResult<Recipe> {
    Ok(match model {
        "ridge" | "ridge_classifier" => Ridge::new(penalty).into(),
        "logistic" => Logistic::new(penalty).into(),
        "softmax" => Softmax::new(penalty).into(),
        "gaussian_nb" => GaussianNb::default().into(),
        "multinomial_nb" => MultinomialNb::default().into(),
        "kmeans" => KMeans::quantised(clusters, 0.05).into(),
        other => {
            return Err(PyValueError::new_err(format!(
                "there is no model '{other}'; ridge, ridge_classifier, logistic, softmax, gaussian_nb, \
                 multinomial_nb and kmeans exist"
            )));
        }
    })
}
