//! From arrays to rows. A dense array is read where it lies and copied once, in its own precision,
//! into the storage of the model: the model must be able to overwrite a row that it forgets, and
//! nobody else may change it behind its back.

use efface::{Csr, Dense, Features, RowId, Rows};
use numpy::{
    Element, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Row starts, column numbers, values and width of a sparse table.
type SparseInput<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, u32>,
    Bound<'py, PyAny>,
    usize,
);

/// The features of an array of f64 or f32, or of the parts of a CSR matrix.
pub(crate) fn features(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Features> {
    if let Ok(array) = x.cast::<PyArray2<f64>>() {
        return dense(py, &array.try_readonly()?);
    }
    if let Ok(array) = x.cast::<PyArray2<f32>>() {
        return dense(py, &array.try_readonly()?);
    }
    let Ok((starts, columns, values, width)) = x.extract::<SparseInput<'_>>() else {
        return Err(PyTypeError::new_err(
            "X must be a two-dimensional array of float32 or float64, or CSR parts",
        ));
    };
    if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        return sparse(py, &starts, &columns, values.as_slice()?, width);
    }
    let values = values.extract::<PyReadonlyArray1<'_, f32>>()?;
    sparse(py, &starts, &columns, values.as_slice()?, width)
}

fn dense<T>(py: Python<'_>, array: &PyReadonlyArray2<'_, T>) -> PyResult<Features>
where
    T: Element + efface::rows::Real,
    Features: From<Dense<T>>,
{
    let width = array.shape()[1];
    let values = array
        .as_slice()
        .map_err(|_| PyTypeError::new_err("X must be contiguous, row after row"))?;
    let table = py.detach(|| {
        if copying_threads(values) > 1 {
            return Dense::new(copied(values), width);
        }
        let mut room = Vec::with_capacity(values.len());
        #[cfg(target_os = "linux")]
        ask_for_large_pages(room.spare_capacity_mut());
        Dense::copied(values, room, width)
    });
    Ok(table
        .map_err(|error| crate::errors::core(py, error))?
        .into())
}

fn sparse<T>(
    py: Python<'_>,
    starts: &PyReadonlyArray1<'_, i64>,
    columns: &PyReadonlyArray1<'_, u32>,
    values: &[T],
    width: usize,
) -> PyResult<Features>
where
    T: efface::rows::Real,
    Features: From<Csr<T>>,
{
    let starts = starts.as_slice()?;
    let columns = columns.as_slice()?;
    let table = py.detach(|| {
        let starts = starts.iter().map(|&start| start.max(0) as usize).collect();
        Csr::from_parts(starts, copied(columns), copied(values), width)
    });
    Ok(table
        .map_err(|error| crate::errors::core(py, error))?
        .into())
}

/// A copy of an array, in large pages where the system has them: touching new memory page by page
/// can take longer than copying into it. numpy asks for the same. A large one is copied by several
/// threads, because one alone does not fill the way to memory.
fn copied<T: Copy + Default + Send + Sync>(values: &[T]) -> Vec<T> {
    let mut copy = vec![T::default(); values.len()];
    #[cfg(target_os = "linux")]
    ask_for_large_pages(&mut copy);
    let threads = copying_threads(values);
    if threads <= 1 {
        copy.copy_from_slice(values);
        return copy;
    }
    let share = values.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (to, from) in copy.chunks_mut(share).zip(values.chunks(share)) {
            scope.spawn(|| to.copy_from_slice(from));
        }
    });
    copy
}

/// As many threads as copy an array.
fn copying_threads<T>(values: &[T]) -> usize {
    /// Below this many bytes a thread is not worth its start, and more threads than this do not
    /// copy faster.
    const SHARE: usize = 16 << 20;
    const MOST_THREADS: usize = 8;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    (size_of_val(values) / SHARE).min(cores).min(MOST_THREADS)
}

#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(memory: &mut [T]) {
    /// Below this size it is not worth a call.
    const LARGE: usize = 4 << 20;
    /// A multiple of every page size in use.
    const PAGE: usize = 64 << 10;
    let bytes = std::mem::size_of_val(memory);
    if bytes < LARGE {
        return;
    }
    let start = memory.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(PAGE).min(bytes);
    let whole = (bytes - skip) / PAGE * PAGE;
    #[expect(unsafe_code, reason = "advice about memory has no safe interface")]
    // SAFETY: the range lies within `memory`, which is borrowed mutably, and this advice does not
    // change what it holds.
    let _advice_only = unsafe {
        rustix::mm::madvise(
            start.add(skip).cast(),
            whole,
            rustix::mm::Advice::LinuxHugepage,
        )
    };
}

/// Everything that makes rows: features, targets, ids and weights.
pub(crate) fn rows(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &PyReadonlyArray2<'_, f64>,
    ids: &PyReadonlyArray1<'_, u64>,
    weights: Option<&PyReadonlyArray1<'_, f64>>,
) -> PyResult<Rows> {
    let features = features(py, x)?;
    let targets = y.as_slice()?;
    let outputs = y.shape()[1];
    let ids = ids.as_slice()?;
    let weights = weights.map(|weights| weights.as_slice()).transpose()?;
    let made = py.detach(|| {
        room(features.width(), outputs)?;
        let rows = Rows::with_ids(named(ids), features, targets.to_vec(), outputs)?;
        match weights {
            Some(weights) => rows.weighted(weights.to_vec()),
            None => Ok(rows),
        }
    });
    made.map_err(|error| crate::errors::core(py, error))
}

/// Whether there is memory for a few parameters a feature and output. Where there is none, an
/// allocation would end the process; an error does not.
pub(crate) fn room(width: usize, outputs: usize) -> efface::Result<()> {
    let wanted = width.saturating_mul(outputs).saturating_mul(8);
    match Vec::<f64>::new().try_reserve_exact(wanted) {
        Ok(()) => Ok(()),
        Err(_) => Err(efface::Error::Parameter {
            name: "features · outputs",
            value: format!("{width} · {outputs}"),
            range: "no more than there is memory for",
        }),
    }
}

/// Numbers as ids.
pub(crate) fn named(ids: &[u64]) -> Vec<RowId> {
    ids.iter().copied().map(RowId).collect()
}

/// A recipe from its JSON form.
pub(crate) fn recipe(text: &str) -> PyResult<efface::Recipe> {
    serde_json::from_str(text)
        .map_err(|error| PyValueError::new_err(format!("the settings do not fit: {error}")))
}
