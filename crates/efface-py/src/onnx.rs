//! Linear models as ONNX files, by the writer that networks use.

use efface_nn::onnx::{OnnxActivation, OnnxHead, OnnxLinear, WeightOrder};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An ONNX model from `features` to `scores`: x ↦ xWᵀ + b, then `none`, `softmax` or `sigmoid`.
#[pyfunction]
pub(crate) fn head<'py>(
    py: Python<'py>,
    coef: PyReadonlyArray2<'py, f32>,
    intercept: PyReadonlyArray1<'py, f32>,
    activation: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let activation = match activation {
        "softmax" => OnnxActivation::Softmax,
        "sigmoid" => OnnxActivation::Sigmoid,
        _ => OnnxActivation::None,
    };
    let outputs = coef.shape()[0];
    let inputs = coef.shape()[1];
    let linear = OnnxLinear {
        weight: coef.as_slice()?,
        bias: intercept.as_slice()?,
        inputs,
        outputs,
        order: WeightOrder::OutputsInputs,
    };
    let model = OnnxHead { linear, activation }.model();
    let model = model.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut bytes = Vec::new();
    model.write_to(&mut bytes)?;
    Ok(PyBytes::new(py, &bytes))
}
