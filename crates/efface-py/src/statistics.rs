//! Sums of rows that merge: arrays in, bytes out.

use efface::{ColumnGrid, ColumnReach, ColumnView, LinearStatistics, Ridge, StatisticsSpec};
use efface_engine::Statistics as EngineStatistics;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// Sums and commitments; `efface.Statistics` is made of it.
#[pyclass(module = "efface._core")]
pub(crate) struct Statistics {
    inner: EngineStatistics,
    threads: usize,
}

/// The parameters of a ridge model and what is known of them.
type RidgeParameters<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    f64,
    f64,
);

fn secret(key: Option<&[u8]>) -> PyResult<Option<[u8; 32]>> {
    let wrong =
        |_| PyValueError::new_err("key must be 32 bytes, the same for all workers and kept secret");
    key.map(|key| key.try_into().map_err(wrong)).transpose()
}

#[pymethods]
impl Statistics {
    #[new]
    fn new(
        py: Python<'_>,
        features: Vec<String>,
        targets: Vec<String>,
        grids: Option<Vec<(f64, f64)>>,
        key: Option<&[u8]>,
        threads: usize,
    ) -> PyResult<Self> {
        let spec = StatisticsSpec::new(features, targets).and_then(|spec| match grids {
            None => Ok(spec),
            Some(grids) => spec.exact(
                grids
                    .into_iter()
                    .map(|(origin, largest)| ColumnGrid { origin, largest })
                    .collect(),
            ),
        });
        let spec = spec.map_err(|error| errors::core(py, error))?;
        let inner = EngineStatistics::new(spec, secret(key)?.as_ref());
        Ok(Self {
            inner: inner.threads(threads),
            threads,
        })
    }

    /// Adds rows that lie column by column, or takes them out.
    fn change_columns(
        &mut self,
        py: Python<'_>,
        columns: Vec<PyReadonlyArray1<'_, f64>>,
        ids: Option<Vec<String>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        remove: bool,
    ) -> PyResult<()> {
        let slices: Vec<&[f64]> = columns
            .iter()
            .map(|column| column.as_slice())
            .collect::<Result<_, _>>()?;
        let views = slices.into_iter().map(ColumnView::dense).collect();
        self.change(py, views, ids, weights, remove)
    }

    /// Adds rows that lie row by row, or takes them out.
    fn change_tables(
        &mut self,
        py: Python<'_>,
        features: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray2<'_, f64>,
        ids: Option<Vec<String>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        remove: bool,
    ) -> PyResult<()> {
        let mut views = Vec::new();
        for table in [&features, &targets] {
            let width = table.shape()[1];
            let values = table.as_slice()?;
            for column in 0..width {
                views.push(
                    ColumnView::of_table(values, width, column)
                        .map_err(|error| errors::core(py, error))?,
                );
            }
        }
        self.change(py, views, ids, weights, remove)
    }

    fn merge(&mut self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
        self.inner
            .merge(&other.inner)
            .map_err(|error| errors::engine(py, error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(
        py: Python<'_>,
        bytes: &[u8],
        key: Option<&[u8]>,
        threads: usize,
    ) -> PyResult<Self> {
        let inner = EngineStatistics::from_bytes(bytes, secret(key)?.as_ref());
        let inner = inner.map_err(|error| errors::engine(py, error))?;
        Ok(Self {
            inner: inner.threads(threads),
            threads,
        })
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.sums().rows()
    }

    #[getter]
    fn features(&self) -> Vec<String> {
        self.sums().spec().features().to_vec()
    }

    #[getter]
    fn targets(&self) -> Vec<String> {
        self.sums().spec().targets().to_vec()
    }

    #[getter]
    fn is_exact(&self) -> bool {
        self.sums().spec().is_exact()
    }

    /// The root of the training set as text; None where rows have no ids.
    fn training_set(&self) -> Option<String> {
        self.inner.training_set().map(|set| set.root.to_string())
    }

    /// Coefficients (targets × features), intercepts, and the bounds on their distance from the
    /// truth.
    fn ridge<'py>(
        &self,
        py: Python<'py>,
        alpha: f64,
        fit_intercept: bool,
        tolerance: f64,
    ) -> PyResult<RidgeParameters<'py>> {
        let recipe = Ridge::new(alpha)
            .intercept(fit_intercept)
            .tolerance(tolerance)
            .threads(self.threads);
        let sums = self.sums();
        let model = py
            .detach(|| recipe.fit_statistics(sums))
            .map_err(|error| errors::core(py, error))?;
        let (coefficients, intercept) = model.parameters();
        let evidence = model.evidence_at_optimum();
        let rows: Vec<Vec<f64>> = (0..coefficients.ncols())
            .map(|output| coefficients.col_as_slice(output).to_vec())
            .collect();
        Ok((
            PyArray2::from_vec2(py, &rows)
                .map_err(|error| PyTypeError::new_err(error.to_string()))?,
            PyArray1::from_vec(py, intercept),
            evidence.bound,
            evidence.relative_bound,
        ))
    }
}

impl Statistics {
    fn sums(&self) -> &LinearStatistics {
        self.inner.sums()
    }

    fn change(
        &mut self,
        py: Python<'_>,
        views: Vec<ColumnView<'_>>,
        ids: Option<Vec<String>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        remove: bool,
    ) -> PyResult<()> {
        let weights = weights
            .as_ref()
            .map(|weights| weights.as_slice())
            .transpose()?
            .map(ColumnView::dense);
        let inner = &mut self.inner;
        let changed = py.detach(|| {
            if remove {
                inner.remove(&views, ids.as_deref(), weights)
            } else {
                inner.update(&views, ids.as_deref(), weights)
            }
        });
        changed.map_err(|error| errors::engine(py, error))
    }
}

/// Origin and size of a grid for each column whose least and greatest number is given.
#[pyfunction]
pub(crate) fn column_grids(py: Python<'_>, bounds: Vec<(f64, f64)>) -> PyResult<Vec<(f64, f64)>> {
    let mut reach = ColumnReach::new(bounds.len());
    for row in [true, false] {
        let ends: Vec<f64> = bounds
            .iter()
            .map(|(least, most)| if row { *least } else { *most })
            .collect();
        let views: Vec<ColumnView<'_>> = ends.chunks(1).map(ColumnView::dense).collect();
        reach
            .update(&views)
            .map_err(|error| errors::core(py, error))?;
    }
    Ok(reach
        .grids()
        .into_iter()
        .map(|grid| (grid.origin, grid.largest))
        .collect())
}
