//! The frozen sentence encoder.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A frozen pretrained sentence encoder of the MiniLM kind, read from a folder.
#[pyclass(frozen, module = "efface._core")]
pub(crate) struct MiniLm {
    encoder: efface_nn::minilm::MiniLm,
}

#[pymethods]
impl MiniLm {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, threads: usize) -> PyResult<Self> {
        let encoder = py.detach(|| efface_nn::minilm::MiniLm::open(&folder));
        let encoder = encoder.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self {
            encoder: encoder.with_threads(threads),
        })
    }

    /// The numbers that a text becomes.
    #[getter]
    fn width(&self) -> usize {
        self.encoder.width()
    }

    /// SHA-256 of the weights, the tokenizer and the settings.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.encoder.fingerprint()
    }

    /// One row of numbers for every text.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let width = self.encoder.width();
        let table = py.detach(|| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.encoder.encode(&texts, &|_| ())
        });
        let table = efface::Features::from(
            table.map_err(|error| PyValueError::new_err(error.to_string()))?,
        );
        let mut values = Vec::with_capacity(texts.len() * width);
        for row in 0..table.rows() {
            table.row(row).each(|_, value| values.push(value as f32));
        }
        PyArray1::from_vec(py, values).reshape([texts.len(), width])
    }
}
