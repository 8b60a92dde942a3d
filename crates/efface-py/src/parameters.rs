//! Parameters as arrays, under scikit-learn's names where it has them.

use efface::Model;
use faer::Mat;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A list or a table of numbers, row after row.
pub(crate) enum ParameterNumbers {
    List(Vec<f64>),
    Table(Vec<f64>, usize, usize),
}

type NamedArrays = Vec<(&'static str, ParameterNumbers)>;

/// What a model consists of, and what it can tell beside it. Tables have a line per output, class
/// or cluster.
pub(crate) fn of(model: &Model) -> NamedArrays {
    let parameters = model.parameters().unwrap_or_default();
    let vectors = parameters.vectors.into_iter().chain(model.facts());
    let tables = parameters.tables.iter().map(|(name, table)| {
        let values = (0..table.ncols())
            .flat_map(|column| table.col_as_slice(column).to_vec())
            .collect();
        (
            scikit_learn_name(name),
            ParameterNumbers::Table(values, table.ncols(), table.nrows()),
        )
    });
    tables
        .chain(vectors.map(|(name, values)| (name, ParameterNumbers::List(values))))
        .collect()
}

fn scikit_learn_name(name: &'static str) -> &'static str {
    match name {
        "coefficients" => "coef",
        "centers" => "cluster_centers",
        "means" => "theta",
        "variances" => "var",
        name => name,
    }
}

fn lines(table: &Mat<f64>) -> Vec<f64> {
    (0..table.nrows())
        .flat_map(|row| (0..table.ncols()).map(move |column| table[(row, column)]))
        .collect()
}

/// A matrix as an array of the same shape.
pub(crate) fn by_row<'py>(
    py: Python<'py>,
    table: &Mat<f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    shaped(py, lines(table), table.nrows(), table.ncols())
}

/// Numbers, row after row, as a table.
pub(crate) fn shaped<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    rows: usize,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape([rows, columns])
}

/// Arrays by name.
pub(crate) fn dict<'py>(py: Python<'py>, named: NamedArrays) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, numbers) in named {
        match numbers {
            ParameterNumbers::List(values) => {
                dict.set_item(name, PyArray1::from_vec(py, values))?
            }
            ParameterNumbers::Table(values, rows, columns) => {
                dict.set_item(name, shaped(py, values, rows, columns)?)?
            }
        }
    }
    Ok(dict)
}
