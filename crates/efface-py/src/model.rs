//! A fitted model with its rows, as the estimators hold it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use efface::models::{MethodOnAny, MethodOptions};
use efface::{
    Claim, Fit, Fitted, LogisticModel, Method, Predict, Recipe, RowId, RowStore, Rows, Stop,
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::evidence::Evidence;
use crate::state::StoredModel;
use crate::{errors, input, parameters, state, work};

/// What a lock guards. It is only ever taken without the interpreter's lock: a thread that waits
/// for it must not keep others from finishing.
pub(crate) struct GuardedModel {
    pub(crate) recipe: Recipe,
    pub(crate) fitted: Fitted<efface::Model>,
    /// How many changes there were.
    pub(crate) changes: u64,
}

impl GuardedModel {
    /// A change of the fitted model, counted where it succeeds.
    fn change(
        &mut self,
        work: impl FnOnce(&mut Fitted<efface::Model>) -> efface::Result<efface::Evidence>,
    ) -> efface::Result<efface::Evidence> {
        let evidence = work(&mut self.fitted)?;
        self.changes += 1;
        Ok(evidence)
    }

    fn forget(
        &mut self,
        method: &Method,
        options: MethodOptions,
        gone: &[RowId],
    ) -> efface::Result<efface::Evidence> {
        self.change(|fitted| fitted.forget(&MethodOnAny { method, options }, gone))
    }

    fn refit(&mut self, gone: &[RowId], weights: Vec<f64>) -> efface::Result<efface::Evidence> {
        self.fitted.rows().check(gone)?;
        let out: HashSet<RowId> = gone.iter().copied().collect();
        let left = self
            .fitted
            .rows()
            .filter(|id| !out.contains(&id))
            .weighted(weights)?;
        let model = self.recipe.fit(&left)?;
        self.fitted = Fitted::of(model, left);
        self.changes += 1;
        let reason = "weights of classes follow from the rows and are others after this change";
        Ok(self.fit_evidence(gone.len(), reason))
    }

    /// Returns the record of the fit that took the place of a forget of so many rows. The model
    /// must not have changed since that fit.
    fn fit_evidence(&self, forgotten: usize, reason: &str) -> efface::Evidence {
        let model = self.fitted.model();
        let mut evidence = match model.get::<LogisticModel>() {
            Some(classifier) => classifier.evidence_at_optimum(),
            None => model.evidence(),
        };
        evidence.method = Method::Retrain.name().into();
        evidence.promise = Claim::Exact;
        evidence.reason = Some(reason.into());
        evidence.forgotten = forgotten;
        evidence.rows_read = self.fitted.rows().len();
        evidence.resummed = true;
        evidence
    }

    fn learn(&mut self, new: &Rows) -> efface::Result<efface::Evidence> {
        self.change(|fitted| fitted.learn(new))
    }

    fn amend(&mut self, corrected: &Rows) -> efface::Result<efface::Evidence> {
        self.change(|fitted| fitted.amend(corrected))
    }
}

/// A fitted model with its rows.
#[pyclass(frozen, module = "efface._core")]
pub(crate) struct Model {
    inner: RwLock<GuardedModel>,
    /// `GuardedModel::changes`, for threads that must not wait for the lock.
    version: AtomicU64,
    stop: Stop,
}

impl Model {
    fn with(recipe: Recipe, model: efface::Model, rows: Rows, stop: Stop) -> Self {
        let inner = RwLock::new(GuardedModel {
            recipe,
            fitted: Fitted::of(model, rows),
            changes: 0,
        });
        Self {
            inner,
            version: AtomicU64::new(0),
            stop,
        }
    }

    fn read<T: Send>(&self, py: Python<'_>, see: impl FnOnce(&GuardedModel) -> T + Send) -> T {
        py.detach(|| see(&self.inner.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A change that is over before anybody could lose patience.
    fn at_once<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut GuardedModel) -> efface::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.change(work))
            .map_err(|error| errors::core(py, error))
    }

    fn change<T>(
        &self,
        work: impl FnOnce(&mut GuardedModel) -> efface::Result<T>,
    ) -> efface::Result<T> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut inner);
        self.version.store(inner.changes, Ordering::Release);
        done
    }

    /// A change that may take long.
    fn in_time<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut GuardedModel) -> efface::Result<T> + Send,
    ) -> PyResult<T> {
        work::interruptible(py, &self.stop, || self.change(work))
    }
}

