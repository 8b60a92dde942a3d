//! `SELECT efface_fit(y, x1, x2) FROM rows`: the sums of a linear model as an aggregate function of
//! DataFusion.
//!
//! A function is made from the bytes of empty `efface.Statistics`, which name the columns and, for
//! reproducible sums, their grids. Its arguments are the targets and then the features; its value
//! is the bytes of the statistics of all rows. Every partition sums its own rows, and partitions
//! send sums.

mod aggregate;
mod frame;

use std::sync::Arc;

use datafusion_expr::AggregateUDF;
use datafusion_ffi::udaf::FFI_AggregateUDF;
use efface::LinearStatistics;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use aggregate::FitAggregate;

/// An aggregate function for `datafusion.udaf`.
#[pyclass(module = "efface_datafusion", frozen)]
struct Fit {
    function: Arc<AggregateUDF>,
}

#[pymethods]
impl Fit {
    /// A function of this name from the bytes of empty statistics.
    #[new]
    #[pyo3(signature = (statistics, name = "efface_fit"))]
    fn new(statistics: &[u8], name: &str) -> PyResult<Self> {
        let empty = frame::opened(statistics)
            .and_then(|sums| LinearStatistics::from_bytes(sums).map_err(|error| error.to_string()))
            .map_err(PyValueError::new_err)?;
        if empty.rows() > 0 {
            return Err(PyValueError::new_err(
                "these statistics have rows already; give empty ones",
            ));
        }
        let function = Arc::new(AggregateUDF::from(FitAggregate::new(name, empty.spec())));
        Ok(Self { function })
    }

    /// The function as other programs take it.
    fn __datafusion_aggregate_udf__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let function = FFI_AggregateUDF::from(self.function.clone());
        PyCapsule::new_with_value(py, function, c"datafusion_aggregate_udf")
    }
}

#[pymodule]
fn efface_datafusion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Fit>()
}
