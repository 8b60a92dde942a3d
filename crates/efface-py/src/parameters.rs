//! Parameters as arrays, under scikit-learn's names where it has them.

use efface::AnyModel;
use faer::Mat;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A list or a table of numbers, row after row.
pub(crate) enum Numbers {
    List(Vec<f64>),
    Table(Vec<f64>, usize, usize),
}

type Named = Vec<(&'static str, Numbers)>;

/// What a model consists of.
pub(crate) fn of(model: &AnyModel) -> Named {
    match model {
        AnyModel::Ridge(model) => linear(model.parameters()),
        AnyModel::Logistic(model) => linear(model.parameters()),
        AnyModel::MultinomialNb(model) => vec![
            ("class_count", Numbers::List(model.class_counts())),
            ("class_prior", Numbers::List(model.class_prior())),
            ("feature_log_prob", table(&model.feature_log_prob())),
        ],
        AnyModel::GaussianNb(model) => vec![
            ("class_count", Numbers::List(model.class_counts())),
            ("class_prior", Numbers::List(model.class_prior())),
            ("theta", table(&model.means())),
            ("var", table(&model.variances())),
            ("epsilon", Numbers::List(vec![model.smoothing()])),
        ],
        AnyModel::KMeans(model) => vec![("cluster_centers", table(&model.centers()))],
        AnyModel::Sisa(model) => {
            let trained = model
                .answers()
                .filter(|answer| matches!(answer, efface::models::sisa::Checkpoint::Trained(_)));
            vec![("shards_trained", Numbers::List(vec![trained.count() as f64]))]
        }
    }
}

fn linear((coefficients, intercept): (Mat<f64>, Vec<f64>)) -> Named {
    let values = (0..coefficients.ncols()).flat_map(|output| coefficients.col_as_slice(output).to_vec());
    let table = Numbers::Table(values.collect(), coefficients.ncols(), coefficients.nrows());
    vec![("coef", table), ("intercept", Numbers::List(intercept))]
}

fn lines(table: &Mat<f64>) -> Vec<f64> {
    (0..table.nrows()).flat_map(|row| (0..table.ncols()).map(move |column| table[(row, column)])).collect()
}

fn table(table: &Mat<f64>) -> Numbers {
    Numbers::Table(lines(table), table.nrows(), table.ncols())
}

/// A matrix as an array of the same shape.
pub(crate) fn by_row<'py>(py: Python<'py>, table: &Mat<f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
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
pub(crate) fn dict<'py>(py: Python<'py>, named: Named) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, numbers) in named {
        match numbers {
            Numbers::List(values) => dict.set_item(name, PyArray1::from_vec(py, values))?,
            Numbers::Table(values, rows, columns) => {
                dict.set_item(name, shaped(py, values, rows, columns)?)?
            }
        }
    }
    Ok(dict)
}