/// The method that the arguments of a request ask for.
fn named(
    method: &str,
    tolerance: Option<f64>,
    steps: Option<usize>,
    measure: bool,
) -> efface::Result<Method> {
    let mut settings = Vec::new();
    settings.extend(tolerance.map(|value| ("tolerance", value.to_string())));
    settings.extend(steps.map(|value| ("steps", value.to_string())));
    settings.extend(measure.then(|| ("measure", true.to_string())));
    Method::with_settings(method, &settings)
}

#[pymethods]
impl Model {
    /// Fits the recipe, given as JSON, to rows.
    #[staticmethod]
    #[pyo3(signature = (recipe, x, y, ids, weights=None))]
    fn fit(
        py: Python<'_>,
        recipe: &str,
        x: &Bound<'_, PyAny>,
        y: PyReadonlyArray2<'_, f64>,
        ids: PyReadonlyArray1<'_, u64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let recipe = input::recipe(recipe)?;
        let stop = Stop::default();
        let rows = input::rows(py, x, &y, &ids, weights.as_ref())?.watched(&stop);
        let model = work::interruptible(py, &stop, || recipe.fit(&rows))?;
        Ok(Self::with(recipe, model, rows, stop))
    }

    /// Forgets the rows of these ids.
    #[pyo3(signature = (ids, method="auto", tolerance=None, steps=None, measure=false, clear_dead_columns=false, allow_worse=false))]
    #[expect(clippy::too_many_arguments, reason = "Python names every one of them")]
    fn forget(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        method: &str,
        tolerance: Option<f64>,
        steps: Option<usize>,
        measure: bool,
        clear_dead_columns: bool,
        allow_worse: bool,
    ) -> PyResult<Evidence> {
        let gone = input::named(ids.as_slice()?);
        let method =
            named(method, tolerance, steps, measure).map_err(|error| errors::core(py, error))?;
        let options = MethodOptions {
            clear_dead_columns,
            allow_worse,
            new_seed: None,
        };
        let short = self.read(py, |inner| inner.fitted.model().reads_request_only(&method));
        let forget = |inner: &mut GuardedModel| inner.forget(&method, options, &gone);
        let inner = if short {
            self.at_once(py, forget)?
        } else {
            self.in_time(py, forget)?
        };
        Ok(Evidence { inner })
    }

    /// Forgets rows one by one and gives the seconds that each took, without Python in between:
    /// what the benchmark compares calls from Python with.
    fn time_forget(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<Vec<f64>> {
        let gone = input::named(ids.as_slice()?);
        self.at_once(py, |inner| {
            gone.iter()
                .map(|id| {
                    let started = std::time::Instant::now();
                    inner.forget(&Method::default(), MethodOptions::default(), &[*id])?;
                    Ok(started.elapsed().as_secs_f64())
                })
                .collect()
        })
    }

    /// Forgets the rows of these ids, gives those that stay other weights, and fits them anew:
    /// where weights follow from all rows, no step of a method is right. So many rows were
    /// corrected just before.
    #[pyo3(signature = (ids, weights, corrected=0))]
    fn refit(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        weights: PyReadonlyArray1<'_, f64>,
        corrected: usize,
    ) -> PyResult<Evidence> {
        let gone = input::named(ids.as_slice()?);
        let weights = weights.as_slice()?.to_vec();
        let mut inner = self.in_time(py, |inner| inner.refit(&gone, weights))?;
        inner.forgotten += corrected;
        inner.learned += corrected;
        Ok(Evidence { inner })
    }

    /// Returns the record of a fit that took the place of a forget of so many rows, because their
    /// features had changed.
    fn fit_evidence(&self, py: Python<'_>, forgotten: usize) -> Evidence {
        let reason = "the features of the rows that stay changed";
        Evidence {
            inner: self.read(py, |inner| inner.fit_evidence(forgotten, reason)),
        }
    }

    /// Adds rows under new ids.
    #[pyo3(signature = (x, y, ids, weights=None))]
    fn learn(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: PyReadonlyArray2<'_, f64>,
        ids: PyReadonlyArray1<'_, u64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Evidence> {
        let new = input::rows(py, x, &y, &ids, weights.as_ref())?;
        Ok(Evidence {
            inner: self.in_time(py, |inner| inner.learn(&new))?,
        })
    }

    /// Replaces the content of rows.
    #[pyo3(signature = (x, y, ids, weights=None))]
    fn amend(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: PyReadonlyArray2<'_, f64>,
        ids: PyReadonlyArray1<'_, u64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Evidence> {
        let corrected = input::rows(py, x, &y, &ids, weights.as_ref())?;
        Ok(Evidence {
            inner: self.in_time(py, |inner| inner.amend(&corrected))?,
        })
    }

    /// The scores of rows, one column per output.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let features = input::features(py, x)?;
        let scores = self.read(py, |inner| inner.fitted.model().predict(&features));
        let scores = scores.map_err(|error| errors::core(py, error))?;
        parameters::by_row(py, &scores)
    }

