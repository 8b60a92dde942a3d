//! Evidence as Python sees it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde_json::Value;

/// The record of one request: what was promised, how far from retraining the result can be, what
/// was read.
#[pyclass(frozen, module = "efface._core")]
pub(crate) struct Evidence {
    pub(crate) inner: efface::Evidence,
}

/// One thing that a request could not take out. ``str`` of it is the sentence.
#[pyclass(frozen, eq, get_all, module = "efface._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct NotCovered {
    /// What it is, for programs: a name that stays the same from version to version.
    code: &'static str,
    /// What it is, for people.
    detail: String,
}

impl NotCovered {
    fn new(what: &efface::NotCovered) -> Self {
        Self {
            code: what.code(),
            detail: what.to_string(),
        }
    }
}

#[pymethods]
impl NotCovered {
    fn __str__(&self) -> &str {
        &self.detail
    }

    fn __repr__(&self) -> String {
        format!("NotCovered(code={:?}, detail={:?})", self.code, self.detail)
    }
}

/// A record as pickle keeps it: JSON, and numbers that JSON may not have.
type EvidenceParts = (String, [f64; 4]);

fn damaged(cause: serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("this is no evidence: {cause}"))
}

#[pymethods]
impl Evidence {
    /// The method that did the work.
    #[getter]
    fn method(&self) -> &str {
        &self.inner.method
    }

    /// Why this method, when ``auto`` chose it.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// ``exact``, ``certified`` or ``approximate``.
    #[getter]
    fn claim(&self) -> &str {
        self.inner.claim().name()
    }

    /// Rows taken out.
    #[getter]
    fn forgotten(&self) -> usize {
        self.inner.forgotten
    }

    /// Rows put in.
    #[getter]
    fn learned(&self) -> usize {
        self.inner.learned
    }

    /// Rows in the model afterwards.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.rows
    }

    /// Rows whose content was read.
    #[getter]
    fn rows_read(&self) -> usize {
        self.inner.rows_read
    }

    /// An upper bound on the distance to the parameters of retraining.
    #[getter]
    fn bound(&self) -> f64 {
        self.inner.bound
    }

    /// The bound as a fraction of the parameters' norm.
    #[getter]
    fn relative_bound(&self) -> f64 {
        self.inner.relative_bound
    }

    /// For a network whose encoder nothing bounds: an upper bound on the relative distance of its
    /// head to the optimum on the features of that encoder; None for every other model.
    #[getter]
    fn head_bound(&self) -> Option<f64> {
        self.inner.head_bound.map(|head| head.relative_bound)
    }

    /// The relative distance to retraining that counts as equal; None for a method that aims at
    /// none.
    #[getter]
    fn tolerance(&self) -> Option<f64> {
        self.inner.tolerance
    }

    /// Whether the relative bound is above the tolerance, or says nothing.
    #[getter]
    fn tolerance_missed(&self) -> bool {
        self.inner.tolerance_missed()
    }

    /// The largest leverage among the rows taken out, where it was computed.
    #[getter]
    fn largest_leverage(&self) -> Option<f64> {
        self.inner.largest_leverage
    }

    /// Whether the curvature was factored anew.
    #[getter]
    fn refactored(&self) -> bool {
        self.inner.refactored
    }

    /// The comparison of an approximate method's result with leaving the model as it was: ``basis``
    /// (``bound`` or ``estimate``), ``distance``, ``unchanged`` and ``is_nearer``; None for other
    /// methods.
    #[getter]
    fn compared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.inner.compared)
    }

    /// What was cleared after the method's own work, ``columns`` and their ``norm``; None when
    /// nothing was.
    #[getter]
    fn cleared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.inner.cleared)
    }

    /// What this request cannot take out of the model.
    #[getter]
    fn not_covered(&self) -> Vec<NotCovered> {
        self.inner.not_covered.iter().map(NotCovered::new).collect()
    }

    /// What is kept beside the model although none of its answers depends on it.
    #[getter]
    fn kept_beside(&self) -> Vec<NotCovered> {
        self.inner.kept_beside.iter().map(NotCovered::new).collect()
    }

    /// Everything, as plain values. A bound that is not known is ``inf``.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dict = plain(py, &self.inner)?;
        // JSON has no infinity, and a bound that says nothing is one.
        let fields = dict.cast::<PyDict>()?;
        fields.set_item("bound", self.inner.bound)?;
        fields.set_item("relative_bound", self.inner.relative_bound)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let Self { inner } = self;
        format!(
            "Evidence(method={:?}, claim={:?}, forgotten={}, learned={}, rows={}, bound={:.3e})",
            inner.method,
            inner.claim().name(),
            inner.forgotten,
            inner.learned,
            inner.rows,
            inner.bound
        )
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let table = py.import("efface._html")?.getattr("table")?;
        let fields = self.to_dict(py)?;
        fields.set_item("claim", self.claim())?;
        table.call1(("Evidence", fields))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    /// For pickle and copy.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, EvidenceParts)> {
        let Self { inner } = self;
        let text = serde_json::to_string(inner).map_err(damaged)?;
        let condition = inner.condition.unwrap_or(f64::NAN);
        let numbers = [
            inner.convexity,
            inner.bound,
            inner.relative_bound,
            condition,
        ];
        Ok((py.get_type::<Self>().getattr("_restore")?, (text, numbers)))
    }

    #[staticmethod]
    fn _restore(text: &str, numbers: [f64; 4]) -> PyResult<Self> {
        let mut record: Value = serde_json::from_str(text).map_err(damaged)?;
        let [convexity, bound, relative_bound, condition] = numbers;
        for name in ["convexity", "bound", "relative_bound"] {
            if let Some(field) = record.get_mut(name) {
                *field = 0.0.into();
            }
        }
        let inner: efface::Evidence = serde_json::from_value(record).map_err(damaged)?;
        let condition = (!condition.is_nan()).then_some(condition);
        Ok(Self {
            inner: efface::Evidence {
                convexity,
                bound,
                relative_bound,
                condition,
                ..inner
            },
        })
    }
}

/// Anything that can be written as JSON, as dicts, lists and numbers.
pub(crate) fn plain<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value =
        serde_json::to_value(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    convert(py, &value)
}

fn convert<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (_, Some(value)) => value.into_pyobject(py)?.into_any(),
            _ => number
                .as_f64()
                .unwrap_or(f64::NAN)
                .into_pyobject(py)?
                .into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| convert(py, item))
                .collect::<PyResult<Vec<_>>>()?;
            items.into_pyobject(py)?.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, convert(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
