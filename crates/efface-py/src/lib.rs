//! The native half of the Python package. What Python users see is in `python/efface`; this crate
//! turns arrays into rows, runs the work without the interpreter's lock, and turns errors into the
//! exceptions that scikit-learn users expect.

mod arguments;
mod audit;
mod create;
mod engine;
mod errors;
mod evidence;
mod input;
mod minilm;
mod model;
mod onnx;
mod parameters;
mod receipt;
mod state;
mod statistics;
mod work;

use pyo3::prelude::*;

/// The module `efface._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("methods", efface::methods::table::core_method_names())?;
    module.add_class::<model::Model>()?;
    module.add_class::<evidence::Evidence>()?;
    module.add_class::<evidence::NotCovered>()?;
    module.add_class::<engine::ModelFile>()?;
    module.add_class::<minilm::MiniLm>()?;
    module.add_class::<statistics::Statistics>()?;
    module.add_function(wrap_pyfunction!(statistics::column_grids, module)?)?;
    module.add_function(wrap_pyfunction!(receipt::verify_bundle, module)?)?;
    module.add_function(wrap_pyfunction!(receipt::read_receipt, module)?)?;
    module.add_function(wrap_pyfunction!(engine::fit_file, module)?)?;
    module.add_function(wrap_pyfunction!(onnx::head, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit, module)?)?;
    module.add_function(wrap_pyfunction!(audit::injection, module)?)?;
    Ok(())
}