    /// The scores of the model's own rows, in the order of `ids`.
    fn predict_own<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = self.read(py, |inner| {
            inner.fitted.model().predict(&inner.fitted.rows().table())
        });
        let scores = scores.map_err(|error| errors::core(py, error))?;
        parameters::by_row(py, &scores)
    }

    /// The parameters by name, as arrays, and the version that they are of.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<(u64, Bound<'py, PyDict>)> {
        let (version, found) = self.read(py, |inner| {
            (inner.changes, parameters::of(inner.fitted.model()))
        });
        Ok((version, parameters::dict(py, found)?))
    }

    /// How many changes the model has seen. Does not wait for one that is under way.
    #[getter]
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Folds waiting changes into the curvature.
    fn settle(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.at_once(py, |inner| inner.fitted.settle())?.rows)
    }

    /// The ids of the rows, in the order in which the model keeps them.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let ids = self.read(py, |inner| {
            inner.fitted.rows().ids().map(|id| id.0).collect()
        });
        PyArray1::from_vec(py, ids)
    }

    /// How many rows the model stands for.
    #[getter]
    fn rows(&self, py: Python<'_>) -> usize {
        self.read(py, |inner| inner.fitted.rows().len())
    }

    /// How many features a row has.
    #[getter]
    fn width(&self, py: Python<'_>) -> usize {
        self.read(py, |inner| inner.fitted.rows().width())
    }

    /// The recipe, as JSON.
    #[getter]
    fn recipe(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.read(py, |inner| serde_json::to_string(&inner.recipe));
        text.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The bytes that the model's own copy of the rows takes.
    #[getter]
    fn row_bytes(&self, py: Python<'_>) -> usize {
        self.read(py, |inner| inner.fitted.rows().bytes())
    }

    /// The targets of the rows, in the order of `ids`.
    #[getter]
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (values, rows, outputs) = self.read(py, |inner| {
            let values: Vec<f64> = inner
                .fitted
                .rows()
                .iter()
                .flat_map(|view| view.targets.to_vec())
                .collect();
            (
                values,
                inner.fitted.rows().len(),
                inner.fitted.rows().outputs(),
            )
        });
        parameters::shaped(py, values, rows, outputs)
    }

    /// The weights of the rows, in the order of `ids`.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let weights = self.read(py, |inner| {
            inner.fitted.rows().iter().map(|view| view.weight).collect()
        });
        PyArray1::from_vec(py, weights)
    }

    /// The steps of the last training, for models that are trained in steps.
    #[getter]
    fn iterations(&self, py: Python<'_>) -> usize {
        self.read(py, |inner| inner.fitted.model().iterations().unwrap_or(0))
    }

    /// The whole model with its rows, as a safetensors file; `note` is kept with it.
    fn to_bytes<'py>(&self, py: Python<'py>, note: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.at_once(py, |inner| {
            inner.fitted.settle()?;
            state::write(inner, note)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The model and the note of a safetensors file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<(Self, String)> {
        let stop = Stop::default();
        let found = py
            .detach(|| state::read(bytes))
            .map_err(|error| errors::core(py, error))?;
        let StoredModel {
            recipe,
            model,
            rows,
            note,
        } = found;
        Ok((Self::with(recipe, model, rows.watched(&stop), stop), note))
    }
}
